//! The records as a node reaches them: one atomic step per call, over a network that delays calls, loses them before or after they took
//! effect, and is away at times. A node that was killed gets no answer any more, and its calls take no effect.
//!
//! The records may have a replica that lags and takes over. A failover loses the writes it has not seen; with answers that wait for the
//! replica, no caller got an answer to them.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_store::engine::memory::MemoryEngine;
use sakshi_store::engine::{Answers, Applied, Batch, Engine, Key, Op, Query, ScanFrom, Scanned, Table};
use sakshi_store::{Store, StoreError, StoreFuture};
use tokio::time::sleep;

use crate::model::history::{DeliveryView, Event};
use crate::model::outbox::Attempt;
use crate::world::{CallPlan, Deployment, Fate, Incarnation, World, lock};

/// How long a call that is lost is waited for.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// The engine of one start of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeEngine {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: Arc<Incarnation>,
}

/// The store of one start of a node.
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

/// The record of a transaction whose webhook an operation may change.
fn with_webhook(op: &Op) -> Option<&Key> {
    let (Op::Put(key, fields) | Op::Set(key, fields)) = op else { return None };
    let is_of_webhook = fields.iter().any(|(field, _)| ["holder", "claimed_at", "attempt"].contains(field));
    (is_of_webhook && key.table.name == "txn").then_some(key)
}

impl NodeEngine {
    /// Makes a call that reads. It goes on when nobody waits for it any more.
    fn call<T: Send + 'static>(&self, work: impl FnOnce(&MemoryEngine) -> StoreFuture<T> + Send + 'static) -> StoreFuture<T> {
        if !self.world.is_rough() && !self.incarnation.is_dead() {
            return work(&self.world.engine());
        }
        let plan = self.world.plan();
        let called = self.clone().called(plan, false, work);
        self.answered(plan, called)
    }

    async fn called<T>(self, plan: CallPlan, writes: bool, work: impl FnOnce(&MemoryEngine) -> StoreFuture<T>) -> Result<T, StoreError> {
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
        let answer = work(&self.world.engine()).await;
        drop(begun);
        let is_kept = !writes || self.is_replicated().await;
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

    /// Makes a call that changes something, which a full store refuses, and sometimes makes it again with the same arguments, as the
    /// engine on Redis does with a step whose reply is lost.
    fn change<T: Send + 'static>(&self, work: impl Fn(&MemoryEngine) -> StoreFuture<T> + Send + 'static) -> StoreFuture<T> {
        let (plan, node) = (self.world.plan(), self.clone());
        let again = self.world.goes_wrong("repeated-steps", 500).then(|| self.world.pause(10));
        let called = self.clone().called(plan, true, move |engine| {
            if node.world.is_full() {
                return refused();
            }
            let Some(pause) = again else { return work(engine) };
            let first = work(engine);
            Box::pin(async move {
                // Nobody hears this answer.
                let _ = first.await;
                sleep(pause).await;
                if node.incarnation.is_dead() {
                    return pending().await;
                }
                work(&node.world.engine()).await
            })
        });
        self.answered(plan, called)
    }

    /// Asks after the steps that were begun before.
    fn ask_after_all(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let (plan, node) = (self.world.plan(), self.clone());
        let called = async move {
            drop(node.incarnation.steps.write().await);
            let committing = node.clone();
            node.called(plan, true, move |engine| committing.commit_and_note(engine, batches)).await
        };
        self.answered(plan, called)
    }

    /// Waits until the replica has what was just written; whether it ever will.
    async fn is_replicated(&self) -> bool {
        if self.world.deployment != Deployment::Replicated || !self.world.is_replica_behind() {
            return true;
        }
        self.world.replication.subscribe().recv().await.unwrap_or(false)
    }

    /// Makes a call again until it is answered, as the engine on Redis does for a step whose outcome must be known.
    fn call_until_answered<T: Send + 'static>(&self, work: impl Fn(&MemoryEngine) -> StoreFuture<T> + Send + 'static) -> StoreFuture<T> {
        let (plan, node) = (self.world.plan(), self.clone());
        let called = async move {
            sleep(plan.before).await;
            while !node.incarnation.is_dead() {
                if node.world.plan().fate == Fate::LostBefore {
                    sleep(CALL_TIMEOUT).await;
                    continue;
                }
                let answer = if node.world.is_full() { refused() } else { work(&node.world.engine()) }.await;
                if !node.is_replicated().await {
                    continue;
                }
                // An answer that is lost comes later: whoever repeats the step is told the same.
                sleep(if plan.fate == Fate::LostAfter { CALL_TIMEOUT } else { plan.after }).await;
                if !node.incarnation.is_dead() {
                    return answer;
                }
            }
            pending().await
        };
        self.answered(plan, called)
    }

    /// What the caller gets of a call.
    fn answered<T: Send + 'static>(
        &self,
        plan: CallPlan,
        called: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> StoreFuture<T> {
        let called = tokio::spawn(called);
        Box::pin(async move {
            let answer = called.await.unwrap_or_else(|_| Err(lost()));
            assert!(plan.fate != Fate::Panics, "a panic in whoever called");
            answer
        })
    }

    /// Commits, and notes what has become of the webhooks of transactions.
    fn commit_and_note(&self, engine: &MemoryEngine, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let mut records: Vec<Key> = batches.iter().flat_map(|batch| &batch.ops).filter_map(with_webhook).cloned().collect();
        records.dedup();
        let committed = engine.commit(batches);
        if records.is_empty() {
            return committed;
        }
        let (engine, world, node) = (engine.clone(), Arc::clone(&self.world), self.incarnation.id);
        Box::pin(async move {
            let applied = committed.await?;
            let queries = records.iter().map(|key| Query::Fields(key.clone(), &["holder", "claimed_at", "attempt"])).collect();
            let mut answers = engine.read(queries).await?;
            for key in records {
                let (Ok(txn), record) = (key.id.as_slice().try_into(), answers.record()?.unwrap_or_default()) else { continue };
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

    /// Tells the other nodes of the transactions that batches have ended; some notices are lost.
    fn tell(&self, batches: &[Batch], applied: &[Applied]) {
        let done = batches.iter().zip(applied).filter(|(_, applied)| matches!(applied, Applied::Done { .. }));
        let told = done.flat_map(|(batch, _)| &batch.ops).filter_map(|op| match op {
            Op::Tell(key, _) => key.id.as_slice().try_into().ok().map(TxnId::from_bytes),
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
        self.call(move |engine| engine.read(queries))
    }

    fn read_confirmed(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.world.reach("step read_confirmed");
        let plan = self.world.plan();
        let called = self.clone().called(plan, true, move |engine| engine.read(queries));
        self.answered(plan, called)
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.world.reach("step commit");
        if self.world.deployment == Deployment::Alone && batches.iter().all(|batch| batch.ops.is_empty()) {
            return self.ask_after_all(batches);
        }
        let (node, committing, told) = (self.clone(), self.clone(), batches.clone());
        let committed = self.change(move |engine| committing.commit_and_note(engine, batches.clone()));
        Box::pin(async move {
            let applied = committed.await?;
            node.tell(&told, &applied);
            Ok(applied)
        })
    }

    fn commit_until_answered(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.world.reach("step commit_until_answered");
        let committing = self.clone();
        self.call_until_answered(move |engine| committing.commit_and_note(engine, batches.clone()))
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.world.reach("step scan");
        self.call(move |engine| engine.scan(table, from, limit))
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        self.world.reach("step sweep");
        self.change(move |engine| engine.sweep(now, limit, batch.clone()))
    }

    fn works_at_once(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        self.world.deployment != Deployment::Alone
    }
}
