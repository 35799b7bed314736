//! Rows of transactions, and the records that they stand for.

use rusqlite::{Row, params};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, Pending};

use crate::embedded::database::statements::Database;
use crate::embedded::rows::{optional_time, parsed, sealed, time};
use crate::sealing::open_terms;
use crate::transactions::{CompletedRecord, TransactionRecord, refusal};

const FIND: &str = "SELECT t.row, t.event, t.origin, c.client_id, t.app, e.id, t.opened_at, t.expires_at, t.terms, \
     r.verified_at, r.passed, r.refused, r.answer, coalesce(g.outcome, r.outcome) \
     FROM transactions t JOIN clients c ON c.row = t.client LEFT JOIN results r ON r.txn = t.row \
     LEFT JOIN registrations g ON g.row = r.registration LEFT JOIN events e ON e.row = t.event \
     WHERE t.id = ?1 AND (r.until IS NULL OR r.until > ?2)";

/// A transaction with the columns that its completion needs.
pub(crate) struct Found {
    pub(crate) row: i64,
    pub(crate) event: Option<i64>,
    pub(crate) origin: Option<String>,
    pub(crate) record: TransactionRecord,
}

/// The transaction as it is at this time, unless the time of its result has passed.
pub(crate) fn find(db: &Database, id: TxnId, now: Timestamp) -> rusqlite::Result<Option<Found>> {
    db.first(FIND, params![id.as_bytes(), now.millis()], |row| {
        Ok(Found { row: row.get(0)?, event: row.get(1)?, origin: row.get(2)?, record: record(db, row, id, now)? })
    })
}

fn record(db: &Database, row: &Row<'_>, id: TxnId, now: Timestamp) -> rusqlite::Result<TransactionRecord> {
    let opened = Pending {
        id,
        client: parsed(row, 3)?,
        app: parsed(row, 4)?,
        event: row.get::<_, Option<_>>(5)?.map(EventId::from_bytes),
        opened_at: time(row, 6)?,
        expires_at: time(row, 7)?,
        terms: open_terms(&db.vault, id, row.get_ref(8)?.as_blob()?)?,
    };
    let Some(verified_at) = optional_time(row, 9)? else {
        return Ok(if opened.is_expired(now) { TransactionRecord::Expired(opened) } else { TransactionRecord::Pending(opened) });
    };
    Ok(TransactionRecord::Completed(CompletedRecord {
        opened,
        verified_at,
        passed: row.get(10)?,
        refused: row.get::<_, Option<u8>>(11)?.map(refusal).transpose()?,
        answer: AnswerDigest(row.get(12)?),
        outcome: sealed(row, 13)?,
    }))
}
