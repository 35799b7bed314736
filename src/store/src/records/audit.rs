//! The log of what operators have changed.

use super::{of_installation, table};
use crate::engine::Key;

table! {
    /// The entries, each with its number from 1, by which one that is missing is noticed, the hash of the one before it and its own.
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
    /// The last entry that the receiver of the log has, and the node that sends to it until this time.
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

/// The place of the receiver in the log.
#[must_use]
pub(crate) fn audit_push() -> Key {
    of_installation(&AUDIT_PUSH, vec![])
}

/// The log.
#[must_use]
pub(crate) fn audit_log() -> Key {
    of_installation(&AUDIT_LOG, vec![])
}
