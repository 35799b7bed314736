//! The nodes of the installation. Nodes on a shared store publish a snapshot each second while somebody watches. This
//! node is read without the store and the actors, so the view works even when they hang.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::{ReceiverView, Tree};
use sakshi_domain::clock::Clock;
use sakshi_domain::time::Timestamp;
use sakshi_service::drain::Drain;
use sakshi_store::{OtherNode, Store};
use sakshi_wire::operator::nodes::{NodeState, NodesResponse, ReceiverQueue};
use tokio::time::{sleep, timeout};

use crate::COMMIT;
use crate::internal::tree_node;
use crate::telemetry::figures::Figures;

/// Interval between two snapshots.
const INTERVAL: Duration = Duration::from_secs(1);
/// Interval between checks for watchers while nobody watches.
const UNWATCHED_INTERVAL: Duration = Duration::from_secs(2);
/// Time without a heartbeat after which a node is silent.
const SILENT_AFTER: Duration = Duration::from_secs(3);
/// Timeout of reading the other nodes from the store.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of receivers listed per node.
const RECEIVERS_MAX: usize = 20;

/// Reads and publishes snapshots of the nodes.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    store: Store,
    /// The supervision tree of this node's actors.
    tree: Tree,
    /// The state of the graceful shutdown.
    drain: Drain,
    figures: Figures,
    clock: Arc<dyn Clock>,
    started_at: Timestamp,
}

impl Nodes {
    /// Starts publishing snapshots on the current arbiter, while somebody watches.
    pub(crate) fn watch(store: Store, tree: Tree, drain: Drain, figures: Figures, clock: Arc<dyn Clock>) -> Self {
        let started_at = clock.now();
        let nodes = Self { store, tree, drain, figures, clock, started_at };
        if nodes.store.is_shared() {
            let publisher = nodes.clone();
            actix_rt::spawn(async move {
                loop {
                    let is_watched = publisher.publish().await;
                    sleep(if is_watched { INTERVAL } else { UNWATCHED_INTERVAL }).await;
                }
            });
        }
        nodes
    }

    /// Publishes a snapshot if somebody watches, and returns true then.
    async fn publish(&self) -> bool {
        // While the store is unavailable nobody could read the snapshot. The failure is logged elsewhere.
        let is_watched = self.store.is_watched().await == Ok(true);
        if let (true, Ok(snapshot)) = (is_watched, serde_json::to_vec(&self.own_state())) {
            let _ = self.store.publish_snapshot(snapshot).await;
        }
        is_watched
    }

    /// Returns all nodes, oldest first.
    pub(crate) async fn all(&self) -> NodesResponse {
        let others =
            timeout(READ_TIMEOUT, self.store.watch_nodes()).await.ok().and_then(Result::ok).unwrap_or_default();
        let now = self.clock.now();
        let mut nodes: Vec<_> = others.into_iter().map(|other| other_state(other, now)).collect();
        nodes.push(NodeState { is_this: true, ..self.own_state() });
        // Nodes without a snapshot, whose start is unknown, come last.
        nodes.sort_by(|one, other| {
            (one.started_at.is_none(), one.started_at, &one.node).cmp(&(
                other.started_at.is_none(),
                other.started_at,
                &other.node,
            ))
        });
        NodesResponse { now, nodes }
    }

    /// Returns the state of this node as other nodes see it, so `is_this` is false.
    fn own_state(&self) -> NodeState {
        let (receivers, total) = self.tree.receivers(RECEIVERS_MAX);
        NodeState {
            node: self.store.node_id().to_string(),
            is_this: false,
            version: Some(format!("{} ({COMMIT})", env!("CARGO_PKG_VERSION"))),
            started_at: Some(self.started_at),
            seen_at: self.clock.now(),
            state: if self.drain.is_announced() { "draining" } else { "live" }.into(),
            live_transactions: Some(self.tree.live_transactions()),
            live_events: Some(self.tree.live_events()),
            tree: Some(tree_node(self.tree.view())),
            receivers: receivers.into_iter().map(receiver_queue).collect(),
            receivers_total: total as u64,
            figures: Some(self.figures.series()),
        }
    }
}

/// Converts the queue of webhooks for a receiver.
fn receiver_queue(view: ReceiverView) -> ReceiverQueue {
    let ReceiverView { client, origin, waiting, in_flight, oldest_s } = view;
    ReceiverQueue { origin, client_id: client, waiting: waiting as u64, in_flight: in_flight as u64, oldest_s }
}

/// Builds the state of another node from its snapshot and last heartbeat. An unreadable snapshot, perhaps of another
/// release, counts as missing.
fn other_state(other: OtherNode, now: Timestamp) -> NodeState {
    let OtherNode { node, seen_at, snapshot } = other;
    let published: Option<NodeState> = snapshot.and_then(|snapshot| serde_json::from_slice(&snapshot).ok());
    let is_silent = now.since(seen_at) > SILENT_AFTER;
    let unpublished = || NodeState {
        node: node.to_string(),
        is_this: false,
        version: None,
        started_at: None,
        seen_at,
        state: "live".into(),
        live_transactions: None,
        live_events: None,
        tree: None,
        receivers: Vec::new(),
        receivers_total: 0,
        figures: None,
    };
    let state = published.unwrap_or_else(unpublished);
    NodeState { seen_at, state: if is_silent { "silent".into() } else { state.state.clone() }, ..state }
}

#[cfg(test)]
mod tests {
    use sakshi_store::redis::NodeId;

    use super::*;

    #[test]
    fn a_node_without_heartbeats_is_silent_whatever_its_snapshot_says() {
        let node = NodeId::generate();
        let at = |seconds: i64| Timestamp::from_millis(1_000 * seconds);
        let state_at = |snapshot: Option<&str>, now| {
            other_state(
                OtherNode { node, seen_at: at(10), snapshot: snapshot.map(|text| text.as_bytes().to_vec()) },
                at(now),
            )
        };
        let unpublished = state_at(None, 13);
        assert_eq!((&*unpublished.state, unpublished.version, unpublished.node), ("live", None, node.to_string()));
        let mut snapshot = serde_json::to_value(state_at(None, 13)).unwrap();
        snapshot["state"] = "draining".into();
        snapshot["version"] = "9".into();
        let snapshot = snapshot.to_string();
        let (draining, silent) = (state_at(Some(&snapshot), 13), state_at(Some(&snapshot), 14));
        assert_eq!((&*draining.state, &*silent.state, silent.version.as_deref()), ("draining", "silent", Some("9")));
        assert_eq!(state_at(Some("{\"node\":7}"), 13).version, None, "a snapshot of another release");
    }
}
