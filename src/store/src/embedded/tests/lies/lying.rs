//! Disks that lie: about a sync, about a write, about its place, or about the bytes beside it.
//!
//! No store can recover all that such a disk loses. Each case ends in one of the ways of [`Outcome`]; a table counts
//! them.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Mutex;

use sakshi_kit::random::Random;

use super::cases;
use super::content::is_new;
use super::crashes::{differing, states_of};
use super::look::{Case, Look, judge_all, look};
use super::recording::Recording;
use super::trace::{Change, DiskState, FileId, Rest};
use crate::conformance::run;
use crate::embedded::EmbeddedStore;
use crate::{Audit, StoreError};

/// The way in which a case ends, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything answered is stored.
    Whole,
    /// Opening is refused with a sentence.
    Refused,
    /// A read is refused with a sentence, and everything from then on.
    Unreadable,
    /// An earlier state, whole: the last answers are lost.
    Earlier,
    /// A state that never existed, and an audit of credits reports it.
    Audited,
    /// A state that never existed, and SQLite's check of the whole file reports it.
    Checked,
    /// A state that never existed, unnoticed.
    Unnoticed,
}

/// A lie, and its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lie {
    /// No sync of the log does anything from some moment on, and then power fails.
    SyncOfLog,
    /// The same for the database file.
    SyncOfFile,
    /// The same for both.
    Sync,
    /// A write to the log is dropped.
    DropInLog,
    /// A write to the database file is dropped.
    DropInFile,
    /// A write to the log goes elsewhere in the log.
    MisdirectInLog,
    /// A write to the database file goes elsewhere in it.
    MisdirectInFile,
    /// Power fails in a write to the log, and the rest of the touched sector of 4,096 bytes is lost too.
    Beside,
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
        Self::Beside,
    ];

    /// Returns true if the lie concerns files of this kind.
    const fn concerns(self, is_log: bool) -> bool {
        match self {
            Self::SyncOfLog | Self::DropInLog | Self::MisdirectInLog | Self::Beside => is_log,
            Self::SyncOfFile | Self::DropInFile | Self::MisdirectInFile => !is_log,
            Self::Sync => true,
        }
    }
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound.max(1) as u64)).unwrap()
}

/// Returns the files that are logs.
fn logs(recording: &Recording) -> Vec<FileId> {
    let created = recording.changes.iter().filter_map(|change| match change {
        Change::Create { file, name } if name.ends_with("-wal") => Some(*file),
        _ => None,
    });
    created.collect()
}

/// Returns a random change to which the lie applies, once the store was open.
fn moment(recording: &Recording, logs: &[FileId], lie: Lie, random: &mut Random) -> usize {
    let opened = recording.states[0].changes;
    let is_one = |change: &Change| match change {
        Change::Sync { file, .. } => {
            matches!(lie, Lie::Sync | Lie::SyncOfLog | Lie::SyncOfFile) && lie.concerns(logs.contains(file))
        }
        Change::Write { file, bytes, .. } => {
            let is_frame_or_page = bytes.len() >= 24;
            !matches!(lie, Lie::Sync | Lie::SyncOfLog | Lie::SyncOfFile)
                && lie.concerns(logs.contains(file))
                && is_frame_or_page
        }
        _ => false,
    };
    let all: Vec<usize> = (opened..recording.changes.len()).filter(|at| is_one(&recording.changes[*at])).collect();
    all[below(random, all.len())]
}

/// A case with a lie, and the events between the lie and its end.
struct LyingCase {
    case: Case,
    /// True if the log was copied into the file.
    is_copied: bool,
    /// Number of syncs of the log.
    commits: usize,
}

/// Returns a case with this lie.
fn case(recording: &Recording, logs: &[FileId], lie: Lie, random: &mut Random) -> LyingCase {
    let from = moment(recording, logs, lie, random);
    // A lie is most often noticed soon, and sometimes only much later.
    let left = recording.changes.len() - from - 1;
    let later = if random.below(3) == 0 { below(random, left + 1) } else { below(random, left.min(200) + 1) };
    let at = from + 1 + later;
    let (mut state, mut garbled) = (DiskState::default(), None);
    for (number, change) in recording.changes[..at].iter().enumerate() {
        let is_lie = number == from;
        match (lie, change) {
            (Lie::Sync | Lie::SyncOfLog | Lie::SyncOfFile, Change::Sync { file, .. }) => {
                state.follow(change, number >= from && lie.concerns(logs.contains(file)));
            }
            (Lie::DropInLog | Lie::DropInFile, _) if is_lie => {}
            (Lie::MisdirectInLog | Lie::MisdirectInFile, Change::Write { file, at, bytes }) if is_lie => {
                let unit = if logs.contains(file) { 4_120 } else { 4_096 };
                let elsewhere = (at % unit) + unit * random.below(at / unit + 4);
                state.follow(&Change::Write { file: *file, at: elsewhere, bytes: bytes.clone() }, false);
            }
            (Lie::Beside, Change::Write { file, at, bytes }) if is_lie => {
                let first = at / 4_096 * 4_096;
                let end = (at + bytes.len() as u64).div_ceil(4_096) * 4_096;
                garbled = Some(Change::Write {
                    file: *file,
                    at: first,
                    bytes: vec![0xA5; usize::try_from(end - first).unwrap()].into(),
                });
            }
            _ => state.follow(change, false),
        }
        if garbled.is_some() {
            break;
        }
    }
    let at = if let Some(garbled) = garbled {
        state.follow(&garbled, false);
        from
    } else {
        at
    };
    let rest = match lie {
        Lie::Sync | Lie::SyncOfLog | Lie::SyncOfFile => Rest::ALL[below(random, Rest::ALL.len())],
        _ => Rest::Everything,
    };
    let since = recording.changes.get(from..at).unwrap_or_default();
    let is_copied = since.iter().any(|change| matches!(change, Change::Write { file, .. } if !logs.contains(file)));
    let commits =
        since.iter().filter(|change| matches!(change, Change::Sync { file, .. } if logs.contains(file))).count();
    let how = format!("{lie:?} from {from}, then {rest:?}");
    LyingCase { case: Case { files: state.after_crash(rest, random), is_marked: true, at, how }, is_copied, commits }
}

/// Returns true if SQLite's check of the whole file passes.
fn is_whole(store: &EmbeddedStore) -> bool {
    let mut found = None;
    run(async {
        let check = |sql: &'static str| {
            store.sqlite().read(move |db| db.connection.query_row(sql, [], |row| row.get::<_, String>(0)))
        };
        found = Some(check("PRAGMA integrity_check(1)").await);
    });
    found.unwrap().is_ok_and(|verdict| verdict == "ok")
}

fn is_balanced(store: &EmbeddedStore) -> bool {
    let mut found = None;
    run(async { found = Some(store.audit().await) });
    found.unwrap().is_ok_and(|audits| audits.iter().all(Audit::is_clean))
}

/// Checks that a refusal has an ordinary message, not that of a defect.
fn is_a_sentence(error: &StoreError) {
    assert!(!error.to_string().contains("panicked"), "{error}");
}

fn judge(recording: &Recording, directory: &Path, case: &Case) -> Outcome {
    let (found, store) = look(directory, case, &recording.keys);
    let answered = recording.answered(case.at).unwrap_or(0);
    match found {
        Look::Refused(error) => {
            is_a_sentence(&error);
            Outcome::Refused
        }
        Look::Unreadable(error) => {
            is_a_sentence(&error);
            Outcome::Unreadable
        }
        Look::Content(content) => {
            let found: Vec<usize> = states_of(recording, &content).collect();
            if found.contains(&answered) || found.contains(&(answered + 1)) {
                return Outcome::Whole;
            }
            let was_between =
                recording.between.iter().any(|(before, between)| *before <= answered && *between == content);
            if found.iter().any(|number| *number < answered) || was_between || is_new(&content) {
                return Outcome::Earlier;
            }
            let store = store.unwrap();
            let outcome = match (is_balanced(&store), is_whole(&store)) {
                (false, _) => Outcome::Audited,
                (true, false) => Outcome::Checked,
                (true, true) => Outcome::Unnoticed,
            };
            if std::env::var_os("SAKSHI_LIES_SHOW").is_some() {
                let kinds = differing(&recording.states[answered].content, &content);
                eprintln!("{outcome:?} at {} ({}): {} {kinds:?}", case.at, recording.states[answered].step, case.how);
            }
            outcome
        }
    }
}

#[test]
fn a_disk_that_lies_is_refused_or_goes_back_as_a_whole_where_that_can_be_known() {
    let count = cases("SAKSHI_LIES", 240, 20_000);
    let recording = Recording::shared();
    let logs = logs(recording);
    let (_, mut random) = Random::of_this_run();
    let table: Mutex<BTreeMap<Lie, BTreeMap<Outcome, usize>>> = Mutex::default();
    let lies = Mutex::new(VecDeque::new());
    let made = (0..count).map(|number| {
        let lie = Lie::ALL[number % Lie::ALL.len()];
        let LyingCase { mut case, is_copied, commits } = case(recording, &logs, lie, &mut random);
        case.how = format!("{number}: {}", case.how);
        lies.lock().unwrap().push_back((case.how.clone(), lie, is_copied, commits));
        case
    });
    judge_all(made, |directory, case| {
        let outcome = judge(recording, directory, &case);
        let (_, lie, is_copied, commits) = {
            let mut lies = lies.lock().unwrap();
            let place = lies.iter().position(|(how, ..)| *how == case.how).unwrap();
            lies.remove(place).unwrap()
        };
        hold(lie, is_copied, commits, outcome, &case);
        *table.lock().unwrap().entry(lie).or_default().entry(outcome).or_default() += 1;
    });
    for (lie, outcomes) in table.into_inner().unwrap() {
        eprintln!("{lie:?}: {outcomes:?}");
    }
}

/// Asserts the certain effects of a lie about the log alone: its chain of checksums breaks, and commits behind the
/// break show it. If a log was left, all pages are checked.
fn hold(lie: Lie, is_copied: bool, commits: usize, outcome: Outcome, case: &Case) {
    assert!(
        outcome != Outcome::Checked || !case.files.contains_key("sakshi.db-wal"),
        "it was opened unchecked: {}",
        case.how
    );
    if is_copied || !matches!(lie, Lie::SyncOfLog | Lie::DropInLog | Lie::MisdirectInLog | Lie::Beside) {
        return;
    }
    let is_known = matches!(outcome, Outcome::Whole | Outcome::Refused | Outcome::Earlier);
    assert!(is_known, "{outcome:?}, {}", case.how);
    let is_one_write = matches!(lie, Lie::DropInLog | Lie::MisdirectInLog);
    assert!(
        !is_one_write || commits < 4 || outcome != Outcome::Earlier,
        "{} commits are lost without a word: {}",
        commits,
        case.how
    );
}
