//! The stored form of a flow, sealed on the caller's side.

use std::io;

use aws_lc_rs::digest::{Context, SHA256, digest};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::transition::ReportDigest;
use serde::Serialize;

use super::OpenFlow;
use super::record::owner;
use crate::error::StoreError;
use crate::sealing::seal_of_flow;
use crate::vault::{Sealed, Vault};

/// Name under which a flow stores the latest report that queued no webhook. Other reports are stored under the digest
/// of their webhook's deduplication key, which equals this name only if SHA-256 collides.
pub(crate) const PROGRESS: DedupDigest = DedupDigest([0; 16]);

/// Returns the digest of a deduplication key, or of the name of a fetch.
pub(crate) fn digest_of(text: &str) -> DedupDigest {
    let mut first = [0; 16];
    first.copy_from_slice(&digest(&SHA256, text.as_bytes()).as_ref()[..16]);
    DedupDigest(first)
}

/// Returns the error for a payload that cannot be serialised.
fn unwritable() -> StoreError {
    StoreError::Unavailable("a payload cannot be written".into())
}

/// A writer that computes the digest and the length of the written bytes, and stores nothing.
struct Measure {
    context: Context,
    length: usize,
}

impl io::Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.context.update(bytes);
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the digest and the length of the JSON of a payload, as it is sent.
pub(crate) fn measure(payload: &impl Serialize) -> Result<(ReportDigest, usize), StoreError> {
    let mut measure = Measure { context: Context::new(&SHA256), length: 0 };
    serde_json::to_writer(&mut measure, payload).map_err(|_| unwritable())?;
    let mut digest = [0; 32];
    digest.copy_from_slice(measure.context.finish().as_ref());
    Ok((ReportDigest(digest), measure.length))
}

/// Initial capacity for the payload of an opened flow.
const PAYLOAD_BYTES: usize = 1_024;

/// Serialises and seals a payload of about `length` bytes without copying it.
pub(crate) fn seal_payload(
    vault: &Vault,
    flow: FlowId,
    name: DedupDigest,
    payload: &impl Serialize,
    length: usize,
) -> Result<Vec<u8>, StoreError> {
    let sealed = vault.seal_with_writer(&owner(flow, name), length, |bytes| serde_json::to_writer(bytes, payload));
    sealed.map(Sealed::into_bytes).map_err(|_| unwritable())
}

/// The sealed parts of an opened flow.
pub(crate) struct SealedOpening {
    /// The state of the flow.
    pub(crate) state: Vec<u8>,
    /// The payload that polls return until the first report.
    pub(crate) payload: Option<Vec<u8>>,
}

impl SealedOpening {
    /// Seals the state of an opened flow, and its payload if it has one.
    pub(crate) fn seal(vault: &Vault, open: &OpenFlow) -> Result<Self, StoreError> {
        let id = open.flow.header().id;
        let payload = open
            .payload
            .as_ref()
            .map(|payload| seal_payload(vault, id, PROGRESS, payload, PAYLOAD_BYTES))
            .transpose()?;
        Ok(Self { state: seal_of_flow(vault, id, &open.flow)?, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_digest_and_length_match_the_sent_bytes() {
        let payload = serde_json::json!({"documentId": "x", "signers": [1, 2, "é"]});
        let written = serde_json::to_vec(&payload).unwrap();
        let (measured_digest, length) = measure(&payload).unwrap();
        assert_eq!((measured_digest.0.as_slice(), length), (digest(&SHA256, &written).as_ref(), written.len()));
    }
}
