//! Disks that lie about one write while the store runs, so that it reads back other data than it wrote.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sakshi_domain::clock::ManualClock;
use sakshi_kit::random::Random;

use super::cases;
use super::look::{Look, read};
use super::recording::{Recorder, Recording, directory};
use super::trace::Change;
use super::vfs::Lie;
use crate::embedded::tests::{START, open_when_free, options};

/// The end of a life with a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// All steps were answered, and all are there.
    Whole,
    /// A step or an opening was refused with a sentence.
    Refused,
    /// All that was answered until some step is stored, whole, and nothing after it.
    Earlier,
    /// A state that never existed.
    Mixed,
    /// A step got a wrong answer.
    Otherwise,
}

/// Errors that end a life: those of the store, and those of SQLite where the test itself reads the file.
const REFUSALS: [&str; 5] = ["Corrupt(", "Unavailable(", "SqliteFailure(", "InvalidColumnType(", "Utf8Error("];

/// Returns the text of a panic of the test itself, which states its observation.
fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Runs a life with one lie. Returns its end.
fn live(lie: Lie, at: usize) -> End {
    let directory = directory();
    let mut recorder = Recorder::over(directory.path());
    recorder.disk.lie_at(at, lie);
    let lived = catch_unwind(AssertUnwindSafe(|| Recording::live(&mut recorder, directory.path())));
    if let Err(panic) = &lived {
        let text = text(&**panic);
        assert!(!text.contains("an operation panicked"), "{lie:?} at {at}: {text}");
        if !REFUSALS.iter().any(|word| text.contains(word)) {
            return End::Otherwise;
        }
    }
    let store = match open_when_free(&options(directory.path(), Arc::new(ManualClock::starting_at(START)))) {
        Ok(store) => store,
        Err(_) => return End::Refused,
    };
    let states = std::mem::take(&mut recorder.states);
    match read(&store, &recorder.keys()) {
        Look::Content(content) => match states.iter().rposition(|state| state.content == content) {
            Some(last) if last + 1 == states.len() && lived.is_ok() => End::Whole,
            Some(last) if last + 1 == states.len() => End::Refused,
            Some(_) => End::Earlier,
            None if lived.is_err() => End::Refused,
            None => End::Mixed,
        },
        Look::Refused(_) | Look::Unreadable(_) => End::Refused,
    }
}

#[test]
fn a_write_that_is_dropped_or_goes_elsewhere_while_the_store_works_is_refused_or_harmless() {
    let lives = cases("SAKSHI_LIVE_LIES", 2, 400);
    let reference = Recording::shared();
    let writes: Vec<(usize, usize)> = (0..reference.changes.len())
        .filter_map(|at| {
            if let Change::Write { bytes, .. } = &reference.changes[at] { Some((at, bytes.len())) } else { None }
        })
        .collect();
    let (_, mut random) = Random::of_this_run();
    let mut ends: BTreeMap<End, usize> = BTreeMap::new();
    for number in 0..lives {
        let (at, _) = writes[usize::try_from(random.below(writes.len() as u64)).unwrap()];
        let lie = if number.is_multiple_of(2) {
            Lie::Drop
        } else {
            Lie::Misdirect(4_096 * i64::try_from(random.below(40)).unwrap())
        };
        *ends.entry(live(lie, at)).or_default() += 1;
    }
    eprintln!("{lives} lives with a lie: {ends:?}");
}
