//! The document locker webhook (specification, "Document locker payload").

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::envelope::Envelope;
use crate::flow::file::Base64File;
use crate::flow::flow_id::FlowId;
use crate::flow::reading::fields::Sentence;
use crate::flow::reading::{Fields, FromJson, Json};
use crate::flow::statuses::LockerStatus;
use crate::flow::text::Text;
use crate::limits::{DETAILS_DEPTH_MAX, DOCUMENTS_MAX};
use crate::request_id::RequestId;
use crate::time::Timestamp;

/// What came out of the locker.
#[derive(Debug, PartialEq, Serialize)]
pub struct DocLockerPayload {
    /// How it went; `success` exactly when a document was fetched or still may be.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The correlation id of the request that opened the flow; a report may leave it out.
    pub request_id: Option<RequestId>,
    /// The documents.
    pub data: DocLockerData,
}

/// The documents of one flow.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DocLockerData {
    /// The flow's id.
    pub transaction_id: FlowId,
    /// One entry for each document; none when the person refused.
    pub docs: Vec<LockerDocument>,
}

/// One document. What describes it is null unless it was fetched.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockerDocument {
    /// Which kind of document.
    pub doc_type: Text,
    /// Whether it came.
    pub status: LockerStatus,
    /// When it came.
    pub fetched_at: Option<Timestamp>,
    /// The document as a PDF.
    pub data_pdf: Option<Base64File>,
    /// What its issuer says of it.
    pub issued: Option<Issued>,
    /// The fields inside it.
    pub details: Option<Details>,
}

/// What an issuer says of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Issued {
    /// Its title.
    pub name: Text,
    /// Its media type.
    #[serde(rename = "type")]
    pub kind: Text,
    /// Its size, as a string.
    pub size: Text,
    /// When it was issued.
    pub date: Text,
    /// Where the locker keeps it.
    pub uri: Text,
    /// Its type in the locker's words.
    pub doctype: Text,
    /// Who issued it.
    pub issuer: Text,
}

/// The fields inside a document, whatever they are. Personal: its `Debug` shows nothing.
#[derive(Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Details(Map<String, Value>);

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Details({} redacted)", self.0.len())
    }
}

impl FromJson for Details {
    fn from_json(json: Json) -> Result<Self, Sentence> {
        match json.into_value(DETAILS_DEPTH_MAX)? {
            Value::Object(members) => Ok(Self(members)),
            _ => Err("must be an object".into()),
        }
    }
}

impl DocLockerPayload {
    /// Whether no document is awaited any more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.data.docs.iter().all(|document| document.status != LockerStatus::Pending)
    }

    /// How the fetch as a whole stands.
    #[must_use]
    pub fn standing(&self) -> LockerStatus {
        match (self.is_final(), self.envelope.success) {
            (false, _) => LockerStatus::Pending,
            (true, true) => LockerStatus::Fetched,
            (true, false) => LockerStatus::Failed,
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let envelope = Envelope::read(fields);
        let request_id = fields.optional("request_id", false);
        let data = fields.object("data", true, DocLockerData::read).flatten();
        let payload = Self { envelope: envelope?, request_id: request_id?, data: data? };
        let hopeful = payload.data.docs.iter().any(|document| document.status != LockerStatus::Failed);
        if payload.envelope.success != hopeful {
            fields.problem("success", format!("must be {hopeful}, which follows from data.docs"));
        }
        Some(payload)
    }
}

impl DocLockerData {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (transaction_id, docs) =
            (fields.required("transactionId"), fields.list("docs", true, (0, DOCUMENTS_MAX), LockerDocument::read));
        Some(Self { transaction_id: transaction_id?, docs: docs? })
    }
}

impl LockerDocument {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let doc_type = fields.required("docType");
        let status: Option<LockerStatus> = fields.required("status");
        let fetched = status == Some(LockerStatus::Fetched);
        let (fetched_at, data_pdf) = (fields.optional("fetchedAt", fetched), fields.optional("dataPdf", fetched));
        let (issued, details) = (fields.object("issued", fetched, Issued::read), fields.optional("details", fetched));
        Some(Self {
            doc_type: doc_type?,
            status: status?,
            fetched_at: fetched_at?,
            data_pdf: data_pdf?,
            issued: issued?,
            details: details?,
        })
    }
}

impl Issued {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (name, kind, size, date) = (fields.required("name"), fields.required("type"), fields.required("size"), fields.required("date"));
        let (uri, doctype, issuer) = (fields.required("uri"), fields.required("doctype"), fields.required("issuer"));
        Some(Self { name: name?, kind: kind?, size: size?, date: date?, uri: uri?, doctype: doctype?, issuer: issuer? })
    }
}
