//! Ending the window of a pending transaction before its time.

use rusqlite::params;
use sakshi_domain::ids::TxnId;

use super::rows::{Found, find};
use crate::embedded::database::statements::Database;
use crate::embedded::guests;
use crate::transactions::{ExpireOutcome, TransactionRecord};

const END_WINDOW: &str = "UPDATE transactions SET expires_at = ?2 WHERE row = ?1";

pub(crate) fn expire(db: &Database, id: TxnId) -> rusqlite::Result<ExpireOutcome> {
    let now = db.now();
    let Some(Found { row, event, record, .. }) = find(db, id, now)? else { return Ok(ExpireOutcome::NotFound) };
    let mut pending = match record {
        TransactionRecord::Pending(pending) => pending,
        TransactionRecord::Expired(pending) => return Ok(ExpireOutcome::Expired(pending)),
        TransactionRecord::Completed(record) => return Ok(ExpireOutcome::AlreadyCompleted(record)),
    };
    db.change(END_WINDOW, params![row, now.millis()])?;
    if let Some(event) = event {
        guests::ended(db, event, now)?;
    }
    pending.expires_at = now;
    Ok(ExpireOutcome::Expired(pending))
}
