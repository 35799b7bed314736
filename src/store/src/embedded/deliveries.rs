//! The outbox: queued with what a delivery reports, claimed before its one attempt, settled after it.
//!
//! Where the delivery of a transaction goes is in the sealed terms of the transaction, which stays as
//! long as the delivery has not ended; or in the box that it copied from an event as it was queued.
//! That of a flow's report has a box of its own.

use rusqlite::{Row, params};
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, DeliveryRecord, FlowDelivery, QueuedDelivery, Subject};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;

use super::fault::unreadable;
use super::job::Session;
use super::ledger::{signed, unsigned};
use crate::error::StoreError;
use crate::flows::reporting::Target as FlowTarget;
use crate::sealing::{open_of_flow, open_terms, open_webhook};
use crate::vault::{Sealed, Vault};

const QUEUE: &str = "INSERT INTO deliveries (txn, origin, queued_at, address) VALUES (?1, ?2, ?3, ?4) RETURNING id";
pub(super) const DUE: &str = "SELECT d.id, t.id, t.terms, e.id, d.address, p.flow, p.name, \
     coalesce(length(p.payload), length(g.outcome), length(r.outcome)) FROM deliveries d INDEXED BY deliveries_queued \
     LEFT JOIN transactions t ON t.row = d.txn LEFT JOIN events e ON e.row = t.event LEFT JOIN reports p ON p.row = d.report \
     LEFT JOIN results r ON r.txn = t.row LEFT JOIN registrations g ON g.row = r.registration \
     WHERE d.claimed_at IS NULL AND d.id > ?1 ORDER BY d.id LIMIT ?2";
pub(super) const DUE_OF_ORIGIN: &str = "SELECT d.id, t.id, t.terms, e.id, d.address, p.flow, p.name, \
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
pub(super) const OF_FLOW: &str = "SELECT d.id, d.origin, d.queued_at, d.claimed_at, d.outcome, d.status, d.duration_ms, p.name, d.tells \
     FROM reports p JOIN deliveries d ON d.report = p.row WHERE p.flow = ?1 AND (p.until > ?2 OR d.outcome IS NULL)";
const ABANDON: &str = "UPDATE deliveries INDEXED BY deliveries_in_flight SET outcome = 'unknown', duration_ms = 0 \
     WHERE claimed_at IS NOT NULL AND outcome IS NULL";

/// The URL of an event at some moment, sealed for the event.
pub(super) struct Address {
    event: EventId,
    url: Sealed,
}

impl Address {
    /// The box in the second column, if there is one, of the event whose id is in the first.
    pub(super) fn read(row: &Row<'_>, event: usize, url: usize) -> rusqlite::Result<Option<Self>> {
        let read = |bytes: &[u8]| {
            let url = Sealed::from_bytes(bytes).ok_or_else(|| unreadable("the address of an event cannot be read"))?;
            Ok(Self { event: EventId::from_bytes(row.get(event)?), url })
        };
        row.get_ref(url)?.as_blob_or_null()?.map(read).transpose()
    }
}

/// Where a delivery goes; without an address, to the URL in the terms of its transaction.
pub(super) struct Target {
    pub(super) origin: String,
    pub(super) address: Option<Address>,
}

/// A delivery that was queued just now.
pub(super) struct Queued {
    id: DeliveryId,
    address: Option<Address>,
    stored_bytes: usize,
}

impl Queued {
    /// The delivery, of a transaction whose own URL is known.
    pub(super) fn unsealed(self, vault: &Vault, txn: TxnId, own: Option<&WebhookUrl>) -> Result<QueuedDelivery, StoreError> {
        let url = match self.address {
            Some(Address { event, url }) => open_webhook(vault, event, &url)?,
            None => own.cloned().ok_or_else(|| StoreError::Corrupt("a delivery has no address".into()))?,
        };
        Ok(QueuedDelivery { id: self.id, subject: txn.into(), url, stored_bytes: self.stored_bytes })
    }
}

/// A delivery whose address is still sealed.
pub(super) enum Addressed {
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
        let terms = Sealed::from_bytes(row.get_ref(2)?.as_blob()?).ok_or_else(|| unreadable("the terms of a delivery cannot be read"))?;
        Ok(Self::Transaction { queued: Queued { id, address: Address::read(row, 3, 4)?, stored_bytes }, txn, terms })
    }

    pub(super) fn queued(self, vault: &Vault) -> Result<QueuedDelivery, StoreError> {
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

/// Queues the delivery of an outcome that takes so many bytes.
pub(super) fn queue(session: &Session<'_>, txn: i64, target: Target, stored_bytes: usize, now: Timestamp) -> rusqlite::Result<Queued> {
    let Target { origin, address } = target;
    let bytes = address.as_ref().map(|address| address.url.to_bytes());
    let id = session.statement(QUEUE)?.query_row(params![txn, origin, now.millis(), bytes], |row| unsigned(row, 0).map(DeliveryId))?;
    Ok(Queued { id, address, stored_bytes })
}

pub(super) fn queue_report(
    session: &Session<'_>,
    report: i64,
    tells: &str,
    target: &FlowTarget,
    now: Timestamp,
) -> rusqlite::Result<DeliveryId> {
    let row = params![report, target.origin, now.millis(), target.address, tells];
    session.statement(QUEUE_REPORT)?.query_row(row, |row| unsigned(row, 0).map(DeliveryId))
}

pub(super) fn due(
    session: &Session<'_>,
    after: Option<DeliveryId>,
    origin: Option<&str>,
    limit: usize,
) -> rusqlite::Result<Vec<Addressed>> {
    let (after, limit) = (after.map_or(0, |id| signed(id.0)), i64::try_from(limit).unwrap_or(i64::MAX));
    match origin {
        None => session.all(DUE, params![after, limit], Addressed::read),
        Some(origin) => session.all(DUE_OF_ORIGIN, params![after, limit, origin], Addressed::read),
    }
}

pub(super) fn claim(session: &Session<'_>, id: DeliveryId) -> rusqlite::Result<bool> {
    session.change(CLAIM, params![signed(id.0), session.now().millis()]).map(|changed| changed > 0)
}

pub(super) fn settle(session: &Session<'_>, id: DeliveryId, attempt: &Attempt) -> rusqlite::Result<()> {
    let Attempt { outcome, status, duration_ms } = attempt;
    session.change(SETTLE, params![signed(id.0), outcome.as_str(), status, duration_ms]).map(drop)
}

pub(super) fn of_subject(session: &Session<'_>, subject: Subject) -> rusqlite::Result<Option<DeliveryRecord>> {
    match subject {
        Subject::Transaction(txn) => session.first(OF_TRANSACTION, [txn.as_bytes()], record),
        Subject::Flow { flow, webhook } => session.first(OF_REPORT, params![flow.as_bytes(), webhook.0], record),
    }
}

pub(super) fn of_flow(session: &Session<'_>, id: FlowId) -> rusqlite::Result<Vec<FlowDelivery>> {
    session.all(OF_FLOW, params![id.as_bytes(), session.now().millis()], |row| {
        let tells = row.get::<_, Option<String>>(8)?.unwrap_or_default();
        Ok(FlowDelivery { webhook: DedupDigest(row.get(7)?), tells, delivery: record(row)? })
    })
}

fn record(row: &Row<'_>) -> rusqlite::Result<DeliveryRecord> {
    let outcome: Option<String> = row.get(4)?;
    Ok(DeliveryRecord {
        id: DeliveryId(unsigned(row, 0)?),
        origin: row.get(1)?,
        queued_at: Timestamp::from_millis(row.get(2)?),
        claimed_at: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
        attempt: outcome.map(|word| attempt(row, &word)).transpose()?,
    })
}

fn attempt(row: &Row<'_>, word: &str) -> rusqlite::Result<Attempt> {
    let outcome = DeliveryOutcome::parse(word);
    let outcome = outcome.ok_or_else(|| unreadable("an attempt has no known outcome"))?;
    Ok(Attempt { outcome, status: row.get(5)?, duration_ms: row.get(6)? })
}

pub(super) fn abandon(session: &Session<'_>) -> rusqlite::Result<u64> {
    session.change(ABANDON, [])
}
