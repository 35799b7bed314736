//! Deliveries: queued with what they report for the node that took it in, claimed by one call before
//! the one attempt, settled after it.
//!
//! A stream per partition carries them; the pending lists of its group say which node has which.
//! The mark in the hash of the transaction or report is the only permission to make an attempt, so a node that was
//! given up too early makes none that another has begun.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, DeliveryRecord, FlowDelivery, QueuedDelivery, Subject};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{EventId, Partition};
use uuid::Uuid;

use super::answer::{Fields, arguments, number, unreadable};
use super::script::{
    ABANDON_ATTEMPTS, CLAIM_DELIVERY, DUE_DELIVERIES, LIST_WEBHOOKS, LOAD_DELIVERIES, LOAD_DELIVERY, SETTLE_DELIVERY, TAKE_OVER,
};
use super::{NodeId, Shared, keys, position};
use crate::error::StoreError;
use crate::sealing::{open_of_flow, open_terms, open_webhook};

/// Entries that one command moves, marks or reads.
const SLICE: usize = 100;

/// What a node that is gone has left to this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TakenOver {
    /// Deliveries that this node attempts instead.
    pub(super) deliveries: u64,
    /// Attempts of which nobody will know.
    pub(super) unknown: u64,
}

/// A delivery that waits.
struct Waiting {
    id: DeliveryId,
    subject: Subject,
    origin: Vec<u8>,
}

impl Waiting {
    /// An entry of a stream; none when it was taken off meanwhile.
    fn read(partition: Partition, entry: redis::Value) -> Result<Option<Self>, StoreError> {
        let mut entry = Fields::of("an entry of the outbox", entry)?;
        let id = position::delivery(partition, &entry.bytes()?).ok_or_else(|| unreadable("the position of a delivery"))?;
        let Some(fields) = Fields::maybe("an entry of the outbox", entry.value()?)? else { return Ok(None) };
        let (mut subject, mut origin) = (None, Vec::new());
        for (name, value) in fields.pairs()? {
            match name.as_slice() {
                b"t" => subject = Subject::from_bytes(&value),
                b"o" => origin = value,
                _ => {}
            }
        }
        Ok(Some(Self { id, subject: subject.ok_or_else(|| unreadable("an entry of the outbox"))?, origin }))
    }
}

/// A stream that is being read.
struct Reading {
    partition: Partition,
    /// Where to read on; `None` at the end.
    after: Option<String>,
}

impl Shared {
    /// What waits for this node, in order, after a position.
    pub(super) async fn due_deliveries(
        &self,
        after: Option<DeliveryId>,
        origin: Option<String>,
        limit: usize,
    ) -> Result<Vec<QueuedDelivery>, StoreError> {
        let mut streams = self.streams(after).await?;
        let slice = limit.clamp(1, 1_000);
        // By position, those that were read and match.
        let mut found = BTreeSet::new();
        loop {
            // No stream is read beyond the last one that is asked for.
            let last = if limit > 0 { found.iter().nth(limit - 1).map(|(id, _)| *id) } else { Some(DeliveryId(0)) };
            let behind = |stream: &&mut Reading| match (&stream.after, last) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(after), Some(last)) => position::delivery(stream.partition, after.as_bytes()).is_some_and(|at| at < last),
            };
            let reads = streams.iter_mut().filter(behind).map(|stream| self.read_on(stream, slice)).collect::<Vec<_>>();
            if reads.is_empty() {
                break;
            }
            let read = try_join_all(reads).await?.into_iter().flatten();
            let wanted = |waiting: &Waiting| origin.as_ref().is_none_or(|origin| waiting.origin == origin.as_bytes());
            found.extend(read.filter(wanted).map(|waiting| (waiting.id, waiting.subject)));
        }
        self.addressed(found.into_iter().take(limit).collect()).await
    }

    /// The streams in which something waits.
    async fn streams(&self, after: Option<DeliveryId>) -> Result<Vec<Reading>, StoreError> {
        let lengths = keys::partitions().map(|partition| cmd("XLEN").arg(keys::outbox(partition)).to_owned());
        let lengths = self.link.read_all(lengths.collect()).await?;
        let mut streams = Vec::new();
        for (partition, length) in keys::partitions().zip(lengths) {
            if number::<u64>("the length of the outbox", length)? > 0 {
                let after = after.map_or_else(|| "0-0".into(), |after| position::until(partition, after));
                streams.push(Reading { partition, after: Some(after) });
            }
        }
        Ok(streams)
    }

    async fn read_on(&self, stream: &mut Reading, slice: usize) -> Result<Vec<Waiting>, StoreError> {
        let args = arguments![self.node.to_string(), stream.after.as_deref(), slice];
        let answer = self.call(&DUE_DELIVERIES, vec![keys::outbox(stream.partition)], args).await?;
        let entries: Vec<_> = Fields::of("the outbox", answer)?.rest().collect();
        let full = entries.len() == slice;
        let mut read = Vec::with_capacity(entries.len());
        stream.after = None;
        for entry in entries {
            if full {
                let mut head = Fields::of("an entry of the outbox", entry.clone())?;
                stream.after = Some(head.text()?);
            }
            read.extend(Waiting::read(stream.partition, entry)?);
        }
        Ok(read)
    }

    /// Adds where each goes; passes over what has ended meanwhile.
    async fn addressed(&self, waiting: Vec<(DeliveryId, Subject)>) -> Result<Vec<QueuedDelivery>, StoreError> {
        let asked = waiting.iter().flat_map(|(_, subject)| {
            let key = keys::subject(subject);
            [cmd("HMGET").arg(&key).arg(&["s", "e", "h"]).to_owned(), cmd("HSTRLEN").arg(&key).arg("r").to_owned()]
        });
        let mut found = self.link.read_all(asked.collect()).await?.into_iter();
        let mut due = Vec::with_capacity(waiting.len());
        for (id, subject) in waiting {
            let (Some(fields), Some(bytes)) = (found.next(), found.next()) else { return Err(unreadable("a delivery")) };
            if let Some(url) = self.address(subject, Fields::of("a delivery", fields)?)? {
                due.push(QueuedDelivery { id, subject, url, stored_bytes: number("a delivery", bytes)? });
            }
        }
        Ok(due)
    }

    /// Where a delivery goes, from the terms, the event and the sealed address that stand with it.
    fn address(&self, subject: Subject, mut fields: Fields) -> Result<Option<WebhookUrl>, StoreError> {
        let (terms, event): (_, Option<EventId>) = (fields.optional_sealed()?, fields.optional_parsed()?);
        match subject {
            Subject::Transaction(txn) => {
                let Some(terms) = terms else { return Ok(None) };
                let url = match (event, fields.optional_sealed()?) {
                    (Some(event), Some(address)) => Some(open_webhook(&self.vault, event, &address)?),
                    _ => open_terms(&self.vault, txn, &terms)?.webhook_url,
                };
                url.map(Some).ok_or_else(|| unreadable("the address of a delivery"))
            }
            Subject::Flow { flow, .. } => fields.optional()?.map(|address| open_of_flow(&self.vault, flow, &address)).transpose(),
        }
    }

    /// An answer that was lost is asked for until it comes: nobody else may have the permission.
    pub(super) async fn claim_delivery(&self, id: DeliveryId, subject: Subject) -> Result<bool, StoreError> {
        let partition = subject.partition();
        let keys = vec![keys::subject(&subject), keys::outbox(partition), keys::flight(partition)];
        let args = arguments![position::of(id), self.node.to_string(), Uuid::new_v4().as_bytes(), subject.to_bytes()];
        let claimed: u32 = number("the answer to a claim", self.call_until_answered(&CLAIM_DELIVERY, keys, args).await?)?;
        Ok(claimed == 1)
    }

    pub(super) async fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> Result<(), StoreError> {
        let Attempt { outcome, status, duration_ms } = attempt;
        let keys = vec![keys::subject(&subject), keys::flight(subject.partition())];
        let args = arguments![position::of(id), outcome.as_str(), status, duration_ms];
        self.call_until_answered(&SETTLE_DELIVERY, keys, args).await.map(drop)
    }

    pub(super) async fn load_delivery(&self, subject: Subject) -> Result<Option<DeliveryRecord>, StoreError> {
        record(subject.partition(), self.call(&LOAD_DELIVERY, vec![keys::subject(&subject)], vec![]).await?)
    }

    /// What was queued of a flow: its hash names the webhooks, and each has a hash of its own.
    pub(super) async fn deliveries_of(&self, flow: FlowId) -> Result<Vec<FlowDelivery>, StoreError> {
        let listed = self.call(&LIST_WEBHOOKS, vec![keys::flow(flow)], vec![]).await?;
        let named = |(name, tells): (Vec<u8>, Vec<u8>)| Some((DedupDigest(name.try_into().ok()?), String::from_utf8(tells).ok()?));
        let webhooks = Fields::of("the webhooks of a flow", listed)?.pairs()?.into_iter().map(named);
        let webhooks = webhooks.collect::<Option<Vec<_>>>().ok_or_else(|| unreadable("the webhooks of a flow"))?;
        let mut found = Vec::with_capacity(webhooks.len());
        for slice in webhooks.chunks(SLICE) {
            let keys = slice.iter().map(|(webhook, _)| keys::report(flow, *webhook)).collect();
            let loaded = Fields::of("the deliveries of a flow", self.call(&LOAD_DELIVERIES, keys, vec![]).await?)?;
            for ((webhook, tells), loaded) in slice.iter().zip(loaded.rest()) {
                let delivery = record(flow.partition(), loaded)?;
                found.extend(delivery.map(|delivery| FlowDelivery { webhook: *webhook, tells: tells.clone(), delivery }));
            }
        }
        Ok(found)
    }

    /// Marks the attempts of a node as unknown, in every partition.
    pub(super) async fn abandon(&self, node: &NodeId) -> Result<u64, StoreError> {
        let flights = keys::partitions().map(|partition| cmd("HGETALL").arg(keys::flight(partition)).to_owned());
        let flights = self.link.read_all(flights.collect()).await?;
        let mut marked = 0;
        for (partition, flight) in keys::partitions().zip(flights) {
            marked += self.abandon_in(partition, node, flight).await?;
        }
        Ok(marked)
    }

    async fn abandon_in(&self, partition: Partition, node: &NodeId, flight: redis::Value) -> Result<u64, StoreError> {
        let mut left = Vec::new();
        let name = node.to_string();
        for (at, holder) in Fields::of("the attempts under way", flight)?.pairs()? {
            let Some(subject) = holder.strip_prefix(name.as_bytes()) else { continue };
            left.push((at, Subject::from_bytes(subject).ok_or_else(|| unreadable("an attempt under way"))?));
        }
        let mut marked = 0;
        for slice in left.chunks(SLICE) {
            let keys = std::iter::once(keys::flight(partition)).chain(slice.iter().map(|(_, subject)| keys::subject(subject)));
            let args = slice.iter().map(|(at, _)| at.clone()).collect();
            marked += number::<u64>("attempts", self.call(&ABANDON_ATTEMPTS, keys.collect(), args).await?)?;
        }
        Ok(marked)
    }

    /// Takes what waits for a node that is gone, and gives up what it had under way.
    pub(super) async fn take_over(&self, gone: &NodeId) -> Result<TakenOver, StoreError> {
        let unknown = self.abandon(gone).await?;
        let moved = try_join_all(keys::partitions().map(|partition| self.take_over_in(partition, gone))).await?;
        Ok(TakenOver { deliveries: moved.into_iter().sum(), unknown })
    }

    async fn take_over_in(&self, partition: Partition, gone: &NodeId) -> Result<u64, StoreError> {
        let mut taken = 0;
        loop {
            let args = arguments![gone.to_string(), self.node.to_string(), SLICE];
            let mut answer = Fields::of("what was taken over", self.call(&TAKE_OVER, vec![keys::outbox(partition)], args).await?)?;
            taken += answer.parsed::<u64>()?;
            if answer.parsed::<u32>()? == 1 {
                return Ok(taken);
            }
        }
    }
}

/// A delivery from the fields of its hash; none when nothing was queued.
fn record(partition: Partition, answer: redis::Value) -> Result<Option<DeliveryRecord>, StoreError> {
    let Some(mut fields) = Fields::maybe("a delivery", answer)? else { return Ok(None) };
    let Some(at) = fields.optional()? else { return Ok(None) };
    let id = position::delivery(partition, &at).ok_or_else(|| unreadable("the position of a delivery"))?;
    let (origin, queued_at, claimed_at) = (fields.text()?, fields.time()?, fields.optional_time()?);
    let Some(word) = fields.optional_text()? else {
        return Ok(Some(DeliveryRecord { id, origin, queued_at, claimed_at, attempt: None }));
    };
    let outcome = DeliveryOutcome::parse(&word).ok_or_else(|| unreadable("an attempt"))?;
    let attempt = Attempt { outcome, status: fields.optional_parsed()?, duration_ms: fields.parsed()? };
    Ok(Some(DeliveryRecord { id, origin, queued_at, claimed_at, attempt: Some(attempt) }))
}
