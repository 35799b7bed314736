//! The store's engine as a node calls it: one atomic step per call. The network delays calls, loses them before or
//! after they take effect, and fails at times. A killed node gets no answers, and its calls take no effect.
//!
//! The store may have a replica that lags and takes over. A failover loses the writes that the replica does not have.
//! If answers wait for the replica, no caller got an answer to such a write.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_kit::model::history::{DeliveryView, Event};
use sakshi_kit::model::outbox::Attempt;
use sakshi_store::engine::memory::MemoryEngine;
use sakshi_store::engine::slots::{by_slot, first_key, in_order};
use sakshi_store::engine::{Answers, Applied, Batch, Engine, Key, Op, Query, ScanFrom, Scanned, Table};
use sakshi_store::{Store, StoreError, StoreFuture};
use tokio::time::sleep;

use crate::replication::Shards;
use crate::shape::Deployment;
use crate::world::{CallPlan, Fate, Incarnation, World, lock};

/// Time after which the caller of a lost call gets an error.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// The engine of one start of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeEngine {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: Arc<Incarnation>,
}

/// Builds the store of one start of a node, with its faults.
pub(crate) fn node_store(world: &Arc<World>, incarnation: &Arc<Incarnation>) -> Store {
    let engine = Box::new(NodeEngine { world: Arc::clone(world), incarnation: Arc::clone(incarnation) });
    let notices = (world.deployment != Deployment::Alone).then(|| world.notices.clone());
    Store::new(engine, world.vault(), crate::node::RETENTION, incarnation.id, notices)
}

/// Returns the error of a lost call.
fn lost() -> StoreError {
    StoreError::Unavailable("the call was lost".to_owned())
}

/// Returns the error of a full store.
fn refused_write<T: Send + 'static>() -> StoreFuture<T> {
    Box::pin(async { Err(StoreError::Unavailable("the disk is full".to_owned())) })
}

/// Returns the key of a transaction if an operation may change its webhook.
fn changed_webhook(op: &Op) -> Option<&Key> {
    let (Op::Put(key, fields) | Op::Set(key, fields)) = op else { return None };
    let is_of_webhook = fields.iter().any(|(field, _)| ["holder", "claimed_at", "attempt"].contains(field));
    (is_of_webhook && key.table.name == "txn").then_some(key)
}

impl NodeEngine {
    /// Reads without waiting for replicas. The read continues even if its caller stops waiting.
    fn read_step<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryEngine) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        if !self.world.has_active_faults() && !self.incarnation.is_dead() {
            return work(&self.engine());
        }
        let plan = self.world.plan_call();
        let call = self.clone().make_call(plan, Shards::default(), work);
        self.answer_call(plan, call)
    }

    /// Returns the engine that this node reaches: the former primary's or the current one.
    fn engine(&self) -> MemoryEngine {
        let servers = &self.world.servers;
        servers.former_primary(self.incarnation.id, self.world.started_at.elapsed()).unwrap_or_else(|| servers.engine())
    }

    /// Returns true if this node reaches a former primary, so that its writes will be lost.
    fn is_cut_off(&self) -> bool {
        self.world.servers.former_primary(self.incarnation.id, self.world.started_at.elapsed()).is_some()
    }

    /// Returns the shards of keys; a call waits for the replicas of these shards.
    fn shards_of<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) -> Shards {
        Shards::of_keys(self.world.deployment, keys)
    }

    /// Makes a call as planned, and waits until the replicas of the awaited shards have its effect.
    async fn make_call<T>(
        self,
        plan: CallPlan,
        awaited: Shards,
        work: impl FnOnce(&MemoryEngine) -> StoreFuture<T>,
    ) -> Result<T, StoreError> {
        let step_guard = self.incarnation.steps.read().await;
        sleep(plan.before).await;
        if self.incarnation.is_dead() {
            return pending().await;
        }
        if plan.fate == Fate::LostBefore {
            drop(step_guard);
            sleep(CALL_TIMEOUT).await;
            return Err(lost());
        }
        let is_kept = awaited == Shards::default() || !self.is_cut_off();
        let answer = work(&self.engine()).await;
        drop(step_guard);
        let is_kept = is_kept && self.wait_for_replicas(awaited).await;
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
    fn write_step<T: Send + 'static>(
        &self,
        awaited: Shards,
        work: impl Fn(&MemoryEngine) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (plan, node) = (self.world.plan_call(), self.clone());
        let repeat_pause = self.world.injects_in_10_000("repeated-steps", 500).then(|| self.world.random_pause(10));
        let call = self.clone().make_call(plan, awaited, move |engine| {
            if node.world.is_full() {
                return refused_write();
            }
            let Some(pause) = repeat_pause else { return work(engine) };
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
        self.answer_call(plan, call)
    }

    /// Looks up the outcomes of steps by batches without operations, after all steps in flight.
    fn look_up_outcomes(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let (plan, node) = (self.world.plan_call(), self.clone());
        let call = async move {
            // Waits for the steps in flight, which hold the lock for reading.
            drop(node.incarnation.steps.write().await);
            let committing_node = node.clone();
            let commit = move |engine: &MemoryEngine| committing_node.commit_and_record(engine, batches);
            node.make_call(plan, Shards::default(), commit).await
        };
        self.answer_call(plan, call)
    }

    /// Waits until the replicas of these shards have the last write; returns false if a failover loses it.
    async fn wait_for_replicas(&self, shards: Shards) -> bool {
        let servers = &self.world.servers;
        !self.world.deployment.waits_for_replica() || !servers.are_lagging(shards) || servers.wait_for_lag_end().await
    }

    /// Retries a call until it is answered, as the engine on Redis does for a step whose outcome must be known.
    fn call_until_answered<T: Send + 'static>(
        &self,
        awaited: Shards,
        work: impl Fn(&MemoryEngine) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (plan, node) = (self.world.plan_call(), self.clone());
        let call = async move {
            sleep(plan.before).await;
            while !node.incarnation.is_dead() {
                if node.world.plan_call().fate == Fate::LostBefore {
                    sleep(CALL_TIMEOUT).await;
                    continue;
                }
                let is_cut_off = node.is_cut_off();
                let answer = if node.world.is_full() { refused_write() } else { work(&node.engine()) }.await;
                if is_cut_off {
                    sleep(CALL_TIMEOUT).await;
                    continue;
                }
                if !node.wait_for_replicas(awaited).await {
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
        self.answer_call(plan, call)
    }

    /// Runs a call in a task of its own and returns its answer to the caller, who panics if that is planned.
    fn answer_call<T: Send + 'static>(
        &self,
        plan: CallPlan,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> StoreFuture<T> {
        let call = tokio::spawn(call);
        Box::pin(async move {
            let answer = call.await.unwrap_or_else(|_| Err(lost()));
            assert!(plan.fate != Fate::Panics, "a panic in the caller");
            answer
        })
    }

    /// Commits batches, and records how the webhooks of transactions change, for the model of the outbox.
    fn commit_and_record(&self, engine: &MemoryEngine, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        let mut records: Vec<Key> =
            batches.iter().flat_map(|batch| &batch.ops).filter_map(changed_webhook).cloned().collect();
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
                let view = DeliveryView { holder, is_claimed: record.has("claimed_at"), attempt };
                lock(&world.outbox_events).push(Event::Committed(TxnId::from_bytes(txn), node, view));
            }
            Ok(applied)
        })
    }

    /// Commits batches of one slot, which take effect together, and notifies the other nodes.
    fn commit_slot(&self, batches: Vec<Batch>, until_answered: bool) -> StoreFuture<Vec<Applied>> {
        let (node, committing_node, committed_batches) = (self.clone(), self.clone(), batches.clone());
        let awaited = self.shards_of(batches.iter().filter_map(first_key));
        let commit = move |engine: &MemoryEngine| committing_node.commit_and_record(engine, batches.clone());
        let committed =
            if until_answered { self.call_until_answered(awaited, commit) } else { self.write_step(awaited, commit) };
        Box::pin(async move {
            let applied = committed.await?;
            node.notify_nodes(&committed_batches, &applied);
            Ok(applied)
        })
    }

    /// Commits the batches of each slot separately, as the engine on Redis does: steps of others may come in between,
    /// and some slots may fail.
    fn commit_slots(&self, batches: Vec<Batch>, until_answered: bool) -> StoreFuture<Vec<Applied>> {
        let slots = by_slot(&batches, first_key);
        let batches_of_slot = |indices: &Vec<usize>| indices.iter().map(|index| batches[*index].clone()).collect();
        let commit = |indices| self.commit_slot(batches_of_slot(indices), until_answered);
        let calls: Vec<_> = slots.iter().map(commit).collect();
        Box::pin(async move { Ok(in_order(batches.len(), &slots, try_join_all(calls).await?)) })
    }

    /// Reads each slot of a cluster with a call of its own.
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
            slots.iter().map(|indices| read(indices.iter().map(|index| queries[*index].clone()).collect())).collect();
        Box::pin(async move {
            let answers = try_join_all(calls).await?;
            let now = answers[0].now;
            let found = answers.into_iter().map(|answers| answers.found.into()).collect();
            Ok(Answers { now, found: in_order(queries.len(), &slots, found).into() })
        })
    }

    /// Notifies the other nodes of transactions that batches have ended; some notices are lost.
    fn notify_nodes(&self, batches: &[Batch], applied: &[Applied]) {
        let done = batches.iter().zip(applied).filter(|(_, applied)| matches!(applied, Applied::Done { .. }));
        let ended = done.flat_map(|(batch, _)| &batch.ops).filter_map(|op| match op {
            Op::Notify(key, _) => key.id.as_slice().try_into().ok().map(TxnId::from_bytes),
            _ => None,
        });
        for id in ended {
            self.world.maybe_fill_store();
            let (world, incarnation) = (Arc::clone(&self.world), Arc::clone(&self.incarnation));
            if world.injects_in_10_000("lost-notices", 1_000) {
                continue;
            }
            let delay = world.random_pause(10);
            tokio::spawn(async move {
                sleep(delay).await;
                if !incarnation.is_dead() {
                    // Perhaps no other node runs.
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
        self.world.count_occurrence("step read");
        let node = self.clone();
        self.read_by_shard(queries, move |queries| node.read_step(move |engine| engine.read(queries)))
    }

    fn read_confirmed(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.world.count_occurrence("step read_confirmed");
        let node = self.clone();
        self.read_by_shard(queries, move |queries| {
            let (plan, awaited) = (node.world.plan_call(), node.shards_of(queries.iter().map(Query::key)));
            let call = node.clone().make_call(plan, awaited, move |engine| engine.read(queries));
            node.answer_call(plan, call)
        })
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.world.count_occurrence("step commit");
        if self.world.deployment == Deployment::Alone {
            return if batches.iter().all(|batch| batch.ops.is_empty()) {
                self.look_up_outcomes(batches)
            } else {
                self.commit_slot(batches, false)
            };
        }
        self.commit_slots(batches, false)
    }

    fn commit_until_answered(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.world.count_occurrence("step commit_until_answered");
        if self.world.deployment == Deployment::Alone {
            self.commit_slot(batches, true)
        } else {
            self.commit_slots(batches, true)
        }
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.world.count_occurrence("step scan");
        self.read_step(move |engine| engine.scan(table, from, limit))
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        self.world.count_occurrence("step sweep");
        self.write_step(Shards::default(), move |engine| engine.sweep(now, limit, batch.clone()))
    }

    fn confirm(&self) -> StoreFuture<()> {
        if !self.world.deployment.waits_for_replica() {
            return Box::pin(ready(Ok(())));
        }
        let plan = self.world.plan_call();
        self.answer_call(plan, self.clone().make_call(plan, Shards::ALL, |_| Box::pin(ready(Ok(())))))
    }

    fn may_be_ahead(&self) -> bool {
        self.world.deployment.waits_for_replica()
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
