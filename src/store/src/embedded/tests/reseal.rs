//! Resealing leaves no value under the old key in the file.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::Connection;

use super::{EmbeddedTestStore, open_when_free, test_store};
use crate::conformance::TestStore;
use crate::conformance::fixture::{client_with, open_pending};
use crate::conformance::reseal::{fill_store, read_values, reseal_store};
use crate::engine::{Column, ColumnKind, Form, Table};
use crate::operations::reseal::sealed_tables;
use crate::records::{audit, transaction};
use crate::vault::test_vault;
use crate::{EncryptionKeyId, ResealCursor, Vault};

/// Unsealed columns of blobs, besides keys and members. The file reseals its canary when it is opened.
const UNSEALED: &[&str] = &[
    "audit_list.hash",
    "audit_list.previous",
    "audit_push_record.hash",
    "audit_push_record.node",
    "credential_record.call",
    "credential_record.txn",
    "event_record.changes",
    "flow_record.latest",
    "guests_list.duplicate_of",
    "guests_list.txn",
    "idempotency_record.request",
    "idempotency_record.subject",
    "key_id_record.digest",
    "ledger_list.reference",
    "logo_record.file",
    "order_lease_record.holder",
    "probe.pad",
    "report_record.claim",
    "shared_list.txn",
    "txn_record.answer",
    "txn_record.call",
    "txn_record.claim",
    "txn_record.event",
    "txn_record.intent",
    "user_record.email_mark",
    "user_record.invite",
    "webhook_name_record.flow",
    "webhooks_list.name",
];
/// The column of the canary, a sealed text that shows whether a node has the encryption keys.
const CANARY: &str = "canary.box";

/// Returns the sealed columns of records, as `table.column`.
fn sealed_columns() -> BTreeSet<String> {
    let table_columns = |table: &'static Table| {
        let is_sealed = |column: &&Column| matches!(column.kind, ColumnKind::Sealed(_));
        table.fields.iter().filter(is_sealed).map(move |column| {
            let part = match table.form {
                Form::List => "list",
                _ if table.large.contains(&column.name) => "large",
                _ => "record",
            };
            format!("{}_{part}.{}", table.name, column.name)
        })
    };
    sealed_tables().flat_map(table_columns).collect()
}

/// Returns a cursor at the first record of a kind.
fn cursor_at(table: &Table) -> ResealCursor {
    let part = sealed_tables().position(|other| other.name == table.name).unwrap();
    ResealCursor { part: u16::try_from(part).unwrap(), ..ResealCursor::default() }
}

/// Opens the database file.
fn file(test: &EmbeddedTestStore) -> Connection {
    Connection::open(test.directory.path().join("store/sakshi.db")).unwrap()
}

/// Returns every column of a table, with its type.
fn columns(file: &Connection) -> Vec<(String, String, String)> {
    let sql =
        "SELECT t.name, c.name, c.type FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'";
    let mut statement = file.prepare(sql).unwrap();
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Returns the columns that have a value sealed under this key.
fn columns_under(file: &Connection, key: EncryptionKeyId) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (table, column, _) in columns(file) {
        let sql = format!("SELECT count(*) FROM {table} WHERE substr(CAST(\"{column}\" AS BLOB), 1, 4) = ?1");
        let values: i64 = file.query_row(&sql, [key.0], |row| row.get(0)).unwrap();
        if values > 0 {
            names.insert(format!("{table}.{column}"));
        }
    }
    names
}

/// Reopens the store with these keys; the first key seals. Returns the vault.
fn reopen(test: &mut EmbeddedTestStore, keys: &[u8]) -> Arc<Vault> {
    test.store.close();
    let vault = Arc::new(test_vault(keys));
    let options = super::options(test.directory.path(), Arc::clone(&test.clock));
    test.store = open_when_free(&crate::embedded::EmbeddedOptions { vault: Arc::clone(&vault), ..options }).unwrap();
    vault
}

#[tokio::test]
async fn after_a_pass_the_new_key_opens_every_value() {
    let mut test = test_store();
    let old = test_vault(&[7]);
    let filled = fill_store(&test, &old).await;
    test.store().publish_snapshot(b"{}".to_vec()).await.unwrap();
    let before = read_values(test.store(), &old, &filled).await;
    let mut sealed = sealed_columns();
    sealed.insert(CANARY.into());
    assert_eq!(columns_under(&file(&test), old.sealing_key()), sealed, "every sealed column has a value");

    let both = reopen(&mut test, &[8, 7]);
    assert_eq!(read_values(test.store(), &both, &filled).await, before);
    let first = reseal_store(test.store()).await;
    assert!(first.resealed > 0 && first.left.is_empty(), "{first:?}");
    assert_eq!(columns_under(&file(&test), old.sealing_key()), BTreeSet::new());
    let second = reseal_store(test.store()).await;
    assert_eq!((second.looked_at, second.resealed, second.left.len()), (first.looked_at, 0, 0));

    let new = reopen(&mut test, &[8]);
    assert_eq!(read_values(test.store(), &new, &filled).await, before);
}

#[test]
fn every_blob_column_is_resealed_or_listed_as_unsealed() {
    let test = test_store();
    test.store.close();
    let blobs = columns(&file(&test))
        .into_iter()
        .filter(|(_, column, column_type)| column_type == "BLOB" && !column.starts_with('_'));
    let blobs: BTreeSet<_> = blobs.map(|(table, column, _)| format!("{table}.{column}")).collect();
    let unsealed = UNSEALED.iter().chain([&CANARY]).map(|column| (*column).to_owned());
    assert_eq!(sealed_columns().into_iter().chain(unsealed).collect::<BTreeSet<_>>(), blobs);
}

#[tokio::test]
async fn values_that_no_key_opens_are_left_and_reported() {
    let mut test = test_store();
    let client = client_with(&test, 5).await;
    for _ in 0..3 {
        open_pending(&test, &client).await;
    }
    let lost = test_vault(&[7]).sealing_key();
    // The canary moves to the second key, so that the store opens without the first one.
    reopen(&mut test, &[8, 7]);
    open_pending(&test, &client).await;
    reopen(&mut test, &[9, 8]);
    let result = reseal_store(test.store()).await;
    assert_eq!((result.left.into_iter().collect::<Vec<_>>(), result.resealed), (vec![(lost, 3)], 1));
}

#[tokio::test]
async fn a_resealed_audit_entry_keeps_its_text_and_hash() {
    let mut test = test_store();
    let first = test.store.append_audit("an entry".into()).await.unwrap();
    reopen(&mut test, &[8, 7]);
    assert_eq!(reseal_store(test.store()).await.resealed, 1);
    assert_eq!(test.store.audit_log(0, 10).await, Ok(vec![first.clone()]));
    let second = test.store.append_audit("another".into()).await.unwrap();
    assert_eq!(second.previous, first.hash);
}

#[tokio::test]
async fn a_step_is_bounded_and_continues_where_the_previous_step_ended() {
    let mut test = test_store();
    let client = client_with(&test, 20).await;
    for _ in 0..10 {
        open_pending(&test, &client).await;
    }
    reopen(&mut test, &[8, 7]);
    let mut from = cursor_at(&transaction::TRANSACTION);
    let part = from.part;
    for resealed in [4, 4, 2] {
        let step = test.store.reseal(from, 4).await.unwrap();
        assert_eq!((step.looked_at, step.resealed), (resealed, resealed));
        from = step.next.unwrap();
    }
    assert_eq!(from.part, part + 1);
    assert_eq!(test.store.reseal(ResealCursor { part: 99, ..from }, 4).await.unwrap().next, None);
}

#[tokio::test]
async fn a_step_that_ends_within_a_list_continues_with_its_next_entry() {
    let mut test = test_store();
    for number in 1..=3 {
        test.store.append_audit(format!("entry {number}")).await.unwrap();
    }
    reopen(&mut test, &[8, 7]);
    let first = test.store.reseal(cursor_at(&audit::AUDIT_LOG), 2).await.unwrap();
    let second = test.store.reseal(first.next.unwrap(), 2).await.unwrap();
    assert_eq!((first.resealed, second.resealed), (2, 1));
}
