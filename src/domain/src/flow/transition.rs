//! What follows from a report: what to store, what to send, or why neither.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::dedup::DedupKey;
use super::report::Report;
use super::statuses::ConsentStatus;
use crate::ids::AppId;

/// SHA-256 over an admitted payload as it will be stored and sent: tells a repetition from a
/// different report. It is computed by whoever serialises the payload.
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

/// A payload that was held against its flow and completed from it; only a flow makes one.
#[derive(Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Admitted<P>(P);

impl<P> Admitted<P> {
    pub(super) const fn new(payload: P) -> Self {
        Self(payload)
    }

    /// The payload as it is stored and sent.
    #[must_use]
    pub const fn payload(&self) -> &P {
        &self.0
    }

    /// The report of this app once more, to be held against the flow as it is by now. What the flow
    /// filled in does not contradict it.
    #[must_use]
    pub fn into_report(self, app: AppId) -> Report<P> {
        Report { app, payload: self.0 }
    }
}

/// What a report makes of a flow. All of it is stored in one atomic step, or none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition<S> {
    /// The same report came before: nothing to store, nothing to send.
    Repeated,
    /// The flow goes on: store the state and the payload, which polls show; send nothing.
    Progressed {
        /// The flow from now on.
        next: S,
    },
    /// What the client waits for has happened: store the state and the payload, and queue the
    /// webhook under its key if a URL resolves.
    WebhookDue {
        /// The flow from now on.
        next: S,
        /// The key under which the payload is sent once.
        webhook: DedupKey,
    },
}

impl<S> Transition<S> {
    /// The same of what contains the flow's state.
    pub fn map<T>(self, contain: impl FnOnce(S) -> T) -> Transition<T> {
        match self {
            Self::Repeated => Transition::Repeated,
            Self::Progressed { next } => Transition::Progressed { next: contain(next) },
            Self::WebhookDue { next, webhook } => Transition::WebhookDue { next: contain(next), webhook },
        }
    }
}

/// Why a report changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefusal {
    /// The id is another flow's, or the flow another app's.
    #[error("there is no such flow of this app")]
    NotThisFlow,
    /// A field says something else than the flow's opening or an earlier report.
    #[error("{0} contradicts what the flow was opened with or what was reported before")]
    Contradicts(&'static str),
    /// The flow has ended; its first terminal report stands.
    #[error("the flow has already ended as {0}, and this report is not the one that ended it")]
    AlreadyEnded(&'static str),
    /// A signer's invitation has ended, so the document cannot be pending any more.
    #[error("an invitation to sign has expired")]
    InvitationExpired,
    /// The same thing was reported before with other content; the first report stands.
    #[error("this was reported before with other content")]
    ReportedDifferently,
    /// A consent does not move so.
    #[error("a consent that is {from} cannot become {to}")]
    MoveNotAllowed {
        /// What it is.
        from: ConsentStatus,
        /// What was reported.
        to: ConsentStatus,
    },
}
