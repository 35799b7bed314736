//! What nodes tell operators about themselves, and the mark of somebody who looks.

use super::{of_installation, table};
use crate::engine::Key;
use crate::redis::NodeId;

table! {
    /// The mark of somebody who watches the nodes; they publish snapshots while it is there.
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

/// The mark of somebody who watches.
#[must_use]
pub(crate) fn watch() -> Key {
    of_installation(&WATCH, vec![])
}

/// The snapshot of a node.
#[must_use]
pub(crate) fn snapshot(node: NodeId) -> Key {
    of_installation(&SNAPSHOT, node.as_bytes().to_vec())
}
