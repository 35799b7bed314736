//! Erasing. What belongs to a client is in one partition, so what no list leads to is found by going through the names there.
//!
//! Redis keeps what was removed in its append-only file until that is rewritten, and so do its snapshots.

use std::collections::HashSet;

use redis::{Cmd, cmd};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, EventId, Partition, TxnId};

use super::arguments::arguments;
use super::keys;
use super::reply::Reply;
use super::script::{ERASE_EVENT, ERASE_RECORD, ERASE_REGISTRATION, FIND_REGISTRATION};
use super::shared::Shared;
use super::store::RedisStore;
use crate::erasure::{Erased, Erasure, nothing_of};
use crate::error::{StoreError, StoreFuture};
use crate::transactions::ExpireOutcome;

/// Names that a server is asked for at a time.
const NAMES: u32 = 1_000;
/// Registrations that one call looks at; each may hold a photo.
const GUESTS: u64 = 16;

/// The ids of what was erased: kept answers and reports may tell of it.
type Ids = HashSet<Vec<u8>>;

impl Erasure for RedisStore {
    fn erase(&self, subject: ErasureSubject) -> StoreFuture<Erased> {
        self.run(|store| async move {
            match subject {
                ErasureSubject::Transaction(id) => store.erase_transaction(id).await,
                ErasureSubject::Flow(id) => {
                    let erased =
                        Erased { flows: store.erase_record(id.partition(), keys::flow(id), id.as_bytes()).await?, ..Erased::default() };
                    store.erase_traces(id.partition(), erased, &Ids::from([id.as_bytes().to_vec()])).await
                }
                ErasureSubject::Event(id) => store.erase_event(id).await,
                ErasureSubject::App(id) => {
                    let number = store.read("an app", cmd("HGET").arg(keys::app(&id)).arg("p")).await?.optional_parsed::<u8>()?;
                    match keys::partitions().find(|partition| Some(partition.number()) == number) {
                        Some(partition) => store.erase_apps(partition, &[id]).await,
                        None => store.confirm(Erased::default()).await,
                    }
                }
                ErasureSubject::Client(id) => {
                    let apps: Vec<AppId> = store.members(keys::apps_of_client(&id)).await?;
                    store.erase_apps(id.partition(), &apps).await
                }
            }
        })
    }
}

impl Shared {
    async fn erase_transaction(&self, id: TxnId) -> Result<Erased, StoreError> {
        // Nodes that have a copy of it are told, and a scan counts as abandoned.
        let known = self.expire_transaction(id).await? != ExpireOutcome::NotFound;
        let event = self.read("a transaction", cmd("HGET").arg(keys::transaction(id)).arg("e")).await?.optional_parsed::<EventId>()?;
        self.erase_record(id.partition(), keys::transaction(id), id.as_bytes()).await?;
        let mut erased = Erased { transactions: u64::from(known), ..Erased::default() };
        let lists = match event {
            Some(event) => vec![{
                let [_, registrations, _] = keys::event(event.partition(), Some(event));
                registrations
            }],
            // The transaction may be gone long before its event is.
            None if !known => self.names(id.partition(), "r:").await?,
            None => vec![],
        };
        for list in lists {
            if let Some(is_new) = self.erase_registration(list, id).await? {
                erased.registrations += u64::from(is_new);
                break;
            }
        }
        self.erase_traces(id.partition(), erased, &Ids::from([id.as_bytes().to_vec()])).await
    }

    async fn erase_event(&self, id: EventId) -> Result<Erased, StoreError> {
        let mut erased = self.remove_event(id).await?;
        let mut ids = Ids::from([id.as_bytes().to_vec()]);
        let asked = |name: &[u8]| cmd("HGET").arg(name).arg("e").to_owned();
        for (name, event) in self.owned(id.partition(), "t:", asked).await? {
            if event == id.to_string().as_bytes() {
                erased.transactions += self.erase_transaction_named(&name, &mut ids).await?;
            }
        }
        self.erase_traces(id.partition(), erased, &ids).await
    }

    async fn erase_apps(&self, partition: Partition, apps: &[AppId]) -> Result<Erased, StoreError> {
        let (mut erased, mut ids) = (Erased::default(), Ids::new());
        let of_app = |name: &[u8]| cmd("HGET").arg(name).arg("a").to_owned();
        let is_theirs = |app: &[u8]| apps.iter().any(|own| own.as_str().as_bytes() == app);
        for (name, app) in self.owned(partition, "e:", of_app).await? {
            if is_theirs(&app)
                && let Some(id) = id_in::<EventId>(&name)
            {
                ids.insert(id.as_bytes().to_vec());
                erased += self.remove_event(id).await?;
            }
        }
        for (name, app) in self.owned(partition, "t:", of_app).await? {
            if is_theirs(&app) {
                erased.transactions += self.erase_transaction_named(&name, &mut ids).await?;
            }
        }
        for (name, app) in self.owned(partition, "f:", of_app).await? {
            if is_theirs(&app)
                && let Some(id) = id_in::<FlowId>(&name)
            {
                ids.insert(id.as_bytes().to_vec());
                erased.flows += self.erase_record(partition, name, id.as_bytes()).await?;
            }
        }
        for app in apps {
            erased.refusals += self.read("refused requests", cmd("ZCARD").arg(keys::refusals(app))).await?.parsed::<u64>()?;
            self.call(&ERASE_RECORD, vec![keys::refusals(app)], arguments![b""]).await?;
        }
        self.erase_traces(partition, erased, &ids).await
    }

    /// Removes reports and kept answers of what was erased.
    async fn erase_traces(&self, partition: Partition, mut erased: Erased, ids: &Ids) -> Result<Erased, StoreError> {
        for name in self.names(partition, "fr:").await? {
            let flow = std::str::from_utf8(&name).ok().and_then(|name| name.split(':').nth(1)?.parse::<FlowId>().ok());
            if flow.is_some_and(|flow| ids.contains(flow.as_bytes().as_slice())) {
                self.erase_record(partition, name, b"").await?;
            }
        }
        let subject = |name: &[u8]| cmd("HGET").arg(name).arg("s").to_owned();
        for (name, subject) in self.owned(partition, "i:", subject).await? {
            if ids.contains(&subject) {
                erased.answers += self.erase_record(partition, name, b"").await?;
            }
        }
        Ok(erased)
    }

    async fn erase_transaction_named(&self, name: &[u8], ids: &mut Ids) -> Result<u64, StoreError> {
        let Some(id) = id_in::<TxnId>(name) else { return Ok(0) };
        self.expire_transaction(id).await?;
        ids.insert(id.as_bytes().to_vec());
        self.erase_record(id.partition(), name.to_vec(), id.as_bytes()).await
    }

    /// Removes a record; how many there were. They are counted before, because a script may run twice.
    async fn erase_record(&self, partition: Partition, name: Vec<u8>, id: &[u8]) -> Result<u64, StoreError> {
        let known = self.read("a record", cmd("EXISTS").arg(&name)).await?.parsed()?;
        let keys = vec![name, keys::outbox(partition), keys::flight(partition), keys::lapsing(partition)];
        self.call(&ERASE_RECORD, keys, arguments![id]).await?;
        Ok(known)
    }

    async fn remove_event(&self, id: EventId) -> Result<Erased, StoreError> {
        let partition = id.partition();
        let mut keys = keys::event(partition, Some(id)).to_vec();
        let app = self.read("an event", cmd("HGET").arg(&keys[0]).arg("a")).await?.optional_parsed()?;
        let Some(app) = app else { return Ok(Erased::default()) };
        keys.extend(keys::events_of_app(partition, &app));
        let registrations = self.read("registrations", cmd("LLEN").arg(&keys[1])).await?.parsed()?;
        self.call(&ERASE_EVENT, keys, arguments![id.to_string()]).await?;
        Ok(Erased { events: 1, registrations, ..Erased::default() })
    }

    /// Whether the guest is in this list, and if so, whether there was something to be erased.
    async fn erase_registration(&self, list: Vec<u8>, id: TxnId) -> Result<Option<bool>, StoreError> {
        let nothing = nothing_of(&self.vault, id);
        let mut from = 0_u64;
        loop {
            let args = arguments![id.as_bytes(), from, GUESTS, nothing.size()];
            let mut answer = self.call(&FIND_REGISTRATION, vec![list.clone()], args).await?.fields()?;
            let (seen, place, is_known) = (answer.parsed::<u64>()?, answer.parsed::<i64>()?, answer.parsed::<u8>()? == 1);
            if let Ok(place) = u64::try_from(place) {
                if is_known {
                    self.call(&ERASE_REGISTRATION, vec![list], arguments![place, nothing.to_bytes()]).await?;
                }
                return Ok(Some(is_known));
            }
            if seen == 0 {
                return Ok(None);
            }
            from += seen;
        }
    }

    /// The names of one kind in a partition.
    async fn names(&self, partition: Partition, kind: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let pattern = format!("{{p{:02}}}{kind}*", partition.number());
        let mut names = Vec::new();
        for server in 0.. {
            let mut cursor = 0_u64;
            loop {
                let command = cmd("SCAN").arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(NAMES).to_owned();
                let Some(found) = self.link.ask_server(server, command).await? else { return Ok(names) };
                let mut found = Reply::new("a scan", found).fields()?;
                cursor = found.parsed()?;
                names.extend(found.value()?.fields()?.all(Some)?);
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(names)
    }

    /// The names of one kind in a partition, each with what the command about it answers.
    async fn owned(&self, partition: Partition, kind: &str, asked: impl Fn(&[u8]) -> Cmd) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StoreError> {
        let mut owned = Vec::new();
        for names in self.names(partition, kind).await?.chunks(NAMES as usize) {
            let found = self.read_all("a record", names.iter().map(|name| asked(name))).await?;
            for (name, owner) in names.iter().zip(found) {
                owned.extend(owner.bytes()?.map(|owner| (name.clone(), owner)));
            }
        }
        Ok(owned)
    }
}

/// The id after the kind in a name.
fn id_in<T: std::str::FromStr>(name: &[u8]) -> Option<T> {
    std::str::from_utf8(name).ok()?.split_once(':')?.1.parse().ok()
}
