//! Movements of credits: in order for each client, and together where they wait.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::Actor as _;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use sakshi_domain::clock::ManualClock;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::tenancy::Client;
use sakshi_domain::time::Timestamp;
use sakshi_kit::records;
use sakshi_store::engine::memory::MemoryEngine;
use sakshi_store::engine::{Answers, Applied, Batch, Engine, Query, ScanFrom, Scanned, Table};
use sakshi_store::redis::NodeId;
use sakshi_store::{CreditOutcome, OpenOutcome, OpenTransaction, Retention, Store, StoreError, StoreFuture, Vault};
use sakshi_trace::invariant::broken_by;
use tokio::sync::{Semaphore, oneshot};
use zeroize::Zeroizing;

use super::{WINDOW, run, until};
use crate::accounts::{Accounts, Movement, Next, Open, Step};
use crate::ledger::{CreditLedger, Ledger};

const NOW: Timestamp = Timestamp::from_millis(1_900_000_000_000);

/// An engine whose steps wait until the test releases them.
#[derive(Clone, Debug)]
struct Gated {
    engine: MemoryEngine,
    gate: Arc<Semaphore>,
    /// Number of batches per step.
    steps: Arc<Mutex<Vec<usize>>>,
}

impl Engine for Gated {
    fn system(&self) -> &'static str {
        "memory"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.engine.read(queries)
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let this = self.clone();
        Box::pin(async move {
            this.steps.lock().unwrap().push(batches.len());
            this.gate.acquire().await.unwrap().forget();
            this.engine.commit(batches).await
        })
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.engine.scan(table, from, limit)
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        self.engine.sweep(now, limit, batch)
    }

    fn is_shared(&self) -> bool {
        false
    }
}

struct Setting {
    ledger: Ledger,
    engine: Gated,
}

impl Setting {
    fn new() -> Self {
        let engine = Gated {
            engine: MemoryEngine::new(Arc::new(ManualClock::starting_at(NOW))),
            gate: Arc::new(Semaphore::new(0)),
            steps: Arc::default(),
        };
        let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap());
        let retention = Retention { expired: WINDOW, events: WINDOW, consents: WINDOW };
        let store = Store::new(Box::new(engine.clone()), vault, retention, NodeId::ALONE, None);
        let accounts = Arc::<Accounts>::default();
        let actor = CreditLedger::new(store.clone(), Arc::clone(&accounts)).start();
        Self { ledger: Ledger { actor, accounts, store, ask_timeout: Duration::from_secs(3_600) }, engine }
    }

    async fn client(&self, credits: u64) -> ClientId {
        let client = Client::new(ClientId::generate(), "Test".into(), NOW);
        let id = client.client_id.clone();
        self.engine.gate.add_permits(100);
        self.ledger.store.create_client(client).await.unwrap();
        if credits > 0 {
            self.ledger.store.move_credits(id.clone(), grant(credits, "start")).await.unwrap();
        }
        self.engine.gate.forget_permits(usize::MAX);
        self.engine.steps.lock().unwrap().clear();
        id
    }

    /// Starts an opening, which waits for the ledger.
    fn waiting(&self, client: &ClientId) -> Opening<'_> {
        let mut opening = Box::pin(self.ledger.open(opening(client)));
        assert!(opening.as_mut().now_or_never().is_none());
        opening
    }

    /// Starts an opening whose step waits at the gate.
    async fn under_way(&self, client: &ClientId) -> Opening<'_> {
        let opening = self.waiting(client);
        until("the first step is under way", || self.steps() == [1]).await;
        opening
    }

    fn steps(&self) -> Vec<usize> {
        self.engine.steps.lock().unwrap().clone()
    }
}

type Opening<'a> = Pin<Box<dyn Future<Output = Result<OpenOutcome, StoreError>> + 'a>>;

fn grant(amount: u64, reference: &str) -> CreditMove {
    CreditMove { kind: EntryKind::Grant, amount: amount.try_into().unwrap(), reference: reference.into() }
}

fn opening(client: &ClientId) -> OpenTransaction {
    let pending = records::pending(TxnId::generate(client.partition(), 0), client.clone(), AppId::generate(), NOW);
    OpenTransaction { pending: Arc::new(pending), cost: 1, idempotency: None, pending_max: None, intent: None }
}

#[test]
fn what_waits_for_a_step_of_its_client_goes_together_in_order_and_others_do_not_wait() {
    run(async {
        let setting = Setting::new();
        let (client, other) = (setting.client(100).await, setting.client(100).await);
        let mut opens = vec![setting.under_way(&client).await];
        opens.extend((1..70).map(|_| setting.waiting(&client)));
        let work = async {
            let opened = join_all(opens).await;
            let moved = setting.ledger.move_credits(client.clone(), grant(5, "later")).await;
            (opened, moved)
        };
        let watch = async {
            setting.engine.gate.add_permits(1);
            until("as many as may go together", || setting.steps() == [1, 64]).await;
            let elsewhere = setting.ledger.open(opening(&other));
            let more = async {
                until("another client's", || setting.steps() == [1, 64, 1]).await;
                setting.engine.gate.add_permits(100);
            };
            tokio::join!(elsewhere, more).0
        };
        let ((opened, moved), elsewhere) = tokio::join!(work, watch);
        assert_eq!(elsewhere, Ok(OpenOutcome::Opened { balance: 99 }));
        let balances: Vec<_> = opened.into_iter().map(Result::unwrap).collect();
        let expected: Vec<_> = (0..70).map(|done| OpenOutcome::Opened { balance: 99 - done }).collect();
        assert_eq!(balances, expected, "in the order of arrival");
        assert!(matches!(moved, Ok(CreditOutcome::Moved(entry)) if entry.seq == 72 && entry.balance_after == 35));
        assert_eq!(setting.steps(), [1, 64, 1, 5, 1]);
    });
}

#[test]
fn what_nobody_waits_for_any_more_is_not_begun() {
    run(async {
        let setting = Setting::new();
        let client = setting.client(10).await;
        let first = setting.under_way(&client).await;
        drop(setting.waiting(&client));
        let last = setting.waiting(&client);
        setting.engine.gate.add_permits(100);
        assert_eq!(
            (first.await, last.await),
            (Ok(OpenOutcome::Opened { balance: 9 }), Ok(OpenOutcome::Opened { balance: 8 }))
        );
        assert_eq!(setting.steps(), [1, 1]);
    });
}

#[test]
fn a_client_without_credits_is_known_to_be_short_until_somebody_grants_some() {
    run(async {
        let setting = Setting::new();
        let client = setting.client(1).await;
        setting.engine.gate.add_permits(100);
        let ledger = &setting.ledger;
        assert_eq!(ledger.is_short(&client, 1).await, Ok(false), "nothing is known");
        assert_eq!(ledger.open(opening(&client)).await, Ok(OpenOutcome::Opened { balance: 0 }));
        assert_eq!(ledger.is_short(&client, 1).await, Ok(true));
        assert_eq!(ledger.open(opening(&client)).await, Ok(OpenOutcome::InsufficientCredits));
        // As another node does.
        ledger.store.move_credits(client.clone(), grant(1, "elsewhere")).await.unwrap();
        assert_eq!(ledger.is_short(&client, 1).await, Ok(false));
        assert_eq!(ledger.open(opening(&client)).await, Ok(OpenOutcome::Opened { balance: 0 }));
    });
}

#[test]
fn when_a_step_fails_everyone_in_it_is_told_and_the_next_one_goes_on() {
    run(async {
        let setting = Setting::new();
        let client = setting.client(10).await;
        let opens = [setting.under_way(&client).await, setting.waiting(&client), setting.waiting(&client)];
        setting.engine.gate.close();
        let outcomes = join_all(opens).await;
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(StoreError::Unavailable(_)))), "{outcomes:?}");
    });
}

#[test]
fn a_step_waits_for_what_is_announced_and_for_nothing_else() {
    let accounts = Arc::<Accounts>::default();
    let client = ClientId::generate();
    let mut replies = vec![];
    let mut push = || {
        let (reply, answer) = oneshot::channel();
        replies.push(answer);
        accounts.push(&client, Movement::Open(Open { open: opening(&client), reply }))
    };
    let size = || match accounts.take_step(&client) {
        Some(Step::Open(together)) => together.len(),
        other => panic!("{other:?}"),
    };
    assert!(push(), "the ledger is told of the first");
    assert_eq!(size(), 1);
    assert!(!push() && !push(), "these wait for the end of the step");
    let [first, second] = [accounts.announce(&client), accounts.announce(&client)];
    assert_eq!(accounts.after_step(&client), Next::Pause);
    drop(first);
    assert!(!push(), "one is still to come");
    drop(second);
    assert!(push(), "all have come");
    assert!(!accounts.end_pause(&client), "the pause is over");
    assert_eq!(size(), 4);

    let late = accounts.announce(&client);
    assert_eq!(accounts.after_step(&client), Next::Pause);
    assert!(accounts.end_pause(&client));
    assert!(accounts.take_step(&client).is_none(), "nothing has come");
    assert!(push(), "the ledger is told of it, although more is announced");
    assert_eq!(size(), 1);
    drop(late);
    assert_eq!(accounts.after_step(&client), Next::Nothing);
    assert_eq!(
        format!("{accounts:?}"),
        format!("{:?}", Accounts::default()),
        "nothing is kept of a client without movements"
    );
}

#[test]
fn what_is_announced_and_never_comes_delays_a_step_only() {
    run(async {
        let setting = Setting::new();
        let client = setting.client(10).await;
        let first = setting.under_way(&client).await;
        let second = setting.waiting(&client);
        let _announced = setting.ledger.accounts.announce(&client);
        setting.engine.gate.add_permits(100);
        assert_eq!(
            (first.await, second.await),
            (Ok(OpenOutcome::Opened { balance: 9 }), Ok(OpenOutcome::Opened { balance: 8 }))
        );
        assert_eq!(setting.steps(), [1, 1]);
    });
}

#[test]
fn an_announcement_that_is_withdrawn_twice_is_noticed() {
    let (accounts, client) = (Arc::new(Accounts::default()), ClientId::generate());
    assert_eq!(broken_by(|| drop(accounts.announce(&client))), Vec::<&str>::new());
    let twice = accounts.announce(&client);
    accounts.withdraw(&client);
    assert_eq!(broken_by(|| drop(twice)), ["an announced movement is counted until it has come"]);
}
