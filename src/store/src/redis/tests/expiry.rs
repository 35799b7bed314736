//! Expiry by the server's own clock.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use zeroize::Zeroizing;

use super::server::{RedisServer, TIMEOUT};
use super::{key_names, standalone, test_store};
use crate::Store;
use crate::Vault;
use crate::conformance::fixture::{
    build_completion, build_event, build_opening, client_with, register_guest, store_event,
};
use crate::conformance::guests::ALL;
use crate::conformance::{TestStore, run};
use crate::engine::redis::{RedisEngine, parse_name};
use crate::engine::{Batch, Engine as _, Op};
use crate::installation::test_ownership;
use crate::records::transaction::{TRANSACTION, key_of_transaction};
use crate::redis::{NodeId, RedisOptions, RedisStore};
use crate::{CompleteOutcome, CompleteTransaction, Erased, OpenOutcome, Retention};

/// Retention and time to live of records in these tests.
const SHORT: Duration = Duration::from_millis(300);

/// A store whose records expire soon, by the server's clock.
struct ShortLivedStore(RedisStore);

impl ShortLivedStore {
    async fn open(server: &RedisServer) -> Self {
        let options = RedisOptions {
            servers: standalone(&server.url()),
            wait_replicas: 0,
            node: NodeId::generate(),
            vault: Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap()),
            retention: Retention { expired: SHORT, events: SHORT, consents: SHORT },
            max_waiting: 100,
            must_persist: false,
            waits_at_start: false,
            ownership: test_ownership(),
            schema: &crate::SCHEMA,
            clock: None,
        };
        Self(RedisStore::open(options).await.unwrap())
    }
}

impl TestStore for ShortLivedStore {
    fn store(&self) -> &Store {
        &self.0
    }

    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn advance(&self, _: Duration) {
        unreachable!("the server's clock cannot be advanced");
    }
}

/// Waits until a condition holds.
async fn await_condition<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let waiting = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

#[test]
fn a_transaction_expires_and_disappears_by_itself() {
    run(async {
        let server = RedisServer::start(&[]);
        let test = &ShortLivedStore::open(&server).await;
        let client = client_with(test, 2).await;
        let mut open = build_opening(test, &client);
        Arc::make_mut(&mut open.pending).expires_at = test.now() + SHORT;
        let id = open.pending.id;
        assert!(matches!(test.store().open_transaction(open).await, Ok(OpenOutcome::Opened { .. })));
        let mut short = build_opening(test, &client);
        Arc::make_mut(&mut short.pending).terms.webhook_url = None;
        let completed = short.pending.id;
        assert!(matches!(test.store().open_transaction(short).await, Ok(OpenOutcome::Opened { .. })));
        let complete = CompleteTransaction { result_ttl: SHORT, ..build_completion(completed, 1) };
        assert!(matches!(test.store().complete_transaction(complete).await, Ok(CompleteOutcome::Completed { .. })));
        await_condition(|| async { test.store().load_transaction(id).await == Ok(None) }).await;
        assert_eq!(test.store().complete_transaction(build_completion(id, 1)).await, Ok(CompleteOutcome::NotFound));
        await_condition(|| async { test.store().load_transaction(completed).await == Ok(None) }).await;
        let is_transaction = |name: &Vec<u8>| parse_name(&TRANSACTION, name).is_some();
        assert!(!key_names(&server).iter().any(is_transaction));
    });
}

#[test]
fn an_expired_event_disappears_with_its_records_and_leaves_its_list() {
    run(async {
        let server = RedisServer::start(&[]);
        let test = &ShortLivedStore::open(&server).await;
        let client = client_with(test, 5).await;
        let mut ending = build_event(test, &client, 5);
        ending.terms.expires_at = test.now() + SHORT * 4;
        ending.terms.webhook_url = None;
        let ending = store_event(test, ending).await;
        let mut lasting = build_event(test, &client, 5);
        lasting.app = ending.app.clone();
        let lasting = store_event(test, lasting).await;
        assert_eq!(test.store().list_events(ending.app.clone(), ALL).await.unwrap().total, 2);
        let mut open = crate::conformance::fixture::build_guest_scan(test, &ending);
        Arc::make_mut(&mut open.pending).expires_at = test.now() + SHORT;
        assert!(matches!(test.store().open_transaction(open).await, Ok(OpenOutcome::Opened { .. })));
        await_condition(|| async { test.store().load_event(ending.id).await == Ok(None) }).await;
        await_condition(|| async { test.store().list_events(ending.app.clone(), ALL).await.unwrap().total == 1 }).await;
        register_guest(test, &lasting).await;
        let belongs_to = |event: EventId, name: &Vec<u8>| name.ends_with(event.as_bytes());
        let [ended_keys, lasting_keys] =
            [ending.id, lasting.id].map(|id| key_names(&server).iter().filter(|name| belongs_to(id, name)).count());
        assert_eq!(
            (ended_keys, lasting_keys),
            (0, 4),
            "the lasting event has four keys: itself, a guest, the shared claims and a trait"
        );
    });
}

#[test]
fn a_guest_is_erased_even_after_the_transaction_has_disappeared() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 5).await;
        let event = store_event(test, build_event(test, &client, 5)).await;
        let guest = register_guest(test, &event).await;
        register_guest(test, &event).await;
        let removal = Batch::new(vec![], vec![Op::Remove(key_of_transaction(guest))]);
        RedisEngine::new(Arc::clone(&test.store.shared)).commit(vec![removal]).await.unwrap();
        let erased = test.store().erase(ErasureSubject::Transaction(guest)).await;
        assert_eq!(erased, Ok(Erased { registrations: 1, ..Erased::default() }));
    });
}
