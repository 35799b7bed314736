//! The nodes of an installation, as they tell each other about themselves while an operator watches.

use std::future::ready;
use std::time::Duration;

use sakshi_domain::time::Timestamp;

use super::Store;
use crate::engine::{Batch, Op, Operand, Query};
use crate::error::{StoreError, StoreFuture};
use crate::records::node::{snapshot, watch};
use crate::redis::NodeId;
use crate::vault::Sealed;

/// The time for which the mark of somebody who watches stands. It is renewed when half of that has passed.
const WATCHED_FOR: Duration = Duration::from_secs(10);
/// The time for which a snapshot is kept; longer than a node stays among the others after its last heartbeat.
const SNAPSHOT_KEPT: Duration = Duration::from_secs(30);

/// Another node of the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherNode {
    /// Its id.
    pub node: NodeId,
    /// Its last heartbeat.
    pub seen_at: Timestamp,
    /// The last snapshot; `None` before the first.
    pub snapshot: Option<Vec<u8>>,
}

impl Store {
    /// The id of this node.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        self.node()
    }

    /// Returns true while an operator watches the nodes.
    pub fn is_watched(&self) -> StoreFuture<bool> {
        self.run(|store| async move { Ok(store.record(watch()).await?.is_some()) })
    }

    /// Publishes what this node tells about itself. Repeatable; the last one stands.
    pub fn publish_snapshot(&self, told: Vec<u8>) -> StoreFuture<()> {
        self.run(move |store| async move {
            let node = store.node();
            let (key, sealed) = (snapshot(node), store.vault().seal(node.as_bytes(), &told).into_bytes());
            let put = Op::Put(key.clone(), vec![("snapshot", sealed.into())]);
            // A few kilobytes, and an operator looks when the memory is full.
            store.commit(Batch::on_full(vec![], vec![put, Op::ExpireAt(key, Operand::after(SNAPSHOT_KEPT))])).await.map(drop)
        })
    }

    /// The other nodes that have a heartbeat, with their snapshots. While this is asked, they go on publishing them. None on a store of
    /// one node.
    pub fn watch_nodes(&self) -> StoreFuture<Vec<OtherNode>> {
        if !self.engine().is_shared() {
            return Box::pin(ready(Ok(vec![])));
        }
        self.run(|store| async move {
            let us = store.node();
            let others: Vec<_> = store.engine().members().into_iter().filter(|(node, _)| *node != us).collect();
            let queries = others.iter().map(|(node, _)| Query::Record(snapshot(*node)));
            let mut found = store.read(std::iter::once(Query::Record(watch())).chain(queries).collect()).await?;
            let until = found.record()?.and_then(|mark| mark.time("until")).unwrap_or(found.now);
            if until.since(found.now) < WATCHED_FOR / 2 {
                let (key, end) = (watch(), Operand::after(WATCHED_FOR));
                let ops = vec![Op::Put(key.clone(), vec![("until", end.clone())]), Op::ExpireAt(key, end)];
                store.commit(Batch::on_full(vec![], ops)).await?;
            }
            let mut nodes = Vec::with_capacity(others.len());
            for (node, seen_at) in others {
                let told = found.record()?.map(|record| opened(&store, node, record.bytes("snapshot"))).transpose()?;
                nodes.push(OtherNode { node, seen_at, snapshot: told });
            }
            Ok(nodes)
        })
    }
}

fn opened(store: &Store, node: NodeId, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let sealed = Sealed::from_bytes(sealed).ok_or_else(|| StoreError::unreadable("the snapshot of a node"))?;
    store.vault().open_in_place(node.as_bytes(), sealed).map_err(|error| StoreError::Corrupt(error.to_string()))
}
