//! `[authority]`: what is agreed with the identity authority.

use std::path::PathBuf;
use std::time::Duration;

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
    /// What a credential must prove about its holder's key.
    pub key_binding: KeyBinding,
    /// Where QR values point.
    pub qr_host: Option<Url>,
    /// How long an accepted credential is refused under other transactions.
    pub credential_replay_window: Duration,
    /// Characters of the scope bitmap.
    pub sc_length: usize,
    /// The private key that signs intents.
    pub intent_key_path: Option<PathBuf>,
    /// Its `kid`.
    pub intent_kid: String,
    /// The `typ` of intents.
    pub intent_typ: String,
    /// The `iss` of intents.
    pub intent_iss: String,
    /// How long an intent is valid.
    pub intent_lifetime: Duration,
    /// The verifier's client id (`ac`).
    pub client_id: String,
    /// The verifier's registration number (`sa`).
    pub registration: String,
    /// Intent action of Android browsers.
    pub android_web_action: String,
    /// Intent action of Android apps.
    pub android_app_action: String,
    /// Scheme of the identity app's URL on iOS.
    pub ios_scheme: String,
    /// Host of that URL.
    pub ios_host: String,
}

impl Authority {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let path = |text: String| (!text.is_empty()).then(|| PathBuf::from(text));
        let issuer = Some(reader.text("authority.issuer")).filter(|issuer| !issuer.is_empty());
        let jwks_path = path(reader.text("authority.jwks_path"));
        let key_binding = reader.required("authority.key_binding", "\"off\", \"when_present\" or \"required\"", KeyBinding::WhenPresent);
        let qr_host = reader.parsed_by("authority.qr_host", origin);
        let credential_replay_window = Duration::from_secs(reader.number("authority.credential_replay_window_s", 1..=31 * 86_400));
        let sc_length = reader.count("authority.sc_length", SCOPE_BITS..=1_024);
        let intent_key_path = path(reader.text("authority.intent_key_path"));
        let mut named = |path: &str| {
            let text = reader.text(path);
            if text.is_empty() {
                reader.problems.add(path, "must not be empty");
            }
            text
        };
        let intent_kid = named("authority.intent_kid");
        let intent_typ = named("authority.intent_typ");
        let intent_iss = named("authority.intent_iss");
        Self {
            issuer,
            jwks_path,
            qr_host,
            credential_replay_window,
            sc_length,
            intent_key_path,
            intent_kid,
            intent_typ,
            intent_iss,
            intent_lifetime: Duration::from_secs(reader.number("authority.intent_lifetime_s", 0..=86_400)),
            client_id: reader.text("authority.client_id"),
            registration: reader.text("authority.registration"),
            android_web_action: reader.text("authority.android_web_action"),
            android_app_action: reader.text("authority.android_app_action"),
            ios_scheme: reader.text("authority.ios_scheme"),
            ios_host: reader.text("authority.ios_host"),
            key_binding,
        }
    }
}
