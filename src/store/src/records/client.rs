//! A client, its balance, and the ledger that explains it.

use sakshi_domain::credits::EntryKind;
use sakshi_domain::ids::ClientId;

use super::{key_in_partition, key_of_installation, table};
use crate::engine::Key;

table! {
    /// A client. `balance` is the sum of its ledger. With `suspended_at` the client is suspended. `limits` and `brand`
    /// are JSON. `key_sign_in_refused` disables sign-in to the portal with an API key.
    CLIENT = "client", Record Stays {
        name: Text,
        created_at: Integer,
        balance: Integer,
        suspended_at: Integer,
        limits: Text,
        brand: Text,
        imported_at: Integer,
        key_sign_in_refused: Integer,
    } always {
        Needed(&["name", "created_at", "balance"]),
        Within("balance", 0, i64::MAX),
        Within("key_sign_in_refused", 1, 1),
        Fixed(&["created_at", "imported_at"]),
        Guarded("balance", Need::AtLeast("balance")),
        New,
        Key(KeyRule::OfClient),
    }
}

table! {
    /// All clients by creation time.
    CLIENTS = "clients", Index Stays {} always {
        Key(KeyRule::Installation),
    }
}

table! {
    /// The entries of a client's ledger, numbered from 1. `reference` is the id of a debit's transaction.
    LEDGER = "ledger", List Stays {
        kind: Text,
        amount: Integer,
        balance_after: Integer,
        reference: Bytes,
        at: Integer,
    } always {
        Word("kind", |word| word.parse::<EntryKind>().is_ok()),
        Within("balance_after", 0, i64::MAX),
        Key(KeyRule::OfClient),
    }
}

table! {
    /// The ledger entry of a grant or an adjustment, by kind and reference.
    REFERENCE = "credit_reference", Record Stays {
        number: Integer,
        amount: Integer,
        balance_after: Integer,
        at: Integer,
    } always {
        Needed(&["number", "amount", "balance_after", "at"]),
        Within("number", 1, i64::MAX),
        Within("balance_after", 0, i64::MAX),
        Fixed(&["number", "amount", "balance_after", "at"]),
        New,
        Key(KeyRule::OfClientFirst),
    }
}

/// Returns the key of the record of a client.
#[must_use]
pub(crate) fn key_of_client(id: &ClientId) -> Key {
    key_in_partition(&CLIENT, id.partition(), id.as_str().as_bytes().to_vec())
}

/// Returns the key of the list of all clients.
#[must_use]
pub(crate) fn key_of_clients() -> Key {
    key_of_installation(&CLIENTS, vec![])
}

/// Returns the key of the ledger of a client.
#[must_use]
pub(crate) fn key_of_ledger(id: &ClientId) -> Key {
    key_in_partition(&LEDGER, id.partition(), id.as_str().as_bytes().to_vec())
}

/// Returns the key of the record that finds a ledger entry by kind and reference.
#[must_use]
pub(crate) fn key_of_reference(id: &ClientId, kind: EntryKind, reference: &str) -> Key {
    let name = format!("{} {} {reference}", id.as_str(), kind.as_str());
    key_in_partition(&REFERENCE, id.partition(), name.into_bytes())
}
