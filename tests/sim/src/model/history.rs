//! Checks what a run did with each webhook against the model of the outbox: each record change and each send must be a
//! step that the model allows.
//!
//! Holder, claim and end of a record are seen after each commit. Answers are not seen: a task hears of its claim as
//! soon as possible. Nodes that are taken over are those suspected by others.

use std::collections::BTreeMap;

use sakshi_domain::ids::TxnId;
use sakshi_store::engine::Place;
use sakshi_store::redis::NodeId;

use crate::replication::Shards;
use crate::shape::Deployment;

use super::outbox::{Attempt, Bounds, Fault, Outbox, State, Step, Task};

/// A delivery as its record shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeliveryView {
    /// The node that is to send it, as text.
    pub(crate) holder: Option<String>,
    pub(crate) is_claimed: bool,
    pub(crate) attempt: Option<Attempt>,
}

/// An event of a run.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A node has changed the record of a transaction to this.
    Committed(TxnId, NodeId, DeliveryView),
    /// A node has sent its webhook.
    Sent(TxnId, NodeId),
    /// The replicas of these shards receive nothing from now on.
    Lags(Shards),
    /// They have caught up.
    CaughtUp(Shards),
    /// They have taken over.
    FailedOver(Shards),
}

/// One task for each node is enough: a second task of a delivery changes nothing visible.
const MODEL: Outbox = Outbox {
    bounds: Bounds { nodes: 0, tasks: 1, deaths: 0, pauses: 0, mistakes: 0, lags: 0, panics: 0 },
    fault: Fault::None,
};

/// Returns the transactions whose webhooks took steps that the model forbids.
pub(crate) fn strays(deployment: Deployment, events: &[Event]) -> Vec<String> {
    let mut nodes: Vec<NodeId> = events
        .iter()
        .filter_map(|event| match event {
            Event::Committed(_, node, _) | Event::Sent(_, node) => Some(*node),
            _ => None,
        })
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut courses: BTreeMap<TxnId, Course<'_>> = BTreeMap::new();
    let is_of = |txn: &TxnId, shards: Shards| {
        Shards::one(deployment, Place::Partition(txn.partition()), txn.as_bytes()).meet(shards)
    };
    let (mut found, mut lag) = (Vec::new(), None);
    for event in events {
        match event {
            Event::Committed(txn, ..) | Event::Sent(txn, _) => {
                let course = courses.entry(*txn).or_insert_with(|| {
                    let mut course = Course::new(&nodes);
                    if lag.is_some_and(|shards| is_of(txn, shards)) {
                        course.make(Step::Lag);
                    }
                    course
                });
                if let Err(why) = course.follow(event) {
                    found.push(format!("{txn}: {why}"));
                    // Nothing is known of it from here on.
                    *course = Course { is_lost: true, ..Course::new(&nodes) };
                }
            }
            Event::Lags(shards) | Event::CaughtUp(shards) | Event::FailedOver(shards) => {
                lag = matches!(event, Event::Lags(_)).then_some(*shards);
                courses
                    .iter_mut()
                    .filter(|(txn, _)| is_of(txn, *shards))
                    .for_each(|(_, course)| _ = course.follow(event));
            }
        }
    }
    found
}

/// The model's view of one delivery.
struct Course<'a> {
    nodes: &'a [NodeId],
    state: State,
    is_lost: bool,
}

impl<'a> Course<'a> {
    fn new(nodes: &'a [NodeId]) -> Self {
        let most = u8::MAX;
        let bounds = Bounds {
            nodes: nodes.len(),
            deaths: most,
            pauses: most,
            mistakes: most,
            lags: most,
            panics: most,
            ..MODEL.bounds
        };
        Self { nodes, state: State::new(bounds), is_lost: false }
    }

    fn task(&self, node: NodeId) -> Task {
        Task { node: self.nodes.binary_search(&node).expect("a node of the run"), number: 0 }
    }

    /// Makes a step if the model allows it.
    fn make(&mut self, step: Step) -> bool {
        let next = MODEL.after(&self.state, step);
        let is_allowed = next.is_some();
        self.state = next.unwrap_or_else(|| self.state.clone());
        is_allowed
    }

    fn follow(&mut self, event: &Event) -> Result<(), String> {
        if self.is_lost {
            return Ok(());
        }
        for node in 0..self.nodes.len() {
            self.make(Step::Hear(Task { node, number: 0 }));
        }
        match event {
            Event::Lags(_) => _ = self.make(Step::Lag),
            Event::CaughtUp(_) => _ = self.make(Step::CatchUp),
            Event::FailedOver(_) => _ = self.make(Step::FailOver),
            Event::Sent(_, node) => {
                let task = self.task(*node);
                if !self.make(Step::Send(task)) {
                    return Err(format!("its webhook left although its node was {:?}", self.state[task]));
                }
            }
            Event::Committed(_, node, seen) => {
                let (before, task) = (self.seen(), self.task(*node));
                let reached = self.courses(task).into_iter().find(|state| as_seen(self.nodes, state) == *seen);
                self.state = reached.ok_or_else(|| format!("no step leads from {before:?} to {seen:?}"))?;
            }
        }
        Ok(())
    }

    fn seen(&self) -> DeliveryView {
        as_seen(self.nodes, &self.state)
    }

    /// Returns the states to which a commit of this node may lead, including the unchanged one.
    fn courses(&self, task: Task) -> Vec<State> {
        let attempts: Vec<Vec<Step>> = vec![
            vec![Step::Queue(task.node)],
            vec![Step::Ask(task), Step::Claim(task)],
            vec![Step::Claim(task)],
            vec![Step::Settle(task)],
            vec![Step::Miss(task), Step::Settle(task)],
            vec![Step::Panic(task), Step::Settle(task)],
        ];
        let taken = (0..self.nodes.len())
            .map(|from| vec![Step::Suspect(from), Step::TakeOver { from, by: task.node }, Step::Trust(from)]);
        let mut reached = vec![self.state.clone()];
        for steps in attempts.into_iter().chain(taken) {
            let mut state = self.state.clone();
            let mut is_allowed = true;
            for step in steps {
                match MODEL.after(&state, step) {
                    Some(next) => state = next,
                    // A node may already be suspected, or suspected again.
                    None if matches!(step, Step::Suspect(_) | Step::Trust(_)) => {}
                    None => is_allowed = false,
                }
            }
            if is_allowed {
                reached.push(state);
            }
        }
        reached
    }
}

fn as_seen(nodes: &[NodeId], state: &State) -> DeliveryView {
    let delivery = state.store;
    DeliveryView {
        holder: delivery.holder.map(|node| nodes[node].to_string()),
        is_claimed: delivery.claim.is_some(),
        attempt: delivery.attempt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(holder: NodeId, is_claimed: bool, attempt: Option<Attempt>) -> DeliveryView {
        DeliveryView { holder: Some(holder.to_string()), is_claimed, attempt }
    }

    #[test]
    fn a_course_that_the_model_has_is_followed_and_another_is_not() {
        let (txn, one, other) = (TxnId::from_bytes([1; 16]), NodeId::generate(), NodeId::generate());
        let shard = Shards::picked(Deployment::Shared, 0);
        let commit = |node: NodeId, seen: DeliveryView| Event::Committed(txn, node, seen);
        let queued = commit(one, seen(one, false, None));
        let claimed = commit(one, seen(one, true, None));
        let known = commit(one, seen(one, true, Some(Attempt::Known)));
        let given_up = commit(other, seen(one, true, Some(Attempt::Unknown)));
        let given_away = commit(other, seen(other, false, None));
        let sent = |node| Event::Sent(txn, node);
        for course in [
            vec![queued.clone(), claimed.clone(), sent(one), known.clone()],
            vec![queued.clone(), claimed.clone(), given_up.clone(), sent(one), known.clone()],
            vec![queued.clone(), given_away.clone(), commit(other, seen(other, true, None)), sent(other)],
            // The claim was lost with the old master, and nobody had heard of it.
            vec![queued.clone(), Event::Lags(shard), claimed.clone(), Event::FailedOver(shard), given_away.clone()],
        ] {
            assert_eq!(strays(Deployment::Shared, &course), [""; 0]);
        }
        for course in [
            vec![queued.clone(), sent(one)],
            vec![queued.clone(), claimed.clone(), sent(one), sent(one)],
            vec![queued.clone(), claimed.clone(), sent(other)],
            vec![queued.clone(), Event::Lags(shard), claimed.clone(), sent(one)],
            vec![queued.clone(), claimed.clone(), given_away],
            vec![queued.clone(), known.clone()],
            vec![queued, claimed, sent(one), known, given_up],
        ] {
            assert_eq!(strays(Deployment::Shared, &course).len(), 1, "{course:?}");
        }
    }
}
