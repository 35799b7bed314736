//! Files that an earlier version of the schema wrote: migrated with all their records.

use std::fs::create_dir;
use std::sync::Arc;

use rusqlite::{Connection, params};
use sakshi_domain::clock::ManualClock;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::delivery::DeliveryId;
use sakshi_domain::time::Timestamp;
use tempfile::TempDir;

use super::canary::set_back;
use super::{EmbeddedTestStore, START, open, open_when_free, options};
use crate::TransactionRecord;
use crate::conformance::TestStore;
use crate::conformance::fixture::{
    HOOK, RESULT_TTL, RETENTION, audited_balance, client, client_with, completed, completing, created, event, grant, kept, opening,
    registered, sealed, url,
};
use crate::conformance::flow_fixture::{Told, accepted, opened as flow_opened, party as party_of_flows, wealth};
use crate::conformance::upkeep::{long_list, pages_have};
use crate::embedded::EmbeddedStore;
use crate::embedded::database::schema::APPLICATION_ID;
use crate::sealing::seal_terms;
use crate::{CompleteOutcome, OpenOutcome, OpenTransaction, PageRequest};
use crate::{Credits as _, Events as _, Outbox as _, Tenancy as _, Transactions as _, Upkeep as _};

/// A file of version 1: a client, a pending and a completed transaction, a queued delivery, and an
/// idempotency record.
struct Old {
    directory: TempDir,
    pending: OpenTransaction,
    completed: OpenTransaction,
}

fn millis(at: Timestamp) -> i64 {
    at.millis()
}

async fn version_1() -> Old {
    // Another store provides the clock and the values; its file is not used.
    let test = super::test_store();
    let owner = client_with(&test, 1).await;
    let (mut pending, completed) = (opening(&test, &owner), opening(&test, &owner));
    pending.idempotency = Some(kept(&test, &owner, 1, 1));

    let directory = tempfile::tempdir().unwrap();
    create_dir(directory.path().join("store")).unwrap();
    let file = Connection::open(directory.path().join("store/sakshi.db")).unwrap();
    file.execute_batch(include_str!("../database/schema_1.sql")).unwrap();
    file.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    file.pragma_update(None, "user_version", 1).unwrap();
    let put = |sql: &str, row: &[&dyn rusqlite::ToSql]| assert_eq!(file.execute(sql, row).unwrap(), 1);
    put("INSERT INTO clients VALUES (4, ?1, 'Bank of Testing', ?2, 18, 3)", params![owner.as_str(), millis(START)]);
    let entry = "INSERT INTO ledger VALUES (4, ?1, ?2, ?3, ?4, ?5, ?6)";
    put(entry, params![1, 0, 20, 20, "first", millis(START)]);
    let vault = options(directory.path(), test.clock.clone()).vault;
    for (row, open) in [(1, &pending), (2, &completed)] {
        let id = open.pending.id.as_bytes();
        put(entry, params![row + 1, 1, 1, 20 - row, id, millis(START)]);
        let terms = seal_terms(&vault, open.pending.id, &open.pending.terms).unwrap();
        let (app, from, to) = (open.pending.app.as_str(), millis(START), millis(open.pending.expires_at));
        let sql = "INSERT INTO transactions VALUES (?1, ?2, 4, ?3, ?4, ?5, ?6, 'https://hooks.example', ?7)";
        put(sql, params![row, id, app, from, to, row == 2, terms]);
    }
    let (until, outcome) = (millis(START + RESULT_TTL), sealed("outcome 1").to_bytes());
    put("INSERT INTO results VALUES (2, ?1, ?2, 1, ?3, ?4)", params![millis(START), until, [1_u8; 32], outcome]);
    put("INSERT INTO deliveries VALUES (7, 2, 'https://hooks.example', ?1, NULL, NULL, NULL, NULL)", params![millis(START)]);
    let answer = kept(&test, &owner, 1, 1);
    let row = params![answer.scope.digest, answer.request, pending.pending.id.as_bytes(), until, answer.answer.to_bytes()];
    put("INSERT INTO idempotency VALUES (1, ?1, ?2, ?3, ?4, ?5)", row);
    Old { directory, pending, completed }
}

/// Today's store on the file.
fn opened_now(directory: TempDir) -> EmbeddedTestStore {
    let clock = Arc::new(ManualClock::starting_at(START));
    EmbeddedTestStore { store: EmbeddedStore::open(options(directory.path(), Arc::clone(&clock))).unwrap(), clock, directory }
}

#[tokio::test]
async fn a_file_of_version_1_is_migrated_with_everything_it_holds() {
    let Old { directory, pending, completed: ended } = version_1().await;
    let test = opened_now(directory);
    let owner = pending.pending.client.clone();
    assert_eq!(audited_balance(&test, &owner).await, 18);
    let statement = test.store.statement(owner.clone(), PageRequest { page: 1, page_size: 10 }).await.unwrap();
    let kinds: Vec<_> = statement.items.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Grant, EntryKind::Debit, EntryKind::Debit]);

    assert_eq!(test.store.open_transaction(pending.clone()).await, Ok(OpenOutcome::Opened { balance: 18 }));
    let mut another = opening(&test, &owner);
    another.idempotency = Some(kept(&test, &owner, 1, 1));
    assert_eq!(test.store.open_transaction(another).await, Ok(OpenOutcome::Replayed(kept(&test, &owner, 1, 1).answer)));

    let due = test.store.due_deliveries(None, None, 10).await.unwrap();
    assert_eq!((due.len(), due[0].id, &due[0].url), (1, DeliveryId(7), &url(HOOK)));
    let Ok(Some(TransactionRecord::Completed(record))) = test.store.load_transaction(ended.pending.id).await else {
        panic!("the completed transaction is there")
    };
    assert_eq!((record.opened, record.outcome, record.passed, record.refused), ((*ended.pending).clone(), sealed("outcome 1"), true, None));

    let outcome = test.store.complete_transaction(completing(pending.pending.id, 5)).await.unwrap();
    let CompleteOutcome::Completed { record, queued: Some(delivery), repeated: false } = outcome else { panic!("{outcome:?}") };
    assert_eq!((record.opened, delivery.url), ((*pending.pending).clone(), url(HOOK)));
    assert!(delivery.id > DeliveryId(7), "no position is used twice");
    assert!(test.store.claim_delivery(DeliveryId(7), due[0].subject).await.unwrap());

    let party = created(&test, event(&test, &owner, 10)).await;
    registered(&test, &party).await;
    assert_eq!(test.store.load_event(party.id).await.unwrap().unwrap().counts.registrations, 1);
    let consent = party_of_flows(&test).await;
    let flow = flow_opened(&test, wealth(&test, &consent)).await;
    let reported = accepted(&test, &flow, Told::Data(1, "RAW", 1)).await.unwrap();
    assert!(reported.id > delivery.id, "flows queue behind what was there");
    test.advance(RESULT_TTL);
    assert_eq!(test.store.sweep(test.now(), RETENTION, 10).await.unwrap().idempotency, 1);
    test.store.close();
    let again = open(test.directory.path()).unwrap();
    assert!(again.load_event(party.id).await.unwrap().is_some(), "and is opened again as it is");
}

#[tokio::test]
async fn a_migrated_file_serves_new_clients() {
    let old = version_1().await;
    let test = opened_now(old.directory);
    test.store.create_client(client(&test)).await.unwrap();
    let owner = old.completed.pending.client.clone();
    test.store.move_credits(owner.clone(), grant(1, "second")).await.unwrap();
    completed(&test, &owner).await;
    assert_eq!(audited_balance(&test, &owner).await, 18);
}

#[tokio::test]
async fn a_long_list_of_events_is_as_it_was_after_a_migration() {
    let test = super::test_store();
    let owner = client_with(&test, 1).await;
    let (app, mut left) = long_list(&test, &owner).await;
    created(&test, event(&test, &owner, 1)).await;
    let now = test.now();
    test.store.close();
    set_back(test.directory.path());
    let clock = Arc::new(ManualClock::starting_at(now));
    let store = open_when_free(&options(test.directory.path(), Arc::clone(&clock))).unwrap();
    let test = EmbeddedTestStore { store, clock, directory: test.directory };
    pages_have(&test, &app, &left).await;
    let mut another = event(&test, &owner, 1);
    another.app = app.clone();
    left.push(created(&test, another).await.id);
    pages_have(&test, &app, &left).await;
}
