//! Documents that a person shares from the locker (specification, "Document locker payload"): the
//! request, its answer, the webhook and the poll.

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
use crate::fields::Place;
use crate::json::Json;
use crate::page_url::PageUrl;
use crate::text::{Always, Bounded, List, Whole};

body! { request
    /// The documents to fetch, with the consent of the person.
    #[derive(Clone, PartialEq)]
    pub struct DocLockerInitRequest {
        /// The kinds of documents, each once; 1 to 100 characters each.
        docs: DocumentKinds,
        /// The person's consent.
        #[serde(flatten)]
        consent: Consent,
        /// The correlation id; it wins over the header `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}

/// The kinds of document to fetch, each once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DocumentKinds(pub Vec<Text>);

impl Field for DocumentKinds {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let mut known: Vec<String> = Vec::new();
        let items = place.list(value, 1, DOCUMENTS_MAX)?;
        let kinds = place.items(items, |place, item| {
            let text = place.text(item)?;
            if known.contains(&text) {
                return place.refuse("is given twice");
            }
            let kind = place.accept(Bounded::<LABEL_CHARS_MAX>::new(&text));
            known.push(text);
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

body! { answer
    /// The opened fetch.
    pub struct DocLockerResponse {
        /// Identifies the request.
        transaction_id as "transactionId": FlowId,
        /// The page where the person agrees. Anyone with this link can agree. Share it with the person only.
        request_url as "requestUrl": PageUrl,
    }
}

body! { report
    /// The fetched documents: the body of the webhook and of a completed poll.
    #[derive(PartialEq)]
    pub struct DocLockerOutcome {
        /// True if a document was fetched.
        success: bool,
        /// A status of the outcome in the form of an HTTP status.
        status_code as "statusCode": Whole<100, 599>,
        /// A sentence.
        message: Text,
        /// The correlation id of the request that began the fetch.
        request_id: Option<RequestId>,
        /// The documents.
        data: DocLockerData,
    }
    check(fields) {
        if let (Some(success), Some(data)) = (success, &data) {
            let is_hopeful = data.docs.iter().any(|document| document.status != LockerStatus::Failed);
            if success != is_hopeful {
                fields.refuse("success", format!("must be {is_hopeful}, which follows from data.docs"));
            }
        }
    }
}

body! { report
    /// The documents of one fetch.
    #[derive(PartialEq)]
    pub struct DocLockerData {
        /// The fetch. Deduplicate by it.
        transaction_id as "transactionId": FlowId,
        /// One entry for each document; empty if the person declined.
        docs: List<LockerDocument, 0, DOCUMENTS_MAX>,
    }
}

body! { report
    /// A document. Its details are null unless it was fetched.
    #[derive(PartialEq)]
    pub struct LockerDocument {
        /// The kind of document.
        doc_type as "docType": Text,
        /// The status.
        status: LockerStatus,
        /// The time of the fetch.
        fetched_at as "fetchedAt": Option<Timestamp>,
        /// The PDF in Base64.
        data_pdf as "dataPdf": Option<Base64File>,
        /// The record of the issuer.
        issued: Option<IssuedDocument>,
        /// The fields of the document by name.
        details: Option<Details>,
    }
    check(fields) {
        let came = status == Some(LockerStatus::Fetched);
        fields.require_if(came, "fetchedAt", fetched_at.as_ref());
        fields.require_if(came, "dataPdf", data_pdf.as_ref());
        fields.require_if(came, "issued", issued.as_ref());
        fields.require_if(came, "details", details.as_ref());
    }
}

body! { report
    /// The record of the issuer.
    #[derive(Clone, PartialEq)]
    pub struct IssuedDocument {
        /// The title.
        name: Text,
        /// The media type.
        kind as "type": Text,
        /// The size, as a string.
        size: Text,
        /// The date of issue.
        date: Text,
        /// The address in the locker.
        uri: Text,
        /// The type in the locker.
        doctype: Text,
        /// The issuer.
        issuer: Text,
    }
}

/// The fields of a document, in any form. Personal: `Debug` shows nothing.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Details(Map<String, Value>);

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Details({} redacted)", self.0.len())
    }
}

impl Field for Details {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        match place.accept(value.into_value(DETAILS_DEPTH_MAX))? {
            Value::Object(members) => Some(Self(members)),
            _ => place.refuse("must be an object"),
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
    fn transaction(&self) -> FlowId {
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
    /// The outcome, or a stub while documents are expected.
    pub enum DocLockerDetails {
        /// No document is awaited any more.
        Outcome(DocLockerOutcome),
        /// A document is awaited.
        Pending(DocLockerPending),
    }
}

body! { answer
    /// The response to a poll while documents are expected.
    pub struct DocLockerPending {
        /// Always true.
        success: Always<true>,
        /// Always true.
        pending: Always<true>,
        /// The documents so far.
        data: DocLockerPendingData,
    }
}

body! { answer
    /// The documents so far.
    pub struct DocLockerPendingData {
        /// The fetch.
        transaction_id as "transactionId": FlowId,
        /// Always true.
        pending: Always<true>,
        /// Absent until a document is reported.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        docs: Vec<LockerDocument>,
    }
}

impl DocLockerDetails {
    /// Builds the answer for a flow, from the last report if there was one.
    #[must_use]
    pub fn of(id: FlowId, latest: Option<DocLockerOutcome>) -> Self {
        let docs = match latest {
            Some(latest) if latest.is_final() => return Self::Outcome(latest),
            Some(latest) => latest.data.docs.0,
            None => Vec::new(),
        };
        let data = DocLockerPendingData { transaction_id: id, pending: Always, docs };
        Self::Pending(DocLockerPending { success: Always, pending: Always, data })
    }
}
