//! The outbox. Indexes list the deliveries of each node; the claim in the record of a delivery is the only permission
//! to attempt it.

use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, QueuedDelivery, Receiver, Subject};
use sakshi_domain::ids::Partition;

use super::{Store, call, is_done};
use crate::engine::Query;
use crate::error::{StoreError, StoreFuture};
use crate::outbox::{Backlog, count_unknown};
use crate::records::delivery::{holders, of_member, of_subject, outbox};
use crate::redis::NodeId;
use crate::transitions::delivery;

/// Deliveries moved or abandoned at once.
const SLICE: usize = 100;

impl Store {
    /// Returns deliveries of this node whose attempt has not ended, in order, after a position; of one receiver or of
    /// all.
    pub fn due_deliveries(
        &self,
        after: Option<DeliveryId>,
        of: Option<Receiver>,
        limit: usize,
    ) -> StoreFuture<Vec<QueuedDelivery>> {
        self.run(move |store| async move {
            if store.has_left() || limit == 0 {
                return Ok(Vec::new());
            }
            store.deliveries_of(store.node(), after, of.as_ref(), limit).await
        })
    }

    /// Takes the one permission to attempt a delivery; `false` when it was taken before.
    pub fn claim_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<bool> {
        self.run(move |store| async move {
            if store.has_left() {
                return Ok(false);
            }
            let call = call();
            let applied = store.commit_until_answered(delivery::claim(&subject, id, store.node(), call)).await?;
            Ok(delivery::has_claim(call, &applied))
        })
    }

    /// Removes a delivery whose record is missing from the outbox.
    pub fn forget_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<()> {
        self.run(move |store| async move { store.commit(delivery::forget(&subject, id, store.node())).await.map(drop) })
    }

    /// Records the outcome of the attempt. Repeatable; the first record stands, but `unknown` is replaced by the record
    /// of the node that made the attempt after all.
    pub fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> StoreFuture<()> {
        self.run(move |store| async move {
            let [first, given_up] = delivery::settle(&subject, id, store.node(), attempt);
            if !is_done(&store.commit_until_answered(first).await?) {
                store.commit_until_answered(given_up).await?;
            }
            Ok(())
        })
    }

    /// Returns the delivery of a subject, for the operator.
    pub fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        self.run(move |store| async move {
            let record = store.read(vec![Query::Fields(of_subject(&subject), delivery::FIELDS)]).await?.record()?;
            record.map_or(Ok(None), |record| delivery::delivery_of(subject.partition(), &record))
        })
    }

    /// Returns the deliveries whose attempt has not ended, of all nodes.
    pub fn backlog(&self) -> StoreFuture<Backlog> {
        self.run(|store| async move {
            let holders = store.holders().await?;
            let queries = holders.iter().flat_map(|(partition, node)| {
                let index = outbox(*partition, *node);
                [Query::count(index.clone()), Query::page(index, 0, 1)]
            });
            let mut answers = store.read(queries.collect()).await?;
            let mut first = Vec::new();
            let mut backlog = Backlog::default();
            for (partition, _) in &holders {
                backlog.deliveries += answers.number()?;
                let members = answers.members()?;
                let waiting =
                    members.iter().filter_map(|(member, number)| of_member(delivery::id(*partition, *number), member));
                first.extend(waiting.map(|delivery| of_subject(&delivery.subject)));
            }
            let mut answers =
                store.read(first.iter().map(|key| Query::Fields(key.clone(), &["queued_at"])).collect()).await?;
            for _ in &first {
                let queued = answers.record()?.and_then(|record| record.time("queued_at"));
                backlog.oldest = backlog.oldest.into_iter().chain(queued).min();
            }
            Ok(backlog)
        })
    }

    /// Marks unfinished attempts as `unknown`: those left by this node's previous run, and those of dead nodes. Returns
    /// their number.
    ///
    /// Without other nodes, every attempt in the store was made by an earlier run of this node, or before the store was
    /// moved here.
    pub fn abandon_attempts(&self) -> StoreFuture<u64> {
        self.run(|store| async move {
            if !store.engine().is_open() {
                // A node that waits at its start has begun none.
                return Ok(0);
            }
            if store.engine().is_shared() {
                return store.abandon(store.node()).await.inspect(|marked| count_unknown(*marked));
            }
            let mut marked = 0;
            let mut nodes: Vec<NodeId> = store.holders().await?.into_iter().map(|(_, node)| node).collect();
            nodes.push(store.node());
            nodes.sort_unstable();
            nodes.dedup();
            for node in nodes {
                marked +=
                    if node == store.node() { store.abandon(node).await? } else { store.take_over(node).await?.1 };
            }
            count_unknown(marked);
            Ok(marked)
        })
    }

    /// Returns the nodes that may have deliveries, by partition.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn holders(&self) -> Result<Vec<(Partition, NodeId)>, StoreError> {
        let mut answers =
            self.read(Partition::all().map(|partition| Query::page(holders(partition), 0, u64::MAX)).collect()).await?;
        let mut found = Vec::new();
        for partition in Partition::all() {
            found
                .extend(answers.members()?.iter().filter_map(|(node, _)| Some((partition, NodeId::from_bytes(node)?))));
        }
        Ok(found)
    }

    /// Returns deliveries of a node in order, after a position, of one receiver or of all, without unreadable ones.
    async fn deliveries_of(
        &self,
        node: NodeId,
        after: Option<DeliveryId>,
        of: Option<&Receiver>,
        limit: usize,
    ) -> Result<Vec<QueuedDelivery>, StoreError> {
        let slice = u64::try_from(limit).unwrap_or(u64::MAX).clamp(1, 1_000);
        let above = |partition| after.map_or(i64::MIN, |id| delivery::number_not_after(partition, id));
        let has_some = |partition: &Partition| of.is_none_or(|receiver| receiver.client.partition() == *partition);
        let mut asked: Vec<(Partition, i64)> =
            Partition::all().filter(has_some).map(|partition| (partition, above(partition))).collect();
        let mut deliveries = Vec::new();
        let mut found = [0; 64];
        while !asked.is_empty() {
            let members = |(partition, above): &(Partition, i64)| Query::Members {
                index: outbox(*partition, node),
                above: *above,
                until: i64::MAX.into(),
                offset: 0,
                limit: slice,
            };
            let mut answers = self.read(asked.iter().map(members).collect()).await?;
            let mut further = Vec::new();
            for (partition, _) in asked {
                let page = answers.members()?;
                let is_full = page.len() as u64 == slice;
                let last = page.last().map_or(i64::MAX, |(_, number)| *number);
                for (member, number) in page {
                    let id = delivery::id(partition, number);
                    match of_member(id, &member) {
                        Some(delivery) if of.is_none_or(|receiver| *receiver == delivery.receiver) => {
                            found[usize::from(partition.number())] += 1;
                            deliveries.push(delivery);
                        }
                        Some(_) => {}
                        // It delays no other delivery.
                        None => tracing::error!(delivery.id = %id, "a delivery in the outbox cannot be read"),
                    }
                }
                if is_full && found[usize::from(partition.number())] < limit {
                    further.push((partition, last));
                }
            }
            asked = further;
        }
        deliveries.sort_unstable_by_key(|delivery| delivery.id);
        deliveries.truncate(limit);
        Ok(deliveries)
    }

    /// Marks the unfinished attempts of a node as unknown. Returns their number.
    pub(crate) async fn abandon(&self, node: NodeId) -> Result<u64, StoreError> {
        let (mut marked, mut after) = (0, None);
        loop {
            let page = self.deliveries_of(node, after, None, SLICE).await?;
            let Some(last) = page.last() else { return Ok(marked) };
            after = Some(last.id);
            let batches = page.iter().map(|delivery| delivery::abandon(&delivery.subject, delivery.id, node, call()));
            marked +=
                self.engine().commit(batches.collect()).await?.iter().filter(|applied| is_done(applied)).count() as u64;
        }
    }

    /// Takes over from a dead node. Returns the number of deliveries moved here, and of attempts left unknown.
    ///
    /// # Errors
    /// Errors of the engine. The call can be repeated.
    pub async fn take_over(&self, dead: NodeId) -> Result<(u64, u64), StoreError> {
        let (mut taken, mut unknown) = (0, 0);
        loop {
            let page = self.deliveries_of(dead, None, None, SLICE).await?;
            if page.is_empty() {
                break;
            }
            let batches = page.iter().flat_map(|delivery| delivery::take_over(delivery, dead, self.node(), call()));
            for applied in self.engine().commit(batches.collect()).await?.chunks(3) {
                taken += u64::from(is_done(&applied[0]));
                unknown += u64::from(is_done(&applied[1]));
            }
        }
        self.engine()
            .commit(Partition::all().map(|partition| delivery::forget_holder(partition, dead)).collect())
            .await?;
        Ok((taken, unknown))
    }
}
