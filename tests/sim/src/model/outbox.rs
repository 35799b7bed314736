//! A model of the outbox: one delivery and the nodes that may attempt it.
//!
//! Nodes die, hang, resume, are suspected while they live, and attempt twice at once after a restart of their
//! dispatcher. The store has a replica that lags and takes over. Deliveries are independent, so one is enough. The
//! protocol is that of `sakshi_store`'s `transitions::delivery`; each step here is one of its batches, an answer, or a
//! fault.

use std::ops::{Index, IndexMut};

/// A node, by its number.
pub type Node = usize;

/// An attempt of a node: one of its tasks.
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
    /// Given up: the outcome is unknown.
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
    /// The task that has the permission.
    pub claim: Option<Task>,
    /// The end of its attempt.
    pub attempt: Option<Attempt>,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// It has not begun.
    #[default]
    Idle,
    /// It has asked for the permission, and retries until it is answered.
    Asking,
    /// It has the permission.
    Permitted,
    /// It has sent the webhook, or panicked, and records this end until the store confirms.
    Settling(Attempt),
    /// It was refused; another may begin in its place.
    Refused,
    /// It has ended, and knows that the end is recorded.
    Over(Attempt),
}

/// The condition of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Life {
    /// It works.
    #[default]
    Up,
    /// It pauses; its earlier requests may still reach the store.
    Hangs,
    /// It is dead; its earlier requests may still reach the store.
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
    /// Panics of tasks that have the permission.
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
    /// Remaining bounds.
    left: Bounds,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A node completes the transaction and queues its webhook.
    Queue(Node),
    /// A task asks for the permission.
    Ask(Task),
    /// The store gives it.
    Claim(Task),
    /// The task learns of it.
    Hear(Task),
    /// The task learns that another has it, or that the delivery is not its node's.
    Refuse(Task),
    /// The webhook leaves.
    Send(Task),
    /// The attempt fails before the webhook leaves.
    Miss(Task),
    /// The task panics.
    Panic(Task),
    /// The store records the end.
    Settle(Task),
    /// The task learns that it has.
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
    /// Its heartbeats are seen again.
    Trust(Node),
    /// The replica receives nothing from now on.
    Lag,
    /// The replica catches up.
    CatchUp,
    /// The replica takes over as it is.
    FailOver,
}

/// The protocol.
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
        &self.stages[task.node * self.left.tasks + task.number]
    }
}

impl IndexMut<Task> for State {
    fn index_mut(&mut self, task: Task) -> &mut Stage {
        &mut self.stages[task.node * self.left.tasks + task.number]
    }
}

impl State {
    /// Returns the state before anything is queued.
    #[must_use]
    pub fn new(left: Bounds) -> Self {
        Self {
            store: Delivery::default(),
            replica: None,
            lives: vec![Life::Up; left.nodes],
            suspected: vec![false; left.nodes],
            stages: vec![Stage::Idle; left.nodes * left.tasks],
            sent: 0,
            left,
        }
    }

    /// Returns the tasks of this node.
    fn tasks_of(&self, node: Node) -> impl Iterator<Item = Task> + use<> {
        (0..self.left.tasks).map(move |number| Task { node, number })
    }

    fn tasks(&self) -> impl Iterator<Item = Task> + use<'_> {
        (0..self.left.nodes).flat_map(|node| self.tasks_of(node))
    }

    /// Returns true if the attempt has ended, or no task is left to make it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.store.attempt.is_some() || self.lives.iter().all(|life| *life == Life::Dead)
    }

    /// Returns true if every end that a task knows to be recorded is recorded.
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
        let of_nodes = nodes.clone().flat_map(|node| {
            [
                Step::Queue(node),
                Step::Die(node),
                Step::Hang(node),
                Step::Wake(node),
                Step::Suspect(node),
                Step::Trust(node),
            ]
        });
        let pairs = nodes.clone().flat_map(|from| nodes.clone().map(move |by| Step::TakeOver { from, by }));
        let of_tasks = state.tasks().flat_map(|task| {
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
        let of_store = [Step::Lag, Step::CatchUp, Step::FailOver];
        of_nodes
            .chain(pairs)
            .chain(of_tasks)
            .chain(of_store)
            .filter(|step| self.after(state, *step).is_some())
            .collect()
    }

    /// Returns the state after a step; `None` if it is impossible or changes nothing.
    #[must_use]
    pub fn after(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Queue(node)
            | Step::Hang(node)
            | Step::Wake(node)
            | Step::Die(node)
            | Step::Suspect(node)
            | Step::Trust(node) => {
                next.of_node(node, step)?;
            }
            Step::TakeOver { from, by } => self.take_over(&mut next, from, by)?,
            Step::Lag if next.replica.is_none() && next.left.lags > 0 => {
                next.left.lags -= 1;
                next.replica = Some(next.store);
            }
            Step::CatchUp => _ = next.replica.take()?,
            Step::FailOver => next.store = next.replica.take()?,
            Step::Lag => return None,
            _ => self.of_task(&mut next, step)?,
        }
        (next != *state).then_some(next)
    }

    /// Applies the three batches for a delivery of a suspected node, together.
    fn take_over(&self, state: &mut State, from: Node, by: Node) -> Option<()> {
        let waits = state.store.claim.is_none() || self.fault == Fault::GivesAwayClaimed;
        if from == by || state.lives[by] != Life::Up || !state.suspected[from] {
            return None;
        }
        let delivery = &mut state.store;
        let is_of_dead =
            delivery.holder == Some(from) && (delivery.attempt.is_none() || self.fault == Fault::GivesUpEnded);
        if self.fault == Fault::ClearsFirst && delivery.listed == Some(from) {
            delivery.listed = None;
            return Some(());
        }
        if is_of_dead && waits {
            (delivery.holder, delivery.listed, delivery.claim) = (Some(by), Some(by), None);
        } else if is_of_dead {
            (delivery.attempt, delivery.listed) = (Some(Attempt::Unknown), None);
        }
        if delivery.listed == Some(from) {
            delivery.listed = None;
        }
        Some(())
    }

    fn of_task(&self, state: &mut State, step: Step) -> Option<()> {
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
        // An answer arrives once the replica has its content.
        let is_confirmed = state.replica.is_none() || self.fault == Fault::SendsUnconfirmed;
        let may_claim = store.holder == Some(task.node)
            && (store.claim.is_none() || self.fault == Fault::ClaimsTwice && store.claim != Some(task));
        match (step, stage) {
            // The outbox lists it, and no other task of the node has it queued.
            (Step::Ask(_), Stage::Idle | Stage::Refused)
                if works && store.listed == Some(task.node) && self.is_next(state, task) =>
            {
                // A claim that would be refused at once is not tried again.
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
            (Step::Panic(_), Stage::Permitted) if works && state.left.panics > 0 => {
                state.left.panics -= 1;
                state[task] = Stage::Settling(Attempt::Unknown);
            }
            (Step::Settle(_), Stage::Settling(attempt)) if store.claim.is_some() => {
                // The first record stands, except over one that was given up.
                if store.attempt.is_none() || store.attempt == Some(Attempt::Unknown) {
                    state.store.attempt = Some(attempt);
                }
                // Only out of its own outbox.
                if store.listed == Some(task.node) {
                    state.store.listed = None;
                }
            }
            (Step::End(_), Stage::Settling(attempt))
                if works
                    && is_confirmed
                    && store.attempt.is_some_and(|kept| kept == attempt || kept == Attempt::Known) =>
            {
                state[task] = Stage::Over(attempt);
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns true if the tasks before this one have begun. Tasks are alike, so their orders need not all be tried.
    fn is_next(&self, state: &State, task: Task) -> bool {
        state.tasks_of(task.node).take(task.number).all(|before| state[before] != Stage::Idle)
    }
}

impl State {
    fn of_node(&mut self, node: Node, step: Step) -> Option<()> {
        let life = self.lives[node];
        match step {
            Step::Queue(_)
                if life == Life::Up
                    && self.store.holder.is_none()
                    && self.replica.is_none_or(|kept| kept.holder.is_none()) =>
            {
                self.store = Delivery { holder: Some(node), listed: Some(node), claim: None, attempt: None };
            }
            Step::Die(_) if life != Life::Dead => {
                self.left.deaths = self.left.deaths.checked_sub(1)?;
                self.lives[node] = Life::Dead;
            }
            Step::Hang(_) if life == Life::Up => {
                self.left.pauses = self.left.pauses.checked_sub(1)?;
                self.lives[node] = Life::Hangs;
            }
            Step::Wake(_) if life == Life::Hangs => self.lives[node] = Life::Up,
            Step::Suspect(_) if !self.suspected[node] => {
                if life == Life::Up {
                    self.left.mistakes = self.left.mistakes.checked_sub(1)?;
                }
                self.suspected[node] = true;
            }
            // The node resumes under the same number.
            Step::Trust(_) if self.suspected[node] && life == Life::Up => self.suspected[node] = false,
            _ => return None,
        }
        Some(())
    }
}
