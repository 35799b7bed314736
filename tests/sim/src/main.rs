//! `sakshi-sim`: runs seeds, shows the one that breaks a promise, and shows that planted faults are found.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what it finds is printed")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an error here ends the run")]

mod plants;
mod story;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use sakshi_sim::{Run, Shape, keep_memory, run, run_all, shrunk};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many seeds are run when nobody says how many.
const SEEDS: u64 = 1_000;
/// Of so many seeds one is run twice.
const SAMPLE: u64 = 50;

/// Runs schedules of whole nodes, each from a seed, and checks the promises.
#[derive(Debug, Parser)]
struct Options {
    /// How many seeds to run.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run this one and show all that happens.
    #[arg(long)]
    seed: Option<u64>,
    /// Build the simulator with a planted fault, and show the first seed that finds it; `all` for a table of all faults. Ends with 1 when
    /// the fault is found, and for the table when one is not.
    #[arg(long, value_name = "NAME")]
    plant: Option<String>,
    /// List the faults that can be planted.
    #[arg(long)]
    plants: bool,
    /// With so many verifications and guests of each client.
    #[arg(long)]
    verifications: Option<u64>,
    /// Without these kinds of faults, separated by commas.
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
    // Actors panic on purpose, and are restarted.
    std::panic::set_hook(Box::new(|_| {}));
    let mut shape = Shape { verifications: options.verifications, ..Shape::WHOLE };
    for (bit, fault) in Shape::FAULTS.iter().enumerate() {
        shape.without |= u32::from(options.without.iter().any(|without| without == fault)) << bit;
    }
    match options.seed {
        Some(seed) => story::tell(&run(seed, shape), shape),
        None => run_seeds(options.from, options.seeds.unwrap_or(SEEDS), shape),
    }
}

/// Runs seeds on all processors until one breaks a promise.
fn run_seeds(from: u64, seeds: u64, shape: Shape) -> ExitCode {
    let begun = Instant::now();
    let (mut faults, mut reached) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new());
    let (mut ended, mut found) = (0, None);
    run_all(from..from + seeds, shape, SAMPLE, |ran, again| {
        ended += 1;
        let differs = again.and_then(|again| first_difference(&ran, &again));
        if !ran.broken.is_empty() || differs.is_some() {
            found = Some((ran.seed, differs));
            return true;
        }
        ran.faults.into_iter().for_each(|(kind, count)| *faults.entry(kind).or_default() += count);
        ran.reached.into_iter().for_each(|(kind, count)| *reached.entry(kind).or_default() += count);
        false
    });
    match found {
        Some((seed, Some([once, again]))) => {
            println!("seed {seed} is not the same twice; the first lines that differ are\n{once}\n{again}");
            return ExitCode::FAILURE;
        }
        Some((seed, None)) => {
            println!("{}{}", story::FOUND, seed - from + 1);
            let (shape, ran) = shrunk(seed, shape);
            return story::tell(&ran, shape);
        }
        None if ended < seeds => {
            println!("only {ended} of {seeds} seeds were run");
            return ExitCode::FAILURE;
        }
        None => {}
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rate = seeds as f64 / seconds;
    println!("{seeds} schedules in {seconds:.1} s, {rate:.1} a second; every promise was kept");
    println!("faults:");
    faults.iter().for_each(|(kind, count)| println!("  {count:>9}  {kind}"));
    println!("what happened:");
    reached.iter().for_each(|(kind, count)| println!("  {count:>9}  {kind}"));
    ExitCode::SUCCESS
}

/// The first lines of two runs that differ.
fn first_difference(once: &Run, again: &Run) -> Option<[String; 2]> {
    let at = (0..once.log.len().max(again.log.len())).find(|at| once.log.get(*at) != again.log.get(*at))?;
    Some([once, again].map(|run| run.log.get(at).cloned().unwrap_or_default()))
}
