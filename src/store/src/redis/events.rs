//! Events: creating, reading, listing and changing them, and listing their guests.

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::event::{Event, EventCounts, EventPatch};
use sakshi_domain::ids::{AppId, EventId, Partition, TxnId};
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::credits::places;
use super::idempotency::asked;
use super::keys;
use super::reply::{Fields, bytes, text, unreadable};
use super::script::{CREATE_EVENT, LIST_EVENTS, LIST_REGISTRATIONS, LOAD_EVENT, PATCH_EVENT};
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::events::{CreateEvent, CreateEventOutcome, Events, PatchEventOutcome, Registration};
use crate::paging::{Page, PageRequest, Rows};
use crate::sealing::{SealedTerms, open_event};
use crate::vault::Sealed;

/// Attempts at a change while other changes come first.
const ATTEMPTS: usize = 64;
/// Events that are read at a time.
const SLICE: usize = 100;

/// An event as it was read, with the sealed terms that a change must find unchanged.
struct Found {
    event: Event,
    sealed: Vec<u8>,
    now: Timestamp,
}

impl Events for RedisStore {
    fn create_event(&self, create: CreateEvent) -> StoreFuture<CreateEventOutcome> {
        self.run(|store| async move {
            let CreateEvent { event: Event { id, client, app, created_at, terms, .. }, idempotency } = create;
            let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms } = SealedTerms::seal(&store.vault, id, &terms)?;
            // The app must name the partition of its events before there are any.
            store.place_app(&app, &client, None).await?;
            let partition = id.partition();
            let [event, ..] = keys::event(partition, Some(id));
            let [events_of_app, ends_of_app] = keys::events_of_app(partition, &app);
            let kept = keys::idempotency(partition, idempotency.as_ref().map(|kept| &kept.scope.digest));
            let keys = vec![event, keys::client(partition, &client), kept, events_of_app, ends_of_app];
            let [request, answer, until] = asked(idempotency.as_ref());
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
                expires_at + store.retention.events,
                request,
                answer,
                until,
            ];
            let mut answer = Fields::of("the answer to a creation", store.call(&CREATE_EVENT, keys, args).await?)?;
            Ok(match answer.text()?.as_str() {
                "created" => CreateEventOutcome::Created,
                "replayed" => CreateEventOutcome::Replayed(answer.sealed()?),
                "reused" => CreateEventOutcome::KeyReused,
                "no client" => store.absent(CreateEventOutcome::ClientNotFound).await?,
                _ => return Err(unreadable("the answer to a creation")),
            })
        })
    }

    fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>> {
        self.run(move |store| async move { Ok(store.find_event(id).await?.map(|found| found.event)) })
    }

    fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>> {
        self.run(move |store| async move {
            let place = store.link.read(cmd("HGET").arg(keys::app(&app)).arg("p").to_owned()).await?;
            let Some(place) = text("an app", place)? else { return store.absent(Page::empty()).await };
            let partition = place.parse().ok().and_then(partition).ok_or_else(|| unreadable("an app"))?;
            let (first, last) = places(page);
            let keys = keys::events_of_app(partition, &app).into();
            let mut answer = Fields::of("a list of events", store.call(&LIST_EVENTS, keys, arguments![first, last]).await?)?;
            let total = answer.parsed()?;
            // A member is a place of twelve digits and an id.
            let id = |member| {
                let member = text("a list of events", member)?;
                member.as_ref().and_then(|member| member.get(12..)?.parse().ok()).ok_or_else(|| unreadable("a list of events"))
            };
            let ids = answer.fields()?.rest().map(id).collect::<Result<Vec<EventId>, _>>()?;
            let mut items = Vec::with_capacity(ids.len());
            for slice in ids.chunks(SLICE) {
                items.extend(
                    try_join_all(slice.iter().map(|id| store.find_event(*id))).await?.into_iter().flatten().map(|found| found.event),
                );
            }
            Ok(Page { items, total })
        })
    }

    /// Writes the change only if the event is still as it was read; otherwise it starts again.
    fn patch_event(&self, id: EventId, app: AppId, patch: EventPatch) -> StoreFuture<PatchEventOutcome> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                let found = store.find_event(id).await?.filter(|found| found.event.app == app);
                let Some(Found { mut event, sealed, now }) = found else { return Ok(PatchEventOutcome::NotFound) };
                event.terms = match event.patched(patch.clone(), now) {
                    Ok(terms) => terms,
                    Err(invalid) => return Ok(PatchEventOutcome::Refused(invalid)),
                };
                if let Some(counts) = store.commit_patch(&event, sealed, patch.expires_at).await? {
                    event.counts = counts;
                    return Ok(PatchEventOutcome::Patched(event));
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Registrations keep their places, so a range of them is found by how many come before.
    fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>> {
        self.run(move |store| async move {
            let [event, registrations, _] = keys::event(id.partition(), Some(id));
            let keys = vec![event, registrations];
            let args = arguments![rows.after, rows.most, rows.bytes];
            let mut answer = Fields::of("registrations", store.call(&LIST_REGISTRATIONS, keys, args).await?)?;
            let total = answer.parsed()?;
            let read =
                |packed| bytes("a registration", packed)?.as_deref().and_then(registration).ok_or_else(|| unreadable("a registration"));
            Ok(Page { items: answer.fields()?.rest().map(read).collect::<Result<_, _>>()?, total })
        })
    }
}

impl Shared {
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

    /// Replaces the terms that were read, and returns the current counts; `None` when the terms have
    /// changed since.
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
}

/// Sixteen bytes of transaction id, the time, a space, the sealed outcome.
fn registration(packed: &[u8]) -> Option<Registration> {
    let (txn, rest) = packed.split_first_chunk::<16>()?;
    let space = rest.iter().position(|byte| *byte == b' ')?;
    let verified_at = std::str::from_utf8(&rest[..space]).ok()?.parse().ok().map(Timestamp::from_millis)?;
    Some(Registration { txn: TxnId::from_bytes(*txn), verified_at, outcome: Sealed::from_bytes(&rest[space + 1..])? })
}

/// Reads registrations, scans, abandoned scans in the count, and those not in the count yet.
fn counts(fields: &mut Fields) -> Result<EventCounts, StoreError> {
    let (registrations, scans): (u32, u64) = (fields.parsed()?, fields.parsed()?);
    let (settled, passed): (i64, i64) = (fields.parsed()?, fields.parsed()?);
    let abandoned = u64::try_from(settled + passed).map_err(|_| unreadable("the counts of an event"))?;
    Ok(EventCounts { registrations, scans, abandoned })
}

fn partition(number: u8) -> Option<Partition> {
    keys::partitions().find(|partition| partition.number() == number)
}
