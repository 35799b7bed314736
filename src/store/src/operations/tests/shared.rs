//! Nodes that share records. In disorder, their calls interleave at random and responses are lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, Receiver, Subject};
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;
use sakshi_kit::random::Random;
use tokio::task::yield_now;

use super::super::Store;
use super::VAULT_KEYS;
use crate::conformance::TestStore;
use crate::conformance::fixture::{RETENTION, client_with, open_and_complete};
use crate::engine::memory::MemoryEngine;
use crate::engine::{Answers, Applied, Batch, Engine, Op, Query, ScanFrom, Scanned, Table};
use crate::error::{StoreError, StoreFuture};
use crate::redis::NodeId;
use crate::vault::test_vault;
use crate::{CompleteOutcome, CompleteTransaction};

/// A delivery attempt that the receiver answered with status 200 after 7 milliseconds.
pub(super) const DELIVERED: Attempt = Attempt::from_status(200, 7);

/// Pairs of a notified node and an ended transaction.
type Notices = BTreeSet<(String, Vec<u8>)>;

/// The fate of a response in disorder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Response {
    MayBeLost,
    Arrives,
}

/// Records shared by nodes. In disorder, calls interleave at random, and responses are lost: the call is then retried
/// or fails.
#[derive(Clone)]
pub(super) struct SharedEngine {
    pub(super) records: MemoryEngine,
    pub(super) clock: Arc<ManualClock>,
    /// Source of the disorder; `None` while calls are in order.
    pub(super) disorder: Arc<Mutex<Option<Random>>>,
    /// Notices of the end of a transaction.
    pub(super) notices: Arc<Mutex<Notices>>,
    /// True while no replica confirms a read.
    pub(super) is_unconfirmed: Arc<AtomicBool>,
    /// True while reads reach a former primary, which has no records.
    pub(super) reads_former_primary: Arc<AtomicBool>,
}

impl SharedEngine {
    pub(super) fn new() -> Self {
        let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
        Self {
            records: MemoryEngine::new(clock.clone()),
            clock,
            disorder: Arc::default(),
            notices: Arc::default(),
            is_unconfirmed: Arc::default(),
            reads_former_primary: Arc::default(),
        }
    }

    /// Adds a node.
    pub(super) fn join(&self) -> Node {
        self.join_as(NodeId::generate())
    }

    /// Adds a node with this id.
    pub(super) fn join_as(&self, id: NodeId) -> Node {
        let store = Store::new(Box::new(self.clone()), Arc::new(test_vault(&VAULT_KEYS)), RETENTION, id, None);
        Node { store, id, engine: self.clone() }
    }

    pub(super) fn begin_disorder(&self, seed: u64) {
        *self.disorder.lock().unwrap() = Some(Random::from_seed(seed));
    }

    pub(super) fn end_disorder(&self) {
        *self.disorder.lock().unwrap() = None;
    }

    /// Returns true with a chance of one in `times`, in disorder only.
    fn happens_once_in(&self, times: u64) -> bool {
        self.disorder.lock().unwrap().as_mut().is_some_and(|random| random.below(times) == 0)
    }

    /// In disorder, lets other calls run for a random time.
    async fn pause(&self) {
        while self.happens_once_in(2) {
            yield_now().await;
        }
    }

    /// Applies batches once, and records the notices that they send.
    pub(super) async fn apply(&self, batches: Vec<Batch>) -> Result<Vec<Applied>, StoreError> {
        let applied = self.records.commit(batches.clone()).await?;
        for (batch, _) in batches.iter().zip(&applied).filter(|(_, applied)| matches!(applied, Applied::Done { .. })) {
            for op in &batch.ops {
                let Op::Notify(key, field) = op else { continue };
                let record = self.records.read(vec![Query::Record(key.clone())]).await?.record()?.unwrap_or_default();
                let watchers =
                    record.text(field).as_bytes().chunks(32).map(|node| String::from_utf8(node.to_vec()).unwrap());
                self.notices.lock().unwrap().extend(watchers.map(|node| (node, key.id.clone())));
            }
        }
        Ok(applied)
    }

    /// Applies batches. In disorder they may be applied several times, as by retries, and the response may be lost if
    /// `response` allows it.
    fn commit_in_disorder(&self, batches: Vec<Batch>, response: Response) -> StoreFuture<Vec<Applied>> {
        let engine = self.clone();
        Box::pin(async move {
            engine.pause().await;
            while engine.happens_once_in(4) {
                engine.apply(batches.clone()).await?;
                engine.pause().await;
                if response == Response::MayBeLost && engine.happens_once_in(3) {
                    return Err(StoreError::unavailable("there was no answer in time"));
                }
            }
            let applied = engine.apply(batches).await?;
            engine.pause().await;
            Ok(applied)
        })
    }
}

impl Engine for SharedEngine {
    fn system(&self) -> &'static str {
        "memory"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        let engine = self.clone();
        Box::pin(async move {
            engine.pause().await;
            let reads_former_primary = engine.reads_former_primary.load(Ordering::Relaxed);
            let records =
                if reads_former_primary { MemoryEngine::new(engine.clock.clone()) } else { engine.records.clone() };
            let answers = records.read(queries).await;
            engine.pause().await;
            answers
        })
    }

    fn read_confirmed(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        let (confirmed, answers) = (self.confirm(), self.records.read(queries));
        Box::pin(async move {
            confirmed.await?;
            answers.await
        })
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.commit_in_disorder(batches, Response::MayBeLost)
    }

    fn commit_until_answered(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.commit_in_disorder(batches, Response::Arrives)
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.records.scan(table, from, limit)
    }

    fn sweep(&self, _: Timestamp, _: usize, _: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        Box::pin(std::future::ready(Ok(vec![])))
    }

    fn confirm(&self) -> StoreFuture<()> {
        let is_unconfirmed = self.is_unconfirmed.load(Ordering::Relaxed);
        let unconfirmed = StoreError::unavailable("no replica has confirmed it");
        Box::pin(std::future::ready(if is_unconfirmed { Err(unconfirmed) } else { Ok(()) }))
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl fmt::Debug for SharedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedEngine")
    }
}

/// A node of the cluster, with its store.
pub(super) struct Node {
    pub(super) store: Store,
    pub(super) id: NodeId,
    pub(super) engine: SharedEngine,
}

impl TestStore for Node {
    fn store(&self) -> &Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.engine.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.engine.clock.advance(span);
    }
}

impl Node {
    /// Creates clients with enough credits for every test.
    pub(super) async fn create_clients(&self, count: usize) -> Vec<ClientId> {
        join_all((0..count).map(|_| client_with(self, 5_000))).await
    }

    /// Queues `count` deliveries for this node, of these clients in turn.
    pub(super) async fn queue_deliveries(&self, clients: &[ClientId], count: usize) -> BTreeMap<DeliveryId, Subject> {
        let mut queued = BTreeMap::new();
        for number in 0..count {
            let (pending, id) = open_and_complete(self, &clients[number % clients.len()]).await;
            queued.insert(id, pending.id.into());
        }
        queued
    }

    /// Returns the ids of this node's due deliveries, as [`Store::due_deliveries`] selects them.
    pub(super) async fn due(
        &self,
        after: Option<DeliveryId>,
        receiver: Option<Receiver>,
        limit: usize,
    ) -> Vec<DeliveryId> {
        let due = self.store.due_deliveries(after, receiver, limit).await.unwrap();
        due.into_iter().map(|delivery| delivery.id).collect()
    }

    /// Returns the ids of all due deliveries of this node.
    pub(super) async fn all_due(&self) -> Vec<DeliveryId> {
        self.due(None, None, usize::MAX).await
    }

    /// Takes over the deliveries of a dead node, and retries until it succeeds.
    pub(super) async fn take_over_from(&self, dead: NodeId) {
        while self.store.take_over(dead).await.is_err() {}
    }

    /// Claims the only attempt of a delivery; `false` if it was claimed before.
    pub(super) async fn claim(&self, delivery: (&DeliveryId, &Subject)) -> bool {
        self.store.claim_delivery(*delivery.0, *delivery.1).await.unwrap()
    }

    /// Claims and attempts these deliveries. Returns the ids of the claimed deliveries.
    pub(super) async fn attempt(&self, deliveries: &BTreeMap<DeliveryId, Subject>) -> Vec<DeliveryId> {
        let mut attempted = Vec::new();
        for (id, subject) in deliveries {
            if self.claim((id, subject)).await {
                attempted.push(*id);
                self.engine.pause().await;
                self.store.settle_delivery(*id, *subject, DELIVERED).await.unwrap();
            }
        }
        attempted
    }

    /// Completes a transaction, and retries until a call succeeds.
    pub(super) async fn complete(&self, command: CompleteTransaction) -> CompleteOutcome {
        loop {
            if let Ok(outcome) = self.store.complete_transaction(command.clone()).await {
                return outcome;
            }
        }
    }

    /// Returns the outcome of the attempt of a delivery, if it has ended.
    pub(super) async fn outcome(&self, subject: &Subject) -> Option<DeliveryOutcome> {
        self.store.load_delivery(*subject).await.unwrap().unwrap().attempt.map(|attempt| attempt.outcome)
    }

    /// Returns true if the dead node is still listed as a holder of deliveries.
    pub(super) async fn lists_holder(&self, dead: NodeId) -> bool {
        self.store.holders().await.unwrap().iter().any(|(_, holder)| *holder == dead)
    }
}
