//! A model of the outbox: one delivery and the nodes that may attempt it.
//!
//! Nodes die, hang, resume, are suspected while they live, and attempt twice at once after a restart of their
//! dispatcher. The store has a replica that lags and takes over. Deliveries are independent, so one is enough. The
//! protocol is that of `sakshi_store`'s `transitions::delivery`; each step here is one of its batches, an answer, or a
//! fault.

use std::ops::{Index, IndexMut};

/// A node, by its number.
pub type Node = usize;

/// A task of a node that attempts the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// The node.
    pub node: Node,
    /// The number of the task on this node.
    pub number: usize,
}

/// The record of an attempt that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attempt {
    /// Given up by another node: the outcome is unknown.
    Unknown,
    /// Recorded by the node that made it.
    Known,
}

/// The delivery in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Delivery {
    /// The node that is to attempt it; `None` until it is queued.
    pub holder: Option<Node>,
    /// The node whose outbox lists it.
    pub listed: Option<Node>,
    /// The task that has claimed the attempt, and so may send.
    pub claim: Option<Task>,
    /// The recorded end of the attempt.
    pub attempt: Option<Attempt>,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// It has not begun.
    #[default]
    Idle,
    /// It has requested the claim, and retries until it is answered.
    Asking,
    /// It knows that it has the claim, and may send.
    Permitted,
    /// It has sent the webhook, or panicked, and records this end until the store confirms.
    Settling(Attempt),
    /// It was refused the claim; another task may begin in its place.
    Refused,
    /// It has ended, and knows that the end is recorded.
    Over(Attempt),
}

/// The condition of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Life {
    /// The node works.
    #[default]
    Up,
    /// The node pauses; its earlier requests may still reach the store.
    Hangs,
    /// The node is dead; its earlier requests may still reach the store.
    Dead,
}

/// A fault of the protocol, for tests of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fault {
    /// None.
    #[default]
    None,
    /// A claim ignores an existing one.
    ClaimsTwice,
    /// A node that takes over gives away claimed deliveries.
    GivesAwayClaimed,
    /// A node that takes over clears the dead node's outbox first, and moves the deliveries in another step.
    ClearsFirst,
    /// A task sends before the replica has its claim.
    SendsUnconfirmed,
    /// A node that takes over gives up ended deliveries.
    GivesUpEnded,
}

/// Bounds of a search: the nodes, their tasks, and faults of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Nodes.
    pub nodes: usize,
    /// Tasks of each node.
    pub tasks: usize,
    /// Nodes that die.
    pub deaths: u8,
    /// Pauses of nodes.
    pub pauses: u8,
    /// Nodes that are suspected while they live.
    pub mistakes: u8,
    /// Lags of the replica; each ends with a catch-up or a takeover.
    pub lags: u8,
    /// Panics of tasks that have the claim.
    pub panics: u8,
}

/// The nodes, the store and the sent webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The record in the store.
    pub store: Delivery,
    /// The replica's record, while it lags.
    pub replica: Option<Delivery>,
    /// The condition of each node.
    pub lives: Vec<Life>,
    /// Nodes that others take for dead.
    pub suspected: Vec<bool>,
    stages: Vec<Stage>,
    /// Number of webhooks sent.
    pub sent: u8,
    /// The bounds, minus the faults so far.
    remaining: Bounds,
}

/// A step of the protocol, or a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A node completes the transaction and queues its webhook.
    Queue(Node),
    /// A task requests the claim.
    Ask(Task),
    /// The store gives the task the claim.
    Claim(Task),
    /// The task learns that it has the claim.
    Hear(Task),
    /// The task learns that another has the claim, or that the delivery is another node's.
    Refuse(Task),
    /// The webhook leaves.
    Send(Task),
    /// The attempt fails before the webhook leaves.
    Miss(Task),
    /// The task panics.
    Panic(Task),
    /// The store records the end of the attempt.
    Settle(Task),
    /// The task learns that the end is recorded.
    End(Task),
    /// A node takes over from another.
    TakeOver {
        /// The suspected node.
        from: Node,
        /// The node that takes over.
        by: Node,
    },
    /// A node dies.
    Die(Node),
    /// A node hangs.
    Hang(Node),
    /// A hanging node resumes.
    Wake(Node),
    /// A node is suspected of being dead.
    Suspect(Node),
    /// The heartbeats of a suspected node are seen again.
    Trust(Node),
    /// The replica receives nothing from now on.
    Lag,
    /// The replica catches up.
    CatchUp,
    /// The replica takes over as it is.
    FailOver,
}

/// The model of the outbox's protocol.
#[derive(Clone, Copy, Debug)]
pub struct Outbox {
    /// The bounds of the search.
    pub bounds: Bounds,
    /// The planted fault.
    pub fault: Fault,
}

impl Index<Task> for State {
    type Output = Stage;

    fn index(&self, task: Task) -> &Stage {
        &self.stages[task.node * self.remaining.tasks + task.number]
    }
}

impl IndexMut<Task> for State {
    fn index_mut(&mut self, task: Task) -> &mut Stage {
        &mut self.stages[task.node * self.remaining.tasks + task.number]
    }
}

impl State {
    /// Returns the state before anything is queued.
    #[must_use]
    pub fn new(remaining: Bounds) -> Self {
        Self {
            store: Delivery::default(),
            replica: None,
            lives: vec![Life::Up; remaining.nodes],
            suspected: vec![false; remaining.nodes],
            stages: vec![Stage::Idle; remaining.nodes * remaining.tasks],
            sent: 0,
            remaining,
        }
    }

    /// Returns the tasks of this node.
    fn tasks_of(&self, node: Node) -> impl Iterator<Item = Task> + use<> {
        (0..self.remaining.tasks).map(move |number| Task { node, number })
    }

    /// Returns all tasks of all nodes.
    fn tasks(&self) -> impl Iterator<Item = Task> + use<'_> {
        (0..self.remaining.nodes).flat_map(|node| self.tasks_of(node))
    }

    /// Returns true if the end of the attempt is recorded, or all nodes are dead.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.store.attempt.is_some() || self.lives.iter().all(|life| *life == Life::Dead)
    }

    /// Returns true if the store has the known end of every task that has learned of its record.
    #[must_use]
    pub fn keeps_ends(&self) -> bool {
        self.tasks().all(|task| self[task] != Stage::Over(Attempt::Known) || self.store.attempt == Some(Attempt::Known))
    }
}

impl Outbox {
    /// Returns all possible next steps.
    #[must_use]
    pub fn steps(&self, state: &State) -> Vec<Step> {
        let nodes = 0..state.lives.len();
        let node_steps = nodes.clone().flat_map(|node| {
            [
                Step::Queue(node),
                Step::Die(node),
                Step::Hang(node),
                Step::Wake(node),
                Step::Suspect(node),
                Step::Trust(node),
            ]
        });
        let takeovers = nodes.clone().flat_map(|from| nodes.clone().map(move |by| Step::TakeOver { from, by }));
        let task_steps = state.tasks().flat_map(|task| {
            [
                Step::Ask,
                Step::Claim,
                Step::Hear,
                Step::Refuse,
                Step::Send,
                Step::Miss,
                Step::Panic,
                Step::Settle,
                Step::End,
            ]
            .map(|step| step(task))
        });
        let store_steps = [Step::Lag, Step::CatchUp, Step::FailOver];
        node_steps
            .chain(takeovers)
            .chain(task_steps)
            .chain(store_steps)
            .filter(|step| self.state_after(state, *step).is_some())
            .collect()
    }

    /// Returns the state after a step; `None` if it is impossible or changes nothing.
    #[must_use]
    pub fn state_after(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Queue(node)
            | Step::Hang(node)
            | Step::Wake(node)
            | Step::Die(node)
            | Step::Suspect(node)
            | Step::Trust(node) => {
                next.apply_node_step(node, step)?;
            }
            Step::TakeOver { from, by } => self.take_over(&mut next, from, by)?,
            Step::Lag if next.replica.is_none() && next.remaining.lags > 0 => {
                next.remaining.lags -= 1;
                next.replica = Some(next.store);
            }
            Step::CatchUp => _ = next.replica.take()?,
            Step::FailOver => next.store = next.replica.take()?,
            Step::Lag => return None,
            _ => self.apply_task_step(&mut next, step)?,
        }
        (next != *state).then_some(next)
    }

    /// Lets a node take over the delivery of a suspected one: sends it itself, or gives up a claimed attempt. The three
    /// batches of the store are one step here. Returns `None` if the step is impossible.
    fn take_over(&self, state: &mut State, from: Node, by: Node) -> Option<()> {
        let may_give_away = state.store.claim.is_none() || self.fault == Fault::GivesAwayClaimed;
        if from == by || state.lives[by] != Life::Up || !state.suspected[from] {
            return None;
        }
        let delivery = &mut state.store;
        let is_unfinished =
            delivery.holder == Some(from) && (delivery.attempt.is_none() || self.fault == Fault::GivesUpEnded);
        if self.fault == Fault::ClearsFirst && delivery.listed == Some(from) {
            delivery.listed = None;
            return Some(());
        }
        if is_unfinished && may_give_away {
            (delivery.holder, delivery.listed, delivery.claim) = (Some(by), Some(by), None);
        } else if is_unfinished {
            (delivery.attempt, delivery.listed) = (Some(Attempt::Unknown), None);
        }
        if delivery.listed == Some(from) {
            delivery.listed = None;
        }
        Some(())
    }

    /// Applies a step of a task; returns `None` if it is impossible.
    fn apply_task_step(&self, state: &mut State, step: Step) -> Option<()> {
        let (Step::Ask(task)
        | Step::Claim(task)
        | Step::Hear(task)
        | Step::Refuse(task)
        | Step::Send(task)
        | Step::Miss(task)
        | Step::Panic(task)
        | Step::Settle(task)
        | Step::End(task)) = step
        else {
            return None;
        };
        let (works, store, stage) = (state.lives[task.node] == Life::Up, state.store, state[task]);
        // The store answers once the replica has the state.
        let is_confirmed = state.replica.is_none() || self.fault == Fault::SendsUnconfirmed;
        let may_claim = store.holder == Some(task.node)
            && (store.claim.is_none() || self.fault == Fault::ClaimsTwice && store.claim != Some(task));
        match (step, stage) {
            // The node's outbox lists the delivery, and the earlier tasks have begun.
            (Step::Ask(_), Stage::Idle | Stage::Refused)
                if works && store.listed == Some(task.node) && self.is_next(state, task) =>
            {
                // A refused task does not retry while another has the claim.
                (stage == Stage::Idle || store.claim.is_none()).then_some(())?;
                state[task] = Stage::Asking;
            }
            // A request may reach the store after its node has died.
            (Step::Claim(_), Stage::Asking) if may_claim => state.store.claim = Some(task),
            (Step::Hear(_), Stage::Asking) if works && is_confirmed && store.claim == Some(task) => {
                state[task] = Stage::Permitted;
            }
            (Step::Refuse(_), Stage::Asking) if works && is_confirmed && store.claim != Some(task) && !may_claim => {
                state[task] = Stage::Refused;
            }
            (Step::Send(_), Stage::Permitted) if works => {
                state.sent += 1;
                state[task] = Stage::Settling(Attempt::Known);
            }
            (Step::Miss(_), Stage::Permitted) if works => state[task] = Stage::Settling(Attempt::Known),
            // A task that panics before it hears of a claim gives up the attempt too, which may be another task's.
            (Step::Panic(_), Stage::Permitted | Stage::Asking)
                if works && store.claim.is_some() && state.remaining.panics > 0 =>
            {
                state.remaining.panics -= 1;
                state[task] = Stage::Settling(Attempt::Unknown);
            }
            (Step::Settle(_), Stage::Settling(attempt)) if store.claim.is_some() => {
                // The first record stands, except over one that was given up.
                if store.attempt.is_none() || store.attempt == Some(Attempt::Unknown) {
                    state.store.attempt = Some(attempt);
                }
                // The task removes the delivery only from its own node's outbox.
                if store.listed == Some(task.node) {
                    state.store.listed = None;
                }
            }
            (Step::End(_), Stage::Settling(attempt))
                if works
                    && is_confirmed
                    && store.attempt.is_some_and(|recorded| recorded == attempt || recorded == Attempt::Known) =>
            {
                state[task] = Stage::Over(attempt);
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns true if the node's tasks before this one have begun. Tasks are alike, so one order of them is enough.
    fn is_next(&self, state: &State, task: Task) -> bool {
        state.tasks_of(task.node).take(task.number).all(|before| state[before] != Stage::Idle)
    }
}

impl State {
    /// Applies a step of a node; returns `None` if it is impossible.
    fn apply_node_step(&mut self, node: Node, step: Step) -> Option<()> {
        let life = self.lives[node];
        match step {
            Step::Queue(_)
                if life == Life::Up
                    && self.store.holder.is_none()
                    && self.replica.is_none_or(|delivery| delivery.holder.is_none()) =>
            {
                self.store = Delivery { holder: Some(node), listed: Some(node), claim: None, attempt: None };
            }
            Step::Die(_) if life != Life::Dead => {
                self.remaining.deaths = self.remaining.deaths.checked_sub(1)?;
                self.lives[node] = Life::Dead;
            }
            Step::Hang(_) if life == Life::Up => {
                self.remaining.pauses = self.remaining.pauses.checked_sub(1)?;
                self.lives[node] = Life::Hangs;
            }
            Step::Wake(_) if life == Life::Hangs => self.lives[node] = Life::Up,
            Step::Suspect(_) if !self.suspected[node] => {
                if life == Life::Up {
                    self.remaining.mistakes = self.remaining.mistakes.checked_sub(1)?;
                }
                self.suspected[node] = true;
            }
            // A node that was suspected by mistake keeps its number.
            Step::Trust(_) if self.suspected[node] && life == Life::Up => self.suspected[node] = false,
            _ => return None,
        }
        Some(())
    }
}
