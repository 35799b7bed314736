//! Erased data is in no file of the store: not in its log, and not in a backup.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use sakshi_domain::clock::ManualClock;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::Event;
use sakshi_domain::ids::TxnId;

use super::{test_store, vault};
use crate::conformance::fixture::{build_completion, build_event, client_with, open_guest_scan, store_event};
use crate::conformance::{TestStore, run};
use crate::embedded::backup;
use crate::{Sealed, Vault};

/// Bytes per piece; a piece identifies a part of a sealed record.
const PIECE_BYTES: usize = 16;

/// Returns every piece in the files of a directory.
fn file_pieces(directory: &Path) -> HashSet<[u8; PIECE_BYTES]> {
    let files = fs::read_dir(directory).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    files.flat_map(|file| file.array_windows().copied().collect::<Vec<_>>()).collect()
}

/// Returns the pieces of a sealed record. A piece that spans two pages is in no file.
fn record_pieces(sealed: &Sealed) -> impl Iterator<Item = [u8; PIECE_BYTES]> {
    sealed.as_bytes().chunks_exact(PIECE_BYTES).map(|piece| piece.try_into().unwrap())
}

/// Registers a guest whose outcome has `size` bytes. Returns the transaction's id and the sealed outcome.
async fn register_guest(test: &impl TestStore, event: &Event, size: usize) -> (TxnId, Sealed) {
    let id = open_guest_scan(test, event).await;
    let outcome = Vault::new(&[vec![7; 32].into()]).unwrap().seal(id.as_bytes(), &vec![b'x'; size]);
    let complete = crate::CompleteTransaction { outcome: outcome.clone(), ..build_completion(id, 1) };
    test.store().complete_transaction(complete).await.unwrap();
    (id, outcome)
}

#[test]
fn the_files_and_a_backup_contain_no_byte_of_an_erased_record() {
    run(async {
        let test = &test_store();
        let directory = test.directory.path().join("store");
        let client = client_with(test, 200).await;
        let (event_with_erased_guests, erased_event) = (
            store_event(test, build_event(test, &client, 99)).await,
            store_event(test, build_event(test, &client, 99)).await,
        );
        let mut guests = Vec::new();
        // Small records share a page, and large records fill several pages.
        for size in [200, 300, 9_000, 200, 70_000, 250, 4_000] {
            guests.push((
                register_guest(test, &event_with_erased_guests, size).await,
                register_guest(test, &erased_event, size).await,
            ));
        }
        let before = file_pieces(&directory);
        let count =
            |sealed: &Sealed, pieces: &HashSet<_>| record_pieces(sealed).filter(|piece| pieces.contains(piece)).count();
        for ((_, guest), (_, guest_of_event)) in &guests {
            assert!(count(guest, &before) > 0 && count(guest_of_event, &before) > 0);
        }
        let (erased, remaining) = guests.split_at(5);
        for ((id, _), _) in erased {
            test.store().erase(ErasureSubject::Transaction(*id)).await.unwrap();
        }
        test.store().erase(ErasureSubject::Event(erased_event.id)).await.unwrap();
        let copy = test.directory.path().join("copy");
        fs::create_dir(&copy).unwrap();
        let clock = Arc::new(ManualClock::starting_at(test.now()));
        backup(&directory, &copy.join("copy.db"), clock, &vault()).unwrap();
        for pieces in [file_pieces(&directory), file_pieces(&copy)] {
            for ((_, guest), (_, guest_of_event)) in erased {
                let counts = (count(guest, &pieces), count(guest_of_event, &pieces));
                assert_eq!(counts, (0, 0), "{} bytes", guest.size());
            }
            for ((_, guest), (_, guest_of_event)) in remaining {
                assert!(count(guest, &pieces) > 0);
                assert_eq!(count(guest_of_event, &pieces), 0, "{} bytes", guest_of_event.size());
            }
        }
    });
}
