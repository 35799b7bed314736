//! Power cuts at any write of an honest disk.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_kit::random::Random;

use super::case_count;
use super::content::{Content, is_new};
use super::look::{Case, ReadResult, judge_all, open_and_read, use_after_crash};
use super::recording::Recording;
use super::trace::{DiskState, Survivors};
use crate::embedded::EmbeddedStore;

/// Number of cases in which the store is used after the crash.
const USED_CASES: usize = 10;

/// Returns about `count` crashes of a recording, spread over all changes of the disk.
pub(super) fn crashes(recording: &Recording, count: usize, mut random: Random) -> impl Iterator<Item = Case> {
    let (moments, opened) = (recording.changes.len() + 1, recording.states[0].changes);
    let (mut state, mut seen) = (DiskState::default(), HashSet::new());
    (0..moments).flat_map(move |at| {
        if let Some(change) = at.checked_sub(1).map(|last| &recording.changes[last]) {
            state.apply(change);
        }
        let count_here = (at + 1) * count / moments - at * count / moments;
        let mut cases = Vec::new();
        for number in 0..count_here {
            let survivors = if count_here > Survivors::ALL.len() && number < Survivors::ALL.len() {
                Survivors::ALL[number]
            } else {
                Survivors::ALL[usize::try_from(random.below(Survivors::ALL.len() as u64)).unwrap()]
            };
            let mut files = state.after_crash(survivors, &mut random);
            if random.below(8) == 0 && files.contains_key("sakshi.db-wal") {
                // The index of the log is not synced: it may contain anything.
                files.insert("sakshi.db-shm".into(), (0..32_768).map(|_| random.next().to_le_bytes()[0]).collect());
            }
            let mut hasher = DefaultHasher::new();
            (&files, recording.last_answered_state(at)).hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                cases.push(Case { files, is_marked: at >= opened, moment: at, description: format!("{survivors:?}") });
            }
        }
        cases
    })
}

/// Returns the numbers of the recorded states that have this content.
pub(super) fn states_with<'a>(recording: &'a Recording, content: &'a Content) -> impl Iterator<Item = usize> + 'a {
    recording.states.iter().enumerate().filter(move |(_, state)| state.content == *content).map(|(number, _)| number)
}

/// Judges one crash of an honest disk.
fn judge(recording: &Recording, directory: &Path, case: &Case) -> Option<EmbeddedStore> {
    let (result, store) = open_and_read(directory, case, &recording.keys);
    let last_answered = recording.last_answered_state(case.moment);
    let step = last_answered.map_or("nothing", |number| recording.states[number].step);
    match result {
        ReadResult::Content(content) if last_answered.is_none() => {
            assert!(is_new(&content), "{} {}", case.moment, case.description);
        }
        ReadResult::Content(content) => {
            let (last_answered, states) =
                (last_answered.unwrap(), states_with(recording, &content).collect::<Vec<_>>());
            let is_between = || {
                recording
                    .intermediate_contents
                    .iter()
                    .any(|(before, between)| *before == last_answered && *between == content)
            };
            let is_right = states.contains(&last_answered) || states.contains(&(last_answered + 1)) || is_between();
            assert!(
                is_right,
                "at {} {} after {step} ({last_answered}), the store has the content of {states:?}; {:?}",
                case.moment,
                case.description,
                differing_tables(&recording.states[last_answered].content, &content)
            );
        }
        refused => panic!("at {} {} after {step}: {refused:?}", case.moment, case.description),
    }
    store
}

/// Returns the tables in which two contents differ.
pub(super) fn differing_tables<'a>(one: &'a Content, other: &'a Content) -> Vec<&'a str> {
    let keys = one.keys().chain(other.keys()).filter(|key| one.get(*key) != other.get(*key));
    let mut tables: Vec<&str> = keys.map(|(table, ..)| *table).collect();
    tables.dedup();
    tables
}

#[test]
fn after_a_power_cut_every_answered_step_is_stored_and_no_step_is_half_done() {
    let count = case_count("SAKSHI_CRASHES", 400, 100_000);
    let recording = Recording::shared();
    let (_, random) = Random::of_this_run();
    let (judged, every) = (AtomicUsize::new(0), (count / USED_CASES).max(1));
    judge_all(crashes(recording, count, random), |directory, case| {
        let store = judge(recording, directory, &case);
        let number = judged.fetch_add(1, Ordering::Relaxed);
        // A verification needs the credits of the first grant.
        if number.is_multiple_of(every)
            && recording.last_answered_state(case.moment).is_some_and(|last_answered| last_answered > 2)
        {
            use_after_crash(directory, store.unwrap(), recording);
        }
    });
    let (judged, moments, steps) = (judged.into_inner(), recording.changes.len() + 1, recording.states.len());
    eprintln!("{count} crashes at {moments} moments of {steps} steps: {judged} different sets of files, all correct");
    assert!(judged > count / 3, "{judged}");
}
