//! Events: creating, reading, listing and changing them, and listing their guests.

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::event::{Event, EventCounts, EventPatch};
use sakshi_domain::ids::{AppId, EventId, TxnId};
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::reply::Fields;
use super::script::{CREATE_EVENT, LIST_EVENTS, LIST_REGISTRATIONS, LOAD_EVENT, PATCH_EVENT};
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::events::{CreateEvent, Events, PatchEventOutcome, Registration};
use crate::idempotency::CreateOutcome;
use crate::paging::{Page, PageRequest, Rows};
use crate::sealing::{SealedTerms, open_event};
use crate::vault::Sealed;

/// Events of a page that are read from Redis at the same time.
const CHUNK: usize = 100;

/// An event as it was read, with the sealed terms that a change must find unchanged.
struct LoadedEvent {
    event: Event,
    sealed: Vec<u8>,
    now: Timestamp,
}

impl Events for RedisStore {
    fn create_event(&self, create: CreateEvent) -> StoreFuture<CreateOutcome> {
        self.run(|store| async move {
            let CreateEvent { event: Event { id, client, app, created_at, terms, .. }, most, idempotency } = create;
            let keep = terms.retention.registrations(store.retention.events);
            let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms, .. } =
                SealedTerms::seal(&store.vault, id, &terms)?;
            // The app must name the partition of its events before there are any.
            store.ensure_app(&app, &client, None).await?;
            let partition = id.partition();
            let [event, ..] = keys::event(partition, Some(id));
            let [events_of_app, ends_of_app] = keys::events_of_app(partition, &app);
            let answer = keys::idempotency(partition, idempotency.as_ref().map(|request| &request.scope.digest));
            let keys = vec![event, keys::client(partition, &client), answer, events_of_app, ends_of_app];
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
                expires_at + keep,
                most,
            ];
            store.create(&CREATE_EVENT, keys, args, idempotency.as_ref()).await
        })
    }

    fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>> {
        self.run(move |store| async move {
            let Some(LoadedEvent { mut event, .. }) = store.find_event(id).await? else { return Ok(None) };
            store.show(std::slice::from_mut(&mut event)).await?;
            Ok(Some(event))
        })
    }

    fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>> {
        self.run(move |store| async move {
            let number = store.read("an app", cmd("HGET").arg(keys::app(&app)).arg("p")).await?.optional_parsed::<u8>()?;
            let Some(number) = number else { return store.confirm(Page::empty()).await };
            let partition = keys::partitions().find(|partition| partition.number() == number);
            let partition = partition.ok_or_else(|| StoreError::unreadable("an app"))?;
            let (first, last) = page.index_range();
            let keys = keys::events_of_app(partition, &app).into();
            let mut answer = store.call(&LIST_EVENTS, keys, arguments![first, last]).await?.fields()?;
            let total = answer.parsed()?;
            // A member is the event's number in twelve digits, then its id.
            let id = |member: Vec<u8>| std::str::from_utf8(member.get(12..)?).ok()?.parse().ok();
            let ids: Vec<EventId> = answer.value()?.fields()?.all(id)?;
            let mut items = Vec::with_capacity(ids.len());
            for chunk in ids.chunks(CHUNK) {
                items.extend(
                    try_join_all(chunk.iter().map(|id| store.find_event(*id))).await?.into_iter().flatten().map(|found| found.event),
                );
            }
            store.show(&mut items).await?;
            Ok(Page { items, total })
        })
    }

    /// Writes the change only if the event is still as it was read; otherwise it starts again.
    fn patch_event(&self, id: EventId, app: AppId, patch: EventPatch) -> StoreFuture<PatchEventOutcome> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                let found = store.find_event(id).await?.filter(|found| found.event.app == app);
                let Some(LoadedEvent { mut event, sealed, now }) = found else { return Ok(PatchEventOutcome::NotFound) };
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

    /// Registrations are only appended, so an offset finds the same ones each time.
    fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>> {
        self.run(move |store| async move {
            let [event, registrations, _] = keys::event(id.partition(), Some(id));
            let keys = vec![event, registrations];
            let args = arguments![rows.offset, rows.limit, rows.max_bytes];
            let mut answer = store.call(&LIST_REGISTRATIONS, keys, args).await?.fields()?;
            let total = answer.parsed()?;
            Ok(Page { items: answer.value()?.fields()?.all(|packed| registration(&packed))?, total })
        })
    }
}

impl Shared {
    async fn find_event(&self, id: EventId) -> Result<Option<LoadedEvent>, StoreError> {
        let [event, _, waiting] = keys::event(id.partition(), Some(id));
        let found = self.call(&LOAD_EVENT, vec![event, waiting], vec![]).await?;
        let Some(mut fields) = found.optional_fields()? else { return self.confirm(None).await };
        let (client, app, created_at, sealed) = (fields.parsed()?, fields.parsed()?, fields.time()?, fields.bytes()?);
        let counts = counts(&mut fields)?;
        let event = Event { id, client, app, created_at, terms: open_event(&self.vault, id, sealed.as_slice())?, counts };
        Ok(Some(LoadedEvent { event, sealed, now: fields.time()? }))
    }

    /// Makes events of one client what is to be seen of them: those of a suspended client are disabled for as long.
    async fn show(&self, events: &mut [Event]) -> Result<(), StoreError> {
        let Some(Event { client, .. }) = events.first() else { return Ok(()) };
        let asked = cmd("HEXISTS").arg(keys::client(client.partition(), client)).arg("z").to_owned();
        if self.read("a client", &asked).await?.succeeded()? {
            events.iter_mut().for_each(|event| event.terms.is_active = false);
        }
        Ok(())
    }

    /// Replaces the terms that were read, and returns the current counts; `None` when the terms have
    /// changed since.
    async fn commit_patch(&self, event: &Event, before: Vec<u8>, end: Option<Timestamp>) -> Result<Option<EventCounts>, StoreError> {
        let SealedTerms { is_active, expires_at, max_guests, origin, webhook, terms, .. } =
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
            event.terms.retention.registrations(self.retention.events),
            self.retention.expired,
        ];
        let mut answer = self.call(&PATCH_EVENT, keys, args).await?.fields()?;
        match answer.text()?.as_str() {
            "patched" => counts(&mut answer.value()?.fields()?).map(Some),
            "changed" | "gone" => Ok(None),
            _ => Err(answer.unreadable()),
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

/// Reads registrations, scans, the abandoned scans that are counted, and the expired ones that are not counted yet.
fn counts(fields: &mut Fields) -> Result<EventCounts, StoreError> {
    let (registrations, scans): (u32, u64) = (fields.parsed()?, fields.parsed()?);
    let (counted, uncounted): (i64, i64) = (fields.parsed()?, fields.parsed()?);
    let abandoned = counted.checked_add(uncounted).and_then(|abandoned| u64::try_from(abandoned).ok());
    let abandoned = abandoned.ok_or_else(|| StoreError::unreadable("the counts of an event"))?;
    Ok(EventCounts { registrations, scans, abandoned })
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::redis::reply::Reply;

    #[test]
    fn counts_that_no_event_can_have_are_unreadable() {
        let read = |counted: i64, uncounted: i64| {
            let numbers = [1, 2, counted, uncounted].map(Value::Int).to_vec();
            counts(&mut Reply::new("an event", Value::Array(numbers)).fields().unwrap())
        };
        assert_eq!(read(3, 4).unwrap(), EventCounts { registrations: 1, scans: 2, abandoned: 7 });
        for (counted, uncounted) in [(i64::MAX, 1), (i64::MIN, -1), (i64::MIN, i64::MIN), (0, -1)] {
            assert!(matches!(read(counted, uncounted), Err(StoreError::Corrupt(_))), "{counted} {uncounted}");
        }
    }
}
