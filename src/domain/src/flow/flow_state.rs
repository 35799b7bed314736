//! A flow of any kind as a store keeps it: its own state, and that of each fetch under it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::doclocker::DocLockerFlow;
use super::esign::EsignFlow;
use super::estamp::EStampFlow;
use super::header::FlowHeader;
use super::statuses::ConsentStatus;
use super::wealth_consent::WealthConsent;
use super::wealth_data::DataFetch;
use super::wealth_historical::HistoricalFetch;
use crate::time::Timestamp;

/// How a flow stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowState {
    /// Document signing.
    ESign(EsignFlow),
    /// Documents of the locker.
    DocLocker(DocLockerFlow),
    /// An e-stamp.
    EStamp(EStampFlow),
    /// The consent of a wealth-data flow.
    Wealth(WealthConsent),
}

/// How a fetch under a wealth-data consent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchState {
    /// Of data.
    Data(DataFetch),
    /// Of historical data.
    Historical(HistoricalFetch),
}

/// What a report changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextState {
    /// The flow itself.
    Flow(FlowState),
    /// A fetch under it.
    Fetch(FetchState),
}

impl FlowState {
    /// Whose flow it is.
    #[must_use]
    pub const fn header(&self) -> &FlowHeader {
        match self {
            Self::ESign(flow) => &flow.terms().header,
            Self::DocLocker(flow) => flow.header(),
            Self::EStamp(flow) => &flow.terms().header,
            Self::Wealth(consent) => &consent.terms().header,
        }
    }

    /// Which upstream it is with, in a word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ESign(_) => "esign",
            Self::DocLocker(_) => "doclocker",
            Self::EStamp(_) => "estamp",
            Self::Wealth(_) => "wealth",
        }
    }

    /// Whether nothing more will be reported of it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match self {
            Self::ESign(flow) => matches!(flow, EsignFlow::Ended(_)),
            Self::DocLocker(flow) => matches!(flow, DocLockerFlow::Ended { .. }),
            Self::EStamp(flow) => matches!(flow, EStampFlow::Ended { .. }),
            Self::Wealth(WealthConsent::Asked(_)) => false,
            Self::Wealth(WealthConsent::Moved(moved)) => match moved.status() {
                ConsentStatus::Rejected | ConsentStatus::Revoked | ConsentStatus::Expired => true,
                ConsentStatus::Accepted | ConsentStatus::ExpiringSoon => false,
            },
        }
    }

    /// How it stands, in a word of the specification's; `Pending` before the first.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self {
            Self::ESign(EsignFlow::Ended(ended)) => ended.end.how.as_str(),
            Self::DocLocker(DocLockerFlow::Ended { end, .. }) => end.how.as_str(),
            Self::EStamp(EStampFlow::Ended { end, .. }) => end.how.as_str(),
            Self::Wealth(WealthConsent::Moved(moved)) => moved.status().as_str(),
            Self::ESign(EsignFlow::Pending(_))
            | Self::DocLocker(DocLockerFlow::Pending { .. })
            | Self::EStamp(EStampFlow::Pending { .. })
            | Self::Wealth(WealthConsent::Asked(_)) => "Pending",
        }
    }

    /// When it lapses unless something is reported; only documents to be signed do.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::ESign(EsignFlow::Pending(pending)) => Some(pending.deadline()),
            Self::ESign(EsignFlow::Ended(_)) | Self::DocLocker(_) | Self::EStamp(_) | Self::Wealth(_) => None,
        }
    }

    /// Until when it is kept after a report at `now`, having been kept until `before`: one that has
    /// ended for the time of its result, one that goes on for no shorter than that.
    #[must_use]
    pub fn kept_until(&self, before: Timestamp, now: Timestamp, result_ttl: Duration) -> Timestamp {
        if self.has_ended() {
            return now + result_ttl;
        }
        let lapse = self.deadline().filter(|at| at.millis() < i64::MAX).unwrap_or(now);
        before.max(now.max(lapse) + result_ttl)
    }
}
