//! The payload of an intent as it is signed (protocol, section 1), and the settings for it. The payload borrows
//! from the transaction and the settings.

use std::time::Duration;

use sakshi_domain::channel::Channel;
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::callback_address::CallbackAddress;

/// Seconds by which `iat` is set back, because a phone's clock may be slow.
const CLOCK_SKEW_SECONDS: i64 = 10;

/// Settings that are common to all intents of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentSettings {
    /// The id of the signing key at the authority.
    pub kid: String,
    /// `typ` of the header: `credential-req+jwt` or `JWT`.
    pub typ: String,
    /// `iss`: the name of the verifier.
    pub issuer: String,
    /// Time from the signature to `exp`; an intent expires with its transaction at the latest.
    pub lifetime: Duration,
    /// `ac`: the verifier's client id.
    pub client_id: String,
    /// `sa`: the verifier's registration number.
    pub registration: String,
    /// Number of characters of `sc`.
    pub scope_length: usize,
    /// `i`: the requested item, `credential` or `CREDENTIAL`.
    pub item: String,
    /// The JSON type of `m`.
    pub mode: ModeForm,
    /// The form of `lang`.
    pub language: LanguageForm,
}

/// The JSON type of `m`; public documents and tools differ in it (protocol, section 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModeForm {
    /// `1`
    #[default]
    Integer,
    /// `"1"`
    Text,
}

/// The form of `lang`; public documents and integrations differ in it (protocol, section 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LanguageForm {
    /// The authority's number as text: `"6"`.
    #[default]
    Number,
    /// The ISO 639-1 code: `"hi"`. `"en"` for languages without a code in the authority's list.
    Iso,
}

/// The languages that the authority lists with an ISO code.
const ISO_CODES: [&str; 9] = ["en", "hi", "bn", "mr", "kn", "ml", "or", "ta", "te"];

impl Default for IntentSettings {
    /// Returns the values that most integrations send, for a verifier without a name.
    fn default() -> Self {
        Self {
            kid: String::new(),
            typ: "credential-req+jwt".to_owned(),
            issuer: String::new(),
            lifetime: Duration::from_secs(900),
            client_id: String::new(),
            registration: String::new(),
            scope_length: 64,
            item: "credential".to_owned(),
            mode: ModeForm::default(),
            language: LanguageForm::default(),
        }
    }
}

/// The members of the payload, by their names in the protocol; [`super::IntentClaims`] explains them.
#[derive(Serialize)]
pub(super) struct IntentPayload<'a> {
    txn: TxnId,
    i: &'a str,
    lang: Lang,
    sc: &'a str,
    pop: u8,
    ch: &'static str,
    m: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    aid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asig: Option<&'a str>,
    ac: &'a str,
    sa: &'a str,
    cb: &'a str,
    aud: &'a str,
    iss: &'a str,
    iat: i64,
    exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ht: Option<&'a str>,
    jti: Uuid,
}

impl<'a> IntentPayload<'a> {
    pub(super) fn new(
        settings: &'a IntentSettings,
        pending: &'a Pending,
        scope: &'a str,
        callback: &'a CallbackAddress,
        now: Timestamp,
        jti: Uuid,
    ) -> Self {
        let terms = &pending.terms;
        let android_app = match &terms.channel {
            Channel::Android(app) => Some(app),
            Channel::Web | Channel::Qr | Channel::Ios => None,
        };
        let lifetime = i64::try_from(settings.lifetime.as_secs()).unwrap_or(i64::MAX);
        Self {
            txn: pending.id,
            i: &settings.item,
            lang: Lang { form: settings.language, language: terms.language },
            sc: scope,
            pop: 1,
            ch: terms.channel.name(),
            m: Mode { form: settings.mode, face_scan: u8::from(terms.face_auth) },
            aid: android_app.map(|app| app.app_id.as_str()),
            asig: android_app.map(|app| app.app_signature.as_str()),
            ac: &settings.client_id,
            sa: &settings.registration,
            cb: &callback.url,
            aud: &callback.audience,
            iss: &settings.issuer,
            iat: now.seconds().saturating_sub(CLOCK_SKEW_SECONDS),
            exp: now.seconds().saturating_add(lifetime).min(pending.expires_at.seconds()),
            ht: terms.extras.as_deref().and_then(|extras| extras.name_hint.as_deref()),
            jti,
        }
    }
}

/// The value of `lang`, in the configured form.
struct Lang {
    form: LanguageForm,
    language: Language,
}

impl Serialize for Lang {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tag = self.language.tag();
        match self.form {
            LanguageForm::Number => serializer.collect_str(&self.language.code()),
            LanguageForm::Iso => serializer.serialize_str(if ISO_CODES.contains(&tag) { tag } else { "en" }),
        }
    }
}

/// The value of `m`, in the configured form.
struct Mode {
    form: ModeForm,
    /// 1 if a face scan is required, else 0.
    face_scan: u8,
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.form {
            ModeForm::Integer => serializer.serialize_u8(self.face_scan),
            ModeForm::Text => serializer.collect_str(&self.face_scan),
        }
    }
}
