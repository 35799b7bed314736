//! `sakshi-differential`: seeded mutations of credentials, judged by the verifier of this service and two libraries.
//!
//! A run fails on a difference that no fact explains, and on a verdict of this service that contradicts the rules.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the results are printed")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "an error here ends the run")]

mod changes;
mod facts;
mod issuer;
mod judge;
mod libraries;
mod random;
mod reading;
mod report;
mod shapes;
mod tree;

use std::process::ExitCode;
use std::thread;

use clap::Parser;
use serde_json::{Value, json};

use changes::{Case, make_case};
use issuer::Keys;
use judge::{Comparison, ServiceVerifiers, judge, must_verify_binding};
use report::Counts;

/// Number of credentials generated and judged at a time.
const BATCH_SIZE: u64 = 1_000;

/// Maximum number of failures printed.
const PRINTED_FAILURES_MAX: u64 = 20;

/// Compares three verifiers over mutated credentials.
#[derive(Debug, Parser)]
struct Options {
    /// Seed of the first credential; the next credential has the next seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of credentials.
    #[arg(long, default_value_t = 3_000)]
    count: u64,
    /// Print each credential with its facts and verdicts.
    #[arg(long)]
    show: bool,
    /// Write the table into the repository.
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let counts = run(&options);
    print!("{}", counts.table(options.seed));
    if options.write {
        counts.write(options.seed);
    }
    if counts.unexplained == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Judges the credentials, and prints those with unexplained verdicts.
fn run(options: &Options) -> Counts {
    let (first_seed, end_seed) = (options.seed, options.seed + options.count);
    libraries::install();
    let keys = Keys::generate();
    let ours = ServiceVerifiers::new(&keys);
    let [mut python, mut node] = libraries::start(&keys);
    let mut counts = Counts::default();
    let make_cases =
        |from: u64| (from..(from + BATCH_SIZE).min(end_seed)).map(|seed| make_case(seed, &keys)).collect::<Vec<Case>>();
    let mut cases = make_cases(first_seed);
    let mut from = first_seed;
    while !cases.is_empty() {
        from += BATCH_SIZE;
        let requests: Vec<Value> = cases
            .iter()
            .map(|case| json!({"credential": case.credential, "binding": must_verify_binding(case)}))
            .collect();
        let (by_python, by_node, next_cases) = thread::scope(|scope| {
            let by_python = scope.spawn(|| python.ask(&requests));
            let by_node = scope.spawn(|| node.ask(&requests));
            let next_cases = make_cases(from);
            (by_python.join().expect("verdicts"), by_node.join().expect("verdicts"), next_cases)
        });
        assert!(by_python.len() == cases.len() && by_node.len() == cases.len(), "a verifier ended early");
        let verdicts = by_python.into_iter().zip(by_node);
        for (case, (by_python, by_node)) in std::mem::replace(&mut cases, next_cases).into_iter().zip(verdicts) {
            if options.show {
                println!("{}", case.credential);
            }
            let comparison = judge(case, [by_python, by_node], &ours, &keys);
            if options.show || (!comparison.faults.is_empty() && counts.unexplained < PRINTED_FAILURES_MAX) {
                print_comparison(&comparison);
            }
            counts.add(&comparison);
        }
    }
    python.end();
    node.end();
    counts
}

fn print_comparison(comparison: &Comparison) {
    let Comparison { seed, changes, facts, is_accepted, accepted_by: [python, node], faults, .. } = comparison;
    println!("seed {seed}: {}", changes.join("; "));
    println!("  accepted by sakshi {is_accepted}, sd-jwt {python}, @sd-jwt/core {node}; facts {facts:?}");
    for fault in faults {
        println!("  NOT EXPLAINED: {fault}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_verifiers_agree_or_a_rule_explains_the_difference() {
        let counts = run(&Options { seed: 1_000_000, count: 3_000, show: false, write: false });
        assert_eq!(
            counts.unexplained, 0,
            "see above; `cargo run -p sakshi-differential -- --seed SEED --count 1 --show` shows a case"
        );
        assert!((40..=60).contains(&counts.percent_accepted()), "about half of the credentials must be valid");
        assert!(counts.missing_facts().is_empty(), "no credential had {:?}", counts.missing_facts());
    }
}
