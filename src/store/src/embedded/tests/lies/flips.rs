//! Single bits that flip, in every page of the database file and in every frame of the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use sakshi_domain::clock::ManualClock;
use sakshi_kit::random::Random;

use super::cases;
use super::crashes::states_of;
use super::look::{Case, Look, judge_all, read};
use super::recording::{Recording, place};
use super::trace::{DiskState, Files, Rest};
use crate::conformance::flips::{Effect, Effects};
use crate::conformance::reading::Reading;
use crate::conformance::run;
use crate::embedded::EmbeddedStore;
use crate::embedded::tests::{START, open_when_free, options};

/// Bits per page: each is judged by itself.
const PAGE: usize = 4_096;

fn open(directory: &Path) -> Result<EmbeddedStore, crate::StoreError> {
    open_when_free(&options(directory, Arc::new(ManualClock::starting_at(START))))
}

fn reading_of(store: &EmbeddedStore, recording: &Recording) -> Reading {
    let mut reading = None;
    run(async { reading = Some(Reading::of(store, &recording.business, START).await) });
    reading.unwrap()
}

/// Returns the answers of the store in these files, and the number of its last answered state.
pub(super) fn reference_of(recording: &Recording, files: &Files, moment: usize) -> (Reading, usize) {
    let directory = super::recording::directory();
    place(directory.path(), files, true);
    let reference = reading_of(&open(directory.path()).unwrap(), recording);
    assert_eq!(reference.refusals().count(), 0);
    (reference, recording.answered(moment).unwrap())
}

/// Counts the effect of one case.
pub(super) fn effect_of(
    recording: &Recording,
    reference: &Reading,
    answered: usize,
    directory: &Path,
    case: &Case,
    effects: &Mutex<Effects>,
) {
    place(directory, &case.files, true);
    let (mut effect, mut differences) = (Effect::Refused, vec![]);
    match open(directory) {
        Err(error) => assert!(!error.to_string().contains("panicked"), "{}: {error}", case.how),
        Ok(store) => {
            (effect, differences) = Effect::on(reference, &reading_of(&store, recording));
            let look = read(&store, &recording.keys);
            let states: Vec<usize> =
                if let Look::Content(content) = &look { states_of(recording, content).collect() } else { vec![] };
            // The content does not include the numbers of entries, which some queries show.
            if !states.contains(&answered) && states.iter().any(|state| *state < answered) {
                effect = Effect::Earlier;
            } else if effect == Effect::None && !states.contains(&answered) {
                effect = if matches!(look, Look::Content(_)) { Effect::Unseen } else { Effect::Noticed };
            }
        }
    }
    let shown = if effect == Effect::Earlier { &[][..] } else { &differences[..] };
    effects.lock().unwrap().count(&case.how, effect, shown);
}

/// Returns `count` of the parts, in turn and evenly spaced, from a random start.
pub(super) fn in_turn<T: Clone>(parts: &[T], count: usize, random: &mut Random) -> Vec<T> {
    let (first, step) = (usize::try_from(random.below(parts.len() as u64)).unwrap(), (parts.len() / count).max(1));
    (0..count).map(|number| parts[(first + number * step) % parts.len()].clone()).collect()
}

/// Flips `count` bits, in the parts of a file in turn. Returns the effects.
fn flip_all(
    recording: &Recording,
    moment: usize,
    name: &str,
    parts: &[std::ops::Range<usize>],
    count: usize,
) -> BTreeMap<Effect, usize> {
    let mut state = DiskState::default();
    recording.changes[..moment].iter().for_each(|change| state.follow(change, false));
    let (_, mut random) = Random::of_this_run();
    let files: Files = state.after_crash(Rest::Everything, &mut random);
    let (reference, answered) = reference_of(recording, &files, moment);
    let effects = Mutex::default();
    let made = in_turn(parts, count, &mut random).into_iter().map(|part| {
        let (byte, bit) = (part.start + usize::try_from(random.below(part.len() as u64)).unwrap(), random.below(8));
        let mut files = files.clone();
        files.get_mut(name).unwrap()[byte] ^= 1 << bit;
        Case {
            files,
            is_marked: true,
            at: moment,
            how: format!("{name} byte {byte} bit {bit} (page {})", byte / PAGE + 1),
        }
    });
    judge_all(made, |directory, case| effect_of(recording, &reference, answered, directory, &case, &effects));
    let effects: Effects = effects.into_inner().unwrap();
    eprintln!(
        "{name}, {count} bits in {} parts: {:?}\nanswered otherwise: {:?}",
        parts.len(),
        effects.totals(),
        effects.questions
    );
    effects.totals()
}

fn length(recording: &Recording, moment: usize, name: &str) -> usize {
    let mut state = DiskState::default();
    recording.changes[..moment].iter().for_each(|change| state.follow(change, false));
    state.after_crash(Rest::Everything, &mut Random::from_seed(0))[name].len()
}

#[test]
fn a_bit_that_flips_in_a_page_is_noticed_or_harmless_or_of_a_kind_that_is_written_down() {
    let recording = Recording::shared();
    let (moment, name) = (recording.changes.len(), "sakshi.db");
    let pages: Vec<_> =
        (0..length(recording, moment, name) / PAGE).map(|page| page * PAGE..(page + 1) * PAGE).collect();
    let effects = flip_all(recording, moment, name, &pages, cases("SAKSHI_FLIPS", pages.len(), 10_000));
    assert!([Effect::Noticed, Effect::Refused].iter().any(|one| effects.contains_key(one)), "{effects:?}");
    assert_eq!(effects.get(&Effect::Earlier), None);
}

#[test]
fn a_bit_that_flips_in_the_log_is_never_served() {
    let recording = Recording::shared();
    // As after a kill in the middle of the work, where the log is longest.
    let moment = recording.states.iter().find(|state| state.step == "an erasure").unwrap().changes;
    let moment = recording.states.iter().rev().find(|state| state.changes < moment).unwrap().changes;
    let name = "sakshi.db-wal";
    let frames = (length(recording, moment, name) - 32) / (PAGE + 24);
    let head = std::iter::once(0..32);
    let of_frames = (0..frames).flat_map(|frame| [0, 24].map(|at| 32 + frame * (PAGE + 24) + at)).map(|at| {
        let is_head = (at - 32).is_multiple_of(PAGE + 24);
        at..at + if is_head { 24 } else { PAGE }
    });
    let parts: Vec<_> = head.chain(of_frames).collect();
    let effects = flip_all(recording, moment, name, &parts, cases("SAKSHI_FLIPS", 120, 10_000));
    for never in [Effect::Noticed, Effect::Unseen, Effect::Audited, Effect::Served] {
        assert_eq!(effects.get(&never), None, "{never:?}");
    }
    // Nothing shows that the last two steps were answered.
    assert!(effects[&Effect::Refused] > 20 * effects.get(&Effect::Earlier).copied().unwrap_or(0), "{effects:?}");
}
