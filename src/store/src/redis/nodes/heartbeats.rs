//! Detection of dead nodes. No time is measured here: a node is dead when its heartbeat stays the same over several of
//! our own that reached Redis. So neither an outage of Redis nor a pause of this node makes another node look dead.

use std::collections::{HashMap, HashSet};

use crate::redis::options::NodeId;

/// A node is dead when its heartbeat has not changed in this many rounds.
const MISSED_MAX: u32 = 5;

/// The heartbeat that a node sends last, when it leaves.
pub(crate) const LAST_HEARTBEAT: &str = "0";

/// The heartbeats seen so far.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats {
    latest: HashMap<NodeId, Latest>,
    /// Nodes that had deliveries and no heartbeat at the last check.
    without_heartbeat: HashSet<NodeId>,
}

/// The latest heartbeat of a node.
#[derive(Debug)]
struct Latest {
    heartbeat: String,
    /// Number of rounds in which the heartbeat has not changed.
    missed_rounds: u32,
}

/// A dead node, and its last heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadNode {
    pub(crate) node: NodeId,
    /// Its last heartbeat; `None` for a node without one.
    pub(crate) heartbeat: Option<String>,
}

impl Heartbeats {
    /// Records a round: the heartbeats of all nodes at the time of one of ours. Returns the nodes that have left or
    /// have missed too many rounds.
    pub(crate) fn record(&mut self, us: NodeId, round: Vec<(NodeId, String)>) -> Vec<DeadNode> {
        let mut dead = Vec::new();
        let mut latest = HashMap::with_capacity(round.len());
        for (node, heartbeat) in round {
            let missed_rounds = match self.latest.get(&node) {
                Some(before) if before.heartbeat == heartbeat => before.missed_rounds + 1,
                _ => 0,
            };
            if node != us && (missed_rounds >= MISSED_MAX || heartbeat == LAST_HEARTBEAT) {
                dead.push(DeadNode { node, heartbeat: Some(heartbeat.clone()) });
            }
            latest.insert(node, Latest { heartbeat, missed_rounds });
        }
        self.latest = latest;
        dead
    }

    /// Records a check of the nodes that hold deliveries. Returns the nodes without a heartbeat at this check and
    /// at the previous one: a live node sends a heartbeat between two checks.
    pub(crate) fn record_holders(&mut self, us: NodeId, holders: impl IntoIterator<Item = NodeId>) -> Vec<DeadNode> {
        let without_heartbeat: HashSet<NodeId> =
            holders.into_iter().filter(|node| *node != us && !self.latest.contains_key(node)).collect();
        let dead = without_heartbeat
            .intersection(&self.without_heartbeat)
            .map(|&node| DeadNode { node, heartbeat: None })
            .collect();
        self.without_heartbeat = without_heartbeat;
        dead
    }
}

#[cfg(test)]
mod tests {
    use super::{DeadNode, Heartbeats};
    use crate::redis::options::NodeId;

    /// Returns a round with these heartbeats.
    fn round(heartbeats: &[(NodeId, u64)]) -> Vec<(NodeId, String)> {
        heartbeats.iter().map(|(node, heartbeat)| (*node, heartbeat.to_string())).collect()
    }

    #[test]
    fn a_node_is_dead_after_five_missed_rounds_and_not_before() {
        let (us, other) = (NodeId::generate(), NodeId::generate());
        let mut heartbeats = Heartbeats::default();
        for beat in 1..=5 {
            assert_eq!(heartbeats.record(us, round(&[(us, beat), (other, 100)])), []);
        }
        let dead = DeadNode { node: other, heartbeat: Some("100".into()) };
        assert_eq!(heartbeats.record(us, round(&[(us, 6), (other, 100)])), [dead]);
    }

    #[test]
    fn a_heartbeat_at_the_last_moment_keeps_a_node_alive() {
        let (us, other) = (NodeId::generate(), NodeId::generate());
        let mut heartbeats = Heartbeats::default();
        for beat in 1..=40 {
            assert_eq!(heartbeats.record(us, round(&[(us, beat), (other, 1 + beat / 5)])), []);
        }
    }

    #[test]
    fn a_node_that_left_is_dead_at_once_and_this_node_never_is() {
        let (us, other) = (NodeId::generate(), NodeId::generate());
        let mut heartbeats = Heartbeats::default();
        assert_eq!(
            heartbeats.record(us, round(&[(us, 0), (other, 0)])),
            [DeadNode { node: other, heartbeat: Some("0".into()) }]
        );
        for _ in 0..10 {
            assert_eq!(heartbeats.record(us, round(&[(us, 7)])), []);
        }
    }

    #[test]
    fn a_node_that_holds_deliveries_without_a_heartbeat_in_two_checks_is_dead() {
        let (us, alive, stray) = (NodeId::generate(), NodeId::generate(), NodeId::generate());
        let mut heartbeats = Heartbeats::default();
        heartbeats.record(us, round(&[(us, 1), (alive, 1)]));
        assert_eq!(heartbeats.record_holders(us, [us, alive, stray]), []);
        assert_eq!(heartbeats.record_holders(us, [us, alive, stray]), [DeadNode { node: stray, heartbeat: None }]);
        assert_eq!(heartbeats.record_holders(us, [alive]), []);
        assert_eq!(heartbeats.record_holders(us, [stray]), []);
    }
}
