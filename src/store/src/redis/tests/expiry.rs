//! On the server's own clock records expire by themselves.

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
use crate::conformance::fixture::{client_with, completing, created, event, opening, registered};
use crate::conformance::guests::ALL;
use crate::conformance::{TestStore, run};
use crate::engine::redis::{RedisEngine, parse_name};
use crate::engine::{Batch, Engine as _, Op};
use crate::installation::test_ownership;
use crate::records::transaction::{TRANSACTION, transaction};
use crate::redis::{NodeId, RedisOptions, RedisStore};
use crate::{CompleteOutcome, CompleteTransaction, Erased, OpenOutcome, Retention};

const SHORT: Duration = Duration::from_millis(300);

struct Short(RedisStore);

impl Short {
    async fn on(server: &RedisServer) -> Self {
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

impl TestStore for Short {
    fn store(&self) -> &Store {
        &self.0
    }

    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn advance(&self, _: Duration) {
        unreachable!("the server's clock is not moved");
    }
}

async fn until<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

#[test]
fn a_transaction_expires_and_disappears_by_itself() {
    run(async {
        let server = RedisServer::start(&[]);
        let test = &Short::on(&server).await;
        let client = client_with(test, 2).await;
        let mut open = opening(test, &client);
        Arc::make_mut(&mut open.pending).expires_at = test.now() + SHORT;
        let id = open.pending.id;
        assert!(matches!(test.store().open_transaction(open).await, Ok(OpenOutcome::Opened { .. })));
        let mut short = opening(test, &client);
        Arc::make_mut(&mut short.pending).terms.webhook_url = None;
        let answered = short.pending.id;
        assert!(matches!(test.store().open_transaction(short).await, Ok(OpenOutcome::Opened { .. })));
        let complete = CompleteTransaction { result_ttl: SHORT, ..completing(answered, 1) };
        assert!(matches!(test.store().complete_transaction(complete).await, Ok(CompleteOutcome::Completed { .. })));
        until(|| async { test.store().load_transaction(id).await == Ok(None) }).await;
        assert_eq!(test.store().complete_transaction(completing(id, 1)).await, Ok(CompleteOutcome::NotFound));
        until(|| async { test.store().load_transaction(answered).await == Ok(None) }).await;
        let is_transaction = |name: &Vec<u8>| parse_name(&TRANSACTION, name).is_some();
        assert!(!key_names(&server).iter().any(is_transaction));
    });
}

#[test]
fn an_expired_event_disappears_with_its_records_and_leaves_its_list() {
    run(async {
        let server = RedisServer::start(&[]);
        let test = &Short::on(&server).await;
        let client = client_with(test, 5).await;
        let mut ending = event(test, &client, 5);
        ending.terms.expires_at = test.now() + SHORT * 4;
        ending.terms.webhook_url = None;
        let ending = created(test, ending).await;
        let mut lasting = event(test, &client, 5);
        lasting.app = ending.app.clone();
        let lasting = created(test, lasting).await;
        assert_eq!(test.store().list_events(ending.app.clone(), ALL).await.unwrap().total, 2);
        let mut open = crate::conformance::fixture::scan(test, &ending);
        Arc::make_mut(&mut open.pending).expires_at = test.now() + SHORT;
        assert!(matches!(test.store().open_transaction(open).await, Ok(OpenOutcome::Opened { .. })));
        until(|| async { test.store().load_event(ending.id).await == Ok(None) }).await;
        until(|| async { test.store().list_events(ending.app.clone(), ALL).await.unwrap().total == 1 }).await;
        registered(test, &lasting).await;
        let is_of = |event: EventId, name: &Vec<u8>| name.ends_with(event.as_bytes());
        let [left, kept] =
            [ending.id, lasting.id].map(|id| key_names(&server).iter().filter(|name| is_of(id, name)).count());
        assert_eq!(
            (left, kept),
            (0, 4),
            "the event that lasts has itself and a guest with what was shared and a trait"
        );
    });
}

#[test]
fn a_guest_is_erased_even_after_the_transaction_has_disappeared() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 5).await;
        let event = created(test, event(test, &client, 5)).await;
        let guest = registered(test, &event).await;
        registered(test, &event).await;
        let gone = Batch::new(vec![], vec![Op::Remove(transaction(guest))]);
        RedisEngine::new(Arc::clone(&test.store.shared)).commit(vec![gone]).await.unwrap();
        let erased = test.store().erase(ErasureSubject::Transaction(guest)).await;
        assert_eq!(erased, Ok(Erased { registrations: 1, ..Erased::default() }));
    });
}
