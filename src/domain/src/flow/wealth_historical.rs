//! A historical fetch of one account under a wealth-data consent, which completes once (specification,
//! "Wealth-data historical webhook").

use serde::{Deserialize, Serialize};

use super::dedup::DedupKey;
use super::report::Report;
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use super::wealth_consent::WealthConsent;
use crate::payload::wealth_historical::WealthHistoricalPayload;

/// The state of one fetch: one consent, account and range of days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoricalFetch {
    /// Not completed.
    #[default]
    Awaited,
    /// Completed by this report.
    Completed(ReportDigest),
}

impl HistoricalFetch {
    /// Checks a report against the consent that the data was fetched under.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`]; [`ReportRefusal::Contradicts`] for another handle or consent.
    pub fn admit(
        consent: &WealthConsent,
        report: Report<WealthHistoricalPayload>,
    ) -> Result<Admitted<WealthHistoricalPayload>, ReportRefusal> {
        let Report { app, payload } = report;
        consent.check_ids(&app, payload.unique_identifier, ("consentHandleId", &payload.consent_handle_id), &payload.consent_id)?;
        Ok(Admitted::new(payload))
    }

    /// How an admitted report changes the fetch.
    ///
    /// # Errors
    /// [`ReportRefusal::ReportedDifferently`] when it has completed with other content.
    pub fn report(
        self,
        consent: &WealthConsent,
        report: &Admitted<WealthHistoricalPayload>,
        digest: ReportDigest,
    ) -> Result<Transition<Self>, ReportRefusal> {
        match self {
            Self::Completed(earlier) if earlier == digest => Ok(Transition::Repeated),
            Self::Completed(_) => Err(ReportRefusal::ReportedDifferently),
            Self::Awaited => {
                let payload = report.payload();
                let app = &consent.terms().header.app;
                let webhook =
                    DedupKey::wealth_historical(app, &payload.consent_id, &payload.account_id, payload.from_date, payload.to_date);
                Ok(Transition::WebhookDue { next: Self::Completed(digest), webhook })
            }
        }
    }
}
