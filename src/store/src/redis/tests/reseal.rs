//! Resealing: every value is resealed under the new key, and the expiry of records does not change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sakshi_domain::time::Timestamp;

use super::{RedisTestStore, options, standalone, test_store, test_store_with_config};
use crate::Vault;
use crate::conformance::fixture::{RETENTION, client_with, open_pending};
use crate::conformance::reseal::{fill_store, read_values, reseal_store};
use crate::conformance::{TestStore, run};
use crate::engine::redis::RedisEngine;
use crate::engine::{Answers, Applied, Batch, Column, ColumnKind, Engine, Op, Query, ScanFrom, Scanned, Table};
use crate::error::StoreFuture;
use crate::operations::Store;
use crate::records::{ALL, transaction};
use crate::redis::{RedisOptions, RedisStore};
use crate::vault::test_vault;

/// Opens another node with these encryption keys; the first key seals. The node takes over the deliveries of the one
/// before.
async fn open_successor(test: &RedisTestStore, before: &RedisStore, keys: &[u8]) -> (RedisStore, Arc<Vault>) {
    let vault = Arc::new(test_vault(keys));
    let options = options(standalone(&test.server.url()), Arc::clone(&test.clock), RETENTION);
    let store = RedisStore::open(RedisOptions { vault: Arc::clone(&vault), ..options }).await.unwrap();
    store.take_over(before.shared.node).await.unwrap();
    (store, vault)
}

/// Returns the server's disk file, uncompressed.
fn disk_file(test: &RedisTestStore) -> Vec<u8> {
    test.server.answer(&["SAVE"]);
    let directory = test.server.answer(&["CONFIG", "GET", "dir"]).field("dir").unwrap();
    std::fs::read(std::path::Path::new(&directory).join("dump.rdb")).unwrap()
}

fn has_sealed_values(table: &Table) -> bool {
    table.fields.iter().any(|column: &Column| matches!(column.kind, ColumnKind::Sealed(_)))
}

/// Returns the ends of all records on the servers.
async fn read_ends(test: &RedisTestStore) -> BTreeMap<(&'static str, u8, Vec<u8>), u64> {
    let engine = RedisEngine::new(Arc::clone(&test.store.shared));
    let mut ends = BTreeMap::new();
    for table in ALL {
        let mut next = Some(ScanFrom::default());
        while let Some(from) = next {
            let scanned = engine.scan(table, from, 100).await.unwrap();
            for key in scanned.keys {
                let end = engine.read(vec![Query::End(key.clone())]).await.unwrap().number().unwrap();
                ends.insert((table.name, key.place.number(), key.id), end);
            }
            next = scanned.next;
        }
    }
    ends
}

#[test]
fn after_a_pass_the_new_key_alone_opens_every_value() {
    let test = test_store_with_config(&["rdbcompression no"], RETENTION);
    let old = test_vault(&[7]);
    let old_key_is_used = || disk_file(&test).windows(4).any(|window| window == old.sealing_key().0);
    run(async {
        let filled = fill_store(&test, &old).await;
        test.store().publish_snapshot(b"{}".to_vec()).await.unwrap();
        let before = read_values(test.store(), &old, &filled).await;
        assert!(old_key_is_used());
        let (store, both) = open_successor(&test, &test.store, &[8, 7]).await;
        let ends_before = read_ends(&test).await;
        for table in ALL.iter().filter(|table| has_sealed_values(table)) {
            assert!(ends_before.keys().any(|(kind, ..)| *kind == table.name), "{table:?} has no record");
        }
        assert_eq!(read_values(&store, &both, &filled).await, before);
        let first = reseal_store(&store).await;
        assert!(first.resealed > 0 && first.left.is_empty(), "{first:?}");
        assert!(!old_key_is_used());
        assert_eq!(read_ends(&test).await, ends_before);
        let second = reseal_store(&store).await;
        assert!(second.resealed == 0 && second.left.is_empty() && second.looked_at > 60, "{second:?}");
        let (store, new) = open_successor(&test, &store, &[8]).await;
        assert_eq!(read_values(&store, &new, &filled).await, before);
    });
}

#[test]
fn a_pass_with_lost_replies_reseals_every_value() {
    let test = test_store();
    run(async {
        let old = test_vault(&[7]);
        let filled = fill_store(&test, &old).await;
        let before = read_values(test.store(), &old, &filled).await;
        let (store, both) = open_successor(&test, &test.store, &[8, 7]).await;
        store.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
        let first = reseal_store(&store).await;
        assert!(first.left.is_empty() && first.resealed > 60, "{first:?}");
        let second = reseal_store(&store).await;
        assert_eq!((second.resealed, second.left.len()), (0, 0));
        assert_eq!(read_values(&store, &both, &filled).await, before);
    });
}

/// An engine that applies a batch, as another node might, right before the first batch on a transaction.
#[derive(Debug)]
struct ChangingEngine {
    engine: RedisEngine,
    /// The batch, until it is applied.
    change: std::sync::Mutex<Option<Batch>>,
}

impl Engine for ChangingEngine {
    fn system(&self) -> &'static str {
        self.engine.system()
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.engine.read(queries)
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let concerns_transaction =
            batches.iter().flat_map(|batch| &batch.ops).any(|op| op.key().table.name == transaction::TRANSACTION.name);
        let (engine, change) =
            (self.engine.clone(), if concerns_transaction { self.change.lock().unwrap().take() } else { None });
        Box::pin(async move {
            if let Some(change) = change {
                engine.commit(vec![change]).await?;
            }
            engine.commit(batches).await
        })
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.engine.scan(table, from, limit)
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        self.engine.sweep(now, limit, batch)
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[test]
fn a_changed_value_is_not_overwritten_and_an_unopenable_one_is_reported() {
    let test = test_store();
    run(async {
        let client = client_with(&test, 5).await;
        let pending = open_pending(&test, &client).await;
        let key = transaction::key_of_transaction(pending.id);
        let shared = &test.store.shared;
        let terms = async || {
            let record = RedisEngine::new(Arc::clone(shared))
                .read(vec![Query::Record(key.clone())])
                .await
                .unwrap()
                .record()
                .unwrap();
            record.unwrap().bytes("terms").to_vec()
        };
        let store_that_changes_to = |value: Vec<u8>| {
            let change = Batch::new(vec![], vec![Op::Set(key.clone(), vec![("terms", value.into())])]);
            let engine =
                Box::new(ChangingEngine { engine: RedisEngine::new(Arc::clone(shared)), change: Some(change).into() });
            Store::new(engine, Arc::new(test_vault(&[8, 7])), RETENTION, shared.node, None)
        };
        // Another node has written the value under the old key. It is reported, and resealed by the next pass.
        let old = test_vault(&[7]);
        let again = old.seal(
            pending.id.as_bytes(),
            &old.open(pending.id.as_bytes(), &crate::Sealed::from_bytes(terms().await).unwrap()).unwrap(),
        );
        let result = reseal_store(&store_that_changes_to(again.as_bytes().to_vec())).await;
        assert_eq!(terms().await, again.as_bytes());
        assert_eq!(result.left.into_iter().collect::<Vec<_>>(), [(old.sealing_key(), 1)]);
        let store = store_that_changes_to(b"four bytes and some more".to_vec());
        for _ in 0..2 {
            reseal_store(&store).await;
            assert_eq!(terms().await, b"four bytes and some more");
        }
        let result = reseal_store(&store).await;
        let left: Vec<_> = result.left.into_iter().map(|(key, values)| (key.to_string(), values)).collect();
        assert_eq!(left, [("666f7572".to_owned(), 1)]);
        assert!(store.load_transaction(pending.id).await.is_err());
    });
}
