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
use crate::conformance::reading::Reading;
use crate::conformance::run;
use crate::embedded::EmbeddedStore;
use crate::embedded::tests::{START, open_when_free, options};

/// What became of a flipped bit, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// The same content.
    None,
    /// Opening is refused.
    Refused,
    /// Some answers are refused; all others are right.
    Noticed,
    /// An earlier state, whole.
    Earlier,
    /// Content that no question shows.
    Unseen,
    /// An answer is another one, and the audit of credits says so.
    Audited,
    /// An answer is another one.
    Served,
}

/// Bits per page: each answers for itself.
const PAGE: usize = 4_096;

fn open(directory: &Path) -> Result<EmbeddedStore, crate::StoreError> {
    open_when_free(&options(directory, Arc::new(ManualClock::starting_at(START))))
}

fn reading_of(store: &EmbeddedStore, recording: &Recording) -> Reading {
    let mut reading = None;
    run(async { reading = Some(Reading::of(store, &recording.business, START).await) });
    reading.unwrap()
}

/// The effects of flips, and the questions that were answered otherwise.
#[derive(Debug, Default)]
struct Table {
    effects: BTreeMap<Effect, usize>,
    questions: BTreeMap<String, usize>,
}

fn judge(recording: &Recording, reference: &Reading, answered: usize, directory: &Path, case: &Case, table: &Mutex<Table>) {
    place(directory, &case.files, true);
    let mut questions = vec![];
    let effect = match open(directory) {
        Err(error) => {
            assert!(!error.to_string().contains("panicked"), "{}: {error}", case.how);
            Effect::Refused
        }
        Ok(store) => {
            let reading = reading_of(&store, recording);
            for (question, refusal) in reading.refusals() {
                assert!(!refusal.to_string().contains("panicked"), "{}: {question}: {refusal}", case.how);
            }
            let differences = reference.differences(&reading);
            questions = differences.iter().filter(|difference| difference.refusal.is_none()).map(|other| other.question.clone()).collect();
            let look = read(&store, &recording.keys);
            let states: Vec<usize> =
                if let Look::Content(content) = &look { states_of(recording, content).collect() } else { vec![] };
            if states.contains(&answered) {
                assert!(differences.is_empty(), "{}: {differences:?}", case.how);
                Effect::None
            } else if states.iter().any(|state| *state < answered) {
                Effect::Earlier
            } else if !questions.is_empty() {
                if std::env::var_os("SAKSHI_LIES_SHOW").is_some() {
                    let shown = differences.iter().find(|difference| difference.refusal.is_none()).unwrap();
                    eprintln!("{}: {}: {:.600}", case.how, shown.question, shown.answers);
                }
                if reading.is_unbalanced { Effect::Audited } else { Effect::Served }
            } else if differences.is_empty() && matches!(look, Look::Content(_)) {
                Effect::Unseen
            } else {
                Effect::Noticed
            }
        }
    };
    let mut table = table.lock().unwrap();
    *table.effects.entry(effect).or_default() += 1;
    if matches!(effect, Effect::Served | Effect::Audited) {
        questions.into_iter().for_each(|question| *table.questions.entry(question).or_default() += 1);
    }
}

/// Flips so many bits of each part of a file, and returns the table.
fn flip_all(recording: &Recording, moment: usize, name: &str, parts: &[std::ops::Range<usize>], bits: usize) -> Table {
    let mut state = DiskState::default();
    recording.changes[..moment].iter().for_each(|change| state.follow(change, false));
    let (_, mut random) = Random::of_this_run();
    let files: Files = state.after_crash(Rest::Everything, &mut random);
    let answered = recording.answered(moment).unwrap();
    let directory = super::recording::directory();
    place(directory.path(), &files, true);
    let reference = reading_of(&open(directory.path()).unwrap(), recording);
    assert_eq!(reference.refusals().count(), 0);
    let table = Mutex::default();
    let flips = parts.iter().flat_map(|part| (0..bits).map(move |_| part.clone()));
    let made = flips.map(|part| {
        let (byte, bit) = (part.start + usize::try_from(random.below(part.len() as u64)).unwrap(), random.below(8));
        let mut files = files.clone();
        files.get_mut(name).unwrap()[byte] ^= 1 << bit;
        Case { files, is_marked: true, at: moment, how: format!("{name} byte {byte} bit {bit} (page {})", byte / PAGE + 1) }
    });
    judge_all(made, |directory, case| judge(recording, &reference, answered, directory, &case, &table));
    let table: Table = table.into_inner().unwrap();
    eprintln!("{name}, {} parts of {bits} bits: {:?}\nanswered otherwise: {:?}", parts.len(), table.effects, table.questions);
    table
}

fn length(recording: &Recording, moment: usize, name: &str) -> usize {
    let mut state = DiskState::default();
    recording.changes[..moment].iter().for_each(|change| state.follow(change, false));
    state.after_crash(Rest::Everything, &mut Random::from_seed(0))[name].len()
}

#[test]
fn a_bit_that_flips_in_a_page_is_noticed_or_harmless_or_of_a_kind_that_is_written_down() {
    let recording = Recording::make();
    let (moment, name) = (recording.changes.len(), "sakshi.db");
    let pages: Vec<_> = (0..length(&recording, moment, name) / PAGE).map(|page| page * PAGE..(page + 1) * PAGE).collect();
    let table = flip_all(&recording, moment, name, &pages, cases("SAKSHI_FLIPS", 2, 64));
    assert!(table.effects.contains_key(&Effect::Noticed) && table.effects.contains_key(&Effect::None));
    assert_eq!(table.effects.get(&Effect::Earlier), None);
}

#[test]
fn a_bit_that_flips_in_the_log_is_never_served() {
    let recording = Recording::make();
    // As after a kill in the middle of the work, where the log has most.
    let moment = recording.states.iter().find(|state| state.step == "an erasure").unwrap().changes;
    let moment = recording.states.iter().rev().find(|state| state.changes < moment).unwrap().changes;
    let name = "sakshi.db-wal";
    let frames = (length(&recording, moment, name) - 32) / (PAGE + 24);
    let head = std::iter::once(0..32);
    let of_frames = (0..frames).flat_map(|frame| [0, 24].map(|at| 32 + frame * (PAGE + 24) + at)).map(|at| {
        let is_head = (at - 32).is_multiple_of(PAGE + 24);
        at..at + if is_head { 24 } else { PAGE }
    });
    let parts: Vec<_> = head.chain(of_frames).collect();
    let table = flip_all(&recording, moment, name, &parts, cases("SAKSHI_FLIPS", 1, 32));
    for never in [Effect::Noticed, Effect::Unseen, Effect::Audited, Effect::Served] {
        assert_eq!(table.effects.get(&never), None, "{never:?}");
    }
}
