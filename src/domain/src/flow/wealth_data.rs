//! The data of one fetch under a wealth-data consent: raw and analysed, each once and in either order
//! (specification, "Wealth-data data webhook").
//!
//! The specification defines no order between changes of the consent and its data, so none is enforced.

use serde::{Deserialize, Serialize};

use super::dedup::DedupKey;
use super::report::Report;
use super::statuses::DataType;
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use super::wealth_consent::WealthConsent;
use crate::payload::wealth_data::WealthDataPayload;

/// What one fetch (one `txnId`) has delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataFetch {
    /// Nothing.
    #[default]
    Awaited,
    /// The raw data.
    Raw(ReportDigest),
    /// The analysed data.
    Analysed(ReportDigest),
    /// Both.
    Both {
        /// The raw data.
        raw: ReportDigest,
        /// The analysed data.
        analysed: ReportDigest,
    },
}

impl DataFetch {
    /// Checks a report against the consent that its data was fetched under.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`]; [`ReportRefusal::Contradicts`] for another handle or consent.
    pub fn admit(consent: &WealthConsent, report: Report<WealthDataPayload>) -> Result<Admitted<WealthDataPayload>, ReportRefusal> {
        let Report { app, payload } = report;
        consent.check_ids(&app, payload.unique_identifier, ("consentHandle", &payload.consent_handle), &payload.consent_id)?;
        Ok(Admitted::new(payload))
    }

    /// How an admitted report changes the fetch.
    ///
    /// # Errors
    /// [`ReportRefusal::ReportedDifferently`] when the same data was reported with other content.
    pub fn report(
        self,
        consent: &WealthConsent,
        report: &Admitted<WealthDataPayload>,
        digest: ReportDigest,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let payload = report.payload();
        let (raw, analysed) = self.parts();
        let next = match (payload.data_type, raw, analysed) {
            (DataType::Raw, Some(earlier), _) | (DataType::Analysed, _, Some(earlier)) => {
                return if earlier == digest { Ok(Transition::Repeated) } else { Err(ReportRefusal::ReportedDifferently) };
            }
            (DataType::Raw, None, None) => Self::Raw(digest),
            (DataType::Raw, None, Some(analysed)) => Self::Both { raw: digest, analysed },
            (DataType::Analysed, None, None) => Self::Analysed(digest),
            (DataType::Analysed, Some(raw), None) => Self::Both { raw, analysed: digest },
        };
        let webhook = DedupKey::wealth_data(&consent.terms().header.app, &payload.txn_id, payload.data_type);
        Ok(Transition::WebhookDue { next, webhook })
    }

    const fn parts(self) -> (Option<ReportDigest>, Option<ReportDigest>) {
        match self {
            Self::Awaited => (None, None),
            Self::Raw(raw) => (Some(raw), None),
            Self::Analysed(analysed) => (None, Some(analysed)),
            Self::Both { raw, analysed } => (Some(raw), Some(analysed)),
        }
    }
}
