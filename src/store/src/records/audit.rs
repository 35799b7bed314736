//! The audit log of operators' changes.

use super::{key_of_installation, table};
use crate::engine::Key;

table! {
    /// The entries, numbered from 1 without gaps. `previous` is the hash of the preceding entry.
    AUDIT_LOG = "audit", List Stays {
        number: Integer,
        previous: Bytes,
        hash: Bytes,
        entry: Sealed(Number("audit:")),
    } always {
        Within("number", 1, i64::MAX),
        Sized("previous", 32, 32),
        Sized("hash", 32, 32),
        Key(KeyRule::Installation),
    }
}

table! {
    /// The newest entry that the log's receiver has. Only `node` sends to the receiver until `until`.
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
        Key(KeyRule::Installation),
    }
}

/// Returns the key of the record of the newest entry that the log's receiver has.
#[must_use]
pub(crate) fn key_of_audit_push() -> Key {
    key_of_installation(&AUDIT_PUSH, vec![])
}

/// Returns the key of the audit log.
#[must_use]
pub(crate) fn key_of_audit_log() -> Key {
    key_of_installation(&AUDIT_LOG, vec![])
}
