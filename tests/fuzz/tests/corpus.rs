//! Replays the corpus, which has every input that ever found a bug, with small changes to each input.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an error here is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_fuzz::{GROUPS, Target};
use sakshi_kit::random::Random;

/// Number of changed copies of each input.
const CHANGED_COPIES: usize = 300;

/// Number of panics, including panics that a store catches.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Returns the inputs of a target, in order.
fn inputs(target: &Target) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(corpus().join(target.name)).expect("inputs").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("an input")).collect()
}

/// Returns the words of the fuzzer's dictionary, verbatim.
fn words() -> Vec<Vec<u8>> {
    let text = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("words.txt")).expect("words");
    let words = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    words.map(|word| word.replace("\\\"", "\"").into_bytes()).collect()
}

/// Returns an input with one to four small changes: of a bit, of a byte, of a piece, or by a word of the dictionary.
fn change_input(input: &[u8], other: &[u8], words: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut changed = input.to_vec();
    for _ in 0..=random.below(4) {
        let mut position_in = |bytes: &[u8]| random.below(bytes.len() as u64 + 1) as usize;
        let (at, to) = (position_in(&changed), position_in(&changed));
        let (from, until) = (at.min(to), at.max(to).min(at.min(to) + 64));
        let piece = changed[from..until].to_vec();
        let start = position_in(other);
        let other_piece = &other[start..other.len().min(start + 32)];
        match random.below(6) {
            0 => changed.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << random.below(8)),
            1 => changed.get_mut(at).into_iter().for_each(|byte| *byte = random.below(256) as u8),
            2 => drop(changed.drain(from..until)),
            3 => drop(changed.splice(at..at, piece)),
            4 => drop(changed.splice(from..until, other_piece.iter().copied())),
            _ => drop(changed.splice(at..at, words[random.below(words.len() as u64) as usize].iter().copied())),
        }
    }
    changed
}

/// Runs a target with an input; a panic that the target catches also fails.
fn run_target(target: &Target, input: &[u8]) {
    (target.run)(input);
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "{}: {}", target.name, input.escape_ascii());
}

#[test]
fn no_corpus_input_or_small_change_of_it_breaks_a_promise() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        default_hook(panic);
    }));
    let words = words();
    for (number, target) in GROUPS.into_iter().flatten().enumerate() {
        run_target(target, b"");
        let (inputs, mut random) = (inputs(target), Random::from_seed(number as u64));
        for input in &inputs {
            run_target(target, input);
            for _ in 0..CHANGED_COPIES {
                let other = &inputs[random.below(inputs.len() as u64) as usize];
                run_target(target, &change_input(input, other, &words, &mut random));
            }
        }
    }
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let folders: BTreeSet<String> = fs::read_dir(corpus())
        .expect("folders")
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, GROUPS.into_iter().flatten().map(|target| target.name.to_owned()).collect());
}
