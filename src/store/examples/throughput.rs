//! How fast the embedded store answers, how long its slowest answers take, and what a transaction
//! costs on the disk.
//!
//! `cargo run --release --example throughput -p sakshi-store [-- SECONDS [DIRECTORY]]`. A line is
//! one number of callers that each wait for their answer before they ask again. The raw line
//! writes and syncs 1 KiB at a time: the most that one caller can get from this disk.

mod load;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sakshi_domain::clock::SystemClock;
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{OpenTransaction, Vault};
use tokio::runtime::Runtime;

use self::load::{Bench, Failure, WORKS, figures, vault};

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
    let (store, probe) = start(&runtime, root.join("sealing"))?;
    writeln!(out, "sealing the terms: {:?}", sealing(&probe.vault, &probe.opening(false))?)?;
    store.close();
    for (number, (name, work)) in WORKS.into_iter().enumerate() {
        for callers in [1, 16, 64, 256] {
            let directory = root.join(format!("{number}-{callers}"));
            let (store, bench) = start(&runtime, directory.clone())?;
            let empty = bytes_in(&directory)?;
            let took = runtime.block_on(bench.load(work, callers, span))?;
            let (running, resident) = (bytes_in(&directory)?, resident_kib().unwrap_or(0) / 1_024);
            store.close();
            let each = bytes_in(&directory)?.saturating_sub(empty) / took.len().max(1) as u64;
            let (took, running) = (figures(&took, span), running >> 20);
            writeln!(out, "{name}, {callers} callers: {took}; {each} B each on disk, {running} MiB with log, {resident} MiB resident")?;
        }
    }
    Ok(())
}

/// An empty store and what it is measured with.
fn start(runtime: &Runtime, directory: PathBuf) -> Result<(EmbeddedStore, Bench), Failure> {
    let vault = vault()?;
    let options =
        EmbeddedOptions { directory, clock: Arc::new(SystemClock), vault: Arc::clone(&vault), max_waiting: 8_192, max_pages: None };
    let store = EmbeddedStore::open(options)?;
    let bench = runtime.block_on(Bench::start(Arc::new(store.clone()), vault))?;
    Ok((store, bench))
}
