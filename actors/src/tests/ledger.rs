//! Movements of credits: in order for each client, and together when they wait.

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

use super::{WINDOW, run, wait_until};
use crate::accounts::{Accounts, Movement, Next, Open, Step};
use crate::ledger::{CreditLedger, Ledger};

const NOW: Timestamp = Timestamp::from_millis(1_900_000_000_000);

/// An engine whose steps wait until the test releases them.
#[derive(Clone, Debug)]
struct GatedEngine {
    engine: MemoryEngine,
    gate: Arc<Semaphore>,
    /// Number of batches of each step.
    batches_per_step: Arc<Mutex<Vec<usize>>>,
}

impl Engine for GatedEngine {
    fn system(&self) -> &'static str {
        "memory"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.engine.read(queries)
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let this = self.clone();
        Box::pin(async move {
            this.batches_per_step.lock().unwrap().push(batches.len());
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

struct Fixture {
    ledger: Ledger,
    engine: GatedEngine,
}

impl Fixture {
    fn new() -> Self {
        let engine = GatedEngine {
            engine: MemoryEngine::new(Arc::new(ManualClock::starting_at(NOW))),
            gate: Arc::new(Semaphore::new(0)),
            batches_per_step: Arc::default(),
        };
        let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap());
        let retention = Retention { expired: WINDOW, events: WINDOW, consents: WINDOW };
        let store = Store::new(Box::new(engine.clone()), vault, retention, NodeId::ALONE, None);
        let accounts = Arc::<Accounts>::default();
        let actor = CreditLedger::new(store.clone(), Arc::clone(&accounts)).start();
        Self { ledger: Ledger { actor, accounts, store, ask_timeout: Duration::from_secs(3_600) }, engine }
    }

    /// Creates a client with credits. The steps of later movements wait at the gate.
    async fn create_client(&self, credits: u64) -> ClientId {
        let client = Client::new(ClientId::generate(), "Test".into(), NOW);
        let id = client.client_id.clone();
        self.engine.gate.add_permits(100);
        self.ledger.store.create_client(client).await.unwrap();
        if credits > 0 {
            self.ledger.store.move_credits(id.clone(), grant(credits, "start")).await.unwrap();
        }
        self.engine.gate.forget_permits(usize::MAX);
        self.engine.batches_per_step.lock().unwrap().clear();
        id
    }

    /// Starts an opening, which waits for the ledger.
    fn start_opening(&self, client: &ClientId) -> Opening<'_> {
        let mut opening = Box::pin(self.ledger.open(opening(client)));
        assert!(opening.as_mut().now_or_never().is_none());
        opening
    }

    /// Starts an opening whose step waits at the gate.
    async fn start_step(&self, client: &ClientId) -> Opening<'_> {
        let opening = self.start_opening(client);
        wait_until("the first step is under way", || self.batches_per_step() == [1]).await;
        opening
    }

    fn batches_per_step(&self) -> Vec<usize> {
        self.engine.batches_per_step.lock().unwrap().clone()
    }
}

type Opening<'a> = Pin<Box<dyn Future<Output = Result<OpenOutcome, StoreError>> + 'a>>;

fn grant(amount: u64, reference: &str) -> CreditMove {
    CreditMove { kind: EntryKind::Grant, amount: amount.try_into().unwrap(), reference: reference.into() }
}

fn opening(client: &ClientId) -> OpenTransaction {
    let pending = records::pending(TxnId::generate(client.partition(), 0), client.clone(), AppId::generate(), NOW);
    records::opening(pending)
}

#[test]
fn waiting_movements_of_a_client_share_a_step_in_order() {
    run(async {
        let fixture = Fixture::new();
        let (client, other_client) = (fixture.create_client(100).await, fixture.create_client(100).await);
        let mut opens = vec![fixture.start_step(&client).await];
        opens.extend((1..70).map(|_| fixture.start_opening(&client)));
        let movements = async {
            let opened = join_all(opens).await;
            let moved = fixture.ledger.move_credits(client.clone(), grant(5, "later")).await;
            (opened, moved)
        };
        let release = async {
            fixture.engine.gate.add_permits(1);
            // A step opens at most 64 transactions.
            wait_until("a full step", || fixture.batches_per_step() == [1, 64]).await;
            let other_opening = fixture.ledger.open(opening(&other_client));
            let release_all = async {
                wait_until("the step of another client", || fixture.batches_per_step() == [1, 64, 1]).await;
                fixture.engine.gate.add_permits(100);
            };
            tokio::join!(other_opening, release_all).0
        };
        let ((opened, moved), other_opening) = tokio::join!(movements, release);
        assert_eq!(other_opening, Ok(OpenOutcome::Opened { balance: 99 }));
        let balances: Vec<_> = opened.into_iter().map(Result::unwrap).collect();
        let expected: Vec<_> = (0..70).map(|number| OpenOutcome::Opened { balance: 99 - number }).collect();
        assert_eq!(balances, expected, "in the order of arrival");
        // After the first grant and seventy openings.
        assert!(matches!(moved, Ok(CreditOutcome::Moved(entry)) if entry.seq == 72 && entry.balance_after == 35));
        // The first opening, a full step, the other client's opening, the five openings left, and the grant.
        assert_eq!(fixture.batches_per_step(), [1, 64, 1, 5, 1]);
    });
}

#[test]
fn a_movement_without_a_waiting_caller_is_dropped() {
    run(async {
        let fixture = Fixture::new();
        let client = fixture.create_client(10).await;
        let first = fixture.start_step(&client).await;
        drop(fixture.start_opening(&client));
        let last = fixture.start_opening(&client);
        fixture.engine.gate.add_permits(100);
        assert_eq!(
            (first.await, last.await),
            (Ok(OpenOutcome::Opened { balance: 9 }), Ok(OpenOutcome::Opened { balance: 8 }))
        );
        assert_eq!(fixture.batches_per_step(), [1, 1]);
    });
}

#[test]
fn a_client_lacks_credits_until_a_grant() {
    run(async {
        let fixture = Fixture::new();
        let client = fixture.create_client(1).await;
        fixture.engine.gate.add_permits(100);
        let ledger = &fixture.ledger;
        assert_eq!(ledger.lacks_credits(&client, 1).await, Ok(false), "no balance is known");
        assert_eq!(ledger.open(opening(&client)).await, Ok(OpenOutcome::Opened { balance: 0 }));
        assert_eq!(ledger.lacks_credits(&client, 1).await, Ok(true));
        assert_eq!(ledger.open(opening(&client)).await, Ok(OpenOutcome::InsufficientCredits));
        // Grants a credit as another node would.
        ledger.store.move_credits(client.clone(), grant(1, "elsewhere")).await.unwrap();
        assert_eq!(ledger.lacks_credits(&client, 1).await, Ok(false));
        assert_eq!(ledger.open(opening(&client)).await, Ok(OpenOutcome::Opened { balance: 0 }));
    });
}

#[test]
fn a_failed_step_fails_each_of_its_movements_and_the_next_step_begins() {
    run(async {
        let fixture = Fixture::new();
        let client = fixture.create_client(10).await;
        let opens = [fixture.start_step(&client).await, fixture.start_opening(&client), fixture.start_opening(&client)];
        fixture.engine.gate.close();
        let outcomes = join_all(opens).await;
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(StoreError::Unavailable(_)))), "{outcomes:?}");
    });
}

#[test]
fn a_step_waits_for_announced_movements_only() {
    let accounts = Arc::<Accounts>::default();
    let client = ClientId::generate();
    let mut replies = vec![];
    // Returns true if the ledger must be asked to begin a step.
    let mut push = || {
        let (reply, answer) = oneshot::channel();
        replies.push(answer);
        accounts.push(&client, Movement::Open(Open { open: opening(&client), reply }))
    };
    let take_step_size = || match accounts.take_step(&client) {
        Some(Step::Open(opens)) => opens.len(),
        other => panic!("{other:?}"),
    };
    assert!(push(), "the ledger must begin a step");
    assert_eq!(take_step_size(), 1);
    assert!(!push() && !push(), "further movements wait for the end of the step");
    let [first, second] = [accounts.announce(&client), accounts.announce(&client)];
    assert_eq!(accounts.after_step(&client), Next::Pause);
    drop(first);
    assert!(!push(), "one announced movement is missing");
    drop(second);
    assert!(push(), "all announced movements have arrived");
    assert!(!accounts.end_pause(&client), "the pause is over");
    assert_eq!(take_step_size(), 4);

    let late = accounts.announce(&client);
    assert_eq!(accounts.after_step(&client), Next::Pause);
    assert!(accounts.end_pause(&client));
    assert!(accounts.take_step(&client).is_none(), "no movement has arrived");
    assert!(push(), "the ledger must begin a step, although more is announced");
    assert_eq!(take_step_size(), 1);
    drop(late);
    assert_eq!(accounts.after_step(&client), Next::Nothing);
    assert_eq!(format!("{accounts:?}"), format!("{:?}", Accounts::default()), "a client without movements is removed");
}

#[test]
fn an_announced_movement_that_never_arrives_only_delays_a_step() {
    run(async {
        let fixture = Fixture::new();
        let client = fixture.create_client(10).await;
        let first = fixture.start_step(&client).await;
        let second = fixture.start_opening(&client);
        let _announced = fixture.ledger.accounts.announce(&client);
        fixture.engine.gate.add_permits(100);
        assert_eq!(
            (first.await, second.await),
            (Ok(OpenOutcome::Opened { balance: 9 }), Ok(OpenOutcome::Opened { balance: 8 }))
        );
        assert_eq!(fixture.batches_per_step(), [1, 1]);
    });
}

#[test]
fn withdrawing_an_announcement_twice_breaks_an_invariant() {
    let (accounts, client) = (Arc::new(Accounts::default()), ClientId::generate());
    assert_eq!(broken_by(|| drop(accounts.announce(&client))), Vec::<&str>::new());
    let withdrawn = accounts.announce(&client);
    accounts.withdraw(&client);
    assert_eq!(broken_by(|| drop(withdrawn)), ["an announced movement is counted until it has come"]);
}
