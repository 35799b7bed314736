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
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::Client;
use sakshi_domain::transaction::{AnswerDigest, Pending, Terms};
use sakshi_domain::web_address::{Schemes, WebAddress};
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{CompleteTransaction, OpenTransaction, PresentedCredential, Store, Vault};
use zeroize::Zeroizing;

type Failure = Box<dyn std::error::Error>;

struct Bench {
    store: EmbeddedStore,
    vault: Arc<Vault>,
    client: ClientId,
    app: AppId,
    hook: WebAddress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Opens a transaction.
    Open,
    /// Opens one and completes it with a 1 KiB outcome and a webhook.
    OpenAndComplete,
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
        Ok(Self { store, vault, client, app: AppId::generate(), hook })
    }

    fn opening(&self) -> OpenTransaction {
        let now = SystemClock.now();
        let terms = Terms {
            claims: [Claim::Name, Claim::Dob, Claim::Address].into_iter().collect(),
            channel: Channel::Web,
            language: Language::ENGLISH,
            face_auth: true,
            webhook_url: Some(self.hook.clone()),
            request_id: RequestId::mint(),
            extras: None,
        };
        let id = TxnId::generate(self.client.partition(), 0);
        let expires_at = now + Duration::from_secs(900);
        let pending = Pending { id, client: self.client.clone(), app: self.app.clone(), opened_at: now, expires_at, terms };
        OpenTransaction { pending, cost: 1, idempotency: None }
    }

    async fn once(&self, work: Work) -> Result<(), Failure> {
        let open = self.opening();
        let id = open.pending.id;
        self.store.open_transaction(open).await?;
        if work == Work::OpenAndComplete {
            let mut digest = [0; 32];
            digest[..16].copy_from_slice(id.as_bytes());
            let complete = CompleteTransaction {
                id,
                passed: true,
                outcome: self.vault.seal(id.as_bytes(), &[b'x'; 1_024]),
                answer: AnswerDigest(digest),
                credential: Some(PresentedCredential { digest: AnswerDigest(digest), holder_bound: false }),
                replay_window: Duration::from_secs(3_600),
                result_ttl: Duration::from_secs(86_400),
            };
            self.store.complete_transaction(complete).await?;
        }
        Ok(())
    }

    /// How long each piece of work took.
    async fn load(&self, work: Work, callers: usize, span: Duration) -> Result<Vec<Duration>, Failure> {
        let end = Instant::now() + span;
        let caller = || async move {
            let mut took = Vec::new();
            while Instant::now() < end {
                let begin = Instant::now();
                self.once(work).await?;
                took.push(begin.elapsed());
            }
            Ok::<_, Failure>(took)
        };
        let mut all = Vec::new();
        for took in join_all((0..callers).map(|_| caller())).await {
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
    writeln!(out, "sealing the terms: {:?}", sealing(&probe.vault, &probe.opening())?)?;
    probe.store.close();
    for (name, work) in [("open", Work::Open), ("open + complete", Work::OpenAndComplete)] {
        for callers in [1, 16, 64, 256] {
            let directory = root.join(format!("{}-{callers}", name.len()));
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
