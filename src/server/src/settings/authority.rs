//! `[authority]`: what is agreed with the identity authority.

use std::path::PathBuf;
use std::time::Duration;

use sakshi_authority::intent::IntentSettings;
use sakshi_authority::launch::AppLinks;
use sakshi_authority::sdjwt::KeyBinding;
use sakshi_domain::time::Timestamp;
use url::Url;

use super::reader::Reader;
use super::sections::origin;

const FURTHER_KEY: &str = "must be a key id, a path without spaces, and if the key is to sign a time such as 2026-12-01T00:00:00Z";
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
    /// Keys beside that one, each with its id and from when on it signs.
    pub further_intent_keys: Vec<FurtherKey>,
    /// What all intents have in common.
    pub intent: IntentSettings,
    /// The names that launch the identity app.
    pub links: AppLinks,
}

/// An entry of `authority.further_intent_keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherKey {
    /// Its id at the authority.
    pub kid: String,
    /// The private key.
    pub path: PathBuf,
    /// From when on it signs; never without a time.
    pub not_before: Option<Timestamp>,
}

impl FurtherKey {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut words = text.split_whitespace();
        let (kid, path, time, end) = (words.next(), words.next(), words.next(), words.next());
        let not_before = time.map(|time| Timestamp::parse_iso8601(time).ok_or(FURTHER_KEY)).transpose()?;
        match (kid, path, end) {
            (Some(kid), Some(path), None) => Ok(Self { kid: kid.to_owned(), path: path.into(), not_before }),
            _ => Err(FURTHER_KEY),
        }
    }
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
            further_intent_keys: reader.list("authority.further_intent_keys", FurtherKey::parse),
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
