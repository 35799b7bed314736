//! What is shed when there is too much, and how long anybody waits.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use sakshi_domain::ids::TxnId;
use sakshi_store::OpenOutcome;

use super::{Universe, roomy, run, until};
use crate::{AskError, TreeBounds, View};

/// An arbiter that holds the second shard and is stuck until the sender is dropped.
fn stuck_shard(universe: &Universe) -> (actix_rt::Arbiter, mpsc::Sender<()>) {
    let arbiter = actix_rt::Arbiter::new();
    let (release, stuck) = mpsc::channel::<()>();
    let (started, ready) = mpsc::channel();
    let tree = universe.tree.clone();
    arbiter.spawn_fn(move || {
        let shard = tree.start_shard();
        started.send(shard.is_some()).unwrap();
        // Ends with an error as soon as the sender is gone.
        let _ = stuck.recv();
    });
    assert!(ready.recv().unwrap());
    (arbiter, release)
}

fn on_shard(universe: &Universe, index: u8) -> TxnId {
    TxnId::generate(universe.client.partition(), index)
}

#[test]
fn a_stuck_shard_is_given_up_on_after_the_patience_and_others_still_answer() {
    run(async {
        let bounds = TreeBounds { shards: 2, patience: Duration::from_millis(200), ..roomy() };
        let universe = Universe::with(bounds).await;
        let (arbiter, release) = stuck_shard(&universe);
        let began = Instant::now();
        assert_eq!(universe.door.look(on_shard(&universe, 1)).await.unwrap_err(), AskError::NoAnswer);
        assert!((200..5_000).contains(&began.elapsed().as_millis()));
        let opening = universe.opening(on_shard(&universe, 0), None);
        assert!(matches!(universe.door.open(opening).await.unwrap(), OpenOutcome::Opened { .. }));
        drop(release);
        arbiter.stop();
        universe.end().await;
    });
}

#[test]
fn what_exceeds_the_admission_limit_is_shed_at_once() {
    run(async {
        let bounds = TreeBounds { shards: 2, in_flight: 3, patience: Duration::from_secs(30), ..roomy() };
        let universe = Universe::with(bounds).await;
        let (arbiter, release) = stuck_shard(&universe);
        for _ in 0..3 {
            let (door, id) = (universe.door.clone(), on_shard(&universe, 1));
            actix_rt::spawn(async move { door.look(id).await });
        }
        until("three questions are inside", || universe.door.router.admission.inside() == 3).await;
        assert_eq!(universe.door.look(on_shard(&universe, 0)).await.unwrap_err(), AskError::Overloaded);
        drop(release);
        until("they are answered", || universe.door.router.admission.inside() == 0).await;
        assert!(matches!(universe.door.look(on_shard(&universe, 0)).await.unwrap(), View::Unknown));
        arbiter.stop();
        universe.end().await;
    });
}

#[test]
fn one_shards_long_line_sheds_its_own_callers_only() {
    run(async {
        let bounds = TreeBounds { shards: 2, mailbox_depth: 2, patience: Duration::from_secs(30), ..roomy() };
        let universe = Universe::with(bounds).await;
        let (arbiter, release) = stuck_shard(&universe);
        for _ in 0..2 {
            let (door, id) = (universe.door.clone(), on_shard(&universe, 1));
            actix_rt::spawn(async move { door.look(id).await });
        }
        until("two questions wait", || universe.door.router.admission.inside() == 2).await;
        assert_eq!(universe.door.look(on_shard(&universe, 1)).await.unwrap_err(), AskError::Overloaded);
        assert!(matches!(universe.door.look(on_shard(&universe, 0)).await.unwrap(), View::Unknown));
        drop(release);
        arbiter.stop();
        universe.end().await;
    });
}

#[test]
fn a_node_full_of_live_transactions_refuses_another_and_charges_nothing() {
    run(async {
        let universe = Universe::with(TreeBounds { live_transactions: 2, ..roomy() }).await;
        universe.open().await;
        universe.open().await;
        assert_eq!(universe.open_for(None).await.unwrap_err(), AskError::Overloaded);
        assert_eq!(universe.spent().await, 2);
        universe.end().await;
    });
}
