//! Opens and replaces transactions, through a supervision tree with a shard on each arbiter or through the store alone.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_rt::Arbiter;
use futures_util::future::join_all;
use sakshi_actors::{ByteBounds, Complete, CompleteReply, DispatchBounds, Transactions, Tree, TreeBounds, TreeConfig};
use sakshi_authority::callback::failure_answer;
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::Client;
use sakshi_domain::transaction::{Failure as Declined, Outcome};
use sakshi_outbound::Egress;
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{CompleteOutcome, CompleteTransaction, OpenOutcome, Ownership, Retention, Store, Upgrading, Vault};
use tokio::sync::oneshot;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::transactions::Opener;
use crate::{Failure, load};

/// Transactions opened or replaced at the same time on one arbiter.
const CONCURRENT: usize = 128;
const REPLAY_WINDOW: Duration = Duration::from_secs(86_400);
const RESULT_TTL: Duration = Duration::from_secs(86_400);

/// The store, the vault and the tree; no tree if the store is measured alone.
pub(super) struct Workload {
    store: Store,
    vault: Arc<Vault>,
    tree: Option<Tree>,
    opener: Arc<Opener>,
}

impl Workload {
    /// Opens a store with a client and credits, and starts the tree unless only the store is measured.
    pub(super) async fn new(directory: &Path, store_only: bool) -> Result<Self, Failure> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![1; 32])])?);
        let store = (*EmbeddedStore::open(EmbeddedOptions {
            directory: directory.to_owned(),
            clock: Arc::clone(&clock),
            vault: Arc::clone(&vault),
            retention: Retention {
                expired: Duration::from_secs(86_400),
                events: Duration::from_secs(86_400),
                consents: Duration::from_secs(86_400),
            },
            max_waiting: 8_192,
            ownership: Ownership::new(Profile::Sandbox, "https://issuer.test"),
            upgrading: Upgrading::default(),
        })?)
        .clone();
        let client = ClientId::generate();
        store.create_client(Client::new(client.clone(), "bench".into(), clock.now())).await?;
        let grant = CreditMove { kind: EntryKind::Grant, amount: 1_000_000_000, reference: "bench".into() };
        store.move_credits(client.clone(), grant).await?;
        let tree = if store_only { None } else { Some(start_tree(&store, &vault, clock).await?) };
        Ok(Self { store, vault, tree, opener: Arc::new(Opener::new(client, AppId::generate())?) })
    }

    /// Returns one worker for each core, with room for the ids of `live` transactions in total.
    pub(super) async fn workers(&self, live: usize) -> Result<Vec<Worker>, Failure> {
        let mut workers = Vec::new();
        for _ in 0..load::cores() {
            let arbiter = Arbiter::new();
            let backend = match &self.tree {
                None => Backend::Store { store: self.store.clone(), vault: Arc::clone(&self.vault) },
                Some(tree) => Backend::Shard(start_shard(&arbiter, tree.clone()).await?),
            };
            // Filled once, so that its pages are resident before the measurement.
            let mut ids = vec![TxnId::generate(ClientId::generate().partition(), 0); live / load::cores() + CONCURRENT];
            ids.clear();
            let state = WorkerState { backend, opener: Arc::clone(&self.opener), ids: Mutex::new(ids) };
            workers.push(Worker { arbiter, state: Arc::new(state) });
        }
        Ok(workers)
    }
}

/// Starts a supervision tree on the store, with bounds that the bench never reaches.
async fn start_tree(store: &Store, vault: &Arc<Vault>, clock: Arc<dyn Clock>) -> Result<Tree, Failure> {
    let client = WebhookClient::new(&WebhookClientOptions {
        allow_private: false,
        connect_timeout: Duration::from_secs(1),
        total_timeout: Duration::from_secs(1),
        egress: Egress::default(),
    })?;
    let config = TreeConfig {
        store: store.clone(),
        vault: Arc::clone(vault),
        clock,
        client: Arc::new(client),
        audit_receiver: None,
        on_one_arbiter: false,
    };
    let bounds = TreeBounds {
        shards: load::cores(),
        live_transactions: 10_000_000,
        in_flight: 4_096,
        mailbox_depth: 8_192,
        ask_timeout: Duration::from_secs(30),
        webhooks: DispatchBounds {
            in_flight: 64,
            in_flight_per_origin: 64,
            outcome_bytes: ByteBounds::OUTCOMES,
            flow_bytes: ByteBounds::FLOWS,
        },
        live_events: 1_000,
        flow_result_ttl: Duration::from_secs(86_400),
        flow_pending_ttl: Duration::from_secs(90 * 86_400),
    };
    Ok(Tree::start(config, bounds).await?.0)
}

/// Starts an actor shard of transactions on an arbiter.
async fn start_shard(arbiter: &Arbiter, tree: Tree) -> Result<Transactions, Failure> {
    let (sender, started) = oneshot::channel();
    arbiter.spawn_fn(move || drop(sender.send(tree.start_shard().map(|shards| shards.transactions))));
    started.await?.ok_or_else(|| "no backend for another shard".into())
}

/// The work to repeat.
#[derive(Clone, Copy)]
pub(super) enum Work {
    Open,
    /// Completes a random transaction with a failure and opens another.
    Replace,
}

/// The live transactions of one arbiter.
pub(super) struct Worker {
    arbiter: Arbiter,
    state: Arc<WorkerState>,
}

impl Worker {
    /// Starts the work; the receiver resolves at its end.
    pub(super) fn start(&self, work: Work, count: usize) -> oneshot::Receiver<Result<(), Failure>> {
        let (sender, done) = oneshot::channel();
        let state = Arc::clone(&self.state);
        self.arbiter.spawn(async move {
            let tasks = (0..CONCURRENT)
                .map(|task| state.run_task(work, count / CONCURRENT + usize::from(task < count % CONCURRENT)));
            let result: Result<(), Failure> = join_all(tasks).await.into_iter().collect();
            // The caller may have ended.
            let _ = sender.send(result);
        });
        done
    }
}

/// The state that the tasks of a worker share.
struct WorkerState {
    backend: Backend,
    opener: Arc<Opener>,
    /// Ids of the live transactions.
    ids: Mutex<Vec<TxnId>>,
}

impl WorkerState {
    /// Repeats the work `count` times.
    async fn run_task(&self, work: Work, count: usize) -> Result<(), Failure> {
        for _ in 0..count {
            if matches!(work, Work::Replace) {
                let id = self.remove_random().ok_or("no transaction is live")?;
                self.backend.decline(id).await?;
            }
            let id = self.backend.open(&self.opener).await?;
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        }
        Ok(())
    }

    /// Removes and returns the id of a random live transaction.
    fn remove_random(&self) -> Option<TxnId> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let random = usize::try_from(Uuid::new_v4().as_u128() >> 80).unwrap_or(0);
        (!ids.is_empty()).then(|| {
            let index = random % ids.len();
            ids.swap_remove(index)
        })
    }
}

/// The way to transactions: an actor shard, or the store alone.
enum Backend {
    Shard(Transactions),
    Store { store: Store, vault: Arc<Vault> },
}

impl Backend {
    /// Opens a transaction and returns its id.
    async fn open(&self, opener: &Opener) -> Result<TxnId, Failure> {
        let transaction = match self {
            Self::Shard(shard) => opener.transaction_on(shard, CREDITS_PER_VERIFICATION),
            Self::Store { .. } => opener.transaction_in_store(CREDITS_PER_VERIFICATION),
        };
        let id = transaction.pending.id;
        let outcome = match self {
            Self::Shard(shard) => shard.open(transaction).await?,
            Self::Store { store, .. } => store.open_transaction(transaction).await?,
        };
        if matches!(outcome, OpenOutcome::Opened { .. }) { Ok(id) } else { Err("a transaction was not opened".into()) }
    }

    /// Completes a transaction as if the person had declined.
    async fn decline(&self, id: TxnId) -> Result<(), Failure> {
        let declined = Declined::new("User Reject", Some("301"));
        let answer = failure_answer(id, declined.clone());
        let is_accepted = match self {
            Self::Shard(shard) => {
                let complete = Complete {
                    answer,
                    known: None,
                    evidence: None,
                    guest: sakshi_store::GuestDetails::default(),
                    replay_window: REPLAY_WINDOW,
                    result_ttl: RESULT_TTL,
                };
                shard.complete(id, complete).await? == CompleteReply::Accepted
            }
            Self::Store { store, vault } => {
                let outcome = serde_json::to_vec(&Outcome::NotVerified(declined))?;
                let complete = CompleteTransaction {
                    code: None,
                    evidence: None,
                    guest: sakshi_store::GuestDetails::default(),
                    id,
                    known: None,
                    passed: false,
                    outcome: vault.seal(id.as_bytes(), &outcome),
                    answer: answer.digest(),
                    credential: None,
                    replay_window: REPLAY_WINDOW,
                    result_ttl: RESULT_TTL,
                };
                matches!(store.complete_transaction(complete).await?, CompleteOutcome::Completed { .. })
            }
        };
        if is_accepted { Ok(()) } else { Err("a transaction was not completed".into()) }
    }
}
