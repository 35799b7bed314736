//! The consent of a wealth-data flow (specification, "Wealth-data consent webhook"; its
//! transitions are not shown).
//!
//! Asked, it is accepted, rejected, or expires unanswered; accepted, it is revoked, expires soon,
//! or expires. It never moves back, but an upstream may skip a move that was lost. Every status is
//! reported once.

use serde::{Deserialize, Serialize};

use super::dedup::DedupKey;
use super::flow_id::FlowId;
use super::header::FlowHeader;
use super::report::Report;
use super::statuses::ConsentStatus;
use super::text::ForeignId;
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use crate::ids::AppId;
use crate::payload::wealth_consent::WealthConsentPayload;
use crate::time::Timestamp;

/// What a wealth-data flow was opened with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WealthTerms {
    /// Whose it is.
    #[serde(rename = "opened")]
    pub header: FlowHeader,
    /// The handle that the consent was asked for under.
    pub consent_handle: ForeignId,
}

/// How a consent stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WealthConsent {
    /// The person has not decided.
    Asked(WealthTerms),
    /// It has moved at least once.
    Moved(MovedConsent),
}

/// A consent that has an id and a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedConsent {
    /// What the flow was opened with.
    #[serde(rename = "opened")]
    pub terms: WealthTerms,
    /// The consent's id, fixed by the first report.
    pub consent: ForeignId,
    /// The first move.
    pub first: ConsentMove,
    /// The moves after it, each to another status.
    pub later: Vec<ConsentMove>,
}

/// One move of a consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentMove {
    /// To which status.
    pub status: ConsentStatus,
    /// When it was accepted here.
    pub at: Timestamp,
    /// The report of it.
    pub report: ReportDigest,
}

impl MovedConsent {
    /// Its status.
    #[must_use]
    pub fn status(&self) -> ConsentStatus {
        self.later.last().unwrap_or(&self.first).status
    }

    fn to(&self, status: ConsentStatus) -> Option<&ConsentMove> {
        std::iter::once(&self.first).chain(&self.later).find(|earlier| earlier.status == status)
    }
}

/// Whether a consent that has been answered moves so.
const fn moves(from: ConsentStatus, to: ConsentStatus) -> bool {
    use ConsentStatus::{Accepted, Expired, ExpiringSoon, Rejected, Revoked};
    match (from, to) {
        (Accepted, ExpiringSoon | Revoked | Expired) | (ExpiringSoon, Revoked | Expired) => true,
        (Accepted | ExpiringSoon | Rejected | Revoked | Expired, _) => false,
    }
}

impl WealthConsent {
    /// What the flow was opened with.
    #[must_use]
    pub const fn terms(&self) -> &WealthTerms {
        match self {
            Self::Asked(terms) | Self::Moved(MovedConsent { terms, .. }) => terms,
        }
    }

    /// The consent's id, once it is known.
    #[must_use]
    pub const fn consent_id(&self) -> Option<&ForeignId> {
        match self {
            Self::Asked(_) => None,
            Self::Moved(moved) => Some(&moved.consent),
        }
    }

    /// Holds the ids that all three streams report against the flow's.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`]; [`ReportRefusal::Contradicts`] for another handle or consent.
    pub(super) fn check_ids(
        &self,
        app: &AppId,
        id: FlowId,
        (field, handle): (&'static str, &ForeignId),
        consent: &ForeignId,
    ) -> Result<(), ReportRefusal> {
        self.terms().header.check_ids(app, id)?;
        if self.terms().consent_handle != *handle {
            return Err(ReportRefusal::Contradicts(field));
        }
        if self.consent_id().is_some_and(|known| known != consent) {
            return Err(ReportRefusal::Contradicts("consentId"));
        }
        Ok(())
    }

    /// Holds a report against the flow.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`]; [`ReportRefusal::Contradicts`] for another handle or consent.
    pub fn admit(&self, report: Report<WealthConsentPayload>) -> Result<Admitted<WealthConsentPayload>, ReportRefusal> {
        let Report { app, payload } = report;
        self.check_ids(&app, payload.unique_identifier, ("consentHandle", &payload.consent_handle), &payload.consent_id)?;
        Ok(Admitted::new(payload))
    }

    /// What an admitted report makes of the consent; every move is reported to the client.
    ///
    /// # Errors
    /// [`ReportRefusal::ReportedDifferently`] for a status that was reported with other content;
    /// [`ReportRefusal::MoveNotAllowed`] for one that does not follow.
    pub fn report(
        &self,
        report: &Admitted<WealthConsentPayload>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let (payload, terms) = (report.payload(), self.terms());
        let status = payload.status;
        let new = ConsentMove { status, at: now, report: digest };
        let next = match self {
            Self::Asked(terms) => MovedConsent { terms: terms.clone(), consent: payload.consent_id.clone(), first: new, later: Vec::new() },
            Self::Moved(moved) => match moved.to(status) {
                Some(earlier) if earlier.report == digest => return Ok(Transition::Repeated),
                Some(_) => return Err(ReportRefusal::ReportedDifferently),
                None if !moves(moved.status(), status) => return Err(ReportRefusal::MoveNotAllowed { from: moved.status(), to: status }),
                None => MovedConsent { later: moved.later.iter().copied().chain([new]).collect(), ..moved.clone() },
            },
        };
        let webhook = DedupKey::wealth_consent(&terms.header.app, &payload.consent_id, status);
        Ok(Transition::WebhookDue { next: Self::Moved(next), webhook })
    }
}
