//! The outbox. Indexes list the deliveries of each node. Only a claim in the record of a delivery permits its attempt.

use std::collections::BTreeSet;

use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, QueuedDelivery, Receiver, Subject};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::Partition;

use super::{Store, is_done, new_call_id};
use crate::engine::{NO_LOWER_BOUND, Query};
use crate::error::{StoreError, StoreFuture};
use crate::outbox::{Backlog, count_unknown};
use crate::records::delivery::{decode_member, key_of_delivery, key_of_holders, key_of_outbox};
use crate::redis::NodeId;
use crate::transitions::delivery;

/// Deliveries moved or abandoned at once.
const DELIVERIES_AT_ONCE: usize = 100;
/// Deliveries only read at once.
const DELIVERIES_READ_AT_ONCE: usize = 1_000;

impl Store {
    /// Returns the deliveries of this node whose attempt has not ended, in order: at most `limit` after the id `after`,
    /// of one receiver or of all.
    pub fn due_deliveries(
        &self,
        after: Option<DeliveryId>,
        receiver: Option<Receiver>,
        limit: usize,
    ) -> StoreFuture<Vec<QueuedDelivery>> {
        self.run(move |store| async move {
            if store.has_left() || limit == 0 {
                return Ok(Vec::new());
            }
            store.node_deliveries(store.node(), after, receiver.as_ref(), limit).await
        })
    }

    /// Claims the only attempt of a delivery; `false` if it was claimed before.
    pub fn claim_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<bool> {
        self.run(move |store| async move {
            if store.has_left() {
                return Ok(false);
            }
            let call = new_call_id();
            let applied = store.commit_until_answered(delivery::claim(&subject, id, store.node(), call)).await?;
            Ok(delivery::has_claim(call, &applied))
        })
    }

    /// Removes a delivery from the outbox if its record is missing.
    pub fn forget_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<()> {
        self.run(move |store| async move {
            store.commit(delivery::forget_missing(&subject, id, store.node())).await.map(drop)
        })
    }

    /// Records the outcome of the attempt. Repeatable: the first outcome stands, except that `unknown` is replaced by
    /// the outcome from the node that made the attempt.
    pub fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> StoreFuture<()> {
        self.run(move |store| async move {
            let [unsettled, abandoned] = delivery::settle(&subject, id, store.node(), attempt);
            if !is_done(&store.commit_until_answered(unsettled).await?) {
                store.commit_until_answered(abandoned).await?;
            }
            Ok(())
        })
    }

    /// Returns the delivery of a subject, for the operator.
    pub fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        self.run(move |store| async move {
            let record =
                store.read(vec![Query::Fields(key_of_delivery(&subject), delivery::FIELDS)]).await?.record()?;
            record.map_or(Ok(None), |record| delivery::decode_delivery(subject.partition(), &record))
        })
    }

    /// Counts the deliveries of all nodes whose attempt has not ended, with the time of the oldest.
    pub fn backlog(&self) -> StoreFuture<Backlog> {
        self.run(|store| async move {
            let holders = store.holders().await?;
            let queries = holders.iter().flat_map(|(partition, node)| {
                let index = key_of_outbox(*partition, *node);
                [Query::count(index.clone()), Query::page(index, 0, 1)]
            });
            let mut answers = store.read(queries.collect()).await?;
            let mut oldest_records = Vec::new();
            let mut backlog = Backlog::default();
            for (partition, _) in &holders {
                backlog.deliveries += answers.number()?;
                let members = answers.members()?;
                let oldest = members
                    .iter()
                    .filter_map(|(member, number)| decode_member(delivery::id_of_number(*partition, *number), member));
                oldest_records.extend(oldest.map(|delivery| key_of_delivery(&delivery.subject)));
            }
            let mut answers = store
                .read(oldest_records.iter().map(|key| Query::Fields(key.clone(), &["queued_at"])).collect())
                .await?;
            for _ in &oldest_records {
                let queued_at = answers.record()?.and_then(|record| record.time("queued_at"));
                backlog.oldest = backlog.oldest.into_iter().chain(queued_at).min();
            }
            Ok(backlog)
        })
    }

    /// Marks unfinished attempts of this node's previous run as `unknown`. Returns their number.
    ///
    /// Without other nodes, it marks every unfinished attempt in the store: an earlier run of this node made it, or a
    /// node made it before the store was moved here.
    pub fn abandon_attempts(&self) -> StoreFuture<u64> {
        self.run(|store| async move {
            if !store.engine().is_open() {
                // A node that still waits for its store has begun no attempt.
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
    /// Any error of the engine.
    pub async fn holders(&self) -> Result<Vec<(Partition, NodeId)>, StoreError> {
        let mut answers = self
            .read(Partition::all().map(|partition| Query::all_members(key_of_holders(partition))).collect())
            .await?;
        let mut nodes = Vec::new();
        for partition in Partition::all() {
            nodes
                .extend(answers.members()?.iter().filter_map(|(node, _)| Some((partition, NodeId::from_bytes(node)?))));
        }
        Ok(nodes)
    }

    /// Returns the deliveries of a node in order: at most `limit` after the id `after`, of one receiver or of all.
    /// Skips unreadable deliveries.
    async fn node_deliveries(
        &self,
        node: NodeId,
        after: Option<DeliveryId>,
        receiver: Option<&Receiver>,
        limit: usize,
    ) -> Result<Vec<QueuedDelivery>, StoreError> {
        let page_size = u64::try_from(limit).unwrap_or(u64::MAX).clamp(1, 1_000);
        let above = |partition| after.map_or(NO_LOWER_BOUND, |id| delivery::number_not_after(partition, id));
        let is_searched =
            |partition: &Partition| receiver.is_none_or(|receiver| receiver.client.partition() == *partition);
        let mut positions: Vec<(Partition, i64)> =
            Partition::all().filter(is_searched).map(|partition| (partition, above(partition))).collect();
        let mut deliveries = Vec::new();
        let mut found_in_partition = [0; 64];
        while !positions.is_empty() {
            let members = |(partition, above): &(Partition, i64)| Query::Members {
                index: key_of_outbox(*partition, node),
                above: *above,
                until: i64::MAX.into(),
                offset: 0,
                limit: page_size,
            };
            let mut answers = self.read(positions.iter().map(members).collect()).await?;
            let mut next_positions = Vec::new();
            for (partition, _) in positions {
                let page = answers.members()?;
                let is_full = page.len() as u64 == page_size;
                let last = page.last().map_or(i64::MAX, |(_, number)| *number);
                for (member, number) in page {
                    let id = delivery::id_of_number(partition, number);
                    match decode_member(id, &member) {
                        Some(delivery) if receiver.is_none_or(|receiver| *receiver == delivery.receiver) => {
                            found_in_partition[usize::from(partition.number())] += 1;
                            deliveries.push(delivery);
                        }
                        Some(_) => {}
                        // An unreadable delivery must not delay the others.
                        None => tracing::error!(delivery.id = %id, "a delivery in the outbox cannot be read"),
                    }
                }
                if is_full && found_in_partition[usize::from(partition.number())] < limit {
                    next_positions.push((partition, last));
                }
            }
            positions = next_positions;
        }
        deliveries.sort_unstable_by_key(|delivery| delivery.id);
        deliveries.truncate(limit);
        Ok(deliveries)
    }

    /// Returns the flows with an unfinished delivery that `is_selected` selects. A flow may have expired meanwhile.
    pub(super) async fn flows_with_deliveries(
        &self,
        is_selected: impl Fn(&QueuedDelivery) -> bool,
    ) -> Result<BTreeSet<FlowId>, StoreError> {
        let nodes: BTreeSet<NodeId> = self.holders().await?.into_iter().map(|(_, node)| node).collect();
        let mut flows = BTreeSet::new();
        for node in nodes {
            let mut after = None;
            loop {
                let page = self.node_deliveries(node, after, None, DELIVERIES_READ_AT_ONCE).await?;
                let Some(last) = page.last() else { break };
                after = Some(last.id);
                for delivery in &page {
                    if let Subject::Flow { flow, .. } = delivery.subject
                        && is_selected(delivery)
                    {
                        flows.insert(flow);
                    }
                }
            }
        }
        Ok(flows)
    }

    /// Marks the unfinished attempts of a node as unknown. Returns their number.
    pub(crate) async fn abandon(&self, node: NodeId) -> Result<u64, StoreError> {
        let (mut marked, mut after) = (0, None);
        loop {
            let page = self.node_deliveries(node, after, None, DELIVERIES_AT_ONCE).await?;
            let Some(last) = page.last() else { return Ok(marked) };
            after = Some(last.id);
            let batches =
                page.iter().map(|delivery| delivery::abandon(&delivery.subject, delivery.id, node, new_call_id()));
            marked +=
                self.engine().commit(batches.collect()).await?.iter().filter(|applied| is_done(applied)).count() as u64;
        }
    }

    /// Takes over the deliveries of a dead node. Returns the number of deliveries moved to this node, and of attempts
    /// marked as unknown. Repeatable.
    ///
    /// # Errors
    /// Any error of the engine.
    pub async fn take_over(&self, dead: NodeId) -> Result<(u64, u64), StoreError> {
        let (mut moved, mut unknown) = (0, 0);
        loop {
            let page = self.node_deliveries(dead, None, None, DELIVERIES_AT_ONCE).await?;
            if page.is_empty() {
                break;
            }
            let batches =
                page.iter().flat_map(|delivery| delivery::take_over(delivery, dead, self.node(), new_call_id()));
            for applied in self.engine().commit(batches.collect()).await?.chunks(3) {
                moved += u64::from(is_done(&applied[0]));
                unknown += u64::from(is_done(&applied[1]));
            }
        }
        self.engine()
            .commit(Partition::all().map(|partition| delivery::forget_holder(partition, dead)).collect())
            .await?;
        Ok((moved, unknown))
    }
}
