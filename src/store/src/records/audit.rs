//! The log of what operators have changed.

use super::{of_installation, table};
use crate::engine::Key;

table! {
    /// The entries, numbered from 1, each with the hash of the one before it and its own.
    AUDIT_LOG = "audit", List Stays {
        previous: Bytes,
        hash: Bytes,
        entry: Sealed(Number("audit:")),
    }
}

/// The log.
#[must_use]
pub(crate) fn audit_log() -> Key {
    of_installation(&AUDIT_LOG, vec![])
}
