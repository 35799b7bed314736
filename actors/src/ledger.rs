//! The credit ledger: the one actor through which every credit of the node moves, in order for each client.
//!
//! While a step of a client is committed, further movements of that client wait here, and then go together as one step of the engine:
//! the guests of a kiosk are all debits of one client. A failure here touches no balance, because the store changes nothing when a
//! movement is repeated.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
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
    balances: Arc<Balances>,
    /// Clients with a step under way, and what waits for its end.
    waiting: HashMap<ClientId, VecDeque<Movement>>,
}

/// A movement that waits.
#[derive(Debug)]
enum Movement {
    Open(Open),
    Move(MoveCredits),
}

/// Debit a credit and open the transaction that it pays for.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Open {
    open: OpenTransaction,
    reply: Reply<OpenOutcome>,
}

/// Grant or adjust credits for the operator.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct MoveCredits {
    client: ClientId,
    movement: CreditMove,
    reply: Reply<CreditOutcome>,
}

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

impl CreditLedger {
    /// A ledger over a store.
    pub(crate) fn new(store: Store, balances: Arc<Balances>) -> Self {
        Self { store, balances, waiting: HashMap::new() }
    }

    fn take(&mut self, client: ClientId, movement: Movement, ctx: &Context<Self>) {
        let is_under_way = self.waiting.contains_key(&client);
        self.waiting.entry(client.clone()).or_default().push_back(movement);
        if !is_under_way {
            self.begin_step(client, ctx);
        }
    }

    /// Begins the client's next step. What nobody waits for any more is not done.
    fn begin_step(&mut self, client: ClientId, ctx: &Context<Self>) {
        let Some(waiting) = self.waiting.get_mut(&client) else { return };
        waiting.retain(Movement::is_awaited);
        let mut together = Vec::new();
        while together.len() < TOGETHER_MAX
            && let Some(Movement::Open(open)) = waiting.pop_front_if(|movement| matches!(movement, Movement::Open(_)))
        {
            together.push(open);
        }
        let (store, balances) = (self.store.clone(), Arc::clone(&self.balances));
        let ledger = ctx.address();
        if !together.is_empty() {
            actix_rt::spawn(async move {
                let _ends = StepEnds { client: client.clone(), ledger };
                open(&store, &balances, &client, together).await;
            });
        } else if let Some(Movement::Move(MoveCredits { movement, reply, .. })) = waiting.pop_front() {
            actix_rt::spawn(async move {
                let _ends = StepEnds { client: client.clone(), ledger };
                let outcome = store.move_credits(client.clone(), movement).await;
                if let Ok(CreditOutcome::Moved(entry)) = &outcome {
                    balances.set(client, entry.balance_after);
                }
                // A caller that is gone needs no answer.
                let _ = reply.send(outcome);
            });
        } else {
            self.waiting.remove(&client);
        }
    }
}

/// Opens transactions of one client and answers each caller.
async fn open(store: &Store, balances: &Balances, client: &ClientId, together: Vec<Open>) {
    let (opens, replies): (Vec<_>, Vec<_>) = together.into_iter().map(|Open { open, reply }| (open, reply)).unzip();
    let costs: Vec<u64> = opens.iter().map(|open| open.cost).collect();
    let outcomes = match store.open_transactions(opens).await {
        Ok(outcomes) => outcomes,
        Err(error) => vec![Err(error); replies.len()],
    };
    for ((outcome, reply), cost) in outcomes.into_iter().zip(replies).zip(costs) {
        match &outcome {
            Ok(OpenOutcome::Opened { balance }) => balances.set(client.clone(), *balance),
            Ok(OpenOutcome::InsufficientCredits) => balances.set(client.clone(), cost.saturating_sub(1)),
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
    /// Those who wait are told that there is no answer. What is under way goes on.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.waiting.clear();
    }
}

impl Handler<Open> for CreditLedger {
    type Result = ();

    fn handle(&mut self, open: Open, ctx: &mut Self::Context) {
        self.take(open.open.pending.client.clone(), Movement::Open(open), ctx);
    }
}

impl Handler<MoveCredits> for CreditLedger {
    type Result = ();

    fn handle(&mut self, moved: MoveCredits, ctx: &mut Self::Context) {
        self.take(moved.client.clone(), Movement::Move(moved), ctx);
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
        self.begin_step(client, ctx);
    }
}

/// The balances of clients after their last movement on this node. Other nodes may have moved them since.
#[derive(Debug, Default)]
pub(crate) struct Balances(Mutex<HashMap<ClientId, u64>>);

impl Balances {
    fn set(&self, client: ClientId, balance: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(client, balance);
    }

    fn last(&self, client: &ClientId) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(client).copied()
    }
}

/// The way to the ledger.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) actor: Addr<CreditLedger>,
    pub(crate) balances: Arc<Balances>,
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
            self.ask(|reply| self.actor.do_send(Open { open, reply })).await
        };
        opened.instrument(sakshi_trace::ask::<CreditLedger, Open>()).await
    }

    /// Grants or adjusts credits.
    ///
    /// # Errors
    /// The store's; they may then have been moved or not.
    pub(crate) async fn move_credits(&self, client: ClientId, movement: CreditMove) -> Result<CreditOutcome, StoreError> {
        self.ask(|reply| self.actor.do_send(MoveCredits { client, movement, reply })).await
    }

    /// Returns true if the client's balance does not cover this cost, as far as this node knows without asking the store, and the store
    /// says so too.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn is_short(&self, client: &ClientId, cost: u64) -> Result<bool, StoreError> {
        if self.balances.last(client).is_none_or(|balance| balance >= cost) {
            return Ok(false);
        }
        Ok(self.store.balance(client.clone()).await?.is_none_or(|balance| balance < cost))
    }

    async fn ask<T>(&self, send: impl FnOnce(Reply<T>)) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        send(reply);
        match tokio::time::timeout(self.ask_timeout, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(StoreError::Unavailable("the credit ledger did not answer".into())),
        }
    }
}
