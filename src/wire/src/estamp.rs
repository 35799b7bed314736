//! E-stamps of the registry and on paper (specification, "E-stamp payload"): the request, its answer
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
use crate::fields::Place;
use crate::json::Json;
use crate::text::{Bounded, List, OptionalList, Whole};
use crate::values::CONTROLS_BUT_LINES;

body! { request
    /// The document to stamp, and its signatories.
    #[derive(PartialEq)]
    pub struct EStampInitRequest {
        /// The kind of e-stamp. The webhook goes to the URL registered for the same word.
        api_type as "apiType": EStampKind,
        /// The document.
        document: DocumentToStamp,
        /// The signatories.
        signatories_info as "signatoriesInfo": List<NamedSignatory, 1, SIGNERS_MAX>,
        /// Checked, and not kept.
        consent: OptionalConsent,
        /// The correlation id; it wins over the header `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}

body! { request
    /// The document to stamp.
    #[derive(PartialEq)]
    pub struct DocumentToStamp {
        /// Its name.
        document_name as "documentName": Bounded<LABEL_CHARS_MAX>,
        /// The PDF in standard Base64 with padding, at most 10 MiB.
        file_data as "base64FileData": Base64File,
    }
}

body! { request
    /// A signatory.
    #[derive(Clone, PartialEq)]
    pub struct NamedSignatory {
        /// The name.
        name: Bounded<LABEL_CHARS_MAX>,
        /// The e-mail address.
        email_id as "emailID": EmailAddress,
        /// The kind of signature, as the upstream calls it.
        sign_type as "signType": Bounded<LABEL_CHARS_MAX>,
    }
}

impl Field for EStampKind {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.parsed(value, |word| {
            let api_type: Option<ApiType> = word.parse().ok();
            api_type.ok_or("must be RegistryEStamp or PhysicalEStamp").and_then(Self::of)
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
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let text = place.text(value)?;
        if !text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()) {
            return Self::absent(place);
        }
        place.accept(Bounded::new(&text)).map(Self)
    }

    fn absent(place: &mut Place<'_>) -> Option<Self> {
        place.refuse("must be an e-mail address")
    }
}

described! {
   EmailAddress: {
       "type": "string", "minLength": 3, "maxLength": TEXT_CHARS_MAX,
       "pattern": format!("^[^@{CONTROLS_BUT_LINES}]+@[^{CONTROLS_BUT_LINES}]+$"),
   }
}

body! { answer
    /// The ordered e-stamp.
    pub struct EStampResponse {
        /// Identifies the e-stamp.
        e_stamp_id as "eStampId": FlowId,
    }
}

body! { report
    /// The outcome of an e-stamp: the body of the webhook.
    #[derive(PartialEq)]
    pub struct EStampOutcome {
        /// True when the e-stamp is completed.
        success: bool,
        /// A status of the outcome in the form of an HTTP status.
        status_code as "statusCode": Whole<100, 599>,
        /// A sentence.
        message: Text,
        /// The e-stamp.
        data: EStampData,
    }
    check(fields) {
        if let (Some(success), Some(data)) = (success, &data) {
            let is_hopeful = matches!(data.workflow_status, WorkflowStatus::Completed | WorkflowStatus::Pending);
            if success != is_hopeful {
                fields.refuse("success", format!("must be {is_hopeful}, which follows from data.workflowStatus"));
            }
        }
    }
}

body! { report
    /// One e-stamp.
    #[derive(PartialEq)]
    pub struct EStampData {
        /// The e-stamp. Deduplicate by it.
        e_stamp_id as "eStampId": FlowId,
        /// The status.
        workflow_status as "workflowStatus": WorkflowStatus,
        /// The signatories.
        signatories_info as "signatoriesInfo": List<EStampSignatory, 0, SIGNERS_MAX>,
        /// The stamped documents; at least one if completed.
        file_list as "fileList": OptionalList<StampedFile, DOCUMENTS_MAX>,
    }
    check(fields) {
        if workflow_status == Some(WorkflowStatus::Completed) {
            fields.require_some("fileList", file_list.as_ref().map(|list| &list.0), DOCUMENTS_MAX);
        }
    }
}

body! { report
    /// A signatory.
    #[derive(Clone, PartialEq)]
    pub struct EStampSignatory {
        /// The e-mail address.
        email_id as "emailID": Text,
        /// The name.
        name: Text,
        /// The status.
        status: WorkflowStatus,
        /// Remarks.
        remarks: Option<Text>,
        /// The kind of signature.
        sign_type as "signType": Text,
        /// The time of the signature, or null.
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
        /// Its name.
        document_name as "documentName": Text,
        /// The content in Base64.
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
