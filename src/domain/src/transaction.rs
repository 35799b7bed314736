//! The OVSE transaction: its states and its one transition (specification, "OVSE transaction").
//!
//! `Pending` becomes `Completed` at most once. Expiry is not a state that is written: a pending
//! transaction is expired from the moment its window has passed, whoever looks.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::channel::Channel;
use crate::claims::{Claim, ClaimSet};
use crate::event::EventRefusal;
use crate::http_url::{HttpUrl, WebhookUrl};
use crate::ids::{AppId, ClientId, EventId, TxnId};
use crate::language::Language;
use crate::limits::{REASON_CHARS_MAX, REASON_CODE_CHARS_MAX};
use crate::request_id::RequestId;
use crate::time::Timestamp;

/// What the client asked for; fixed when the transaction opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The claims that the person is asked to share.
    pub claims: ClaimSet,
    /// How the person reaches the identity app.
    pub channel: Channel,
    /// The language of pages and identity app.
    pub language: Language,
    /// Whether a face scan is required.
    pub face_auth: bool,
    /// Where the outcome is reported, if anywhere.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub webhook_url: Option<WebhookUrl>,
    /// The correlation id of the request that opened the transaction.
    pub request_id: RequestId,
    /// The rarely used rest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub extras: Option<Box<OptionalTerms>>,
}

/// Optional additions to a request that most transactions do not have.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OptionalTerms {
    /// A hint for the identity app about whose credential is meant; personal data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_hint: Option<String>,
    /// The client's own reference, echoed in result and webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_reference_id: Option<String>,
    /// Where the verify page sends the user afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<HttpUrl>,
}

impl fmt::Debug for OptionalTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OptionalTerms(redacted)")
    }
}

/// A transaction that waits for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its id.
    pub id: TxnId,
    /// The client that paid for it.
    pub client: ClientId,
    /// The app that opened it and alone may read it.
    pub app: AppId,
    /// The event whose guest is verified, if it is one's.
    pub event: Option<EventId>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// The end of its window; at this moment it is expired.
    pub expires_at: Timestamp,
    /// What was asked for.
    pub terms: Terms,
}

/// Verified claims by their credential names. Personal: its `Debug` shows nothing.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VerifiedClaims(Map<String, Value>);

impl VerifiedClaims {
    /// Wraps claims that a verified credential disclosed.
    #[must_use]
    pub const fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    /// The claims.
    #[must_use]
    pub const fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl fmt::Debug for VerifiedClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifiedClaims({} redacted)", self.0.len())
    }
}

/// SHA-256 over the identity app's answer: tells a redelivery from a different answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnswerDigest(pub [u8; 32]);

impl fmt::Debug for AnswerDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnswerDigest({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// Tells what the issuer signed from anything else that it signed: the same credential, whichever of its disclosures are shown,
/// in whatever order, under whichever of its possible signatures and with whatever key binding.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialIdentity(pub [u8; 32]);

impl fmt::Debug for CredentialIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CredentialIdentity(…{:02x}{:02x})", self.0[30], self.0[31])
    }
}

/// A final answer of the identity app, verified as far as that is possible without the transaction.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A credential that passed every check of the authority's profile.
    Credential {
        /// The requested claims that it discloses.
        claims: Arc<VerifiedClaims>,
        /// The requested claims that it does not disclose.
        missing: ClaimSet,
        /// The requested claims that it discloses in a form in which they cannot be handed on.
        malformed: ClaimSet,
        /// Whether its holder bound it to this transaction.
        holder_bound: bool,
        /// Identifies the credential in all its presentations.
        identity: CredentialIdentity,
        /// Identifies this answer.
        digest: AnswerDigest,
    },
    /// The app reports that there will be no credential.
    Failure {
        /// Why, in words fit for the client.
        failure: Failure,
        /// Identifies this answer.
        digest: AnswerDigest,
    },
}

impl Answer {
    /// Identifies the answer.
    #[must_use]
    pub const fn digest(&self) -> AnswerDigest {
        match self {
            Self::Credential { digest, .. } | Self::Failure { digest, .. } => *digest,
        }
    }
}

/// Why a verification did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A sentence or phrase, at most 200 characters.
    pub message: String,
    /// The authority's code, or one of ours such as `claims_missing`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
}

impl Failure {
    /// A failure, with control characters dropped and overlong text cut: it comes from outside.
    #[must_use]
    pub fn new(message: &str, code: Option<&str>) -> Self {
        let clean = |text: &str, most: usize| text.chars().filter(|c| !c.is_control()).take(most).collect::<String>();
        let code = code.map(|code| clean(code.trim(), REASON_CODE_CHARS_MAX)).filter(|code| !code.is_empty());
        let message = Some(clean(message.trim(), REASON_CHARS_MAX)).filter(|message| !message.is_empty());
        Self { message: message.unwrap_or_else(|| "The identity app reported a failure".into()), code }
    }

    /// A guest who was verified and for whom the event had no place any more.
    #[must_use]
    pub fn event_refused(refusal: EventRefusal) -> Self {
        Self { message: refusal.message().to_owned(), code: Some(refusal.code().to_owned()) }
    }

    fn claims_missing(missing: ClaimSet) -> Self {
        let names: Vec<&str> = missing.iter().map(Claim::name).collect();
        Self { message: format!("Requested claims were not shared: {}", names.join(", ")), code: Some("claims_missing".into()) }
    }

    fn claims_malformed(malformed: ClaimSet) -> Self {
        let names: Vec<&str> = malformed.iter().map(Claim::name).collect();
        Self { message: format!("Requested claims are not in a known form: {}", names.join(", ")), code: Some("claims_malformed".into()) }
    }
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The person was verified and shared every requested claim.
    Verified(Arc<VerifiedClaims>),
    /// They were not.
    NotVerified(Failure),
}

impl Outcome {
    /// `verification_passed` of result and webhook.
    #[must_use]
    pub const fn passed(&self) -> bool {
        matches!(self, Self::Verified(_))
    }
}

/// A transaction that has ended with an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Completed {
    /// What it was while it waited.
    pub opened: Pending,
    /// When the answer was accepted.
    pub verified_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// Identifies the answer that ended it.
    pub answer: AnswerDigest,
}

/// Why an answer does not complete a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The window had passed.
    #[error("the transaction has expired")]
    Expired,
    /// It was already completed by another answer.
    #[error("the transaction is already completed")]
    AlreadyCompleted,
}

impl Pending {
    /// Whether the window has passed at `now`.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Ends the transaction with an answer.
    ///
    /// # Errors
    /// [`Refusal::Expired`] when the window has passed.
    pub fn complete(self, answer: Answer, now: Timestamp) -> Result<Completed, Refusal> {
        if self.is_expired(now) {
            return Err(Refusal::Expired);
        }
        let digest = answer.digest();
        let outcome = match answer {
            Answer::Credential { missing, .. } if !missing.is_empty() => Outcome::NotVerified(Failure::claims_missing(missing)),
            Answer::Credential { malformed, .. } if !malformed.is_empty() => Outcome::NotVerified(Failure::claims_malformed(malformed)),
            Answer::Credential { claims, .. } => Outcome::Verified(claims),
            Answer::Failure { failure, .. } => Outcome::NotVerified(failure),
        };
        Ok(Completed { opened: self, verified_at: now, outcome, answer: digest })
    }
}

impl Completed {
    /// Judges an answer that arrives after the end.
    ///
    /// # Errors
    /// [`Refusal::AlreadyCompleted`] unless it is the same answer once more.
    pub fn redelivered(&self, digest: AnswerDigest) -> Result<(), Refusal> {
        if self.answer == digest { Ok(()) } else { Err(Refusal::AlreadyCompleted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pending() -> Pending {
        let client = ClientId::generate();
        let opened_at = Timestamp::from_millis(1_000_000);
        Pending {
            id: TxnId::generate(client.partition(), 0),
            client,
            app: AppId::generate(),
            event: None,
            opened_at,
            expires_at: opened_at + Duration::from_secs(900),
            terms: Terms {
                claims: [Claim::Name, Claim::Dob].into_iter().collect(),
                channel: Channel::Web,
                language: Language::ENGLISH,
                face_auth: true,
                webhook_url: None,
                request_id: RequestId::mint(),
                extras: None,
            },
        }
    }

    fn credential(missing: ClaimSet) -> Answer {
        Answer::Credential {
            claims: Arc::default(),
            missing,
            malformed: ClaimSet::default(),
            holder_bound: false,
            identity: CredentialIdentity([7; 32]),
            digest: AnswerDigest([7; 32]),
        }
    }

    #[test]
    fn a_pending_transaction_is_completed_within_its_window_and_not_at_its_end() {
        let pending = pending();
        let last = Timestamp::from_millis(pending.expires_at.millis() - 1);
        assert!(pending.clone().complete(credential(ClaimSet::default()), last).unwrap().outcome.passed());
        assert_eq!(pending.clone().complete(credential(ClaimSet::default()), pending.expires_at), Err(Refusal::Expired));
    }

    #[test]
    fn a_requested_claim_that_is_missing_ends_it_without_verification() {
        let opened = pending().opened_at;
        let done = pending().complete(credential([Claim::Dob].into_iter().collect()), opened).unwrap();
        let Outcome::NotVerified(failure) = done.outcome else { panic!("verified without dob") };
        assert_eq!(failure.code.as_deref(), Some("claims_missing"));
        assert!(failure.message.ends_with(": dob"));
    }

    #[test]
    fn a_requested_claim_without_a_known_form_ends_it_without_verification() {
        let opened = pending().opened_at;
        let mut answer = credential(ClaimSet::default());
        if let Answer::Credential { malformed, .. } = &mut answer {
            *malformed = [Claim::Dob].into_iter().collect();
        }
        let Outcome::NotVerified(failure) = pending().complete(answer, opened).unwrap().outcome else { panic!("verified without dob") };
        assert_eq!(failure.code.as_deref(), Some("claims_malformed"));
        assert!(failure.message.ends_with(": dob"));
    }

    #[test]
    fn the_same_answer_again_is_no_conflict_and_another_one_is() {
        let opened = pending().opened_at;
        let done = pending().complete(credential(ClaimSet::default()), opened).unwrap();
        assert_eq!(done.redelivered(AnswerDigest([7; 32])), Ok(()));
        assert_eq!(done.redelivered(AnswerDigest([8; 32])), Err(Refusal::AlreadyCompleted));
    }

    #[test]
    fn reasons_from_outside_are_cut_and_cleaned() {
        let failure = Failure::new(&format!("a\u{7}b\n{}", "é".repeat(500)), Some(" 301\r\n"));
        assert!(failure.message.starts_with("ab"));
        assert_eq!(failure.message.chars().count(), REASON_CHARS_MAX);
        assert_eq!(failure.code.as_deref(), Some("301"));
        assert_eq!(Failure::new(" ", Some("")).code, None);
    }

    #[test]
    fn debug_output_shows_no_personal_data() {
        let mut map = Map::new();
        map.insert("residentName".into(), Value::from("Asha Rao"));
        let claims = VerifiedClaims::new(map);
        let extras = OptionalTerms { name_hint: Some("Asha".into()), ..OptionalTerms::default() };
        assert!(!format!("{claims:?} {extras:?}").contains("Asha"));
    }
}
