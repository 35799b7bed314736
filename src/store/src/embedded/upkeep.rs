//! Removing records whose time has passed, a bounded number at a time, and the health check.

use std::collections::BTreeSet;
use std::future::ready;

use rusqlite::params;
use sakshi_domain::limits::REFUSAL_TTL;
use sakshi_domain::time::Timestamp;

use super::database::statements::Database;
use super::guests;
use super::rows::{signed, time};
use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::upkeep::{Retention, Swept, Upkeep};

/// A transaction whose delivery has not ended is kept, whatever its age.
const COMPLETED: &str = "SELECT r.txn FROM results r WHERE r.until <= ?1 AND NOT EXISTS \
     (SELECT 1 FROM deliveries d WHERE d.txn = r.txn AND d.outcome IS NULL) ORDER BY r.until LIMIT ?2";
const EXPIRED: &str = "SELECT row, event FROM transactions INDEXED BY transactions_waiting WHERE completed = 0 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
pub(crate) const REMOVE: [&str; 3] =
    ["DELETE FROM deliveries WHERE txn = ?1", "DELETE FROM results WHERE txn = ?1", "DELETE FROM transactions WHERE row = ?1"];
const IDEMPOTENCY: &str = "DELETE FROM idempotency WHERE row IN (SELECT row FROM idempotency WHERE until <= ?1 ORDER BY until LIMIT ?2)";
const CREDENTIALS: &str =
    "DELETE FROM credentials WHERE digest IN (SELECT digest FROM credentials WHERE until <= ?1 ORDER BY until LIMIT ?2)";
pub(crate) const SESSIONS: &str =
    "DELETE FROM sessions WHERE digest IN (SELECT digest FROM sessions WHERE idle_until <= ?1 ORDER BY idle_until LIMIT ?2)";
pub(crate) const REFUSALS: &str = "DELETE FROM refusals WHERE row IN (SELECT row FROM refusals WHERE at <= ?1 ORDER BY at LIMIT ?2)";
pub(crate) const NAMES: &str =
    "DELETE FROM webhook_names WHERE name IN (SELECT name FROM webhook_names WHERE until <= ?1 ORDER BY until LIMIT ?2)";
/// An event whose time has passed becomes invisible first; then its registrations are removed, and
/// then the event itself.
pub(crate) const CLOSE: &str = "UPDATE events SET closing = 1 WHERE row IN (SELECT e.row FROM events e INDEXED BY events_ended \
     WHERE e.closing = 0 AND e.expires_at <= ?1 AND NOT EXISTS (SELECT 1 FROM transactions t WHERE t.event = e.row) \
     ORDER BY e.expires_at LIMIT ?2)";
/// The same for events that are kept for less time.
pub(crate) const CLOSE_EARLY: &str = "UPDATE events SET closing = 1 WHERE row IN (SELECT e.row FROM events e INDEXED BY events_kept \
     WHERE e.closing = 0 AND e.keep_ms IS NOT NULL AND e.expires_at + e.keep_ms <= ?1 \
     AND NOT EXISTS (SELECT 1 FROM transactions t WHERE t.event = e.row) ORDER BY e.expires_at + e.keep_ms LIMIT ?2)";
pub(crate) const REGISTRATIONS: &str = "DELETE FROM registrations WHERE row IN (SELECT g.row FROM events e INDEXED BY events_closing \
     JOIN registrations g ON g.event = e.row WHERE e.closing = 1 LIMIT ?1)";
pub(crate) const EVENTS: &str = "DELETE FROM events WHERE row IN (SELECT e.row FROM events e INDEXED BY events_closing \
     WHERE e.closing = 1 AND NOT EXISTS (SELECT 1 FROM registrations g WHERE g.event = e.row) LIMIT ?1)";
/// A report whose delivery has not ended is kept, whatever its age, and outlives its flow.
pub(crate) const FETCHES: &str =
    "DELETE FROM fetches WHERE flow IN (SELECT row FROM flows INDEXED BY flows_until WHERE until <= ?1 ORDER BY until LIMIT ?2)";
pub(crate) const FLOWS: &str =
    "DELETE FROM flows WHERE row IN (SELECT row FROM flows INDEXED BY flows_until WHERE until <= ?1 ORDER BY until LIMIT ?2)";
pub(crate) const REPORTS: &str = "SELECT p.row FROM reports p INDEXED BY reports_until WHERE p.until <= ?1 AND NOT EXISTS \
     (SELECT 1 FROM deliveries d WHERE d.report = p.row AND d.outcome IS NULL) ORDER BY p.until LIMIT ?2";
pub(crate) const REMOVE_REPORT: [&str; 2] = ["DELETE FROM deliveries WHERE report = ?1", "DELETE FROM reports WHERE row = ?1"];
const TAKE_ROOM: &str = "UPDATE probe SET pad = zeroblob(16384) WHERE row = 1";
const GIVE_ROOM_BACK: &str = "UPDATE probe SET pad = NULL WHERE row = 1";
const REMEMBER_SWEEP: &str = "UPDATE probe SET at = ?1 WHERE row = 1";
const LAST_SWEEP: &str = "SELECT at FROM probe WHERE row = 1";

impl Upkeep for EmbeddedStore {
    fn sweep(&self, now: Timestamp, retention: Retention, limit: usize) -> StoreFuture<Swept> {
        // The clock may have jumped since the caller looked at it.
        self.write(0, move |db| sweep(db, now.min(db.now()), retention, limit))
    }

    fn last_sweep(&self) -> StoreFuture<Option<Timestamp>> {
        self.read(|db| db.first(LAST_SWEEP, [], |row| time(row, 0)))
    }

    /// Writes as much as an operation would and takes it back, so that a full store says so.
    fn check(&self) -> StoreFuture<()> {
        self.write(0, |db| {
            db.change(TAKE_ROOM, [])?;
            db.change(GIVE_ROOM_BACK, []).map(drop)
        })
    }

    /// Nothing is ever missing: the process that has the file open is the only one.
    fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        Box::pin(ready(Ok(None)))
    }

    fn leave(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }
}

fn sweep(db: &Database, now: Timestamp, retention: Retention, limit: usize) -> rusqlite::Result<Swept> {
    db.change(REMEMBER_SWEEP, [now.millis()])?;
    let limit = signed(limit);
    let mut gone: Vec<i64> = db.all(COMPLETED, params![now.millis(), limit], |row| row.get(0))?;
    let left = limit - signed(gone.len());
    gone.extend(expired(db, now, retention, left)?);
    for row in &gone {
        for sql in REMOVE {
            db.change(sql, [row])?;
        }
    }
    Ok(Swept {
        transactions: u64::try_from(gone.len()).unwrap_or(u64::MAX),
        idempotency: db.change(IDEMPOTENCY, params![now.millis(), limit])?,
        credentials: db.change(CREDENTIALS, params![now.millis(), limit])?,
        events: events(db, now, retention, limit)?,
        flows: flows(db, now, limit)?,
        sessions: db.change(SESSIONS, params![now.millis(), limit])?,
        refusals: db.change(REFUSALS, params![(now - REFUSAL_TTL).millis(), limit])?,
    })
}

/// Transactions that nobody answered. Those of events are counted as abandoned before they are removed.
fn expired(db: &Database, now: Timestamp, retention: Retention, limit: i64) -> rusqlite::Result<Vec<i64>> {
    let until = (now - retention.expired).millis();
    let found: Vec<(i64, Option<i64>)> = db.all(EXPIRED, params![until, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for event in found.iter().filter_map(|(_, event)| *event).collect::<BTreeSet<_>>() {
        guests::settle(db, event, now)?;
    }
    Ok(found.into_iter().map(|(row, _)| row).collect())
}

fn events(db: &Database, now: Timestamp, retention: Retention, limit: i64) -> rusqlite::Result<u64> {
    db.change(CLOSE, params![(now - retention.events).millis(), limit])?;
    db.change(CLOSE_EARLY, params![now.millis(), limit])?;
    let registrations = db.change(REGISTRATIONS, [limit])?;
    let left = limit - signed(registrations);
    Ok(registrations + db.change(EVENTS, [left])?)
}

fn flows(db: &Database, now: Timestamp, limit: i64) -> rusqlite::Result<u64> {
    let reports: Vec<i64> = db.all(REPORTS, params![now.millis(), limit], |row| row.get(0))?;
    for report in &reports {
        for sql in REMOVE_REPORT {
            db.change(sql, [report])?;
        }
    }
    let left = limit - signed(reports.len());
    db.change(FETCHES, params![now.millis(), left])?;
    db.change(NAMES, params![now.millis(), limit])?;
    Ok(db.change(FLOWS, params![now.millis(), left])? + u64::try_from(reports.len()).unwrap_or(u64::MAX))
}
