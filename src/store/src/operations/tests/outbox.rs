//! Deliveries of nodes that share their records: under any concurrency, a delivery has one holder and one attempt, and
//! none is forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::join;
use sakshi_domain::delivery::{DeliveryOutcome, Receiver};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::transaction::CredentialIdentity;
use sakshi_kit::random::Random;

use super::shared::{DELIVERED, Node, SharedEngine};
use crate::conformance::fixture::{build_completion, build_opening_with_hook, client_with, open_pending};
use crate::conformance::{TestStore as _, run};
use crate::engine::{Batch, Op};
use crate::records::delivery::key_of_delivery;
use crate::redis::NodeId;
use crate::{Backlog, CompleteOutcome, CompleteTransaction, PresentedCredential, TransactionRecord};

/// Random schedules that each test tries.
const SEEDS: u64 = 80;

#[test]
fn concurrent_takeovers_move_each_delivery_to_one_survivor() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            // The dead node is of this cluster, or of an embedded store that was moved here.
            let dead = engine.join_as(if seed % 2 == 0 { NodeId::ALONE } else { NodeId::generate() });
            let survivors = [engine.join(), engine.join()];
            let clients = dead.create_clients(5).await;
            let mut waiting = dead.queue_deliveries(&clients, 30).await;
            let claimed: BTreeMap<_, _> = waiting.iter().step_by(7).map(|(id, subject)| (*id, *subject)).collect();
            for delivery in &claimed {
                assert!(dead.claim(delivery).await);
                waiting.remove(delivery.0);
            }
            engine.begin_disorder(seed);
            join_all(survivors.iter().map(|node| node.take_over_from(dead.id))).await;
            engine.end_disorder();

            let queues = [survivors[0].all_due().await, survivors[1].all_due().await];
            let mut all = queues.concat();
            all.sort_unstable();
            assert_eq!(all, waiting.keys().copied().collect::<Vec<_>>(), "{seed}");
            assert_eq!(dead.all_due().await, []);
            assert!(!survivors[0].lists_holder(dead.id).await, "{seed}");
            assert_eq!(dead.store.backlog().await.unwrap().deliveries, waiting.len() as u64);
            for delivery in &claimed {
                assert_eq!(dead.outcome(delivery.1).await, Some(DeliveryOutcome::Unknown), "{seed}");
                assert!(
                    !dead.claim(delivery).await
                        && !survivors[0].claim(delivery).await
                        && !survivors[1].claim(delivery).await
                );
            }
            for delivery in &waiting {
                assert!(!dead.claim(delivery).await, "the dead node no longer holds the delivery");
                let holder = usize::from(queues[1].contains(delivery.0));
                assert!(!survivors[1 - holder].claim(delivery).await && survivors[holder].claim(delivery).await);
                survivors[holder].store.settle_delivery(*delivery.0, *delivery.1, DELIVERED).await.unwrap();
            }
            assert_eq!(dead.store.backlog().await, Ok(Backlog::default()));
        });
    }
}

#[test]
fn a_claim_racing_with_takeovers_is_the_only_attempt_and_keeps_its_outcome() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            // The slow node is declared dead, but continues.
            let (slow, one, other) = (engine.join(), engine.join(), engine.join());
            let waiting = slow.queue_deliveries(&slow.create_clients(3).await, 16).await;
            engine.begin_disorder(seed);
            let take_over_and_attempt = async |node: &Node| {
                node.take_over_from(slow.id).await;
                node.attempt(&waiting).await
            };
            let (mut attempted, by_one, by_other) =
                join!(slow.attempt(&waiting), take_over_and_attempt(&one), take_over_and_attempt(&other));
            attempted.extend([by_one, by_other].concat());
            // The next takeover finds the deliveries that the previous one missed.
            attempted.extend(take_over_and_attempt(&one).await);
            engine.end_disorder();
            attempted.sort_unstable();
            assert_eq!(attempted, waiting.keys().copied().collect::<Vec<_>>(), "{seed}: one attempt of each delivery");
            for subject in waiting.values() {
                assert_eq!(
                    slow.store.load_delivery(*subject).await.unwrap().unwrap().attempt,
                    Some(DELIVERED),
                    "{seed}"
                );
            }
            for node in [&slow, &one, &other] {
                assert_eq!(node.all_due().await, []);
                assert_eq!(node.store.abandon_attempts().await, Ok(0), "no attempt is in flight");
            }
            assert_eq!(slow.store.backlog().await, Ok(Backlog::default()));
        });
    }
}

#[test]
fn nodes_that_declare_each_other_dead_attempt_each_delivery_once() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let nodes = [engine.join(), engine.join(), engine.join()];
            let waiting = nodes[0].queue_deliveries(&nodes[0].create_clients(3).await, 12).await;
            engine.begin_disorder(seed);
            let work = async |node: &Node| {
                let mut attempted =
                    node.attempt(&waiting.iter().step_by(3).map(|(id, subject)| (*id, *subject)).collect()).await;
                for dead in nodes.iter().filter(|dead| dead.id != node.id) {
                    node.take_over_from(dead.id).await;
                    attempted.extend(node.attempt(&waiting).await);
                }
                attempted
            };
            let mut attempted = join_all(nodes.iter().map(&work)).await.concat();
            attempted.extend(work(&nodes[1]).await);
            engine.end_disorder();
            attempted.sort_unstable();
            assert_eq!(attempted, waiting.keys().copied().collect::<Vec<_>>(), "{seed}");
            for subject in waiting.values() {
                assert_eq!(nodes[0].outcome(subject).await, Some(DeliveryOutcome::Delivered), "{seed}");
            }
        });
    }
}

#[test]
fn the_next_takeover_finds_deliveries_queued_during_the_previous_one() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let (dead, survivor) = (engine.join(), engine.join());
            let clients = dead.create_clients(3).await;
            let mut all = dead.queue_deliveries(&clients, 4).await;
            let mut pending = Vec::new();
            for client in &clients {
                pending.push(open_pending(&dead, client).await.id);
            }
            engine.begin_disorder(seed);
            let complete_all = async {
                for id in &pending {
                    dead.complete(build_completion(*id, 1)).await;
                }
            };
            join!(complete_all, survivor.take_over_from(dead.id));
            engine.end_disorder();
            for id in pending {
                all.insert(dead.store.load_delivery(id.into()).await.unwrap().unwrap().id, id.into());
            }
            assert_eq!(survivor.lists_holder(dead.id).await, !dead.all_due().await.is_empty(), "{seed}");
            survivor.take_over_from(dead.id).await;
            assert_eq!(survivor.all_due().await, all.into_keys().collect::<Vec<_>>(), "{seed}");
            assert!(!survivor.lists_holder(dead.id).await);

            // The takeover finished; afterwards one delivery is queued and another is claimed.
            let more = dead.queue_deliveries(&clients, 2).await;
            assert!(dead.claim(more.first_key_value().unwrap()).await);
            assert!(survivor.lists_holder(dead.id).await);
            survivor.take_over_from(dead.id).await;
            assert!(survivor.all_due().await.contains(more.last_key_value().unwrap().0));
            assert_eq!(survivor.outcome(more.first_key_value().unwrap().1).await, Some(DeliveryOutcome::Unknown));
            assert!(!survivor.lists_holder(dead.id).await);
        });
    }
}

/// Returns the receiver of a client's deliveries to one of two hosts.
fn receiver(client: &ClientId, origin: u64) -> Receiver {
    Receiver { client: client.clone(), origin: format!("https://host{origin}.example") }
}

#[test]
fn pages_over_several_partitions_have_no_gaps_and_are_in_order() {
    run(async {
        let engine = SharedEngine::new();
        let (node, dead) = (engine.join(), engine.join());
        let clients = node.create_clients(24).await;
        let mut all = Vec::new();
        for round in 0..6 {
            for (number, client) in clients.iter().enumerate() {
                // Every third delivery is queued on the dead node.
                let queueing_node = if number % 3 == 0 { &dead } else { &node };
                let open = build_opening_with_hook(&node, client, Some(&format!("https://host{}.example/", round % 2)));
                let id = open.pending.id;
                queueing_node.store.open_transaction(open).await.unwrap();
                queueing_node.complete(build_completion(id, 1)).await;
                all.push((node.store.load_delivery(id.into()).await.unwrap().unwrap().id, (number, round % 2)));
            }
            node.advance(Duration::from_millis(round % 2));
        }
        node.take_over_from(dead.id).await;
        all.sort_unstable();
        for limit in [1, 2, 7, 50, 1_000] {
            for filter in [None, Some((0, 0)), Some((4, 1))] {
                let expected: Vec<_> = all
                    .iter()
                    .filter(|(_, target)| filter.is_none_or(|filter| *target == filter))
                    .map(|(id, _)| *id)
                    .collect();
                let filter = filter.map(|(client, origin)| receiver(&clients[client], origin));
                for start in [0, 1, expected.len() / 2, expected.len()] {
                    let mut read = Vec::new();
                    loop {
                        let after = read.last().copied().or(start.checked_sub(1).map(|before| expected[before]));
                        let page = node.due(after, filter.clone(), limit).await;
                        read.extend(page.iter().copied());
                        if page.len() < limit {
                            break;
                        }
                    }
                    assert_eq!(read, expected[start..], "{limit} {filter:?} {start}");
                }
            }
        }
    });
}

#[test]
fn a_page_larger_than_one_read_is_complete() {
    run(async {
        let node = SharedEngine::new().join();
        let clients = node.create_clients(2).await;
        let mut all = node.queue_deliveries(&clients[..1], 2_100).await;
        all.extend(node.queue_deliveries(&clients[1..], 3).await);
        let all: Vec<_> = all.into_keys().collect();
        assert_eq!(node.all_due().await, all);
        assert_eq!(node.due(Some(all[10]), None, 2_050).await, all[11..2_061]);
    });
}

#[test]
fn a_cycling_reader_misses_no_delivery_when_the_clock_jumps() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let node = engine.join();
            let clients = node.create_clients(4).await;
            let (mut random, mut last) = (Random::from_seed(seed), BTreeMap::new());
            let (mut position, mut waiting, limit) = (None, BTreeMap::new(), 3);
            for step in 0.. {
                if step < 60 {
                    engine.clock.jump(i64::try_from(random.below(2_000)).unwrap() - 1_000);
                    let client = &clients[random.below(4) as usize];
                    for (id, subject) in
                        node.queue_deliveries(std::slice::from_ref(client), random.below(4) as usize).await
                    {
                        assert!(Some(id) > last.insert(subject.partition(), id), "{seed}: ids rise within a partition");
                        waiting.insert(id, subject);
                    }
                }
                // Like the dispatcher: a page that is not full ends the cycle.
                let page = node.due(position, None, limit).await;
                position = page.last().copied().filter(|_| page.len() == limit);
                for id in page {
                    if let Some(subject) = waiting.remove(&id) {
                        assert!(node.claim((&id, &subject)).await);
                        node.store.settle_delivery(id, subject, DELIVERED).await.unwrap();
                    }
                }
                if step > 60 && waiting.is_empty() {
                    break;
                }
                assert!(step < 60 + 120, "{seed}: {waiting:?} are never returned");
            }
            assert_eq!(node.store.backlog().await, Ok(Backlog::default()));
        });
    }
}

#[test]
fn a_delivery_without_a_record_is_removed_from_the_outbox() {
    run(async {
        let engine = SharedEngine::new();
        let node = engine.join();
        let (total, removed) = (12, 7);
        let queued = node.queue_deliveries(&node.create_clients(3).await, total).await;
        let forget_all = async || {
            for (id, subject) in &queued {
                node.store.forget_delivery(*id, *subject).await.unwrap();
            }
        };
        forget_all().await;
        assert_eq!(node.all_due().await.len(), total, "deliveries with records stay");
        let removals =
            queued.values().take(removed).map(|subject| Batch::new(vec![], vec![Op::Remove(key_of_delivery(subject))]));
        engine.apply(removals.collect()).await.unwrap();
        forget_all().await;
        let remaining: Vec<_> = queued.keys().copied().skip(removed).collect();
        assert_eq!(node.all_due().await, remaining);
        assert_eq!(node.store.backlog().await.unwrap().deliveries, (total - removed) as u64);
    });
}

#[test]
fn a_watcher_of_a_pending_transaction_is_notified_of_its_end() {
    for seed in 0..2 * SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let (ending_node, watcher) = (engine.join(), engine.join());
            let id = open_pending(&ending_node, &client_with(&ending_node, 5).await).await.id;
            engine.begin_disorder(seed);
            let watch = async {
                loop {
                    if let Ok(record) = watcher.store.watch_transaction(id).await {
                        return record;
                    }
                }
            };
            let end = async {
                if seed % 2 == 0 {
                    while ending_node.store.expire_transaction(id).await.is_err() {}
                } else {
                    ending_node.complete(build_completion(id, 1)).await;
                }
            };
            let (record, ()) = join!(watch, end);
            let is_pending = matches!(record, Some(TransactionRecord::Pending(_)));
            let is_notified =
                engine.notices.lock().unwrap().contains(&(watcher.id.to_string(), id.as_bytes().to_vec()));
            assert!(!is_pending || is_notified, "{seed}: the watcher's copy stays pending");
        });
    }
}

#[test]
fn a_credential_stays_used_if_the_delivery_is_claimed_before_the_response() {
    for seed in 0..2 * SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let node = engine.join();
            let client = client_with(&node, 5).await;
            let (first, second) = (open_pending(&node, &client).await.id, open_pending(&node, &client).await.id);
            let credential = Some(PresentedCredential { digest: CredentialIdentity([3; 32]), holder_bound: false });
            let command = |id: TxnId| CompleteTransaction { credential, ..build_completion(id, 1) };
            engine.begin_disorder(seed);
            let claim_when_due = async {
                for _ in 0..20 {
                    for delivery in node.store.due_deliveries(None, None, 10).await.unwrap() {
                        node.claim((&delivery.id, &delivery.subject)).await;
                    }
                }
            };
            let (outcome, ()) = join!(node.complete(command(first)), claim_when_due);
            assert!(matches!(outcome, CompleteOutcome::Completed { .. }), "{seed}: {outcome:?}");
            engine.end_disorder();
            assert_eq!(node.complete(command(second)).await, CompleteOutcome::CredentialReplayed, "{seed}");
        });
    }
}
