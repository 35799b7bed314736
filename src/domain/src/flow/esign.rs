//! The eSign flow: a document waits for its signers until all have signed, one rejects it, or an
//! invitation expires (specification, "eSign payload", without the transitions).
//!
//! Signers sign in the order of `signerInfo`, but a report of another order is accepted. Connectors do not
//! report expired invitations, so [`EsignFlow::lapse`] builds such a report. A late signature counts until
//! that report is stored.

use serde::{Deserialize, Serialize};

use super::dedup::DedupKey;
use super::flow_id::FlowId;
use super::header::FlowHeader;
use super::report::Report;
use super::statuses::SigningStatus;
use super::text::{ForeignId, Text};
use super::transition::{Admitted, FlowEnd, ReportDigest, ReportRefusal, Transition};
use crate::http_url::WebhookUrl;
use crate::time::Timestamp;

/// The opening terms of an eSign flow, as far as transitions need them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignTerms {
    /// The owner and origin of the flow.
    #[serde(rename = "opened")]
    pub header: FlowHeader,
    /// `documentReferenceId`: the client's own reference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reference: Option<Text>,
    /// `responseUrl`: the webhook URL, which overrides the registered one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response_url: Option<WebhookUrl>,
    /// `signerRefId` of each signer, in the order of signing. Empty for flows of older releases.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub signer_references: Vec<Option<Text>>,
}

/// The state of an eSign flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EsignFlow {
    /// Signatures are pending.
    Pending(EsignPending),
    /// The document is completed, rejected or expired.
    Ended(EsignEnded),
}

/// A document with pending signatures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignPending {
    /// The opening terms.
    #[serde(rename = "opened")]
    pub terms: EsignTerms,
    /// The signers in the order of signing; never empty.
    pub signers: Vec<SignerState>,
    /// The latest report, if any.
    pub latest: Option<ReportDigest>,
}

/// A document whose flow has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignEnded {
    /// The opening terms.
    #[serde(rename = "opened")]
    pub terms: EsignTerms,
    /// The outcome, which is never pending, and its report.
    pub end: FlowEnd<SigningStatus>,
}

/// The state of a signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignerState {
    /// The id of the signer.
    pub signer: ForeignId,
    /// The signer's status.
    pub status: SigningStatus,
    /// Expiry of the invitation.
    pub invited_until: Timestamp,
}

/// A report on the flow.
pub trait EsignReport {
    /// Returns the id of the reported flow.
    fn document(&self) -> FlowId;

    /// Returns the client's reference.
    fn reference(&mut self) -> &mut Option<Text>;

    /// Returns the client's reference for each signer.
    fn signer_references(&mut self) -> Vec<&mut Option<Text>>;

    /// Returns the status of the document.
    fn status(&self) -> SigningStatus;

    /// Returns the signers of the document.
    fn signers(&self) -> Vec<SignerState>;

    /// Converts the payload to the report that the open invitations have expired.
    #[must_use]
    fn lapsed(self) -> Self;
}

impl EsignPending {
    /// Creates the state of a newly opened flow.
    #[must_use]
    pub const fn new(terms: EsignTerms, signers: Vec<SignerState>) -> Self {
        Self { terms, signers, latest: None }
    }

    /// Returns the expiry of the first open invitation; without that signature the document cannot be completed.
    /// Without an open invitation, returns the end of time.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        let open_invitations = self.signers.iter().filter(|signer| signer.status == SigningStatus::Pending);
        open_invitations.map(|signer| signer.invited_until).min().unwrap_or(Timestamp::from_millis(i64::MAX))
    }

    /// Returns true if a report names the same signers and withdraws no signature.
    fn agrees_with(&self, signers: &[SignerState]) -> bool {
        let agrees = |(known, signer): (&SignerState, &SignerState)| {
            known.signer == signer.signer && (known.status == SigningStatus::Pending || known.status == signer.status)
        };
        self.signers.len() == signers.len() && self.signers.iter().zip(signers).all(agrees)
    }

    /// Returns true if a signer has another status in the other state of this document.
    fn differs_from(&self, other: &Self) -> bool {
        self.signers.iter().zip(&other.signers).any(|(signer, other)| signer.status != other.status)
    }
}

impl EsignFlow {
    /// Returns the opening terms.
    #[must_use]
    pub const fn terms(&self) -> &EsignTerms {
        match self {
            Self::Pending(EsignPending { terms, .. }) | Self::Ended(EsignEnded { terms, .. }) => terms,
        }
    }

    /// Checks a report against the flow and fills in the client's references that it leaves out.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`] for another flow or app; [`ReportRefusal::Contradicts`] for another reference,
    /// other signers, or a withdrawn signature.
    pub fn admit<P: EsignReport>(&self, report: Report<P>) -> Result<Admitted<P>, ReportRefusal> {
        let Report { app, mut payload } = report;
        let EsignTerms { header, reference, signer_references, .. } = self.terms();
        header.check_ids(&app, payload.document())?;
        let reported_reference = payload.reference();
        if reported_reference.is_some() && reported_reference != reference {
            return Err(ReportRefusal::Contradicts("documentReferenceId"));
        }
        reported_reference.clone_from(reference);
        for (reported, known) in payload.signer_references().into_iter().zip(signer_references) {
            if reported.is_none() {
                reported.clone_from(known);
            }
        }
        match self {
            Self::Pending(pending) if !pending.agrees_with(&payload.signers()) => {
                Err(ReportRefusal::Contradicts("signerInfo"))
            }
            Self::Pending(_) | Self::Ended(_) => Ok(Admitted::new(payload)),
        }
    }

    /// Computes the transition for an admitted report.
    ///
    /// # Errors
    /// [`ReportRefusal::AlreadyEnded`] after the end, unless the report is a copy of the one that ended the flow;
    /// [`ReportRefusal::InvitationExpired`] for a pending status past the deadline without a new signature.
    pub fn report(
        &self,
        report: &Admitted<impl EsignReport>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let pending = match self {
            Self::Ended(ended) => return ended.end.check_repeat(digest, ended.end.outcome.as_str()),
            Self::Pending(pending) if pending.latest == Some(digest) => return Ok(Transition::Repeated),
            Self::Pending(pending) => pending,
        };
        let (payload, terms) = (report.payload(), pending.terms.clone());
        if payload.status() == SigningStatus::Pending {
            let next = EsignPending { latest: Some(digest), ..EsignPending::new(terms, payload.signers()) };
            let has_lapsed = next.deadline() <= now;
            // A new signature must be in the report of the lapse, which is built from this one.
            return if has_lapsed && !pending.differs_from(&next) {
                Err(ReportRefusal::InvitationExpired)
            } else {
                Ok(Transition::Progressed { next: Self::Pending(next) })
            };
        }
        let webhook = DedupKey::esign(&terms.header.app, terms.header.id);
        let end = FlowEnd { outcome: payload.status(), at: now, report: digest };
        Ok(Transition::WebhookDue { next: Self::Ended(EsignEnded { terms, end }), webhook })
    }

    /// Builds the report that an invitation has expired, from the flow's latest payload; `None` while no
    /// invitation has expired.
    #[must_use]
    pub fn lapse<P: EsignReport>(&self, latest: P, now: Timestamp) -> Option<Admitted<P>> {
        let Self::Pending(pending) = self else { return None };
        if now < pending.deadline() || latest.document() != pending.terms.header.id {
            return None;
        }
        Some(Admitted::new(latest.lapsed()))
    }
}
