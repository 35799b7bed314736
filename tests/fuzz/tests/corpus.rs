//! A replay of the corpus, including every input that has ever found a bug, and of small changes to each input.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an error here is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_fuzz::{GROUPS, Target};
use sakshi_kit::random::Random;

/// Number of changes to each input.
const CHANGES: usize = 300;

/// Number of panics, including those that a store catches.
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

/// Returns an input with one to four small changes: a bit, a byte, a piece removed, doubled or taken from another, or a
/// word.
fn changed(input: &[u8], other: &[u8], words: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut changed = input.to_vec();
    for _ in 0..=random.below(4) {
        let mut within = |bytes: &[u8]| random.below(bytes.len() as u64 + 1) as usize;
        let (at, to) = (within(&changed), within(&changed));
        let (from, until) = (at.min(to), at.max(to).min(at.min(to) + 64));
        let piece = changed[from..until].to_vec();
        let start = within(other);
        let foreign = &other[start..other.len().min(start + 32)];
        match random.below(6) {
            0 => changed.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << random.below(8)),
            1 => changed.get_mut(at).into_iter().for_each(|byte| *byte = random.below(256) as u8),
            2 => drop(changed.drain(from..until)),
            3 => drop(changed.splice(at..at, piece)),
            4 => drop(changed.splice(from..until, foreign.iter().copied())),
            _ => drop(changed.splice(at..at, words[random.below(words.len() as u64) as usize].iter().copied())),
        }
    }
    changed
}

/// Feeds an input; a panic that a target catches also fails.
fn feed(target: &Target, input: &[u8]) {
    (target.run)(input);
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "{}: {}", target.name, input.escape_ascii());
}

#[test]
fn no_input_of_the_corpus_and_no_small_change_of_one_breaks_a_promise() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        usual(panic);
    }));
    let words = words();
    for (number, target) in GROUPS.into_iter().flatten().enumerate() {
        feed(target, b"");
        let (inputs, mut random) = (inputs(target), Random::from_seed(number as u64));
        for input in &inputs {
            feed(target, input);
            for _ in 0..CHANGES {
                let other = &inputs[random.below(inputs.len() as u64) as usize];
                feed(target, &changed(input, other, &words, &mut random));
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
