//! Erasure, some records at a time. Records without an index are found by a scan of their kind.

use std::collections::HashSet;
use std::sync::Arc;

use sakshi_domain::brand::Brand;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::limits::REFUSALS_KEPT_MAX;
use sakshi_domain::transaction::Outcome;

use super::guests::numbered;
use super::{Store, is_done};
use crate::engine::{Applied, Batch, Key, Place, Query, Record, ScanFrom, Table, Value};
use crate::erasure::Erased;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::client::client as client_record;
use crate::records::{event, flow, idempotency, refusal, tenancy, transaction};
use crate::sealing::seal_outcome;
use crate::transitions::{erasure, guests};

/// Keys processed at once.
const KEYS: usize = 1_000;
/// Records removed at once.
const STEP: usize = 100;
/// Guests processed at once.
const GUESTS: u64 = 1_000;

/// Ids of erased records, which stored responses may contain.
type Ids = HashSet<Vec<u8>>;

/// A scan of the records of a kind.
struct Search {
    table: &'static Table,
    /// Their partition, if it is known.
    place: Option<Place>,
    /// The fields to read of each record.
    fields: &'static [&'static str],
    next: Option<ScanFrom>,
}

/// Owner of the records to erase: a field, and its value in them.
struct Whose<'a> {
    field: &'static [&'static str; 1],
    name: &'a str,
}

impl Store {
    /// Erases all data of the subject. A webhook that is not in flight is not sent any more. Repeatable: erased records
    /// are not counted again. Data added meanwhile may stay.
    pub fn erase(&self, subject: ErasureSubject) -> StoreFuture<Erased> {
        self.run(|store| async move {
            let erased = match subject {
                ErasureSubject::Transaction(id) => store.erase_transaction(id).await?,
                ErasureSubject::Flow(id) => store.erase_flow(id).await?,
                ErasureSubject::Event(id) => store.erase_event(id).await?,
                ErasureSubject::App(id) => store.erase_app(id).await?,
                ErasureSubject::Client(id) => store.erase_client(&id).await?,
            };
            store.engine().purge().await?;
            if erased == Erased::default() { store.confirmed(erased).await } else { Ok(erased) }
        })
    }

    async fn erase_transaction(&self, id: TxnId) -> Result<Erased, StoreError> {
        let key = transaction::transaction(id);
        let place = key.place;
        let removed = self.remove(vec![key], erasure::FIELDS, erasure::transaction).await?;
        let lists = match removed.first() {
            Some((_, record)) if record.has("registration") => {
                let list = event::guests(id.partition(), EventId::from_bytes(record.array("event")?));
                vec![(list, record.integer("registration").unsigned_abs())]
            }
            Some(_) => vec![],
            // The transaction may expire long before its event.
            None => self.lists_of_guests(place).await?.into_iter().map(|list| (list, 1)).collect(),
        };
        let mut erased = Erased { transactions: removed.len() as u64, ..Erased::default() };
        for (list, first) in lists {
            if let Some(blanked) = self.erase_guest(&list, first, id).await? {
                erased.registrations += u64::from(blanked);
                break;
            }
        }
        erased.answers = self.erase_answers(Some(place), &Ids::from([id.as_bytes().to_vec()])).await?;
        Ok(erased)
    }

    async fn erase_flow(&self, id: FlowId) -> Result<Erased, StoreError> {
        let (key, ids) = (flow::flow(id), Ids::from([id.as_bytes().to_vec()]));
        let place = Some(key.place);
        let flows = self.erase_flows(place, vec![key]).await?;
        Ok(Erased { flows, answers: self.erase_answers(place, &ids).await?, ..Erased::default() })
    }

    async fn erase_event(&self, id: EventId) -> Result<Erased, StoreError> {
        let place = Some(Place::Partition(id.partition()));
        let mut ids = Ids::from([id.as_bytes().to_vec()]);
        // Once the event is gone, a pending guest can no longer be registered.
        let mut erased = self.remove_event(id).await?;
        let is_of_event = |record: &Record| record.bytes("event") == id.as_bytes();
        erased.transactions = self.erase_transactions(place, &["event"], is_of_event, &mut ids).await?;
        erased.answers = self.erase_answers(place, &ids).await?;
        Ok(erased)
    }

    async fn erase_app(&self, app: AppId) -> Result<Erased, StoreError> {
        let known = self.read_as_is(vec![Query::Fields(tenancy::app(&app), &["client"])]).await?.record()?;
        let client = known.map(|known| known.parsed::<ClientId>("client")).transpose()?;
        let place = client.map(|client| Place::Partition(client.partition()));
        self.erase_all(place, Whose { field: &["app"], name: app.as_str() }, std::slice::from_ref(&app)).await
    }

    async fn erase_client(&self, client: &ClientId) -> Result<Erased, StoreError> {
        let mut apps = Vec::new();
        let mut search = Search::new(&tenancy::APP, None, &["client"]);
        while let Some(found) = search.step(self, |record| record.text("client") == client.as_str()).await? {
            let id = |key: Key| String::from_utf8(key.id).ok()?.parse().ok();
            apps.extend(found.into_iter().filter_map(id));
        }
        let place = Some(Place::Partition(client.partition()));
        let now = self.read_as_is(vec![Query::Record(client_record(client))]).await?.now;
        let users = self.erase_users(client).await?;
        self.remove_client_log(client, now).await?;
        let erased = self.erase_all(place, Whose { field: &["client"], name: client.as_str() }, &apps).await?;
        Ok(Erased { users, ..erased })
    }

    /// Erases all data of an owner, and the refused requests of apps.
    async fn erase_all(&self, place: Option<Place>, whose: Whose<'_>, apps: &[AppId]) -> Result<Erased, StoreError> {
        let (mut erased, mut ids) = (Erased::default(), Ids::new());
        let Whose { field, name } = whose;
        let is_theirs = |record: &Record| record.text(field[0]) == name;
        let mut search = Search::new(&event::EVENT, place, field);
        while let Some(events) = search.step(self, is_theirs).await? {
            for Key { id, .. } in events {
                erased += self.remove_event(event_id(&id)?).await?;
                ids.insert(id);
            }
        }
        erased.transactions = self.erase_transactions(place, field, is_theirs, &mut ids).await?;
        let (mut search, mut flows) = (Search::new(&flow::FLOW, place, field), Vec::new());
        while let Some(found) = search.step(self, is_theirs).await? {
            flows.extend(found);
        }
        if !flows.is_empty() {
            ids.extend(flows.iter().map(|key| key.id.clone()));
            erased.flows = self.erase_flows(place, flows).await?;
        }
        for app in apps {
            erased.refusals += self.erase_refusals(app).await?;
        }
        erased.answers = self.erase_answers(place, &ids).await?;
        Ok(erased)
    }

    async fn erase_transactions(
        &self,
        place: Option<Place>,
        fields: &'static [&'static str],
        is_theirs: impl Fn(&Record) -> bool,
        ids: &mut Ids,
    ) -> Result<u64, StoreError> {
        let (mut search, mut erased) = (Search::new(&transaction::TRANSACTION, place, fields), 0);
        while let Some(found) = search.step(self, &is_theirs).await? {
            ids.extend(found.iter().map(|key| key.id.clone()));
            erased += self.remove(found, erasure::FIELDS, erasure::transaction).await?.len() as u64;
        }
        Ok(erased)
    }

    /// Erases flows with their reports, which may outlive them. The version of a flow shows if it got another report
    /// meanwhile.
    async fn erase_flows(&self, place: Option<Place>, flows: Vec<Key>) -> Result<u64, StoreError> {
        let ids: Ids = flows.iter().map(|key| key.id.clone()).collect();
        let (mut known, mut erased) = (self.records(flows, &["app"]).await?, 0);
        for _ in 0..ATTEMPTS {
            let mut search = Search::new(&flow::REPORT, place, &[]);
            while let Some(mut reports) = search.step(self, |_| true).await? {
                reports.retain(|key| key.id.get(..16).is_some_and(|flow| ids.contains(flow)));
                self.remove(reports, erasure::FIELDS, erasure::report).await?;
            }
            let again = self.records(self.remove_once(&known, erasure::flow).await?, &["app"]).await?;
            erased += (known.len() - again.len()) as u64;
            if again.is_empty() {
                return Ok(erased);
            }
            known = again;
        }
        Err(StoreError::Overloaded)
    }

    async fn remove_event(&self, id: EventId) -> Result<Erased, StoreError> {
        let key = event::event(id.partition(), id);
        let Some(record) = self.read_as_is(vec![Query::Fields(key, &["app", "registrations"])]).await?.record()? else {
            return Ok(Erased::default());
        };
        // An event that cannot be opened is erased all the same.
        let brand = self.load_event(id).await.ok().flatten().map(|event| event.terms.brand);
        let registrations = match self.commit(erasure::event(id, &record.parsed("app")?)).await? {
            Applied::Done { results, .. } => results.first().copied(),
            Applied::Refused { .. } => None,
        };
        let registrations = registrations.unwrap_or(record.integer("registrations")).unsigned_abs();
        for file in brand.iter().flat_map(Brand::files) {
            self.remove_logo(file).await?;
        }
        Ok(Erased { events: 1, registrations, ..Erased::default() })
    }

    async fn erase_refusals(&self, app: &AppId) -> Result<u64, StoreError> {
        let places = (0..REFUSALS_KEPT_MAX).map(|place| refusal::refusal(app, place));
        let places: Vec<Key> = self.records(places.collect(), &[]).await?.into_iter().map(|(key, _)| key).collect();
        let erased = places.len() as u64;
        self.commit(erasure::refusals(app, places)).await?;
        Ok(erased)
    }

    async fn erase_answers(&self, place: Option<Place>, ids: &Ids) -> Result<u64, StoreError> {
        let (mut search, mut erased) = (Search::new(&idempotency::IDEMPOTENCY, place, &["subject"]), 0);
        while let Some(found) = search.step(self, |record| ids.contains(record.bytes("subject"))).await? {
            erased += self.remove(found, &[], erasure::answer).await?.len() as u64;
        }
        Ok(erased)
    }

    /// Returns the lists of a partition's events that have guests.
    async fn lists_of_guests(&self, place: Place) -> Result<Vec<Key>, StoreError> {
        let (mut search, mut lists) = (Search::new(&event::EVENT, Some(place), &["registrations"]), Vec::new());
        while let Some(events) = search.step(self, |record| record.integer("registrations") > 0).await? {
            lists.extend(events.iter().map(|key| key.of(&event::GUESTS)));
        }
        Ok(lists)
    }

    /// Erases the personal data of an event's guest, whose number is at least `first`. Returns true if there was any,
    /// and `None` when there is no such guest.
    async fn erase_guest(&self, list: &Key, mut first: u64, id: TxnId) -> Result<Option<bool>, StoreError> {
        loop {
            let entries = self.read_as_is(vec![Query::entries(list.clone(), first, GUESTS)]).await?.entries()?;
            if entries.is_empty() {
                return Ok(None);
            }
            let is_guest = |entry: &Vec<Value>| matches!(&entry[..], [Value::Bytes(txn), ..] if txn == id.as_bytes());
            if let Some(place) = entries.iter().position(is_guest) {
                let number = first + place as u64;
                let was_known = self.blank_guest(list, number, id).await?;
                self.unmark_guests(list, number + 1, id).await?;
                return Ok(Some(was_known));
            }
            first += entries.len() as u64;
        }
    }

    /// Removes the marks that name an erased guest, from the number `first` on.
    async fn unmark_guests(&self, list: &Key, mut first: u64, id: TxnId) -> Result<(), StoreError> {
        let mut tries = 0;
        while tries < ATTEMPTS {
            let entries = self.read_as_is(vec![Query::entries(list.clone(), first, GUESTS)]).await?.entries()?;
            if entries.is_empty() {
                return Ok(());
            }
            let (read, mut has_changed) = (entries.len() as u64, false);
            for guest in numbered(first - 1, entries)?.iter().filter(|guest| guest.duplicate_of == Some(id)) {
                has_changed |= !is_done(&self.commit(guests::unmark(list, guest)).await?);
            }
            if has_changed {
                tries += 1;
            } else {
                first += read;
            }
        }
        Err(StoreError::Overloaded)
    }

    async fn blank_guest(&self, list: &Key, number: u64, id: TxnId) -> Result<bool, StoreError> {
        let (nothing, mut was_known) = (seal_outcome(self.vault(), id, &Outcome::Verified(Arc::default())), false);
        for _ in 0..ATTEMPTS {
            let of = |list: Key| Query::entries(list, number, 1);
            let mut answers = self.read_as_is(vec![of(list.clone()), of(list.of(&event::SHARED))]).await?;
            let guest = numbered(number - 1, answers.entries()?)?.pop();
            let Some((guest, shared)) = guest.zip(answers.entries()?.pop()) else { return Ok(was_known) };
            let Some(batch) = guests::erase(list, &guest, &shared, self.vault(), &nothing)? else {
                return Ok(was_known);
            };
            was_known = true;
            if is_done(&self.commit(batch).await?) {
                return Ok(true);
            }
        }
        Err(StoreError::Overloaded)
    }

    /// Removes records as they were read, until none has changed meanwhile. Returns the removed ones in their final
    /// state.
    async fn remove(
        &self,
        keys: Vec<Key>,
        fields: &'static [&'static str],
        removal: impl Fn(&Key, &Record) -> Batch,
    ) -> Result<Vec<(Key, Record)>, StoreError> {
        let (mut left, mut removed) = (self.records(keys, fields).await?, Vec::new());
        for _ in 0..ATTEMPTS {
            if left.is_empty() {
                return Ok(removed);
            }
            // A removal whose response was lost is refused as well, and the record is not found again.
            let again = self.records(self.remove_once(&left, &removal).await?, fields).await?;
            removed.extend(left.into_iter().filter(|(key, _)| again.iter().all(|(other, _)| other != key)));
            left = again;
        }
        Err(StoreError::Overloaded)
    }

    /// Removes records that are unchanged since they were read. Returns the keys of the others.
    async fn remove_once(
        &self,
        known: &[(Key, Record)],
        removal: impl Fn(&Key, &Record) -> Batch,
    ) -> Result<Vec<Key>, StoreError> {
        let mut refused = Vec::new();
        for some in known.chunks(STEP) {
            let applied = self.commit_as_is(some.iter().map(|(key, record)| removal(key, record)).collect()).await?;
            refused.extend(
                some.iter().zip(applied).filter(|(_, applied)| !is_done(applied)).map(|((key, _), _)| key.clone()),
            );
        }
        Ok(refused)
    }

    /// Reads the records under these keys that exist.
    async fn records(&self, keys: Vec<Key>, fields: &'static [&'static str]) -> Result<Vec<(Key, Record)>, StoreError> {
        let mut known = Vec::new();
        for some in keys.chunks(KEYS) {
            let mut answers =
                self.read_as_is(some.iter().map(|key| Query::Fields(key.clone(), fields)).collect()).await?;
            for key in some {
                known.extend(answers.record()?.map(|record| (key.clone(), record)));
            }
        }
        Ok(known)
    }
}

impl Search {
    fn new(table: &'static Table, place: Option<Place>, fields: &'static [&'static str]) -> Self {
        Self { table, place, fields, next: Some(ScanFrom::default()) }
    }

    /// Returns the next matching keys, possibly none; `None` at the end.
    async fn step(
        &mut self,
        store: &Store,
        is_meant: impl Fn(&Record) -> bool,
    ) -> Result<Option<Vec<Key>>, StoreError> {
        let Some(from) = self.next.take() else { return Ok(None) };
        let scanned = store.engine().scan(self.table, from, KEYS).await?;
        self.next = scanned.next;
        let mut keys = scanned.keys;
        keys.retain(|key| self.place.is_none_or(|place| key.place == place));
        let known = store.records(keys, self.fields).await?;
        Ok(Some(known.into_iter().filter(|(_, record)| is_meant(record)).map(|(key, _)| key).collect()))
    }
}

fn event_id(id: &[u8]) -> Result<EventId, StoreError> {
    id.try_into().map(EventId::from_bytes).map_err(|_| StoreError::unreadable("the id of an event"))
}
