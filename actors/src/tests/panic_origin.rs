//! A panic in an actor names the request that it was handling, and the actor is restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::AppId;
use sakshi_domain::time::Timestamp;
use sakshi_kit::records;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_store::engine::memory::MemoryEngine;
use sakshi_store::engine::{Answers, Applied, Batch, Engine, Query, ScanFrom, Scanned, Table};
use sakshi_store::redis::NodeId;
use sakshi_store::{Retention, Store, StoreFuture};

use super::{Fixture, WINDOW, completion, create_funded_client, large_bounds, run, verified};
use crate::{CompleteReply, Handles, NodeView, Tree, TreeConfig, note_panic};

/// An engine that panics once when a batch is committed, or when documents that have lapsed are listed.
#[derive(Clone, Debug)]
struct FaultyEngine {
    engine: MemoryEngine,
    panics_on_commit: Arc<AtomicBool>,
    panics_on_listing: Arc<AtomicBool>,
}

impl Engine for FaultyEngine {
    fn system(&self) -> &'static str {
        "memory"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        let is_listing = queries.iter().any(|query| query.key().table.name == "lapsing");
        assert!(!is_listing || !self.panics_on_listing.swap(false, Ordering::SeqCst), "as the test asked");
        self.engine.read(queries)
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        assert!(!self.panics_on_commit.swap(false, Ordering::SeqCst), "as the test asked");
        self.engine.commit(batches)
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

fn faulty_engine(fixture: &Fixture) -> FaultyEngine {
    let engine = MemoryEngine::new(fixture.clock.clone());
    FaultyEngine { engine, panics_on_commit: Arc::default(), panics_on_listing: Arc::default() }
}

#[test]
fn an_actor_without_requests_is_restarted_after_a_panic() {
    run(async {
        let fixture = Fixture::new().await;
        let engine = faulty_engine(&fixture);
        engine.panics_on_listing.store(true, Ordering::SeqCst);
        let retention = Retention { expired: WINDOW, events: WINDOW, consents: WINDOW };
        let vault = Arc::clone(&fixture.config.vault);
        let store = Store::new(Box::new(engine), vault, retention, NodeId::ALONE, None);
        let (tree, _escalations) =
            Tree::start(TreeConfig { store, ..fixture.config.clone() }, large_bounds()).await.unwrap();
        let sweeper = || tree.view().children.into_iter().find(|node| node.name == "flow-sweeper").unwrap();
        let runs_again = || async {
            let NodeView { restarts, state, .. } = sweeper();
            (restarts == 1 && state == "running").then_some(())
        };
        eventually("the flow sweeper runs again", TIMEOUT, runs_again).await;
        tree.stop();
        fixture.end().await;
    });
}

#[test]
fn a_panic_in_a_handler_is_recorded_with_its_request_and_place() {
    // The process has one hook, so panics of other tests keep the one before.
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        note_panic(panic.location(), sakshi_trace::request_id().map(|id| id.to_string()));
        before(panic);
    }));
    run(async {
        let fixture = Fixture::new().await;
        let engine = faulty_engine(&fixture);
        let retention = Retention { expired: WINDOW, events: WINDOW, consents: WINDOW };
        let store =
            Store::new(Box::new(engine.clone()), Arc::clone(&fixture.config.vault), retention, NodeId::ALONE, None);
        let client = create_funded_client(&store, fixture.clock.now()).await;
        let (tree, _escalations) =
            Tree::start(TreeConfig { store, ..fixture.config.clone() }, large_bounds()).await.unwrap();
        let Handles { transactions, .. } = tree.start_shard().unwrap();
        let id = transactions.new_id(&client);
        let pending = records::pending(id, client, AppId::generate(), fixture.clock.now());
        transactions.open(records::opening(pending)).await.unwrap();

        engine.panics_on_commit.store(true, Ordering::SeqCst);
        let completing = transactions.complete(id, completion(verified(1)));
        let completed = sakshi_trace::in_request("order-7".into(), completing).await;
        assert_eq!(completed.unwrap(), CompleteReply::Accepted, "the question was asked again");
        let NodeView { children, .. } = tree.view();
        let panic = children
            .iter()
            .find(|node| node.name == "transactions-0")
            .and_then(|node| node.last_panic.clone())
            .unwrap();
        assert_eq!((panic.request_id.as_deref(), panic.count), (Some("order-7"), 1));
        assert!(panic.place.starts_with("actors/src/tests/panic_origin.rs:"), "{panic:?}");
        tree.stop();
        fixture.end().await;
    });
}
