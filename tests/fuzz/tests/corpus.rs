//! Every input of the corpus once more, and every input that has ever found something.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an error here is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_fuzz::GROUPS;

/// Panics, also those that a store catches.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

#[test]
fn no_input_of_the_corpus_breaks_a_promise() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        usual(panic);
    }));
    for target in GROUPS.into_iter().flatten() {
        (target.run)(b"");
        let mut inputs: Vec<PathBuf> =
            fs::read_dir(corpus().join(target.name)).expect("inputs").map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        for input in &inputs {
            (target.run)(&fs::read(input).expect("an input"));
            assert_eq!(PANICS.load(Ordering::SeqCst), 0, "{}", input.display());
        }
    }
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let folders: BTreeSet<String> =
        fs::read_dir(corpus()).expect("folders").map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders, GROUPS.into_iter().flatten().map(|target| target.name.to_owned()).collect());
}
