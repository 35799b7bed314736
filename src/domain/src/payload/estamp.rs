//! The e-stamp webhook (specification, "E-stamp payload"), of the registry and on paper alike.

use serde::Serialize;

use super::envelope::Envelope;
use crate::flow::file::Base64File;
use crate::flow::flow_id::FlowId;
use crate::flow::reading::Fields;
use crate::flow::statuses::WorkflowStatus;
use crate::flow::text::Text;
use crate::limits::{DOCUMENTS_MAX, SIGNERS_MAX};
use crate::time::Timestamp;

/// How an e-stamp stands.
#[derive(Debug, PartialEq, Serialize)]
pub struct EStampPayload {
    /// How it went; `success` exactly when it is completed or still may be.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The e-stamp.
    pub data: EStampData,
}

/// One e-stamp.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EStampData {
    /// The flow's id.
    pub e_stamp_id: FlowId,
    /// How it stands.
    pub workflow_status: WorkflowStatus,
    /// Who signs it.
    pub signatories_info: Vec<Signatory>,
    /// The stamped documents; at least one when it is completed.
    pub file_list: Vec<StampedFile>,
}

/// One signatory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Signatory {
    /// The e-mail address.
    #[serde(rename = "emailID")]
    pub email_id: Text,
    /// The name.
    pub name: Text,
    /// How the signatory stands.
    pub status: WorkflowStatus,
    /// What was remarked; null when nothing was.
    pub remarks: Option<Text>,
    /// How it is signed.
    pub sign_type: Text,
    /// When it was signed; null until then.
    pub signed_date: Option<Timestamp>,
}

/// One stamped document.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StampedFile {
    /// Its name.
    pub document_name: Text,
    /// Its content.
    #[serde(rename = "base64FileData")]
    pub file_data: Base64File,
}

impl EStampPayload {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let envelope = Envelope::read(fields);
        let data = fields.object("data", true, EStampData::read).flatten();
        let payload = Self { envelope: envelope?, data: data? };
        let hopeful = matches!(payload.data.workflow_status, WorkflowStatus::Completed | WorkflowStatus::Pending);
        if payload.envelope.success != hopeful {
            fields.problem("success", format!("must be {hopeful}, which follows from data.workflowStatus"));
        }
        Some(payload)
    }
}

impl EStampData {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let e_stamp_id = fields.required("eStampId");
        let workflow_status: Option<WorkflowStatus> = fields.required("workflowStatus");
        let signatories_info = fields.list("signatoriesInfo", true, (0, SIGNERS_MAX), Signatory::read);
        let stamped = workflow_status == Some(WorkflowStatus::Completed);
        let file_list = fields.list("fileList", stamped, (usize::from(stamped), DOCUMENTS_MAX), StampedFile::read);
        Some(Self {
            e_stamp_id: e_stamp_id?,
            workflow_status: workflow_status?,
            signatories_info: signatories_info?,
            file_list: file_list?,
        })
    }
}

impl Signatory {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (email_id, name) = (fields.required("emailID"), fields.required("name"));
        let status: Option<WorkflowStatus> = fields.required("status");
        let (remarks, sign_type) = (fields.optional("remarks", false), fields.required("signType"));
        let signed_date = fields.optional("signedDate", status == Some(WorkflowStatus::Completed));
        Some(Self {
            email_id: email_id?,
            name: name?,
            status: status?,
            remarks: remarks?,
            sign_type: sign_type?,
            signed_date: signed_date?,
        })
    }
}

impl StampedFile {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (document_name, file_data) = (fields.required("documentName"), fields.required("base64FileData"));
        Some(Self { document_name: document_name?, file_data: file_data? })
    }
}
