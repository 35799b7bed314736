//! The outbox: queued with the end of its transaction, claimed before its one attempt, settled
//! after it.
//!
//! Where a delivery goes is in the sealed terms of its transaction, which stays as long as the
//! delivery has not ended.

use rusqlite::{Row, params};
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, DeliveryRecord, QueuedDelivery};
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::web_address::WebhookUrl;

use super::fault::unreadable;
use super::job::Session;
use super::ledger::{signed, unsigned};
use super::terms::open_terms;
use crate::error::StoreError;
use crate::vault::{Sealed, Vault};

const OUTCOMES: [DeliveryOutcome; 8] = [
    DeliveryOutcome::Delivered,
    DeliveryOutcome::Rejected,
    DeliveryOutcome::Blocked,
    DeliveryOutcome::Unresolved,
    DeliveryOutcome::Unreachable,
    DeliveryOutcome::Broken,
    DeliveryOutcome::TimedOut,
    DeliveryOutcome::Unknown,
];

const QUEUE: &str = "INSERT INTO deliveries (txn, origin, queued_at) VALUES (?1, ?2, ?3) RETURNING id";
const DUE: &str = "SELECT d.id, t.id, t.terms FROM deliveries d INDEXED BY deliveries_queued JOIN transactions t ON t.row = d.txn \
     WHERE d.claimed_at IS NULL AND d.id > ?1 ORDER BY d.id LIMIT ?2";
const DUE_OF_ORIGIN: &str = "SELECT d.id, t.id, t.terms FROM deliveries d INDEXED BY deliveries_queued_by_origin \
     JOIN transactions t ON t.row = d.txn WHERE d.claimed_at IS NULL AND d.id > ?1 AND d.origin = ?3 ORDER BY d.id LIMIT ?2";
const CLAIM: &str = "UPDATE deliveries SET claimed_at = ?2 WHERE id = ?1 AND claimed_at IS NULL";
const SETTLE: &str = "UPDATE deliveries SET outcome = ?2, status = ?3, duration_ms = ?4 \
     WHERE id = ?1 AND claimed_at IS NOT NULL AND outcome IS NULL";
const OF_TRANSACTION: &str = "SELECT d.id, d.origin, d.queued_at, d.claimed_at, d.outcome, d.status, d.duration_ms \
     FROM deliveries d JOIN transactions t ON t.row = d.txn WHERE t.id = ?1";
const ABANDON: &str = "UPDATE deliveries INDEXED BY deliveries_in_flight SET outcome = 'unknown', duration_ms = 0 \
     WHERE claimed_at IS NOT NULL AND outcome IS NULL";

/// A delivery whose address is still sealed.
pub(super) struct Addressed {
    id: DeliveryId,
    txn: TxnId,
    terms: Sealed,
}

impl Addressed {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let txn = TxnId::from_uuid(uuid::Uuid::from_bytes(row.get(1)?));
        let terms = Sealed::from_bytes(row.get_ref(2)?.as_blob()?).ok_or_else(|| unreadable("the terms of a delivery cannot be read"))?;
        Ok(Self { id: DeliveryId(unsigned(row, 0)?), txn, terms })
    }

    fn url(&self, vault: &Vault) -> Result<WebhookUrl, StoreError> {
        let url = open_terms(vault, self.txn, &self.terms)?.webhook_url;
        url.ok_or_else(|| StoreError::Corrupt("a delivery has no address".into()))
    }

    pub(super) fn queued(self, vault: &Vault) -> Result<QueuedDelivery, StoreError> {
        Ok(QueuedDelivery { id: self.id, txn: self.txn, url: self.url(vault)? })
    }
}

pub(super) fn queue(session: &Session<'_>, txn: i64, origin: &str, now: Timestamp) -> rusqlite::Result<DeliveryId> {
    session.statement(QUEUE)?.query_row(params![txn, origin, now.millis()], |row| unsigned(row, 0).map(DeliveryId))
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

pub(super) fn of_transaction(session: &Session<'_>, txn: TxnId) -> rusqlite::Result<Option<DeliveryRecord>> {
    session.first(OF_TRANSACTION, [txn.as_bytes()], |row| {
        let outcome: Option<String> = row.get(4)?;
        Ok(DeliveryRecord {
            id: DeliveryId(unsigned(row, 0)?),
            origin: row.get(1)?,
            queued_at: Timestamp::from_millis(row.get(2)?),
            claimed_at: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
            attempt: outcome.map(|word| attempt(row, &word)).transpose()?,
        })
    })
}

fn attempt(row: &Row<'_>, word: &str) -> rusqlite::Result<Attempt> {
    let outcome = OUTCOMES.into_iter().find(|outcome| outcome.as_str() == word);
    let outcome = outcome.ok_or_else(|| unreadable("an attempt has no known outcome"))?;
    Ok(Attempt { outcome, status: row.get(5)?, duration_ms: row.get(6)? })
}

pub(super) fn abandon(session: &Session<'_>) -> rusqlite::Result<u64> {
    session.change(ABANDON, [])
}
