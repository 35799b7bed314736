//! What a poll of a flow answers: the webhook's body once there is one, a stub with `pending`
//! until then (specification, "Polling fallbacks"; e-stamps and wealth data have no poll).
//!
//! The stub carries what has been reported so far, beside the members of every stub.

use serde::Serialize;

use super::doclocker::{DocLockerPayload, LockerDocument};
use super::esign::{EsignPayload, Signer};
use crate::flow::flow_id::FlowId;
use crate::flow::statuses::SigningStatus;
use crate::flow::text::Text;

/// `POST /api/v1/esign/status`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EsignPoll<'a> {
    /// Signatures are awaited.
    Pending(Stub<PendingDocument<'a>>),
    /// The body of the webhook.
    Ended(&'a EsignPayload),
}

impl<'a> EsignPoll<'a> {
    /// The answer while the latest payload of the flow is this one.
    #[must_use]
    pub fn of(latest: &'a EsignPayload) -> Self {
        if latest.document_status != SigningStatus::Pending {
            return Self::Ended(latest);
        }
        Self::Pending(Stub::new(PendingDocument {
            document_id: latest.document_id,
            pending: true,
            document_reference_id: latest.document_reference_id.as_ref(),
            document_status: latest.document_status,
            signer_info: &latest.signer_info,
        }))
    }
}

/// `GET /api/v1/doclocker/details/{transactionId}`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum DocLockerPoll<'a> {
    /// Documents are awaited.
    Pending(Stub<PendingDocuments<'a>>),
    /// The body of the webhook.
    Ended(&'a DocLockerPayload),
}

impl<'a> DocLockerPoll<'a> {
    /// The answer of a flow of which this was reported last, if anything was.
    #[must_use]
    pub fn of(id: FlowId, latest: Option<&'a DocLockerPayload>) -> Self {
        match latest {
            Some(latest) if latest.is_final() => Self::Ended(latest),
            _ => {
                let docs = latest.map_or(&[][..], |latest| &latest.data.docs);
                Self::Pending(Stub::new(PendingDocuments { transaction_id: id, pending: true, docs }))
            }
        }
    }
}

/// The answer while a flow waits.
#[derive(Debug, Serialize)]
pub struct Stub<D> {
    success: bool,
    pending: bool,
    data: D,
}

impl<D: Serialize> Stub<D> {
    const fn new(data: D) -> Self {
        Self { success: true, pending: true, data }
    }
}

/// A document that waits for signatures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingDocument<'a> {
    document_id: FlowId,
    pending: bool,
    document_reference_id: Option<&'a Text>,
    document_status: SigningStatus,
    signer_info: &'a [Signer],
}

/// Documents of the locker of which at least one is awaited.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingDocuments<'a> {
    transaction_id: FlowId,
    pending: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    docs: &'a [LockerDocument],
}
