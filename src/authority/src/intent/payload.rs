//! The payload of an intent as it is signed (protocol, section 1), with the settings that it depends on.
//! It borrows from the transaction and the settings.

use std::time::Duration;

use sakshi_domain::channel::Channel;
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::callback_address::CallbackAddress;

/// How far `iat` is set back, because the clock of the phone may be slow.
const CLOCK_SKEW_SECONDS: i64 = 10;

/// What all intents of a deployment have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentSettings {
    /// The id of the signing key at the authority.
    pub kid: String,
    /// `typ` of the header: `credential-req+jwt` or `JWT`.
    pub typ: String,
    /// `iss`.
    pub issuer: String,
    /// Time from the signature to `exp`; an intent expires with its transaction at the latest.
    pub lifetime: Duration,
    /// `ac`: the verifier's client id.
    pub client_id: String,
    /// `sa`: the verifier's registration number.
    pub registration: String,
    /// Characters of `sc`.
    pub scope_length: usize,
}

#[derive(Serialize)]
pub(super) struct IntentPayload<'a> {
    txn: TxnId,
    i: &'static str,
    #[serde(serialize_with = "decimal")]
    lang: Language,
    sc: &'a str,
    pop: u8,
    ch: &'static str,
    m: u8,
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
    ) -> Self {
        let terms = &pending.terms;
        let android = match &terms.channel {
            Channel::Android(app) => Some(app),
            Channel::Web | Channel::Qr | Channel::Ios => None,
        };
        let lifetime = i64::try_from(settings.lifetime.as_secs()).unwrap_or(i64::MAX);
        Self {
            txn: pending.id,
            i: "credential",
            lang: terms.language,
            sc: scope,
            pop: 1,
            ch: terms.channel.name(),
            m: u8::from(terms.face_auth),
            aid: android.map(|app| app.app_id.as_str()),
            asig: android.map(|app| app.app_signature.as_str()),
            ac: &settings.client_id,
            sa: &settings.registration,
            cb: &callback.url,
            aud: &callback.audience,
            iss: &settings.issuer,
            iat: now.seconds().saturating_sub(CLOCK_SKEW_SECONDS),
            exp: now.seconds().saturating_add(lifetime).min(pending.expires_at.seconds()),
            ht: terms.extras.as_deref().and_then(|extras| extras.name_hint.as_deref()),
            jti: Uuid::new_v4(),
        }
    }
}

fn decimal<S: Serializer>(language: &Language, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&language.code())
}
