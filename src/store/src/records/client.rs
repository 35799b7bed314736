//! A client, its balance, and the ledger that explains it.

use sakshi_domain::credits::EntryKind;
use sakshi_domain::ids::ClientId;

use super::{in_partition, of_installation, table};
use crate::engine::Key;

table! {
    /// A client. `balance` is the sum of its ledger. One with `suspended_at` is suspended; `limits` and `brand` are JSON.
    /// One with `key_sign_in_refused` lets nobody sign in to the portal with an API key.
    CLIENT = "client", Record Stays {
        name: Text,
        created_at: Integer,
        balance: Integer,
        suspended_at: Integer,
        limits: Text,
        brand: Text,
        imported_at: Integer,
        key_sign_in_refused: Integer,
    }
}

table! {
    /// All clients by creation.
    CLIENTS = "clients", Index Stays {}
}

table! {
    /// The entries of a client's ledger, numbered from 1. `reference` is the id of a debit's transaction.
    LEDGER = "ledger", List Stays {
        kind: Text,
        amount: Integer,
        balance_after: Integer,
        reference: Bytes,
        at: Integer,
    }
}

table! {
    /// The entry of a grant or an adjustment, by kind and reference.
    REFERENCE = "credit_reference", Record Stays {
        number: Integer,
        amount: Integer,
        balance_after: Integer,
        at: Integer,
    }
}

/// The record of a client.
#[must_use]
pub(crate) fn client(id: &ClientId) -> Key {
    in_partition(&CLIENT, id.partition(), id.as_str().as_bytes().to_vec())
}

/// The list of all clients.
#[must_use]
pub(crate) fn clients() -> Key {
    of_installation(&CLIENTS, vec![])
}

/// The ledger of a client.
#[must_use]
pub(crate) fn ledger(id: &ClientId) -> Key {
    in_partition(&LEDGER, id.partition(), id.as_str().as_bytes().to_vec())
}

/// The entry under a reference.
#[must_use]
pub(crate) fn reference(id: &ClientId, kind: EntryKind, reference: &str) -> Key {
    let words = format!("{} {} {reference}", id.as_str(), kind.as_str());
    in_partition(&REFERENCE, id.partition(), words.into_bytes())
}
