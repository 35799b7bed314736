//! Power failures at any write of an honest disk.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_kit::random::Random;

use super::cases;
use super::content::{Content, is_new};
use super::look::{Case, Look, judge_all, look, use_further};
use super::recording::Recording;
use super::trace::{DiskState, Rest};
use crate::embedded::EmbeddedStore;

/// Cases in which the store is used further.
const USED: usize = 10;

/// Returns about `count` crashes of a recording, at every change of the disk in turn.
pub(super) fn crashes(recording: &Recording, count: usize, mut random: Random) -> impl Iterator<Item = Case> {
    let (moments, opened) = (recording.changes.len() + 1, recording.states[0].changes);
    let (mut state, mut known) = (DiskState::default(), HashSet::new());
    (0..moments).flat_map(move |at| {
        if let Some(change) = at.checked_sub(1).map(|last| &recording.changes[last]) {
            state.follow(change, false);
        }
        let here = (at + 1) * count / moments - at * count / moments;
        let mut made = Vec::new();
        for number in 0..here {
            let rest = if here > Rest::ALL.len() && number < Rest::ALL.len() {
                Rest::ALL[number]
            } else {
                Rest::ALL[usize::try_from(random.below(Rest::ALL.len() as u64)).unwrap()]
            };
            let mut files = state.after_crash(rest, &mut random);
            if random.below(8) == 0 && files.contains_key("sakshi.db-wal") {
                // The index of the log is not synced: any of it may be left.
                files.insert("sakshi.db-shm".into(), (0..32_768).map(|_| random.next().to_le_bytes()[0]).collect());
            }
            let mut hasher = DefaultHasher::new();
            (&files, recording.answered(at)).hash(&mut hasher);
            if known.insert(hasher.finish()) {
                made.push(Case { files, is_marked: at >= opened, at, how: format!("{rest:?}") });
            }
        }
        made
    })
}

/// Returns the numbers of the states that have this content.
pub(super) fn states_of<'a>(recording: &'a Recording, content: &'a Content) -> impl Iterator<Item = usize> + 'a {
    recording.states.iter().enumerate().filter(move |(_, state)| state.content == *content).map(|(number, _)| number)
}

/// Judges one crash of an honest disk.
fn judge(recording: &Recording, directory: &Path, case: &Case) -> Option<EmbeddedStore> {
    let (found, store) = look(directory, case, &recording.keys);
    let answered = recording.answered(case.at);
    let step = answered.map_or("nothing", |number| recording.states[number].step);
    match found {
        Look::Content(content) if answered.is_none() => assert!(is_new(&content), "{} {}", case.at, case.how),
        Look::Content(content) => {
            let (answered, found) = (answered.unwrap(), states_of(recording, &content).collect::<Vec<_>>());
            let is_between =
                || recording.between.iter().any(|(before, between)| *before == answered && *between == content);
            let is_right = found.contains(&answered) || found.contains(&(answered + 1)) || is_between();
            assert!(
                is_right,
                "at {} {} after {step} ({answered}), the store has the content of {found:?}; {:?}",
                case.at,
                case.how,
                differing(&recording.states[answered].content, &content)
            );
        }
        refused => panic!("at {} {} after {step}: {refused:?}", case.at, case.how),
    }
    store
}

/// Returns the keys under which two contents differ.
pub(super) fn differing<'a>(one: &'a Content, other: &'a Content) -> Vec<&'a str> {
    let keys = one.keys().chain(other.keys()).filter(|key| one.get(*key) != other.get(*key));
    let mut tables: Vec<&str> = keys.map(|(table, ..)| *table).collect();
    tables.dedup();
    tables
}

#[test]
fn after_a_power_cut_at_any_write_everything_answered_is_there_and_nothing_half() {
    let count = cases("SAKSHI_CRASHES", 400, 100_000);
    let recording = Recording::shared();
    let (_, random) = Random::of_this_run();
    let (looked, every) = (AtomicUsize::new(0), (count / USED).max(1));
    judge_all(crashes(recording, count, random), |directory, case| {
        let store = judge(recording, directory, &case);
        let number = looked.fetch_add(1, Ordering::Relaxed);
        // From the first grant on there are credits.
        if number.is_multiple_of(every) && recording.answered(case.at).is_some_and(|answered| answered > 2) {
            use_further(directory, store.unwrap(), recording);
        }
    });
    let (looked, moments, steps) = (looked.into_inner(), recording.changes.len() + 1, recording.states.len());
    eprintln!("{count} crashes at {moments} moments of {steps} steps: {looked} kinds of files, each as it should be");
    assert!(looked > count / 3, "{looked}");
}
