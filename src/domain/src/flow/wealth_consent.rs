//! The consent of a wealth-data flow (specification, "Wealth-data consent webhook", which does not
//! show the transitions).
//!
//! A requested consent is accepted or rejected, or expires unanswered. An accepted consent may become
//! expiring soon, revoked or expired. A status never changes back, but may be skipped if its report is lost.
//! Each status is reported once.

use serde::{Deserialize, Serialize};

use super::dedup::DedupKey;
use super::flow_id::FlowId;
use super::header::FlowHeader;
use super::report::Report;
use super::statuses::ConsentStatus;
use super::text::ForeignId;
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use crate::time::Timestamp;

/// The opening terms of a wealth-data flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WealthTerms {
    /// The owner and origin of the flow.
    #[serde(rename = "opened")]
    pub header: FlowHeader,
    /// The handle under which the consent was requested.
    pub consent_handle: ForeignId,
}

/// The state of a consent. Its serialised names are those of stored records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WealthConsent {
    /// No status was reported yet.
    #[serde(rename = "asked")]
    Requested(WealthTerms),
    /// At least one status was reported.
    #[serde(rename = "moved")]
    Reported(ReportedConsent),
}

/// A consent with at least one reported status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedConsent {
    /// The opening terms.
    #[serde(rename = "opened")]
    pub terms: WealthTerms,
    /// The id of the consent, fixed by the first report.
    pub consent: ForeignId,
    /// The first status.
    pub first: StatusChange,
    /// The later statuses, each different from all earlier ones.
    pub later: Vec<StatusChange>,
}

/// A change of the status of a consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusChange {
    /// The new status.
    pub status: ConsentStatus,
    /// Time at which the report was accepted.
    pub at: Timestamp,
    /// The report of the change.
    pub report: ReportDigest,
}

impl ReportedConsent {
    /// Returns the current status.
    #[must_use]
    pub fn status(&self) -> ConsentStatus {
        self.later.last().unwrap_or(&self.first).status
    }

    /// Returns the earlier change to this status, if there was one.
    fn find_change(&self, status: ConsentStatus) -> Option<&StatusChange> {
        std::iter::once(&self.first).chain(&self.later).find(|earlier| earlier.status == status)
    }
}

/// Returns true if a consent may change from one status to another.
const fn may_change(from: ConsentStatus, to: ConsentStatus) -> bool {
    use ConsentStatus::{Accepted, Expired, ExpiringSoon, Rejected, Revoked};
    match (from, to) {
        (Accepted, ExpiringSoon | Revoked | Expired) | (ExpiringSoon, Revoked | Expired) => true,
        (Accepted | ExpiringSoon | Rejected | Revoked | Expired, _) => false,
    }
}

/// A report of one of the three wealth-data streams.
pub trait WealthReport {
    /// The name of the field with the handle of the consent.
    const HANDLE: &'static str;

    /// Returns the id of the reported flow.
    fn flow(&self) -> FlowId;

    /// Returns the handle under which the consent was requested.
    fn handle(&self) -> &ForeignId;

    /// Returns the id of the consent.
    fn consent(&self) -> &ForeignId;
}

/// A report on the flow's consent.
pub trait ConsentReport: WealthReport {
    /// Returns the new status.
    fn status(&self) -> ConsentStatus;
}

impl WealthConsent {
    /// Returns the opening terms.
    #[must_use]
    pub const fn terms(&self) -> &WealthTerms {
        match self {
            Self::Requested(terms) | Self::Reported(ReportedConsent { terms, .. }) => terms,
        }
    }

    /// Returns the id of the consent, once a report has named it.
    #[must_use]
    pub const fn consent_id(&self) -> Option<&ForeignId> {
        match self {
            Self::Requested(_) => None,
            Self::Reported(reported) => Some(&reported.consent),
        }
    }

    /// Checks a report against the flow: on its consent, its data or a historical fetch.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`] for another flow or app; [`ReportRefusal::Contradicts`] for another handle or
    /// consent.
    pub fn admit<P: WealthReport>(&self, report: Report<P>) -> Result<Admitted<P>, ReportRefusal> {
        let Report { app, payload } = report;
        self.terms().header.check_ids(&app, payload.flow())?;
        if self.terms().consent_handle != *payload.handle() {
            return Err(ReportRefusal::Contradicts(P::HANDLE));
        }
        if self.consent_id().is_some_and(|known| known != payload.consent()) {
            return Err(ReportRefusal::Contradicts("consentId"));
        }
        Ok(Admitted::new(payload))
    }

    /// Computes the transition for an admitted report. Every change is sent to the client.
    ///
    /// # Errors
    /// [`ReportRefusal::ReportedDifferently`] if the status was reported before with other content;
    /// [`ReportRefusal::StatusChangeNotAllowed`] if the status may not follow the current one.
    pub fn report(
        &self,
        report: &Admitted<impl ConsentReport>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let (payload, terms) = (report.payload(), self.terms());
        let status = payload.status();
        let change = StatusChange { status, at: now, report: digest };
        let next = match self {
            Self::Requested(terms) => ReportedConsent {
                terms: terms.clone(),
                consent: payload.consent().clone(),
                first: change,
                later: Vec::new(),
            },
            Self::Reported(reported) => match reported.find_change(status) {
                Some(earlier) if earlier.report == digest => return Ok(Transition::Repeated),
                Some(_) => return Err(ReportRefusal::ReportedDifferently),
                None if !may_change(reported.status(), status) => {
                    return Err(ReportRefusal::StatusChangeNotAllowed { from: reported.status(), to: status });
                }
                None => ReportedConsent {
                    later: reported.later.iter().copied().chain([change]).collect(),
                    ..reported.clone()
                },
            },
        };
        let webhook = DedupKey::wealth_consent(&terms.header.app, payload.consent(), status);
        Ok(Transition::WebhookDue { next: Self::Reported(next), webhook })
    }
}
