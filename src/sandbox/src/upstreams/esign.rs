//! The eSign upstream: signers sign in order until all have signed, a signer rejects, or an invitation expires.
//!
//! The signed document is the PDF with comments that name the signers, which is not a legal signature. A file that is
//! not a PDF is returned unchanged.

use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::SigningStatus;
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::SIGNERS_MAX;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::Summary;
use super::error::FlowError;
use super::order::{
    Order, check_list, parse_file, parse_foreign_id, parse_optional_text, parse_text, value_or_problems,
};
use super::reporter::PendingReport;
use super::{pdf, person};
use crate::residents::Resident;

/// Outcomes that a script can choose.
const OUTCOMES: [&str; 4] = ["completed", "rejected", "expired", "signed-once"];
/// Reason for a rejection by a script.
const SCRIPT_REASON: &str = "Rejected in the sandbox";

/// The members of an order for signatures, as received.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EsignDraft {
    document_reference_id: Option<String>,
    document: Option<DocumentDraft>,
    signer_info: Option<Vec<SignerDraft>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DocumentDraft {
    name: Option<String>,
    content: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SignerDraft {
    signer_id: Option<String>,
    signer_ref_id: Option<String>,
    signer_name: Option<String>,
    invitation_expire_time_stamp: Option<String>,
}

/// A document and its signers.
pub(super) struct Esign {
    pub(super) document_name: Text,
    reference: Option<Text>,
    /// `None` once nobody can sign.
    content: Option<Base64File>,
    pub(super) signers: Vec<Signer>,
}

/// A signer of a document.
pub(super) struct Signer {
    pub(super) id: ForeignId,
    reference: Option<Text>,
    pub(super) name: Text,
    pub(super) invited_until: Timestamp,
    pub(super) state: SignerState,
}

/// The state of a signer.
pub(super) enum SignerState {
    Waiting,
    Signed { resident: &'static Resident, at: Timestamp },
    Rejected { reason: Text },
    Expired,
}

impl SignerState {
    const fn status(&self) -> SigningStatus {
        match self {
            Self::Waiting => SigningStatus::Pending,
            Self::Signed { .. } => SigningStatus::Completed,
            Self::Rejected { .. } => SigningStatus::Rejected,
            Self::Expired => SigningStatus::Expired,
        }
    }
}

impl EsignDraft {
    /// Parses the members of the order, except its ids.
    pub(super) fn parse(self, mut invalid: Invalid) -> Result<Esign, Invalid> {
        let document = self.document.unwrap_or_default();
        let document_name = parse_text(&mut invalid, "document.name", document.name.as_deref());
        let content = parse_file(&mut invalid, "document.content", document.content);
        let reference = parse_optional_text(&mut invalid, "documentReferenceId", self.document_reference_id.as_deref());
        let drafts = check_list(&mut invalid, "signerInfo", self.signer_info, SIGNERS_MAX);
        let parse_signer = |(index, draft): (usize, SignerDraft)| draft.parse(index, &mut invalid);
        let signers: Option<Vec<Signer>> = drafts.into_iter().enumerate().map(parse_signer).collect();
        if let Some(signers) = &signers {
            for (index, signer) in signers.iter().enumerate() {
                if signers.iter().take(index).any(|earlier| earlier.id == signer.id) {
                    invalid.add(format!("signerInfo[{index}].signerId"), "is given twice");
                }
            }
        }
        let esign = || {
            Some(Esign {
                document_name: document_name?,
                reference: reference?,
                content: Some(content?),
                signers: signers?,
            })
        };
        value_or_problems(invalid, esign())
    }
}

impl SignerDraft {
    /// Parses the signer at this index of the list.
    fn parse(self, index: usize, invalid: &mut Invalid) -> Option<Signer> {
        let field = |name: &str| format!("signerInfo[{index}].{name}");
        let id = parse_foreign_id(invalid, &field("signerId"), self.signer_id.as_deref());
        let reference = parse_optional_text(invalid, &field("signerRefId"), self.signer_ref_id.as_deref());
        let name = parse_text(invalid, &field("signerName"), self.signer_name.as_deref());
        let invited_until = self.invitation_expire_time_stamp.as_deref().and_then(Timestamp::parse_iso8601);
        let invited_until = invalid.check(
            &field("invitationExpireTimeStamp"),
            invited_until.ok_or("must be an ISO 8601 timestamp with an offset"),
        );
        Some(Signer {
            id: id?,
            reference: reference?,
            name: name?,
            invited_until: invited_until?,
            state: SignerState::Waiting,
        })
    }
}

impl Esign {
    pub(super) fn bytes_in_memory(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.as_str().len())
    }

    /// Returns the document as ordered, as long as it can be signed.
    pub(super) const fn content(&self) -> Option<&Base64File> {
        self.content.as_ref()
    }

    /// Returns the status of the document. An expired invitation ends it.
    pub(super) fn status(&self, now: Timestamp) -> SigningStatus {
        let any_has = |status: SigningStatus| self.signers.iter().any(|signer| signer.state.status() == status);
        if any_has(SigningStatus::Rejected) {
            SigningStatus::Rejected
        } else if any_has(SigningStatus::Expired) || self.waiting_signers().any(|signer| signer.invited_until <= now) {
            SigningStatus::Expired
        } else if any_has(SigningStatus::Pending) {
            SigningStatus::Pending
        } else {
            SigningStatus::Completed
        }
    }

    fn waiting_signers(&self) -> impl Iterator<Item = &Signer> {
        self.signers.iter().filter(|signer| matches!(signer.state, SignerState::Waiting))
    }

    /// Returns the signer whose turn it is.
    pub(super) fn next_signer(&self) -> Option<&Signer> {
        self.waiting_signers().next()
    }

    pub(super) fn summary(&self, now: Timestamp) -> Summary {
        match self.status(now) {
            SigningStatus::Completed => Summary::ended("every signer has signed"),
            SigningStatus::Rejected => Summary::ended("a signer has rejected"),
            SigningStatus::Expired => Summary::ended("an invitation to sign has expired"),
            SigningStatus::Pending => Summary::open("waits for signatures"),
        }
    }

    /// Returns the signer with an id, if it is the signer's turn.
    fn signer_in_turn(&mut self, id: &str, now: Timestamp) -> Result<&mut Signer, FlowError> {
        let signer = self.signers.iter().find(|signer| signer.id.as_str() == id).ok_or(FlowError::NoSuchSigner)?;
        if matches!(signer.state, SignerState::Signed { .. }) {
            return Err(FlowError::Ended("this signer has signed"));
        }
        self.summary(now).require_open()?;
        match self.signers.iter_mut().find(|signer| matches!(signer.state, SignerState::Waiting)) {
            Some(next) if next.id.as_str() == id => Ok(next),
            Some(next) => Err(FlowError::NotYourTurn(next.name.as_str().to_owned())),
            None => Err(FlowError::Ended("nobody is asked to sign any more")),
        }
    }

    /// Signs the document as a signer, with the identity of a resident.
    pub(super) fn sign(
        &mut self,
        order: &Order,
        signer: &str,
        resident: &'static Resident,
        now: Timestamp,
    ) -> Result<PendingReport, FlowError> {
        let signer = self.signer_in_turn(signer, now)?;
        signer.state = SignerState::Signed { resident, at: now };
        let description = format!("{} signed", signer.name.as_str());
        Ok(self.build_report(order, description, now))
    }

    /// Rejects the document as a signer.
    pub(super) fn reject(
        &mut self,
        order: &Order,
        signer: &str,
        reason: Text,
        now: Timestamp,
    ) -> Result<PendingReport, FlowError> {
        let signer = self.signer_in_turn(signer, now)?;
        signer.state = SignerState::Rejected { reason };
        let description = format!("{} rejected", signer.name.as_str());
        Ok(self.build_report(order, description, now))
    }

    /// Expires all open invitations early.
    pub(super) fn expire(&mut self, order: &Order, now: Timestamp) -> Result<PendingReport, FlowError> {
        self.summary(now).require_open()?;
        let waiting = self.signers.iter_mut().filter(|signer| matches!(signer.state, SignerState::Waiting));
        waiting.for_each(|signer| signer.state = SignerState::Expired);
        Ok(self.build_report(order, "the invitations expired", now))
    }

    /// Carries out the outcome that a script names. The signers are the adult residents in turn.
    pub(super) fn play(
        &mut self,
        order: &Order,
        outcome: &str,
        now: Timestamp,
    ) -> Result<Vec<PendingReport>, FlowError> {
        if !OUTCOMES.contains(&outcome) {
            return Err(FlowError::UnknownOutcome(OUTCOMES.join(", ")));
        }
        self.summary(now).require_open()?;
        let waiting =
            self.signers.iter().enumerate().filter(|(_, signer)| matches!(signer.state, SignerState::Waiting));
        let waiting: Vec<(usize, ForeignId)> = waiting.map(|(index, signer)| (index, signer.id.clone())).collect();
        let mut sign =
            |(index, id): &(usize, ForeignId)| self.sign(order, id.as_str(), person::adult_at(*index, now)?, now);
        match outcome {
            "completed" => waiting.iter().map(sign).collect(),
            "signed-once" => waiting.first().map(&mut sign).into_iter().collect(),
            "rejected" => {
                let reason = Text::parse(SCRIPT_REASON).map_err(|_| FlowError::MalformedBody)?;
                let next = waiting.first().map(|(_, id)| self.reject(order, id.as_str(), reason, now));
                next.into_iter().collect()
            }
            _ => Ok(vec![self.expire(order, now)?]),
        }
    }

    /// Builds the report of the current status. A final status drops the document.
    fn build_report(&mut self, order: &Order, description: impl Into<String>, now: Timestamp) -> PendingReport {
        let status = self.status(now);
        let signers: Vec<Value> = self.signers.iter().map(|signer| signer.to_json(now)).collect();
        let mut payload = json!({
            "documentId": order.id,
            "documentReferenceId": self.reference,
            "content": null,
            "documentStatus": status,
            "signerInfo": signers,
        });
        let document = if status == SigningStatus::Pending { None } else { self.content.take() };
        if let Some(document) = document.filter(|_| status == SigningStatus::Completed) {
            let signed = pdf::annotate(document.as_str(), &self.signature_lines(order));
            payload["content"] = signed.unwrap_or_else(|| document.as_str().to_owned()).into();
        }
        PendingReport::new(order, ReportKind::ESign, description, payload)
    }

    /// Returns the lines of the comments in the signed document.
    fn signature_lines(&self, order: &Order) -> Vec<String> {
        let mut lines = vec![format!("Sandbox signatures of document {}; no legal signature.", order.id)];
        for signer in &self.signers {
            if let SignerState::Signed { resident, at } = &signer.state {
                lines.push(format!("{} signed at {at}, as resident {}.", signer.name.as_str(), resident.id));
            }
        }
        lines
    }
}

impl Signer {
    fn to_json(&self, now: Timestamp) -> Value {
        let reason = if let SignerState::Rejected { reason } = &self.state { Some(reason) } else { None };
        let audit = if let SignerState::Signed { resident, .. } = &self.state {
            Some(person::audit_info(resident, now))
        } else {
            None
        };
        json!({
            "signerId": self.id,
            "signerRefId": self.reference,
            "signerStatus": self.state.status(),
            "signerName": self.name,
            "invitationExpireTimeStamp": self.invited_until,
            "rejectReason": reason,
            "nationalIdAuditInfo": audit,
        })
    }
}
