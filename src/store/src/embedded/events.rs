//! Events: their rows and listings, and changes to them.
//!
//! The terms of an event are sealed for its id; the values that decide about a guest are in columns
//! of their own. How guests change an event is in `guests`.

use rusqlite::{Row, params};
use sakshi_domain::event::{Event, EventCounts, EventPatch};
use sakshi_domain::ids::{AppId, EventId};

use super::database::statements::Database;
use super::rows::{parsed, signed, time, unsigned};
use super::store::EmbeddedStore;
use super::{guests, idempotency};
use crate::error::{StoreError, StoreFuture};
use crate::events::{CreateEvent, Events, PatchEventOutcome, Registration};
use crate::idempotency::CreateOutcome;
use crate::paging::{Page, PageRequest, Rows};
use crate::sealing::{SealedTerms, open_event};

const KNOWN: &str = "SELECT 1 FROM events WHERE id = ?1";
pub(crate) const CREATE: &str = "INSERT INTO events (id, client, app, created_at, is_active, expires_at, max_guests, origin, webhook, terms, keep_ms, place) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
     (SELECT coalesce(max(place) + 1, 0) FROM events WHERE app = ?3 AND closing = 0))";
/// Only the scans abandoned since `settled_at` have to be counted.
pub(crate) const LOAD: &str = "SELECT e.id, c.client_id, e.app, e.created_at, e.terms, e.registrations, e.scans, \
     e.abandoned + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = e.row AND t.completed = 0 AND t.expires_at > e.settled_at AND t.expires_at <= ?2), \
     c.suspended_at IS NOT NULL FROM events e JOIN clients c ON c.row = e.client WHERE e.id = ?1 AND e.closing = 0";
pub(crate) const LIST: &str = "SELECT e.id, c.client_id, e.app, e.created_at, e.terms, e.registrations, e.scans, \
     e.abandoned + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = e.row AND t.completed = 0 AND t.expires_at > e.settled_at AND t.expires_at <= ?2), \
     c.suspended_at IS NOT NULL FROM (SELECT row FROM events WHERE app = ?1 AND closing = 0 AND place >= ?3 ORDER BY place LIMIT ?5 OFFSET ?4) p \
     JOIN events e ON e.row = p.row JOIN clients c ON c.row = e.client ORDER BY e.place";
pub(crate) const BLOCKS: &str = "SELECT block, listed FROM event_blocks WHERE app = ?1 ORDER BY block";
const LISTED: &str = "SELECT coalesce(sum(listed), 0) FROM event_blocks WHERE app = ?1";
/// Places of a block, as in the schema.
const BLOCK: i64 = 256;
const PATCH: &str =
    "UPDATE events SET is_active = ?2, expires_at = ?3, max_guests = ?4, origin = ?5, webhook = ?6, terms = ?7 WHERE id = ?1";

impl Events for EmbeddedStore {
    fn create_event(&self, create: CreateEvent) -> StoreFuture<CreateOutcome> {
        let sealed = SealedTerms::seal(self.vault(), create.event.id, &create.event.terms);
        self.write_sealed(sealed, |sealed| sealed.terms.len(), move |db, sealed| self::create(db, &create, sealed))
    }

    fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>> {
        self.read(move |db| db.first(LOAD, params![id.as_bytes(), db.now().millis()], |row| shown(db, row)))
    }

    fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>> {
        self.read(move |db| list(db, &app, page))
    }

    fn patch_event(&self, id: EventId, app: AppId, change: EventPatch) -> StoreFuture<PatchEventOutcome> {
        self.write(0, move |db| patch(db, id, &app, &change))
    }

    fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>> {
        self.read(move |db| guests::list(db, id, rows))
    }
}

fn event(db: &Database, row: &Row<'_>) -> rusqlite::Result<Event> {
    let id = EventId::from_bytes(row.get(0)?);
    Ok(Event {
        id,
        client: parsed(row, 1)?,
        app: parsed(row, 2)?,
        created_at: time(row, 3)?,
        terms: open_event(&db.vault, id, row.get_ref(4)?.as_blob()?)?,
        counts: EventCounts { registrations: row.get(5)?, scans: unsigned(row, 6)?, abandoned: unsigned(row, 7)? },
    })
}

/// The event as it is to be seen: that of a suspended client is disabled for as long.
fn shown(db: &Database, row: &Row<'_>) -> rusqlite::Result<Event> {
    let mut event = event(db, row)?;
    event.terms.is_active &= !row.get::<_, bool>(8)?;
    Ok(event)
}

fn create(db: &Database, create: &CreateEvent, sealed: &SealedTerms) -> rusqlite::Result<CreateOutcome> {
    let CreateEvent { event: Event { id, client, app, created_at, .. }, most, idempotency } = create;
    idempotency::create(db, KNOWN, id.as_bytes(), client, idempotency.as_ref(), |client| {
        if let Some(most) = most
            && db.first(LISTED, [app.as_str()], |row| unsigned(row, 0))?.unwrap_or(0) >= u64::from(*most)
        {
            return Ok(false);
        }
        let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms, keep } = sealed;
        let keep = keep.map(|keep| signed(keep.as_millis()));
        let (created_at, expires_at) = (created_at.millis(), expires_at.millis());
        let row = params![id.as_bytes(), client, app.as_str(), created_at, is_active, expires_at, max_guests, origin, webhook, terms, keep];
        db.change(CREATE, row).map(|_| true)
    })
}

fn find(db: &Database, id: EventId) -> rusqlite::Result<Option<Event>> {
    db.first(LOAD, params![id.as_bytes(), db.now().millis()], |row| event(db, row))
}

/// A page is found by the block in which it begins.
fn list(db: &Database, app: &AppId, page: PageRequest) -> rusqlite::Result<Page<Event>> {
    let blocks: Vec<(i64, u64)> = db.all(BLOCKS, [app.as_str()], |row| Ok((row.get(0)?, unsigned(row, 1)?)))?;
    let damaged = || StoreError::unreadable("the list of an app's events");
    let total = blocks.iter().try_fold(0_u64, |total, (_, listed)| total.checked_add(*listed)).ok_or_else(damaged)?;
    let mut before = page.offset();
    let begins = blocks.into_iter().find_map(|(block, listed)| {
        let here = before < listed;
        before -= if here { 0 } else { listed };
        here.then_some(block)
    });
    let Some(block) = begins else { return Ok(Page { items: Vec::new(), total }) };
    let place = block.checked_mul(BLOCK).ok_or_else(damaged)?;
    let rows = params![app.as_str(), db.now().millis(), place, signed(before), page.page_size];
    Ok(Page { items: db.all(LIST, rows, |row| shown(db, row))?, total })
}

/// Changes the event. One that the vault cannot open stays as it is.
fn patch(db: &Database, id: EventId, app: &AppId, patch: &EventPatch) -> rusqlite::Result<PatchEventOutcome> {
    let Some(mut event) = find(db, id)?.filter(|event| event.app == *app) else { return Ok(PatchEventOutcome::NotFound) };
    event.terms = match event.patched(patch.clone(), db.now()) {
        Ok(terms) => terms,
        Err(invalid) => return Ok(PatchEventOutcome::Refused(invalid)),
    };
    let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms, .. } = SealedTerms::seal(&db.vault, id, &event.terms)?;
    db.change(PATCH, params![id.as_bytes(), is_active, expires_at.millis(), max_guests, origin, webhook, terms])?;
    Ok(PatchEventOutcome::Patched(event))
}
