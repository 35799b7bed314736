//! The eSign flow: a document waits for its signers until all have signed, one rejects it, or an
//! invitation expires (specification, "eSign payload", which does not show the transitions).
//!
//! Signers sign in the order of `signerInfo`, but a report that they signed in another order is
//! accepted. Nobody reports that an invitation has expired, so [`EsignFlow::lapse`] makes that report.
//! Until it is stored, a signature that is reported late still counts.

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

/// What an eSign flow was opened with, as far as its transitions need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignTerms {
    /// Who owns it.
    #[serde(rename = "opened")]
    pub header: FlowHeader,
    /// `documentReferenceId`: the client's own reference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reference: Option<Text>,
    /// `responseUrl`: receives the webhook instead of the registered URL.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response_url: Option<WebhookUrl>,
}

/// The state of an eSign flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EsignFlow {
    /// Waits for signatures.
    Pending(EsignPending),
    /// Completed, rejected or expired.
    Ended(EsignEnded),
}

/// A document that waits for signatures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignPending {
    /// What it was opened with.
    #[serde(rename = "opened")]
    pub terms: EsignTerms,
    /// Its signers in the order of signing; never empty.
    pub signers: Vec<SignerState>,
    /// The latest report, if any.
    pub latest: Option<ReportDigest>,
}

/// A document whose flow has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignEnded {
    /// What it was opened with.
    #[serde(rename = "opened")]
    pub terms: EsignTerms,
    /// How it ended; never pending.
    pub end: FlowEnd<SigningStatus>,
}

/// The state of one signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignerState {
    /// The signer.
    pub signer: ForeignId,
    /// Whether the signer has signed.
    pub status: SigningStatus,
    /// When the invitation expires.
    pub invited_until: Timestamp,
}

/// What the flow asks of a report on it.
pub trait EsignReport {
    /// The flow that it names.
    fn document(&self) -> FlowId;

    /// The client's reference.
    fn reference(&mut self) -> &mut Option<Text>;

    /// The status of the document.
    fn status(&self) -> SigningStatus;

    /// Its signers.
    fn signers(&self) -> Vec<SignerState>;

    /// The report of a document whose open invitations have expired.
    #[must_use]
    fn lapsed(self) -> Self;
}

impl EsignPending {
    /// The state of a newly opened flow.
    #[must_use]
    pub const fn new(terms: EsignTerms, signers: Vec<SignerState>) -> Self {
        Self { terms, signers, latest: None }
    }

    /// When the first open invitation expires; without that signature the document cannot be completed.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        let open = self.signers.iter().filter(|signer| signer.status == SigningStatus::Pending);
        open.map(|signer| signer.invited_until).min().unwrap_or(Timestamp::from_millis(i64::MAX))
    }

    /// Whether a report names the same signers and takes no signature back.
    fn agrees(&self, signers: &[SignerState]) -> bool {
        let same = |(known, signer): (&SignerState, &SignerState)| {
            known.signer == signer.signer && (known.status == SigningStatus::Pending || known.status == signer.status)
        };
        self.signers.len() == signers.len() && self.signers.iter().zip(signers).all(same)
    }
}

impl EsignFlow {
    /// What it was opened with.
    #[must_use]
    pub const fn terms(&self) -> &EsignTerms {
        match self {
            Self::Pending(EsignPending { terms, .. }) | Self::Ended(EsignEnded { terms, .. }) => terms,
        }
    }

    /// Checks a report against the flow and fills in the client's reference.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`]; [`ReportRefusal::Contradicts`] for another reference, other signers, or
    /// a signature that was taken back.
    pub fn admit<P: EsignReport>(&self, report: Report<P>) -> Result<Admitted<P>, ReportRefusal> {
        let Report { app, mut payload } = report;
        let EsignTerms { header, reference, .. } = self.terms();
        header.check_ids(&app, payload.document())?;
        let reported = payload.reference();
        if reported.is_some() && reported != reference {
            return Err(ReportRefusal::Contradicts("documentReferenceId"));
        }
        reported.clone_from(reference);
        match self {
            Self::Pending(pending) if !pending.agrees(&payload.signers()) => Err(ReportRefusal::Contradicts("signerInfo")),
            Self::Pending(_) | Self::Ended(_) => Ok(Admitted::new(payload)),
        }
    }

    /// How an admitted report changes the flow.
    ///
    /// # Errors
    /// [`ReportRefusal::AlreadyEnded`] after the end unless it is the report that ended it;
    /// [`ReportRefusal::InvitationExpired`] when it would leave the document pending past its deadline.
    pub fn report(
        &self,
        report: &Admitted<impl EsignReport>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let pending = match self {
            Self::Ended(ended) => return ended.end.judge_repeat(digest, ended.end.how.as_str()),
            Self::Pending(pending) if pending.latest == Some(digest) => return Ok(Transition::Repeated),
            Self::Pending(pending) => pending,
        };
        let (payload, terms) = (report.payload(), pending.terms.clone());
        if payload.status() == SigningStatus::Pending {
            let next = EsignPending { latest: Some(digest), ..EsignPending::new(terms, payload.signers()) };
            let lapsed = next.deadline() <= now;
            return if lapsed { Err(ReportRefusal::InvitationExpired) } else { Ok(Transition::Progressed { next: Self::Pending(next) }) };
        }
        let webhook = DedupKey::esign(&terms.header.app, terms.header.id);
        let end = FlowEnd { how: payload.status(), at: now, report: digest };
        Ok(Transition::WebhookDue { next: Self::Ended(EsignEnded { terms, end }), webhook })
    }

    /// Makes the report that is due once an invitation has expired, from the flow's latest payload;
    /// `None` while no invitation has expired.
    #[must_use]
    pub fn lapse<P: EsignReport>(&self, latest: P, now: Timestamp) -> Option<Admitted<P>> {
        let Self::Pending(pending) = self else { return None };
        if now < pending.deadline() || latest.document() != pending.terms.header.id {
            return None;
        }
        Some(Admitted::new(latest.lapsed()))
    }
}
