//! Guests of an event: who may start a verification, who is registered afterwards, and the counts
//! that follow from it.
//!
//! Only a registration takes a place. Abandoned scans are not written when their window passes: each
//! scan adds those whose window has passed since the scan before, and a reader counts the few that
//! have passed since.

use rusqlite::{Row, params};
use sakshi_domain::event::{EventRefusal, EventStatus};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;

use super::database::statements::Database;
use super::rows::{sealed, signed, time};
use crate::error::StoreError;
use crate::events::Registration;
use crate::outbox::Target;
use crate::paging::{Page, Rows};
use crate::transactions::CompleteTransaction;

/// A suspended client takes no guests.
const OF_CLIENT: &str = "SELECT e.row, e.is_active AND c.suspended_at IS NULL, e.expires_at, e.max_guests, e.registrations FROM events e \
     JOIN clients c ON c.row = e.client WHERE e.id = ?1 AND e.closing = 0 AND c.client_id = ?2 AND e.app = ?3";
const OF_ROW: &str = "SELECT row, is_active, expires_at, max_guests, registrations FROM events WHERE row = ?1";
const TARGET: &str = "SELECT origin, webhook FROM events WHERE row = ?1 AND origin IS NOT NULL";
/// Adds the scans whose window has passed since the last time to the count of abandoned ones.
pub(crate) const SETTLE: &str = "UPDATE events SET settled_at = max(settled_at, ?2), \
     abandoned = abandoned + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = events.row AND t.completed = 0 AND t.expires_at > events.settled_at AND t.expires_at <= ?2) WHERE row = ?1";
/// The same with one more scan. If its window ends before the settled time, it is counted at once.
pub(crate) const SCAN: &str = "UPDATE events SET scans = scans + 1, settled_at = max(settled_at, ?2), \
     abandoned = abandoned + (?3 <= settled_at) + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = events.row AND t.completed = 0 AND t.expires_at > events.settled_at AND t.expires_at <= ?2) WHERE row = ?1";
/// Counts an answer. A scan that was counted as abandoned can be answered in time only if the clock
/// was set back.
const ANSWER: &str = "UPDATE events SET registrations = registrations + ?3, abandoned = abandoned - (?2 <= settled_at) WHERE row = ?1";
/// Counts a scan whose window was ended at a settled time; one that ends later is counted as all others are.
const ENDED: &str = "UPDATE events SET abandoned = abandoned + (?2 <= settled_at) WHERE row = ?1";
const REGISTER: &str = "INSERT INTO registrations (event, seq, txn, verified_at, outcome) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING row";
const TOTAL: &str = "SELECT row, registrations FROM events WHERE id = ?1 AND closing = 0";
pub(crate) const PAGE: &str = "SELECT txn, verified_at, outcome FROM registrations WHERE event = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

/// What decides whether a guest is admitted.
pub(crate) struct Gate {
    pub(crate) row: i64,
    is_active: bool,
    expires_at: Timestamp,
    max_guests: u32,
    registrations: u32,
}

impl Gate {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            row: row.get(0)?,
            is_active: row.get(1)?,
            expires_at: time(row, 2)?,
            max_guests: row.get(3)?,
            registrations: row.get(4)?,
        })
    }

    /// The gate of an event of this client and app.
    pub(crate) fn of_client(db: &Database, id: EventId, client: &ClientId, app: &AppId) -> rusqlite::Result<Option<Self>> {
        db.first(OF_CLIENT, params![id.as_bytes(), client.as_str(), app.as_str()], Self::read)
    }

    /// Why no guest is admitted at `now`, if so.
    pub(crate) fn refusal(&self, now: Timestamp) -> Option<EventRefusal> {
        let remaining = self.max_guests.saturating_sub(self.registrations);
        EventRefusal::of(EventStatus::at(now, self.is_active, self.expires_at, remaining))
    }
}

/// The outcome of a guest's answer.
#[derive(Default)]
pub(crate) struct Conclusion {
    /// Why a guest who passed has no place.
    pub(crate) refused: Option<EventRefusal>,
    /// The row of the guest's registration.
    pub(crate) registration: Option<i64>,
    /// Where the registration is reported.
    pub(crate) target: Option<Target>,
}

/// Registers a guest who passed, if there is a place now.
pub(crate) fn conclude(
    db: &Database,
    event: i64,
    complete: &CompleteTransaction,
    expires_at: Timestamp,
    now: Timestamp,
) -> rusqlite::Result<Conclusion> {
    let gate = db.first(OF_ROW, [event], Gate::read)?.ok_or_else(|| StoreError::unreadable("the event of a transaction"))?;
    let refused = gate.refusal(now).filter(|_| complete.passed);
    let registered = complete.passed && refused.is_none();
    db.change(ANSWER, params![event, expires_at.millis(), registered])?;
    if !registered {
        return Ok(Conclusion { refused, ..Conclusion::default() });
    }
    let place = params![event, gate.registrations + 1, complete.id.as_bytes(), now.millis(), complete.outcome.as_bytes()];
    let registration = db.statement(REGISTER)?.query_row(place, |row| row.get(0))?;
    let target = db.first(TARGET, [event], |row| Ok(Target { origin: row.get(0)?, address: row.get(1)? }))?;
    Ok(Conclusion { refused: None, registration: Some(registration), target })
}

/// Counts a scan whose transaction has just been written.
pub(crate) fn scanned(db: &Database, event: i64, now: Timestamp, expires_at: Timestamp) -> rusqlite::Result<()> {
    db.change(SCAN, params![event, now.millis(), expires_at.millis()]).map(drop)
}

/// Counts a scan whose window was ended before its time.
pub(crate) fn ended(db: &Database, event: i64, expires_at: Timestamp) -> rusqlite::Result<()> {
    db.change(ENDED, params![event, expires_at.millis()]).map(drop)
}

/// Takes the scans whose window has passed into the count of abandoned ones.
pub(crate) fn settle(db: &Database, event: i64, now: Timestamp) -> rusqlite::Result<()> {
    db.change(SETTLE, params![event, now.millis()]).map(drop)
}

/// Registrations are numbered without gaps, so the number before a range is its offset.
pub(crate) fn list(db: &Database, id: EventId, rows: Rows) -> rusqlite::Result<Page<Registration>> {
    let found = db.first(TOTAL, [id.as_bytes()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?)))?;
    let Some((event, total)) = found else { return Ok(Page::empty()) };
    let mut items = Vec::new();
    let mut room = rows.max_bytes;
    let mut statement = db.statement(PAGE)?;
    let mut found = statement.query(params![event, signed(rows.offset), rows.limit])?;
    // A row may hold a photo of megabytes, so no more are read than there is room for.
    while (items.is_empty() || room > 0)
        && let Some(row) = found.next()?
    {
        let outcome = sealed(row, 2)?;
        room = room.saturating_sub(outcome.size());
        items.push(Registration { txn: TxnId::from_bytes(row.get(0)?), verified_at: time(row, 1)?, outcome });
    }
    Ok(Page { items, total: total.into() })
}
