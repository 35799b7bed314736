//! The evidence of a verification, stored apart from the transaction because of its size.

use sakshi_domain::ids::TxnId;

use super::{key_in_partition, table};
use crate::engine::Key;

table! {
    /// The proof of a completed transaction, for as long as its result can be fetched.
    EVIDENCE = "evidence", Record Ends {
        proof: Sealed(Id),
    } always {
        Needed(&["proof"]),
        Key(KeyRule::OfId { id_bytes: 16 }),
    }
}

/// Returns the key of the evidence of a transaction.
#[must_use]
pub(crate) fn key_of_evidence(id: TxnId) -> Key {
    key_in_partition(&EVIDENCE, id.partition(), id.as_bytes().to_vec())
}
