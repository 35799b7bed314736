//! Moving an embedded store into Redis: first most of it, while the service could run, then the rest during downtime;
//! and back into a file. All reads must give the same result on both sides.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::event::{Event, MaxGuests};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{App, Client, KeyCase};
use sakshi_domain::transaction::{AnswerDigest, Outcome, VerifiedClaims};
use sakshi_kit::records;
use sakshi_kit::redis::RedisServer;
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::redis::{NodeId, RedisOptions, RedisServers, RedisStore, RedisTopology};
use sakshi_store::{
    CompleteTransaction, CreateEvent, Ownership, PageRequest, Retention, SCHEMA, Store, Upgrading, Vault,
    move_to_directory, move_to_redis,
};
use serde_json::json;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::Failure;
use crate::process::own_memory;
use crate::report::Report;
use crate::scale::Scale;
use crate::transactions::Opener;

/// Operations in flight while the store is filled and compared.
const CONCURRENT: usize = 512;
const DAY: Duration = Duration::from_secs(86_400);
/// One in this many transactions is pending; the others have ended.
const PENDING_INTERVAL: usize = 10;

/// Moves a filled store into Redis and back, and measures both.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    actix_rt::System::new().block_on(measure_move(scale.live))
}

/// Moves a store of this many transactions into Redis and back, and compares all reads.
async fn measure_move(transactions: usize) -> Result<Report, Failure> {
    let directory = tempfile::tempdir()?;
    let (path, redis) = (directory.path().join("store"), RedisServer::start(&["save \"\"", "appendonly no"]));
    let tenant = Tenant::new();
    let store = tenant.open_embedded(&path)?;
    tenant.fill(&store, transactions, transactions / 100).await?;
    store.close();
    drop(store);
    let bytes = std::fs::metadata(path.join("sakshi.db"))?.len();

    let started = Instant::now();
    let [to_be_continued, finished] = [false, true];
    let first = move_to_redis(&path, tenant.redis_options(&redis)?, to_be_continued, |_, _| {}).await?;
    let first_seconds = started.elapsed().as_secs_f64();
    let store = tenant.open_embedded(&path)?;
    tenant.fill(&store, 1_000, 10).await?;
    store.close();
    drop(store);
    let started = Instant::now();
    let second = move_to_redis(&path, tenant.redis_options(&redis)?, finished, |_, _| {}).await?;
    let second_seconds = started.elapsed().as_secs_f64();
    let keys: u64 = second.kinds.values().map(|kind| kind.keys).sum();
    let written: u64 = second.kinds.values().map(|kind| kind.written).sum();

    let source = (*tenant.open_embedded(&path)?).clone();
    let on_redis = RedisStore::open(tenant.redis_options(&redis)?).await?;
    let target = (*on_redis).clone();
    let reads_in_redis = tenant.compare(&source, &target).await?;
    target.leave().await?;
    drop(target);
    let back_path = directory.path().join("back");
    let started = Instant::now();
    move_to_directory(tenant.redis_options(&redis)?, &back_path, |_, _| {}).await?;
    let back_seconds = started.elapsed().as_secs_f64();
    let memory = own_memory("VmRSS")?;
    let back = (*tenant.open_embedded(&back_path)?).clone();
    let reads_in_file = tenant.compare(&source, &back).await?;
    let mut report = Report::new(&format!("A move of {transactions} transactions and {} events", transactions / 100));
    report.figure("first run, with the comparison of every key, s", &[first_seconds]);
    report
        .figure("run with a difference of 1,000 transactions and 10 events, with the comparison, s", &[second_seconds]);
    report.figure("back into a file, with the comparison, s", &[back_seconds]);
    report.figure("keys of the target", &[keys as f64]);
    report.figure("keys written by the second run", &[written as f64]);
    report.figure("MB of the file", &[bytes as f64 / 1e6]);
    report.figure("resident memory of the mover at the end, MB", &[memory as f64 / 1e6]);
    report.figure("reads that answer the same in Redis", &[reads_in_redis as f64]);
    report.figure("reads that answer the same in the new file", &[reads_in_file as f64]);
    let written: u64 = first.kinds.values().map(|kind| kind.written).sum();
    report.note(format!("The first run wrote {written} keys. The server does not write to the disk."));
    Ok(report)
}

/// The client and app of all records, with the keys and the owner of their stores.
struct Tenant {
    client: ClientId,
    app: AppId,
    vault: Arc<Vault>,
    ownership: Ownership,
}

impl Tenant {
    fn new() -> Self {
        let vault = Vault::new(&[Zeroizing::new(vec![1; 32])]).map(Arc::new);
        let ownership = Ownership::new(Profile::Sandbox, "https://issuer.test");
        Self {
            client: ClientId::generate(),
            app: AppId::generate(),
            vault: vault.unwrap_or_else(|_| unreachable!()),
            ownership,
        }
    }

    fn open_embedded(&self, directory: &Path) -> Result<EmbeddedStore, Failure> {
        Ok(EmbeddedStore::open(EmbeddedOptions {
            directory: directory.to_owned(),
            clock: Arc::new(SystemClock),
            vault: Arc::clone(&self.vault),
            retention: Retention { expired: DAY, events: DAY * 90, consents: DAY * 90 },
            max_waiting: 8_192,
            ownership: self.ownership.clone(),
            upgrading: Upgrading::default(),
        })?)
    }

    fn redis_options(&self, server: &RedisServer) -> Result<RedisOptions, Failure> {
        Ok(RedisOptions {
            servers: RedisServers::new(&[&server.url()], RedisTopology::Standalone)?,
            wait_replicas: 0,
            node: NodeId::generate(),
            vault: Arc::clone(&self.vault),
            retention: Retention { expired: DAY, events: DAY * 90, consents: DAY * 90 },
            max_waiting: 8_192,
            must_persist: false,
            waits_at_start: false,
            ownership: self.ownership.clone(),
            schema: &SCHEMA,
            clock: None,
        })
    }

    /// Adds transactions, most of which have ended with claims, and events.
    async fn fill(&self, store: &EmbeddedStore, transactions: usize, events: usize) -> Result<(), Failure> {
        let store: &Store = store;
        let now = SystemClock.now();
        store.create_client(Client::new(self.client.clone(), "bench".into(), now)).await?;
        let app = App {
            evidence: false,
            app_id: self.app.clone(),
            client_id: self.client.clone(),
            name: "bench".into(),
            payload_spelling: KeyCase::default(),
            consent_webhook_url: None,
            data_webhook_url: None,
            historical_webhook_url: None,
            created_at: now,
        };
        store.create_app(app).await?;
        let grant = CreditMove { kind: EntryKind::Grant, amount: 1_000_000_000, reference: "bench".into() };
        store.move_credits(self.client.clone(), grant).await?;
        let opener = Opener::new(self.client.clone(), self.app.clone())?;
        let opened = (0..transactions).map(|number| {
            let open = opener.transaction_in_store(CREDITS_PER_VERIFICATION);
            async move {
                let id = open.pending.id;
                store.open_transaction(open).await?;
                if number % PENDING_INTERVAL > 0 {
                    store.complete_transaction(self.completion(id)?).await?;
                }
                Ok::<_, Failure>(())
            }
        });
        stream::iter(opened).buffer_unordered(CONCURRENT).try_collect::<Vec<_>>().await?;
        let created = (0..events).map(|_| store.create_event(self.event()));
        stream::iter(created).buffer_unordered(CONCURRENT).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// Builds the completion of a transaction with five claims.
    fn completion(&self, id: TxnId) -> Result<CompleteTransaction, Failure> {
        let claims = json!({ "residentName": "Asha Rao", "dob": "1990-01-31", "gender": "F",
            "address": "12 Lake Road, Pune", "pincode": "411001" });
        let claims = VerifiedClaims::new(claims.as_object().cloned().unwrap_or_default());
        let outcome = self.vault.seal(id.as_bytes(), &serde_json::to_vec(&Outcome::Verified(Arc::new(claims)))?);
        let mut answer = [0; 32];
        answer[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        Ok(CompleteTransaction {
            code: None,
            evidence: None,
            guest: sakshi_store::GuestDetails::default(),
            id,
            known: None,
            passed: true,
            outcome,
            answer: AnswerDigest(answer),
            credential: None,
            replay_window: DAY,
            result_ttl: DAY,
        })
    }

    /// Builds the creation of an event.
    fn event(&self) -> CreateEvent {
        let id = EventId::generate(self.client.partition(), 0);
        let mut event = records::event(id, self.client.clone(), self.app.clone(), SystemClock.now(), DAY);
        event.terms.max_guests = MaxGuests::new(100).unwrap_or_else(|_| unreachable!());
        CreateEvent { event, events_max: None, idempotency: None }
    }

    /// Compares the reads of both stores and returns their number.
    async fn compare(&self, source: &Store, target: &Store) -> Result<usize, Failure> {
        let mut compared = 0;
        for page in 1.. {
            let page = PageRequest { page, page_size: 100 };
            let entries = source.statement(self.client.clone(), page).await?;
            if entries != target.statement(self.client.clone(), page).await? {
                return Err(format!("page {} of the ledger differs", page.page).into());
            }
            let ids: Vec<TxnId> = entries.items.iter().filter_map(|entry| entry.reference.parse().ok()).collect();
            let reads = ids.into_iter().map(|id| async move {
                let is_same = source.load_transaction(id).await? == target.load_transaction(id).await?;
                if is_same { Ok::<_, Failure>(()) } else { Err(format!("transaction {id} differs").into()) }
            });
            compared += 1 + stream::iter(reads).buffer_unordered(CONCURRENT).try_collect::<Vec<_>>().await?.len();
            if entries.items.len() < 100 {
                break;
            }
        }
        let ids = |page: sakshi_store::Page<Event>| {
            page.items.into_iter().map(|event| event.id).collect::<std::collections::BTreeSet<_>>()
        };
        let mut event_ids = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
        for page in 1.. {
            let page = PageRequest { page, page_size: 100 };
            let [source_page, target_page] =
                [source.list_events(self.app.clone(), page).await?, target.list_events(self.app.clone(), page).await?];
            let is_last = source_page.items.len() < 100;
            event_ids[0].extend(ids(source_page));
            event_ids[1].extend(ids(target_page));
            compared += 1;
            if is_last {
                break;
            }
        }
        if event_ids[0] != event_ids[1] {
            return Err("the lists of events differ".into());
        }
        for id in &event_ids[0] {
            if source.load_event(*id).await? != target.load_event(*id).await? {
                return Err(format!("event {id} differs").into());
            }
            compared += 1;
        }
        if source.audit().await? != target.audit().await? {
            return Err("the audits differ".into());
        }
        Ok(compared + 1)
    }
}
