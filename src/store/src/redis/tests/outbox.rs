//! Deliveries between nodes: their holders, and the fate of a dead node's deliveries.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryOutcome, Receiver};
use sakshi_domain::ids::{ClientId, TxnId};

use super::{RedisTestStore, test_store};
use crate::CompleteOutcome;
use crate::ReportFlowOutcome;
use crate::conformance::fixture::{
    build_completion, build_opening_with_hook, client_with, open_and_complete, open_pending,
};
use crate::conformance::flow_fixture::{self, ShortReport};
use crate::conformance::{TestStore, run};
use crate::engine::redis::RedisEngine;
use crate::engine::{Batch, Engine as _, Op};
use crate::operations::Store;
use crate::records::delivery::key_of_last_numbers;
use crate::redis::RedisStore;
use crate::transitions::delivery::number_of_id;

async fn create_clients(test: &RedisTestStore, count: usize) -> Vec<ClientId> {
    join_all((0..count).map(|_| client_with(test, 1_000))).await
}

/// Takes over from a dead node. Returns the numbers of deliveries taken over and of attempts recorded as unknown.
async fn take_over_from(heir: &RedisStore, dead: &RedisStore) -> (u64, u64) {
    heir.take_over(dead.shared.node).await.unwrap()
}

/// Changes a record behind the store's back.
async fn apply_op(test: &RedisTestStore, op: Op) {
    RedisEngine::new(test.store.shared.clone()).commit(vec![Batch::new(vec![], vec![op])]).await.unwrap();
}

/// Returns the ids of a page of due deliveries.
async fn due_ids(
    store: &Store,
    after: Option<DeliveryId>,
    receiver: Option<Receiver>,
    limit: usize,
) -> Vec<DeliveryId> {
    let due = store.due_deliveries(after, receiver, limit).await.unwrap();
    due.into_iter().map(|delivery| delivery.id).collect()
}

/// Opens and completes a transaction with a webhook. Returns its id and the id of the delivery.
async fn queue_delivery(test: &RedisTestStore, client: &ClientId, hook: &str) -> (TxnId, DeliveryId) {
    let open = build_opening_with_hook(test, client, Some(hook));
    let id = open.pending.id;
    test.store().open_transaction(open).await.unwrap();
    match test.store().complete_transaction(build_completion(id, 1)).await.unwrap() {
        CompleteOutcome::Completed { queued: Some(delivery), .. } => (id, delivery.id),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pages_over_all_partitions_have_every_delivery_once_and_in_order() {
    run(async {
        let test = &test_store();
        let clients = create_clients(test, 40).await;
        let mut all = Vec::new();
        for round in 0..6 {
            for (number, client) in clients.iter().enumerate() {
                let (_, id) = queue_delivery(test, client, &format!("https://host{}.example/", round % 2)).await;
                all.push((id, (number, round % 2)));
            }
            // Two rounds happen at the same time.
            if round % 2 == 0 {
                test.advance(std::time::Duration::from_millis(1));
            }
        }
        all.sort_unstable();
        for limit in [1, 7, 100, 1_000] {
            for selected in [None, Some((0, 0)), Some((2, 1))] {
                let expected: Vec<_> = all
                    .iter()
                    .filter(|(_, receiver)| selected.is_none_or(|selected| *receiver == selected))
                    .map(|(id, _)| *id)
                    .collect();
                let receiver = selected.map(|(client, origin)| Receiver {
                    client: clients[client].clone(),
                    origin: format!("https://host{origin}.example"),
                });
                let mut read = Vec::new();
                loop {
                    let page = due_ids(&test.store, read.last().copied(), receiver.clone(), limit).await;
                    assert!(page.len() <= limit);
                    read.extend(page.iter().copied());
                    if page.len() < limit || (limit == 1 && read.len() == 20) {
                        break;
                    }
                }
                assert_eq!(read, expected[..read.len()], "{limit} {receiver:?}");
                assert!(limit == 1 || read.len() == expected.len());
            }
        }
        assert_eq!(due_ids(&test.store, None, None, 0).await, []);
    });
}

#[test]
fn a_delivery_waits_only_for_the_node_that_completed_its_transaction() {
    run(async {
        let test = &test_store();
        let other = test.another_node().await;
        let client = client_with(test, 10).await;
        let (_, own) = open_and_complete(test, &client).await;
        let other_txn = open_pending(test, &client).await.id;
        let outcome = other.complete_transaction(build_completion(other_txn, 1)).await.unwrap();
        let CompleteOutcome::Completed { queued: Some(delivery), .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(due_ids(&test.store, None, None, 10).await, [own]);
        assert_eq!(due_ids(&other, None, None, 10).await, [delivery.id]);
        // Nodes may race for the delivery.
        let claims = [
            test.store.claim_delivery(delivery.id, other_txn.into()),
            other.claim_delivery(delivery.id, other_txn.into()),
        ];
        let claims = join_all(claims).await;
        assert_eq!(claims.iter().filter(|claimed| **claimed == Ok(true)).count(), 1);
    });
}

#[test]
fn deliveries_of_a_dead_node_are_taken_over_and_its_open_attempts_unknown() {
    run(async {
        let test = &test_store();
        let (dead, heir) = (test.another_node().await, test.another_node().await);
        let clients = create_clients(test, 12).await;
        let (mut waiting, mut in_flight) = (Vec::new(), Vec::new());
        for number in 0..240 {
            let id = open_pending(test, &clients[number % 12]).await.id;
            let outcome = dead.complete_transaction(build_completion(id, 1)).await.unwrap();
            let CompleteOutcome::Completed { queued: Some(delivery), .. } = outcome else { panic!("{outcome:?}") };
            if number % 20 == 0 {
                assert!(dead.claim_delivery(delivery.id, id.into()).await.unwrap());
                in_flight.push((delivery.id, id));
            } else {
                waiting.push(delivery.id);
            }
        }
        let (own_txn, _) = queue_delivery(test, &clients[0], "https://other.example/").await;
        waiting.sort_unstable();
        assert_eq!(take_over_from(&heir, &dead).await, (228, 12));
        assert_eq!(due_ids(&heir, None, None, 1_000).await, waiting);
        assert_eq!(due_ids(&dead, None, None, 1_000).await, []);
        assert_eq!(due_ids(&test.store, None, None, 1_000).await.len(), 1, "live nodes keep their deliveries");
        for (id, txn) in &in_flight {
            let attempt = heir.load_delivery((*txn).into()).await.unwrap().unwrap().attempt.unwrap();
            assert_eq!(attempt.outcome, DeliveryOutcome::Unknown);
            assert_eq!(heir.claim_delivery(*id, (*txn).into()).await, Ok(false));
        }
        assert_eq!(take_over_from(&heir, &dead).await, (0, 0));
        // The node was not dead after all, and records the outcome of one of its attempts.
        let (id, txn) = in_flight[0];
        let delivered = Attempt::from_status(200, 9);
        dead.settle_delivery(id, txn.into(), delivered).await.unwrap();
        assert_eq!(heir.load_delivery(txn.into()).await.unwrap().unwrap().attempt, Some(delivered));
        assert_eq!(test.store.load_delivery(own_txn.into()).await.unwrap().unwrap().attempt, None);
    });
}

#[test]
fn flow_webhooks_of_a_dead_node_are_taken_over_too() {
    run(async {
        let test = &test_store();
        let (dead, heir) = (test.another_node().await, test.another_node().await);
        let flow = flow_fixture::open_flow(
            test,
            flow_fixture::wealth_flow(test, &flow_fixture::create_client_app(test).await),
        )
        .await;
        let mut queued = Vec::new();
        for form in ["RAW", "ANALYSED"] {
            let outcome = dead
                .report_flow(flow_fixture::build_report(&flow, ShortReport::Data { fetch: 1, form, content: 1 }))
                .await
                .unwrap();
            let ReportFlowOutcome::Accepted { queued: Some(delivery), .. } = outcome else { panic!("{outcome:?}") };
            queued.push(delivery);
        }
        assert!(dead.claim_delivery(queued[0].id, queued[0].subject).await.unwrap());
        assert_eq!(take_over_from(&heir, &dead).await, (1, 1));
        assert_eq!(heir.first_due_deliveries(10).await, Ok(vec![queued[1].clone()]));
        let record = heir.load_delivery(queued[0].subject).await.unwrap().unwrap();
        assert_eq!(record.attempt.unwrap().outcome, DeliveryOutcome::Unknown);
        assert!(heir.claim_delivery(queued[1].id, queued[1].subject).await.unwrap());
        assert!(!dead.claim_delivery(queued[1].id, queued[1].subject).await.unwrap());
    });
}

#[test]
fn a_takeover_with_lost_replies_moves_every_delivery_once() {
    run(async {
        let test = &test_store();
        let (dead, heir) = (test.another_node().await, test.another_node().await);
        let client = client_with(test, 1_000).await;
        let mut waiting = Vec::new();
        for _ in 0..250 {
            let id = open_pending(test, &client).await.id;
            let outcome = dead.complete_transaction(build_completion(id, 1)).await.unwrap();
            let CompleteOutcome::Completed { queued: Some(delivery), .. } = outcome else { panic!("{outcome:?}") };
            waiting.push(delivery.id);
        }
        heir.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
        take_over_from(&heir, &dead).await;
        assert_eq!(due_ids(&heir, None, None, 1_000).await, waiting);
        assert_eq!(due_ids(&dead, None, None, 1_000).await, []);
    });
}

#[test]
fn delivery_numbers_rise_despite_clock_steps_and_full_milliseconds() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 100).await;
        // Sets the last used number: 2,048 numbers belong to each millisecond.
        let set_last = |millisecond: i64, count: i64| {
            Op::Put(key_of_last_numbers(client.partition()), vec![("last", (millisecond * 2_048 + count).into())])
        };
        let (_, first) = open_and_complete(test, &client).await;
        // The last number of a later millisecond is used.
        let later = test.now().millis() + 5_000;
        apply_op(test, set_last(later, 2_047)).await;
        let (_, second) = open_and_complete(test, &client).await;
        apply_op(test, set_last(later + 1_000, 7)).await;
        let (_, third) = open_and_complete(test, &client).await;
        assert_eq!([second, third].map(number_of_id), [(later + 1) * 2_048, (later + 1_000) * 2_048 + 8]);
        assert!(first < second && second < third);
        // The clock reaches a millisecond whose numbers are all used.
        apply_op(test, set_last(later + 10_000, 2_047)).await;
        test.advance(std::time::Duration::from_millis(15_000));
        assert_eq!(test.now().millis(), later + 10_000);
        let (txn, fourth) = open_and_complete(test, &client).await;
        assert_eq!(number_of_id(fourth), (later + 10_001) * 2_048);
        assert!(test.store().claim_delivery(fourth, txn.id.into()).await.unwrap());
    });
}

#[test]
fn eight_nodes_racing_for_each_delivery_make_one_attempt() {
    run(async {
        let test = &test_store();
        let nodes = join_all((0..8).map(|_| test.another_node())).await;
        let client = client_with(test, 50).await;
        for _ in 0..50 {
            let (pending, id) = open_and_complete(test, &client).await;
            // Each node takes the holder for dead.
            let holder = test.store.shared.node;
            let claims = join_all(nodes.iter().map(|node| async move {
                node.take_over(holder).await.unwrap();
                node.claim_delivery(id, pending.id.into()).await
            }));
            assert_eq!(claims.await.iter().filter(|claimed| **claimed == Ok(true)).count(), 1);
        }
    });
}
