//! Documents that a person shares from the locker (specification, "Document locker payload"): the
//! request, its response, the webhook and the poll.

use std::fmt;

use sakshi_domain::flow::doclocker::DocLockerReport;
use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::statuses::LockerStatus;
use sakshi_domain::flow::text::Text;
use sakshi_domain::limits::{DETAILS_DEPTH_MAX, DOCUMENTS_MAX, LABEL_CHARS_MAX};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::body::{Field, alternatives, body, described};
use crate::consent::Consent;
use crate::fields::FieldReader;
use crate::json::Json;
use crate::page_url::PageUrl;
use crate::text::{Always, Bounded, List, Whole};

body! { request
    /// The documents to fetch, with the consent of the person.
    #[derive(Clone, PartialEq)]
    pub struct DocLockerInitRequest {
        /// The kinds of documents, such as `driving_licence`: 1 to 20, each of 1 to 100 characters and named once.
        docs: DocumentKinds,
        /// The person's consent.
        #[serde(flatten)]
        consent: Consent,
        /// The correlation id. It overrides the header `X-Request-ID`. Default: that header, or a new id.
        request_id: Option<RequestId>,
    }
}

/// The kinds of document to fetch, without repetition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DocumentKinds(pub Vec<Text>);

impl Field for DocumentKinds {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let mut seen: Vec<String> = Vec::new();
        let items = reader.list(value, 1, DOCUMENTS_MAX)?;
        let kinds = reader.items(items, |reader, item| {
            let text = reader.text(item)?;
            if seen.contains(&text) {
                return reader.refuse("is given twice");
            }
            let kind = reader.accept(Bounded::<LABEL_CHARS_MAX>::new(&text));
            seen.push(text);
            kind.map(|kind| kind.0)
        });
        kinds.map(Self)
    }
}

described! {
    DocumentKinds: {
        "type": "array", "items": Bounded::<LABEL_CHARS_MAX>::schema(), "minItems": 1, "maxItems": DOCUMENTS_MAX,
        "uniqueItems": true,
    }
}

body! { response
    /// A fetch that was opened.
    pub struct DocLockerResponse {
        /// Identifies the fetch in the webhook and in polls.
        transaction_id as "transactionId": FlowId,
        /// The page where the person agrees. Anyone with this link can agree. Share it with the person only.
        request_url as "requestUrl": PageUrl,
    }
}

body! { report
    /// The fetched documents: the body of the webhook and of a completed poll.
    #[derive(PartialEq)]
    pub struct DocLockerOutcome {
        /// True if at least one document was fetched.
        success: bool,
        /// The outcome in the form of an HTTP status, 100 to 599.
        status_code as "statusCode": Whole<100, 599>,
        /// The outcome in words.
        message: Text,
        /// The correlation id of the request that opened the fetch.
        request_id: Option<RequestId>,
        /// The documents.
        data: DocLockerData,
    }
    check(fields) {
        if let (Some(success), Some(data)) = (success, &data) {
            let expected = data.docs.iter().any(|document| document.status != LockerStatus::Failed);
            if success != expected {
                fields.refuse("success", format!("must be {expected}, which follows from data.docs"));
            }
        }
    }
}

body! { report
    /// The documents of one fetch.
    #[derive(PartialEq)]
    pub struct DocLockerData {
        /// The id of the fetch. Deduplicate webhooks by it.
        transaction_id as "transactionId": FlowId,
        /// One entry per document; empty if the person declined.
        docs: List<LockerDocument, 0, DOCUMENTS_MAX>,
    }
}

body! { report
    /// A document. All fields but `docType` and `status` are null unless it was fetched.
    #[derive(PartialEq)]
    pub struct LockerDocument {
        /// The kind of document, as in the request.
        doc_type as "docType": Text,
        /// The status of the document.
        status: LockerStatus,
        /// The time of the fetch.
        fetched_at as "fetchedAt": Option<Timestamp>,
        /// The PDF in standard Base64 with padding, at most 10 MiB.
        data_pdf as "dataPdf": Option<Base64File>,
        /// The issuer's record of the document.
        issued: Option<IssuedDocument>,
        /// The fields of the document by name, as the issuer names them.
        details: Option<Details>,
    }
    check(fields) {
        let is_fetched = status == Some(LockerStatus::Fetched);
        fields.require_if(is_fetched, "fetchedAt", fetched_at.as_ref());
        fields.require_if(is_fetched, "dataPdf", data_pdf.as_ref());
        fields.require_if(is_fetched, "issued", issued.as_ref());
        fields.require_if(is_fetched, "details", details.as_ref());
    }
}

body! { report
    /// The issuer's record of a document.
    #[derive(Clone, PartialEq)]
    pub struct IssuedDocument {
        /// The title of the document.
        name: Text,
        /// The type of entry in the locker, such as `file`.
        kind as "type": Text,
        /// The size of the file in the locker's own form, such as `48211`.
        size: Text,
        /// The date of issue in the locker's own form, such as `2019-05-02`.
        date: Text,
        /// The URI of the document in the locker.
        uri: Text,
        /// The code of the document type in the locker.
        doctype: Text,
        /// The name of the issuer.
        issuer: Text,
    }
}

/// The fields of a document, in any form. Personal data, which `Debug` hides.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Details(Map<String, Value>);

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Details({} redacted)", self.0.len())
    }
}

impl Field for Details {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        match reader.accept(value.into_value(DETAILS_DEPTH_MAX))? {
            Value::Object(members) => Some(Self(members)),
            _ => reader.refuse("must be an object"),
        }
    }
}

described! { Details: { "type": "object", "propertyNames": { "type": "string" }, "additionalProperties": true } }

impl DocLockerOutcome {
    /// Returns the status of the fetch as a whole.
    #[must_use]
    pub fn status(&self) -> LockerStatus {
        match (self.is_final(), self.success) {
            (false, _) => LockerStatus::Pending,
            (true, true) => LockerStatus::Fetched,
            (true, false) => LockerStatus::Failed,
        }
    }
}

impl DocLockerReport for DocLockerOutcome {
    fn flow(&self) -> FlowId {
        self.data.transaction_id
    }

    fn request_id(&mut self) -> &mut Option<RequestId> {
        &mut self.request_id
    }

    fn is_final(&self) -> bool {
        self.data.docs.iter().all(|document| document.status != LockerStatus::Pending)
    }

    fn success(&self) -> bool {
        self.success
    }
}

alternatives! {
    oneOf
    /// The outcome, or a pending response while documents are awaited.
    pub enum DocLockerDetails {
        /// Every document was fetched or has failed.
        Outcome(DocLockerOutcome),
        /// At least one document is awaited.
        Pending(DocLockerPending),
    }
}

body! { response
    /// The response to a poll while documents are awaited.
    pub struct DocLockerPending {
        /// Always true.
        success: Always<true>,
        /// Always true.
        pending: Always<true>,
        /// The documents reported so far.
        data: DocLockerPendingData,
    }
}

body! { response
    /// The documents reported so far.
    pub struct DocLockerPendingData {
        /// The id of the fetch.
        transaction_id as "transactionId": FlowId,
        /// Always true.
        pending: Always<true>,
        /// The documents reported so far; absent before the first report.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        docs: Vec<LockerDocument>,
    }
}

impl DocLockerDetails {
    /// Builds the response to a poll of a fetch, given its latest report.
    #[must_use]
    pub fn new(id: FlowId, latest: Option<DocLockerOutcome>) -> Self {
        let docs = match latest {
            Some(latest) if latest.is_final() => return Self::Outcome(latest),
            Some(latest) => latest.data.docs.0,
            None => Vec::new(),
        };
        let data = DocLockerPendingData { transaction_id: id, pending: Always, docs };
        Self::Pending(DocLockerPending { success: Always, pending: Always, data })
    }
}
