//! Single bits that flip, in every page of the database file and in every frame of the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use sakshi_kit::random::Random;

use super::case_count;
use super::crashes::states_with;
use super::look::{Case, ReadResult, judge_all, read_all};
use super::recording::{Recording, write_files};
use super::trace::{DiskState, Files, Survivors};
use crate::conformance::flips::{Effect, Effects};
use crate::conformance::reading::Reading;
use crate::conformance::run;
use crate::embedded::EmbeddedStore;
use crate::embedded::tests::{START, open};

/// Bytes per page.
const PAGE_BYTES: usize = 4_096;

/// Reads every answer of a store about the recorded workload.
fn take_reading(store: &EmbeddedStore, recording: &Recording) -> Reading {
    let mut reading = None;
    run(async { reading = Some(Reading::take(store, &recording.workload, START).await) });
    reading.unwrap()
}

/// Reads the store in these files. Returns its answers, and the number of the last state that the store had confirmed
/// by `moment`, a position in the recording.
pub(super) fn reference_reading(recording: &Recording, files: &Files, moment: usize) -> (Reading, usize) {
    let directory = super::recording::directory();
    write_files(directory.path(), files);
    let reference = take_reading(&open(directory.path()).unwrap(), recording);
    assert_eq!(reference.refusals().count(), 0);
    (reference, recording.last_answered_state(moment).unwrap())
}

/// Judges the store in damaged files, and counts the effect of the damage.
pub(super) fn count_effect(
    recording: &Recording,
    reference: &Reading,
    last_answered: usize,
    directory: &Path,
    case: &Case,
    effects: &Mutex<Effects>,
) {
    write_files(directory, &case.files);
    let (mut effect, mut differences) = (Effect::Refused, vec![]);
    match open(directory) {
        Err(error) => assert!(!error.to_string().contains("panicked"), "{}: {error}", case.description),
        Ok(store) => {
            (effect, differences) = Effect::compare(reference, &take_reading(&store, recording));
            let result = read_all(&store, &recording.keys);
            let states: Vec<usize> = if let ReadResult::Content(content) = &result {
                states_with(recording, content).collect()
            } else {
                vec![]
            };
            // The content lacks the row numbers, which some queries depend on.
            if !states.contains(&last_answered) && states.iter().any(|state| *state < last_answered) {
                effect = Effect::Earlier;
            } else if effect == Effect::None && !states.contains(&last_answered) {
                effect = if matches!(result, ReadResult::Content(_)) { Effect::Unseen } else { Effect::Noticed };
            }
        }
    }
    let reported = if effect == Effect::Earlier { &[][..] } else { &differences[..] };
    effects.lock().unwrap().count(&case.description, effect, reported);
}

/// Returns `count` of the parts, evenly spaced from a random start.
pub(super) fn spread<T: Clone>(parts: &[T], count: usize, random: &mut Random) -> Vec<T> {
    let (first, step) = (usize::try_from(random.below(parts.len() as u64)).unwrap(), (parts.len() / count).max(1));
    (0..count).map(|number| parts[(first + number * step) % parts.len()].clone()).collect()
}

/// Flips `count` bits, spread over the parts of a file. Returns the number of each effect.
fn flip_all(
    recording: &Recording,
    moment: usize,
    name: &str,
    parts: &[std::ops::Range<usize>],
    count: usize,
) -> BTreeMap<Effect, usize> {
    let mut state = DiskState::default();
    recording.changes[..moment].iter().for_each(|change| state.apply(change));
    let (_, mut random) = Random::of_this_run();
    let files: Files = state.after_crash(Survivors::Everything, &mut random);
    let (reference, last_answered) = reference_reading(recording, &files, moment);
    let effects = Mutex::default();
    let cases = spread(parts, count, &mut random).into_iter().map(|part| {
        let (byte, bit) = (part.start + usize::try_from(random.below(part.len() as u64)).unwrap(), random.below(8));
        let mut files = files.clone();
        files.get_mut(name).unwrap()[byte] ^= 1 << bit;
        Case {
            files,
            is_marked: true,
            moment,
            description: format!("{name} byte {byte} bit {bit} (page {})", byte / PAGE_BYTES + 1),
        }
    });
    judge_all(cases, |directory, case| count_effect(recording, &reference, last_answered, directory, &case, &effects));
    let effects: Effects = effects.into_inner().unwrap();
    eprintln!(
        "{name}, {count} bits in {} parts: {:?}\nqueries with other answers: {:?}",
        parts.len(),
        effects.totals(),
        effects.wrong_answers
    );
    effects.totals()
}

fn file_length(recording: &Recording, moment: usize, name: &str) -> usize {
    let mut state = DiskState::default();
    recording.changes[..moment].iter().for_each(|change| state.apply(change));
    state.after_crash(Survivors::Everything, &mut Random::from_seed(0))[name].len()
}

#[test]
fn a_flipped_bit_in_a_page_is_noticed_or_has_a_documented_effect() {
    let recording = Recording::shared();
    let (moment, name) = (recording.changes.len(), "sakshi.db");
    let pages: Vec<_> = (0..file_length(recording, moment, name) / PAGE_BYTES)
        .map(|page| page * PAGE_BYTES..(page + 1) * PAGE_BYTES)
        .collect();
    let effects = flip_all(recording, moment, name, &pages, case_count("SAKSHI_FLIPS", pages.len(), 10_000));
    assert!([Effect::Noticed, Effect::Refused].iter().any(|effect| effects.contains_key(effect)), "{effects:?}");
    assert_eq!(effects.get(&Effect::Earlier), None);
}

#[test]
fn a_flipped_bit_in_the_log_is_never_served() {
    let recording = Recording::shared();
    // The moment before the erasure, when the log is longest.
    let moment = recording.states.iter().find(|state| state.step == "an erasure").unwrap().changes;
    let moment = recording.states.iter().rev().find(|state| state.changes < moment).unwrap().changes;
    let name = "sakshi.db-wal";
    const HEADER_BYTES: usize = 32;
    const FRAME_HEADER_BYTES: usize = 24;
    const FRAME_BYTES: usize = FRAME_HEADER_BYTES + PAGE_BYTES;
    let frames = (file_length(recording, moment, name) - HEADER_BYTES) / FRAME_BYTES;
    let frame_parts = (0..frames).flat_map(|frame| {
        let start = HEADER_BYTES + frame * FRAME_BYTES;
        let page = start + FRAME_HEADER_BYTES;
        [start..page, page..page + PAGE_BYTES]
    });
    let parts: Vec<_> = std::iter::once(0..HEADER_BYTES).chain(frame_parts).collect();
    let effects = flip_all(recording, moment, name, &parts, case_count("SAKSHI_FLIPS", 120, 10_000));
    for never in [Effect::Noticed, Effect::Unseen, Effect::Audited, Effect::Served] {
        assert_eq!(effects.get(&never), None, "{never:?}");
    }
    // No commit follows the last two steps, so damage to them stays undetected.
    assert!(effects[&Effect::Refused] > 20 * effects.get(&Effect::Earlier).copied().unwrap_or(0), "{effects:?}");
}
