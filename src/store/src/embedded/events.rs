//! Events: their rows and listings, and changes to them.
//!
//! What an event is called and where its webhooks go is sealed for its id; what decides about a
//! guest is in columns of its own. What guests do to an event is in `guests`.

use rusqlite::{Row, params};
use sakshi_domain::event::{Event, EventCounts, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_domain::time::Timestamp;

use super::fault::unreadable;
use super::idempotency::{Repetition, keep, repetition};
use super::job::Session;
use super::ledger::{account, offset, unsigned};
use super::terms::parsed;
use crate::error::StoreError;
use crate::sealing::{SealedTerms, open_event};
use crate::transition::{CreateEventOutcome, IdempotentAnswer, Page, PageRequest, PatchEventOutcome};
use crate::vault::{Sealed, Vault};

const KNOWN: &str = "SELECT 1 FROM events WHERE id = ?1";
pub(super) const CREATE: &str = "INSERT INTO events (id, client, app, created_at, is_active, expires_at, max_guests, origin, webhook, terms, place) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
     (SELECT coalesce(max(place) + 1, 0) FROM events WHERE app = ?3 AND closing = 0))";
/// Of the abandoned scans only those since the last settlement have to be counted.
pub(super) const LOAD: &str = "SELECT e.id, c.client_id, e.app, e.created_at, e.terms, e.registrations, e.scans, \
     e.abandoned + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = e.row AND t.completed = 0 AND t.expires_at > e.settled_at AND t.expires_at <= ?2) \
     FROM events e JOIN clients c ON c.row = e.client WHERE e.id = ?1 AND e.closing = 0";
pub(super) const LIST: &str = "SELECT e.id, c.client_id, e.app, e.created_at, e.terms, e.registrations, e.scans, \
     e.abandoned + (SELECT count(*) FROM transactions t INDEXED BY transactions_of_event \
     WHERE t.event = e.row AND t.completed = 0 AND t.expires_at > e.settled_at AND t.expires_at <= ?2) \
     FROM (SELECT row FROM events WHERE app = ?1 AND closing = 0 AND place >= ?3 ORDER BY place LIMIT ?5 OFFSET ?4) p \
     JOIN events e ON e.row = p.row JOIN clients c ON c.row = e.client ORDER BY e.place";
pub(super) const BLOCKS: &str = "SELECT block, listed FROM event_blocks WHERE app = ?1 ORDER BY block";
/// Places of a block, as the schema has it.
const BLOCK: i64 = 256;
const PATCH: &str =
    "UPDATE events SET is_active = ?2, expires_at = ?3, max_guests = ?4, origin = ?5, webhook = ?6, terms = ?7 WHERE id = ?1";

/// An event to be created, ready for its row.
pub(super) struct Creation {
    pub(super) id: EventId,
    pub(super) client: ClientId,
    pub(super) app: AppId,
    pub(super) created_at: Timestamp,
    pub(super) terms: SealedTerms,
    pub(super) idempotency: Option<IdempotentAnswer>,
}

/// An event as its row has it.
pub(super) struct SealedEvent {
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
            created_at: Timestamp::from_millis(row.get(3)?),
            terms: Sealed::from_bytes(row.get_ref(4)?.as_blob()?).ok_or_else(|| unreadable("the terms of an event cannot be read"))?,
            counts: EventCounts { registrations: row.get(5)?, scans: unsigned(row, 6)?, abandoned: unsigned(row, 7)? },
        })
    }

    pub(super) fn unsealed(self, vault: &Vault) -> Result<Event, StoreError> {
        let Self { id, client, app, created_at, terms, counts } = self;
        Ok(Event { id, client, app, created_at, terms: open_event(vault, id, &terms)?, counts })
    }
}

pub(super) fn create(session: &Session<'_>, creation: &Creation) -> rusqlite::Result<CreateEventOutcome> {
    let Creation { id, client, app, created_at, terms, idempotency } = creation;
    if session.first(KNOWN, [id.as_bytes()], |_| Ok(()))?.is_some() {
        return Ok(CreateEventOutcome::Created);
    }
    match repetition(session, id.as_bytes(), idempotency.as_ref())? {
        Repetition::None => {}
        Repetition::OfThis => return Ok(CreateEventOutcome::Created),
        Repetition::OfAnother(answer) => return Ok(CreateEventOutcome::Replayed(answer)),
        Repetition::WithAnotherBody => return Ok(CreateEventOutcome::KeyReused),
    }
    let Some(client) = account(session, client)? else { return Ok(CreateEventOutcome::ClientNotFound) };
    let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms } = terms;
    let (created_at, expires_at) = (created_at.millis(), expires_at.millis());
    let row = params![id.as_bytes(), client.row, app.as_str(), created_at, is_active, expires_at, max_guests, origin, webhook, terms];
    session.change(CREATE, row)?;
    keep(session, id.as_bytes(), idempotency.as_ref())?;
    Ok(CreateEventOutcome::Created)
}

pub(super) fn find(session: &Session<'_>, id: EventId) -> rusqlite::Result<Option<SealedEvent>> {
    session.first(LOAD, params![id.as_bytes(), session.now().millis()], SealedEvent::read)
}

/// A page is looked for in the block where it begins.
pub(super) fn list(session: &Session<'_>, app: &AppId, page: PageRequest) -> rusqlite::Result<Page<SealedEvent>> {
    let blocks: Vec<(i64, i64)> = session.all(BLOCKS, [app.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let total = blocks.iter().map(|(_, listed)| listed.unsigned_abs()).sum();
    let mut before = offset(page);
    let begins = blocks.into_iter().find_map(|(block, listed)| {
        let here = before < listed;
        before -= if here { 0 } else { listed };
        here.then_some(block)
    });
    let Some(block) = begins else { return Ok(Page { items: Vec::new(), total }) };
    let rows = params![app.as_str(), session.now().millis(), block * BLOCK, before, page.page_size];
    Ok(Page { items: session.all(LIST, rows, SealedEvent::read)?, total })
}

/// Changes the event; one that its vault does not open stays as it is.
pub(super) fn patch(
    session: &Session<'_>,
    vault: &Vault,
    id: EventId,
    app: &AppId,
    patch: &EventPatch,
) -> rusqlite::Result<Result<PatchEventOutcome, StoreError>> {
    let Some(found) = find(session, id)?.filter(|found| found.app == *app) else { return Ok(Ok(PatchEventOutcome::NotFound)) };
    let mut event = match found.unsealed(vault) {
        Ok(event) => event,
        Err(error) => return Ok(Err(error)),
    };
    event.terms = match event.patched(patch.clone(), session.now()) {
        Ok(terms) => terms,
        Err(invalid) => return Ok(Ok(PatchEventOutcome::Refused(invalid))),
    };
    let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms } = match SealedTerms::seal(vault, id, &event.terms) {
        Ok(sealed) => sealed,
        Err(error) => return Ok(Err(error)),
    };
    session.change(PATCH, params![id.as_bytes(), is_active, expires_at.millis(), max_guests, origin, webhook, terms])?;
    Ok(Ok(PatchEventOutcome::Patched(event)))
}
