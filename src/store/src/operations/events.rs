//! Events: creating, reading, listing and changing them.

use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId, Partition};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_domain::time::Timestamp;

use super::{Store, new_call_id};
use crate::engine::{Answers, Applied, Batch, Key, Operand, Query, Record, ScoredMember};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::events::{CreateEvent, PatchEventOutcome, has_tag};
use crate::idempotency::CreateOutcome;
use crate::paging::{Page, PageRequest};
use crate::records::{client, event, tenancy};
use crate::sealing::SealedTerms;
use crate::transitions::event as transitions;

/// Number of listed events whose existence is checked at once.
const EVENTS_CHECKED_AT_ONCE: u64 = 1_000;
/// Number of events read at once.
const EVENTS_READ_AT_ONCE: usize = 100;

impl Store {
    /// Confirms that an event as read lacks nothing, before a part of it is reported as missing: no failover lost it,
    /// and this node reaches the primary.
    pub fn confirm_absence(&self) -> StoreFuture<()> {
        self.run(|store| async move { store.unless_records_were_lost(()).await })
    }

    /// Creates an event, and stores the response for its idempotency key. Repeatable by event id.
    pub fn create_event(&self, create: CreateEvent) -> StoreFuture<CreateOutcome> {
        self.run(|store| async move {
            let (id, app) = (create.event.id, create.event.app.clone());
            for is_last_attempt in [false, true] {
                let sealed = SealedTerms::seal(store.vault(), id, &create.event.terms)?;
                let (batch, creation) = transitions::create(&create, sealed, store.0.retention.events);
                match creation.outcome(store.commit(batch).await?) {
                    // Some listed events may no longer exist.
                    CreateOutcome::LimitReached if !is_last_attempt => {
                        store.delist_missing(&event::key_of_events(id.partition(), &app)).await?;
                    }
                    CreateOutcome::ClientNotFound => {
                        return store.unless_records_were_lost(CreateOutcome::ClientNotFound).await;
                    }
                    outcome => return Ok(outcome),
                }
            }
            Ok(CreateOutcome::LimitReached)
        })
    }

    /// Returns the event with its current counts.
    pub fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>> {
        self.run(move |store| async move {
            let mut answers = store.read(event_queries(id).into()).await?;
            let Some(mut event) = store.decode_event(id, &mut answers)? else {
                return store.unless_records_were_lost(None).await;
            };
            store.apply_client_state(std::slice::from_mut(&mut event)).await?;
            Ok(Some(event))
        })
    }

    /// Returns the event in one read, with the state of its client, whom the caller knows.
    pub fn load_event_of(&self, id: EventId, client: ClientId) -> StoreFuture<Option<Event>> {
        self.run(move |store| async move {
            let queries = event_queries(id).into_iter().chain([client_query(&client)]).collect();
            let mut answers = store.read(queries).await?;
            let Some(mut event) = store.decode_event(id, &mut answers)? else {
                return store.unless_records_were_lost(None).await;
            };
            apply_client_state(std::slice::from_mut(&mut event), &answers.record()?.unwrap_or_default());
            Ok(Some(event))
        })
    }

    /// Returns the app's events by creation time.
    pub fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>> {
        self.run(move |store| async move {
            let Some(events) = store.event_list(&app).await? else {
                return store.unless_records_were_lost(Page::empty()).await;
            };
            store.delist_missing(&events).await?;
            let queries = vec![Query::count(events.clone()), Query::page(events, page.offset(), page.page_size.into())];
            let mut answers = store.read(queries).await?;
            let (total, members) = (answers.number()?, answers.members()?);
            let mut items = Vec::with_capacity(members.len());
            for slice in members.chunks(EVENTS_READ_AT_ONCE) {
                items.extend(store.load_listed_events(slice).await?);
            }
            store.apply_client_state(&mut items).await?;
            Ok(Page { items, total })
        })
    }

    /// Changes an event of this app, by the store's clock and the current counts of the event. The change is applied
    /// once, even if a response is lost.
    pub fn patch_event(&self, id: EventId, app: AppId, patch: EventPatch) -> StoreFuture<PatchEventOutcome> {
        self.run(move |store| async move {
            let (event_key, call) = (event::key_of_event(id.partition(), id), new_call_id());
            for _ in 0..ATTEMPTS {
                let mut queries = event_queries(id).to_vec();
                queries.extend([Query::Last(event_key.in_table(&event::WAITING)), Query::Record(event_key.clone())]);
                let mut answers = store.read_confirmed(queries).await?;
                let event = store.decode_event(id, &mut answers)?.filter(|event| event.app == app);
                let Some(mut event) = event else {
                    return store.unless_records_were_lost(PatchEventOutcome::NotFound).await;
                };
                let last_scan_end = answers.members()?.first().map(|(_, end)| Timestamp::from_millis(*end));
                let before = answers.record()?.unwrap_or_default();
                if transitions::is_changed_by(&before, &call) {
                    // The response to an earlier attempt was lost, and another change came after it.
                    return store.patched_outcome(event).await;
                }
                if !has_tag(&event.terms, patch.only_if.as_deref()) {
                    return Ok(PatchEventOutcome::PreconditionFailed);
                }
                event.terms = match event.patched(patch.clone(), answers.now) {
                    Ok(terms) => terms,
                    Err(invalid) => return Ok(PatchEventOutcome::Refused(invalid)),
                };
                let sealed = SealedTerms::seal(store.vault(), id, &event.terms)?;
                let batch = transitions::patch(&before, &event, sealed, last_scan_end, store.0.retention, call);
                if let Applied::Done { results, .. } = store.commit(batch).await? {
                    return store.patched_outcome(transitions::patched_event(event, &results)).await;
                }
            }
            Err(StoreError::Overloaded)
        })
    }
}

/// Returns the queries that read an event: its pending scans, those whose window has passed, and its record.
fn event_queries(id: EventId) -> [Query; 3] {
    let event_key = event::key_of_event(id.partition(), id);
    let waiting = event_key.in_table(&event::WAITING);
    [Query::count(waiting.clone()), Query::Count(waiting, Operand::NOW), Query::Record(event_key)]
}

/// Returns the query for the state of a client that [`apply_client_state`] applies.
fn client_query(id: &ClientId) -> Query {
    Query::Fields(client::key_of_client(id), &["suspended_at", "balance"])
}

/// Marks events of a suspended client as inactive, and events as funded if the client's balance covers a verification.
fn apply_client_state(events: &mut [Event], client: &Record) {
    let is_funded = client.integer("balance") >= i64::try_from(CREDITS_PER_VERIFICATION).unwrap_or(i64::MAX);
    for event in events {
        event.terms.is_active &= !client.has("suspended_at");
        event.is_funded = is_funded;
    }
}

impl Store {
    /// Returns the outcome of a change, with the state of the client.
    async fn patched_outcome(&self, event: Event) -> Result<PatchEventOutcome, StoreError> {
        let mut events = [event];
        self.apply_client_state(&mut events).await?;
        let [event] = events;
        Ok(PatchEventOutcome::Patched(Box::new(event)))
    }

    /// Decodes the answers to [`event_queries`].
    fn decode_event(&self, id: EventId, answers: &mut Answers) -> Result<Option<Event>, StoreError> {
        let (unanswered, overdue) = (answers.number()?, answers.number()?);
        answers
            .record()?
            .map(|record| transitions::decode_event(self.vault(), id, &record, unanswered, overdue))
            .transpose()
    }

    /// Returns the events that these members of a list name, if they still exist.
    async fn load_listed_events(&self, members: &[ScoredMember]) -> Result<Vec<Event>, StoreError> {
        let id = |(member, _): &ScoredMember| member.as_slice().try_into().map(EventId::from_bytes);
        let ids: Vec<EventId> = members
            .iter()
            .map(id)
            .collect::<Result<_, _>>()
            .map_err(|_| StoreError::unreadable("the id of an event"))?;
        let mut answers = self.read(ids.iter().flat_map(|id| event_queries(*id)).collect()).await?;
        ids.into_iter().filter_map(|id| self.decode_event(id, &mut answers).transpose()).collect()
    }

    /// Reads the client that owns all these events, and applies its state to them; see the function
    /// [`apply_client_state`].
    async fn apply_client_state(&self, events: &mut [Event]) -> Result<(), StoreError> {
        let Some(Event { client, .. }) = events.first() else { return Ok(()) };
        let client = self.read(vec![client_query(client)]).await?.record()?;
        apply_client_state(events, &client.unwrap_or_default());
        Ok(())
    }

    /// Returns the key of the list of an app's events; `None` if there is no list. An erased app may still have events,
    /// so its list is searched in all partitions.
    async fn event_list(&self, app: &AppId) -> Result<Option<Key>, StoreError> {
        let record = self.read(vec![Query::Fields(tenancy::key_of_app(app), &["client"])]).await?.record()?;
        if let Some(record) = record {
            let client: ClientId = record.parsed("client")?;
            return Ok(Some(event::key_of_events(client.partition(), app)));
        }
        let lists: Vec<Key> = Partition::all().map(|partition| event::key_of_events(partition, app)).collect();
        let mut answers = self.read(lists.iter().map(|list| Query::count(list.clone())).collect()).await?;
        for list in lists {
            if answers.number()? > 0 {
                return Ok(Some(list));
            }
        }
        Ok(None)
    }

    /// Removes events that no longer exist from the lists of their app. Only events whose listed end has passed are
    /// checked; an event with a late scan outlives it.
    async fn delist_missing(&self, events: &Key) -> Result<(), StoreError> {
        let ends = events.in_table(&event::EVENT_ENDS);
        loop {
            let query = Query::members_in_past(ends.clone(), EVENTS_CHECKED_AT_ONCE);
            let members = self.read(vec![query]).await?.members()?;
            let record = |(member, _): &ScoredMember| {
                Query::Fields(Key { table: &event::EVENT, id: member.clone(), ..events.clone() }, &["app"])
            };
            let mut answers = self.read(members.iter().map(record).collect()).await?;
            let mut ops = Vec::new();
            for (member, _) in &members {
                if answers.record()?.is_none() {
                    ops.extend(transitions::delist(events, member));
                }
            }
            let continues = !ops.is_empty() && members.len() as u64 == EVENTS_CHECKED_AT_ONCE;
            if !ops.is_empty() {
                self.commit(Batch::even_when_full(vec![], ops)).await?;
            }
            if !continues {
                return Ok(());
            }
        }
    }
}
