//! The report of a run on the terminal.

use std::process::ExitCode;

use sakshi_sim::{Run, Shape};

/// Beginning of the line that says how many seeds it took to break a promise.
pub(crate) const FOUND_PREFIX: &str = "a promise is broken; seeds that it took: ";

/// Prints the log of a run and its broken promises. If promises about certain records are broken, prints only the log
/// lines about these records. Returns failure if a promise is broken.
pub(crate) fn print_run(run: &Run, shape: Shape) -> ExitCode {
    let ids: Vec<&str> = run.broken.iter().filter_map(|promise| promise.split_once(':')).map(|(id, _)| id).collect();
    let is_relevant = |line: &&String| {
        let event = line.split_once(" s  ").map_or("", |(_, event)| event);
        let id = event.split_once(':').map(|(id, _)| id);
        ids.is_empty() || id.is_none_or(|id| ids.contains(&id))
    };
    run.log.iter().filter(is_relevant).for_each(|line| println!("{line}"));
    let without: Vec<&str> = Shape::FAULTS
        .iter()
        .enumerate()
        .filter(|(bit, _)| shape.without & (1 << bit) != 0)
        .map(|(_, fault)| *fault)
        .collect();
    print!("digest {}, again with --seed {}", run.digest, run.seed);
    if let Some(verifications) = shape.verifications {
        print!(" --verifications {verifications}");
    }
    if !without.is_empty() {
        print!(" --without {}", without.join(","));
    }
    println!();
    run.broken.iter().for_each(|promise| println!("BROKEN: {promise}"));
    if run.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
