//! The records as a node reaches them: one atomic step per call. The network delays calls, loses them before or after
//! they take effect, and is away at times. A killed node gets no answers, and its calls take no effect.
//!
//! The records may have a replica that lags and takes over. A failover loses the writes that it has not seen; if
//! answers wait for the replica, no caller got an answer to them.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_store::engine::memory::MemoryEngine;
use sakshi_store::engine::slots::{by_slot, first_key, in_order};
use sakshi_store::engine::{Answers, Applied, Batch, Engine, Key, Op, Query, ScanFrom, Scanned, Table};
use sakshi_store::{Store, StoreError, StoreFuture};
use tokio::time::sleep;

use crate::model::history::{DeliveryView, Event};
use crate::model::outbox::Attempt;
use crate::replication::Shards;
use crate::shape::Deployment;
use crate::world::{CallPlan, Fate, Incarnation, World, lock};

/// Time after which a lost call times out.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// The engine of one start of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeEngine {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: Arc<Incarnation>,
}

/// Builds the store of one start of a node.
pub(crate) fn store(world: &Arc<World>, incarnation: &Arc<Incarnation>) -> Store {
    let engine = Box::new(NodeEngine { world: Arc::clone(world), incarnation: Arc::clone(incarnation) });
    let notices = (world.deployment != Deployment::Alone).then(|| world.notices.clone());
    Store::new(engine, world.vault(), crate::node::RETENTION, incarnation.id, notices)
}

fn lost() -> StoreError {
    StoreError::Unavailable("the call was lost".to_owned())
}

fn refused<T: Send + 'static>() -> StoreFuture<T> {
    Box::pin(async { Err(StoreError::Unavailable("the disk is full".to_owned())) })
}

/// Returns the record of a transaction whose webhook an operation may change.
fn with_webhook(op: &Op) -> Option<&Key> {
    let (Op::Put(key, fields) | Op::Set(key, fields)) = op else { return None };
    let is_of_webhook = fields.iter().any(|(field, _)| ["holder", "claimed_at", "attempt"].contains(field));
    (is_of_webhook && key.table.name == "txn").then_some(key)
}

impl NodeEngine {
    /// Makes a read. It continues even if its caller stops waiting.
    fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryEngine) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        if !self.world.is_rough() && !self.incarnation.is_dead() {
            return work(&self.engine());
        }
        let plan = self.world.plan();
        let called = self.clone().called(plan, Shards::default(), work);
        self.answer_call(plan, called)
    }

    /// Returns the records that this node reaches.
    fn engine(&self) -> MemoryEngine {
        let servers = &self.world.servers;
        servers.former(self.incarnation.id, self.world.begun.elapsed()).unwrap_or_else(|| servers.engine())
    }

    /// Returns true if this node's writes exist nowhere else, and will be lost.
    fn is_cut_off(&self) -> bool {
        self.world.servers.former(self.incarnation.id, self.world.begun.elapsed()).is_some()
    }

    /// Returns the shards whose replicas a call waits for.
    fn awaited<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) -> Shards {
        Shards::of_keys(self.world.deployment, keys)
    }

    /// Makes a call that waits for the replicas of these shards.
    async fn called<T>(
        self,
        plan: CallPlan,
        awaited: Shards,
        work: impl FnOnce(&MemoryEngine) -> StoreFuture<T>,
    ) -> Result<T, StoreError> {
        let begun = self.incarnation.steps.read().await;
        sleep(plan.before).await;
        if self.incarnation.is_dead() {
            return pending().await;
        }
        if plan.fate == Fate::LostBefore {
            drop(begun);
            sleep(CALL_TIMEOUT).await;
            return Err(lost());
        }
        let is_kept = awaited == Shards::default() || !self.is_cut_off();
        let answer = work(&self.engine()).await;
        drop(begun);
        let is_kept = is_kept && self.is_replicated(awaited).await;
        sleep(plan.after).await;
        if self.incarnation.is_dead() {
            return pending().await;
        }
        if plan.fate == Fate::LostAfter || !is_kept {
            sleep(CALL_TIMEOUT).await;
            return Err(lost());
        }
        answer
    }

    /// Makes a write, which a full store refuses. Sometimes repeats it with the same arguments, as the engine on Redis
    /// does with a step whose reply is lost.
    fn change<T: Send + 'static>(
        &self,
        awaited: Shards,
        work: impl Fn(&MemoryEngine) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (plan, node) = (self.world.plan(), self.clone());
        let again = self.world.goes_wrong("repeated-steps", 500).then(|| self.world.pause(10));
        let called = self.clone().called(plan, awaited, move |engine| {
            if node.world.is_full() {
                return refused();
            }
            let Some(pause) = again else { return work(engine) };
            let first = work(engine);
            Box::pin(async move {
                // Nobody receives this answer.
                let _ = first.await;
                sleep(pause).await;
                if node.incarnation.is_dead() {
                    return pending().await;
                }
                if node.is_cut_off() {
                    return Err(lost());
                }
                work(&node.engine()).await
            })
        });
        self.answer_call(plan, called)
    }

    /// Looks up the outcome of steps that were begun before.
    fn ask_after_all(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let (plan, node) = (self.world.plan(), self.clone());
        let called = async move {
            drop(node.incarnation.steps.write().await);
            let committing = node.clone();
            node.called(plan, Shards::default(), move |engine| committing.commit_and_note(engine, batches)).await
        };
        self.answer_call(plan, called)
    }

    /// Waits until the replicas of these shards have the last write; returns false if they never will.
    async fn is_replicated(&self, shards: Shards) -> bool {
        let servers = &self.world.servers;
        !self.world.deployment.waits() || !servers.are_behind(shards) || servers.end_of_lag().await
    }

    /// Retries a call until it is answered, as the engine on Redis does for a step whose outcome must be known.
    fn call_until_answered<T: Send + 'static>(
        &self,
        awaited: Shards,
        work: impl Fn(&MemoryEngine) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (plan, node) = (self.world.plan(), self.clone());
        let called = async move {
            sleep(plan.before).await;
            while !node.incarnation.is_dead() {
                if node.world.plan().fate == Fate::LostBefore {
                    sleep(CALL_TIMEOUT).await;
                    continue;
                }
                let is_cut_off = node.is_cut_off();
                let answer = if node.world.is_full() { refused() } else { work(&node.engine()) }.await;
                if is_cut_off {
                    sleep(CALL_TIMEOUT).await;
                    continue;
                }
                if !node.is_replicated(awaited).await {
                    continue;
                }
                // A lost answer arrives later: a retry of the step gets the same answer.
                sleep(if plan.fate == Fate::LostAfter { CALL_TIMEOUT } else { plan.after }).await;
                if !node.incarnation.is_dead() {
                    return answer;
                }
            }
            pending().await
        };
        self.answer_call(plan, called)
    }

    /// Returns what the caller gets from a call.
    fn answer_call<T: Send + 'static>(
        &self,
        plan: CallPlan,
        called: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> StoreFuture<T> {
        let called = tokio::spawn(called);
        Box::pin(async move {
            let answer = called.await.unwrap_or_else(|_| Err(lost()));
            assert!(plan.fate != Fate::Panics, "a panic in the caller");
            answer
        })
    }

    /// Commits, and records changes to the webhooks of transactions.
    fn commit_and_note(&self, engine: &MemoryEngine, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let mut records: Vec<Key> =
            batches.iter().flat_map(|batch| &batch.ops).filter_map(with_webhook).cloned().collect();
        records.dedup();
        let committed = engine.commit(batches);
        if records.is_empty() || self.is_cut_off() {
            return committed;
        }
        let (engine, world, node) = (engine.clone(), Arc::clone(&self.world), self.incarnation.id);
        Box::pin(async move {
            let applied = committed.await?;
            let queries =
                records.iter().map(|key| Query::Fields(key.clone(), &["holder", "claimed_at", "attempt"])).collect();
            let mut answers = engine.read(queries).await?;
            for key in records {
                // An erased transaction has no webhook.
                let (Ok(txn), Some(record)) = (key.id.as_slice().try_into(), answers.record()?) else { continue };
                let attempt = match record.text("attempt") {
                    "" => None,
                    "unknown" => Some(Attempt::Unknown),
                    _ => Some(Attempt::Known),
                };
                let holder = Some(record.text("holder").to_owned()).filter(|holder| !holder.is_empty());
                let seen = DeliveryView { holder, is_claimed: record.has("claimed_at"), attempt };
                lock(&world.outbox).push(Event::Committed(TxnId::from_bytes(txn), node, seen));
            }
            Ok(applied)
        })
    }

    /// Commits batches that take effect together.
    fn commit_slot(&self, batches: Vec<Batch>, until_answered: bool) -> StoreFuture<Vec<Applied>> {
        let (node, committing, told) = (self.clone(), self.clone(), batches.clone());
        let awaited = self.awaited(batches.iter().filter_map(first_key));
        let commit = move |engine: &MemoryEngine| committing.commit_and_note(engine, batches.clone());
        let committed =
            if until_answered { self.call_until_answered(awaited, commit) } else { self.change(awaited, commit) };
        Box::pin(async move {
            let applied = committed.await?;
            node.tell(&told, &applied);
            Ok(applied)
        })
    }

    /// Commits the batches of each slot separately, as the engine on Redis does: others interleave, and some may be
    /// lost.
    fn commit_slots(&self, batches: Vec<Batch>, until_answered: bool) -> StoreFuture<Vec<Applied>> {
        let slots = by_slot(&batches, first_key);
        let of_slot = |places: &Vec<usize>| places.iter().map(|place| batches[*place].clone()).collect();
        let calls: Vec<_> = slots.iter().map(|places| self.commit_slot(of_slot(places), until_answered)).collect();
        Box::pin(async move { Ok(in_order(batches.len(), &slots, try_join_all(calls).await?)) })
    }

    /// Reads each slot of a cluster separately, at a time of its own.
    fn read_by_shard(
        &self,
        queries: Vec<Query>,
        read: impl Fn(Vec<Query>) -> StoreFuture<Answers> + Send + 'static,
    ) -> StoreFuture<Answers> {
        if self.world.deployment != Deployment::Cluster || queries.is_empty() {
            return read(queries);
        }
        let slots = by_slot(&queries, |query| Some(query.key()));
        let calls: Vec<_> =
            slots.iter().map(|places| read(places.iter().map(|place| queries[*place].clone()).collect())).collect();
        Box::pin(async move {
            let answers = try_join_all(calls).await?;
            let now = answers[0].now;
            let found = answers.into_iter().map(|answers| answers.found.into()).collect();
            Ok(Answers { now, found: in_order(queries.len(), &slots, found).into() })
        })
    }

    /// Notifies the other nodes of transactions that batches have ended; some notices are lost.
    fn tell(&self, batches: &[Batch], applied: &[Applied]) {
        let done = batches.iter().zip(applied).filter(|(_, applied)| matches!(applied, Applied::Done { .. }));
        let told = done.flat_map(|(batch, _)| &batch.ops).filter_map(|op| match op {
            Op::Notify(key, _) => key.id.as_slice().try_into().ok().map(TxnId::from_bytes),
            _ => None,
        });
        for id in told {
            self.world.may_be_full();
            let (world, incarnation) = (Arc::clone(&self.world), Arc::clone(&self.incarnation));
            if world.goes_wrong("lost-notices", 1_000) {
                continue;
            }
            let delay = world.pause(10);
            tokio::spawn(async move {
                sleep(delay).await;
                if !incarnation.is_dead() {
                    // There may be no other node.
                    let _ = world.notices.send(id);
                }
            });
        }
    }
}

impl Engine for NodeEngine {
    fn system(&self) -> &'static str {
        "memory"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.world.reach("step read");
        let node = self.clone();
        self.read_by_shard(queries, move |queries| node.call(move |engine| engine.read(queries)))
    }

    fn read_confirmed(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.world.reach("step read_confirmed");
        let node = self.clone();
        self.read_by_shard(queries, move |queries| {
            let (plan, awaited) = (node.world.plan(), node.awaited(queries.iter().map(Query::key)));
            let called = node.clone().called(plan, awaited, move |engine| engine.read(queries));
            node.answer_call(plan, called)
        })
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.world.reach("step commit");
        if self.world.deployment == Deployment::Alone {
            return if batches.iter().all(|batch| batch.ops.is_empty()) {
                self.ask_after_all(batches)
            } else {
                self.commit_slot(batches, false)
            };
        }
        self.commit_slots(batches, false)
    }

    fn commit_until_answered(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.world.reach("step commit_until_answered");
        if self.world.deployment == Deployment::Alone {
            self.commit_slot(batches, true)
        } else {
            self.commit_slots(batches, true)
        }
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.world.reach("step scan");
        self.call(move |engine| engine.scan(table, from, limit))
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        self.world.reach("step sweep");
        self.change(Shards::default(), move |engine| engine.sweep(now, limit, batch.clone()))
    }

    fn confirm(&self) -> StoreFuture<()> {
        if !self.world.deployment.waits() {
            return Box::pin(ready(Ok(())));
        }
        let plan = self.world.plan();
        self.answer_call(plan, self.clone().called(plan, Shards::ALL, |_| Box::pin(ready(Ok(())))))
    }

    fn may_be_ahead(&self) -> bool {
        self.world.deployment.waits()
    }

    fn works_at_once(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        self.world.deployment != Deployment::Alone
    }

    fn joins_places(&self) -> bool {
        self.world.deployment != Deployment::Cluster
    }
}
