//! Removing what has had its time, a bounded number at a time, and asking whether a write would
//! succeed.

use std::time::Duration;

use rusqlite::params;

use super::job::Session;
use crate::transition::Swept;

/// A transaction whose delivery has not ended is kept, whatever its age.
const COMPLETED: &str = "SELECT r.txn FROM results r WHERE r.until <= ?1 AND NOT EXISTS \
     (SELECT 1 FROM deliveries d WHERE d.txn = r.txn AND d.outcome IS NULL) ORDER BY r.until LIMIT ?2";
const EXPIRED: &str = "SELECT row FROM transactions WHERE completed = 0 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
const REMOVE: [&str; 3] =
    ["DELETE FROM deliveries WHERE txn = ?1", "DELETE FROM results WHERE txn = ?1", "DELETE FROM transactions WHERE row = ?1"];
const IDEMPOTENCY: &str = "DELETE FROM idempotency WHERE row IN (SELECT row FROM idempotency WHERE until <= ?1 ORDER BY until LIMIT ?2)";
const CREDENTIALS: &str =
    "DELETE FROM credentials WHERE digest IN (SELECT digest FROM credentials WHERE until <= ?1 ORDER BY until LIMIT ?2)";
const TAKE_ROOM: &str = "UPDATE probe SET pad = zeroblob(16384), at = ?1 WHERE row = 1";
const GIVE_ROOM_BACK: &str = "UPDATE probe SET pad = NULL WHERE row = 1";

pub(super) fn sweep(session: &Session<'_>, grace: Duration, limit: usize) -> rusqlite::Result<Swept> {
    let now = session.now();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut gone: Vec<i64> = session.all(COMPLETED, params![now.millis(), limit], |row| row.get(0))?;
    let left = limit - i64::try_from(gone.len()).unwrap_or(i64::MAX);
    gone.extend(session.all(EXPIRED, params![(now - grace).millis(), left], |row| row.get::<_, i64>(0))?);
    for row in &gone {
        for sql in REMOVE {
            session.change(sql, [row])?;
        }
    }
    Ok(Swept {
        transactions: u64::try_from(gone.len()).unwrap_or(u64::MAX),
        idempotency: session.change(IDEMPOTENCY, params![now.millis(), limit])?,
        credentials: session.change(CREDENTIALS, params![now.millis(), limit])?,
    })
}

/// Writes as much as a transition would and takes it back, so that a full store says so.
pub(super) fn check(session: &Session<'_>) -> rusqlite::Result<()> {
    session.change(TAKE_ROOM, [session.now().millis()])?;
    session.change(GIVE_ROOM_BACK, []).map(drop)
}
