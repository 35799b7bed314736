//! A file and its installation.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use sakshi_domain::clock::ManualClock;

use super::check::may_open;
use super::{open_when_free, options};
use crate::embedded::EmbeddedStore;
use crate::{OpenError, Ownership, StoreError};

const FILE: &str = "store/sakshi.db";

fn of(text: &str) -> Ownership {
    Ownership { owner: text.parse().unwrap(), takes_over: None }
}

fn open(directory: &Path, ownership: &Ownership) -> Result<EmbeddedStore, StoreError> {
    let clock = Arc::new(ManualClock::starting_at(super::START));
    open_when_free(&crate::embedded::EmbeddedOptions { ownership: ownership.clone(), ..options(directory, clock) })
}

/// Checks that opening and inspecting it are refused in the same words.
fn is_refused(directory: &Path, ownership: &Ownership) {
    let refusal = open(directory, ownership).unwrap_err();
    assert!(matches!(refusal, StoreError::OtherInstallation { .. }), "{refusal}");
    assert_eq!(may_open(&directory.join("store"), ownership), Err(OpenError::Refused(refusal)));
}

#[test]
fn a_file_is_refused_under_another_profile_or_authority_and_stays_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let stage = of("stage https://one.example");
    assert_eq!(may_open(&directory.path().join("store"), &stage), Ok(()), "there is none yet");
    open(directory.path(), &stage).unwrap().close();
    let file = || std::fs::read(directory.path().join(FILE)).unwrap();
    let before = file();
    is_refused(directory.path(), &of("production https://one.example"));
    is_refused(directory.path(), &of("stage https://other.example"));
    assert!(file() == before);
    open(directory.path(), &stage).unwrap();
}

#[test]
fn a_file_that_does_not_say_whose_it_is_is_refused_and_becomes_nobodys() {
    let directory = tempfile::tempdir().unwrap();
    let stage = of("stage https://one.example");
    open(directory.path(), &stage).unwrap().close();
    let path = directory.path().join(FILE);
    Connection::open(&path).unwrap().execute("DELETE FROM installation", []).unwrap();
    let before = std::fs::read(&path).unwrap();
    let unknown = StoreError::unreadable("the installation");
    assert_eq!(open(directory.path(), &stage).unwrap_err(), unknown);
    assert_eq!(may_open(&directory.path().join("store"), &stage), Err(OpenError::Refused(unknown)));
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn a_file_is_moved_to_the_installation_that_takes_it_over_and_not_back() {
    let directory = tempfile::tempdir().unwrap();
    let before = of("stage https://one.example");
    open(directory.path(), &before).unwrap().close();
    let moving = Ownership { takes_over: Some(before.owner.clone()), ..of("stage https://two.example") };
    for ownership in [&moving, &moving, &of("stage https://two.example")] {
        assert_eq!(may_open(&directory.path().join("store"), ownership), Ok(()));
        open(directory.path(), ownership).unwrap().close();
    }
    is_refused(directory.path(), &before);
}

#[test]
fn looking_at_a_file_needs_no_lock_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let looked = directory.path().join("100% #1?");
    let ownership = of("stage https://one.example");
    let store = open(&looked, &ownership).unwrap();
    assert_eq!(may_open(&looked.join("store"), &ownership), Ok(()), "while it is open");
    is_refused_by_look(&looked);
    store.close();
    let names = || {
        std::fs::read_dir(looked.join("store"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    is_refused_by_look(&looked);
    assert_eq!(names(), before);
    let other = Connection::open(directory.path().join("sakshi.db")).unwrap();
    other.execute_batch("CREATE TABLE other (row INTEGER)").unwrap();
    let refused = may_open(directory.path(), &ownership);
    assert!(matches!(refused, Err(OpenError::Refused(StoreError::Corrupt(_)))), "another program's file: {refused:?}");
}

fn is_refused_by_look(directory: &Path) {
    let other = may_open(&directory.join("store"), &of("production https://one.example"));
    assert!(matches!(other, Err(OpenError::Refused(StoreError::OtherInstallation { .. }))), "{other:?}");
}
