//! `POST /api/v1/esign/request`: a document and who shall sign it.

use super::{bounded, checked, file, list, required};
use crate::flow::esign::{EsignFlow, EsignPending, EsignTerms};
use crate::flow::file::Base64File;
use crate::flow::header::FlowHeader;
use crate::flow::statuses::SigningStatus;
use crate::flow::text::{ForeignId, Text};
use crate::http_url::WebhookUrl;
use crate::invalid::Invalid;
use crate::limits::{CLIENT_REFERENCE_CHARS_MAX, INVITATION_DEFAULT, INVITATION_MAX, LABEL_CHARS_MAX, SIGNERS_MAX};
use crate::payload::esign::{EsignPayload, Signer};
use crate::time::Timestamp;

/// The request as it arrives.
#[derive(Default)]
pub struct EsignDraft {
    /// The document.
    pub document_info: Option<DocumentDraft>,
    /// Its signers, in the order of signing.
    pub signer_info: Option<Vec<SignerDraft>>,
    /// Where the webhook goes before the registered URL is asked.
    pub response_url: Option<String>,
    /// The client's reference.
    pub document_reference_id: Option<String>,
}

/// The document as it arrives.
#[derive(Default)]
pub struct DocumentDraft {
    /// What signers see it called.
    pub name: Option<String>,
    /// The PDF in Base64.
    pub content: Option<Box<str>>,
}

/// A signer as they arrive.
#[derive(Default)]
pub struct SignerDraft {
    /// Who signs.
    pub signer_name: Option<String>,
    /// The client's reference.
    pub signer_ref_id: Option<String>,
    /// The end of the invitation; a week from now if absent.
    pub invitation_expire_time_stamp: Option<String>,
}

/// A document to be signed.
#[derive(Debug, PartialEq)]
pub struct EsignRequest {
    /// The document.
    pub document: SourceDocument,
    /// Its signers, in the order of signing.
    pub signers: Vec<Invited>,
    /// The client's reference.
    pub reference: Option<Text>,
    /// Where the webhook goes before the registered URL is asked.
    pub response_url: Option<WebhookUrl>,
}

/// The document as it was before anybody signed.
#[derive(Debug, PartialEq)]
pub struct SourceDocument {
    /// What signers see it called.
    pub name: Text,
    /// The PDF.
    pub content: Base64File,
}

/// Somebody who shall sign.
#[derive(Clone, Debug, PartialEq)]
pub struct Invited {
    /// Who.
    pub name: Text,
    /// The client's reference.
    pub reference: Option<Text>,
    /// The end of the invitation.
    pub until: Timestamp,
}

/// An eSign flow at its beginning.
#[derive(Debug, PartialEq)]
pub struct OpenedEsign {
    /// The flow.
    pub flow: EsignFlow,
    /// Its first payload, which polls show until there is a report.
    pub latest: EsignPayload,
    /// The document for the upstream.
    pub document: SourceDocument,
}

impl EsignDraft {
    /// Checks the request; which URLs may receive webhooks, the deployment says.
    ///
    /// # Errors
    /// Every problem with its path.
    pub fn check(self, receiver: impl FnOnce(&str) -> Result<WebhookUrl, &'static str>, now: Timestamp) -> Result<EsignRequest, Invalid> {
        let mut invalid = Invalid::none();
        if self.document_info.is_none() {
            invalid.add("documentInfo", "is required");
        }
        let document = self.document_info.map(|document| {
            let name = required(&mut invalid, "documentInfo.name", document.name.as_deref(), LABEL_CHARS_MAX);
            let content = file(&mut invalid, "documentInfo.content", document.content);
            Some(SourceDocument { name: name?, content: content? })
        });
        let signers = list(&mut invalid, "signerInfo", self.signer_info, SIGNERS_MAX);
        let signers: Vec<Option<Invited>> =
            signers.into_iter().enumerate().map(|(index, signer)| signer.check(index, now, &mut invalid)).collect();
        let reference = self
            .document_reference_id
            .map(|reference| bounded(&mut invalid, "documentReferenceId", &reference, CLIENT_REFERENCE_CHARS_MAX));
        let response_url = self.response_url.map(|url| invalid.check("responseUrl", receiver(&url)));
        let request = || {
            Some(EsignRequest {
                document: document??,
                signers: signers.into_iter().collect::<Option<_>>()?,
                reference: reference.flatten(),
                response_url: response_url.flatten(),
            })
        };
        checked(invalid, request())
    }
}

impl SignerDraft {
    fn check(self, index: usize, now: Timestamp, invalid: &mut Invalid) -> Option<Invited> {
        let field = |name: &str| format!("signerInfo[{index}].{name}");
        let name = required(invalid, &field("signerName"), self.signer_name.as_deref(), LABEL_CHARS_MAX);
        let reference = self.signer_ref_id.map(|text| bounded(invalid, &field("signerRefId"), &text, CLIENT_REFERENCE_CHARS_MAX));
        let until = match self.invitation_expire_time_stamp {
            Some(text) => invalid.check(&field("invitationExpireTimeStamp"), check_invitation(&text, now)),
            None => Some(now + INVITATION_DEFAULT),
        };
        Some(Invited { name: name?, reference: reference.flatten(), until: until? })
    }
}

fn check_invitation(text: &str, now: Timestamp) -> Result<Timestamp, &'static str> {
    let until = Timestamp::parse_rfc3339(text).filter(|until| now < *until && *until <= now + INVITATION_MAX);
    until.ok_or("must be an ISO 8601 timestamp with an offset, in the future and at most 90 days from now")
}

impl EsignRequest {
    /// Opens the flow; every signer gets an id.
    #[must_use]
    pub fn open(self, opened: FlowHeader) -> OpenedEsign {
        let invite = |invited: Invited| Signer {
            signer_id: ForeignId::mint(),
            signer_ref_id: invited.reference,
            signer_status: SigningStatus::Pending,
            signer_name: invited.name,
            invitation_expire_time_stamp: invited.until,
            reject_reason: None,
            national_id_audit_info: None,
        };
        let latest = EsignPayload {
            document_id: opened.id,
            document_reference_id: self.reference.clone(),
            content: None,
            document_status: SigningStatus::Pending,
            signer_info: self.signers.into_iter().map(invite).collect(),
        };
        let opened = EsignTerms { header: opened, reference: self.reference, response_url: self.response_url };
        let flow = EsignFlow::Pending(EsignPending::new(opened, &latest.signer_info));
        OpenedEsign { flow, latest, document: self.document }
    }
}
