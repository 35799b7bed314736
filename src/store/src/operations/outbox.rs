//! The outbox. Indexes say which node has which delivery; the claim in the record of a delivery is the only permission to attempt it.

use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, QueuedDelivery, Subject};
use sakshi_domain::ids::{EventId, Partition};

use super::{Store, call, is_done};
use crate::engine::{Batch, Key, Query, Record};
use crate::error::{StoreError, StoreFuture};
use crate::outbox::{Backlog, address};
use crate::records::delivery::{flight, holders, of_member, of_subject, outbox};
use crate::redis::NodeId;
use crate::sealing::unseal_terms;
use crate::transitions::delivery;

/// Deliveries that are moved or given up at once.
const SLICE: u64 = 100;

/// The fields of a delivery's record that give its address. That of a flow has no app.
const ADDRESS: &[&str] = &["app", "terms", "event", "address", "size"];

/// A delivery that waits, as an index has it.
struct Waiting {
    id: DeliveryId,
    subject: Subject,
}

impl Store {
    /// Deliveries that wait for their attempt by this node, in order, after a position; of one
    /// origin or of all.
    pub fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>> {
        self.run(move |store| async move {
            if store.has_left() || limit == 0 {
                return Ok(Vec::new());
            }
            let (mut after, mut due) = (after, Vec::new());
            loop {
                let room = limit - due.len();
                let mut waiting = store.waiting(after, origin.as_deref(), room).await?;
                waiting.sort_unstable_by_key(|waiting| waiting.id);
                waiting.truncate(room);
                let is_last = waiting.len() < room;
                after = waiting.last().map(|waiting| waiting.id).or(after);
                // Read on past deliveries that were skipped.
                due.extend(store.addressed(waiting).await?);
                if is_last || due.len() == limit {
                    return Ok(due);
                }
            }
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

    /// Records the outcome of the attempt. Repeatable; the first record stands, but `unknown` gives
    /// way to the record of the node that made the attempt after all.
    pub fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> StoreFuture<()> {
        self.run(move |store| async move {
            let [first, given_up] = delivery::settle(&subject, id, store.node(), attempt);
            if !is_done(&store.commit_until_answered(first).await?) {
                store.commit_until_answered(given_up).await?;
            }
            Ok(())
        })
    }

    /// The delivery of a subject, for the operator.
    pub fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        self.run(move |store| async move {
            let record = store.read(vec![Query::Fields(of_subject(&subject), delivery::FIELDS)]).await?.record()?;
            record.map_or(Ok(None), |record| delivery::delivery_of(subject.partition(), &record))
        })
    }

    /// The deliveries that wait for their attempt, by whichever node.
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
            for _ in &holders {
                backlog.waiting += answers.number()?;
                first
                    .extend(answers.members()?.iter().filter_map(|(member, _)| of_member(member)).map(|(subject, _)| of_subject(&subject)));
            }
            let mut answers = store.read(first.iter().map(|key| Query::Fields(key.clone(), &["queued_at"])).collect()).await?;
            for _ in &first {
                let queued = answers.record()?.and_then(|record| record.time("queued_at"));
                backlog.oldest = backlog.oldest.into_iter().chain(queued).min();
            }
            Ok(backlog)
        })
    }

    /// Marks unfinished attempts as `unknown`: those that this node left behind when it was last
    /// stopped, and those of dead nodes. Returns how many.
    ///
    /// Without other nodes, every attempt in the store is an earlier one of this node, or of the store that was moved here.
    pub fn abandon_attempts(&self) -> StoreFuture<u64> {
        self.run(|store| async move {
            if !store.engine().is_open() {
                // A node that waits at its start has begun none.
                return Ok(0);
            }
            if store.engine().is_shared() {
                return store.abandon(store.node()).await;
            }
            let mut marked = 0;
            let mut nodes: Vec<NodeId> = store.holders().await?.into_iter().map(|(_, node)| node).collect();
            nodes.push(store.node());
            nodes.sort_unstable();
            nodes.dedup();
            for node in nodes {
                marked += store.abandon(node).await?;
                if node != store.node() {
                    store.take_over(node).await?;
                }
            }
            Ok(marked)
        })
    }

    /// Takes over from a node that is dead: how many deliveries wait here instead, and how many attempts stay unknown.
    ///
    /// # Errors
    /// The engine's. It may be repeated.
    pub async fn replace(&self, dead: NodeId) -> Result<(u64, u64), StoreError> {
        let unknown = self.abandon(dead).await?;
        Ok((self.take_over(dead).await?, unknown))
    }

    /// The nodes that may have deliveries, by partition.
    ///
    /// # Errors
    /// The engine's.
    pub async fn holders(&self) -> Result<Vec<(Partition, NodeId)>, StoreError> {
        let mut answers = self.read(Partition::all().map(|partition| Query::page(holders(partition), 0, u64::MAX)).collect()).await?;
        let mut found = Vec::new();
        for partition in Partition::all() {
            found.extend(answers.members()?.iter().filter_map(|(node, _)| Some((partition, NodeId::from_bytes(node)?))));
        }
        Ok(found)
    }

    /// Deliveries of this node after a position, of one origin or of all: of each partition at most so many, in order.
    async fn waiting(&self, after: Option<DeliveryId>, origin: Option<&str>, limit: usize) -> Result<Vec<Waiting>, StoreError> {
        let slice = u64::try_from(limit).unwrap_or(u64::MAX).clamp(1, 1_000);
        let above = |partition| after.map_or(i64::MIN, |id| delivery::number_not_after(partition, id));
        let mut asked: Vec<(Partition, i64)> = Partition::all().map(|partition| (partition, above(partition))).collect();
        let mut waiting = Vec::new();
        let mut found = [0; 64];
        while !asked.is_empty() {
            let members = |(partition, above): &(Partition, i64)| Query::Members {
                index: outbox(*partition, self.node()),
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
                    let (subject, of) = of_member(&member).ok_or_else(|| StoreError::unreadable("the outbox"))?;
                    if origin.is_none_or(|origin| origin == of) {
                        found[usize::from(partition.number())] += 1;
                        waiting.push(Waiting { id: delivery::id(partition, number), subject });
                    }
                }
                if is_full && found[usize::from(partition.number())] < limit {
                    further.push((partition, last));
                }
            }
            asked = further;
        }
        Ok(waiting)
    }

    /// Adds the URLs. Skips deliveries whose record is gone, and those whose address cannot be read: they wait, and hold up no other.
    async fn addressed(&self, waiting: Vec<Waiting>) -> Result<Vec<QueuedDelivery>, StoreError> {
        let queries = waiting.iter().map(|waiting| Query::Fields(of_subject(&waiting.subject), ADDRESS));
        let mut answers = self.read(queries.collect()).await?;
        let mut due = Vec::with_capacity(waiting.len());
        for Waiting { id, subject } in waiting {
            let Some(record) = answers.record()? else { continue };
            match self.queued(id, subject, &record) {
                Ok(delivery) => due.push(delivery),
                Err(error) => tracing::error!(delivery.id = %id, subject.id = %subject, %error, "the address of a webhook cannot be read"),
            }
        }
        Ok(due)
    }

    fn queued(&self, id: DeliveryId, subject: Subject, record: &Record) -> Result<QueuedDelivery, StoreError> {
        let event = record.has("event").then(|| record.array("event").map(EventId::from_bytes)).transpose()?;
        let copied = record.has("address").then(|| record.bytes("address").to_vec());
        let own = || match subject {
            Subject::Transaction(txn) => Ok(unseal_terms(self.vault(), txn, record.bytes("terms"))?.webhook_url),
            Subject::Flow { .. } => Ok(None),
        };
        let url = address(self.vault(), subject, event, copied, own)?;
        let app = record.has("app").then(|| record.parsed("app")).transpose()?;
        Ok(QueuedDelivery { id, subject, url, app, stored_bytes: usize::try_from(record.integer("size")).unwrap_or(0) })
    }

    /// Marks the unfinished attempts of a node as unknown; returns how many.
    pub(crate) async fn abandon(&self, node: NodeId) -> Result<u64, StoreError> {
        let mut marked = 0;
        loop {
            let begun = self.slices(|partition| flight(partition, node)).await?;
            if begun.is_empty() {
                return Ok(marked);
            }
            let mut batches = Vec::with_capacity(2 * begun.len());
            for (_, member, number) in begun {
                let subject = Subject::from_bytes(&member).ok_or_else(|| StoreError::unreadable("an unfinished attempt"))?;
                batches.extend(delivery::abandon(&subject, number, node, call()));
            }
            marked += self.firsts(batches).await?;
        }
    }

    /// Takes over the waiting deliveries of a node; returns how many.
    pub(crate) async fn take_over(&self, dead: NodeId) -> Result<u64, StoreError> {
        let mut taken = 0;
        loop {
            let waiting = self.slices(|partition| outbox(partition, dead)).await?;
            if waiting.is_empty() {
                break;
            }
            let mut batches = Vec::with_capacity(2 * waiting.len());
            for (partition, member, number) in waiting {
                let (subject, origin) = of_member(&member).ok_or_else(|| StoreError::unreadable("the outbox"))?;
                batches.push(delivery::take_over(&subject, origin, number, dead, self.node()));
                batches.push(delivery::forget(outbox(partition, dead), number));
            }
            taken += self.firsts(batches).await?;
        }
        self.engine().commit(Partition::all().map(|partition| delivery::forget_holder(partition, dead)).collect()).await?;
        Ok(taken)
    }

    /// The first members of an index of each partition, with their scores.
    async fn slices(&self, index: impl Fn(Partition) -> Key) -> Result<Vec<(Partition, Vec<u8>, i64)>, StoreError> {
        let mut answers = self.read(Partition::all().map(|partition| Query::page(index(partition), 0, SLICE)).collect()).await?;
        let mut found = Vec::new();
        for partition in Partition::all() {
            found.extend(answers.members()?.into_iter().map(|(member, score)| (partition, member, score)));
        }
        Ok(found)
    }

    /// Commits pairs of batches; of how many the first was applied.
    async fn firsts(&self, batches: Vec<Batch>) -> Result<u64, StoreError> {
        let applied = self.engine().commit(batches).await?;
        Ok(applied.iter().step_by(2).filter(|applied| is_done(applied)).count() as u64)
    }
}
