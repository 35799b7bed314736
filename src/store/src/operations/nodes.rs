//! The nodes of an installation, and the snapshots that they publish while an operator watches.

use std::future::ready;
use std::time::Duration;

use sakshi_domain::time::Timestamp;

use super::Store;
use crate::engine::{Batch, Op, Operand, Query};
use crate::error::{StoreError, StoreFuture};
use crate::records::node::{key_of_snapshot, key_of_watch};
use crate::redis::NodeId;
use crate::vault::Sealed;

/// Time for which the record of a watching operator exists. Watching renews the record after half of this time.
const WATCH_DURATION: Duration = Duration::from_secs(10);
/// Lifetime of a snapshot. It exceeds the time for which a node counts as a member after its last heartbeat.
const SNAPSHOT_TTL: Duration = Duration::from_secs(30);

/// Another node of the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherNode {
    /// Id of the node.
    pub node: NodeId,
    /// Time of its last heartbeat.
    pub seen_at: Timestamp,
    /// Its last snapshot; `None` before the first.
    pub snapshot: Option<Vec<u8>>,
}

impl Store {
    /// Returns the id of this node.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        self.node()
    }

    /// Returns true while an operator watches the nodes.
    pub fn is_watched(&self) -> StoreFuture<bool> {
        self.run(|store| async move { Ok(store.record(key_of_watch()).await?.is_some()) })
    }

    /// Publishes a snapshot of this node, which replaces the previous one.
    pub fn publish_snapshot(&self, bytes: Vec<u8>) -> StoreFuture<()> {
        self.run(move |store| async move {
            let node = store.node();
            let (key, sealed) = (key_of_snapshot(node), store.vault().seal(node.as_bytes(), &bytes).into_bytes());
            let put = Op::Put(key.clone(), vec![("snapshot", sealed.into())]);
            // Allowed on a full store: a snapshot is small, and operators need it most then.
            store
                .commit(Batch::even_when_full(vec![], vec![put, Op::ExpireAt(key, Operand::after(SNAPSHOT_TTL))]))
                .await
                .map(drop)
        })
    }

    /// Returns the other nodes that have a heartbeat, with their latest snapshots. A call makes nodes publish snapshots
    /// for some seconds. A store of one node returns none.
    pub fn watch_nodes(&self) -> StoreFuture<Vec<OtherNode>> {
        if !self.engine().is_shared() {
            return Box::pin(ready(Ok(vec![])));
        }
        self.run(|store| async move {
            let own = store.node();
            let others: Vec<_> = store.engine().members().into_iter().filter(|(node, _)| *node != own).collect();
            let queries = others.iter().map(|(node, _)| Query::Record(key_of_snapshot(*node)));
            let mut answers =
                store.read(std::iter::once(Query::Record(key_of_watch())).chain(queries).collect()).await?;
            let until = answers.record()?.and_then(|watch| watch.time("until")).unwrap_or(answers.now);
            if until.since(answers.now) < WATCH_DURATION / 2 {
                let (key, end) = (key_of_watch(), Operand::after(WATCH_DURATION));
                let ops = vec![Op::Put(key.clone(), vec![("until", end.clone())]), Op::ExpireAt(key, end)];
                store.commit(Batch::even_when_full(vec![], ops)).await?;
            }
            let mut nodes = Vec::with_capacity(others.len());
            for (node, seen_at) in others {
                let snapshot = answers
                    .record()?
                    .map(|record| unseal_snapshot(&store, node, record.bytes("snapshot")))
                    .transpose()?;
                nodes.push(OtherNode { node, seen_at, snapshot });
            }
            Ok(nodes)
        })
    }
}

/// Opens the snapshot of a node.
fn unseal_snapshot(store: &Store, node: NodeId, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let sealed = Sealed::from_bytes(sealed).ok_or_else(|| StoreError::unreadable("the snapshot of a node"))?;
    store.vault().open_in_place(node.as_bytes(), sealed).map_err(|error| StoreError::Corrupt(error.to_string()))
}
