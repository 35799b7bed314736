//! Load shedding, and bounds on waiting times.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use sakshi_domain::ids::TxnId;
use sakshi_store::OpenOutcome;

use super::{Fixture, large_bounds, run, wait_until};
use crate::{AskError, TreeBounds, View};

/// Starts an arbiter that holds the second shard and is stuck until the sender is dropped.
fn start_stuck_shard(fixture: &Fixture) -> (actix_rt::Arbiter, mpsc::Sender<()>) {
    let arbiter = actix_rt::Arbiter::new();
    let (release, stuck) = mpsc::channel::<()>();
    let (started, ready) = mpsc::channel();
    let tree = fixture.tree.clone();
    arbiter.spawn_fn(move || {
        let shard = tree.start_shard();
        started.send(shard.is_some()).unwrap();
        // Ends with an error as soon as the sender is gone.
        let _ = stuck.recv();
    });
    assert!(ready.recv().unwrap());
    (arbiter, release)
}

fn id_on_shard(fixture: &Fixture, index: u8) -> TxnId {
    TxnId::generate(fixture.client.partition(), index)
}

#[test]
fn a_stuck_shard_times_out_while_others_answer() {
    run(async {
        let bounds = TreeBounds { shards: 2, ask_timeout: Duration::from_millis(200), ..large_bounds() };
        let fixture = Fixture::with_bounds(bounds).await;
        let (arbiter, release) = start_stuck_shard(&fixture);
        let began = Instant::now();
        assert_eq!(fixture.transactions.get(id_on_shard(&fixture, 1)).await.unwrap_err(), AskError::NoAnswer);
        assert!((200..5_000).contains(&began.elapsed().as_millis()));
        // A pause of the machine may outlast the limit of a question to the other shard too.
        let mut outcome = Err(AskError::NoAnswer);
        for _ in 0..50 {
            outcome = fixture.transactions.open(fixture.opening(id_on_shard(&fixture, 0), None)).await;
            if !matches!(outcome, Err(AskError::NoAnswer)) {
                break;
            }
        }
        assert!(matches!(outcome.unwrap(), OpenOutcome::Opened { .. }));
        drop(release);
        arbiter.stop();
        fixture.end().await;
    });
}

#[test]
fn a_question_beyond_the_admission_limit_is_refused_at_once() {
    run(async {
        let bounds = TreeBounds { shards: 2, in_flight: 3, ask_timeout: Duration::from_secs(30), ..large_bounds() };
        let fixture = Fixture::with_bounds(bounds).await;
        let (arbiter, release) = start_stuck_shard(&fixture);
        for _ in 0..3 {
            let (transactions, id) = (fixture.transactions.clone(), id_on_shard(&fixture, 1));
            actix_rt::spawn(async move { transactions.get(id).await });
        }
        wait_until("three questions are inside", || fixture.transactions.router.admission.inside() == 3).await;
        assert_eq!(fixture.transactions.get(id_on_shard(&fixture, 0)).await.unwrap_err(), AskError::Overloaded);
        drop(release);
        wait_until("the questions are answered", || fixture.transactions.router.admission.inside() == 0).await;
        assert!(matches!(fixture.transactions.get(id_on_shard(&fixture, 0)).await.unwrap(), View::Unknown));
        arbiter.stop();
        fixture.end().await;
    });
}

#[test]
fn a_full_shard_refuses_only_its_own_callers() {
    run(async {
        let bounds = TreeBounds { shards: 2, mailbox_depth: 2, ask_timeout: Duration::from_secs(30), ..large_bounds() };
        let fixture = Fixture::with_bounds(bounds).await;
        let (arbiter, release) = start_stuck_shard(&fixture);
        for _ in 0..2 {
            let (transactions, id) = (fixture.transactions.clone(), id_on_shard(&fixture, 1));
            actix_rt::spawn(async move { transactions.get(id).await });
        }
        wait_until("two questions wait", || fixture.transactions.router.admission.inside() == 2).await;
        assert_eq!(fixture.transactions.get(id_on_shard(&fixture, 1)).await.unwrap_err(), AskError::Overloaded);
        assert!(matches!(fixture.transactions.get(id_on_shard(&fixture, 0)).await.unwrap(), View::Unknown));
        drop(release);
        arbiter.stop();
        fixture.end().await;
    });
}

#[test]
fn a_node_full_of_live_transactions_refuses_another_and_charges_nothing() {
    run(async {
        let fixture = Fixture::with_bounds(TreeBounds { live_transactions: 2, ..large_bounds() }).await;
        fixture.open().await;
        fixture.open().await;
        assert_eq!(fixture.open_with_webhook(None).await.unwrap_err(), AskError::Overloaded);
        assert_eq!(fixture.credits_spent().await, 2);
        fixture.end().await;
    });
}
