//! Flows and their payloads as callers read them.

use std::fmt;

use sakshi_domain::delivery::{FlowDelivery, Subject};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::time::Timestamp;

use crate::vault::{Sealed, Vault, VaultError};

/// A stored flow.
#[derive(Debug, PartialEq)]
pub struct FlowRecord {
    /// State of the flow.
    pub state: FlowState,
    /// Time until which the flow is kept.
    pub kept_until: Timestamp,
    /// The latest report of the flow itself; until the first one, the opening payload of a document to be signed.
    pub latest: Option<SealedPayload>,
}

/// A flow for the operator: without its reports, and with the state of its webhooks.
#[derive(Debug, PartialEq)]
pub struct FlowDeliveries {
    /// State of the flow.
    pub state: FlowState,
    /// Time until which the flow is kept.
    pub kept_until: Timestamp,
    /// Deliveries of its webhooks, in queue order.
    pub deliveries: Vec<FlowDelivery>,
}

/// A sealed payload of a flow: the answer to polls, or the body of a webhook. It can be large, so it is neither cloned
/// nor copied to be opened.
#[derive(PartialEq, Eq)]
pub struct SealedPayload {
    owner: Vec<u8>,
    bytes: Vec<u8>,
}

impl SealedPayload {
    /// Returns the payload with these sealed bytes, which the flow stores under `name`.
    pub(crate) fn new(flow: FlowId, name: DedupDigest, bytes: Vec<u8>) -> Self {
        Self { owner: owner(flow, name), bytes }
    }

    /// Returns the size of the ciphertext in bytes, slightly more than that of the payload.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the JSON, byte for byte as sent.
    ///
    /// # Errors
    /// [`VaultError::UnknownKey`] when its key is not configured, [`VaultError::NotAuthentic`] when it was changed.
    pub fn open(self, vault: &Vault) -> Result<Vec<u8>, VaultError> {
        let sealed = Sealed::from_bytes(self.bytes).ok_or(VaultError::NotAuthentic)?;
        vault.open_in_place(&self.owner, sealed)
    }
}

/// Returns the owner for which a payload is sealed: the id of the record that stores it.
pub(crate) fn owner(flow: FlowId, name: DedupDigest) -> Vec<u8> {
    Subject::Flow { flow, webhook: name }.to_bytes()
}

impl fmt::Debug for SealedPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedPayload({} bytes)", self.bytes.len())
    }
}
