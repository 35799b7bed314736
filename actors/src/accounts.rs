//! The credit accounts of clients on this node: movements that wait for the ledger, and the last known balances.
//!
//! Movements wait here, not in the ledger's mailbox, because waking the ledger costs more than a movement. A caller
//! announces a transaction before its intent is signed. A step then waits for others only while some are announced.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_store::{CreditOutcome, OpenOutcome, OpenTransaction, StoreError};
use sakshi_trace::invariant::{Part, holds};
use tokio::sync::oneshot;

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum transactions of one client per step (one commit of the store); other clients wait for the step.
#[cfg(not(feature = "interleavings"))]
const OPENS_PER_STEP_MAX: usize = 64;
/// Reached by few callers, whose interleavings a test explores.
#[cfg(feature = "interleavings")]
const OPENS_PER_STEP_MAX: usize = 2;

/// Waiting movements and last known balances, by client.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    queues: Mutex<HashMap<ClientId, Queue>>,
    /// Balances after the last movements on this node. A refusal reveals only an upper bound: the cost minus one. Other
    /// nodes may have changed the balances since.
    balances: Mutex<HashMap<ClientId, u64>>,
}

/// The movements of one client.
#[derive(Debug, Default)]
struct Queue {
    /// Waiting movements, in order of arrival.
    waiting: VecDeque<Movement>,
    /// Number of announced movements that have not arrived.
    announced: usize,
    state: State,
}

/// Progress of a client's [`Step`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// A step is under way, or the ledger was asked to begin one.
    UnderWay,
    /// The next step waits for announced movements.
    Pausing,
}

/// A waiting movement.
#[derive(Debug)]
pub(crate) enum Movement {
    Open(Open),
    Move(MoveCredits),
}

/// Debits a credit and opens the transaction that it pays for.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) open: OpenTransaction,
    pub(crate) reply: Reply<OpenOutcome>,
}

/// Grants or adjusts credits for the operator.
#[derive(Debug)]
pub(crate) struct MoveCredits {
    pub(crate) movement: CreditMove,
    pub(crate) reply: Reply<CreditOutcome>,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Movements of one client that the store makes in one commit.
#[derive(Debug)]
pub(crate) enum Step {
    Open(Vec<Open>),
    Move(MoveCredits),
}

/// The next action of the ledger after a step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Begin another step.
    Step,
    /// Wait for announced movements.
    Pause,
    /// Wait until a movement arrives.
    Nothing,
}

/// A transaction that is about to be opened. Dropping it withdraws the announcement.
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
        self.queues().entry(client.clone()).or_default().announced += 1;
        Announcement { accounts: Arc::clone(self), client: client.clone() }
    }

    /// Queues a movement. Returns true if the ledger must be asked to begin a step.
    pub(crate) fn push(&self, client: &ClientId, movement: Movement) -> bool {
        let mut queues = self.queues();
        let queue = queues.entry(client.clone()).or_default();
        queue.waiting.push_back(movement);
        let must_begin = match queue.state {
            State::Idle => true,
            State::UnderWay => false,
            State::Pausing => queue.may_begin_step(),
        };
        if must_begin {
            queue.state = State::UnderWay;
        }
        must_begin
    }

    /// Takes the movements of the next step. Drops movements whose caller no longer waits.
    pub(crate) fn take_step(&self, client: &ClientId) -> Option<Step> {
        let mut queues = self.queues();
        let queue = queues.get_mut(client)?;
        queue.waiting.retain(Movement::is_awaited);
        let mut opens = Vec::new();
        while opens.len() < OPENS_PER_STEP_MAX
            && let Some(Movement::Open(open)) =
                queue.waiting.pop_front_if(|movement| matches!(movement, Movement::Open(_)))
        {
            opens.push(open);
        }
        let step = match queue.waiting.pop_front_if(|_| opens.is_empty()) {
            Some(Movement::Move(movement)) => Some(Step::Move(movement)),
            _ if opens.is_empty() => None,
            _ => Some(Step::Open(opens)),
        };
        queue.state = if step.is_some() { State::UnderWay } else { State::Idle };
        remove_if_unused(&mut queues, client);
        step
    }

    /// Decides what follows the step of a client that has just ended.
    pub(crate) fn after_step(&self, client: &ClientId) -> Next {
        let mut queues = self.queues();
        let Some(queue) = queues.get_mut(client) else { return Next::Nothing };
        let next;
        (next, queue.state) = match queue.waiting.is_empty() {
            _ if !queue.may_begin_step() => (Next::Pause, State::Pausing),
            true => (Next::Nothing, State::Idle),
            false => (Next::Step, State::UnderWay),
        };
        remove_if_unused(&mut queues, client);
        next
    }

    /// Ends a pause. Returns true if it had not ended before.
    pub(crate) fn end_pause(&self, client: &ClientId) -> bool {
        let mut queues = self.queues();
        let queue = queues.get_mut(client).filter(|queue| queue.state == State::Pausing);
        queue.map(|queue| queue.state = State::UnderWay).is_some()
    }

    /// Resets the state of every client, because the ledger restarts. Returns the clients with waiting movements; the
    /// ledger must begin their next steps.
    pub(crate) fn reset_after_restart(&self) -> Vec<ClientId> {
        let mut queues = self.queues();
        queues
            .values_mut()
            .for_each(|queue| queue.state = if queue.waiting.is_empty() { State::Idle } else { State::UnderWay });
        queues.iter().filter(|(_, queue)| !queue.waiting.is_empty()).map(|(client, _)| client.clone()).collect()
    }

    pub(crate) fn set_balance(&self, client: ClientId, balance: u64) {
        self.balances.lock().unwrap_or_else(PoisonError::into_inner).insert(client, balance);
    }

    pub(crate) fn last_balance(&self, client: &ClientId) -> Option<u64> {
        self.balances.lock().unwrap_or_else(PoisonError::into_inner).get(client).copied()
    }
}

fn remove_if_unused(queues: &mut HashMap<ClientId, Queue>, client: &ClientId) {
    if queues
        .get(client)
        .is_some_and(|queue| queue.state == State::Idle && queue.announced == 0 && queue.waiting.is_empty())
    {
        queues.remove(client);
    }
}

impl Queue {
    /// Returns true if a step may begin now: no movement is announced, or the step is full.
    fn may_begin_step(&self) -> bool {
        self.announced == 0 || self.waiting.len() >= OPENS_PER_STEP_MAX
    }
}

impl Movement {
    /// Returns true if the caller still waits for the reply.
    fn is_awaited(&self) -> bool {
        match self {
            Self::Open(open) => !open.reply.is_closed(),
            Self::Move(movement) => !movement.reply.is_closed(),
        }
    }
}

impl Accounts {
    /// Withdraws an announcement: the movement has arrived, or will not.
    pub(crate) fn withdraw(&self, client: &ClientId) {
        let mut queues = self.queues();
        let announced = queues.get(client).map_or(0, |queue| queue.announced);
        holds(Part::Ledger, "an announced movement is counted until it has come", announced > 0);
        if let Some(queue) = queues.get_mut(client) {
            queue.announced = announced.saturating_sub(1);
        }
        remove_if_unused(&mut queues, client);
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.accounts.withdraw(&self.client);
    }
}

#[cfg(all(test, feature = "interleavings"))]
#[expect(clippy::unwrap_used, reason = "an error here is a failed test")]
mod interleavings {
    use sakshi_domain::credits::EntryKind;
    use shuttle::sync::mpsc::{Receiver, Sender, channel};
    use shuttle::thread::{spawn, yield_now};

    use super::*;

    /// The ledger's messages.
    #[derive(Clone, Copy)]
    enum Wake {
        MovementsWait,
        StepEnded,
        PauseEnded,
        Stop,
    }

    /// A movement of a client, as its caller sees it.
    fn movement() -> (Movement, oneshot::Receiver<Result<CreditOutcome, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let movement = CreditMove { kind: EntryKind::Grant, amount: 1, reference: String::new() };
        (Movement::Move(MoveCredits { movement, reply }), answer)
    }

    /// Makes the steps of a client as the ledger does, each in a thread of its own.
    fn run_ledger(accounts: &Arc<Accounts>, client: &ClientId, wakes: &Receiver<Wake>, wake: &Sender<Wake>) {
        let mut is_under_way = false;
        loop {
            let begins = match wakes.recv().unwrap() {
                Wake::MovementsWait => true,
                Wake::PauseEnded => accounts.end_pause(client),
                Wake::StepEnded => {
                    is_under_way = false;
                    let next = accounts.after_step(client);
                    if next == Next::Pause {
                        let wake = wake.clone();
                        spawn(move || wake.send(Wake::PauseEnded).unwrap());
                    }
                    next == Next::Step
                }
                Wake::Stop => return,
            };
            if begins && let Some(Step::Move(MoveCredits { reply, .. })) = accounts.take_step(client) {
                assert!(!is_under_way, "a client has one step at a time");
                is_under_way = true;
                let wake = wake.clone();
                spawn(move || {
                    // A caller that is gone needs no answer.
                    let _ = reply.send(Err(StoreError::Unavailable(String::new())));
                    wake.send(Wake::StepEnded).unwrap();
                });
            }
        }
    }

    #[test]
    fn every_interleaving_makes_each_movement_in_one_step_at_a_time() {
        let scenario = || {
            let (accounts, client) = (Arc::<Accounts>::default(), ClientId::generate());
            let (wake, wakes) = channel();
            let ledger = {
                let (accounts, client, wake) = (Arc::clone(&accounts), client.clone(), wake.clone());
                spawn(move || run_ledger(&accounts, &client, &wakes, &wake))
            };
            let callers = [(true, true), (true, false), (false, true)].map(|(announces, waits)| {
                let (accounts, client, wake) = (Arc::clone(&accounts), client.clone(), wake.clone());
                spawn(move || {
                    let announcement = announces.then(|| accounts.announce(&client));
                    let (movement, mut answer) = movement();
                    if accounts.push(&client, movement) {
                        wake.send(Wake::MovementsWait).unwrap();
                    }
                    drop(announcement);
                    while waits && answer.try_recv().is_err() {
                        yield_now();
                    }
                })
            });
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            // A client is removed once nothing of it waits or is under way.
            while !accounts.queues().is_empty() {
                yield_now();
            }
            wake.send(Wake::Stop).unwrap();
            ledger.join().unwrap();
        };
        shuttle::check_random(scenario, 20_000);
    }
}
