//! Resealing leaves no value under the old key.

use std::collections::BTreeSet;

use sakshi_trace::invariant::broken_by;

use super::{MemoryTestStore, store_with, test_store};
use crate::conformance::fixture::{RETENTION, build_event, client_with, open_pending, register_guest, store_event};
use crate::conformance::reseal::{fill_store, read_values, reseal_store};
use crate::conformance::run;
use crate::engine::{Batch, ColumnKind, Engine as _, Form, Op, Query, ScanFrom, Value};
use crate::operations::reseal::sealed_tables;
use crate::records::{ALL, event as events, transaction};
use crate::vault::test_vault;
use crate::{EncryptionKeyId, ResealCursor};

/// Reopens the store with other keys; the first key seals.
fn reopened(test: &MemoryTestStore, keys: &[u8]) -> MemoryTestStore {
    store_with(test.engine.clone(), test.clock.clone(), keys, test.store.node(), RETENTION)
}

/// Returns the fields that have a value sealed under this key, as `table.field`.
async fn fields_under(test: &MemoryTestStore, key: EncryptionKeyId) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for table in ALL {
        for record_key in test.engine.scan(table, ScanFrom::default(), usize::MAX).await.unwrap().keys {
            let query = match table.form {
                Form::Record => Query::Record(record_key),
                Form::List => Query::all_entries(record_key),
                Form::Index => continue,
            };
            let mut answers = test.engine.read(vec![query]).await.unwrap();
            let rows: Vec<Vec<(&str, Value)>> = if table.form == Form::Record {
                vec![answers.record().unwrap().unwrap().fields.into_iter().collect()]
            } else {
                let columns = || table.fields.iter().map(|column| column.name);
                answers.entries().unwrap().into_iter().map(|values| columns().zip(values).collect()).collect()
            };
            let is_under = |value: &Value| matches!(value, Value::Bytes(bytes) if bytes.starts_with(&key.0));
            let values = rows.into_iter().flatten().filter(|(_, value)| is_under(value));
            names.extend(values.map(|(field, _)| format!("{}.{field}", table.name)));
        }
    }
    names
}

/// Returns the cursor at the beginning of the kind with this name.
fn cursor_at(name: &str) -> ResealCursor {
    let part = sealed_tables().position(|table| table.name == name).unwrap();
    ResealCursor { part: u16::try_from(part).unwrap(), ..ResealCursor::default() }
}

#[test]
fn a_new_key_breaks_no_invariant() {
    let broken = broken_by(|| {
        run(async {
            let test = test_store();
            fill_store(&test, &test_vault(&[7])).await;
            let test = reopened(&test, &[8, 7]);
            assert!(reseal_store(&test.store).await.resealed > 0);
        });
    });
    assert_eq!(broken, Vec::<&str>::new());
}

#[tokio::test]
async fn after_a_pass_the_new_key_opens_every_value() {
    let test = test_store();
    let old = test_vault(&[7]);
    let filled = fill_store(&test, &old).await;
    test.store.publish_snapshot(b"{}".to_vec()).await.unwrap();
    let before = read_values(&test.store, &old, &filled).await;
    let sealed_fields = |table: &'static crate::engine::Table| {
        let sealed = table.fields.iter().filter(|column| matches!(column.kind, ColumnKind::Sealed(_)));
        sealed.map(|column| format!("{}.{}", table.name, column.name))
    };
    let sealed: BTreeSet<_> = sealed_tables().flat_map(sealed_fields).collect();
    assert_eq!(fields_under(&test, old.sealing_key()).await, sealed, "every sealed field has a value");

    let (both, new) = (test_vault(&[8, 7]), test_vault(&[8]));
    let test = reopened(&test, &[8, 7]);
    assert_eq!(read_values(&test.store, &both, &filled).await, before);
    let first = reseal_store(&test.store).await;
    assert!(first.resealed > 0 && first.left.is_empty(), "{first:?}");
    assert_eq!(fields_under(&test, old.sealing_key()).await, BTreeSet::new());
    let second = reseal_store(&test.store).await;
    assert_eq!((second.looked_at, second.resealed, second.left.len()), (first.looked_at, 0, 0));

    let test = reopened(&test, &[8]);
    assert_eq!(read_values(&test.store, &new, &filled).await, before);
}

#[tokio::test]
async fn values_that_no_key_opens_are_left_and_reported() {
    let test = test_store();
    let client = client_with(&test, 5).await;
    for _ in 0..3 {
        open_pending(&test, &client).await;
    }
    let lost = test_vault(&[7]).sealing_key();
    let test = reopened(&test, &[8]);
    open_pending(&test, &client).await;
    let result = reseal_store(&reopened(&test, &[9, 8]).store).await;
    assert_eq!((result.left.into_iter().collect::<Vec<_>>(), result.resealed), (vec![(lost, 3)], 1));
}

#[tokio::test]
async fn a_step_is_bounded_and_continues_where_the_previous_step_ended() {
    let test = test_store();
    let client = client_with(&test, 20).await;
    for _ in 0..10 {
        open_pending(&test, &client).await;
    }
    let test = reopened(&test, &[8, 7]);
    let mut from = cursor_at(transaction::TRANSACTION.name);
    let after = from.part + 1;
    for resealed in [4, 4, 2] {
        let step = test.store.reseal(from.to_string().parse().unwrap(), 4).await.unwrap();
        assert_eq!((step.looked_at, step.resealed), (resealed, resealed));
        from = step.next.unwrap();
    }
    assert_eq!(from, ResealCursor { part: after, ..ResealCursor::default() });
    assert_eq!(test.store.reseal(ResealCursor { part: 99, ..from }, 4).await.unwrap().next, None);
}

#[tokio::test]
async fn a_step_that_ends_within_a_list_continues_with_its_next_entry() {
    let test = test_store();
    let client = client_with(&test, 20).await;
    let old = test_vault(&[7]);
    for _ in 0..2 {
        let event = store_event(&test, build_event(&test, &client, 9)).await;
        for number in 1..=3 {
            let guest = register_guest(&test, &event).await;
            // The fixture seals outcomes under a key that no node has.
            let list = events::key_of_guests(client.partition(), event.id).in_table(&events::SHARED);
            let sealed = old.seal(guest.as_bytes(), b"shared claims").into_bytes();
            let entry = vec![guest.as_bytes()[..].into(), sealed.into()];
            let ops = vec![Op::Rewrite(list, number, entry)];
            test.engine.commit(vec![Batch { ops, ..Batch::default() }]).await.unwrap();
        }
    }
    let test = reopened(&test, &[8, 7]);
    let mut from = cursor_at(events::SHARED.name);
    for resealed in [2, 2, 2] {
        let step = test.store.reseal(from.to_string().parse().unwrap(), 2).await.unwrap();
        assert_eq!((step.looked_at, step.resealed), (resealed, resealed));
        from = step.next.unwrap();
    }
    assert!(!fields_under(&test, old.sealing_key()).await.contains("shared.outcome"));
}
