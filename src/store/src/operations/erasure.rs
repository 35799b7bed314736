//! Erasure, in chunks of records. Records without an index are found by scanning their kind.

use std::collections::HashSet;
use std::sync::Arc;

use sakshi_domain::brand::Brand;
use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::limits::REFUSALS_KEPT_MAX;
use sakshi_domain::transaction::Outcome;

use super::guests::decode_guests;
use super::{Store, is_done};
use crate::engine::{Applied, Batch, FLOW_ID_BYTES, Key, Place, Query, Record, ScanFrom, Table, Value};
use crate::erasure::Erased;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::client::key_of_client as client_record;
use crate::records::{event, flow, idempotency, refusal, tenancy, transaction};
use crate::sealing::seal_outcome;
use crate::transitions::{erasure, guests};

/// Number of keys read at once.
const KEYS_AT_ONCE: usize = 1_000;
/// Number of records removed at once.
const REMOVALS_AT_ONCE: usize = 100;
/// Number of guests read at once.
const GUESTS_AT_ONCE: u64 = 1_000;

/// Ids of erased records. Responses stored for these records are erased as well.
type Ids = HashSet<Vec<u8>>;

/// A scan of the records of a kind, in steps.
struct KindScan {
    table: &'static Table,
    /// The partition of the records, if it is known.
    place: Option<Place>,
    /// The fields to read of each record.
    fields: &'static [&'static str],
    /// Position of the next step; `None` at the end.
    next: Option<ScanFrom>,
}

/// Selects the records of an owner, an app or a client, by the value of a field.
struct OwnerFilter<'a> {
    /// Name of the field, as a list of fields to read.
    field: &'static [&'static str; 1],
    value: &'a str,
}

impl Store {
    /// Erases all data of the subject. Webhooks that are not in flight are no longer sent. Data that is added during
    /// the erasure may stay. Repeatable: a record is counted once.
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
            if erased == Erased::default() { store.unless_records_were_lost(erased).await } else { Ok(erased) }
        })
    }

    /// Erases a transaction, with the personal data of its guest.
    async fn erase_transaction(&self, id: TxnId) -> Result<Erased, StoreError> {
        let key = transaction::key_of_transaction(id);
        let place = key.place;
        let removed = self.remove(vec![key], erasure::FIELDS, erasure::remove_transaction).await?;
        let lists = match removed.first() {
            Some((_, record)) if record.has("registration") => {
                let list = event::key_of_guests(id.partition(), EventId::from_bytes(record.array("event")?));
                vec![(list, record.integer("registration").unsigned_abs())]
            }
            Some(_) => vec![],
            // The transaction may expire long before its event.
            None => self.guest_lists(place).await?.into_iter().map(|list| (list, 1)).collect(),
        };
        let mut erased = Erased { transactions: removed.len() as u64, ..Erased::default() };
        for (list, first) in lists {
            if let Some(had_data) = self.erase_guest(&list, first, id).await? {
                erased.registrations += u64::from(had_data);
                break;
            }
        }
        erased.answers = self.erase_answers(Some(place), &Ids::from([id.as_bytes().to_vec()])).await?;
        Ok(erased)
    }

    /// Erases a flow with its reports.
    async fn erase_flow(&self, id: FlowId) -> Result<Erased, StoreError> {
        let (key, ids) = (flow::key_of_flow(id), Ids::from([id.as_bytes().to_vec()]));
        let place = Some(key.place);
        let flows = self.erase_flows(place, vec![key]).await?;
        Ok(Erased { flows, answers: self.erase_answers(place, &ids).await?, ..Erased::default() })
    }

    /// Erases an event with its guests and their transactions.
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

    /// Erases the data of an app.
    async fn erase_app(&self, app: AppId) -> Result<Erased, StoreError> {
        let record = self.read_as_is(vec![Query::Fields(tenancy::key_of_app(&app), &["client"])]).await?.record()?;
        let client = record.map(|record| record.parsed::<ClientId>("client")).transpose()?;
        let place = client.map(|client| Place::Partition(client.partition()));
        self.erase_owned(place, OwnerFilter { field: &["app"], value: app.as_str() }, std::slice::from_ref(&app)).await
    }

    /// Erases the data of a client, of all its apps and of its users.
    async fn erase_client(&self, client: &ClientId) -> Result<Erased, StoreError> {
        let mut apps = Vec::new();
        let mut scan = KindScan::new(&tenancy::APP, None, &["client"]);
        while let Some(keys) = scan.next_keys(self, |record| record.text("client") == client.as_str()).await? {
            let id = |key: Key| String::from_utf8(key.id).ok()?.parse().ok();
            apps.extend(keys.into_iter().filter_map(id));
        }
        let place = Some(Place::Partition(client.partition()));
        let now = self.read_as_is(vec![Query::Record(client_record(client))]).await?.now;
        let users = self.erase_users(client).await?;
        self.remove_client_log(client, now).await?;
        let erased = self.erase_owned(place, OwnerFilter { field: &["client"], value: client.as_str() }, &apps).await?;
        Ok(Erased { users, ..erased })
    }

    /// Erases all data of an owner, and the refused requests of apps.
    async fn erase_owned(
        &self,
        place: Option<Place>,
        owner: OwnerFilter<'_>,
        apps: &[AppId],
    ) -> Result<Erased, StoreError> {
        let (mut erased, mut ids) = (Erased::default(), Ids::new());
        let OwnerFilter { field, value } = owner;
        let is_owned = |record: &Record| record.text(field[0]) == value;
        let mut scan = KindScan::new(&event::EVENT, place, field);
        while let Some(events) = scan.next_keys(self, is_owned).await? {
            for Key { id, .. } in events {
                erased += self.remove_event(event_id(&id)?).await?;
                ids.insert(id);
            }
        }
        erased.transactions = self.erase_transactions(place, field, is_owned, &mut ids).await?;
        let (mut scan, mut flows) = (KindScan::new(&flow::FLOW, place, field), Vec::new());
        while let Some(keys) = scan.next_keys(self, is_owned).await? {
            flows.extend(keys);
        }
        // A report with an unfinished webhook outlives its flow.
        let known: Ids = flows.iter().map(|key| key.id.clone()).collect();
        let with_webhooks = self.flows_with_deliveries(|delivery| owner.owns(delivery)).await?;
        flows.extend(with_webhooks.into_iter().map(flow::key_of_flow).filter(|key| !known.contains(&key.id)));
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

    /// Erases the transactions that `is_selected` selects by these fields, and adds their ids to `ids`.
    async fn erase_transactions(
        &self,
        place: Option<Place>,
        fields: &'static [&'static str],
        is_selected: impl Fn(&Record) -> bool,
        ids: &mut Ids,
    ) -> Result<u64, StoreError> {
        let (mut scan, mut erased) = (KindScan::new(&transaction::TRANSACTION, place, fields), 0);
        while let Some(keys) = scan.next_keys(self, &is_selected).await? {
            ids.extend(keys.iter().map(|key| key.id.clone()));
            erased += self.remove(keys, erasure::FIELDS, erasure::remove_transaction).await?.len() as u64;
        }
        Ok(erased)
    }

    /// Erases flows with their reports, which may outlive them. A new report raises the version of its flow, and the
    /// flow is then erased again. Returns the number of flows of which something was erased.
    async fn erase_flows(&self, place: Option<Place>, flows: Vec<Key>) -> Result<u64, StoreError> {
        let ids: Ids = flows.iter().map(|key| key.id.clone()).collect();
        let mut remaining = self.read_records(flows, &["app"]).await?;
        let mut erased: Ids = remaining.iter().map(|(key, _)| key.id.clone()).collect();
        for _ in 0..ATTEMPTS {
            let mut scan = KindScan::new(&flow::REPORT, place, &[]);
            while let Some(mut reports) = scan.next_keys(self, |_| true).await? {
                reports.retain(|key| key.id.get(..FLOW_ID_BYTES).is_some_and(|flow| ids.contains(flow)));
                let removed = self.remove(reports, erasure::FIELDS, erasure::remove_report).await?;
                erased.extend(removed.iter().filter_map(|(key, _)| key.id.get(..FLOW_ID_BYTES)).map(<[u8]>::to_vec));
            }
            let changed = self.remove_once(&remaining, erasure::remove_flow).await?;
            remaining = self.read_records(changed, &["app"]).await?;
            if remaining.is_empty() {
                return Ok(erased.len() as u64);
            }
        }
        Err(StoreError::Overloaded)
    }

    /// Removes an event with its guests and its logos.
    async fn remove_event(&self, id: EventId) -> Result<Erased, StoreError> {
        let key = event::key_of_event(id.partition(), id);
        let Some(record) = self.read_as_is(vec![Query::Fields(key, &["app", "registrations"])]).await?.record()? else {
            return Ok(Erased::default());
        };
        // An event that the vault cannot open is erased nevertheless.
        let brand = self.load_event(id).await.ok().flatten().map(|event| event.terms.brand);
        let registrations = match self.commit(erasure::remove_event(id, &record.parsed("app")?)).await? {
            Applied::Done { results, .. } => results.first().copied(),
            Applied::Refused { .. } => None,
        };
        let registrations = registrations.unwrap_or(record.integer("registrations")).unsigned_abs();
        for file in brand.iter().flat_map(Brand::files) {
            self.remove_logo(file).await?;
        }
        Ok(Erased { events: 1, registrations, ..Erased::default() })
    }

    /// Erases the refused requests of an app. Returns their number.
    async fn erase_refusals(&self, app: &AppId) -> Result<u64, StoreError> {
        let slots = (0..REFUSALS_KEPT_MAX).map(|slot| refusal::key_of_refusal(app, slot));
        let slots: Vec<Key> = self.read_records(slots.collect(), &[]).await?.into_iter().map(|(key, _)| key).collect();
        let erased = slots.len() as u64;
        self.commit(erasure::remove_refusals(app, slots)).await?;
        Ok(erased)
    }

    /// Erases the responses that created an object with one of these ids. Returns their number.
    async fn erase_answers(&self, place: Option<Place>, ids: &Ids) -> Result<u64, StoreError> {
        let (mut scan, mut erased) = (KindScan::new(&idempotency::IDEMPOTENCY, place, &["subject"]), 0);
        while let Some(keys) = scan.next_keys(self, |record| ids.contains(record.bytes("subject"))).await? {
            erased += self.remove(keys, &[], erasure::remove_answer).await?.len() as u64;
        }
        Ok(erased)
    }

    /// Returns the guest lists of a partition's events, without empty lists.
    async fn guest_lists(&self, place: Place) -> Result<Vec<Key>, StoreError> {
        let (mut scan, mut lists) = (KindScan::new(&event::EVENT, Some(place), &["registrations"]), Vec::new());
        while let Some(events) = scan.next_keys(self, |record| record.integer("registrations") > 0).await? {
            lists.extend(events.iter().map(|key| key.in_table(&event::GUESTS)));
        }
        Ok(lists)
    }

    /// Erases the personal data of the guest with this transaction, who has at least the number `first` in an event's
    /// list. Returns true if the guest still had data, and `None` if the list has no such guest.
    async fn erase_guest(&self, list: &Key, mut first: u64, id: TxnId) -> Result<Option<bool>, StoreError> {
        loop {
            let entries =
                self.read_as_is(vec![Query::entries(list.clone(), first, GUESTS_AT_ONCE)]).await?.entries()?;
            if entries.is_empty() {
                return Ok(None);
            }
            let is_guest = |entry: &Vec<Value>| matches!(&entry[..], [Value::Bytes(txn), ..] if txn == id.as_bytes());
            if let Some(index) = entries.iter().position(is_guest) {
                let number = first + index as u64;
                let had_data = self.erase_guest_data(list, number, id).await?;
                self.unmark_guests(list, number + 1, id).await?;
                return Ok(Some(had_data));
            }
            first += entries.len() as u64;
        }
    }

    /// Removes the marks of later guests as duplicates of an erased guest, from the guest with number `first` on.
    async fn unmark_guests(&self, list: &Key, mut first: u64, id: TxnId) -> Result<(), StoreError> {
        let mut retries = 0;
        while retries < ATTEMPTS {
            let entries =
                self.read_as_is(vec![Query::entries(list.clone(), first, GUESTS_AT_ONCE)]).await?.entries()?;
            if entries.is_empty() {
                return Ok(());
            }
            let (entries_read, mut has_changed) = (entries.len() as u64, false);
            for guest in decode_guests(first - 1, entries)?.iter().filter(|guest| guest.duplicate_of == Some(id)) {
                has_changed |= !is_done(&self.commit(guests::unmark_duplicate(list, guest)).await?);
            }
            if has_changed {
                retries += 1;
            } else {
                first += entries_read;
            }
        }
        Err(StoreError::Overloaded)
    }

    /// Erases the personal data of the guest with this number. Returns true if the guest still had data.
    async fn erase_guest_data(&self, list: &Key, number: u64, id: TxnId) -> Result<bool, StoreError> {
        let (empty_outcome, mut had_data) = (seal_outcome(self.vault(), id, &Outcome::Verified(Arc::default())), false);
        for _ in 0..ATTEMPTS {
            let entry = |list: Key| Query::entry(list, number);
            let mut answers = self.read_as_is(vec![entry(list.clone()), entry(list.in_table(&event::SHARED))]).await?;
            let guest = decode_guests(number - 1, answers.entries()?)?.pop();
            let Some((guest, shared)) = guest.zip(answers.entries()?.pop()) else { return Ok(had_data) };
            let Some(batch) = guests::erase(list, &guest, &shared, self.vault(), &empty_outcome)? else {
                return Ok(had_data);
            };
            had_data = true;
            if is_done(&self.commit(batch).await?) {
                return Ok(true);
            }
        }
        Err(StoreError::Overloaded)
    }

    /// Removes records and retries those that changed after they were read. Returns the removed records.
    async fn remove(
        &self,
        keys: Vec<Key>,
        fields: &'static [&'static str],
        removal: impl Fn(&Key, &Record) -> Batch,
    ) -> Result<Vec<(Key, Record)>, StoreError> {
        let (mut remaining, mut removed) = (self.read_records(keys, fields).await?, Vec::new());
        for _ in 0..ATTEMPTS {
            if remaining.is_empty() {
                return Ok(removed);
            }
            // A removal whose response was lost is also refused, but its record no longer exists.
            let changed = self.read_records(self.remove_once(&remaining, &removal).await?, fields).await?;
            removed.extend(remaining.into_iter().filter(|(key, _)| changed.iter().all(|(other, _)| other != key)));
            remaining = changed;
        }
        Err(StoreError::Overloaded)
    }

    /// Removes records that are unchanged since they were read. Returns the keys of the changed records.
    async fn remove_once(
        &self,
        records: &[(Key, Record)],
        removal: impl Fn(&Key, &Record) -> Batch,
    ) -> Result<Vec<Key>, StoreError> {
        let mut refused = Vec::new();
        for chunk in records.chunks(REMOVALS_AT_ONCE) {
            let applied = self.commit_as_is(chunk.iter().map(|(key, record)| removal(key, record)).collect()).await?;
            refused.extend(
                chunk.iter().zip(applied).filter(|(_, applied)| !is_done(applied)).map(|((key, _), _)| key.clone()),
            );
        }
        Ok(refused)
    }

    /// Reads these fields of the records that exist under these keys.
    async fn read_records(
        &self,
        keys: Vec<Key>,
        fields: &'static [&'static str],
    ) -> Result<Vec<(Key, Record)>, StoreError> {
        let mut records = Vec::new();
        for chunk in keys.chunks(KEYS_AT_ONCE) {
            let mut answers =
                self.read_as_is(chunk.iter().map(|key| Query::Fields(key.clone(), fields)).collect()).await?;
            for key in chunk {
                records.extend(answers.record()?.map(|record| (key.clone(), record)));
            }
        }
        Ok(records)
    }
}

impl OwnerFilter<'_> {
    /// Returns true if the delivery is the owner's.
    fn owns(&self, delivery: &QueuedDelivery) -> bool {
        let owner = if self.field[0] == "app" {
            delivery.app.as_ref().map(AppId::as_str)
        } else {
            Some(delivery.receiver.client.as_str())
        };
        owner == Some(self.value)
    }
}

impl KindScan {
    /// Begins a scan of a kind in a partition, or in all of them, that reads these fields.
    fn new(table: &'static Table, place: Option<Place>, fields: &'static [&'static str]) -> Self {
        Self { table, place, fields, next: Some(ScanFrom::default()) }
    }

    /// Returns the keys of the next selected records, possibly none; `None` at the end of the scan.
    async fn next_keys(
        &mut self,
        store: &Store,
        is_selected: impl Fn(&Record) -> bool,
    ) -> Result<Option<Vec<Key>>, StoreError> {
        let Some(from) = self.next.take() else { return Ok(None) };
        let scanned = store.engine().scan(self.table, from, KEYS_AT_ONCE).await?;
        self.next = scanned.next;
        let mut keys = scanned.keys;
        keys.retain(|key| self.place.is_none_or(|place| key.place == place));
        let records = store.read_records(keys, self.fields).await?;
        Ok(Some(records.into_iter().filter(|(_, record)| is_selected(record)).map(|(key, _)| key).collect()))
    }
}

/// Parses the id of an event.
fn event_id(id: &[u8]) -> Result<EventId, StoreError> {
    id.try_into().map(EventId::from_bytes).map_err(|_| StoreError::unreadable("the id of an event"))
}
