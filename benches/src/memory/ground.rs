//! Where transactions are opened and replaced: a tree with a shard on each of several arbiters, or
//! the store alone.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_rt::Arbiter;
use futures_util::future::join_all;
use sakshi_actors::{ByteBounds, Complete, CompleteReply, LaneBounds, Transactions, Tree, TreeBounds, TreeConfig};
use sakshi_authority::callback::failure_answer;
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_domain::tenancy::Client;
use sakshi_domain::transaction::{Failure as Declined, Outcome};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{CompleteOutcome, CompleteTransaction, OpenOutcome, Retention, Store, Vault};
use tokio::sync::oneshot;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::transactions::Opener;
use crate::{Failure, load};

/// Transactions opened or replaced at the same time on one arbiter.
const LANES: usize = 128;
const REPLAY_WINDOW: Duration = Duration::from_secs(86_400);
const RESULT_TTL: Duration = Duration::from_secs(86_400);

/// Store, vault and, unless it is about the store alone, a tree.
pub(super) struct Ground {
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    tree: Option<Tree>,
    opener: Arc<Opener>,
}

impl Ground {
    pub(super) async fn new(directory: &Path, store_only: bool) -> Result<Self, Failure> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![1; 32])])?);
        let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(EmbeddedOptions {
            directory: directory.to_owned(),
            clock: Arc::clone(&clock),
            vault: Arc::clone(&vault),
            max_waiting: 8_192,
            max_pages: None,
        })?);
        let client = ClientId::generate();
        store.create_client(Client { client_id: client.clone(), name: "bench".into(), created_at: clock.now() }).await?;
        let grant = CreditMove { kind: EntryKind::Grant, amount: 1_000_000_000, reference: "bench".into() };
        store.move_credits(client.clone(), grant).await?;
        let tree = if store_only { None } else { Some(plant(&store, &vault, clock).await?) };
        Ok(Self { store, vault, tree, opener: Arc::new(Opener::new(client, AppId::generate())?) })
    }

    /// One crowd for each core, with room for the ids of so many live transactions in all.
    pub(super) async fn crowds(&self, live: usize) -> Result<Vec<Crowd>, Failure> {
        let mut crowds = Vec::new();
        for _ in 0..load::cores() {
            let arbiter = Arbiter::new();
            let place = match &self.tree {
                None => Place::Store { store: Arc::clone(&self.store), vault: Arc::clone(&self.vault) },
                Some(tree) => Place::Shard(start_shard(&arbiter, tree.clone()).await?),
            };
            // Filled once, so that its pages are resident before the first transaction is.
            let mut ids = vec![TxnId::generate(ClientId::generate().partition(), 0); live / load::cores() + LANES];
            ids.clear();
            let members = Members { place, opener: Arc::clone(&self.opener), ids: Mutex::new(ids) };
            crowds.push(Crowd { arbiter, members: Arc::new(members) });
        }
        Ok(crowds)
    }
}

async fn plant(store: &Arc<dyn Store>, vault: &Arc<Vault>, clock: Arc<dyn Clock>) -> Result<Tree, Failure> {
    let client = WebhookClient::new(&WebhookClientOptions {
        allow_private: false,
        connect_timeout: Duration::from_secs(1),
        total_timeout: Duration::from_secs(1),
        extra_roots_pem: None,
    })?;
    let ground = TreeConfig { store: Arc::clone(store), vault: Arc::clone(vault), clock, client };
    let bounds = TreeBounds {
        shards: load::cores(),
        live_transactions: 10_000_000,
        in_flight: 4_096,
        mailbox_depth: 8_192,
        patience: Duration::from_secs(30),
        lanes: LaneBounds { in_flight: 64, in_flight_per_host: 64, outcome_bytes: ByteBounds::OUTCOMES, flow_bytes: ByteBounds::FLOWS },
        live_events: 1_000,
        live_flows: 1_000,
        flow_result_ttl: Duration::from_secs(86_400),
        retention: Retention { expired: Duration::from_secs(86_400), events: Duration::from_secs(86_400) },
    };
    Ok(Tree::start(ground, bounds).await?.0)
}

async fn start_shard(arbiter: &Arbiter, tree: Tree) -> Result<Transactions, Failure> {
    let (sender, started) = oneshot::channel();
    arbiter.spawn_fn(move || drop(sender.send(tree.start_shard().map(|doors| doors.transactions))));
    started.await?.ok_or_else(|| "no place for another shard".into())
}

/// What is done so many times.
#[derive(Clone, Copy)]
pub(super) enum Work {
    Open,
    /// Completes a random one with a failure and opens another.
    Replace,
}

/// The live transactions of one arbiter.
pub(super) struct Crowd {
    arbiter: Arbiter,
    members: Arc<Members>,
}

impl Crowd {
    /// Starts the work; the receiver tells when all of it is done.
    pub(super) fn start(&self, work: Work, count: usize) -> oneshot::Receiver<Result<(), Failure>> {
        let (sender, done) = oneshot::channel();
        let members = Arc::clone(&self.members);
        self.arbiter.spawn(async move {
            let lanes = (0..LANES).map(|lane| members.lane(work, count / LANES + usize::from(lane < count % LANES)));
            let all: Result<(), Failure> = join_all(lanes).await.into_iter().collect();
            // A parent that is gone needs no answer.
            let _ = sender.send(all);
        });
        done
    }
}

struct Members {
    place: Place,
    opener: Arc<Opener>,
    ids: Mutex<Vec<TxnId>>,
}

impl Members {
    async fn lane(&self, work: Work, count: usize) -> Result<(), Failure> {
        for _ in 0..count {
            if matches!(work, Work::Replace) {
                let id = self.take_random().ok_or("none is live")?;
                self.place.decline(id).await?;
            }
            let id = self.place.open(&self.opener).await?;
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        }
        Ok(())
    }

    fn take_random(&self) -> Option<TxnId> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let random = usize::try_from(Uuid::new_v4().as_u128() >> 80).unwrap_or(0);
        (!ids.is_empty()).then(|| {
            let index = random % ids.len();
            ids.swap_remove(index)
        })
    }
}

enum Place {
    Shard(Transactions),
    Store { store: Arc<dyn Store>, vault: Arc<Vault> },
}

impl Place {
    async fn open(&self, opener: &Opener) -> Result<TxnId, Failure> {
        let opening = match self {
            Self::Shard(door) => opener.opening(door, CREDITS_PER_VERIFICATION),
            Self::Store { .. } => opener.opening_anywhere(CREDITS_PER_VERIFICATION),
        };
        let id = opening.pending.id;
        let outcome = match self {
            Self::Shard(door) => door.open(opening).await?,
            Self::Store { store, .. } => store.open_transaction(opening).await?,
        };
        if matches!(outcome, OpenOutcome::Opened { .. }) { Ok(id) } else { Err("a transaction was not opened".into()) }
    }

    async fn decline(&self, id: TxnId) -> Result<(), Failure> {
        let declined = Declined::new("User Reject", Some("301"));
        let answer = failure_answer(id, declined.clone());
        let accepted = match self {
            Self::Shard(door) => {
                let complete = Complete { answer, known: None, replay_window: REPLAY_WINDOW, result_ttl: RESULT_TTL };
                door.complete(id, complete).await? == CompleteReply::Accepted
            }
            Self::Store { store, vault } => {
                let outcome = serde_json::to_vec(&Outcome::NotVerified(declined))?;
                let complete = CompleteTransaction {
                    id,
                    event: None,
                    passed: false,
                    outcome: vault.seal(id.as_bytes(), &outcome),
                    answer: answer.digest(),
                    credential: None,
                    replay_window: REPLAY_WINDOW,
                    result_ttl: RESULT_TTL,
                    guest: None,
                };
                matches!(store.complete_transaction(complete).await?, CompleteOutcome::Completed { .. })
            }
        };
        if accepted { Ok(()) } else { Err("a transaction was not completed".into()) }
    }
}
