//! The snapshots that nodes publish for operators, and the mark of a watcher.

use super::{of_installation, table};
use crate::engine::Key;
use crate::redis::NodeId;

table! {
    /// The mark of a watcher; nodes publish snapshots while it exists.
    WATCH = "watch", Record Ends {
        until: Integer,
    } always {
        Needed(&["until"]),
        Home(Home::Installation),
    }
}

table! {
    /// The latest snapshot of a node, sealed because it names receivers and requests of clients.
    SNAPSHOT = "snapshot", Record Ends {
        snapshot: Sealed(Id),
    } always {
        Needed(&["snapshot"]),
        Home(Home::Installation),
    }
}

/// Returns the key of the mark of a watcher.
#[must_use]
pub(crate) fn watch() -> Key {
    of_installation(&WATCH, vec![])
}

/// Returns the key of the snapshot of a node.
#[must_use]
pub(crate) fn snapshot(node: NodeId) -> Key {
    of_installation(&SNAPSHOT, node.as_bytes().to_vec())
}
