//! Disks that lie about one write while the store runs, so that the store reads other data than it wrote.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sakshi_domain::clock::ManualClock;
use sakshi_kit::random::Random;

use super::case_count;
use super::look::{ReadResult, read_all};
use super::recording::{Recorder, Recording, directory};
use super::trace::Change;
use super::vfs::Lie;
use crate::embedded::tests::{START, open_when_free, options};

/// The result of a run with a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RunResult {
    /// All steps were answered, and all are stored.
    Whole,
    /// A step or an opening was refused with an ordinary error.
    Refused,
    /// The store has the complete state after an earlier step.
    Earlier,
    /// A state that never existed.
    Mixed,
    /// A step got a wrong answer.
    WrongAnswer,
}

/// Errors that end a run: errors of the store, and of SQLite where the test reads the file.
const REFUSALS: [&str; 5] = ["Corrupt(", "Unavailable(", "SqliteFailure(", "InvalidColumnType(", "Utf8Error("];

/// Returns the message of a panic in the test.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Runs the workload with one lie. Returns the result.
fn run_with_lie(lie: Lie, at: usize) -> RunResult {
    let directory = directory();
    let mut recorder = Recorder::new(directory.path());
    recorder.disk.lie_at(at, lie);
    let outcome = catch_unwind(AssertUnwindSafe(|| Recording::run_workload(&mut recorder, directory.path())));
    if let Err(panic) = &outcome {
        let text = panic_message(&**panic);
        assert!(!text.contains("an operation panicked"), "{lie:?} at {at}: {text}");
        if !REFUSALS.iter().any(|word| text.contains(word)) {
            return RunResult::WrongAnswer;
        }
    }
    let store = match open_when_free(&options(directory.path(), Arc::new(ManualClock::starting_at(START)))) {
        Ok(store) => store,
        Err(_) => return RunResult::Refused,
    };
    let states = std::mem::take(&mut recorder.states);
    match read_all(&store, &recorder.keys()) {
        ReadResult::Content(content) => match states.iter().rposition(|state| state.content == content) {
            Some(last) if last + 1 == states.len() && outcome.is_ok() => RunResult::Whole,
            Some(last) if last + 1 == states.len() => RunResult::Refused,
            Some(_) => RunResult::Earlier,
            None if outcome.is_err() => RunResult::Refused,
            None => RunResult::Mixed,
        },
        ReadResult::Refused(_) | ReadResult::Unreadable(_) => RunResult::Refused,
    }
}

#[test]
fn no_dropped_or_misdirected_write_makes_the_running_store_panic() {
    let runs = case_count("SAKSHI_LIVE_LIES", 2, 400);
    let reference = Recording::shared();
    let writes: Vec<(usize, usize)> = (0..reference.changes.len())
        .filter_map(|at| {
            if let Change::Write { bytes, .. } = &reference.changes[at] { Some((at, bytes.len())) } else { None }
        })
        .collect();
    let (_, mut random) = Random::of_this_run();
    let mut results: BTreeMap<RunResult, usize> = BTreeMap::new();
    for number in 0..runs {
        let (at, _) = writes[usize::try_from(random.below(writes.len() as u64)).unwrap()];
        let lie = if number.is_multiple_of(2) {
            Lie::Drop
        } else {
            Lie::Misdirect(4_096 * i64::try_from(random.below(40)).unwrap())
        };
        *results.entry(run_with_lie(lie, at)).or_default() += 1;
    }
    eprintln!("{runs} runs with a lie: {results:?}");
}
