//! The outbox: a delivery is queued with what it reports, claimed before its one attempt, and settled
//! after it.
//!
//! The URL of a transaction's delivery is in the sealed terms of the transaction, which is kept until
//! the delivery has ended; or it was copied, sealed, from the event when the delivery was queued. The
//! delivery of a flow's report has its own sealed URL.

use rusqlite::{Row, params};
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, DeliveryRecord, FlowDelivery, QueuedDelivery, Subject};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;

use super::database::statements::Database;
use super::errors::unreadable;
use super::rows::{optional_sealed, optional_time, sealed, signed, time, unsigned};
use super::store::EmbeddedStore;
use crate::error::{StoreError, StoreFuture};
use crate::flows::reporting::Target as FlowTarget;
use crate::outbox::Outbox;
use crate::sealing::{open_of_flow, open_terms, open_webhook};
use crate::vault::{Sealed, Vault};

const QUEUE: &str = "INSERT INTO deliveries (txn, origin, queued_at, address) VALUES (?1, ?2, ?3, ?4) RETURNING id";
pub(crate) const DUE: &str = "SELECT d.id, t.id, t.terms, e.id, d.address, p.flow, p.name, \
     coalesce(length(p.payload), length(g.outcome), length(r.outcome)) FROM deliveries d INDEXED BY deliveries_queued \
     LEFT JOIN transactions t ON t.row = d.txn LEFT JOIN events e ON e.row = t.event LEFT JOIN reports p ON p.row = d.report \
     LEFT JOIN results r ON r.txn = t.row LEFT JOIN registrations g ON g.row = r.registration \
     WHERE d.claimed_at IS NULL AND d.id > ?1 ORDER BY d.id LIMIT ?2";
pub(crate) const DUE_OF_ORIGIN: &str = "SELECT d.id, t.id, t.terms, e.id, d.address, p.flow, p.name, \
     coalesce(length(p.payload), length(g.outcome), length(r.outcome)) FROM deliveries d INDEXED BY deliveries_queued_by_origin \
     LEFT JOIN transactions t ON t.row = d.txn LEFT JOIN events e ON e.row = t.event LEFT JOIN reports p ON p.row = d.report \
     LEFT JOIN results r ON r.txn = t.row LEFT JOIN registrations g ON g.row = r.registration \
     WHERE d.claimed_at IS NULL AND d.id > ?1 AND d.origin = ?3 ORDER BY d.id LIMIT ?2";
const QUEUE_REPORT: &str = "INSERT INTO deliveries (report, origin, queued_at, address, tells) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id";
const CLAIM: &str = "UPDATE deliveries SET claimed_at = ?2 WHERE id = ?1 AND claimed_at IS NULL";
const SETTLE: &str = "UPDATE deliveries SET outcome = ?2, status = ?3, duration_ms = ?4 \
     WHERE id = ?1 AND claimed_at IS NOT NULL AND (outcome IS NULL OR outcome = 'unknown')";
const OF_TRANSACTION: &str = "SELECT d.id, d.origin, d.queued_at, d.claimed_at, d.outcome, d.status, d.duration_ms \
     FROM deliveries d JOIN transactions t ON t.row = d.txn WHERE t.id = ?1";
const OF_REPORT: &str = "SELECT d.id, d.origin, d.queued_at, d.claimed_at, d.outcome, d.status, d.duration_ms \
     FROM deliveries d JOIN reports p ON p.row = d.report WHERE p.flow = ?1 AND p.name = ?2";
pub(crate) const OF_FLOW: &str = "SELECT d.id, d.origin, d.queued_at, d.claimed_at, d.outcome, d.status, d.duration_ms, p.name, d.tells \
     FROM reports p JOIN deliveries d ON d.report = p.row WHERE p.flow = ?1 AND (p.until > ?2 OR d.outcome IS NULL)";
const ABANDON: &str = "UPDATE deliveries INDEXED BY deliveries_in_flight SET outcome = 'unknown', duration_ms = 0 \
     WHERE claimed_at IS NOT NULL AND outcome IS NULL";

impl Outbox for EmbeddedStore {
    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>> {
        let due = move |db: &Database<'_>| {
            let (after, limit) = (after.map_or(0, |id| signed(id.0)), signed(limit));
            match &origin {
                None => db.all(DUE, params![after, limit], Addressed::read),
                Some(origin) => db.all(DUE_OF_ORIGIN, params![after, limit, origin], Addressed::read),
            }
        };
        self.read(due, |due, vault| due.into_iter().map(|delivery| delivery.queued(vault)).collect())
    }

    fn claim_delivery(&self, id: DeliveryId, _: Subject) -> StoreFuture<bool> {
        self.write(0, move |db| db.change(CLAIM, params![signed(id.0), db.now().millis()]), |rows, _| Ok(rows > 0))
    }

    fn settle_delivery(&self, id: DeliveryId, _: Subject, attempt: Attempt) -> StoreFuture<()> {
        let Attempt { outcome, status, duration_ms } = attempt;
        self.write(0, move |db| db.change(SETTLE, params![signed(id.0), outcome.as_str(), status, duration_ms]), |_, _| Ok(()))
    }

    fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        let load = move |db: &Database<'_>| match subject {
            Subject::Transaction(txn) => db.first(OF_TRANSACTION, [txn.as_bytes()], record),
            Subject::Flow { flow, webhook } => db.first(OF_REPORT, params![flow.as_bytes(), webhook.0], record),
        };
        self.read(load, |found, _| Ok(found))
    }

    fn abandon_attempts(&self) -> StoreFuture<u64> {
        self.write(0, |db| db.change(ABANDON, []), |abandoned, _| Ok(abandoned))
    }
}

/// The URL of an event when a delivery was queued, sealed for the event.
pub(crate) struct Address {
    event: EventId,
    url: Sealed,
}

impl Address {
    /// The sealed URL in one column, if there is one, and the id of its event in another.
    pub(crate) fn read(row: &Row<'_>, event: usize, url: usize) -> rusqlite::Result<Option<Self>> {
        let Some(url) = optional_sealed(row, url, "the address of an event cannot be read")? else { return Ok(None) };
        Ok(Some(Self { event: EventId::from_bytes(row.get(event)?), url }))
    }
}

/// Where a delivery goes; without an address, to the URL in the terms of its transaction.
pub(crate) struct Target {
    pub(crate) origin: String,
    pub(crate) address: Option<Address>,
}

/// A delivery that was queued just now.
pub(crate) struct Queued {
    id: DeliveryId,
    address: Option<Address>,
    stored_bytes: usize,
}

impl Queued {
    /// The delivery of a transaction whose own URL is known.
    pub(crate) fn unsealed(self, vault: &Vault, txn: TxnId, own: Option<&WebhookUrl>) -> Result<QueuedDelivery, StoreError> {
        let url = match self.address {
            Some(Address { event, url }) => open_webhook(vault, event, &url)?,
            None => own.cloned().ok_or_else(|| StoreError::Corrupt("a delivery has no address".into()))?,
        };
        Ok(QueuedDelivery { id: self.id, subject: txn.into(), url, stored_bytes: self.stored_bytes })
    }
}

/// A delivery whose address is still sealed.
enum Addressed {
    Transaction { queued: Queued, txn: TxnId, terms: Sealed },
    Report { id: DeliveryId, flow: FlowId, webhook: DedupDigest, address: Vec<u8>, stored_bytes: usize },
}

impl Addressed {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let id = DeliveryId(unsigned(row, 0)?);
        let stored_bytes = row.get::<_, Option<u32>>(7)?.unwrap_or_default() as usize;
        if let Some(flow) = row.get::<_, Option<_>>(5)?.map(FlowId::from_bytes) {
            return Ok(Self::Report { id, flow, webhook: DedupDigest(row.get(6)?), address: row.get(4)?, stored_bytes });
        }
        let txn = TxnId::from_bytes(row.get(1)?);
        let terms = sealed(row, 2, "the terms of a delivery cannot be read")?;
        Ok(Self::Transaction { queued: Queued { id, address: Address::read(row, 3, 4)?, stored_bytes }, txn, terms })
    }

    fn queued(self, vault: &Vault) -> Result<QueuedDelivery, StoreError> {
        match self {
            Self::Transaction { queued, txn, terms } => {
                let own = if queued.address.is_none() { open_terms(vault, txn, &terms)?.webhook_url } else { None };
                queued.unsealed(vault, txn, own.as_ref())
            }
            Self::Report { id, flow, webhook, address, stored_bytes } => {
                let url = open_of_flow(vault, flow, &address)?;
                Ok(QueuedDelivery { id, subject: Subject::Flow { flow, webhook }, url, stored_bytes })
            }
        }
    }
}

/// Queues the delivery of an outcome of so many bytes.
pub(crate) fn queue(db: &Database<'_>, txn: i64, target: Target, stored_bytes: usize, now: Timestamp) -> rusqlite::Result<Queued> {
    let Target { origin, address } = target;
    let bytes = address.as_ref().map(|address| address.url.to_bytes());
    let id = db.statement(QUEUE)?.query_row(params![txn, origin, now.millis(), bytes], |row| unsigned(row, 0).map(DeliveryId))?;
    Ok(Queued { id, address, stored_bytes })
}

pub(crate) fn queue_report(
    db: &Database<'_>,
    report: i64,
    tells: &str,
    target: &FlowTarget,
    now: Timestamp,
) -> rusqlite::Result<DeliveryId> {
    let row = params![report, target.origin, now.millis(), target.address, tells];
    db.statement(QUEUE_REPORT)?.query_row(row, |row| unsigned(row, 0).map(DeliveryId))
}

pub(crate) fn of_flow(db: &Database<'_>, id: FlowId) -> rusqlite::Result<Vec<FlowDelivery>> {
    db.all(OF_FLOW, params![id.as_bytes(), db.now().millis()], |row| {
        let tells = row.get::<_, Option<String>>(8)?.unwrap_or_default();
        Ok(FlowDelivery { webhook: DedupDigest(row.get(7)?), tells, delivery: record(row)? })
    })
}

fn record(row: &Row<'_>) -> rusqlite::Result<DeliveryRecord> {
    let outcome: Option<String> = row.get(4)?;
    Ok(DeliveryRecord {
        id: DeliveryId(unsigned(row, 0)?),
        origin: row.get(1)?,
        queued_at: time(row, 2)?,
        claimed_at: optional_time(row, 3)?,
        attempt: outcome.map(|word| attempt(row, &word)).transpose()?,
    })
}

fn attempt(row: &Row<'_>, word: &str) -> rusqlite::Result<Attempt> {
    let outcome = DeliveryOutcome::parse(word);
    let outcome = outcome.ok_or_else(|| unreadable("an attempt has no known outcome"))?;
    Ok(Attempt { outcome, status: row.get(5)?, duration_ms: row.get(6)? })
}
