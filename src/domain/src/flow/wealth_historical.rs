//! A historical fetch of one account under a wealth-data consent. It completes once (specification,
//! "Wealth-data historical webhook").

use serde::{Deserialize, Serialize};

use super::dates::Day;
use super::dedup::DedupKey;
use super::text::ForeignId;
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use super::wealth_consent::{WealthConsent, WealthReport};

/// The state of a fetch for one consent, account and range of days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoricalFetch {
    /// The fetch has not completed.
    #[default]
    Awaited,
    /// This report has completed the fetch.
    Completed(ReportDigest),
}

/// A report on a historical fetch.
pub trait HistoricalReport: WealthReport {
    /// Returns the id of the account.
    fn account(&self) -> &ForeignId;

    /// Returns the first and the last day of the range.
    fn days(&self) -> (Day, Day);
}

impl HistoricalFetch {
    /// Computes the transition for an admitted report.
    ///
    /// # Errors
    /// [`ReportRefusal::ReportedDifferently`] if another report has completed the fetch.
    pub fn report(
        self,
        consent: &WealthConsent,
        report: &Admitted<impl HistoricalReport>,
        digest: ReportDigest,
    ) -> Result<Transition<Self>, ReportRefusal> {
        match self {
            Self::Completed(earlier) if earlier == digest => Ok(Transition::Repeated),
            Self::Completed(_) => Err(ReportRefusal::ReportedDifferently),
            Self::Awaited => {
                let (payload, app) = (report.payload(), &consent.terms().header.app);
                let (from, to) = payload.days();
                let webhook = DedupKey::wealth_historical(app, payload.consent(), payload.account(), from, to);
                Ok(Transition::WebhookDue { next: Self::Completed(digest), webhook })
            }
        }
    }
}
