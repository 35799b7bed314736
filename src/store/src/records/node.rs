//! The snapshots that nodes publish while an operator watches them.

use super::{key_of_installation, table};
use crate::engine::Key;
use crate::redis::NodeId;

table! {
    /// Present while an operator watches the nodes, which then publish snapshots.
    WATCH = "watch", Record Ends {
        until: Integer,
    } always {
        Needed(&["until"]),
        Key(KeyRule::Installation),
    }
}

table! {
    /// The latest snapshot of a node, sealed because it names webhook receivers and requests of clients.
    SNAPSHOT = "snapshot", Record Ends {
        snapshot: Sealed(Id),
    } always {
        Needed(&["snapshot"]),
        Key(KeyRule::Installation),
    }
}

/// Returns the key of the record that exists while an operator watches.
#[must_use]
pub(crate) fn key_of_watch() -> Key {
    key_of_installation(&WATCH, vec![])
}

/// Returns the key of the snapshot of a node.
#[must_use]
pub(crate) fn key_of_snapshot(node: NodeId) -> Key {
    key_of_installation(&SNAPSHOT, node.as_bytes().to_vec())
}
