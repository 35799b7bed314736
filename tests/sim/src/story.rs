//! A run, printed as a story.

use std::process::ExitCode;

use sakshi_sim::{Run, Shape};

/// Text before the number of seeds that it took to break a promise.
pub(crate) const FOUND: &str = "a promise is broken; seeds that it took: ";

/// Prints the run and, for a broken promise, the lines that concern it. Fails if a promise is broken.
pub(crate) fn tell(ran: &Run, shape: Shape) -> ExitCode {
    let concerned: Vec<&str> = ran.broken.iter().filter_map(|what| what.split_once(':')).map(|(id, _)| id).collect();
    let is_told = |line: &&String| {
        let what = line.split_once(" s  ").map_or("", |(_, what)| what);
        let id = what.split_once(':').map(|(id, _)| id);
        concerned.is_empty() || id.is_none_or(|id| concerned.contains(&id))
    };
    ran.log.iter().filter(is_told).for_each(|line| println!("{line}"));
    let without: Vec<&str> = Shape::FAULTS
        .iter()
        .enumerate()
        .filter(|(bit, _)| shape.without & (1 << bit) != 0)
        .map(|(_, fault)| *fault)
        .collect();
    print!("digest {}, again with --seed {}", ran.digest, ran.seed);
    if let Some(verifications) = shape.verifications {
        print!(" --verifications {verifications}");
    }
    if !without.is_empty() {
        print!(" --without {}", without.join(","));
    }
    println!();
    ran.broken.iter().for_each(|what| println!("BROKEN: {what}"));
    if ran.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
