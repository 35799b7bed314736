//! Moves: all records are copied unchanged, even after an interruption, and no others stay in the target.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::ManualClock;

use super::{Moved, copy};
use crate::conformance::TestStore;
use crate::conformance::fixture::{
    WINDOW, build_event, client_with, open_guest_scan, open_pending, register_guest, store_event,
};
use crate::conformance::reseal::fill_store;
use crate::engine::memory::MemoryEngine;
use crate::engine::{Answer, Batch, Engine as _, Form, Key, Op, Query, ScanFrom};
use crate::operations::tests::large::{ReportCounter, store_reports};
use crate::operations::tests::{MemoryTestStore, test_store};
use crate::records::{ALL, client, event as events, session};
use crate::vault::test_vault;
use crate::{SessionDigest, StoreError};

/// Returns all records, lists and indexes of an engine, with the ends of records.
async fn contents(engine: &MemoryEngine) -> Vec<(String, u8, Vec<u8>, Vec<Answer>)> {
    let mut contents = Vec::new();
    for table in ALL {
        for key in engine.scan(table, ScanFrom::default(), usize::MAX).await.unwrap().keys {
            let queries = match table.form {
                Form::Record => vec![Query::Record(key.clone()), Query::End(key.clone())],
                Form::List => vec![Query::all_entries(key.clone())],
                Form::Index => vec![Query::all_members(key.clone())],
            };
            let mut answers: Vec<Answer> = engine.read(queries).await.unwrap().found.into();
            if let Some(Answer::Record(Some(record))) = answers.first_mut() {
                // A move does not copy versions.
                record.version = 0;
            }
            if !matches!(&answers[..], [Answer::Members(members)] if members.is_empty()) {
                contents.push((table.name.to_owned(), key.place.number(), key.id, answers));
            }
        }
    }
    contents.sort_unstable_by(|(kind, place, id, _), (other_kind, other_place, other_id, _)| {
        (kind, place, id).cmp(&(other_kind, other_place, other_id))
    });
    contents
}

/// Copies the records of an engine to another, and compares both afterwards.
async fn move_between(from: &MemoryEngine, to: &MemoryEngine) -> Result<Moved, StoreError> {
    let moved = copy::copy(from, to, &|_, _| ()).await?;
    copy::compare(from, to, &|_, _| ()).await?.require_equal()?;
    Ok(moved)
}

/// Moves the records of a store.
async fn move_all(test: &MemoryTestStore, to: &MemoryEngine) -> Moved {
    move_between(&test.engine, to).await.unwrap()
}

/// Returns the kinds with written keys, and the numbers of these keys.
fn written_kinds(moved: &Moved) -> Vec<(&'static str, u64)> {
    moved.kinds.iter().filter(|(_, kind)| kind.written > 0).map(|(name, kind)| (*name, kind.written)).collect()
}

/// Applies operations to an engine.
async fn apply(engine: &MemoryEngine, ops: Vec<Op>) {
    engine.commit(vec![Batch { ops, ..Batch::default() }]).await.unwrap();
}

/// Returns an empty engine with the clock of a store.
fn empty_engine(test: &MemoryTestStore) -> MemoryEngine {
    MemoryEngine::new(test.clock.clone())
}

/// Creates a client with transactions and with an event that has guests. Returns the keys of client and event.
async fn fill_client(test: &MemoryTestStore) -> [Key; 2] {
    let client = client_with(test, 50).await;
    for _ in 0..20 {
        open_pending(test, &client).await;
    }
    let event = store_event(test, build_event(test, &client, 9)).await;
    for _ in 0..3 {
        register_guest(test, &event).await;
    }
    open_guest_scan(test, &event).await;
    [client::key_of_client(&client), events::key_of_event(client.partition(), event.id)]
}

#[tokio::test]
async fn a_move_copies_every_kind_of_record_unchanged() {
    let test = test_store();
    fill_store(&test, &test_vault(&[7])).await;
    let to = empty_engine(&test);
    let first = move_all(&test, &to).await;
    assert!(first.kinds.values().all(|kind| kind.keys > 0 && kind.written == kind.keys), "{first:?}");
    assert_eq!(first.removed, 0);
    let second = move_all(&test, &to).await;
    assert_eq!((written_kinds(&second), second.removed), (vec![], 0));
    assert_eq!(contents(&to).await, contents(&test.engine).await);
}

#[tokio::test]
async fn a_restarted_move_copies_missing_and_changed_records() {
    let test = test_store();
    let [client, event] = fill_client(&test).await;
    let to = empty_engine(&test);
    move_all(&test, &to).await;
    let (guests, ledger) = (event.in_table(&events::SHARED), client.in_table(&client::LEDGER));
    let other = session::key_of_session(&SessionDigest([9; 32]));
    apply(&to, vec![Op::Set(client.clone(), vec![("name", "Another".into())])]).await;
    apply(&to, vec![Op::Rewrite(guests.clone(), 2, vec![vec![0].into(), vec![0].into()])]).await;
    apply(&to, vec![Op::Append(ledger.clone(), vec!["debit".into(), 0.into(), 0.into(), vec![0].into(), 0.into()])])
        .await;
    apply(&to, vec![Op::Index(client::key_of_clients(), b"nobody".to_vec(), 0.into())]).await;
    apply(&to, vec![Op::Put(other.clone(), vec![("ends_at", 0.into())])]).await;
    let again = move_all(&test, &to).await;
    assert_eq!(written_kinds(&again), [("client", 1), ("clients", 1), ("ledger", 1), ("shared", 1)]);
    assert_eq!(again.removed, 1);

    // Removing an event removes its guests and its scans.
    apply(&to, vec![Op::Remove(event.clone())]).await;
    assert_eq!(
        written_kinds(&move_all(&test, &to).await),
        [("event", 1), ("guests", 1), ("people", 1), ("shared", 1), ("waiting", 1)]
    );
    // The source is used again meanwhile.
    apply(&test.engine, vec![Op::Remove(event)]).await;
    fill_client(&test).await;
    let again = move_all(&test, &to).await;
    assert_eq!(again.removed, 1, "the guests and scans of an event are removed with it");
    assert_eq!(contents(&to).await, contents(&test.engine).await);
}

#[tokio::test]
async fn a_comparison_writes_nothing_and_reports_differences() {
    let test = test_store();
    let [client, event] = fill_client(&test).await;
    let to = empty_engine(&test);
    move_all(&test, &to).await;
    let guests = event.in_table(&events::SHARED);
    apply(&to, vec![Op::Rewrite(guests, 1, vec![vec![0].into(), vec![0].into()])]).await;
    apply(&to, vec![Op::Index(client::key_of_clients(), client.id.clone(), 0.into())]).await;
    apply(&to, vec![Op::Remove(client)]).await;
    apply(&to, vec![Op::Put(session::key_of_session(&SessionDigest([9; 32])), vec![("ends_at", 0.into())])]).await;
    for _ in 0..2 {
        let compared = copy::compare(&test.engine, &to, &|_, _| ()).await.unwrap();
        let refused = compared.require_equal().unwrap_err().to_string();
        let expected = "the target differs from the source: client: 1, clients: 1, shared: 1, keys too many: 1";
        assert!(refused.ends_with(expected), "{refused}");
    }
}

#[tokio::test]
async fn a_record_that_has_expired_by_either_clock_is_no_difference() {
    let test = test_store();
    fill_client(&test).await;
    for ahead in [Duration::from_secs(1), WINDOW * 2, WINDOW * 10_000] {
        let clock = Arc::new(ManualClock::starting_at(test.now() + ahead));
        let to = MemoryEngine::new(clock);
        move_all(&test, &to).await;
        move_all(&test, &to).await;
    }
    let to = empty_engine(&test);
    move_all(&test, &to).await;
    let behind = MemoryEngine::new(Arc::new(ManualClock::starting_at(test.now())));
    move_between(&to, &behind).await.unwrap();
    test.advance(WINDOW * 10_000);
    move_between(&to, &behind).await.unwrap();
}

#[tokio::test]
async fn large_records_are_moved_one_at_a_time() {
    let test = test_store();
    store_reports(&test.engine, 5).await;
    let (from, to) = (ReportCounter::new(test.engine.clone()), ReportCounter::new(empty_engine(&test)));
    copy::copy(&from, &to, &|_, _| ()).await.unwrap();
    copy::compare(&from, &to, &|_, _| ()).await.unwrap().require_equal().unwrap();
    assert_eq!((from.most_at_once(), to.most_at_once()), (1, 1));
}
