//! A transaction, from its opening to the end of its result.

use sakshi_domain::ids::TxnId;

use super::table;
use crate::engine::Key;

table! {
    /// A transaction. `terms` is sealed; `origin` is where its webhook goes, without the path.
    TRANSACTION = "txn", Expiring {
        client: Text,
        app: Text,
        event: Bytes,
        opened_at: Integer,
        expires_at: Integer,
        terms: Bytes,
        origin: Text,
    }
}

/// The record of a transaction.
#[must_use]
pub(crate) fn transaction(id: TxnId) -> Key {
    Key { table: &TRANSACTION, partition: id.partition(), id: id.as_bytes().to_vec() }
}
