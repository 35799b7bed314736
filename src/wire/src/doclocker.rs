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
    /// Which documents to fetch, with the person's consent.
    #[derive(Clone, PartialEq)]
    pub struct DocLockerInitRequest {
        /// The kinds of document, each once; 1 to 100 characters each.
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
        "type": "array", "items": Bounded::<LABEL_CHARS_MAX>::schema(), "minItems": 1, "maxItems": DOCUMENTS_MAX, "uniqueItems": true,
    }
}

body! { answer
    /// Documents that wait for the person's consent at the locker.
    pub struct DocLockerResponse {
        /// Identifies the request.
        transaction_id as "transactionId": FlowId,
        /// Where the person agrees. Whoever has it may, so give it to nobody else.
        request_url as "requestUrl": PageUrl,
    }
}

body! { report
    /// What came out of the locker: the body of the webhook and of a finished poll.
    #[derive(PartialEq)]
    pub struct DocLockerOutcome {
        /// Whether a document was fetched.
        success: bool,
        /// An HTTP status that says the same in another way.
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
        /// The fetch; deduplicate by it.
        transaction_id as "transactionId": FlowId,
        /// One entry for each document; none when the person refused.
        docs: List<LockerDocument, 0, DOCUMENTS_MAX>,
    }
}

body! { report
    /// One document; what describes it is null unless it was fetched.
    #[derive(PartialEq)]
    pub struct LockerDocument {
        /// Which kind of document.
        doc_type as "docType": Text,
        /// Whether it came.
        status: LockerStatus,
        /// When it came.
        fetched_at as "fetchedAt": Option<Timestamp>,
        /// The document as a PDF in Base64.
        data_pdf as "dataPdf": Option<Base64File>,
        /// What its issuer says of it.
        issued: Option<IssuedDocument>,
        /// The fields inside it, by their names.
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
    /// What an issuer says of a document.
    #[derive(Clone, PartialEq)]
    pub struct IssuedDocument {
        /// Its title.
        name: Text,
        /// Its media type.
        kind as "type": Text,
        /// Its size, as a string.
        size: Text,
        /// When it was issued.
        date: Text,
        /// Its address in the locker.
        uri: Text,
        /// Its type in the locker.
        doctype: Text,
        /// Who issued it.
        issuer: Text,
    }
}

/// The fields inside a document, whatever they are. Personal: its `Debug` shows nothing.
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
    /// How the fetch as a whole stands.
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
    /// The answer to a poll: the outcome, or a stub while a document is awaited.
    pub enum DocLockerDetails {
        /// Nothing is awaited any more.
        Outcome(DocLockerOutcome),
        /// A document is awaited.
        Pending(DocLockerPending),
    }
}

body! { answer
    /// The answer to a poll while a document is awaited.
    pub struct DocLockerPending {
        /// Always true.
        success: Always<true>,
        /// Always true.
        pending: Always<true>,
        /// What has come so far.
        data: DocLockerPendingData,
    }
}

body! { answer
    /// What has come so far.
    pub struct DocLockerPendingData {
        /// The fetch.
        transaction_id as "transactionId": FlowId,
        /// Always true.
        pending: Always<true>,
        /// Absent until something is known of a document.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        docs: Vec<LockerDocument>,
    }
}

impl DocLockerDetails {
    /// The answer of a flow of which this was reported last, if anything was.
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
