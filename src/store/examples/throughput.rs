//! How fast the embedded store answers, how long its slowest answers take, and what a transaction
//! costs on the disk.
//!
//! `cargo run --release --example throughput -p sakshi-store [-- SECONDS [DIRECTORY]]`. A line is
//! one number of callers that each wait for their answer before they ask again. The raw line
//! writes and syncs 1 KiB at a time: the most that one caller can get from this disk.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sakshi_domain::channel::Channel;
use sakshi_domain::claims::Claim;
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::event::{Event, EventCounts, EventName, EventTerms, MaxGuests};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::Client;
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity, Pending, Terms};
use sakshi_domain::web_address::{Schemes, WebAddress};
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{CompleteTransaction, CreateEvent, GuestOutcomes, OpenTransaction, PresentedCredential, Store, Vault};
use zeroize::Zeroizing;

type Failure = Box<dyn std::error::Error>;

struct Bench {
    store: EmbeddedStore,
    vault: Arc<Vault>,
    client: ClientId,
    app: AppId,
    hook: WebAddress,
    event: EventId,
}

/// Guests who wait while their event is read.
const WAITING: usize = 5_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Opens a transaction.
    Open,
    /// Opens one and completes it with a 1 KiB outcome and a webhook.
    OpenAndComplete,
    /// Opens one as a guest of one event that all guests share.
    Scan,
    /// Opens one as a guest and registers the guest, with a 1 KiB outcome and the event's webhook.
    ScanAndRegister,
    /// Reads that event, at which [`WAITING`] guests have scanned and are yet to answer.
    LoadEvent,
}

impl Work {
    const fn of_event(self) -> bool {
        matches!(self, Self::Scan | Self::ScanAndRegister)
    }
}

impl Bench {
    async fn start(directory: PathBuf) -> Result<Self, Failure> {
        let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![1; 32])])?);
        let options =
            EmbeddedOptions { directory, clock: Arc::new(SystemClock), vault: Arc::clone(&vault), max_waiting: 8_192, max_pages: None };
        let store = EmbeddedStore::open(options)?;
        let client = ClientId::generate();
        store.create_client(Client { client_id: client.clone(), name: "bench".into(), created_at: SystemClock.now() }).await?;
        let grant = CreditMove { kind: EntryKind::Grant, amount: 1_000_000_000, reference: "bench".into() };
        store.move_credits(client.clone(), grant).await?;
        let hook = WebAddress::parse("https://hooks.example/in/0123456789", Schemes::HttpsOnly)?;
        let bench = Self { store, vault, event: EventId::generate(client.partition(), 0), client, app: AppId::generate(), hook };
        bench.create_event().await?;
        Ok(bench)
    }

    async fn create_event(&self) -> Result<(), Failure> {
        let created_at = SystemClock.now();
        let terms = EventTerms {
            name: EventName::parse("Open day")?,
            claims: [Claim::Name, Claim::Dob, Claim::Address].into_iter().collect(),
            language: Language::ENGLISH,
            max_guests: MaxGuests::new(1_000_000)?,
            expires_at: created_at + Duration::from_secs(86_400),
            webhook_url: Some(self.hook.clone()),
            is_active: true,
        };
        let (client, app, counts) = (self.client.clone(), self.app.clone(), EventCounts::default());
        let event = Event { id: self.event, client, app, created_at, terms, counts };
        self.store.create_event(CreateEvent { event, idempotency: None }).await?;
        Ok(())
    }

    fn opening(&self, guest: bool) -> OpenTransaction {
        let now = SystemClock.now();
        let terms = Terms {
            claims: [Claim::Name, Claim::Dob, Claim::Address].into_iter().collect(),
            channel: Channel::Web,
            language: Language::ENGLISH,
            face_auth: true,
            webhook_url: (!guest).then(|| self.hook.clone()),
            request_id: RequestId::mint(),
            extras: None,
        };
        let id = TxnId::generate(self.client.partition(), 0);
        let expires_at = now + Duration::from_secs(900);
        let (client, app, event) = (self.client.clone(), self.app.clone(), guest.then_some(self.event));
        let pending = Pending { id, client, app, event, opened_at: now, expires_at, terms };
        OpenTransaction { pending, cost: 1, idempotency: None }
    }

    async fn once(&self, work: Work) -> Result<(), Failure> {
        if work == Work::LoadEvent {
            return self.store.load_event(self.event).await?.map(drop).ok_or_else(|| "the event is missing".into());
        }
        let open = self.opening(work.of_event());
        let id = open.pending.id;
        self.store.open_transaction(open).await?;
        if matches!(work, Work::OpenAndComplete | Work::ScanAndRegister) {
            let mut digest = [0; 32];
            digest[..16].copy_from_slice(id.as_bytes());
            let complete = CompleteTransaction {
                id,
                passed: true,
                outcome: self.vault.seal(id.as_bytes(), &[b'x'; 1_024]),
                answer: AnswerDigest(digest),
                credential: Some(PresentedCredential { digest: CredentialIdentity(digest), holder_bound: false }),
                replay_window: Duration::from_secs(3_600),
                result_ttl: Duration::from_secs(86_400),
                guest: work.of_event().then(|| self.refusals(id)),
            };
            self.store.complete_transaction(complete).await?;
        }
        Ok(())
    }

    fn refusals(&self, id: TxnId) -> GuestOutcomes {
        let seal = |words: &[u8]| self.vault.seal(id.as_bytes(), words);
        GuestOutcomes { full: seal(b"full"), disabled: seal(b"disabled"), expired: seal(b"expired") }
    }

    /// How long each piece of work took.
    async fn load(&self, work: Work, callers: usize, span: Duration) -> Result<Vec<Duration>, Failure> {
        let caller = |end| async move {
            let mut took = Vec::new();
            while Instant::now() < end {
                let begin = Instant::now();
                self.once(work).await?;
                took.push(begin.elapsed());
            }
            Ok::<_, Failure>(took)
        };
        if work == Work::LoadEvent {
            let scans = (0..WAITING).map(|_| self.once(Work::Scan));
            join_all(scans).await.into_iter().collect::<Result<Vec<()>, _>>()?;
        }
        let end = Instant::now() + span;
        let mut all = Vec::new();
        for took in join_all((0..callers).map(|_| caller(end))).await {
            all.extend(took?);
        }
        all.sort_unstable();
        Ok(all)
    }
}

/// What it costs to write the terms of a transaction as JSON and to seal them.
fn sealing(vault: &Vault, open: &OpenTransaction) -> Result<Duration, Failure> {
    const ROUNDS: u32 = 100_000;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        let json = serde_json::to_vec(&open.pending.terms)?;
        std::hint::black_box(vault.seal(open.pending.id.as_bytes(), &json).to_bytes());
    }
    Ok(begin.elapsed() / ROUNDS)
}

fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().trim_end_matches(" kB").parse().ok()
}

fn bytes_in(directory: &Path) -> Result<u64, Failure> {
    let mut sum = 0;
    for file in directory.read_dir()? {
        sum += file?.metadata()?.len();
    }
    Ok(sum)
}

fn raw_syncs(directory: &Path, span: Duration) -> Result<f64, Failure> {
    let path = directory.join("raw");
    let (mut file, mut count, begin) = (File::create(&path)?, 0_u32, Instant::now());
    while begin.elapsed() < span {
        file.write_all(&[7; 1_024])?;
        file.sync_data()?;
        count += 1;
    }
    let rate = f64::from(count) / begin.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate)
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let span = Duration::from_secs(arguments.next().map_or(Ok(4), |seconds| seconds.parse())?);
    let temporary = tempfile::tempdir()?;
    let root = arguments.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "raw, 1 caller: {:.0} syncs/s", raw_syncs(&root, span.min(Duration::from_secs(2)))?)?;
    let probe = runtime.block_on(Bench::start(root.join("sealing")))?;
    writeln!(out, "sealing the terms: {:?}", sealing(&probe.vault, &probe.opening(false))?)?;
    probe.store.close();
    let works = [
        ("open", Work::Open),
        ("open + complete", Work::OpenAndComplete),
        ("scan", Work::Scan),
        ("scan + register", Work::ScanAndRegister),
        ("load event", Work::LoadEvent),
    ];
    for (number, (name, work)) in works.into_iter().enumerate() {
        for callers in [1, 16, 64, 256] {
            let directory = root.join(format!("{number}-{callers}"));
            let bench = runtime.block_on(Bench::start(directory.clone()))?;
            let empty = bytes_in(&directory)?;
            let took = runtime.block_on(bench.load(work, callers, span))?;
            let (running, resident) = (bytes_in(&directory)?, resident_kib().unwrap_or(0) / 1_024);
            bench.store.close();
            let count = took.len().max(1);
            let at = |share: usize| took.get(count * share / 10_000).copied().unwrap_or_default().as_secs_f64() * 1e3;
            writeln!(
                out,
                "{name}, {callers} callers: {:.0}/s, p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms; {} B each on disk, {} MiB with log, {resident} MiB resident",
                count as f64 / span.as_secs_f64(),
                at(5_000),
                at(9_900),
                at(9_990),
                took.last().copied().unwrap_or_default().as_secs_f64() * 1e3,
                bytes_in(&directory)?.saturating_sub(empty) / count as u64,
                running >> 20,
            )?;
        }
    }
    Ok(())
}
