//! The accounts of clients as this node knows them: movements of credits that wait for the ledger, and the balances after the last ones.
//!
//! Movements wait here and not in the ledger's mailbox, because to wake the ledger costs more than a movement. Who is about to open a
//! transaction announces it before the intent is signed, so that a step waits for others only while some are to come.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_store::{CreditOutcome, OpenOutcome, OpenTransaction, StoreError};
use sakshi_trace::invariant::{Part, holds};
use tokio::sync::oneshot;

/// Transactions of one client that are opened in one step of the engine at most: other clients wait for it.
const TOGETHER_MAX: usize = 64;

/// The accounts of the node.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    queues: Mutex<HashMap<ClientId, Queue>>,
    /// The balances as far as the last movements on this node tell: after a refusal, one less than the cost. Other nodes may have moved
    /// them since.
    balances: Mutex<HashMap<ClientId, u64>>,
}

/// The movements of one client.
#[derive(Debug, Default)]
struct Queue {
    /// Those that wait, in the order in which they came.
    waiting: VecDeque<Movement>,
    /// The number of those that are announced and have not come.
    coming: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// A step is under way, or the ledger is told to begin one.
    UnderWay,
    /// The next step waits for movements that are announced.
    Pausing,
}

/// A movement that waits.
#[derive(Debug)]
pub(crate) enum Movement {
    Open(Open),
    Move(MoveCredits),
}

/// Debit a credit and open the transaction that it pays for.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) open: OpenTransaction,
    pub(crate) reply: Reply<OpenOutcome>,
}

/// Grant or adjust credits for the operator.
#[derive(Debug)]
pub(crate) struct MoveCredits {
    pub(crate) movement: CreditMove,
    pub(crate) reply: Reply<CreditOutcome>,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Movements that are made together.
#[derive(Debug)]
pub(crate) enum Step {
    Open(Vec<Open>),
    Move(MoveCredits),
}

/// The course after a step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another one.
    Step,
    /// A pause, for movements that are announced.
    Pause,
    /// Nothing, until a movement comes.
    Nothing,
}

/// A transaction that is about to be opened, until it is or this is dropped.
#[derive(Debug)]
pub struct Announcement {
    accounts: Arc<Accounts>,
    client: ClientId,
}

impl Accounts {
    fn queues(&self) -> MutexGuard<'_, HashMap<ClientId, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces a movement of a client.
    pub(crate) fn announce(self: &Arc<Self>, client: &ClientId) -> Announcement {
        self.queues().entry(client.clone()).or_default().coming += 1;
        Announcement { accounts: Arc::clone(self), client: client.clone() }
    }

    /// Queues a movement; true if the ledger must be told to begin a step.
    pub(crate) fn push(&self, client: &ClientId, movement: Movement) -> bool {
        let mut queues = self.queues();
        let queue = queues.entry(client.clone()).or_default();
        queue.waiting.push_back(movement);
        let begins = match queue.state {
            State::Idle => true,
            State::UnderWay => false,
            State::Pausing => queue.has_all(),
        };
        if begins {
            queue.state = State::UnderWay;
        }
        begins
    }

    /// The movements of the step that begins. Those that nobody waits for any more are not made.
    pub(crate) fn take_step(&self, client: &ClientId) -> Option<Step> {
        let mut queues = self.queues();
        let queue = queues.get_mut(client)?;
        queue.waiting.retain(Movement::is_awaited);
        let mut together = Vec::new();
        while together.len() < TOGETHER_MAX
            && let Some(Movement::Open(open)) = queue.waiting.pop_front_if(|movement| matches!(movement, Movement::Open(_)))
        {
            together.push(open);
        }
        let step = match queue.waiting.pop_front_if(|_| together.is_empty()) {
            Some(Movement::Move(moved)) => Some(Step::Move(moved)),
            _ if together.is_empty() => None,
            _ => Some(Step::Open(together)),
        };
        queue.state = if step.is_some() { State::UnderWay } else { State::Idle };
        forget_unused(&mut queues, client);
        step
    }

    /// Decides on the course after the step of a client that has just ended.
    pub(crate) fn after_step(&self, client: &ClientId) -> Next {
        let mut queues = self.queues();
        let Some(queue) = queues.get_mut(client) else { return Next::Nothing };
        let next;
        (next, queue.state) = match queue.waiting.is_empty() {
            _ if !queue.has_all() => (Next::Pause, State::Pausing),
            true => (Next::Nothing, State::Idle),
            false => (Next::Step, State::UnderWay),
        };
        forget_unused(&mut queues, client);
        next
    }

    /// Ends a pause; true if it has not ended before.
    pub(crate) fn end_pause(&self, client: &ClientId) -> bool {
        let mut queues = self.queues();
        let queue = queues.get_mut(client).filter(|queue| queue.state == State::Pausing);
        queue.map(|queue| queue.state = State::UnderWay).is_some()
    }

    /// Clients with movements that wait, for a ledger that starts again.
    pub(crate) fn waiting(&self) -> Vec<ClientId> {
        let mut queues = self.queues();
        queues.values_mut().for_each(|queue| queue.state = if queue.waiting.is_empty() { State::Idle } else { State::UnderWay });
        queues.iter().filter(|(_, queue)| !queue.waiting.is_empty()).map(|(client, _)| client.clone()).collect()
    }

    pub(crate) fn set_balance(&self, client: ClientId, balance: u64) {
        self.balances.lock().unwrap_or_else(PoisonError::into_inner).insert(client, balance);
    }

    pub(crate) fn last_balance(&self, client: &ClientId) -> Option<u64> {
        self.balances.lock().unwrap_or_else(PoisonError::into_inner).get(client).copied()
    }
}

fn forget_unused(queues: &mut HashMap<ClientId, Queue>, client: &ClientId) {
    if queues.get(client).is_some_and(|queue| queue.state == State::Idle && queue.coming == 0 && queue.waiting.is_empty()) {
        queues.remove(client);
    }
}

impl Queue {
    /// Returns true if no step gains by waiting: nothing is announced, or as many wait as may go together.
    fn has_all(&self) -> bool {
        self.coming == 0 || self.waiting.len() >= TOGETHER_MAX
    }
}

impl Movement {
    fn is_awaited(&self) -> bool {
        match self {
            Self::Open(open) => !open.reply.is_closed(),
            Self::Move(moved) => !moved.reply.is_closed(),
        }
    }
}

impl Accounts {
    /// Takes back an announcement of a movement, which has come or comes no more.
    pub(crate) fn withdraw(&self, client: &ClientId) {
        let mut queues = self.queues();
        let coming = queues.get(client).map_or(0, |queue| queue.coming);
        holds(Part::Ledger, "an announced movement is counted until it has come", coming > 0);
        if let Some(queue) = queues.get_mut(client) {
            queue.coming = coming.saturating_sub(1);
        }
        forget_unused(&mut queues, client);
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.accounts.withdraw(&self.client);
    }
}
