//! A client's balance, and the ledger that explains it.

use sakshi_domain::credits::EntryKind;
use sakshi_domain::ids::ClientId;

use super::table;
use crate::engine::Key;

table! {
    /// A client. `balance` is the sum of its ledger.
    CLIENT = "client", Record {
        balance: Integer,
        suspended_at: Integer,
    }
}

table! {
    /// The entries of a client's ledger, numbered from 1. `reference` is the id of a debit's transaction.
    LEDGER = "ledger", List {
        kind: Text,
        amount: Integer,
        balance_after: Integer,
        reference: Bytes,
        at: Integer,
    }
}

table! {
    /// The entry of a grant or an adjustment, by kind and reference.
    REFERENCE = "credit_reference", Record {
        number: Integer,
        amount: Integer,
        balance_after: Integer,
        at: Integer,
    }
}

/// The record of a client.
#[must_use]
pub(crate) fn client(id: &ClientId) -> Key {
    Key { table: &CLIENT, partition: id.partition(), id: id.as_str().as_bytes().to_vec() }
}

/// The ledger of a client.
#[must_use]
pub(crate) fn ledger(id: &ClientId) -> Key {
    Key { table: &LEDGER, partition: id.partition(), id: id.as_str().as_bytes().to_vec() }
}

/// The entry under a reference.
#[must_use]
pub(crate) fn reference(id: &ClientId, kind: EntryKind, reference: &str) -> Key {
    let id_bytes = format!("{} {} {reference}", id.as_str(), kind.as_str()).into_bytes();
    Key { table: &REFERENCE, partition: id.partition(), id: id_bytes }
}
