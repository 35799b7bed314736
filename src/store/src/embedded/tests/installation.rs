//! The installation that owns a file.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use sakshi_domain::clock::ManualClock;

use super::check::may_open;
use super::{open_when_free, options};
use crate::embedded::EmbeddedStore;
use crate::installation::ownership;
use crate::{OpenError, Ownership, StoreError};

const FILE: &str = "store/sakshi.db";

/// Opens the store for an installation.
fn open(directory: &Path, ownership: &Ownership) -> Result<EmbeddedStore, StoreError> {
    let clock = Arc::new(ManualClock::starting_at(super::START));
    open_when_free(&crate::embedded::EmbeddedOptions { ownership: ownership.clone(), ..options(directory, clock) })
}

/// Asserts that opening and checking refuse the store with the same error.
fn assert_refused(directory: &Path, ownership: &Ownership) {
    let refusal = open(directory, ownership).unwrap_err();
    assert!(matches!(refusal, StoreError::OtherInstallation { .. }), "{refusal}");
    assert_eq!(may_open(&directory.join("store"), ownership), Err(OpenError::Refused(refusal)));
}

#[test]
fn a_file_is_refused_unchanged_under_another_profile_or_authority() {
    let directory = tempfile::tempdir().unwrap();
    let stage = ownership("stage https://one.example");
    assert_eq!(may_open(&directory.path().join("store"), &stage), Ok(()), "without a store");
    open(directory.path(), &stage).unwrap().close();
    let file = || std::fs::read(directory.path().join(FILE)).unwrap();
    let before = file();
    assert_refused(directory.path(), &ownership("production https://one.example"));
    assert_refused(directory.path(), &ownership("stage https://other.example"));
    assert!(file() == before);
    open(directory.path(), &stage).unwrap();
}

#[test]
fn a_file_without_an_owner_is_refused_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let stage = ownership("stage https://one.example");
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
fn a_file_belongs_to_the_installation_that_took_it_over() {
    let directory = tempfile::tempdir().unwrap();
    let before = ownership("stage https://one.example");
    open(directory.path(), &before).unwrap().close();
    let moving = Ownership { takes_over: Some(before.owner.clone()), ..ownership("stage https://two.example") };
    for ownership in [&moving, &moving, &ownership("stage https://two.example")] {
        assert_eq!(may_open(&directory.path().join("store"), ownership), Ok(()));
        open(directory.path(), ownership).unwrap().close();
    }
    assert_refused(directory.path(), &before);
}

#[test]
fn checking_a_file_needs_no_lock_and_creates_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let unusual = directory.path().join("100% #1?");
    let stage = ownership("stage https://one.example");
    let store = open(&unusual, &stage).unwrap();
    assert_eq!(may_open(&unusual.join("store"), &stage), Ok(()), "while it is open");
    assert_check_refuses(&unusual);
    store.close();
    let names = || {
        std::fs::read_dir(unusual.join("store"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    assert_check_refuses(&unusual);
    assert_eq!(names(), before);
    let other = Connection::open(directory.path().join("sakshi.db")).unwrap();
    other.execute_batch("CREATE TABLE other (row INTEGER)").unwrap();
    let refused = may_open(directory.path(), &stage);
    assert!(
        matches!(refused, Err(OpenError::Refused(StoreError::Corrupt(_)))),
        "the file of another program: {refused:?}"
    );
}

/// Asserts that the check refuses the store for another installation.
fn assert_check_refuses(directory: &Path) {
    let other = may_open(&directory.join("store"), &ownership("production https://one.example"));
    assert!(matches!(other, Err(OpenError::Refused(StoreError::OtherInstallation { .. }))), "{other:?}");
}
