//! Checks the history of each webhook in a run against the model of the outbox: each change of its record and each send
//! must be a step that the model allows.
//!
//! A history has the holder, the claim and the end in the record after each commit. It has no answers, so the check
//! lets a task learn of its claim as soon as possible. It also lets a node be suspected when another one takes over
//! from it.

use std::collections::BTreeMap;

use sakshi_domain::ids::TxnId;
use sakshi_store::engine::Place;
use sakshi_store::redis::NodeId;

use crate::replication::Shards;
use crate::shape::Deployment;

use super::outbox::{Attempt, Bounds, Fault, Outbox, State, Step, Task};

/// A delivery as its record in the store shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeliveryView {
    /// The node that is to send it, as text.
    pub(crate) holder: Option<String>,
    pub(crate) is_claimed: bool,
    pub(crate) attempt: Option<Attempt>,
}

/// An event of a run that concerns webhooks.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A node has changed the webhook in the record of a transaction to this.
    Committed(TxnId, NodeId, DeliveryView),
    /// A node has sent the webhook of a transaction.
    Sent(TxnId, NodeId),
    /// The replicas of these shards receive nothing from now on.
    Lags(Shards),
    /// The replicas of these shards have caught up.
    CaughtUp(Shards),
    /// The replicas of these shards have taken over.
    FailedOver(Shards),
}

/// One task for each node is enough: a second task of a delivery changes nothing visible.
const MODEL: Outbox = Outbox {
    bounds: Bounds { nodes: 0, tasks: 1, deaths: 0, pauses: 0, mistakes: 0, lags: 0, panics: 0 },
    fault: Fault::None,
};

/// Returns a sentence for each webhook whose history has a step that the model forbids.
pub(crate) fn forbidden_steps(deployment: Deployment, events: &[Event]) -> Vec<String> {
    let mut nodes: Vec<NodeId> = events
        .iter()
        .filter_map(|event| match event {
            Event::Committed(_, node, _) | Event::Sent(_, node) => Some(*node),
            _ => None,
        })
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut histories: BTreeMap<TxnId, DeliveryHistory<'_>> = BTreeMap::new();
    let is_on = |txn: &TxnId, shards: Shards| {
        Shards::of_key(deployment, Place::Partition(txn.partition()), txn.as_bytes()).intersects(shards)
    };
    let (mut violations, mut lagging_shards) = (Vec::new(), None);
    for event in events {
        match event {
            Event::Committed(txn, ..) | Event::Sent(txn, _) => {
                let history = histories.entry(*txn).or_insert_with(|| {
                    let mut history = DeliveryHistory::new(&nodes);
                    if lagging_shards.is_some_and(|shards| is_on(txn, shards)) {
                        history.try_step(Step::Lag);
                    }
                    history
                });
                if let Err(violation) = history.follow(event) {
                    violations.push(format!("{txn}: {violation}"));
                    // The model's state no longer matches, so further events are not checked.
                    *history = DeliveryHistory { is_abandoned: true, ..DeliveryHistory::new(&nodes) };
                }
            }
            Event::Lags(shards) | Event::CaughtUp(shards) | Event::FailedOver(shards) => {
                lagging_shards = matches!(event, Event::Lags(_)).then_some(*shards);
                histories
                    .iter_mut()
                    .filter(|(txn, _)| is_on(txn, *shards))
                    .for_each(|(_, history)| _ = history.follow(event));
            }
        }
    }
    violations
}

/// The history of one delivery so far, as a state of the model.
struct DeliveryHistory<'a> {
    /// The nodes of the run; a node's index is its number in the model.
    nodes: &'a [NodeId],
    state: State,
    /// True after a forbidden step: further events are ignored.
    is_abandoned: bool,
}

impl<'a> DeliveryHistory<'a> {
    fn new(nodes: &'a [NodeId]) -> Self {
        let unlimited = u8::MAX;
        let bounds = Bounds {
            nodes: nodes.len(),
            deaths: unlimited,
            pauses: unlimited,
            mistakes: unlimited,
            lags: unlimited,
            panics: unlimited,
            ..MODEL.bounds
        };
        Self { nodes, state: State::new(bounds), is_abandoned: false }
    }

    /// Returns the task of a node in the model.
    fn task(&self, node: NodeId) -> Task {
        Task { node: self.nodes.binary_search(&node).expect("a node of the run"), number: 0 }
    }

    /// Makes a step if the model allows it. Returns true if it does.
    fn try_step(&mut self, step: Step) -> bool {
        let next = MODEL.state_after(&self.state, step);
        let is_allowed = next.is_some();
        self.state = next.unwrap_or_else(|| self.state.clone());
        is_allowed
    }

    /// Follows an event. Returns a sentence if the model forbids it.
    fn follow(&mut self, event: &Event) -> Result<(), String> {
        if self.is_abandoned {
            return Ok(());
        }
        for node in 0..self.nodes.len() {
            self.try_step(Step::Hear(Task { node, number: 0 }));
        }
        match event {
            Event::Lags(_) => _ = self.try_step(Step::Lag),
            Event::CaughtUp(_) => _ = self.try_step(Step::CatchUp),
            Event::FailedOver(_) => _ = self.try_step(Step::FailOver),
            Event::Sent(_, node) => {
                let task = self.task(*node);
                if !self.try_step(Step::Send(task)) {
                    return Err(format!("its webhook left although its node was {:?}", self.state[task]));
                }
            }
            Event::Committed(_, node, after) => {
                let (before, task) = (view_of(self.nodes, &self.state), self.task(*node));
                let next =
                    self.states_after_commit(task).into_iter().find(|state| view_of(self.nodes, state) == *after);
                self.state = next.ok_or_else(|| format!("no step leads from {before:?} to {after:?}"))?;
            }
        }
        Ok(())
    }

    /// Returns the states to which a commit of this task's node may lead, including the current one.
    fn states_after_commit(&self, task: Task) -> Vec<State> {
        let task_steps: Vec<Vec<Step>> = vec![
            vec![Step::Queue(task.node)],
            vec![Step::Ask(task), Step::Claim(task)],
            vec![Step::Claim(task)],
            vec![Step::Settle(task)],
            vec![Step::Miss(task), Step::Settle(task)],
            vec![Step::Panic(task), Step::Settle(task)],
        ];
        let takeovers = (0..self.nodes.len())
            .map(|from| vec![Step::Suspect(from), Step::TakeOver { from, by: task.node }, Step::Trust(from)]);
        let mut reachable = vec![self.state.clone()];
        for steps in task_steps.into_iter().chain(takeovers) {
            let mut state = self.state.clone();
            let mut is_allowed = true;
            for step in steps {
                match MODEL.state_after(&state, step) {
                    Some(next) => state = next,
                    // The node may be suspected before and after.
                    None if matches!(step, Step::Suspect(_) | Step::Trust(_)) => {}
                    None => is_allowed = false,
                }
            }
            if is_allowed {
                reachable.push(state);
            }
        }
        reachable
    }
}

/// Returns the delivery of a model's state, as its record would show it.
fn view_of(nodes: &[NodeId], state: &State) -> DeliveryView {
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

    fn view(holder: NodeId, is_claimed: bool, attempt: Option<Attempt>) -> DeliveryView {
        DeliveryView { holder: Some(holder.to_string()), is_claimed, attempt }
    }

    #[test]
    fn a_history_that_the_model_allows_is_accepted_and_another_is_refused() {
        let (txn, one, other) = (TxnId::from_bytes([1; 16]), NodeId::generate(), NodeId::generate());
        let shard = Shards::with_number(Deployment::Shared, 0);
        let commit = |node: NodeId, view: DeliveryView| Event::Committed(txn, node, view);
        let [unclaimed, claimed] = [false, true];
        let queue = commit(one, view(one, unclaimed, None));
        let claim = commit(one, view(one, claimed, None));
        let record = commit(one, view(one, claimed, Some(Attempt::Known)));
        let give_up = commit(other, view(one, claimed, Some(Attempt::Unknown)));
        let take_over = commit(other, view(other, unclaimed, None));
        let send = |node| Event::Sent(txn, node);
        for history in [
            vec![queue.clone(), claim.clone(), send(one), record.clone()],
            vec![queue.clone(), claim.clone(), give_up.clone(), send(one), record.clone()],
            vec![queue.clone(), take_over.clone(), commit(other, view(other, claimed, None)), send(other)],
            // The claim was lost with the old master, and nobody had heard of it.
            vec![queue.clone(), Event::Lags(shard), claim.clone(), Event::FailedOver(shard), take_over.clone()],
        ] {
            assert_eq!(forbidden_steps(Deployment::Shared, &history), [""; 0]);
        }
        for history in [
            vec![queue.clone(), send(one)],
            vec![queue.clone(), claim.clone(), send(one), send(one)],
            vec![queue.clone(), claim.clone(), send(other)],
            vec![queue.clone(), Event::Lags(shard), claim.clone(), send(one)],
            vec![queue.clone(), claim.clone(), take_over],
            vec![queue.clone(), record.clone()],
            vec![queue, claim, send(one), record, give_up],
        ] {
            assert_eq!(forbidden_steps(Deployment::Shared, &history).len(), 1, "{history:?}");
        }
    }
}
