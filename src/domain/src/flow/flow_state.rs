//! The stored state of a flow of any kind, and of each data fetch under it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dates::LocalTime;
use super::doclocker::DocLockerFlow;
use super::esign::EsignFlow;
use super::estamp::EStampFlow;
use super::header::FlowHeader;
use super::statuses::ConsentStatus;
use super::wealth_consent::WealthConsent;
use super::wealth_data::DataFetch;
use super::wealth_historical::HistoricalFetch;
use crate::limits::{CONSENT_KEPT_MAX, FLOW_END_GRACE};
use crate::time::Timestamp;

/// The state of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowState {
    /// Document signing.
    ESign(EsignFlow),
    /// Documents from a locker.
    DocLocker(DocLockerFlow),
    /// An e-stamp.
    EStamp(EStampFlow),
    /// The consent of a wealth-data flow.
    Wealth(WealthConsent),
}

/// The state of a fetch under a wealth-data consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchState {
    /// A fetch of data.
    Data(DataFetch),
    /// A fetch of historical data.
    Historical(HistoricalFetch),
}

/// The state that a report changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextState {
    /// The new state of the flow.
    Flow(FlowState),
    /// The new state of a fetch under the flow.
    Fetch(FetchState),
}

impl FlowState {
    /// Returns the flow's owner and origin.
    #[must_use]
    pub const fn header(&self) -> &FlowHeader {
        match self {
            Self::ESign(flow) => &flow.terms().header,
            Self::DocLocker(flow) => flow.header(),
            Self::EStamp(flow) => &flow.terms().header,
            Self::Wealth(consent) => &consent.terms().header,
        }
    }

    /// Returns the name of the upstream that carries out the flow.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ESign(_) => "esign",
            Self::DocLocker(_) => "doclocker",
            Self::EStamp(_) => "estamp",
            Self::Wealth(_) => "wealth",
        }
    }

    /// Returns true if no further report is expected.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match self {
            Self::ESign(flow) => matches!(flow, EsignFlow::Ended(_)),
            Self::DocLocker(flow) => matches!(flow, DocLockerFlow::Ended { .. }),
            Self::EStamp(flow) => matches!(flow, EStampFlow::Ended { .. }),
            Self::Wealth(WealthConsent::Requested(_)) => false,
            Self::Wealth(WealthConsent::Reported(consent)) => match consent.status() {
                ConsentStatus::Rejected | ConsentStatus::Revoked | ConsentStatus::Expired => true,
                ConsentStatus::Accepted | ConsentStatus::ExpiringSoon => false,
            },
        }
    }

    /// Returns the status in the specification's words; `Pending` before the first report.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Self::ESign(EsignFlow::Ended(ended)) => ended.end.outcome.as_str(),
            Self::DocLocker(DocLockerFlow::Ended { end, .. }) => end.outcome.as_str(),
            Self::EStamp(EStampFlow::Ended { end, .. }) => end.outcome.as_str(),
            Self::Wealth(WealthConsent::Reported(consent)) => consent.status().as_str(),
            Self::ESign(EsignFlow::Pending(_))
            | Self::DocLocker(DocLockerFlow::Pending { .. })
            | Self::EStamp(EStampFlow::Pending { .. })
            | Self::Wealth(WealthConsent::Requested(_)) => "Pending",
        }
    }

    /// Returns the time at which the flow lapses without a report. Only eSign flows lapse.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::ESign(EsignFlow::Pending(pending)) => Some(pending.deadline()),
            Self::ESign(EsignFlow::Ended(_)) | Self::DocLocker(_) | Self::EStamp(_) | Self::Wealth(_) => None,
        }
    }

    /// Returns the time until which to keep the flow after a report at `now`. An ended flow is kept for `result_ttl`. A
    /// pending one is kept at least until `previous_end`, and for [`FLOW_END_GRACE`] past its deadline: it can lapse
    /// only while it is kept.
    #[must_use]
    pub fn kept_until(&self, previous_end: Timestamp, now: Timestamp, result_ttl: Duration) -> Timestamp {
        if self.has_ended() {
            return now + result_ttl;
        }
        let kept = previous_end.max(now + result_ttl);
        let deadline = self.deadline().filter(|at| at.millis() < i64::MAX);
        deadline.map_or(kept, |deadline| kept.max(deadline + FLOW_END_GRACE))
    }

    /// Returns the time until which to keep a wealth-data consent after a report at `now`, on the consent or on data
    /// under it: for `pending_ttl`, and for [`FLOW_END_GRACE`] past the reported end of the consent, because further
    /// notices are due until then. Returns `kept` if that is later, and for a consent that has ended and other flows.
    #[must_use]
    pub fn kept_for_notices(
        &self,
        kept: Timestamp,
        now: Timestamp,
        pending_ttl: Duration,
        consent_end: Option<LocalTime>,
    ) -> Timestamp {
        if !matches!(self, Self::Wealth(_)) || self.has_ended() {
            return kept;
        }
        let kept = kept.max(now + pending_ttl);
        let end = consent_end.map(|end| end.latest().min(now + CONSENT_KEPT_MAX));
        end.map_or(kept, |end| kept.max(end + FLOW_END_GRACE))
    }
}
