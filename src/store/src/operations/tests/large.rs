//! Large records are read and written one at a time, because a server must answer within the time limit of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::{VAULT_KEYS, test_store};
use crate::conformance::fixture::RETENTION;
use crate::conformance::reseal::reseal_store;
use crate::engine::memory::MemoryEngine;
use crate::engine::{Answers, Applied, Batch, Engine, Key, Op, Query, ScanFrom, Scanned, Table};
use crate::error::StoreFuture;
use crate::operations::Store;
use crate::records::flow::{REPORT, key_of_report};
use crate::redis::NodeId;
use crate::vault::test_vault;

/// An engine that counts the reports of each call.
#[derive(Clone, Debug)]
pub(crate) struct ReportCounter {
    engine: MemoryEngine,
    most: Arc<AtomicUsize>,
}

impl ReportCounter {
    pub(crate) fn new(engine: MemoryEngine) -> Self {
        Self { engine, most: Arc::default() }
    }

    /// Returns the highest number of reports that one call has read or written.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    fn count<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        self.most.fetch_max(keys.filter(|key| key.table.name == REPORT.name).count(), Ordering::Relaxed);
    }
}

impl Engine for ReportCounter {
    fn system(&self) -> &'static str {
        self.engine.system()
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.count(queries.iter().filter(|query| matches!(query, Query::Record(_))).map(Query::key));
        self.engine.read(queries)
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let writes = batches.iter().flat_map(|batch| &batch.ops);
        self.count(writes.filter(|op| matches!(op, Op::Put(..) | Op::Set(..))).map(Op::key));
        self.engine.commit(batches)
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.engine.scan(table, from, limit)
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        self.engine.sweep(now, limit, batch)
    }

    fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }
}

/// Stores reports of one flow. Their payloads are sealed under the old key of [`VAULT_KEYS`].
pub(crate) async fn store_reports(engine: &MemoryEngine, number: u8) {
    let (id, vault) = (FlowId::generate(ClientId::generate().partition(), 1), test_vault(&VAULT_KEYS[1..]));
    for name in 1..=number {
        let key = key_of_report(id, DedupDigest([name; 16]));
        let payload = vault.seal(&key.id, b"a document").into_bytes();
        let put = Op::Put(key, vec![("until", 1.into()), ("payload", payload.into())]);
        engine.commit(vec![Batch { ops: vec![put], ..Batch::default() }]).await.unwrap();
    }
}

#[tokio::test]
async fn large_records_are_resealed_one_at_a_time() {
    let test = test_store();
    store_reports(&test.engine, 5).await;
    let counter = ReportCounter::new(test.engine.clone());
    let vault = Arc::new(test_vault(&VAULT_KEYS));
    let store = Store::new(Box::new(counter.clone()), vault, RETENTION, NodeId::generate(), None);
    assert_eq!(reseal_store(&store).await.resealed, 5);
    assert_eq!(counter.most_at_once(), 1);
}
