//! Disks that lie about a sync, a write, the position of a write, or the bytes beside it.
//!
//! No store can recover everything that such a disk loses. Each case ends in an [`Outcome`], and a table counts them.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Mutex;

use sakshi_kit::random::Random;

use super::case_count;
use super::content::is_new;
use super::crashes::{differing_tables, states_with};
use super::look::{Case, ReadResult, judge_all, open_and_read};
use super::recording::Recording;
use super::trace::{Change, DiskState, FileId, Survivors};
use crate::conformance::run;
use crate::embedded::EmbeddedStore;
use crate::{Audit, StoreError};

/// The outcome of a case, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything answered is stored.
    Whole,
    /// Opening is refused with an ordinary error.
    Refused,
    /// A read is refused with an ordinary error, and so is every later call.
    Unreadable,
    /// A complete earlier state: the last answers are lost.
    Earlier,
    /// A state that never existed, reported by an audit of credits.
    Audited,
    /// A state that never existed, reported by SQLite's check of the whole file.
    Checked,
    /// A state that never existed, unnoticed.
    Unnoticed,
}

/// A lie and its target file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lie {
    /// Syncs of the log do nothing from some moment until a power cut.
    SyncOfLog,
    /// Syncs of the database file do nothing from some moment until a power cut.
    SyncOfFile,
    /// All syncs do nothing from some moment until a power cut.
    Sync,
    /// A write to the log is dropped.
    DropInLog,
    /// A write to the database file is dropped.
    DropInFile,
    /// A write to the log goes to another position in the log.
    MisdirectInLog,
    /// A write to the database file goes to another position in it.
    MisdirectInFile,
    /// A power cut during a write to the log destroys the whole sectors of 4,096 bytes that it touches.
    WholeSectors,
}

impl Lie {
    const ALL: [Self; 8] = [
        Self::SyncOfLog,
        Self::SyncOfFile,
        Self::Sync,
        Self::DropInLog,
        Self::DropInFile,
        Self::MisdirectInLog,
        Self::MisdirectInFile,
        Self::WholeSectors,
    ];

    /// Returns true if the lie affects logs, or database files.
    const fn affects(self, is_log: bool) -> bool {
        match self {
            Self::SyncOfLog | Self::DropInLog | Self::MisdirectInLog | Self::WholeSectors => is_log,
            Self::SyncOfFile | Self::DropInFile | Self::MisdirectInFile => !is_log,
            Self::Sync => true,
        }
    }
}

/// Returns a random number below a bound; 0 for the bound 0.
fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound.max(1) as u64)).unwrap()
}

/// Returns the ids of the log files.
fn log_files(recording: &Recording) -> Vec<FileId> {
    let created = recording.changes.iter().filter_map(|change| match change {
        Change::Create { file, name } if name.ends_with("-wal") => Some(*file),
        _ => None,
    });
    created.collect()
}

/// Returns the index of a random change, after the store was opened, to which the lie applies.
fn random_change(recording: &Recording, logs: &[FileId], lie: Lie, random: &mut Random) -> usize {
    let opened = recording.states[0].changes;
    let is_target = |change: &Change| match change {
        Change::Sync { file, .. } => {
            matches!(lie, Lie::Sync | Lie::SyncOfLog | Lie::SyncOfFile) && lie.affects(logs.contains(file))
        }
        Change::Write { file, bytes, .. } => {
            let is_frame_or_page = bytes.len() >= 24;
            !matches!(lie, Lie::Sync | Lie::SyncOfLog | Lie::SyncOfFile)
                && lie.affects(logs.contains(file))
                && is_frame_or_page
        }
        _ => false,
    };
    let targets: Vec<usize> =
        (opened..recording.changes.len()).filter(|at| is_target(&recording.changes[*at])).collect();
    targets[below(random, targets.len())]
}

/// A case with a lie, and what happened between the lie and the crash.
struct LyingCase {
    case: Case,
    /// True if the log was copied into the database file.
    is_copied: bool,
    /// Number of syncs of the log.
    commits: usize,
}

/// Builds a case with this lie.
fn lying_case(recording: &Recording, logs: &[FileId], lie: Lie, random: &mut Random) -> LyingCase {
    let from = random_change(recording, logs, lie, random);
    // Most crashes follow soon after the lie, and some only much later.
    let remaining = recording.changes.len() - from - 1;
    let later = if random.below(3) == 0 { below(random, remaining + 1) } else { below(random, remaining.min(200) + 1) };
    let at = from + 1 + later;
    let (mut state, mut garbled) = (DiskState::default(), None);
    for (number, change) in recording.changes[..at].iter().enumerate() {
        let is_lie = number == from;
        match (lie, change) {
            (Lie::Sync | Lie::SyncOfLog | Lie::SyncOfFile, Change::Sync { file, .. }) => {
                state.apply_with_lie(change, number >= from && lie.affects(logs.contains(file)));
            }
            (Lie::DropInLog | Lie::DropInFile, _) if is_lie => {}
            (Lie::MisdirectInLog | Lie::MisdirectInFile, Change::Write { file, at, bytes }) if is_lie => {
                let unit = if logs.contains(file) { 4_120 } else { 4_096 };
                let wrong_position = (at % unit) + unit * random.below(at / unit + 4);
                state.apply(&Change::Write { file: *file, at: wrong_position, bytes: bytes.clone() });
            }
            (Lie::WholeSectors, Change::Write { file, at, bytes }) if is_lie => {
                let first = at / 4_096 * 4_096;
                let end = (at + bytes.len() as u64).div_ceil(4_096) * 4_096;
                garbled = Some(Change::Write {
                    file: *file,
                    at: first,
                    bytes: vec![0xA5; usize::try_from(end - first).unwrap()].into(),
                });
            }
            _ => state.apply(change),
        }
        if garbled.is_some() {
            break;
        }
    }
    let at = if let Some(garbled) = garbled {
        state.apply(&garbled);
        from
    } else {
        at
    };
    let survivors = match lie {
        Lie::Sync | Lie::SyncOfLog | Lie::SyncOfFile => Survivors::ALL[below(random, Survivors::ALL.len())],
        _ => Survivors::Everything,
    };
    let since = recording.changes.get(from..at).unwrap_or_default();
    let is_copied = since.iter().any(|change| matches!(change, Change::Write { file, .. } if !logs.contains(file)));
    let commits =
        since.iter().filter(|change| matches!(change, Change::Sync { file, .. } if logs.contains(file))).count();
    let description = format!("{lie:?} from {from}, then {survivors:?}");
    let files = state.after_crash(survivors, random);
    LyingCase { case: Case { files, is_marked: true, moment: at, description }, is_copied, commits }
}

/// Returns true if SQLite's check of the whole file passes.
fn passes_integrity_check(store: &EmbeddedStore) -> bool {
    let mut result = None;
    run(async {
        let check = |sql: &'static str| {
            store.sqlite().read(move |db| db.connection.query_row(sql, [], |row| row.get::<_, String>(0)))
        };
        result = Some(check("PRAGMA integrity_check(1)").await);
    });
    result.unwrap().is_ok_and(|verdict| verdict == "ok")
}

/// Returns true if an audit of all ledgers passes.
fn passes_audit(store: &EmbeddedStore) -> bool {
    let mut result = None;
    run(async { result = Some(store.audit().await) });
    result.unwrap().is_ok_and(|audits| audits.iter().all(Audit::is_clean))
}

/// Asserts that an error is an ordinary error, and not a panic.
fn assert_ordinary(error: &StoreError) {
    assert!(!error.to_string().contains("panicked"), "{error}");
}

/// Opens the files of a case and reads everything. Returns the outcome.
fn judge(recording: &Recording, directory: &Path, case: &Case) -> Outcome {
    let (result, store) = open_and_read(directory, case, &recording.keys);
    let last_answered = recording.last_answered_state(case.moment).unwrap_or(0);
    match result {
        ReadResult::Refused(error) => {
            assert_ordinary(&error);
            Outcome::Refused
        }
        ReadResult::Unreadable(error) => {
            assert_ordinary(&error);
            Outcome::Unreadable
        }
        ReadResult::Content(content) => {
            let states: Vec<usize> = states_with(recording, &content).collect();
            if states.contains(&last_answered) || states.contains(&(last_answered + 1)) {
                return Outcome::Whole;
            }
            let was_between = recording
                .intermediate_contents
                .iter()
                .any(|(before, between)| *before <= last_answered && *between == content);
            if states.iter().any(|number| *number < last_answered) || was_between || is_new(&content) {
                return Outcome::Earlier;
            }
            let store = store.unwrap();
            let outcome = match (passes_audit(&store), passes_integrity_check(&store)) {
                (false, _) => Outcome::Audited,
                (true, false) => Outcome::Checked,
                (true, true) => Outcome::Unnoticed,
            };
            if std::env::var_os("SAKSHI_LIES_SHOW").is_some() {
                let tables = differing_tables(&recording.states[last_answered].content, &content);
                eprintln!(
                    "{outcome:?} at {} ({}): {} {tables:?}",
                    case.moment, recording.states[last_answered].step, case.description
                );
            }
            outcome
        }
    }
}

#[test]
fn a_lie_about_the_log_is_refused_or_leaves_a_complete_earlier_state() {
    let count = case_count("SAKSHI_LIES", 240, 20_000);
    let recording = Recording::shared();
    let logs = log_files(recording);
    let (_, mut random) = Random::of_this_run();
    let table: Mutex<BTreeMap<Lie, BTreeMap<Outcome, usize>>> = Mutex::default();
    let lies = Mutex::new(VecDeque::new());
    let cases = (0..count).map(|number| {
        let lie = Lie::ALL[number % Lie::ALL.len()];
        let LyingCase { mut case, is_copied, commits } = lying_case(recording, &logs, lie, &mut random);
        case.description = format!("{number}: {}", case.description);
        lies.lock().unwrap().push_back((case.description.clone(), lie, is_copied, commits));
        case
    });
    judge_all(cases, |directory, case| {
        let outcome = judge(recording, directory, &case);
        let (_, lie, is_copied, commits) = {
            let mut lies = lies.lock().unwrap();
            let index = lies.iter().position(|(description, ..)| *description == case.description).unwrap();
            lies.remove(index).unwrap()
        };
        assert_certain_effects(lie, is_copied, commits, outcome, &case);
        *table.lock().unwrap().entry(lie).or_default().entry(outcome).or_default() += 1;
    });
    for (lie, outcomes) in table.into_inner().unwrap() {
        eprintln!("{lie:?}: {outcomes:?}");
    }
}

/// Asserts the certain effects of a lie about the log: the chain of checksums breaks, and later commits reveal the
/// break. After a crash that left a log, all pages are checked.
fn assert_certain_effects(lie: Lie, is_copied: bool, commits: usize, outcome: Outcome, case: &Case) {
    assert!(
        outcome != Outcome::Checked || !case.files.contains_key("sakshi.db-wal"),
        "the file was opened unchecked: {}",
        case.description
    );
    if is_copied || !matches!(lie, Lie::SyncOfLog | Lie::DropInLog | Lie::MisdirectInLog | Lie::WholeSectors) {
        return;
    }
    let is_expected = matches!(outcome, Outcome::Whole | Outcome::Refused | Outcome::Earlier);
    assert!(is_expected, "{outcome:?}, {}", case.description);
    let is_one_write = matches!(lie, Lie::DropInLog | Lie::MisdirectInLog);
    assert!(
        !is_one_write || commits < 4 || outcome != Outcome::Earlier,
        "{} commits are lost without an error: {}",
        commits,
        case.description
    );
}
