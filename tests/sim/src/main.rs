//! `sakshi-sim`: runs seeds, shows one that breaks a promise, and checks that planted faults are found.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what it finds is printed")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an error here ends the run")]

mod plants;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use sakshi_sim::{Gap, Run, Shape, gaps, keep_memory, run, run_all, shrink};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of seeds by default.
const SEEDS: u64 = 1_000;
/// One in this many seeds is run twice, to check that a run repeats exactly.
const REPEATED_SEED_INTERVAL: u64 = 50;

/// Runs seeded schedules of whole nodes and checks the promises.
#[derive(Debug, Parser)]
struct Options {
    /// Number of seeds to run.
    #[arg(long)]
    seeds: Option<u64>,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run this seed and print everything that happens.
    #[arg(long)]
    seed: Option<u64>,
    /// Build the simulator with the planted faults, switch this one on and print the first seed that finds it; `all`
    /// for a table of all faults. Exits with 1 if the fault is found or, for the table, if one is not.
    #[arg(long, value_name = "NAME")]
    plant: Option<String>,
    /// List the faults that can be planted.
    #[arg(long)]
    plants: bool,
    /// Number of verifications and guests of each client.
    #[arg(long)]
    verifications: Option<u64>,
    /// Run the seeds of this file first, and add those that break a promise, with the commit.
    #[arg(long, value_name = "FILE")]
    failed: Option<PathBuf>,
    /// List what no run has produced: pairs of faults, routes, reasons of failed webhooks. Exits with 1 if one of them
    /// has no reason in `src/exempt.rs`, or if a run has produced one that has; it takes some 300 seeds.
    #[arg(long)]
    gaps: bool,
    /// Kinds of faults to leave out, separated by commas.
    #[arg(long, value_delimiter = ',', value_parser = Shape::FAULTS)]
    without: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.plants {
        plants::names().iter().for_each(|name| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    if let Some(name) = &options.plant {
        return plants::run(name, options.seeds);
    }
    keep_memory();
    // Actors panic on purpose and are restarted.
    std::panic::set_hook(Box::new(|_| {}));
    let mut shape = Shape { verifications: options.verifications, ..Shape::WHOLE };
    for (bit, fault) in Shape::FAULTS.iter().enumerate() {
        shape.without |= u32::from(options.without.iter().any(|without| without == fault)) << bit;
    }
    match options.seed {
        Some(seed) => report::print_run(&run(seed, shape), shape),
        None => {
            let known_seeds = options.failed.as_deref().map(known_failures).unwrap_or_default();
            let failure = known_seeds
                .into_iter()
                .map(|seed| run_seeds(seed, 1, shape, &options))
                .find(|exit_code| *exit_code != ExitCode::SUCCESS);
            failure.unwrap_or_else(|| run_seeds(options.from, options.seeds.unwrap_or(SEEDS), shape, &options))
        }
    }
}

/// Runs `count` seeds on all processors until one breaks a promise. Prints the result.
fn run_seeds(from: u64, count: u64, shape: Shape, options: &Options) -> ExitCode {
    let started_at = Instant::now();
    let (mut faults, mut occurrences, mut pairs) =
        (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new(), BTreeSet::new());
    let (mut ended, mut failure) = (0, None);
    run_all(from..from + count, shape, REPEATED_SEED_INTERVAL, |run, again| {
        ended += 1;
        let difference = again.and_then(|again| first_difference(&run, &again));
        if !run.broken.is_empty() || difference.is_some() {
            failure = Some((run.seed, difference));
            return true;
        }
        run.faults.into_iter().for_each(|(kind, count)| *faults.entry(kind).or_default() += count);
        pairs.extend(run.pairs);
        run.occurrences.into_iter().for_each(|(kind, count)| *occurrences.entry(kind).or_default() += count);
        false
    });
    match failure {
        Some((seed, Some([once, again]))) => {
            println!("seed {seed} is not the same twice; the first lines that differ are\n{once}\n{again}");
            return ExitCode::FAILURE;
        }
        Some((seed, None)) => {
            println!("{}{}", report::FOUND_PREFIX, seed - from + 1);
            let (shape, run) = shrink(seed, shape);
            options.failed.iter().for_each(|file| append_failure(file, &run));
            return report::print_run(&run, shape);
        }
        None if ended < count => {
            println!("only {ended} of {count} seeds were run");
            return ExitCode::FAILURE;
        }
        None => {}
    }
    let seconds = started_at.elapsed().as_secs_f64();
    let rate = count as f64 / seconds;
    println!("{count} schedules in {seconds:.1} s, {rate:.1} a second; every promise was kept");
    println!("faults:");
    faults.iter().for_each(|(kind, count)| println!("  {count:>9}  {kind}"));
    println!("what happened:");
    occurrences.iter().for_each(|(kind, count)| println!("  {count:>9}  {kind}"));
    if options.gaps { print_gaps(&gaps(&occurrences, &pairs)) } else { ExitCode::SUCCESS }
}

/// Prints the coverage gaps. Returns failure if one is not in `exempt.rs`, or if `exempt.rs` lists a case that was
/// produced.
fn print_gaps(gaps: &[Gap]) -> ExitCode {
    for Gap { kind, all, exempt, missing, produced } in gaps {
        println!("never, of {all} {kind}: {}", missing.len());
        missing.iter().for_each(|missing| println!("  {missing}"));
        let mut by_reason = BTreeMap::<_, Vec<&str>>::new();
        exempt.iter().for_each(|(case, reason)| by_reason.entry(reason).or_default().push(case));
        for (reason, cases) in by_reason {
            println!("  no run produces {} of them, because {reason}:\n    {}", cases.len(), cases.join("\n    "));
        }
        produced.iter().for_each(|produced| println!("  {produced} is in src/exempt.rs, and a run has produced it"));
    }
    let is_complete = gaps.iter().all(|gap| gap.missing.is_empty() && gap.produced.is_empty());
    if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reads the seeds from a file written by [`append_failure`].
fn known_failures(file: &Path) -> Vec<u64> {
    let lines = fs::read_to_string(file).unwrap_or_default();
    let mut seeds: Vec<u64> = lines.lines().filter_map(|line| line.split('\t').nth(1)?.parse().ok()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds
}

/// Appends a line about a failed run: the commit, the seed, and the first promise that it broke.
fn append_failure(file: &Path, run: &Run) {
    let commit = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok();
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let broken = run.broken.first().map_or("it is not the same twice", String::as_str);
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened
        .and_then(|mut file| writeln!(file, "{commit}\t{}\t{}", run.seed, broken.replace(['\t', '\n'], " ")))
        .unwrap();
}

/// Returns the first log lines in which two runs of a seed differ.
fn first_difference(once: &Run, again: &Run) -> Option<[String; 2]> {
    let at = (0..once.log.len().max(again.log.len())).find(|at| once.log.get(*at) != again.log.get(*at))?;
    Some([once, again].map(|run| run.log.get(at).cloned().unwrap_or_default()))
}
