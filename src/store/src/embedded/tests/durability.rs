//! A killed process: everything that it had answered is still stored.
//!
//! The process is this test binary once more, running only the test named [`CHILD`], which works
//! for as long as it lives and prints every answer it got.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use futures_util::future::join_all;
use sakshi_domain::clock::ManualClock;
use sakshi_domain::delivery::{DeliveryId, Subject};
use sakshi_domain::event::Event;
use sakshi_domain::ids::{EventId, TxnId};

use super::{EmbeddedTestStore, open, options, test_store};
use crate::TransactionRecord;
use crate::conformance::fixture::{audited_balance, client_with, completing, created, event, opening, scanned};
use crate::conformance::flow_fixture::{self, ShortReport};
use crate::embedded::EmbeddedStore;
use crate::{CompleteOutcome, OpenOutcome, PageRequest};

const CHILD: &str = "embedded::tests::durability::the_child_works_until_it_is_killed";
const DIRECTORY: &str = "SAKSHI_TEST_STORE";
const EVENT: &str = "SAKSHI_TEST_EVENT";
/// More rows than the child can write.
const ALL: PageRequest = PageRequest { page: 1, page_size: 1_000_000 };

/// Makes the command run the child on a store, for the client of an event or only to open it.
pub(super) fn run_child<'a>(command: &'a mut Command, directory: &Path, event: Option<EventId>) -> &'a mut Command {
    command.args([CHILD, "--exact", "--nocapture", "--test-threads=1"]).env(DIRECTORY, directory);
    match event {
        Some(event) => command.env(EVENT, event.to_string()),
        None => command,
    }
}

fn say(words: &str, what: &dyn std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{words} {what}").unwrap();
    out.flush().unwrap();
}

/// Opens, completes, claims, registers and reports, and prints each answer.
async fn work(test: &EmbeddedTestStore, event: &Event) {
    let party = flow_fixture::party(test).await;
    for round in 0_u64.. {
        let guest = scanned(test, event).await;
        say("opened", &guest);
        let outcome = test.store.complete_transaction(completing(guest, 1)).await.unwrap();
        assert!(matches!(outcome, CompleteOutcome::Completed { queued: Some(_), .. }), "{outcome:?}");
        say("registered", &guest);
        let flow = flow_fixture::opened(test, flow_fixture::wealth(test, &party)).await;
        let reported = flow_fixture::accepted(test, &flow, ShortReport::Data(1, "RAW", 1)).await.unwrap();
        say("reported", &reported.id);
        let open = opening(test, &event.client);
        let id = open.pending.id;
        let outcome = test.store.open_transaction(open).await.unwrap();
        assert!(matches!(outcome, OpenOutcome::Opened { .. }));
        say("opened", &id);
        if round % 3 == 0 {
            continue;
        }
        let outcome = test.store.complete_transaction(completing(id, 1)).await.unwrap();
        let CompleteOutcome::Completed { queued: Some(delivery), .. } = outcome else { panic!("{outcome:?}") };
        say("completed", &id);
        if round % 3 == 1 {
            assert!(test.store.claim_delivery(delivery.id, id.into()).await.unwrap());
            say("claimed", &format!("{} {id}", delivery.id));
        }
    }
}

#[test]
fn the_child_works_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let clock = Arc::new(ManualClock::starting_at(super::START));
    let store = match EmbeddedStore::open(options(&directory, Arc::clone(&clock))) {
        Ok(store) => store,
        Err(error) => return say("\nrefused", &error),
    };
    let Ok(event) = std::env::var(EVENT) else { return };
    let event: EventId = event.parse().unwrap();
    let test = EmbeddedTestStore { store, clock, directory: tempfile::tempdir().unwrap() };
    crate::conformance::run(async {
        let event = test.store.load_event(event).await.unwrap().unwrap();
        drop(join_all((0..24).map(|_| work(&test, &event))).await);
    });
}

/// Runs a child, and kills it after `wanted` answers. Returns its answers, from complete lines.
fn answers_until_killed(directory: &Path, event: EventId, wanted: usize) -> Vec<(String, String)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = run_child(&mut command, directory, Some(event)).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut answers, mut line) = (Vec::new(), String::new());
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some((word @ ("opened" | "completed" | "claimed" | "registered" | "reported"), what)) =
            line.trim_end_matches('\n').split_once(' ')
            && line.ends_with('\n')
        {
            answers.push((word.to_owned(), what.to_owned()));
        }
        line.clear();
        if answers.len() == wanted {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success());
    answers
}

#[test]
fn whatever_was_answered_before_a_kill_is_there_after_it() {
    let first = test_store();
    let directory = &first.directory;
    let mut party = None;
    crate::conformance::run(async {
        let client = client_with(&first, 1_000_000).await;
        party = Some(created(&first, event(&first, &client, 1_000_000)).await);
    });
    let party = party.unwrap();
    first.store.close();
    let mut claimed_before = HashSet::new();
    for wanted in [50, 400, 1_500, 3_000] {
        let answers = answers_until_killed(directory.path(), party.id, wanted);
        assert!(answers.len() >= wanted, "the child worked");
        let store = open(directory.path()).unwrap();
        let test = EmbeddedTestStore { store, clock: first.clock.clone(), directory: tempfile::tempdir().unwrap() };
        crate::conformance::run(async {
            for (word, what) in &answers {
                check(&test, word, what, &mut claimed_before).await;
            }
            check_event(&test, &party, &answers).await;
            let spent = 1_000_000 - audited_balance(&test, &party.client).await;
            assert!(spent >= answers.iter().filter(|(word, _)| word == "opened").count() as u64);
            test.store.abandon_attempts().await.unwrap();
        });
        test.store.close();
    }
}

async fn check(test: &EmbeddedTestStore, word: &str, what: &str, claimed_before: &mut HashSet<u64>) {
    if word == "claimed" {
        let (id, txn) = what.split_once(' ').unwrap();
        let (id, txn): (u64, TxnId) = (id.parse().unwrap(), txn.parse().unwrap());
        assert!(claimed_before.insert(id), "no position is used twice");
        assert_eq!(test.store.claim_delivery(DeliveryId(id), txn.into()).await, Ok(false));
        let kept = test.store.load_delivery(txn.into()).await.unwrap().unwrap();
        assert!(kept.id == DeliveryId(id) && kept.claimed_at.is_some(), "{kept:?}");
        return;
    }
    if word == "reported" {
        let id: u64 = what.parse().unwrap();
        let due = test.store.due_deliveries(Some(DeliveryId(id - 1)), None, 1).await.unwrap().remove(0);
        let Subject::Flow { flow, webhook } = due.subject else { panic!("{due:?}") };
        assert_eq!(due.id, DeliveryId(id), "it waits for its attempt");
        assert!(test.store.load_webhook(flow, webhook).await.unwrap().is_some());
        return;
    }
    let id: TxnId = what.parse().unwrap();
    let record = test.store.load_transaction(id).await.unwrap();
    match word {
        "completed" | "registered" => assert!(matches!(record, Some(TransactionRecord::Completed(_)))),
        _ => assert!(record.is_some()),
    }
    let delivery = test.store.load_delivery(id.into()).await.unwrap();
    assert_eq!(delivery.is_some(), matches!(record, Some(TransactionRecord::Completed(_))));
}

/// Checks that every guest with an answer is on the list, and that the event's counts are right.
async fn check_event(test: &EmbeddedTestStore, event: &Event, answers: &[(String, String)]) {
    let listed = test.store.list_registrations(event.id, ALL.into()).await.unwrap();
    let listed: HashSet<String> = listed.items.iter().map(|one| one.guest.txn.to_string()).collect();
    assert!(answers.iter().filter(|(word, _)| word == "registered").all(|(_, guest)| listed.contains(guest)));
    let counts = test.store.load_event(event.id).await.unwrap().unwrap().counts;
    assert_eq!(counts.registrations as usize, listed.len());
    assert!(counts.scans >= counts.registrations.into() && counts.scans <= u64::from(counts.registrations) + 24 * 4);
}
