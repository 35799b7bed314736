//! Checks the history of each webhook in a run against the model of the outbox: each change of its record and each send
//! must be a step that the model allows.
//!
//! A history has the holder, the claim and the end in the record after each commit. It has no answers, so the check
//! lets a task learn of its claim as soon as possible. It also lets a node be suspected when another one takes over
//! from it.

use std::collections::BTreeMap;

use sakshi_domain::ids::TxnId;
use sakshi_store::redis::NodeId;

use super::outbox::{Attempt, Bounds, Fault, Outbox, State, Step, Task};

/// A delivery as its record in the store shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryView {
    /// The node that is to send it, as text.
    pub holder: Option<String>,
    pub is_claimed: bool,
    pub attempt: Option<Attempt>,
}

/// An event of a run that concerns webhooks. `S` names servers whose replicas lag.
#[derive(Clone, Debug)]
pub enum Event<S> {
    /// A node has changed the webhook in the record of a transaction to this.
    Committed(TxnId, NodeId, DeliveryView),
    /// A node has sent the webhook of a transaction.
    Sent(TxnId, NodeId),
    /// The replicas of these servers receive nothing from now on.
    Lags(S),
    /// The replicas of these servers have caught up.
    CaughtUp(S),
    /// The replicas of these servers have taken over.
    FailedOver(S),
}

/// Two tasks for each node are enough: of a second one, only a panic changes something visible.
const MODEL: Outbox = Outbox {
    bounds: Bounds { nodes: 0, tasks: 2, deaths: 0, pauses: 0, mistakes: 0, lags: 0, panics: 0 },
    fault: Fault::None,
};

/// Returns a sentence for each webhook whose history has a step that the model forbids. `is_on` tells whether some
/// servers have a transaction.
pub fn forbidden_steps<S: Copy>(events: &[Event<S>], is_on: impl Fn(&TxnId, S) -> bool) -> Vec<String> {
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
    let (mut violations, mut lagging_servers) = (Vec::new(), None);
    for event in events {
        match event {
            Event::Committed(txn, ..) | Event::Sent(txn, _) => {
                let history = histories.entry(*txn).or_insert_with(|| {
                    let mut history = DeliveryHistory::new(&nodes);
                    if lagging_servers.is_some_and(|servers| is_on(txn, servers)) {
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
            Event::Lags(servers) | Event::CaughtUp(servers) | Event::FailedOver(servers) => {
                lagging_servers = matches!(event, Event::Lags(_)).then_some(*servers);
                histories
                    .iter_mut()
                    .filter(|(txn, _)| is_on(txn, *servers))
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
    fn follow<S>(&mut self, event: &Event<S>) -> Result<(), String> {
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
                self.state = next.ok_or_else(|| format!("no step of {node} leads from {before:?} to {after:?}"))?;
            }
        }
        Ok(())
    }

    /// Returns the states to which a commit of this task's node may lead, including the current one.
    fn states_after_commit(&self, task: Task) -> Vec<State> {
        let second = Task { number: 1, ..task };
        let task_steps: Vec<Vec<Step>> = vec![
            vec![Step::Queue(task.node)],
            vec![Step::Ask(task), Step::Claim(task)],
            vec![Step::Claim(task)],
            vec![Step::Settle(task)],
            vec![Step::Miss(task), Step::Settle(task)],
            vec![Step::Panic(task), Step::Settle(task)],
            vec![Step::Ask(second), Step::Panic(second), Step::Settle(second)],
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
