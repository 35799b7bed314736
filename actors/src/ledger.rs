//! The credit ledger: the one actor through which every credit of the node moves, in order for each client.
//!
//! While a step of a client is committed, further movements of that client wait here, and then go together as one step of the engine:
//! the guests of a kiosk are all debits of one client. A failure here touches no balance, because the store changes nothing when a
//! movement is repeated.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext as _, Context, Handler, Message, Supervised};
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_store::{CreditOutcome, OpenOutcome, OpenTransaction, Store, StoreError};
use tokio::sync::oneshot;
use tracing::Instrument as _;

/// Transactions of one client that are opened in one step of the engine at most: other clients wait for it.
const TOGETHER_MAX: usize = 64;

/// Moves credits.
#[derive(Debug)]
pub(crate) struct CreditLedger {
    store: Store,
    accounts: Arc<Accounts>,
    /// Clients with a step under way.
    under_way: HashSet<ClientId>,
}

/// The accounts of clients as this node knows them.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// Movements in the order in which they came. They wait here, not in the mailbox, because waking the ledger costs more than a movement.
    waiting: Mutex<HashMap<ClientId, VecDeque<Movement>>>,
    /// The balance after the last movement on this node. Other nodes may have moved it since.
    balances: Mutex<HashMap<ClientId, u64>>,
}

/// A movement that waits.
#[derive(Debug)]
enum Movement {
    Open(Open),
    Move(MoveCredits),
}

/// Debit a credit and open the transaction that it pays for.
#[derive(Debug)]
struct Open {
    open: OpenTransaction,
    reply: Reply<OpenOutcome>,
}

/// Grant or adjust credits for the operator.
#[derive(Debug)]
struct MoveCredits {
    movement: CreditMove,
    reply: Reply<CreditOutcome>,
}

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Movements that are made together.
enum Step {
    Open(Vec<Open>),
    Move(MoveCredits),
}

impl CreditLedger {
    /// A ledger over a store.
    pub(crate) fn new(store: Store, accounts: Arc<Accounts>) -> Self {
        Self { store, accounts, under_way: HashSet::new() }
    }

    fn begin_step(&mut self, client: ClientId, ctx: &Context<Self>) {
        let Some(step) = self.accounts.next_step(&client) else { return };
        self.under_way.insert(client.clone());
        let (store, accounts, ledger) = (self.store.clone(), Arc::clone(&self.accounts), ctx.address());
        actix_rt::spawn(async move {
            let _ends = StepEnds { client: client.clone(), ledger };
            match step {
                Step::Open(together) => open(&store, &accounts, &client, together).await,
                Step::Move(MoveCredits { movement, reply }) => {
                    let outcome = store.move_credits(client.clone(), movement).await;
                    if let Ok(CreditOutcome::Moved(entry)) = &outcome {
                        accounts.set_balance(client, entry.balance_after);
                    }
                    // A caller that is gone needs no answer.
                    let _ = reply.send(outcome);
                }
            }
        });
    }
}

impl Accounts {
    fn waiting(&self) -> MutexGuard<'_, HashMap<ClientId, VecDeque<Movement>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a movement; true if the ledger does not know yet that some wait for this client.
    fn push(&self, client: ClientId, movement: Movement) -> bool {
        match self.waiting().entry(client) {
            Entry::Occupied(mut queue) => {
                queue.get_mut().push_back(movement);
                false
            }
            Entry::Vacant(place) => {
                place.insert(VecDeque::from([movement]));
                true
            }
        }
    }

    /// The next movements of a client. Those that nobody waits for any more are not made.
    fn next_step(&self, client: &ClientId) -> Option<Step> {
        let mut waiting = self.waiting();
        let queue = waiting.get_mut(client)?;
        queue.retain(Movement::is_awaited);
        let mut together = Vec::new();
        while together.len() < TOGETHER_MAX
            && let Some(Movement::Open(open)) = queue.pop_front_if(|movement| matches!(movement, Movement::Open(_)))
        {
            together.push(open);
        }
        if !together.is_empty() {
            return Some(Step::Open(together));
        }
        let Some(Movement::Move(moved)) = queue.pop_front() else {
            waiting.remove(client);
            return None;
        };
        Some(Step::Move(moved))
    }

    fn set_balance(&self, client: ClientId, balance: u64) {
        self.balances.lock().unwrap_or_else(PoisonError::into_inner).insert(client, balance);
    }

    fn last_balance(&self, client: &ClientId) -> Option<u64> {
        self.balances.lock().unwrap_or_else(PoisonError::into_inner).get(client).copied()
    }
}

/// Opens transactions of one client and answers each caller.
async fn open(store: &Store, accounts: &Accounts, client: &ClientId, together: Vec<Open>) {
    let (opens, replies): (Vec<_>, Vec<_>) = together.into_iter().map(|Open { open, reply }| (open, reply)).unzip();
    let costs: Vec<u64> = opens.iter().map(|open| open.cost).collect();
    let outcomes = match store.open_transactions(opens).await {
        Ok(outcomes) => outcomes,
        Err(error) => vec![Err(error); replies.len()],
    };
    for ((outcome, reply), cost) in outcomes.into_iter().zip(replies).zip(costs) {
        match &outcome {
            Ok(OpenOutcome::Opened { balance }) => accounts.set_balance(client.clone(), *balance),
            Ok(OpenOutcome::InsufficientCredits) => accounts.set_balance(client.clone(), cost.saturating_sub(1)),
            _ => {}
        }
        let _ = reply.send(outcome);
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

impl Actor for CreditLedger {
    type Context = Context<Self>;
}

impl Supervised for CreditLedger {
    /// What waits is begun by the new one. Steps under way go on.
    fn restarting(&mut self, ctx: &mut Self::Context) {
        self.under_way.clear();
        self.accounts.waiting().keys().cloned().for_each(|client| ctx.notify(MovementsWait(client)));
    }
}

/// Movements of this client wait.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct MovementsWait(ClientId);

impl Handler<MovementsWait> for CreditLedger {
    type Result = ();

    fn handle(&mut self, MovementsWait(client): MovementsWait, ctx: &mut Self::Context) {
        if !self.under_way.contains(&client) {
            self.begin_step(client, ctx);
        }
    }
}

/// Tells the ledger when it is dropped that a step has ended, however it ended.
struct StepEnds {
    client: ClientId,
    ledger: Addr<CreditLedger>,
}

impl Drop for StepEnds {
    fn drop(&mut self) {
        self.ledger.do_send(StepEnded(self.client.clone()));
    }
}

/// The client's step has ended.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct StepEnded(ClientId);

impl Handler<StepEnded> for CreditLedger {
    type Result = ();

    fn handle(&mut self, StepEnded(client): StepEnded, ctx: &mut Self::Context) {
        self.under_way.remove(&client);
        self.begin_step(client, ctx);
    }
}

/// The way to the ledger.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) actor: Addr<CreditLedger>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) store: Store,
    pub(crate) ask_timeout: Duration,
}

impl Ledger {
    /// Opens a transaction and debits its credit.
    ///
    /// # Errors
    /// The store's; it may then have been opened or not.
    pub(crate) async fn open(&self, open: OpenTransaction) -> Result<OpenOutcome, StoreError> {
        let opened = async {
            let _step = self.store.span_of("open_transaction");
            let client = open.pending.client.clone();
            self.ask(client, |reply| Movement::Open(Open { open, reply })).await
        };
        opened.instrument(sakshi_trace::ask::<CreditLedger, Open>()).await
    }

    /// Grants or adjusts credits.
    ///
    /// # Errors
    /// The store's; they may then have been moved or not.
    pub(crate) async fn move_credits(&self, client: ClientId, movement: CreditMove) -> Result<CreditOutcome, StoreError> {
        self.ask(client, |reply| Movement::Move(MoveCredits { movement, reply })).await
    }

    /// Returns true if the client's balance does not cover this cost, as far as this node knows without asking the store, and the store
    /// says so too.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn is_short(&self, client: &ClientId, cost: u64) -> Result<bool, StoreError> {
        if self.accounts.last_balance(client).is_none_or(|balance| balance >= cost) {
            return Ok(false);
        }
        Ok(self.store.balance(client.clone()).await?.is_none_or(|balance| balance < cost))
    }

    async fn ask<T>(&self, client: ClientId, movement: impl FnOnce(Reply<T>) -> Movement) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        if self.accounts.push(client.clone(), movement(reply)) {
            self.actor.do_send(MovementsWait(client));
        }
        match tokio::time::timeout(self.ask_timeout, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(StoreError::Unavailable("the credit ledger did not answer".into())),
        }
    }
}
