//! Documents that are signed upstream (specification, "eSign payload"): the request, its answer, the
//! webhook and the poll.

use std::collections::BTreeSet;

use sakshi_domain::flow::esign::{EsignFlow, EsignPending as PendingFlow, EsignReport, EsignTerms, SignerState};
use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::statuses::SigningStatus;
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::limits::{
    CLIENT_REFERENCE_CHARS_MAX, INVITATION_DEFAULT, INVITATION_MAX, LABEL_CHARS_MAX, SIGNERS_MAX,
};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::body::{Describe, Field, alternatives, body};
use crate::consent::OptionalConsent;
use crate::fields::Place;
use crate::json::Json;
use crate::page_url::PageUrl;
use crate::text::{Always, Bounded, List, Reference};

body! { request
    /// The document to sign, and its signers.
    #[derive(PartialEq)]
    pub struct EsignRequest {
        /// The document.
        document_info as "documentInfo": SourceDocument,
        /// The signers in the order of signing.
        signer_info as "signerInfo": List<SignerToInvite, 1, SIGNERS_MAX>,
        /// Your own reference, returned in responses and the webhook.
        document_reference_id as "documentReferenceId": Option<Bounded<CLIENT_REFERENCE_CHARS_MAX>>,
        /// Receives the webhook. Default: the URL registered for `ESign`.
        response_url as "responseUrl": Option<WebhookUrl>,
        /// Checked, and not kept.
        consent: OptionalConsent,
        /// The correlation id; it wins over the header `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}

body! { request
    /// The document to sign.
    #[derive(PartialEq)]
    pub struct SourceDocument {
        /// The name shown to signers.
        name: Bounded<LABEL_CHARS_MAX>,
        /// The PDF in standard Base64 with padding, at most 10 MiB.
        content: Base64File,
    }
}

body! { request
    /// A signer to invite.
    #[derive(Clone, PartialEq)]
    pub struct SignerToInvite {
        /// The name.
        signer_name as "signerName": Bounded<LABEL_CHARS_MAX>,
        /// Your own reference.
        signer_ref_id as "signerRefId": Option<Bounded<CLIENT_REFERENCE_CHARS_MAX>>,
        /// The end of the invitation, in the future, at most 90 days from now. Default: in a week.
        invitation_expire_time_stamp as "invitationExpireTimeStamp": InvitationEnd,
    }
}

/// A newly opened flow.
#[derive(Debug, PartialEq)]
pub struct OpenedEsign {
    /// The flow.
    pub flow: EsignFlow,
    /// State of the document, which polls show until the first report.
    pub latest: EsignOutcome,
    /// The document for the upstream.
    pub document: SourceDocument,
}

impl EsignRequest {
    /// Opens the flow; every signer gets an id.
    #[must_use]
    pub fn open(self, header: FlowHeader) -> OpenedEsign {
        let reference = self.document_reference_id.map(|reference| reference.0);
        let invite = |signer: SignerToInvite| EsignSigner {
            signer_id: ForeignId::mint(),
            signer_ref_id: Reference(signer.signer_ref_id.map(|reference| reference.0)),
            signer_status: SigningStatus::Pending,
            signer_name: signer.signer_name.0,
            invitation_expire_time_stamp: signer.invitation_expire_time_stamp.0,
            reject_reason: None,
            national_id_audit_info: None,
        };
        let latest = EsignOutcome {
            document_id: header.id,
            document_reference_id: Reference(reference.clone()),
            content: None,
            document_status: SigningStatus::Pending,
            signer_info: List(self.signer_info.0.into_iter().map(invite).collect()),
        };
        let terms = EsignTerms { header, reference, response_url: self.response_url };
        let flow = EsignFlow::Pending(PendingFlow::new(terms, latest.signers()));
        OpenedEsign { flow, latest, document: self.document_info }
    }
}

/// End of an invitation. Default: in a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct InvitationEnd(pub Timestamp);

impl Field for InvitationEnd {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let context = place.context?;
        let soon = |end: &Timestamp| context.now < *end && *end <= context.now + INVITATION_MAX;
        let end = Timestamp::read(value, place)?;
        place.accept(Some(end).filter(soon).ok_or("must be in the future, at most 90 days from now")).map(Self)
    }

    fn absent(place: &mut Place<'_>) -> Option<Self> {
        let context = place.context?;
        Some(Self(context.now + INVITATION_DEFAULT))
    }
}

impl Describe for InvitationEnd {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        json!({ "type": "string", "format": "date-time" })
    }
}

body! { answer
    /// The opened document.
    pub struct EsignResponse {
        /// Identifies the document.
        document_id as "documentId": FlowId,
        /// As given in the request, or `""`.
        document_reference_id as "documentReferenceId": Reference,
        /// The signers in the order of signing.
        signer_info as "signerInfo": Vec<InvitedSigner>,
    }
}

body! { answer
    /// An invited signer.
    pub struct InvitedSigner {
        /// Identifies the signer in webhooks and polls.
        signer_id as "signerId": ForeignId,
        /// As given in the request, or `""`.
        signer_ref_id as "signerRefId": Reference,
        /// The page where the signer signs. Anyone with this link can sign. Share it with the signer only.
        signing_url as "signingUrl": PageUrl,
    }
}

impl EsignResponse {
    /// Builds the answer for an opened flow, with its signers' pages in order.
    #[must_use]
    pub fn new(latest: &EsignOutcome, pages: Vec<PageUrl>) -> Self {
        let invited = |(signer, signing_url): (&EsignSigner, PageUrl)| InvitedSigner {
            signer_id: signer.signer_id.clone(),
            signer_ref_id: signer.signer_ref_id.clone(),
            signing_url,
        };
        Self {
            document_id: latest.document_id,
            document_reference_id: latest.document_reference_id.clone(),
            signer_info: latest.signer_info.iter().zip(pages).map(invited).collect(),
        }
    }
}

body! { report
    /// The outcome of a document: the body of the webhook and of a completed poll.
    #[derive(PartialEq)]
    pub struct EsignOutcome {
        /// The document. Deduplicate by it.
        document_id as "documentId": FlowId,
        /// As given in the request, or `""`.
        document_reference_id as "documentReferenceId": Reference,
        /// The signed PDF in Base64, or null unless the document is completed.
        content: Option<Base64File>,
        /// The status.
        document_status as "documentStatus": SigningStatus,
        /// The signers in the order of signing.
        signer_info as "signerInfo": List<EsignSigner, 1, SIGNERS_MAX>,
    }
    check(fields) {
        let is_completed = document_status == Some(SigningStatus::Completed);
        fields.require_if(is_completed, "content", content.as_ref());
        if document_status.is_some() && !is_completed && matches!(content, Some(Some(_))) {
            fields.refuse("content", "must be absent or null unless documentStatus is Completed");
        }
        if let Some(signers) = &signer_info {
            let follows = status_of(signers);
            if document_status.is_some_and(|status| status != follows) {
                fields.refuse("documentStatus", format!("must be {follows}, which follows from signerInfo"));
            }
            let ids: BTreeSet<&ForeignId> = signers.iter().map(|signer| &signer.signer_id).collect();
            if ids.len() != signers.len() {
                fields.refuse("signerInfo", "must not name a signerId twice");
            }
        }
    }
}

/// Returns the status of a document with these signers. A rejection outranks an expiry; either outranks a missing
/// signature.
fn status_of(signers: &[EsignSigner]) -> SigningStatus {
    let any = |status: &SigningStatus| signers.iter().any(|signer| signer.signer_status == *status);
    let deciding = [SigningStatus::Rejected, SigningStatus::Expired, SigningStatus::Pending];
    deciding.into_iter().find(any).unwrap_or(SigningStatus::Completed)
}

body! { report
    /// One signer.
    #[derive(Clone, PartialEq)]
    pub struct EsignSigner {
        /// The id of the signer.
        signer_id as "signerId": ForeignId,
        /// As given in the request, or `""`.
        signer_ref_id as "signerRefId": Reference,
        /// The status.
        signer_status as "signerStatus": SigningStatus,
        /// The signer's name.
        signer_name as "signerName": Text,
        /// The end of the invitation.
        invitation_expire_time_stamp as "invitationExpireTimeStamp": Timestamp,
        /// The reason for a rejection, or null.
        reject_reason as "rejectReason": Option<Text>,
        /// The national ID data of the signer, or null before the signature.
        national_id_audit_info as "nationalIdAuditInfo": Option<NationalIdAuditInfo>,
    }
    check(fields) {
        let has_signed = signer_status == Some(SigningStatus::Completed);
        fields.require_if(has_signed, "nationalIdAuditInfo", national_id_audit_info.as_ref());
    }
}

body! { report
    /// The national ID data of a signer.
    #[derive(Clone, PartialEq)]
    pub struct NationalIdAuditInfo {
        /// The name.
        name: Text,
        /// The postal code.
        pincode: Text,
        /// The state.
        state: Text,
        /// The year of birth.
        year_of_birth as "yearOfBirth": Text,
        /// The gender.
        gender: Text,
    }
}

impl EsignReport for EsignOutcome {
    fn document(&self) -> FlowId {
        self.document_id
    }

    fn reference(&mut self) -> &mut Option<Text> {
        &mut self.document_reference_id.0
    }

    fn status(&self) -> SigningStatus {
        self.document_status
    }

    fn signers(&self) -> Vec<SignerState> {
        let state = |signer: &EsignSigner| SignerState {
            signer: signer.signer_id.clone(),
            status: signer.signer_status,
            invited_until: signer.invitation_expire_time_stamp,
        };
        self.signer_info.iter().map(state).collect()
    }

    fn lapsed(mut self) -> Self {
        let waiting = self.signer_info.0.iter_mut().filter(|signer| signer.signer_status == SigningStatus::Pending);
        waiting.for_each(|signer| signer.signer_status = SigningStatus::Expired);
        Self { content: None, document_status: SigningStatus::Expired, ..self }
    }
}

body! { request
    /// The document.
    #[derive(Clone, PartialEq)]
    pub struct EsignStatusRequest {
        /// The `documentId` of `requestEsign`.
        document_id as "documentId": String,
        /// Checked, and not kept.
        consent: OptionalConsent,
    }
}

alternatives! {
    oneOf
    /// The outcome, or a stub while signatures are expected.
    pub enum EsignStatus {
        /// The document has ended.
        Outcome(EsignOutcome),
        /// Signatures are awaited.
        Pending(EsignPending),
    }
}

body! { answer
    /// The response to a poll while signatures are expected.
    pub struct EsignPending {
        /// Always true.
        success: Always<true>,
        /// Always true.
        pending: Always<true>,
        /// The state of the document.
        data: EsignPendingData,
    }
}

body! { answer
    /// The state of a document.
    pub struct EsignPendingData {
        /// The document.
        document_id as "documentId": FlowId,
        /// Always true.
        pending: Always<true>,
        /// As given in the request, or `""`.
        document_reference_id as "documentReferenceId": Reference,
        /// The status.
        document_status as "documentStatus": SigningStatus,
        /// The signers in the order of signing.
        signer_info as "signerInfo": Vec<EsignSigner>,
    }
}

impl From<EsignOutcome> for EsignStatus {
    /// Builds the answer from the latest known state of the flow.
    fn from(latest: EsignOutcome) -> Self {
        if latest.document_status != SigningStatus::Pending {
            return Self::Outcome(latest);
        }
        let data = EsignPendingData {
            document_id: latest.document_id,
            pending: Always,
            document_reference_id: latest.document_reference_id,
            document_status: latest.document_status,
            signer_info: latest.signer_info.0,
        };
        Self::Pending(EsignPending { success: Always, pending: Always, data })
    }
}
