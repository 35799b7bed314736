//! Who of the others is gone, by their beats and our own. No time is measured here: a beat of ours
//! that arrived is the only clock, so an outage of Redis and a pause of our own let nobody die.

use std::collections::{HashMap, HashSet};

use super::NodeId;

/// Beats of ours during which another's has not moved until it counts as gone.
const SILENT: u32 = 5;

/// The beat of a node that has left.
const LEFT: &str = "0";

/// What our beats have shown so far.
#[derive(Debug, Default)]
pub(super) struct Peers {
    seen: HashMap<NodeId, Seen>,
    /// Held something without a beat when last looked.
    strays: HashSet<NodeId>,
}

#[derive(Debug)]
struct Seen {
    beat: String,
    silent: u32,
}

/// A node that is gone, and its last beat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) node: NodeId,
    /// `None` for one that had none.
    pub(super) beat: Option<String>,
}

impl Peers {
    /// After a beat of ours: how all of them stand now. Who is gone by it.
    pub(super) fn stand(&mut self, us: NodeId, beats: Vec<(NodeId, String)>) -> Vec<Gone> {
        let mut gone = Vec::new();
        let mut seen = HashMap::with_capacity(beats.len());
        for (node, beat) in beats {
            let silent = match self.seen.get(&node) {
                Some(before) if before.beat == beat => before.silent + 1,
                _ => 0,
            };
            if node != us && (silent >= SILENT || beat == LEFT) {
                gone.push(Gone { node, beat: Some(beat.clone()) });
            }
            seen.insert(node, Seen { beat, silent });
        }
        self.seen = seen;
        gone
    }

    /// Who holds something and has no beat, now as at the last look: gone for longer than anyone
    /// takes to beat.
    pub(super) fn strays(&mut self, us: NodeId, holders: impl IntoIterator<Item = NodeId>) -> Vec<Gone> {
        let now: HashSet<NodeId> = holders.into_iter().filter(|node| *node != us && !self.seen.contains_key(node)).collect();
        let gone = now.intersection(&self.strays).map(|&node| Gone { node, beat: None }).collect();
        self.strays = now;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::{Gone, NodeId, Peers};

    fn beats(of: &[(NodeId, u64)]) -> Vec<(NodeId, String)> {
        of.iter().map(|(node, beat)| (*node, beat.to_string())).collect()
    }

    #[test]
    fn a_node_is_gone_when_it_was_silent_for_five_beats_of_ours_and_not_before() {
        let (us, other) = (NodeId::generate(), NodeId::generate());
        let mut peers = Peers::default();
        for beat in 1..=5 {
            assert_eq!(peers.stand(us, beats(&[(us, beat), (other, 100)])), []);
        }
        let gone = Gone { node: other, beat: Some("100".into()) };
        assert_eq!(peers.stand(us, beats(&[(us, 6), (other, 100)])), [gone]);
    }

    #[test]
    fn a_beat_at_the_last_moment_is_life() {
        let (us, other) = (NodeId::generate(), NodeId::generate());
        let mut peers = Peers::default();
        for beat in 1..=40 {
            assert_eq!(peers.stand(us, beats(&[(us, beat), (other, 1 + beat / 5)])), []);
        }
    }

    #[test]
    fn who_has_left_is_gone_at_once_and_we_never_are() {
        let (us, other) = (NodeId::generate(), NodeId::generate());
        let mut peers = Peers::default();
        assert_eq!(peers.stand(us, beats(&[(us, 0), (other, 0)])), [Gone { node: other, beat: Some("0".into()) }]);
        for _ in 0..10 {
            assert_eq!(peers.stand(us, beats(&[(us, 7)])), []);
        }
    }

    #[test]
    fn who_holds_something_and_has_no_beat_at_two_looks_is_gone() {
        let (us, alive, stray) = (NodeId::generate(), NodeId::generate(), NodeId::generate());
        let mut peers = Peers::default();
        peers.stand(us, beats(&[(us, 1), (alive, 1)]));
        assert_eq!(peers.strays(us, [us, alive, stray]), []);
        assert_eq!(peers.strays(us, [us, alive, stray]), [Gone { node: stray, beat: None }]);
        assert_eq!(peers.strays(us, [alive]), []);
        assert_eq!(peers.strays(us, [stray]), []);
    }
}
