//! The outbox: a delivery is queued with what it reports, claimed before its one attempt, and settled
//! after it.
//!
//! The URL of a transaction's delivery is in the sealed terms of the transaction, which is kept until
//! the delivery has ended; or it was copied, sealed, from the event when the delivery was queued. The
//! delivery of a flow's report has its own sealed URL.

use rusqlite::{Row, params};
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, FlowDelivery, QueuedDelivery, Subject};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;

use super::database::statements::Database;
use super::rows::{optional_time, signed, time, unsigned};
use super::store::EmbeddedStore;
use crate::error::{StoreError, StoreFuture};
use crate::outbox::{Backlog, Outbox, Target, address};
use crate::sealing::open_terms;
use crate::transactions::CompletedRecord;

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
pub(crate) const BACKLOG: &str = "SELECT count(*), (SELECT queued_at FROM deliveries INDEXED BY deliveries_queued WHERE claimed_at IS NULL ORDER BY id LIMIT 1) \
     FROM deliveries INDEXED BY deliveries_queued WHERE claimed_at IS NULL";
const ABANDON: &str = "UPDATE deliveries INDEXED BY deliveries_in_flight SET outcome = 'unknown', duration_ms = 0 \
     WHERE claimed_at IS NOT NULL AND outcome IS NULL";

impl Outbox for EmbeddedStore {
    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>> {
        self.read(move |db| {
            let (after, limit) = (after.map_or(0, |id| signed(id.0)), signed(limit));
            match &origin {
                None => db.all(DUE, params![after, limit], |row| due(db, row)),
                Some(origin) => db.all(DUE_OF_ORIGIN, params![after, limit, origin], |row| due(db, row)),
            }
        })
    }

    fn claim_delivery(&self, id: DeliveryId, _: Subject) -> StoreFuture<bool> {
        self.write(0, move |db| Ok(db.change(CLAIM, params![signed(id.0), db.now().millis()])? > 0))
    }

    fn settle_delivery(&self, id: DeliveryId, _: Subject, attempt: Attempt) -> StoreFuture<()> {
        let Attempt { outcome, status, duration_ms } = attempt;
        self.write(0, move |db| db.change(SETTLE, params![signed(id.0), outcome.as_str(), status, duration_ms]).map(drop))
    }

    fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        self.read(move |db| match subject {
            Subject::Transaction(txn) => db.first(OF_TRANSACTION, [txn.as_bytes()], record),
            Subject::Flow { flow, webhook } => db.first(OF_REPORT, params![flow.as_bytes(), webhook.0], record),
        })
    }

    fn backlog(&self) -> StoreFuture<Backlog> {
        self.read(|db| {
            let found = db.first(BACKLOG, [], |row| Ok(Backlog { waiting: unsigned(row, 0)?, oldest: optional_time(row, 1)? }))?;
            Ok(found.unwrap_or_default())
        })
    }

    fn abandon_attempts(&self) -> StoreFuture<u64> {
        self.write(0, |db| db.change(ABANDON, []))
    }
}

fn due(db: &Database, row: &Row<'_>) -> rusqlite::Result<QueuedDelivery> {
    let subject = match row.get::<_, Option<_>>(5)?.map(FlowId::from_bytes) {
        Some(flow) => Subject::Flow { flow, webhook: DedupDigest(row.get(6)?) },
        None => Subject::Transaction(TxnId::from_bytes(row.get(1)?)),
    };
    let event = row.get::<_, Option<_>>(3)?.map(EventId::from_bytes);
    let terms = row.get_ref(2)?.as_blob_or_null()?;
    let own = || match (subject, terms) {
        (Subject::Transaction(txn), Some(terms)) => open_terms(&db.vault, txn, terms).map(|terms| terms.webhook_url),
        _ => Ok(None),
    };
    let url = address(&db.vault, subject, event, row.get(4)?, own)?;
    let stored_bytes = row.get::<_, Option<u32>>(7)?.unwrap_or_default() as usize;
    Ok(QueuedDelivery { id: DeliveryId(unsigned(row, 0)?), subject, url, stored_bytes })
}

/// Queues the delivery of a transaction that ends now.
pub(crate) fn queue(db: &Database, txn: i64, target: Target, record: &CompletedRecord) -> rusqlite::Result<QueuedDelivery> {
    let Target { origin, address } = target;
    let row = params![txn, origin, record.verified_at.millis(), address];
    let id = db.statement(QUEUE)?.query_row(row, |row| unsigned(row, 0).map(DeliveryId))?;
    Ok(record.queued(&db.vault, id, address)?)
}

pub(crate) fn queue_report(db: &Database, report: i64, tells: &str, target: &Target, now: Timestamp) -> rusqlite::Result<DeliveryId> {
    let row = params![report, target.origin, now.millis(), target.address, tells];
    db.statement(QUEUE_REPORT)?.query_row(row, |row| unsigned(row, 0).map(DeliveryId))
}

pub(crate) fn of_flow(db: &Database, id: FlowId) -> rusqlite::Result<Vec<FlowDelivery>> {
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
    let outcome = word.parse().map_err(|_| StoreError::unreadable("an attempt"))?;
    Ok(Attempt { outcome, status: row.get(5)?, duration_ms: row.get(6)? })
}
