//! Events: creating, reading, listing and changing them, and listing their guests.

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::event::{Event, EventCounts, EventPatch};
use sakshi_domain::ids::{AppId, EventId, Partition, TxnId};
use sakshi_domain::time::Timestamp;
use uuid::Uuid;

use super::answer::{Fields, arguments, bytes, text, unreadable};
use super::ledger::places;
use super::script::{CREATE_EVENT, LIST_EVENTS, LIST_REGISTRATIONS, LOAD_EVENT, PATCH_EVENT};
use super::{Shared, keys, records};
use crate::error::StoreError;
use crate::record::Registration;
use crate::sealing::{SealedTerms, open_event};
use crate::transition::{CreateEvent, CreateEventOutcome, Page, PageRequest, PatchEventOutcome, Rows};
use crate::vault::Sealed;

/// Attempts at a change that others overtake.
const ATTEMPTS: usize = 64;
/// Events that are read at a time.
const SLICE: usize = 100;

/// An event as it was read, and what a change to it must find unchanged.
struct Found {
    event: Event,
    sealed: Vec<u8>,
    now: Timestamp,
}

impl Shared {
    pub(super) async fn create_event(&self, create: CreateEvent) -> Result<CreateEventOutcome, StoreError> {
        let CreateEvent { event: Event { id, client, app, created_at, terms, .. }, idempotency } = create;
        let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms } = SealedTerms::seal(&self.vault, id, &terms)?;
        // Whoever lists the app's events must find their partition first.
        self.place_app(&app, &client, None).await?;
        let partition = id.partition();
        let [event, ..] = keys::event(partition, Some(id));
        let [events_of_app, ends_of_app] = keys::events_of_app(partition, &app);
        let kept = keys::idempotency(partition, idempotency.as_ref().map(|kept| &kept.scope.digest));
        let keys = vec![event, keys::client(partition, &client), kept, events_of_app, ends_of_app];
        let [request, answer, until] = records::asked(idempotency.as_ref());
        let args = arguments![
            id.as_bytes(),
            id.to_string(),
            client.as_str(),
            app.as_str(),
            created_at,
            expires_at,
            max_guests,
            is_active,
            origin,
            webhook,
            terms,
            expires_at + self.retention.events,
            request,
            answer,
            until,
        ];
        let mut answer = Fields::of("the answer to a creation", self.call(&CREATE_EVENT, keys, args).await?)?;
        Ok(match answer.text()?.as_str() {
            "created" => CreateEventOutcome::Created,
            "replayed" => CreateEventOutcome::Replayed(answer.sealed()?),
            "reused" => CreateEventOutcome::KeyReused,
            "no client" => self.absent(CreateEventOutcome::ClientNotFound).await?,
            _ => return Err(unreadable("the answer to a creation")),
        })
    }

    pub(super) async fn load_event(&self, id: EventId) -> Result<Option<Event>, StoreError> {
        Ok(self.find_event(id).await?.map(|found| found.event))
    }

    async fn find_event(&self, id: EventId) -> Result<Option<Found>, StoreError> {
        let [event, _, waiting] = keys::event(id.partition(), Some(id));
        let answer = self.call(&LOAD_EVENT, vec![event, waiting], vec![]).await?;
        let Some(mut fields) = Fields::maybe("an event", answer)? else { return self.absent(None).await };
        let (client, app, created_at, sealed) = (fields.parsed()?, fields.parsed()?, fields.time()?, fields.bytes()?);
        let counts = counts(&mut fields)?;
        let terms = Sealed::from_bytes(&sealed).ok_or_else(|| unreadable("the terms of an event"))?;
        let event = Event { id, client, app, created_at, terms: open_event(&self.vault, id, &terms)?, counts };
        Ok(Some(Found { event, sealed, now: fields.time()? }))
    }

    pub(super) async fn list_events(&self, app: AppId, page: PageRequest) -> Result<Page<Event>, StoreError> {
        let nothing = Page { items: vec![], total: 0 };
        let place = self.link.read(cmd("HGET").arg(keys::app(&app)).arg("p").to_owned()).await?;
        let Some(place) = text("an app", place)? else { return self.absent(nothing).await };
        let partition = place.parse().ok().and_then(partition).ok_or_else(|| unreadable("an app"))?;
        let (first, last) = places(page);
        let keys = keys::events_of_app(partition, &app).into();
        let mut answer = Fields::of("a list of events", self.call(&LIST_EVENTS, keys, arguments![first, last]).await?)?;
        let total = answer.parsed()?;
        // A member is a place of twelve digits and an id.
        let id = |member| {
            let member = text("a list of events", member)?;
            member.as_ref().and_then(|member| member.get(12..)?.parse().ok()).ok_or_else(|| unreadable("a list of events"))
        };
        let ids = answer.fields()?.rest().map(id).collect::<Result<Vec<EventId>, _>>()?;
        let mut items = Vec::with_capacity(ids.len());
        for slice in ids.chunks(SLICE) {
            items.extend(try_join_all(slice.iter().map(|id| self.load_event(*id))).await?.into_iter().flatten());
        }
        Ok(Page { items, total })
    }

    /// Decides on what it read and writes only if that is still so; else it begins anew.
    pub(super) async fn patch_event(&self, id: EventId, app: AppId, patch: EventPatch) -> Result<PatchEventOutcome, StoreError> {
        for _ in 0..ATTEMPTS {
            let found = self.find_event(id).await?.filter(|found| found.event.app == app);
            let Some(Found { mut event, sealed, now }) = found else { return Ok(PatchEventOutcome::NotFound) };
            event.terms = match event.patched(patch.clone(), now) {
                Ok(terms) => terms,
                Err(invalid) => return Ok(PatchEventOutcome::Refused(invalid)),
            };
            if let Some(counts) = self.commit_patch(&event, sealed, patch.expires_at).await? {
                event.counts = counts;
                return Ok(PatchEventOutcome::Patched(event));
            }
        }
        Err(StoreError::Overloaded)
    }

    /// Writes new terms over those that were read; the counts of the moment, or `None` when what was
    /// decided on has changed.
    async fn commit_patch(&self, event: &Event, before: Vec<u8>, end: Option<Timestamp>) -> Result<Option<EventCounts>, StoreError> {
        let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms } =
            SealedTerms::seal(&self.vault, event.id, &event.terms)?;
        let partition = event.id.partition();
        let mut keys = keys::event(partition, Some(event.id)).to_vec();
        keys.extend(keys::events_of_app(partition, &event.app));
        let args = arguments![
            event.id.to_string(),
            before,
            terms,
            is_active,
            expires_at,
            max_guests,
            origin,
            webhook,
            end,
            self.retention.events,
            self.retention.expired,
        ];
        let mut answer = Fields::of("the answer to a change", self.call(&PATCH_EVENT, keys, args).await?)?;
        match answer.text()?.as_str() {
            "patched" => counts(&mut answer.fields()?).map(Some),
            "changed" | "gone" => Ok(None),
            _ => Err(unreadable("the answer to a change")),
        }
    }

    /// Registrations keep their places, so some of them are found by how many come before.
    pub(super) async fn list_registrations(&self, id: EventId, rows: Rows) -> Result<Page<Registration>, StoreError> {
        let [event, registrations, _] = keys::event(id.partition(), Some(id));
        let keys = vec![event, registrations];
        let args = arguments![rows.after, rows.most, rows.bytes];
        let mut answer = Fields::of("registrations", self.call(&LIST_REGISTRATIONS, keys, args).await?)?;
        let total = answer.parsed()?;
        let read = |packed| bytes("a registration", packed)?.as_deref().and_then(registration).ok_or_else(|| unreadable("a registration"));
        Ok(Page { items: answer.fields()?.rest().map(read).collect::<Result<_, _>>()?, total })
    }
}

/// Sixteen bytes of transaction, the moment, a blank, the sealed outcome.
fn registration(packed: &[u8]) -> Option<Registration> {
    let (txn, rest) = packed.split_first_chunk::<16>()?;
    let blank = rest.iter().position(|byte| *byte == b' ')?;
    let verified_at = std::str::from_utf8(&rest[..blank]).ok()?.parse().ok().map(Timestamp::from_millis)?;
    Some(Registration { txn: TxnId::from_uuid(Uuid::from_bytes(*txn)), verified_at, outcome: Sealed::from_bytes(&rest[blank + 1..])? })
}

/// Registrations, scans, those counted as abandoned, and those that are not yet.
fn counts(fields: &mut Fields) -> Result<EventCounts, StoreError> {
    let (registrations, scans): (u32, u64) = (fields.parsed()?, fields.parsed()?);
    let (settled, passed): (i64, i64) = (fields.parsed()?, fields.parsed()?);
    let abandoned = u64::try_from(settled + passed).map_err(|_| unreadable("the counts of an event"))?;
    Ok(EventCounts { registrations, scans, abandoned })
}

fn partition(number: u8) -> Option<Partition> {
    keys::partitions().find(|partition| partition.number() == number)
}
