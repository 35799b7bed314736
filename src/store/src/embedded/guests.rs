//! Guests of an event: who is let in to be verified, who is registered afterwards, and the counts
//! that follow from it.
//!
//! A place is taken by a registration and by nothing else. Abandoned scans are not written when
//! their window passes: each scan settles those that have passed since the one before, and a reader
//! counts the few that came after it.

use rusqlite::{Row, params};
use sakshi_domain::event::{EventRefusal, EventStatus};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;

use super::deliveries::{Address, Target};
use super::fault::unreadable;
use super::job::Session;
use crate::record::Registration;
use crate::transition::{CompleteTransaction, Page, Rows};
use crate::vault::Sealed;

const OF_CLIENT: &str = "SELECT e.row, e.is_active, e.expires_at, e.max_guests, e.registrations FROM events e \
     JOIN clients c ON c.row = e.client WHERE e.id = ?1 AND e.closing = 0 AND c.client_id = ?2 AND e.app = ?3";
const OF_ROW: &str = "SELECT row, is_active, expires_at, max_guests, registrations FROM events WHERE row = ?1";
const ADDRESS: &str = "SELECT id, origin, webhook FROM events WHERE row = ?1 AND origin IS NOT NULL";
/// Takes those whose window has passed since the last time into the count.
pub(super) const SETTLE: &str = "UPDATE events SET settled_at = max(settled_at, ?2), \
     abandoned = abandoned + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = events.row AND t.completed = 0 AND t.expires_at > events.settled_at AND t.expires_at <= ?2) WHERE row = ?1";
/// The same with one more scan; if its window ends before what is settled, it is counted at once.
pub(super) const SCAN: &str = "UPDATE events SET scans = scans + 1, settled_at = max(settled_at, ?2), \
     abandoned = abandoned + (?3 <= settled_at) + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = events.row AND t.completed = 0 AND t.expires_at > events.settled_at AND t.expires_at <= ?2) WHERE row = ?1";
/// The reverse: only a clock that was set back lets such a scan be answered in time.
const ANSWER: &str = "UPDATE events SET registrations = registrations + ?3, abandoned = abandoned - (?2 <= settled_at) WHERE row = ?1";
const REGISTER: &str = "INSERT INTO registrations (event, seq, txn, verified_at, outcome) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING row";
const TOTAL: &str = "SELECT row, registrations FROM events WHERE id = ?1 AND closing = 0";
pub(super) const PAGE: &str = "SELECT txn, verified_at, outcome FROM registrations WHERE event = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

/// What decides about a guest.
pub(super) struct Gate {
    pub(super) row: i64,
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
            expires_at: Timestamp::from_millis(row.get(2)?),
            max_guests: row.get(3)?,
            registrations: row.get(4)?,
        })
    }

    /// The gate of this client's and app's event.
    pub(super) fn of_client(session: &Session<'_>, id: EventId, client: &ClientId, app: &AppId) -> rusqlite::Result<Option<Self>> {
        session.first(OF_CLIENT, params![id.as_bytes(), client.as_str(), app.as_str()], Self::read)
    }

    /// Why no guest is let in at `now`, if so.
    pub(super) fn refusal(&self, now: Timestamp) -> Option<EventRefusal> {
        let remaining = self.max_guests.saturating_sub(self.registrations);
        EventRefusal::of(EventStatus::at(now, self.is_active, self.expires_at, remaining))
    }
}

/// What an event makes of its guest's answer.
#[derive(Default)]
pub(super) struct Conclusion {
    /// Why a guest who passed has no place.
    pub(super) refused: Option<EventRefusal>,
    /// The row of the guest's registration.
    pub(super) registration: Option<i64>,
    /// Where a registration is reported at this moment.
    pub(super) address: Option<Target>,
}

/// Gives a guest who passed the next place, if there is one now.
pub(super) fn conclude(
    session: &Session<'_>,
    event: i64,
    complete: &CompleteTransaction,
    expires_at: Timestamp,
    now: Timestamp,
) -> rusqlite::Result<Conclusion> {
    let gate = session.first(OF_ROW, [event], Gate::read)?.ok_or_else(|| unreadable("the event of a transaction is missing"))?;
    let refused = gate.refusal(now).filter(|_| complete.passed);
    let registered = complete.passed && refused.is_none();
    session.change(ANSWER, params![event, expires_at.millis(), registered])?;
    if !registered {
        return Ok(Conclusion { refused, ..Conclusion::default() });
    }
    let place = params![event, gate.registrations + 1, complete.id.as_bytes(), now.millis(), complete.outcome.to_bytes()];
    let registration = session.statement(REGISTER)?.query_row(place, |row| row.get(0))?;
    let address = session.first(ADDRESS, [event], |row| Ok(Target { origin: row.get(1)?, address: Address::read(row, 0, 2)? }))?;
    Ok(Conclusion { refused: None, registration: Some(registration), address })
}

/// Counts a scan whose transaction has just been written.
pub(super) fn scanned(session: &Session<'_>, event: i64, now: Timestamp, expires_at: Timestamp) -> rusqlite::Result<()> {
    session.change(SCAN, params![event, now.millis(), expires_at.millis()]).map(drop)
}

/// Takes the scans whose window has passed into the count of abandoned ones.
pub(super) fn settle(session: &Session<'_>, event: i64, now: Timestamp) -> rusqlite::Result<()> {
    session.change(SETTLE, params![event, now.millis()]).map(drop)
}

/// Places are numbered without gaps, so some of them are found by how many come before.
pub(super) fn list(session: &Session<'_>, id: EventId, rows: Rows) -> rusqlite::Result<Page<Registration>> {
    let found = session.first(TOTAL, [id.as_bytes()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?)))?;
    let Some((event, total)) = found else { return Ok(Page { items: Vec::new(), total: 0 }) };
    let mut items = Vec::new();
    let mut room = rows.bytes;
    let mut statement = session.statement(PAGE)?;
    let mut found = statement.query(params![event, i64::try_from(rows.after).unwrap_or(i64::MAX), rows.most])?;
    // One may hold a photo of megabytes, so that no more are read than there is room for.
    while (items.is_empty() || room > 0)
        && let Some(row) = found.next()?
    {
        let outcome = row.get_ref(2)?.as_blob()?;
        room = room.saturating_sub(outcome.len());
        items.push(Registration {
            txn: TxnId::from_uuid(uuid::Uuid::from_bytes(row.get(0)?)),
            verified_at: Timestamp::from_millis(row.get(1)?),
            outcome: Sealed::from_bytes(outcome).ok_or_else(|| unreadable("an outcome cannot be read"))?,
        });
    }
    Ok(Page { items, total: total.into() })
}

/// The number kept of a refusal.
pub(super) const fn refusal_number(refusal: EventRefusal) -> i64 {
    match refusal {
        EventRefusal::Disabled => 0,
        EventRefusal::Expired => 1,
        EventRefusal::Full => 2,
    }
}

/// The refusal in a column, if there is one.
pub(super) fn refusal(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<EventRefusal>> {
    Ok(match row.get::<_, Option<i64>>(index)? {
        None => None,
        Some(0) => Some(EventRefusal::Disabled),
        Some(1) => Some(EventRefusal::Expired),
        Some(2) => Some(EventRefusal::Full),
        Some(_) => return Err(unreadable("a refusal is of no known kind")),
    })
}
