//! Documents that are signed upstream (specification, "eSign payload"): the request, its response, the
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
use crate::fields::FieldReader;
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
        /// Validated, but not stored.
        consent: OptionalConsent,
        /// The correlation id. It overrides the header `X-Request-ID`. Default: that header, or a new id.
        request_id: Option<RequestId>,
    }
}

body! { request
    /// The document to sign.
    #[derive(PartialEq)]
    pub struct SourceDocument {
        /// The name of the document, shown to signers.
        name: Bounded<LABEL_CHARS_MAX>,
        /// The PDF in standard Base64 with padding, at most 10 MiB.
        content: Base64File,
    }
}

body! { request
    /// A signer to invite.
    #[derive(Clone, PartialEq)]
    pub struct SignerToInvite {
        /// The name of the signer.
        signer_name as "signerName": Bounded<LABEL_CHARS_MAX>,
        /// Your own reference for the signer, returned in responses and the webhook.
        signer_ref_id as "signerRefId": Option<Bounded<CLIENT_REFERENCE_CHARS_MAX>>,
        /// The end of the invitation: in the future, at most 90 days from now. Default: in 7 days.
        invitation_expire_time_stamp as "invitationExpireTimeStamp": InvitationEnd,
    }
}

/// An eSign flow that was just opened.
#[derive(Debug, PartialEq)]
pub struct OpenedEsign {
    /// The flow.
    pub flow: EsignFlow,
    /// The state that polls show until the first report.
    pub latest: EsignOutcome,
    /// The document for the upstream.
    pub document: SourceDocument,
}

impl EsignRequest {
    /// Opens the flow. Every signer gets an id.
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
        let signer_references = latest.signer_info.iter().map(|signer| signer.signer_ref_id.0.clone()).collect();
        let terms = EsignTerms { header, reference, response_url: self.response_url, signer_references };
        let flow = EsignFlow::Pending(PendingFlow::new(terms, latest.signers()));
        OpenedEsign { flow, latest, document: self.document_info }
    }
}

/// The end of an invitation. Default: in a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct InvitationEnd(pub Timestamp);

impl Field for InvitationEnd {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let context = reader.context?;
        let is_allowed = |end: &Timestamp| context.now < *end && *end <= context.now + INVITATION_MAX;
        let end = Timestamp::read(value, reader)?;
        reader.accept(Some(end).filter(is_allowed).ok_or("must be in the future, at most 90 days from now")).map(Self)
    }

    fn absent(reader: &mut FieldReader<'_>) -> Option<Self> {
        let context = reader.context?;
        Some(Self(context.now + INVITATION_DEFAULT))
    }
}

impl Describe for InvitationEnd {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        json!({ "type": "string", "format": "date-time" })
    }
}

body! { response
    /// A document that was opened for signing.
    pub struct EsignResponse {
        /// Identifies the document in the webhook and in polls.
        document_id as "documentId": FlowId,
        /// Your own reference from the request, or `""`.
        document_reference_id as "documentReferenceId": Reference,
        /// The signers in the order of signing.
        signer_info as "signerInfo": Vec<InvitedSigner>,
    }
}

body! { response
    /// An invited signer.
    pub struct InvitedSigner {
        /// Identifies the signer in webhooks and polls.
        signer_id as "signerId": ForeignId,
        /// Your own reference for the signer from the request, or `""`.
        signer_ref_id as "signerRefId": Reference,
        /// The page where the signer signs. Anyone with this link can sign. Share it with the signer only.
        signing_url as "signingUrl": PageUrl,
    }
}

impl EsignResponse {
    /// Builds the response for an opened flow. `pages` are in the order of the signers.
    #[must_use]
    pub fn new(latest: &EsignOutcome, pages: Vec<PageUrl>) -> Self {
        let invitation = |(signer, signing_url): (&EsignSigner, PageUrl)| InvitedSigner {
            signer_id: signer.signer_id.clone(),
            signer_ref_id: signer.signer_ref_id.clone(),
            signing_url,
        };
        Self {
            document_id: latest.document_id,
            document_reference_id: latest.document_reference_id.clone(),
            signer_info: latest.signer_info.iter().zip(pages).map(invitation).collect(),
        }
    }
}

body! { report
    /// The outcome of a document: the body of the webhook and of a completed poll.
    #[derive(PartialEq)]
    pub struct EsignOutcome {
        /// The id of the document. Deduplicate webhooks by it.
        document_id as "documentId": FlowId,
        /// Your own reference from the request, or `""`.
        document_reference_id as "documentReferenceId": Reference,
        /// The signed PDF in standard Base64; null unless `documentStatus` is `Completed`.
        content: Option<Base64File>,
        /// The status of the document, which follows from that of its signers.
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
            let expected = derive_document_status(signers);
            if document_status.is_some_and(|status| status != expected) {
                fields.refuse("documentStatus", format!("must be {expected}, which follows from signerInfo"));
            }
            let ids: BTreeSet<&ForeignId> = signers.iter().map(|signer| &signer.signer_id).collect();
            if ids.len() != signers.len() {
                fields.refuse("signerInfo", "must not name a signerId twice");
            }
        }
    }
}

/// Derives the status of a document from its signers. A rejection outranks an expiry, and an expiry outranks a
/// pending signature.
fn derive_document_status(signers: &[EsignSigner]) -> SigningStatus {
    let has_any = |status: &SigningStatus| signers.iter().any(|signer| signer.signer_status == *status);
    let by_rank = [SigningStatus::Rejected, SigningStatus::Expired, SigningStatus::Pending];
    by_rank.into_iter().find(has_any).unwrap_or(SigningStatus::Completed)
}

body! { report
    /// A signer and the state of the signature.
    #[derive(Clone, PartialEq)]
    pub struct EsignSigner {
        /// The id of the signer.
        signer_id as "signerId": ForeignId,
        /// Your own reference for the signer from the request, or `""`.
        signer_ref_id as "signerRefId": Reference,
        /// The status of the signature.
        signer_status as "signerStatus": SigningStatus,
        /// The signer's name.
        signer_name as "signerName": Text,
        /// The end of the invitation.
        invitation_expire_time_stamp as "invitationExpireTimeStamp": Timestamp,
        /// The signer's reason for rejecting the document, or null.
        reject_reason as "rejectReason": Option<Text>,
        /// The national ID data of the signer; null before the signature.
        national_id_audit_info as "nationalIdAuditInfo": Option<NationalIdAuditInfo>,
    }
    check(fields) {
        let has_signed = signer_status == Some(SigningStatus::Completed);
        fields.require_if(has_signed, "nationalIdAuditInfo", national_id_audit_info.as_ref());
    }
}

body! { report
    /// The national ID data of a signer, from the signature.
    #[derive(Clone, PartialEq)]
    pub struct NationalIdAuditInfo {
        /// The signer's name.
        name: Text,
        /// The postal code of the signer's address.
        pincode: Text,
        /// The state of the signer's address.
        state: Text,
        /// The signer's year of birth, four digits.
        year_of_birth as "yearOfBirth": Text,
        /// The signer's gender.
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

    fn signer_references(&mut self) -> Vec<&mut Option<Text>> {
        self.signer_info.0.iter_mut().map(|signer| &mut signer.signer_ref_id.0).collect()
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
        let pending = self.signer_info.0.iter_mut().filter(|signer| signer.signer_status == SigningStatus::Pending);
        pending.for_each(|signer| signer.signer_status = SigningStatus::Expired);
        Self { content: None, document_status: SigningStatus::Expired, ..self }
    }
}

body! { request
    /// The document to poll.
    #[derive(Clone, PartialEq)]
    pub struct EsignStatusRequest {
        /// The `documentId` that `requestEsign` returned.
        document_id as "documentId": String,
        /// Validated, but not stored.
        consent: OptionalConsent,
    }
}

alternatives! {
    oneOf
    /// The outcome, or a pending response while signatures are awaited.
    pub enum EsignStatus {
        /// The document is completed, rejected or expired.
        Outcome(EsignOutcome),
        /// At least one signature is awaited.
        Pending(EsignPending),
    }
}

body! { response
    /// The response to a poll while signatures are awaited.
    pub struct EsignPending {
        /// Always true.
        success: Always<true>,
        /// Always true.
        pending: Always<true>,
        /// The state of the document.
        data: EsignPendingData,
    }
}

body! { response
    /// The state of a pending document.
    pub struct EsignPendingData {
        /// The id of the document.
        document_id as "documentId": FlowId,
        /// Always true.
        pending: Always<true>,
        /// Your own reference from the request, or `""`.
        document_reference_id as "documentReferenceId": Reference,
        /// The status of the document, which follows from that of its signers.
        document_status as "documentStatus": SigningStatus,
        /// The signers in the order of signing.
        signer_info as "signerInfo": Vec<EsignSigner>,
    }
}

impl From<EsignOutcome> for EsignStatus {
    /// Builds the response to a poll from the latest known state of the flow.
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
