//! The eSign webhook (specification, "eSign payload"): flat, with the signed PDF inside.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::flow::file::Base64File;
use crate::flow::flow_id::FlowId;
use crate::flow::reading::Fields;
use crate::flow::statuses::SigningStatus;
use crate::flow::text::{ForeignId, Text};
use crate::limits::SIGNERS_MAX;
use crate::time::Timestamp;

/// How a document stands.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EsignPayload {
    /// The flow's id.
    pub document_id: FlowId,
    /// The client's reference; null when it gave none.
    pub document_reference_id: Option<Text>,
    /// The signed PDF; null unless the document is completed.
    pub content: Option<Base64File>,
    /// How the document stands.
    pub document_status: SigningStatus,
    /// Its signers in the order of signing.
    pub signer_info: Vec<Signer>,
}

/// One signer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Signer {
    /// Identifies the signer within the flow.
    pub signer_id: ForeignId,
    /// The client's reference; null when it gave none.
    pub signer_ref_id: Option<Text>,
    /// How the signer stands.
    pub signer_status: SigningStatus,
    /// The signer's name.
    pub signer_name: Text,
    /// The end of the signer's invitation.
    pub invitation_expire_time_stamp: Timestamp,
    /// Why the signer refused.
    pub reject_reason: Option<Text>,
    /// What the national ID said of the signer; null until there is a signature.
    pub national_id_audit_info: Option<AuditInfo>,
}

/// What the national ID said of a signer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditInfo {
    /// The name.
    pub name: Text,
    /// The postal code.
    pub pincode: Text,
    /// The state.
    pub state: Text,
    /// The year of birth.
    pub year_of_birth: Text,
    /// The gender.
    pub gender: Text,
}

impl EsignPayload {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let document_id = fields.required("documentId");
        let document_reference_id = fields.optional("documentReferenceId", false);
        let document_status: Option<SigningStatus> = fields.required("documentStatus");
        let completed = document_status == Some(SigningStatus::Completed);
        let content = fields.optional("content", completed);
        if content.as_ref().is_some_and(Option::is_some) && document_status.is_some() && !completed {
            fields.problem("content", "must be absent or null unless documentStatus is Completed");
        }
        let signer_info: Option<Vec<Signer>> = fields.list("signerInfo", true, (1, SIGNERS_MAX), Signer::read);
        if let Some(signers) = &signer_info {
            let follows = status_of(signers);
            if document_status.is_some_and(|status| status != follows) {
                fields.problem("documentStatus", format!("must be {follows}, which follows from signerInfo"));
            }
            let ids: BTreeSet<&ForeignId> = signers.iter().map(|signer| &signer.signer_id).collect();
            if ids.len() != signers.len() {
                fields.problem("signerInfo", "must not name a signerId twice");
            }
        }
        Some(Self {
            document_id: document_id?,
            document_reference_id: document_reference_id?,
            content: content?,
            document_status: document_status?,
            signer_info: signer_info?,
        })
    }
}

/// How a document with these signers stands: a refusal decides over an expiry, either over a
/// missing signature.
fn status_of(signers: &[Signer]) -> SigningStatus {
    let any = |status: &SigningStatus| signers.iter().any(|signer| signer.signer_status == *status);
    let deciding = [SigningStatus::Rejected, SigningStatus::Expired, SigningStatus::Pending];
    deciding.into_iter().find(any).unwrap_or(SigningStatus::Completed)
}

impl Signer {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let signer_id = fields.required("signerId");
        let signer_ref_id = fields.optional("signerRefId", false);
        let signer_status: Option<SigningStatus> = fields.required("signerStatus");
        let signer_name = fields.required("signerName");
        let invitation_expire_time_stamp = fields.required("invitationExpireTimeStamp");
        let reject_reason = fields.optional("rejectReason", false);
        let signed = signer_status == Some(SigningStatus::Completed);
        let national_id_audit_info = fields.object("nationalIdAuditInfo", signed, AuditInfo::read);
        Some(Self {
            signer_id: signer_id?,
            signer_ref_id: signer_ref_id?,
            signer_status: signer_status?,
            signer_name: signer_name?,
            invitation_expire_time_stamp: invitation_expire_time_stamp?,
            reject_reason: reject_reason?,
            national_id_audit_info: national_id_audit_info?,
        })
    }
}

impl AuditInfo {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (name, pincode, state) = (fields.required("name"), fields.required("pincode"), fields.required("state"));
        let (year_of_birth, gender) = (fields.required("yearOfBirth"), fields.required("gender"));
        Some(Self { name: name?, pincode: pincode?, state: state?, year_of_birth: year_of_birth?, gender: gender? })
    }
}
