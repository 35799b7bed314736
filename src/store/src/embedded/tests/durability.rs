//! Every call that was answered before the process is killed is stored.
//!
//! The process is this test binary, running only the test [`CHILD`]. It works until it is killed, and prints every
//! answer that it got.

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
use crate::conformance::fixture::{
    audited_balance, build_completion, build_event, build_opening, client_with, open_guest_scan, store_event,
};
use crate::conformance::flow_fixture::{self, ShortReport};
use crate::embedded::EmbeddedStore;
use crate::{CompleteOutcome, OpenOutcome, PageRequest};

/// The test that the child process runs.
const CHILD: &str = "embedded::tests::durability::the_child_works_until_it_is_killed";
/// Environment variable with the directory of the child's store.
const DIRECTORY_VARIABLE: &str = "SAKSHI_TEST_STORE";
/// Environment variable with the event at which the child works.
const EVENT_VARIABLE: &str = "SAKSHI_TEST_EVENT";
/// More rows than the child can write.
const ALL: PageRequest = PageRequest { page: 1, page_size: 1_000_000 };

/// Makes the command run the child on a store. Without an event, the child only opens the store.
pub(super) fn configure_child<'a>(
    command: &'a mut Command,
    directory: &Path,
    event: Option<EventId>,
) -> &'a mut Command {
    command.args([CHILD, "--exact", "--nocapture", "--test-threads=1"]).env(DIRECTORY_VARIABLE, directory);
    match event {
        Some(event) => command.env(EVENT_VARIABLE, event.to_string()),
        None => command,
    }
}

/// Prints a line with the kind of an answer and its value.
fn print_answer(kind: &str, value: &dyn std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{kind} {value}").unwrap();
    out.flush().unwrap();
}

/// Opens, completes, claims, registers and reports in a loop, and prints each answer.
async fn work_forever(test: &EmbeddedTestStore, event: &Event) {
    let client_app = flow_fixture::create_client_app(test).await;
    for round in 0_u64.. {
        let guest = open_guest_scan(test, event).await;
        print_answer("opened", &guest);
        let outcome = test.store.complete_transaction(build_completion(guest, 1)).await.unwrap();
        assert!(matches!(outcome, CompleteOutcome::Completed { queued: Some(_), .. }), "{outcome:?}");
        print_answer("registered", &guest);
        let flow = flow_fixture::open_flow(test, flow_fixture::wealth_flow(test, &client_app)).await;
        let delivery =
            flow_fixture::accept_report(test, &flow, ShortReport::Data { fetch: 1, form: "RAW", content: 1 })
                .await
                .unwrap();
        print_answer("reported", &delivery.id);
        let open = build_opening(test, &event.client);
        let id = open.pending.id;
        let outcome = test.store.open_transaction(open).await.unwrap();
        assert!(matches!(outcome, OpenOutcome::Opened { .. }));
        print_answer("opened", &id);
        if round % 3 == 0 {
            continue;
        }
        let outcome = test.store.complete_transaction(build_completion(id, 1)).await.unwrap();
        let CompleteOutcome::Completed { queued: Some(delivery), .. } = outcome else { panic!("{outcome:?}") };
        print_answer("completed", &id);
        if round % 3 == 1 {
            assert!(test.store.claim_delivery(delivery.id, id.into()).await.unwrap());
            print_answer("claimed", &format!("{} {id}", delivery.id));
        }
    }
}

/// The main function of the child process, which is this test alone. It does nothing in the usual run of tests. Without
/// an event it only opens the store.
#[test]
fn the_child_works_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from) else { return };
    let clock = Arc::new(ManualClock::starting_at(super::START));
    let store = match EmbeddedStore::open(options(&directory, Arc::clone(&clock))) {
        Ok(store) => store,
        // The line break ends what the test runner has printed.
        Err(error) => return print_answer("\nrefused", &error),
    };
    let Ok(event) = std::env::var(EVENT_VARIABLE) else { return };
    let event: EventId = event.parse().unwrap();
    let test = EmbeddedTestStore { store, clock, directory: tempfile::tempdir().unwrap() };
    crate::conformance::run(async {
        let event = test.store.load_event(event).await.unwrap().unwrap();
        drop(join_all((0..24).map(|_| work_forever(&test, &event))).await);
    });
}

/// Runs a child and kills it after `answers_wanted` answers. Returns the answers that it printed in complete lines.
fn answers_until_killed(directory: &Path, event: EventId, answers_wanted: usize) -> Vec<(String, String)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = configure_child(&mut command, directory, Some(event)).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut answers, mut line) = (Vec::new(), String::new());
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some((kind @ ("opened" | "completed" | "claimed" | "registered" | "reported"), value)) =
            line.trim_end_matches('\n').split_once(' ')
            && line.ends_with('\n')
        {
            answers.push((kind.to_owned(), value.to_owned()));
        }
        line.clear();
        if answers.len() == answers_wanted {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success());
    answers
}

#[test]
fn every_answered_call_survives_a_kill() {
    let first = test_store();
    let directory = &first.directory;
    let mut created_event = None;
    crate::conformance::run(async {
        let client = client_with(&first, 1_000_000).await;
        created_event = Some(store_event(&first, build_event(&first, &client, 1_000_000)).await);
    });
    let test_event = created_event.unwrap();
    first.store.close();
    let mut claimed_before = HashSet::new();
    for answers_wanted in [50, 400, 1_500, 3_000] {
        let answers = answers_until_killed(directory.path(), test_event.id, answers_wanted);
        assert!(answers.len() >= answers_wanted, "the child stopped early");
        let store = open(directory.path()).unwrap();
        let test = EmbeddedTestStore { store, clock: first.clock.clone(), directory: tempfile::tempdir().unwrap() };
        crate::conformance::run(async {
            for (kind, value) in &answers {
                check_answer(&test, kind, value, &mut claimed_before).await;
            }
            check_event(&test, &test_event, &answers).await;
            let spent = 1_000_000 - audited_balance(&test, &test_event.client).await;
            assert!(spent >= answers.iter().filter(|(kind, _)| kind == "opened").count() as u64);
            test.store.abandon_attempts().await.unwrap();
        });
        test.store.close();
    }
}

/// Checks that the store has the result of an answered call.
async fn check_answer(test: &EmbeddedTestStore, kind: &str, value: &str, claimed_before: &mut HashSet<u64>) {
    if kind == "claimed" {
        let (id, txn) = value.split_once(' ').unwrap();
        let (id, txn): (u64, TxnId) = (id.parse().unwrap(), txn.parse().unwrap());
        assert!(claimed_before.insert(id), "no delivery id is used twice");
        assert_eq!(test.store.claim_delivery(DeliveryId(id), txn.into()).await, Ok(false));
        let delivery = test.store.load_delivery(txn.into()).await.unwrap().unwrap();
        assert!(delivery.id == DeliveryId(id) && delivery.claimed_at.is_some(), "{delivery:?}");
        return;
    }
    if kind == "reported" {
        let id: u64 = value.parse().unwrap();
        let due = test.store.due_deliveries(Some(DeliveryId(id - 1)), None, 1).await.unwrap().remove(0);
        let Subject::Flow { flow, webhook } = due.subject else { panic!("{due:?}") };
        assert_eq!(due.id, DeliveryId(id), "the delivery waits for its attempt");
        assert!(test.store.load_webhook(flow, webhook).await.unwrap().is_some());
        return;
    }
    let id: TxnId = value.parse().unwrap();
    let record = test.store.load_transaction(id).await.unwrap();
    match kind {
        "completed" | "registered" => assert!(matches!(record, Some(TransactionRecord::Completed(_)))),
        _ => assert!(record.is_some()),
    }
    let delivery = test.store.load_delivery(id.into()).await.unwrap();
    assert_eq!(delivery.is_some(), matches!(record, Some(TransactionRecord::Completed(_))));
}

/// Checks that the list has every guest whose registration was answered, and that the event's counts are right.
async fn check_event(test: &EmbeddedTestStore, event: &Event, answers: &[(String, String)]) {
    let listed = test.store.list_registrations(event.id, ALL.into()).await.unwrap();
    let listed: HashSet<String> = listed.items.iter().map(|registration| registration.guest.txn.to_string()).collect();
    assert!(answers.iter().filter(|(kind, _)| kind == "registered").all(|(_, guest)| listed.contains(guest)));
    let counts = test.store.load_event(event.id).await.unwrap().unwrap().counts;
    assert_eq!(counts.registrations as usize, listed.len());
    assert!(counts.scans >= counts.registrations.into() && counts.scans <= u64::from(counts.registrations) + 24 * 4);
}
