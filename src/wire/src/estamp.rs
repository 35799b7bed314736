//! E-stamps of the registry and on paper (specification, "E-stamp payload"): the request, its response
//! and the webhook.

use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::estamp::{EStampKind, EStampReport};
use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::statuses::WorkflowStatus;
use sakshi_domain::flow::text::Text;
use sakshi_domain::limits::{DOCUMENTS_MAX, LABEL_CHARS_MAX, SIGNERS_MAX, TEXT_CHARS_MAX};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use serde::Serialize;

use crate::body::{Field, body, described};
use crate::consent::OptionalConsent;
use crate::fields::FieldReader;
use crate::json::Json;
use crate::text::{Bounded, List, OptionalList, Whole};
use crate::values::CONTROLS_BUT_LINES;

body! { request
    /// The document to stamp, and its signatories.
    #[derive(PartialEq)]
    pub struct EStampInitRequest {
        /// The kind of e-stamp. Its webhook is sent to the URL registered for the same `apiType`.
        api_type as "apiType": EStampKind,
        /// The document.
        document: DocumentToStamp,
        /// The signatories.
        signatories_info as "signatoriesInfo": List<NamedSignatory, 1, SIGNERS_MAX>,
        /// Validated, but not stored.
        consent: OptionalConsent,
        /// The correlation id. It overrides the header `X-Request-ID`. Default: that header, or a new id.
        request_id: Option<RequestId>,
    }
}

body! { request
    /// The document to stamp.
    #[derive(PartialEq)]
    pub struct DocumentToStamp {
        /// The name of the document, such as `lease.pdf`.
        document_name as "documentName": Bounded<LABEL_CHARS_MAX>,
        /// The PDF in standard Base64 with padding, at most 10 MiB.
        file_data as "base64FileData": Base64File,
    }
}

body! { request
    /// A signatory.
    #[derive(Clone, PartialEq)]
    pub struct NamedSignatory {
        /// The name of the signatory.
        name: Bounded<LABEL_CHARS_MAX>,
        /// The e-mail address of the signatory.
        email_id as "emailID": EmailAddress,
        /// The kind of signature in the words of the upstream, such as `electronic`.
        sign_type as "signType": Bounded<LABEL_CHARS_MAX>,
    }
}

impl Field for EStampKind {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.parsed(value, |text| {
            let api_type: Option<ApiType> = text.parse().ok();
            api_type.ok_or("must be RegistryEStamp or PhysicalEStamp").and_then(Self::from_api_type)
        })
    }
}

described! { EStampKind: { "type": "string", "enum": [ApiType::RegistryEStamp.as_str(),
ApiType::PhysicalEStamp.as_str()] } }

/// Text in the form of an e-mail address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct EmailAddress(pub Bounded<TEXT_CHARS_MAX>);

impl Field for EmailAddress {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let text = reader.text(value)?;
        if !text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()) {
            return Self::absent(reader);
        }
        reader.accept(Bounded::new(&text)).map(Self)
    }

    fn absent(reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.refuse("must be an e-mail address")
    }
}

described! {
   EmailAddress: {
       "type": "string", "minLength": 3, "maxLength": TEXT_CHARS_MAX,
       "pattern": format!("^[^@{CONTROLS_BUT_LINES}]+@[^{CONTROLS_BUT_LINES}]+$"),
   }
}

body! { response
    /// An e-stamp that was ordered.
    pub struct EStampResponse {
        /// Identifies the e-stamp in the webhook.
        e_stamp_id as "eStampId": FlowId,
    }
}

body! { report
    /// The outcome of an e-stamp: reported by a connector, and passed on as the body of the webhook.
    #[derive(PartialEq)]
    pub struct EStampOutcome {
        /// True if the e-stamp is completed or still pending.
        success: bool,
        /// The outcome in the form of an HTTP status, 100 to 599.
        status_code as "statusCode": Whole<100, 599>,
        /// The outcome in words.
        message: Text,
        /// The e-stamp.
        data: EStampData,
    }
    check(fields) {
        if let (Some(success), Some(data)) = (success, &data) {
            let expected = matches!(data.workflow_status, WorkflowStatus::Completed | WorkflowStatus::Pending);
            if success != expected {
                fields.refuse("success", format!("must be {expected}, which follows from data.workflowStatus"));
            }
        }
    }
}

body! { report
    /// The state of an e-stamp.
    #[derive(PartialEq)]
    pub struct EStampData {
        /// The id of the e-stamp. Deduplicate webhooks by it.
        e_stamp_id as "eStampId": FlowId,
        /// The status of the e-stamp.
        workflow_status as "workflowStatus": WorkflowStatus,
        /// The signatories.
        signatories_info as "signatoriesInfo": List<EStampSignatory, 0, SIGNERS_MAX>,
        /// The stamped documents; at least one if the status is `Completed`.
        file_list as "fileList": OptionalList<StampedFile, DOCUMENTS_MAX>,
    }
    check(fields) {
        if workflow_status == Some(WorkflowStatus::Completed) {
            fields.require_some("fileList", file_list.as_ref().map(|list| &list.0), DOCUMENTS_MAX);
        }
    }
}

body! { report
    /// A signatory and the state of the signature.
    #[derive(Clone, PartialEq)]
    pub struct EStampSignatory {
        /// The e-mail address of the signatory.
        email_id as "emailID": Text,
        /// The name of the signatory.
        name: Text,
        /// The status of the signature.
        status: WorkflowStatus,
        /// Remarks on the signature, or null.
        remarks: Option<Text>,
        /// The kind of signature, as in the request.
        sign_type as "signType": Text,
        /// The time of the signature; null unless the status is `Completed`.
        signed_date as "signedDate": Option<Timestamp>,
    }
    check(fields) {
        fields.require_if(status == Some(WorkflowStatus::Completed), "signedDate", signed_date.as_ref());
    }
}

body! { report
    /// A stamped document.
    #[derive(PartialEq)]
    pub struct StampedFile {
        /// The name of the document, such as `lease.pdf`.
        document_name as "documentName": Text,
        /// The PDF in standard Base64 with padding, at most 10 MiB.
        file_data as "base64FileData": Base64File,
    }
}

impl EStampReport for EStampOutcome {
    fn stamp(&self) -> FlowId {
        self.data.e_stamp_id
    }

    fn status(&self) -> WorkflowStatus {
        self.data.workflow_status
    }
}
