//! The eSign flow: a document waits for its signers until all have signed, one refuses, or an
//! invitation ends (specification, "eSign payload"; its transitions are not shown).
//!
//! Signers sign in the order of `signerInfo`, but an upstream that lets them sign side by side is
//! believed. An invitation's end is a fact about time that nobody reports: [`EsignFlow::lapse`]
//! makes the report that is due then. Until that is stored, a signature reported late still counts.

use serde::{Deserialize, Serialize};

use super::dedup::DedupKey;
use super::ended::FlowEnd;
use super::header::FlowHeader;
use super::report::Report;
use super::statuses::SigningStatus;
use super::text::{ForeignId, Text};
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use crate::http_url::WebhookUrl;
use crate::payload::esign::{EsignPayload, Signer};
use crate::time::Timestamp;

/// What an eSign flow was opened with, as far as later decisions need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignTerms {
    /// Whose it is.
    #[serde(rename = "opened")]
    pub header: FlowHeader,
    /// The client's reference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reference: Option<Text>,
    /// Where the webhook goes before the registered URL is asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response_url: Option<WebhookUrl>,
}

/// One document on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EsignFlow {
    /// Signatures are awaited.
    Pending(EsignPending),
    /// It is over.
    Ended(EsignEnded),
}

/// A document that waits for signatures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignPending {
    /// What it was opened with.
    #[serde(rename = "opened")]
    pub terms: EsignTerms,
    /// How its signers stand, in the order of signing; never empty.
    pub signers: Vec<SignerState>,
    /// The latest report, if there was one.
    pub latest: Option<ReportDigest>,
}

/// A document that waits no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EsignEnded {
    /// What it was opened with.
    #[serde(rename = "opened")]
    pub terms: EsignTerms,
    /// How it ended; never pending.
    pub end: FlowEnd<SigningStatus>,
}

/// How one signer stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignerState {
    /// The signer.
    pub signer: ForeignId,
    /// Whether the signer has signed.
    pub status: SigningStatus,
    /// The end of the invitation.
    pub invited_until: Timestamp,
}

impl SignerState {
    fn of(signer: &Signer) -> Self {
        Self { signer: signer.signer_id.clone(), status: signer.signer_status, invited_until: signer.invitation_expire_time_stamp }
    }
}

impl EsignPending {
    /// A flow at its beginning.
    #[must_use]
    pub fn new(terms: EsignTerms, signers: &[Signer]) -> Self {
        Self { terms, signers: signers.iter().map(SignerState::of).collect(), latest: None }
    }

    /// Whose turn it is: the first who has not signed.
    #[must_use]
    pub fn next_signer(&self) -> Option<&SignerState> {
        self.signers.iter().find(|signer| signer.status == SigningStatus::Pending)
    }

    /// When the first open invitation ends; without that signature the document cannot be completed.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        let open = self.signers.iter().filter(|signer| signer.status == SigningStatus::Pending);
        open.map(|signer| signer.invited_until).min().unwrap_or(Timestamp::from_millis(i64::MAX))
    }

    /// The same signers, and none has taken a signature back.
    fn agrees(&self, signers: &[Signer]) -> bool {
        let same = |(stand, signer): (&SignerState, &Signer)| {
            stand.signer == signer.signer_id && (stand.status == SigningStatus::Pending || stand.status == signer.signer_status)
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

    /// Holds a report against the flow and fills in the client's reference.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`]; [`ReportRefusal::Contradicts`] for another reference, other signers, or
    /// a signature that is taken back.
    pub fn admit(&self, report: Report<EsignPayload>) -> Result<Admitted<EsignPayload>, ReportRefusal> {
        let Report { app, mut payload } = report;
        let EsignTerms { header, reference, .. } = self.terms();
        header.check_ids(&app, payload.document_id)?;
        if payload.document_reference_id.is_some() && payload.document_reference_id != *reference {
            return Err(ReportRefusal::Contradicts("documentReferenceId"));
        }
        payload.document_reference_id.clone_from(reference);
        match self {
            Self::Pending(pending) if !pending.agrees(&payload.signer_info) => Err(ReportRefusal::Contradicts("signerInfo")),
            Self::Pending(_) | Self::Ended(_) => Ok(Admitted::new(payload)),
        }
    }

    /// What an admitted report makes of the flow.
    ///
    /// # Errors
    /// [`ReportRefusal::AlreadyEnded`] after the end unless it is the report that ended it;
    /// [`ReportRefusal::InvitationExpired`] when it would leave the document pending past its deadline.
    pub fn report(&self, report: &Admitted<EsignPayload>, digest: ReportDigest, now: Timestamp) -> Result<Transition<Self>, ReportRefusal> {
        let pending = match self {
            Self::Ended(ended) => return ended.end.judge_repeat(digest, ended.end.how.as_str()),
            Self::Pending(pending) if pending.latest == Some(digest) => return Ok(Transition::Repeated),
            Self::Pending(pending) => pending,
        };
        let (payload, terms) = (report.payload(), pending.terms.clone());
        if payload.document_status == SigningStatus::Pending {
            let next = EsignPending { latest: Some(digest), ..EsignPending::new(terms, &payload.signer_info) };
            let lapsed = next.deadline() <= now;
            return if lapsed { Err(ReportRefusal::InvitationExpired) } else { Ok(Transition::Progressed { next: Self::Pending(next) }) };
        }
        let webhook = DedupKey::esign(&terms.header.app, terms.header.id);
        let end = FlowEnd { how: payload.document_status, at: now, report: digest };
        Ok(Transition::WebhookDue { next: Self::Ended(EsignEnded { terms, end }), webhook })
    }

    /// The report that is due once an invitation has ended, made from the flow's latest payload;
    /// `None` while nothing has lapsed.
    #[must_use]
    pub fn lapse(&self, latest: EsignPayload, now: Timestamp) -> Option<Admitted<EsignPayload>> {
        let Self::Pending(pending) = self else { return None };
        if now < pending.deadline() || latest.document_id != pending.terms.header.id {
            return None;
        }
        let mut payload = EsignPayload { content: None, document_status: SigningStatus::Expired, ..latest };
        let waiting = payload.signer_info.iter_mut().filter(|signer| signer.signer_status == SigningStatus::Pending);
        waiting.for_each(|signer| signer.signer_status = SigningStatus::Expired);
        Some(Admitted::new(payload))
    }
}
