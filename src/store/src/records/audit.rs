//! The audit log of operators' changes.

use super::{of_installation, table};
use crate::engine::Key;

table! {
    /// The entries, each with its number from 1, which reveals missing ones, the hash of the one before it and its own.
    AUDIT_LOG = "audit", List Stays {
        number: Integer,
        previous: Bytes,
        hash: Bytes,
        entry: Sealed(Number("audit:")),
    } always {
        Within("number", 1, i64::MAX),
        Sized("previous", 32, 32),
        Sized("hash", 32, 32),
        Home(Home::Installation),
    }
}

table! {
    /// The last entry that the log's receiver has, and the node that sends to it until this time.
    AUDIT_PUSH = "audit_push", Record Stays {
        number: Integer,
        hash: Bytes,
        node: Bytes,
        until: Integer,
    } always {
        Needed(&["number", "hash", "node", "until"]),
        Within("number", 0, i64::MAX),
        Sized("hash", 32, 32),
        Sized("node", 16, 16),
        Home(Home::Installation),
    }
}

/// Returns the key of the place of the receiver in the log.
#[must_use]
pub(crate) fn audit_push() -> Key {
    of_installation(&AUDIT_PUSH, vec![])
}

/// Returns the key of the log.
#[must_use]
pub(crate) fn audit_log() -> Key {
    of_installation(&AUDIT_LOG, vec![])
}
