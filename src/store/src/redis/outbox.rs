//! The outbox: a delivery is queued with what it reports for the node that accepted it, claimed before
//! its one attempt, and settled after it.
//!
//! Each partition has a stream of deliveries; the pending lists of its consumer group say which node
//! has which. The claim in the hash of the transaction or report is the only permission to make an
//! attempt, so a node that was declared dead too early makes no attempt that another has begun.

use std::collections::BTreeSet;
use std::future::ready;

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, QueuedDelivery, Subject};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::Partition;
use uuid::Uuid;

use super::arguments::arguments;
use super::reply::{Fields, Reply};
use super::script::{CLAIM_DELIVERY, DUE_DELIVERIES, LOAD_DELIVERY, SETTLE_DELIVERY};
use super::shared::Shared;
use super::store::RedisStore;
use super::{delivery_id, keys};
use crate::error::{StoreError, StoreFuture};
use crate::outbox::{Backlog, Outbox, address};
use crate::sealing::open_terms;

impl Outbox for RedisStore {
    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>> {
        self.run(move |store| async move {
            if store.has_left() {
                return Ok(Vec::new());
            }
            let mut streams = store.streams(after).await?;
            let slice = limit.clamp(1, 1_000);
            // The deliveries that were read and match, by id.
            let mut found = BTreeSet::new();
            loop {
                // No stream is read beyond the last delivery that is asked for.
                let last = if limit > 0 { found.iter().nth(limit - 1).map(|(id, _)| *id) } else { Some(DeliveryId(0)) };
                let behind = |stream: &&mut Reading| match (&stream.after, last) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(after), Some(last)) => delivery_id::of_entry(stream.partition, after.as_bytes()).is_ok_and(|id| id < last),
                };
                let reads = streams.iter_mut().filter(behind).map(|stream| store.read_on(stream, slice)).collect::<Vec<_>>();
                if reads.is_empty() {
                    break;
                }
                let read = try_join_all(reads).await?.into_iter().flatten();
                let wanted = |waiting: &Waiting| origin.as_ref().is_none_or(|origin| waiting.origin == origin.as_bytes());
                found.extend(read.filter(wanted).map(|waiting| (waiting.id, waiting.subject)));
            }
            store.addressed(found.into_iter().take(limit).collect()).await
        })
    }

    /// Asks until there is a reply: if one was lost, this call may have the permission, and then no
    /// other has it.
    fn claim_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<bool> {
        self.run(move |store| async move {
            if store.has_left() {
                return Ok(false);
            }
            let partition = subject.partition();
            let keys = vec![keys::subject(&subject), keys::outbox(partition), keys::flight(partition)];
            let args = arguments![delivery_id::entry(id), store.node.to_string(), Uuid::new_v4().as_bytes(), subject.to_bytes()];
            store.call_until_answered(&CLAIM_DELIVERY, keys, args).await?.succeeded()
        })
    }

    fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> StoreFuture<()> {
        self.run(move |store| async move {
            let Attempt { outcome, status, duration_ms } = attempt;
            let keys = vec![keys::subject(&subject), keys::flight(subject.partition())];
            let args = arguments![delivery_id::entry(id), outcome.as_str(), status, duration_ms];
            store.call_until_answered(&SETTLE_DELIVERY, keys, args).await.map(drop)
        })
    }

    fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        self.run(move |store| async move {
            record(subject.partition(), store.call(&LOAD_DELIVERY, vec![keys::subject(&subject)], vec![]).await?)
        })
    }

    fn backlog(&self) -> StoreFuture<Backlog> {
        self.run(|store| async move {
            let asked = keys::partitions().flat_map(|partition| {
                let stream = keys::outbox(partition);
                [cmd("XLEN").arg(&stream).to_owned(), cmd("XRANGE").arg(&stream).arg(&["-", "+", "COUNT", "1"]).to_owned()]
            });
            let mut found = store.read_all("the outbox", asked).await?.into_iter();
            let mut backlog = Backlog::default();
            while let (Some(length), Some(first)) = (found.next(), found.next()) {
                backlog.waiting += length.parsed::<u64>()?;
                for entry in first.fields()?.rest() {
                    let queued = delivery_id::queued_at(&entry.fields()?.text()?)?;
                    backlog.oldest = Some(backlog.oldest.map_or(queued, |oldest| oldest.min(queued)));
                }
            }
            Ok(backlog)
        })
    }

    fn abandon_attempts(&self) -> StoreFuture<u64> {
        if !self.shared.link.loss_guard().has_joined() {
            // A node that waits at its start has begun none.
            return Box::pin(ready(Ok(0)));
        }
        self.run(|store| async move { store.abandon(&store.node).await })
    }
}

/// A delivery that waits.
struct Waiting {
    id: DeliveryId,
    subject: Subject,
    origin: Vec<u8>,
}

impl Waiting {
    /// An entry of a stream; `None` when it was removed meanwhile.
    fn read(partition: Partition, entry: Reply) -> Result<Option<Self>, StoreError> {
        let mut entry = entry.fields()?;
        let id = delivery_id::of_entry(partition, &entry.bytes()?)?;
        let Some(fields) = entry.value()?.optional_fields()? else { return Ok(None) };
        let (mut subject, mut origin) = (None, Vec::new());
        for (name, value) in fields.pairs()? {
            match name.as_slice() {
                b"t" => subject = Subject::from_bytes(&value),
                b"o" => origin = value,
                _ => {}
            }
        }
        Ok(Some(Self { id, subject: subject.ok_or_else(|| StoreError::unreadable("an entry of the outbox"))?, origin }))
    }
}

/// A stream that is being read.
struct Reading {
    partition: Partition,
    /// The entry after which to read on; `None` at the end.
    after: Option<String>,
}

impl Shared {
    /// The streams that are not empty.
    async fn streams(&self, after: Option<DeliveryId>) -> Result<Vec<Reading>, StoreError> {
        let lengths = keys::partitions().map(|partition| cmd("XLEN").arg(keys::outbox(partition)).to_owned());
        let lengths = self.read_all("the length of the outbox", lengths).await?;
        let mut streams = Vec::new();
        for (partition, length) in keys::partitions().zip(lengths) {
            if length.parsed::<u64>()? > 0 {
                let after = after.map_or_else(|| "0-0".into(), |after| delivery_id::entry_not_after(partition, after));
                streams.push(Reading { partition, after: Some(after) });
            }
        }
        Ok(streams)
    }

    async fn read_on(&self, stream: &mut Reading, slice: usize) -> Result<Vec<Waiting>, StoreError> {
        let args = arguments![self.node.to_string(), stream.after.as_deref(), slice];
        let entries = self.call(&DUE_DELIVERIES, vec![keys::outbox(stream.partition)], args).await?.fields()?.rest();
        let full = entries.len() == slice;
        let mut read = Vec::with_capacity(entries.len());
        stream.after = None;
        for entry in entries {
            if full {
                stream.after = Some(entry.clone().fields()?.text()?);
            }
            read.extend(Waiting::read(stream.partition, entry)?);
        }
        Ok(read)
    }

    /// Adds the URLs; deliveries that have ended meanwhile are skipped.
    async fn addressed(&self, waiting: Vec<(DeliveryId, Subject)>) -> Result<Vec<QueuedDelivery>, StoreError> {
        let asked = waiting.iter().flat_map(|(_, subject)| {
            let key = keys::subject(subject);
            [cmd("HMGET").arg(&key).arg(&["s", "e", "h"]).to_owned(), cmd("HSTRLEN").arg(&key).arg("r").to_owned()]
        });
        let mut found = self.read_all("a delivery", asked).await?.into_iter();
        let mut due = Vec::with_capacity(waiting.len());
        for (id, subject) in waiting {
            let (Some(fields), Some(bytes)) = (found.next(), found.next()) else { return Err(StoreError::unreadable("a delivery")) };
            if let Some(url) = self.address(subject, fields.fields()?)? {
                due.push(QueuedDelivery { id, subject, url, stored_bytes: bytes.parsed()? });
            }
        }
        Ok(due)
    }

    /// The URL of a delivery, from the terms, the event and the sealed address of its subject; `None` when it has ended.
    fn address(&self, subject: Subject, mut fields: Fields) -> Result<Option<WebhookUrl>, StoreError> {
        let (terms, event, copied) = (fields.optional()?, fields.optional_parsed()?, fields.optional()?);
        let own = match (subject, terms) {
            (Subject::Transaction(txn), Some(terms)) => Some((txn, terms)),
            (Subject::Flow { .. }, _) if copied.is_some() => None,
            _ => return Ok(None),
        };
        let own = || own.map_or(Ok(None), |(txn, terms)| Ok(open_terms(&self.vault, txn, terms)?.webhook_url));
        address(&self.vault, subject, event, copied, own).map(Some)
    }
}

/// A delivery from the fields of its hash; `None` when none was queued.
pub(crate) fn record(partition: Partition, answer: Reply) -> Result<Option<DeliveryRecord>, StoreError> {
    let Some(mut fields) = answer.optional_fields()? else { return Ok(None) };
    let Some(entry) = fields.optional()? else { return Ok(None) };
    let id = delivery_id::of_entry(partition, &entry)?;
    let (origin, queued_at, claimed_at) = (fields.text()?, fields.time()?, fields.optional_time()?);
    let Some(word) = fields.value()?.text()? else {
        return Ok(Some(DeliveryRecord { id, origin, queued_at, claimed_at, attempt: None }));
    };
    let outcome = word.parse().map_err(|_| StoreError::unreadable("an attempt"))?;
    let attempt = Attempt { outcome, status: fields.optional_parsed()?, duration_ms: fields.parsed()? };
    Ok(Some(DeliveryRecord { id, origin, queued_at, claimed_at, attempt: Some(attempt) }))
}
