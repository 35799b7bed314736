//! Moves from Redis back to a file: the store gives the same answers.

use std::path::Path;
use std::sync::Arc;

use sakshi_domain::delivery::{Attempt, DeliveryOutcome, Subject};
use sakshi_domain::erasure::ErasureSubject;

use super::equality::assert_equal;
use super::inventory::use_every_operation;
use super::moving::{ALL, create_events_in_one_millisecond, open_embedded, pending_deliveries, reply_to};
use super::server::RedisServer;
use super::{RedisTestStore, connect_store, options, standalone, test_store};
use crate::conformance::fixture::{
    RETENTION, WINDOW, build_event, client_with, load_counts, open_and_complete, open_guest_scan, open_pending,
    register_guest, store_event,
};
use crate::conformance::{ClockedStore, TestStore as _, run};
use crate::engine::redis::name;
use crate::records::{client, delivery, installation, transaction};
use crate::redis::{RedisOptions, RedisStore};
use crate::vault::test_vault;
use crate::{Moved, StoreError, move_to_directory};

impl RedisTestStore {
    /// Moves the store into a directory, after this node has left.
    async fn move_to(&self, directory: &Path) -> Result<Moved, StoreError> {
        self.store.leave().await?;
        move_to_directory(self.options(), directory, |_, _| {}).await
    }

    /// Reopens the store, as if it had not been moved away.
    async fn reopen(&self) -> RedisStore {
        self.server.answer(&["DEL", "moving"]);
        RedisStore::open(self.options()).await.unwrap()
    }
}

#[test]
fn a_store_that_was_moved_back_gives_the_same_answers() {
    run(async {
        let test = test_store();
        let flows = use_every_operation(&test).await;
        let client = client_with(&test, 50).await;
        let events = [
            store_event(&test, build_event(&test, &client, 10)).await,
            store_event(&test, build_event(&test, &client, 10)).await,
        ];
        let app = create_events_in_one_millisecond(&test, &client).await;
        for event in &events {
            register_guest(&test, event).await;
            open_guest_scan(&test, event).await;
            register_guest(&test, event).await;
        }
        test.store().erase(ErasureSubject::Event(events[0].id)).await.unwrap();
        let waiting = pending_deliveries(test.store()).await;
        assert!(waiting.len() > 2);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let moved = test.move_to(&path).await.unwrap();
        assert!(moved.is_finished && moved.kinds["txn"].keys > 5 && moved.kinds["outbox"].keys > 0, "{moved:?}");

        let refused = RedisStore::open(test.options()).await.unwrap_err();
        assert!(refused.to_string().contains("moved into a file"), "{refused}");
        let (redis, file) = (test.reopen().await, open_embedded(&path, &test.clock));
        // As at the start of a node: attempts with an unknown outcome are not repeated.
        redis.abandon(test.store.shared.node).await.unwrap();
        redis.take_over(test.store.shared.node).await.unwrap();
        file.abandon_attempts().await.unwrap();
        assert_equal(&redis, &file, &flows).await;
        assert_eq!(file.list_events(app.clone(), ALL).await, redis.list_events(app, ALL).await);
        let due = file.first_due_deliveries(100).await.unwrap();
        assert_eq!(due.iter().map(|due| due.subject).collect::<Vec<_>>(), waiting);
        for delivery in due {
            assert_eq!(file.claim_delivery(delivery.id, delivery.subject).await, Ok(true));
        }
        // The file continues where the servers ended.
        let test = ClockedStore { store: file, clock: Arc::clone(&test.clock) };
        open_and_complete(&test, &client).await;
        let (event, before) = (&events[1], load_counts(&test, &events[1]).await);
        let guest = register_guest(&test, event).await;
        assert_eq!(load_counts(&test, event).await.registrations, before.registrations + 1);
        assert_eq!(test.store.erase(ErasureSubject::Transaction(guest)).await.unwrap().registrations, 1);
        test.clock.advance(WINDOW * 2);
        assert_eq!(load_counts(&test, event).await.abandoned, before.abandoned + 1);
        assert!(test.store.audit().await.unwrap().iter().all(crate::Audit::is_clean));
    });
}

#[test]
fn a_scan_without_its_transaction_counts_as_abandoned() {
    run(async {
        let test = test_store();
        let client = client_with(&test, 10).await;
        let event = store_event(&test, build_event(&test, &client, 10)).await;
        let (removed, expired) = (open_guest_scan(&test, &event).await, open_guest_scan(&test, &event).await);
        test.clock.advance(WINDOW);
        assert_eq!(reply_to(&test.store, "DEL", &name(&transaction::key_of_transaction(removed))).await, "1");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        test.move_to(&path).await.unwrap();
        let file = open_embedded(&path, &test.clock);
        let test = ClockedStore { store: file, clock: Arc::clone(&test.clock) };
        let counted = load_counts(&test, &event).await;
        assert_eq!((counted.scans, counted.abandoned), (2, 2), "{expired} has ended as well");
    });
}

#[test]
fn records_without_content_do_not_block_a_move() {
    run(async {
        let test = test_store();
        let client = client_with(&test, 10).await;
        let (txn, id) = open_and_complete(&test, &client).await;
        test.store().choose_intent_key(None).await.unwrap();
        assert!(test.store().claim_delivery(id, txn.id.into()).await.unwrap());
        let ended = Attempt::from_status(200, 1);
        test.store().settle_delivery(id, txn.id.into(), ended).await.unwrap();
        assert_eq!(
            reply_to(&test.store, "EXISTS", &name(&delivery::key_of_holders(client.partition()))).await,
            "1",
            "the node had deliveries"
        );
        assert_eq!(
            reply_to(&test.store, "EXISTS", &name(&installation::key_of_intent_key())).await,
            "0",
            "the settings choose the intent key"
        );
        // A node that waits for replicas leaves such keys for a minute.
        test.server.answer(&["SET", "waited:7", "1", "PX", "60000"]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        assert!(test.move_to(&path).await.unwrap().is_finished);
        let file = open_embedded(&path, &test.clock);
        assert_eq!(file.load_delivery(txn.id.into()).await.unwrap().unwrap().attempt, Some(ended));
        assert_eq!(file.chosen_intent_key().await, Ok(None));
    });
}

#[test]
fn a_refused_move_changes_nothing() {
    run(async {
        let test = test_store();
        let client = client_with(&test, 5).await;
        open_pending(&test, &client).await;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let move_to = |options, path: &Path| {
            let path = path.to_owned();
            async move { move_to_directory(options, &path, |_, _| {}).await.unwrap_err() }
        };
        // A running node is detected behind others that have died.
        let beats = test.server.answer(&["ZRANGE", "{nodes}beats", "0", "0", "WITHSCORES"]);
        let latest: i64 = beats.members()[1].text().unwrap().parse().unwrap();
        let dead = ["0", "1"].map(|digit| digit.repeat(32));
        for (node, age) in dead.iter().zip([2, 1]) {
            test.server.answer(&["ZADD", "{nodes}beats", &(latest - age).to_string(), node]);
        }
        let serving = move_to(test.options(), &path).await;
        assert!(matches!(serving, StoreError::InUse(_)), "{serving}");
        dead.iter().for_each(|node| drop(test.server.answer(&["ZREM", "{nodes}beats", node])));
        RedisStore::open(test.options()).await.unwrap().leave().await.unwrap();
        test.store.leave().await.unwrap();

        let wrong = RedisOptions { vault: Arc::new(test_vault(&[9])), ..test.options() };
        assert_eq!(move_to(wrong, &path).await, StoreError::WrongKey);
        let other = directory.path().join("other");
        open_embedded(&other, &test.clock).close();
        let full = move_to(test.options(), &other).await;
        assert!(full.to_string().contains("holds a store"), "{full}");
        let nothing = RedisServer::start(&[]);
        let nothing = move_to(options(standalone(&nothing.url()), Arc::clone(&test.clock), RETENTION), &path).await;
        assert!(nothing.to_string().contains("there is no store"), "{nothing}");

        // A key that no store has is reported.
        test.server.answer(&["SET", "stranger", "1"]);
        let stranger = move_to(test.options(), &path).await;
        assert!(stranger.to_string().contains("stranger") && !crate::embedded::exists(&path), "{stranger}");
        RedisStore::open(test.options()).await.unwrap().leave().await.unwrap();
        test.server.answer(&["DEL", "stranger"]);
        // A file is where the unfinished store is to be created.
        std::fs::write(path.join("unfinished"), "").unwrap();
        let obstructed = move_to(test.options(), &path).await;
        assert!(obstructed.to_string().contains("cannot remove"), "{obstructed}");
        RedisStore::open(test.options()).await.unwrap().leave().await.unwrap();
        std::fs::remove_file(path.join("unfinished")).unwrap();
        test.move_to(&path).await.unwrap();
        assert!(open_embedded(&path, &test.clock).audit().await.unwrap().iter().all(crate::Audit::is_clean));
    });
}

#[test]
fn a_move_away_from_changing_servers_is_refused() {
    run(async {
        let server = Arc::new(RedisServer::start(&[]));
        let test = connect_store(Arc::clone(&server), standalone(&server.url()), RETENTION);
        let client = client_with(&test, 5).await;
        test.store.leave().await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let name = String::from_utf8(name(&client::key_of_client(&client))).unwrap();
        let change = move |pass: &str, seen: u64| {
            assert!(seen > 0);
            if pass == "copied" {
                server.answer(&["HSET", &name, "balance", "99"]);
            }
        };
        let options = options(standalone(&test.server.url()), Arc::clone(&test.clock), RETENTION);
        let refused = move_to_directory(options, &path, change).await.unwrap_err().to_string();
        assert!(
            refused.ends_with("the target differs from the source: client: 1") && !crate::embedded::exists(&path),
            "{refused}"
        );
    });
}

#[test]
fn a_moved_store_sends_the_pending_webhooks_of_all_nodes_once() {
    run(async {
        let test = test_store();
        let client = client_with(&test, 50).await;
        let other = test.another_node().await;
        let (claimed, id) = open_and_complete(&test, &client).await;
        assert!(test.store().claim_delivery(id, claimed.id.into()).await.unwrap());
        let mut waiting = vec![Subject::from(open_and_complete(&test, &client).await.0.id)];
        let other_test = ClockedStore { store: other.clone(), clock: Arc::clone(&test.clock) };
        waiting.push(open_and_complete(&other_test, &client).await.0.id.into());
        let (claimed_there, id) = open_and_complete(&other_test, &client).await;
        assert!(other.claim_delivery(id, claimed_there.id.into()).await.unwrap());
        waiting.push(open_and_complete(&test, &client).await.0.id.into());
        other.leave().await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        test.move_to(&path).await.unwrap();

        let file = open_embedded(&path, &test.clock);
        assert_eq!(file.abandon_attempts().await, Ok(2));
        let due = file.first_due_deliveries(10).await.unwrap();
        assert_eq!(
            due.iter().map(|due| due.subject).collect::<Vec<_>>(),
            waiting,
            "in the order in which they were queued"
        );
        for due in due {
            assert_eq!(file.claim_delivery(due.id, due.subject).await, Ok(true));
            assert_eq!(file.claim_delivery(due.id, due.subject).await, Ok(false));
        }
        for transaction in [claimed, claimed_there] {
            let attempt = file.load_delivery(transaction.id.into()).await.unwrap().unwrap().attempt;
            assert_eq!(attempt.map(|attempt| attempt.outcome), Some(DeliveryOutcome::Unknown));
        }
        assert_eq!(file.abandon_attempts().await, Ok(waiting.len() as u64));
        assert_eq!(file.first_due_deliveries(10).await, Ok(vec![]));
    });
}
