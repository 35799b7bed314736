//! The OVSE transaction (specification, "OVSE transaction"): its terms, the final answer, and the outcome.
//!
//! [`Pending`] becomes [`Completed`] at most once, by a transition of the store. Expiry is not stored: a pending
//! transaction is expired from `expires_at` on.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::channel::Channel;
use crate::claims::{Claim, ClaimSet};
use crate::event::{EventRefusal, EventText};
use crate::flow::consent_given::ConsentDigest;
use crate::http_url::{HttpUrl, WebhookUrl};
use crate::ids::{AppId, ClientId, EventId, TxnId};
use crate::language::Language;
use crate::limits::{REASON_CHARS_MAX, REASON_CODE_CHARS_MAX};
use crate::request_id::RequestId;
use crate::retention::ClientRetention;
use crate::string_enum::string_enum;
use crate::time::Timestamp;
use crate::unseen::is_unseen;

string_enum!(
    /// The status of a transaction in a list.
    TransactionStatus {
        /// The person has not answered yet.
        Pending = "pending",
        /// The person was verified and shared every requested claim; a guest was registered.
        Passed = "passed",
        /// The person declined or could not be verified, or the guest's event had no place.
        Failed = "failed",
        /// The person did not answer in time.
        Expired = "expired",
    }
);

/// The terms of a transaction, from the client's request; fixed when the transaction is opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The requested claims.
    pub claims: ClaimSet,
    /// The channel to the identity app.
    pub channel: Channel,
    /// The language of the pages and of the identity app.
    pub language: Language,
    /// True if a face scan is required.
    pub face_auth: bool,
    /// URL that receives the outcome.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub webhook_url: Option<WebhookUrl>,
    /// The correlation id of the request that opened the transaction.
    pub request_id: RequestId,
    /// Terms that few requests have; boxed to keep a pending transaction small.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub extras: Option<Box<OptionalTerms>>,
}

/// Terms that most requests leave out.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OptionalTerms {
    /// Name of the expected person, for the identity app; personal data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_hint: Option<String>,
    /// The purpose shown to the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<EventText>,
    /// Digest of the declaration that the client has shown to the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent_text: Option<ConsentDigest>,
    /// True if the credential is stored as evidence, as long as the result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub evidence: bool,
    /// The client's own reference, returned in result and webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_reference_id: Option<String>,
    /// URL to which the verify page returns the person afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<HttpUrl>,
    /// The W3C `traceparent` of the span in which the transaction was opened, when spans are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<str>>,
    /// The client's own retention times, if any.
    #[serde(skip_serializing_if = "ClientRetention::is_usual")]
    pub retention: ClientRetention,
}

impl Terms {
    /// Returns the client's own retention times, if any.
    #[must_use]
    pub fn retention(&self) -> ClientRetention {
        self.extras.as_ref().map(|extras| extras.retention).unwrap_or_default()
    }

    /// Returns true if the credential is stored as evidence.
    #[must_use]
    pub fn keeps_evidence(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.evidence)
    }

    /// Returns the URL to which the person returns afterwards.
    #[must_use]
    pub fn redirect_url(&self) -> Option<&str> {
        self.extras.as_ref()?.redirect_url.as_ref().map(HttpUrl::as_str)
    }

    /// Returns the purpose shown to the person.
    #[must_use]
    pub fn purpose(&self) -> Option<&str> {
        self.extras.as_ref()?.purpose.as_ref().map(EventText::as_str)
    }

    /// Returns the W3C `traceparent` of the span in which the transaction was opened, when spans were recorded.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        self.extras.as_ref()?.trace.as_deref()
    }
}

impl fmt::Debug for OptionalTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OptionalTerms(redacted)")
    }
}

/// A transaction without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The id.
    pub id: TxnId,
    /// The client that paid for the transaction.
    pub client: ClientId,
    /// The app that opened the transaction. No other app may read it.
    pub app: AppId,
    /// The event whose guest is verified, if any.
    pub event: Option<EventId>,
    /// Time of opening.
    pub opened_at: Timestamp,
    /// Time of expiry.
    pub expires_at: Timestamp,
    /// The terms.
    pub terms: Terms,
}

/// Verified claims by their names in credentials. Personal data, which `Debug` hides.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VerifiedClaims(Map<String, Value>);

impl VerifiedClaims {
    /// Wraps claims that a verified credential disclosed.
    #[must_use]
    pub const fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    /// Returns the claims.
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

/// SHA-256 of the identity app's answer. It distinguishes a redelivery from a different answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnswerDigest(pub [u8; 32]);

impl fmt::Debug for AnswerDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnswerDigest({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// Identity of a credential. It does not depend on the presented disclosures and their order, the key
/// binding, or the encoding of the signature.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialIdentity(pub [u8; 32]);

impl fmt::Debug for CredentialIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CredentialIdentity(…{:02x}{:02x})", self.0[30], self.0[31])
    }
}

/// A final answer of the identity app, which passed all checks except that of the transaction's state.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A credential that passed every check of the authority's profile.
    Credential {
        /// The requested claims that the credential discloses.
        claims: Arc<VerifiedClaims>,
        /// The requested claims that the credential does not disclose.
        missing: ClaimSet,
        /// The requested claims whose values have an unknown form.
        malformed: ClaimSet,
        /// True if the holder bound the credential to this transaction.
        holder_bound: bool,
        /// Identity of the credential.
        identity: CredentialIdentity,
        /// Digest of this answer.
        digest: AnswerDigest,
    },
    /// The app reports that there will be no credential.
    Failure {
        /// The failure as reported to the client.
        failure: Failure,
        /// Digest of this answer.
        digest: AnswerDigest,
    },
}

impl Answer {
    /// Returns the digest of the answer.
    #[must_use]
    pub const fn digest(&self) -> AnswerDigest {
        match self {
            Self::Credential { digest, .. } | Self::Failure { digest, .. } => *digest,
        }
    }

    /// Returns the outcome of the transaction that the answer ends.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Credential { missing, .. } if !missing.is_empty() => {
                Outcome::NotVerified(Failure::of_claims(*missing, "were not shared", "claims_missing"))
            }
            Self::Credential { malformed, .. } if !malformed.is_empty() => {
                Outcome::NotVerified(Failure::of_claims(*malformed, "are not in a known form", "claims_malformed"))
            }
            Self::Credential { claims, .. } => Outcome::Verified(Arc::clone(claims)),
            Self::Failure { failure, .. } => Outcome::NotVerified(failure.clone()),
        }
    }
}

/// The reason why a verification did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The message, of at most 200 characters.
    pub message: String,
    /// The authority's code, or a code of this service such as `claims_missing`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
}

impl Failure {
    /// Creates a failure that the identity app reports. Drops invisible characters and cuts long texts.
    #[must_use]
    pub fn new(message: &str, code: Option<&str>) -> Self {
        let clean =
            |text: &str, chars_max: usize| text.chars().filter(|c| !is_unseen(*c)).take(chars_max).collect::<String>();
        let code = code.map(|code| clean(code.trim(), REASON_CODE_CHARS_MAX)).filter(|code| !code.is_empty());
        let message = Some(clean(message.trim(), REASON_CHARS_MAX)).filter(|message| !message.is_empty());
        Self { message: message.unwrap_or_else(|| "The identity app reported a failure".into()), code }
    }

    /// Creates the failure of a verified guest whom the event refuses.
    #[must_use]
    pub fn event_refused(refusal: EventRefusal) -> Self {
        Self { message: refusal.message().to_owned(), code: Some(refusal.code().to_owned()) }
    }

    /// Creates the failure of requested claims, which its message names.
    fn of_claims(claims: ClaimSet, problem: &str, code: &str) -> Self {
        let names: Vec<&str> = claims.iter().map(Claim::name).collect();
        Self { message: format!("Requested claims {problem}: {}", names.join(", ")), code: Some(code.into()) }
    }
}

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The person was verified and shared every requested claim.
    Verified(Arc<VerifiedClaims>),
    /// The person was not verified.
    NotVerified(Failure),
}

impl Outcome {
    /// Returns the code of a failure, if any.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Verified(_) => None,
            Self::NotVerified(failure) => failure.code.as_deref(),
        }
    }

    /// Returns `verification_passed` of result and webhook.
    #[must_use]
    pub const fn passed(&self) -> bool {
        matches!(self, Self::Verified(_))
    }
}

/// A transaction that an answer has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Completed {
    /// The transaction as it was opened.
    pub opened: Pending,
    /// Time at which the answer was accepted.
    pub verified_at: Timestamp,
    /// The outcome.
    pub outcome: Outcome,
    /// Digest of the answer that ended the transaction.
    pub answer: AnswerDigest,
}

impl Pending {
    /// Returns true if the transaction is expired at `now`.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
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
    fn a_transaction_expires_at_the_end_of_its_window() {
        let pending = pending();
        assert!(!pending.is_expired(Timestamp::from_millis(pending.expires_at.millis() - 1)));
        assert!(pending.is_expired(pending.expires_at));
        assert!(credential(ClaimSet::default()).outcome().passed());
    }

    #[test]
    fn a_missing_requested_claim_fails_the_verification() {
        let Outcome::NotVerified(failure) = credential([Claim::Dob].into_iter().collect()).outcome() else {
            panic!("verified without dob")
        };
        assert_eq!(failure.code.as_deref(), Some("claims_missing"));
        assert!(failure.message.ends_with(": dob"));
    }

    #[test]
    fn a_requested_claim_of_unknown_form_fails_the_verification() {
        let mut answer = credential(ClaimSet::default());
        if let Answer::Credential { malformed, .. } = &mut answer {
            *malformed = [Claim::Dob].into_iter().collect();
        }
        let Outcome::NotVerified(failure) = answer.outcome() else { panic!("verified without dob") };
        assert_eq!(failure.code.as_deref(), Some("claims_malformed"));
        assert!(failure.message.ends_with(": dob"));
    }

    #[test]
    fn reasons_from_the_identity_app_are_cleaned_and_cut() {
        let failure = Failure::new(&format!("a\u{7}b\n{}", "é".repeat(500)), Some(" 301\r\n"));
        assert!(failure.message.starts_with("ab"));
        assert_eq!(failure.message.chars().count(), REASON_CHARS_MAX);
        assert_eq!(failure.code.as_deref(), Some("301"));
        assert_eq!(Failure::new(" ", Some("")).code, None);
    }

    #[test]
    fn debug_output_hides_personal_data() {
        let mut map = Map::new();
        map.insert("residentName".into(), Value::from("Asha Rao"));
        let claims = VerifiedClaims::new(map);
        let terms = OptionalTerms { name_hint: Some("Asha".into()), ..OptionalTerms::default() };
        assert!(!format!("{claims:?} {terms:?}").contains("Asha"));
    }

    #[test]
    fn terms_have_the_span_in_which_the_transaction_was_opened() {
        let mut terms = pending().terms;
        assert_eq!(terms.trace(), None);
        terms.extras = Some(Box::new(OptionalTerms { trace: Some("00-1-2-01".into()), ..OptionalTerms::default() }));
        assert_eq!(terms.trace(), Some("00-1-2-01"));
    }
}
