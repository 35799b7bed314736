//! A fetch of data under a wealth-data consent: raw and analysed data, each reported once, in either order
//! (specification, "Wealth-data data webhook").
//!
//! The specification defines no order between reports of the consent and of its data, so none is enforced.

use serde::{Deserialize, Serialize};

use super::dedup::DedupKey;
use super::statuses::DataType;
use super::text::ForeignId;
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use super::wealth_consent::{WealthConsent, WealthReport};

/// The reports of one fetch (one `txnId`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataFetch {
    /// No report.
    #[default]
    Awaited,
    /// A report of raw data.
    Raw(ReportDigest),
    /// A report of analysed data.
    Analysed(ReportDigest),
    /// Reports of both.
    Both {
        /// The report of raw data.
        raw: ReportDigest,
        /// The report of analysed data.
        analysed: ReportDigest,
    },
}

/// A report on a fetch of data.
pub trait DataReport: WealthReport {
    /// Returns the upstream's id of the fetch, and the reported form of data.
    fn fetch(&self) -> (&ForeignId, DataType);
}

impl DataFetch {
    /// Computes the transition for an admitted report.
    ///
    /// # Errors
    /// [`ReportRefusal::ReportedDifferently`] if the same form of data was reported before with other content.
    pub fn report(
        self,
        consent: &WealthConsent,
        report: &Admitted<impl DataReport>,
        digest: ReportDigest,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let (fetch, data_type) = report.payload().fetch();
        let (raw, analysed) = self.reports();
        let next = match (data_type, raw, analysed) {
            (DataType::Raw, Some(earlier), _) | (DataType::Analysed, _, Some(earlier)) => {
                return if earlier == digest {
                    Ok(Transition::Repeated)
                } else {
                    Err(ReportRefusal::ReportedDifferently)
                };
            }
            (DataType::Raw, None, None) => Self::Raw(digest),
            (DataType::Raw, None, Some(analysed)) => Self::Both { raw: digest, analysed },
            (DataType::Analysed, None, None) => Self::Analysed(digest),
            (DataType::Analysed, Some(raw), None) => Self::Both { raw, analysed: digest },
        };
        let webhook = DedupKey::wealth_data(&consent.terms().header.app, fetch, data_type);
        Ok(Transition::WebhookDue { next, webhook })
    }

    /// Returns the reports of raw and analysed data.
    const fn reports(self) -> (Option<ReportDigest>, Option<ReportDigest>) {
        match self {
            Self::Awaited => (None, None),
            Self::Raw(raw) => (Some(raw), None),
            Self::Analysed(analysed) => (None, Some(analysed)),
            Self::Both { raw, analysed } => (Some(raw), Some(analysed)),
        }
    }
}
