//! `[authority]`: what is agreed with the identity authority.

use std::path::PathBuf;
use std::time::Duration;

use sakshi_authority::intent::IntentSettings;
use sakshi_authority::launch::AppLinks;
use sakshi_authority::sdjwt::KeyBinding;
use url::Url;

use super::reader::Reader;
use super::sections::origin;

/// Characters of the scope bitmap that have a meaning.
const SCOPE_BITS: u64 = 40;

/// `[authority]`; what is `None` may be absent in the sandbox only.
#[derive(Clone, Debug)]
pub struct Authority {
    /// The `iss` of accepted credentials.
    pub issuer: Option<String>,
    /// The issuer's public keys.
    pub jwks_path: Option<PathBuf>,
    /// Where the issuer publishes them.
    pub jwks_url: Option<Url>,
    /// How often they are fetched from there.
    pub jwks_refresh: Duration,
    /// What a credential must prove about its holder's key.
    pub key_binding: KeyBinding,
    /// Where QR values point.
    pub qr_host: Option<Url>,
    /// How long an accepted credential is refused under other transactions.
    pub credential_replay_window: Duration,
    /// The private key that signs intents.
    pub intent_key_path: Option<PathBuf>,
    /// What all intents have in common.
    pub intent: IntentSettings,
    /// The names that launch the identity app.
    pub links: AppLinks,
}

impl Authority {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let path = |text: &str| Ok(PathBuf::from(text));
        let policies = [("off", KeyBinding::Off), ("when_present", KeyBinding::WhenPresent), ("required", KeyBinding::Required)];
        Self {
            issuer: reader.optional("authority.issuer", |text| Ok(text.to_owned())),
            jwks_path: reader.optional("authority.jwks_path", path),
            jwks_url: reader.optional("authority.jwks_url", |text| Url::parse(text).map_err(|_| "must be a URL")),
            jwks_refresh: reader.seconds("authority.jwks_refresh_s", 60..=7 * 86_400),
            key_binding: reader.one_of("authority.key_binding", &policies),
            qr_host: reader.optional("authority.qr_host", origin),
            credential_replay_window: reader.seconds("authority.credential_replay_window_s", 1..=31 * 86_400),
            intent_key_path: reader.optional("authority.intent_key_path", path),
            intent: IntentSettings {
                scope_length: reader.number("authority.sc_length", SCOPE_BITS..=1_024),
                kid: reader.required("authority.intent_kid", "must not be empty"),
                typ: reader.required("authority.intent_typ", "must not be empty"),
                issuer: reader.required("authority.intent_iss", "must not be empty"),
                lifetime: reader.seconds("authority.intent_lifetime_s", 0..=86_400),
                client_id: reader.text("authority.client_id"),
                registration: reader.text("authority.registration"),
            },
            links: AppLinks {
                android_web_action: reader.text("authority.android_web_action"),
                android_app_action: reader.text("authority.android_app_action"),
                ios_scheme: reader.text("authority.ios_scheme"),
                ios_host: reader.text("authority.ios_host"),
            },
        }
    }
}
