//! Events: their rows and listings, and changes to them.
//!
//! The terms of an event are sealed for its id; the values that decide about a guest are in columns
//! of their own. How guests change an event is in `guests`.

use std::sync::Arc;

use rusqlite::{Row, params};
use sakshi_domain::event::{Event, EventCounts, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_domain::time::Timestamp;

use super::credits::account;
use super::database::statements::Database;
use super::errors::not_sealed;
use super::guests;
use super::idempotency::{KeyUse, keep_answer, key_use};
use super::rows::{parsed, sealed, signed, time, unsigned};
use super::store::EmbeddedStore;
use crate::error::{StoreError, StoreFuture};
use crate::events::{CreateEvent, CreateEventOutcome, Events, PatchEventOutcome, Registration};
use crate::idempotency::{self, IdempotentAnswer};
use crate::paging::{Page, PageRequest, Rows};
use crate::sealing::{SealedTerms, open_event};
use crate::vault::{Sealed, Vault};

const KNOWN: &str = "SELECT 1 FROM events WHERE id = ?1";
pub(crate) const CREATE: &str = "INSERT INTO events (id, client, app, created_at, is_active, expires_at, max_guests, origin, webhook, terms, place) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
     (SELECT coalesce(max(place) + 1, 0) FROM events WHERE app = ?3 AND closing = 0))";
/// Only the scans abandoned since `settled_at` have to be counted.
pub(crate) const LOAD: &str = "SELECT e.id, c.client_id, e.app, e.created_at, e.terms, e.registrations, e.scans, \
     e.abandoned + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = e.row AND t.completed = 0 AND t.expires_at > e.settled_at AND t.expires_at <= ?2) \
     FROM events e JOIN clients c ON c.row = e.client WHERE e.id = ?1 AND e.closing = 0";
pub(crate) const LIST: &str = "SELECT e.id, c.client_id, e.app, e.created_at, e.terms, e.registrations, e.scans, \
     e.abandoned + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = e.row AND t.completed = 0 AND t.expires_at > e.settled_at AND t.expires_at <= ?2) \
     FROM (SELECT row FROM events WHERE app = ?1 AND closing = 0 AND place >= ?3 ORDER BY place LIMIT ?5 OFFSET ?4) p \
     JOIN events e ON e.row = p.row JOIN clients c ON c.row = e.client ORDER BY e.place";
pub(crate) const BLOCKS: &str = "SELECT block, listed FROM event_blocks WHERE app = ?1 ORDER BY block";
/// Places of a block, as in the schema.
const BLOCK: i64 = 256;
const PATCH: &str =
    "UPDATE events SET is_active = ?2, expires_at = ?3, max_guests = ?4, origin = ?5, webhook = ?6, terms = ?7 WHERE id = ?1";

impl Events for EmbeddedStore {
    fn create_event(&self, event: CreateEvent) -> StoreFuture<CreateEventOutcome> {
        self.write_sealed(Creation::sealed(self.vault(), event), Creation::weight, create)
    }

    fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>> {
        self.read(move |db| find(db, id), |found, vault| found.map(|event| event.unsealed(vault)).transpose())
    }

    fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>> {
        self.read(
            move |db| list(db, &app, page),
            |Page { items, total }, vault| {
                let items = items.into_iter().map(|event| event.unsealed(vault)).collect::<Result<_, _>>()?;
                Ok(Page { items, total })
            },
        )
    }

    fn patch_event(&self, id: EventId, app: AppId, change: EventPatch) -> StoreFuture<PatchEventOutcome> {
        let vault = Arc::clone(self.vault());
        self.write(0, move |db| patch(db, &vault, id, &app, &change), |outcome, _| Ok(outcome))
    }

    fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>> {
        self.read(move |db| guests::list(db, id, rows), |page, _| Ok(page))
    }
}

/// An event to be created, its terms sealed.
struct Creation {
    id: EventId,
    client: ClientId,
    app: AppId,
    created_at: Timestamp,
    terms: SealedTerms,
    idempotency: Option<IdempotentAnswer>,
}

impl Creation {
    fn sealed(vault: &Vault, create: CreateEvent) -> Result<Self, StoreError> {
        let CreateEvent { event: Event { id, client, app, created_at, terms, .. }, idempotency } = create;
        Ok(Self { id, client, app, created_at, terms: SealedTerms::seal(vault, id, &terms)?, idempotency })
    }

    fn weight(&self) -> usize {
        self.terms.weight() + idempotency::weight(self.idempotency.as_ref())
    }
}

/// An event as it is stored.
struct SealedEvent {
    id: EventId,
    client: ClientId,
    app: AppId,
    created_at: Timestamp,
    terms: Sealed,
    counts: EventCounts,
}

impl SealedEvent {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: EventId::from_bytes(row.get(0)?),
            client: parsed(row, 1)?,
            app: parsed(row, 2)?,
            created_at: time(row, 3)?,
            terms: sealed(row, 4, "the terms of an event cannot be read")?,
            counts: EventCounts { registrations: row.get(5)?, scans: unsigned(row, 6)?, abandoned: unsigned(row, 7)? },
        })
    }

    fn unsealed(self, vault: &Vault) -> Result<Event, StoreError> {
        let Self { id, client, app, created_at, terms, counts } = self;
        Ok(Event { id, client, app, created_at, terms: open_event(vault, id, &terms)?, counts })
    }
}

fn create(db: &Database<'_>, creation: &Creation) -> rusqlite::Result<CreateEventOutcome> {
    let Creation { id, client, app, created_at, terms, idempotency } = creation;
    if db.any(KNOWN, [id.as_bytes()])? {
        return Ok(CreateEventOutcome::Created);
    }
    match key_use(db, id.as_bytes(), idempotency.as_ref())? {
        KeyUse::Unused => {}
        KeyUse::SameSubject => return Ok(CreateEventOutcome::Created),
        KeyUse::SameBody(answer) => return Ok(CreateEventOutcome::Replayed(answer)),
        KeyUse::OtherBody => return Ok(CreateEventOutcome::KeyReused),
    }
    let Some(client) = account(db, client)? else { return Ok(CreateEventOutcome::ClientNotFound) };
    let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms } = terms;
    let (created_at, expires_at) = (created_at.millis(), expires_at.millis());
    let row = params![id.as_bytes(), client.row, app.as_str(), created_at, is_active, expires_at, max_guests, origin, webhook, terms];
    db.change(CREATE, row)?;
    keep_answer(db, id.as_bytes(), idempotency.as_ref())?;
    Ok(CreateEventOutcome::Created)
}

fn find(db: &Database<'_>, id: EventId) -> rusqlite::Result<Option<SealedEvent>> {
    db.first(LOAD, params![id.as_bytes(), db.now().millis()], SealedEvent::read)
}

/// A page is found by the block in which it begins.
fn list(db: &Database<'_>, app: &AppId, page: PageRequest) -> rusqlite::Result<Page<SealedEvent>> {
    let blocks: Vec<(i64, i64)> = db.all(BLOCKS, [app.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let total = blocks.iter().map(|(_, listed)| listed.unsigned_abs()).sum();
    let mut before = signed(page.offset());
    let begins = blocks.into_iter().find_map(|(block, listed)| {
        let here = before < listed;
        before -= if here { 0 } else { listed };
        here.then_some(block)
    });
    let Some(block) = begins else { return Ok(Page { items: Vec::new(), total }) };
    let rows = params![app.as_str(), db.now().millis(), block * BLOCK, before, page.page_size];
    Ok(Page { items: db.all(LIST, rows, SealedEvent::read)?, total })
}

/// Changes the event. One that the vault cannot open stays as it is.
fn patch(db: &Database<'_>, vault: &Vault, id: EventId, app: &AppId, patch: &EventPatch) -> rusqlite::Result<PatchEventOutcome> {
    let Some(found) = find(db, id)?.filter(|found| found.app == *app) else { return Ok(PatchEventOutcome::NotFound) };
    let mut event = found.unsealed(vault).map_err(not_sealed)?;
    event.terms = match event.patched(patch.clone(), db.now()) {
        Ok(terms) => terms,
        Err(invalid) => return Ok(PatchEventOutcome::Refused(invalid)),
    };
    let sealed = SealedTerms::seal(vault, id, &event.terms).map_err(not_sealed)?;
    let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms } = sealed;
    db.change(PATCH, params![id.as_bytes(), is_active, expires_at.millis(), max_guests, origin, webhook, terms])?;
    Ok(PatchEventOutcome::Patched(event))
}
