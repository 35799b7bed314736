//! Removing what has had its time, a bounded number at a time, and asking whether a write would
//! succeed.

use std::collections::BTreeSet;

use rusqlite::params;
use sakshi_domain::time::Timestamp;

use super::guests;
use super::job::Session;
use crate::transition::{Retention, Swept};

/// A transaction whose delivery has not ended is kept, whatever its age.
const COMPLETED: &str = "SELECT r.txn FROM results r WHERE r.until <= ?1 AND NOT EXISTS \
     (SELECT 1 FROM deliveries d WHERE d.txn = r.txn AND d.outcome IS NULL) ORDER BY r.until LIMIT ?2";
const EXPIRED: &str = "SELECT row, event FROM transactions INDEXED BY transactions_waiting WHERE completed = 0 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
const REMOVE: [&str; 3] =
    ["DELETE FROM deliveries WHERE txn = ?1", "DELETE FROM results WHERE txn = ?1", "DELETE FROM transactions WHERE row = ?1"];
const IDEMPOTENCY: &str = "DELETE FROM idempotency WHERE row IN (SELECT row FROM idempotency WHERE until <= ?1 ORDER BY until LIMIT ?2)";
const CREDENTIALS: &str =
    "DELETE FROM credentials WHERE digest IN (SELECT digest FROM credentials WHERE until <= ?1 ORDER BY until LIMIT ?2)";
pub(super) const SESSIONS: &str =
    "DELETE FROM sessions WHERE digest IN (SELECT digest FROM sessions WHERE idle_until <= ?1 ORDER BY idle_until LIMIT ?2)";
pub(super) const NAMES: &str =
    "DELETE FROM webhook_names WHERE name IN (SELECT name FROM webhook_names WHERE until <= ?1 ORDER BY until LIMIT ?2)";
/// An event whose time has passed is seen by nobody any more; then its registrations go, and then
/// it goes itself.
pub(super) const CLOSE: &str = "UPDATE events SET closing = 1 WHERE row IN (SELECT e.row FROM events e INDEXED BY events_ended \
     WHERE e.closing = 0 AND e.expires_at <= ?1 AND NOT EXISTS (SELECT 1 FROM transactions t WHERE t.event = e.row) \
     ORDER BY e.expires_at LIMIT ?2)";
pub(super) const REGISTRATIONS: &str = "DELETE FROM registrations WHERE row IN (SELECT g.row FROM events e INDEXED BY events_closing \
     JOIN registrations g ON g.event = e.row WHERE e.closing = 1 LIMIT ?1)";
pub(super) const EVENTS: &str = "DELETE FROM events WHERE row IN (SELECT e.row FROM events e INDEXED BY events_closing \
     WHERE e.closing = 1 AND NOT EXISTS (SELECT 1 FROM registrations g WHERE g.event = e.row) LIMIT ?1)";
/// A report whose delivery has not ended is kept, whatever its age, and outlives its flow.
pub(super) const FETCHES: &str =
    "DELETE FROM fetches WHERE flow IN (SELECT row FROM flows INDEXED BY flows_until WHERE until <= ?1 ORDER BY until LIMIT ?2)";
pub(super) const FLOWS: &str =
    "DELETE FROM flows WHERE row IN (SELECT row FROM flows INDEXED BY flows_until WHERE until <= ?1 ORDER BY until LIMIT ?2)";
pub(super) const REPORTS: &str = "SELECT p.row FROM reports p INDEXED BY reports_until WHERE p.until <= ?1 AND NOT EXISTS \
     (SELECT 1 FROM deliveries d WHERE d.report = p.row AND d.outcome IS NULL) ORDER BY p.until LIMIT ?2";
const REMOVE_REPORT: [&str; 2] = ["DELETE FROM deliveries WHERE report = ?1", "DELETE FROM reports WHERE row = ?1"];
const TAKE_ROOM: &str = "UPDATE probe SET pad = zeroblob(16384), at = ?1 WHERE row = 1";
const GIVE_ROOM_BACK: &str = "UPDATE probe SET pad = NULL WHERE row = 1";

pub(super) fn sweep(session: &Session<'_>, retention: Retention, limit: usize) -> rusqlite::Result<Swept> {
    let now = session.now();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut gone: Vec<i64> = session.all(COMPLETED, params![now.millis(), limit], |row| row.get(0))?;
    let left = limit - i64::try_from(gone.len()).unwrap_or(i64::MAX);
    gone.extend(expired(session, now, retention, left)?);
    for row in &gone {
        for sql in REMOVE {
            session.change(sql, [row])?;
        }
    }
    Ok(Swept {
        transactions: u64::try_from(gone.len()).unwrap_or(u64::MAX),
        idempotency: session.change(IDEMPOTENCY, params![now.millis(), limit])?,
        credentials: session.change(CREDENTIALS, params![now.millis(), limit])?,
        events: events(session, now, retention, limit)?,
        flows: flows(session, now, limit)?,
        sessions: session.change(SESSIONS, params![now.millis(), limit])?,
    })
}

/// Transactions that nobody answered; those of events are counted as abandoned before they go.
fn expired(session: &Session<'_>, now: Timestamp, retention: Retention, limit: i64) -> rusqlite::Result<Vec<i64>> {
    let until = (now - retention.expired).millis();
    let found: Vec<(i64, Option<i64>)> = session.all(EXPIRED, params![until, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for event in found.iter().filter_map(|(_, event)| *event).collect::<BTreeSet<_>>() {
        guests::settle(session, event, now)?;
    }
    Ok(found.into_iter().map(|(row, _)| row).collect())
}

fn events(session: &Session<'_>, now: Timestamp, retention: Retention, limit: i64) -> rusqlite::Result<u64> {
    session.change(CLOSE, params![(now - retention.events).millis(), limit])?;
    let registrations = session.change(REGISTRATIONS, [limit])?;
    let left = limit - i64::try_from(registrations).unwrap_or(i64::MAX);
    Ok(registrations + session.change(EVENTS, [left])?)
}

fn flows(session: &Session<'_>, now: Timestamp, limit: i64) -> rusqlite::Result<u64> {
    let reports: Vec<i64> = session.all(REPORTS, params![now.millis(), limit], |row| row.get(0))?;
    for report in &reports {
        for sql in REMOVE_REPORT {
            session.change(sql, [report])?;
        }
    }
    let left = limit - i64::try_from(reports.len()).unwrap_or(i64::MAX);
    session.change(FETCHES, params![now.millis(), left])?;
    session.change(NAMES, params![now.millis(), limit])?;
    Ok(session.change(FLOWS, params![now.millis(), left])? + u64::try_from(reports.len()).unwrap_or(u64::MAX))
}

/// Writes as much as a transition would and takes it back, so that a full store says so.
pub(super) fn check(session: &Session<'_>) -> rusqlite::Result<()> {
    session.change(TAKE_ROOM, [session.now().millis()])?;
    session.change(GIVE_ROOM_BACK, []).map(drop)
}
