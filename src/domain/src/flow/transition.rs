//! The effect of a report on a flow: the state to store and the webhook to send, or the reason for refusal.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::dedup::DedupKey;
use super::report::Report;
use super::statuses::ConsentStatus;
use crate::ids::AppId;
use crate::time::Timestamp;

/// SHA-256 of an admitted payload as stored and sent. It distinguishes a repeated report from a different
/// report. The caller that serialises the payload computes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReportDigest(pub [u8; 32]);

impl fmt::Debug for ReportDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReportDigest({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

impl Serialize for ReportDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::Engine as _;
        serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for ReportDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use base64::Engine as _;
        let text = String::deserialize(deserializer)?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| serde::de::Error::custom("expected the Base64 of 32 bytes"))
    }
}

/// A payload that was checked against its flow and completed from it. Only a flow can create one.
#[derive(Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Admitted<P>(P);

impl<P> Admitted<P> {
    pub(super) const fn new(payload: P) -> Self {
        Self(payload)
    }

    /// Returns the payload as stored and sent.
    #[must_use]
    pub const fn payload(&self) -> &P {
        &self.0
    }

    /// Converts the payload back to an unchecked report of this app, for another check after the flow has
    /// changed. Fields that the flow filled in pass that check.
    #[must_use]
    pub fn into_report(self, app: AppId) -> Report<P> {
        Report { app, payload: self.0 }
    }
}

/// The effect of a report on a flow. Everything is stored in one atomic step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition<S> {
    /// A repeated report. Nothing is stored or sent.
    Repeated,
    /// The flow continues. The state and the payload are stored for polls; nothing is sent.
    Progressed {
        /// The new state.
        next: S,
    },
    /// A result for the client. The state and the payload are stored, and the webhook is queued if there is a URL.
    WebhookDue {
        /// The new state.
        next: S,
        /// The deduplication key, under which the payload is sent at most once.
        webhook: DedupKey,
    },
}

impl<S> Transition<S> {
    /// Maps the new state.
    pub fn map<T>(self, wrap: impl FnOnce(S) -> T) -> Transition<T> {
        match self {
            Self::Repeated => Transition::Repeated,
            Self::Progressed { next } => Transition::Progressed { next: wrap(next) },
            Self::WebhookDue { next, webhook } => Transition::WebhookDue { next: wrap(next), webhook },
        }
    }
}

/// The end of a flow: outcome, time and final report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnd<E> {
    /// The outcome.
    #[serde(rename = "how")]
    pub outcome: E,
    /// Time at which the final report was accepted.
    pub at: Timestamp,
    /// The final report.
    pub report: ReportDigest,
}

impl<E> FlowEnd<E> {
    /// Checks a report after the end of the flow. `status` is the final status, for the error.
    ///
    /// # Errors
    /// [`ReportRefusal::AlreadyEnded`], unless the report is a copy of the final report.
    pub(super) fn check_repeat<S>(
        &self,
        digest: ReportDigest,
        status: &'static str,
    ) -> Result<Transition<S>, ReportRefusal> {
        if self.report == digest { Ok(Transition::Repeated) } else { Err(ReportRefusal::AlreadyEnded(status)) }
    }
}

/// The reason why a report is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefusal {
    /// The id is of another flow, or the flow is of another app.
    #[error("there is no such flow of this app")]
    NotThisFlow,
    /// A field contradicts the opening of the flow or an earlier report.
    #[error("{0} contradicts what the flow was opened with or what was reported before")]
    Contradicts(&'static str),
    /// The flow has ended with another report.
    #[error("the flow has already ended as {0}, and this report is not the one that ended it")]
    AlreadyEnded(&'static str),
    /// A signer's invitation has expired, so the document can no longer be pending.
    #[error("an invitation to sign has expired")]
    InvitationExpired,
    /// An earlier report on the same subject had other content.
    #[error("this was reported before with other content")]
    ReportedDifferently,
    /// A consent cannot change from the current status to the reported one.
    #[error("a consent that is {from} cannot become {to}")]
    StatusChangeNotAllowed {
        /// The current status.
        from: ConsentStatus,
        /// The reported status.
        to: ConsentStatus,
    },
}
