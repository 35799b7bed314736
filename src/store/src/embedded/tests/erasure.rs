//! Nothing of what was erased is left in the files of the store, in its log, or in a backup.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use sakshi_domain::clock::ManualClock;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::Event;
use sakshi_domain::ids::TxnId;

use super::{test_store, vault};
use crate::conformance::fixture::{client_with, completing, created, event, scanned};
use crate::conformance::{TestStore, run};
use crate::embedded::backup;
use crate::{Sealed, Vault};

/// Bytes that identify a piece of a sealed record.
const PIECE: usize = 16;

/// Returns every piece in the files of a directory.
fn pieces(directory: &Path) -> HashSet<[u8; PIECE]> {
    let files = fs::read_dir(directory).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    files.flat_map(|file| file.array_windows().copied().collect::<Vec<_>>()).collect()
}

/// Returns the pieces of a sealed record; one that is on two pages is in none of the files.
fn of(sealed: &Sealed) -> impl Iterator<Item = [u8; PIECE]> {
    sealed.as_bytes().chunks_exact(PIECE).map(|piece| piece.try_into().unwrap())
}

/// Registers a guest whose sealed outcome holds `size` bytes. Returns the outcome.
async fn registered(test: &impl TestStore, event: &Event, size: usize) -> (TxnId, Sealed) {
    let id = scanned(test, event).await;
    let outcome = Vault::new(&[vec![7; 32].into()]).unwrap().seal(id.as_bytes(), &vec![b'x'; size]);
    let complete = crate::CompleteTransaction { outcome: outcome.clone(), ..completing(id, 1) };
    test.store().complete_transaction(complete).await.unwrap();
    (id, outcome)
}

#[test]
fn no_byte_of_an_erased_record_is_left_in_the_files_or_in_a_backup() {
    run(async {
        let test = &test_store();
        let directory = test.directory.path().join("store");
        let client = client_with(test, 200).await;
        let (one, all) = (created(test, event(test, &client, 99)).await, created(test, event(test, &client, 99)).await);
        let mut guests = Vec::new();
        // Small ones share a page, and large ones have pages of their own.
        for size in [200, 300, 9_000, 200, 70_000, 250, 4_000] {
            guests.push((registered(test, &one, size).await, registered(test, &all, size).await));
        }
        let before = pieces(&directory);
        let known = |sealed: &Sealed, pieces: &HashSet<_>| of(sealed).filter(|piece| pieces.contains(piece)).count();
        for ((_, mine), (_, others)) in &guests {
            assert!(known(mine, &before) > 0 && known(others, &before) > 0);
        }
        let (gone, stays) = guests.split_at(5);
        for ((id, _), _) in gone {
            test.store().erase(ErasureSubject::Transaction(*id)).await.unwrap();
        }
        test.store().erase(ErasureSubject::Event(all.id)).await.unwrap();
        let copy = test.directory.path().join("copy");
        fs::create_dir(&copy).unwrap();
        let clock = Arc::new(ManualClock::starting_at(test.now()));
        backup(&directory, &copy.join("copy.db"), clock, &vault()).unwrap();
        for left in [pieces(&directory), pieces(&copy)] {
            for ((_, mine), (_, others)) in gone {
                assert_eq!((known(mine, &left), known(others, &left)), (0, 0), "of {} bytes", mine.size());
            }
            for ((_, mine), (_, others)) in stays {
                assert!(known(mine, &left) > 0);
                assert_eq!(known(others, &left), 0, "of {} bytes", others.size());
            }
        }
    });
}
