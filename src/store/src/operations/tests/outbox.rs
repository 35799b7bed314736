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
use crate::conformance::fixture::{client_with, completing, opened, opening_with_hook};
use crate::conformance::{TestStore as _, run};
use crate::engine::{Batch, Op};
use crate::records::delivery::of_subject;
use crate::redis::NodeId;
use crate::{Backlog, CompleteOutcome, CompleteTransaction, PresentedCredential, TransactionRecord};

/// Orders of events that each test tries.
const SEEDS: u64 = 80;

#[test]
fn two_survivors_that_take_over_at_the_same_time_have_each_delivery_once() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            // A node of another store, which was moved here, or one that was alive.
            let dead = engine.join_as(if seed % 2 == 0 { NodeId::ALONE } else { NodeId::generate() });
            let survivors = [engine.join(), engine.join()];
            let clients = dead.clients(5).await;
            let mut waiting = dead.queue(&clients, 30).await;
            let begun: BTreeMap<_, _> = waiting.iter().step_by(7).map(|(id, subject)| (*id, *subject)).collect();
            for delivery in &begun {
                assert!(dead.claim(delivery).await);
                waiting.remove(delivery.0);
            }
            engine.begin_disorder(seed);
            join_all(survivors.iter().map(|node| node.replace(dead.id))).await;
            engine.end_disorder();

            let held = [survivors[0].due(None, None, 100).await, survivors[1].due(None, None, 100).await];
            let mut all = held.concat();
            all.sort_unstable();
            assert_eq!(all, waiting.keys().copied().collect::<Vec<_>>(), "{seed}");
            assert_eq!(dead.due(None, None, 100).await, []);
            assert!(!survivors[0].finds(dead.id).await, "{seed}");
            assert_eq!(dead.store.backlog().await.unwrap().deliveries, waiting.len() as u64);
            for delivery in &begun {
                assert_eq!(dead.outcome(delivery.1).await, Some(DeliveryOutcome::Unknown), "{seed}");
                assert!(
                    !dead.claim(delivery).await
                        && !survivors[0].claim(delivery).await
                        && !survivors[1].claim(delivery).await
                );
            }
            for delivery in &waiting {
                assert!(!dead.claim(delivery).await, "it is its own no more");
                let holder = usize::from(held[1].contains(delivery.0));
                assert!(!survivors[1 - holder].claim(delivery).await && survivors[holder].claim(delivery).await);
                survivors[holder].store.settle_delivery(*delivery.0, *delivery.1, DELIVERED).await.unwrap();
            }
            assert_eq!(dead.store.backlog().await, Ok(Backlog::default()));
        });
    }
}

#[test]
fn a_claim_that_races_with_take_overs_is_the_only_attempt_and_its_outcome_is_kept() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            // It is declared dead, and continues.
            let (slow, one, other) = (engine.join(), engine.join(), engine.join());
            let waiting = slow.queue(&slow.clients(3).await, 16).await;
            engine.begin_disorder(seed);
            let survive = async |node: &Node| {
                node.replace(slow.id).await;
                node.attempt(&waiting).await
            };
            let (mut made, by_one, by_other) = join!(slow.attempt(&waiting), survive(&one), survive(&other));
            made.extend([by_one, by_other].concat());
            // The next check finds what the previous one missed.
            made.extend(survive(&one).await);
            engine.end_disorder();
            made.sort_unstable();
            assert_eq!(made, waiting.keys().copied().collect::<Vec<_>>(), "{seed}: one attempt at each");
            for subject in waiting.values() {
                assert_eq!(
                    slow.store.load_delivery(*subject).await.unwrap().unwrap().attempt,
                    Some(DELIVERED),
                    "{seed}"
                );
            }
            for node in [&slow, &one, &other] {
                assert_eq!(node.due(None, None, 100).await, []);
                assert_eq!(node.store.abandon_attempts().await, Ok(0), "no attempt is under way");
            }
            assert_eq!(slow.store.backlog().await, Ok(Backlog::default()));
        });
    }
}

#[test]
fn nodes_that_take_each_other_for_dead_make_one_attempt_at_each_delivery() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let nodes = [engine.join(), engine.join(), engine.join()];
            let waiting = nodes[0].queue(&nodes[0].clients(3).await, 12).await;
            engine.begin_disorder(seed);
            let work = async |node: &Node| {
                let mut made =
                    node.attempt(&waiting.iter().step_by(3).map(|(id, subject)| (*id, *subject)).collect()).await;
                for dead in nodes.iter().filter(|dead| dead.id != node.id) {
                    node.replace(dead.id).await;
                    made.extend(node.attempt(&waiting).await);
                }
                made
            };
            let mut made = join_all(nodes.iter().map(&work)).await.concat();
            made.extend(work(&nodes[1]).await);
            engine.end_disorder();
            made.sort_unstable();
            assert_eq!(made, waiting.keys().copied().collect::<Vec<_>>(), "{seed}");
            for subject in waiting.values() {
                assert_eq!(nodes[0].outcome(subject).await, Some(DeliveryOutcome::Delivered), "{seed}");
            }
        });
    }
}

#[test]
fn what_is_queued_for_a_dead_node_after_a_take_over_has_looked_is_found_by_the_next_look() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let (dead, survivor) = (engine.join(), engine.join());
            let clients = dead.clients(3).await;
            let mut all = dead.queue(&clients, 4).await;
            let mut late = Vec::new();
            for client in &clients {
                late.push(opened(&dead, client).await.id);
            }
            engine.begin_disorder(seed);
            let ends = async {
                for id in &late {
                    dead.complete(completing(*id, 1)).await;
                }
            };
            join!(ends, survivor.replace(dead.id));
            engine.end_disorder();
            for id in late {
                all.insert(dead.store.load_delivery(id.into()).await.unwrap().unwrap().id, id.into());
            }
            assert_eq!(survivor.finds(dead.id).await, !dead.due(None, None, 100).await.is_empty(), "{seed}");
            survivor.replace(dead.id).await;
            assert_eq!(survivor.due(None, None, 100).await, all.into_keys().collect::<Vec<_>>(), "{seed}");
            assert!(!survivor.finds(dead.id).await);

            // Nothing was left at the check; then a delivery was queued, and one begun.
            let more = dead.queue(&clients, 2).await;
            assert!(dead.claim(more.first_key_value().unwrap()).await);
            assert!(survivor.finds(dead.id).await);
            survivor.replace(dead.id).await;
            assert!(survivor.due(None, None, 100).await.contains(more.last_key_value().unwrap().0));
            assert_eq!(survivor.outcome(more.first_key_value().unwrap().1).await, Some(DeliveryOutcome::Unknown));
            assert!(!survivor.finds(dead.id).await);
        });
    }
}

fn receiver(client: &ClientId, origin: u64) -> Receiver {
    Receiver { client: client.clone(), origin: format!("https://host{origin}.example") }
}

#[test]
fn pages_over_several_partitions_have_no_gaps_and_are_in_order() {
    run(async {
        let engine = SharedEngine::new();
        let (node, dead) = (engine.join(), engine.join());
        let clients = node.clients(24).await;
        let mut all = Vec::new();
        for round in 0..6 {
            for (number, client) in clients.iter().enumerate() {
                // The dead node has every third; the others have the same moments.
                let on = if number % 3 == 0 { &dead } else { &node };
                let open = opening_with_hook(&node, client, Some(&format!("https://host{}.example/", round % 2)));
                let id = open.pending.id;
                on.store.open_transaction(open).await.unwrap();
                on.complete(completing(id, 1)).await;
                all.push((node.store.load_delivery(id.into()).await.unwrap().unwrap().id, (number, round % 2)));
            }
            node.advance(Duration::from_millis(round % 2));
        }
        node.replace(dead.id).await;
        all.sort_unstable();
        for limit in [1, 2, 7, 50, 1_000] {
            for of in [None, Some((0, 0)), Some((4, 1))] {
                let expected: Vec<_> =
                    all.iter().filter(|(_, its)| of.is_none_or(|of| *its == of)).map(|(id, _)| *id).collect();
                let of = of.map(|(client, origin)| receiver(&clients[client], origin));
                for start in [0, 1, expected.len() / 2, expected.len()] {
                    let mut read = Vec::new();
                    loop {
                        let after = read.last().copied().or(start.checked_sub(1).map(|before| expected[before]));
                        let page = node.due(after, of.clone(), limit).await;
                        read.extend(page.iter().copied());
                        if page.len() < limit {
                            break;
                        }
                    }
                    assert_eq!(read, expected[start..], "{limit} {of:?} {start}");
                }
            }
        }
    });
}

#[test]
fn a_page_that_is_longer_than_what_is_read_at_once_is_whole() {
    run(async {
        let node = SharedEngine::new().join();
        let clients = node.clients(2).await;
        let mut all = node.queue(&clients[..1], 2_100).await;
        all.extend(node.queue(&clients[1..], 3).await);
        let all: Vec<_> = all.into_keys().collect();
        assert_eq!(node.due(None, None, 5_000).await, all);
        assert_eq!(node.due(Some(all[10]), None, 2_050).await, all[11..2_061]);
    });
}

#[test]
fn a_reader_that_goes_round_misses_nothing_though_the_clock_is_set_back_and_others_claim() {
    for seed in 0..SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let node = engine.join();
            let clients = node.clients(4).await;
            let (mut random, mut last) = (Random::from_seed(seed), BTreeMap::new());
            let (mut position, mut waiting, limit) = (None, BTreeMap::new(), 3);
            for step in 0.. {
                if step < 60 {
                    engine.clock.jump(i64::try_from(random.below(2_000)).unwrap() - 1_000);
                    let client = &clients[random.below(4) as usize];
                    for (id, subject) in node.queue(std::slice::from_ref(client), random.below(4) as usize).await {
                        assert!(
                            Some(id) > last.insert(subject.partition(), id),
                            "{seed}: within a partition they rise"
                        );
                        waiting.insert(id, subject);
                    }
                }
                // As the dispatcher does: after a page that is not full it starts over.
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
                assert!(step < 60 + 120, "{seed}: {waiting:?} are never met");
            }
            assert_eq!(node.store.backlog().await, Ok(Backlog::default()));
        });
    }
}

#[test]
fn a_delivery_waits_no_more_once_its_record_is_gone() {
    run(async {
        let engine = SharedEngine::new();
        let node = engine.join();
        let queued = node.queue(&node.clients(3).await, 12).await;
        let forget_all = async || {
            for (id, subject) in &queued {
                node.store.forget_delivery(*id, *subject).await.unwrap();
            }
        };
        forget_all().await;
        assert_eq!(node.due(None, None, 100).await.len(), 12, "their records are there");
        let gone = queued.values().take(7).map(|subject| Batch::new(vec![], vec![Op::Remove(of_subject(subject))]));
        engine.apply(gone.collect()).await.unwrap();
        forget_all().await;
        let left: Vec<_> = queued.keys().copied().skip(7).collect();
        assert_eq!(node.due(None, None, 100).await, left);
        assert_eq!(node.store.backlog().await.unwrap().deliveries, 5);
    });
}

#[test]
fn a_node_that_got_a_copy_of_a_transaction_that_waits_is_told_of_its_end() {
    for seed in 0..2 * SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let (ender, watcher) = (engine.join(), engine.join());
            let id = opened(&ender, &client_with(&ender, 5).await).await.id;
            engine.begin_disorder(seed);
            let watch = async {
                loop {
                    if let Ok(seen) = watcher.store.watch_transaction(id).await {
                        return seen;
                    }
                }
            };
            let end = async {
                if seed % 2 == 0 {
                    while ender.store.expire_transaction(id).await.is_err() {}
                } else {
                    ender.complete(completing(id, 1)).await;
                }
            };
            let (seen, ()) = join!(watch, end);
            let waits = matches!(seen, Some(TransactionRecord::Pending(_)));
            let was_told = engine.told.lock().unwrap().contains(&(watcher.id.to_string(), id.as_bytes().to_vec()));
            assert!(!waits || was_told, "{seed}: its copy waits for ever");
        });
    }
}

#[test]
fn a_completion_whose_delivery_was_claimed_before_its_answer_arrived_frees_no_credential() {
    for seed in 0..2 * SEEDS {
        run(async {
            let engine = SharedEngine::new();
            let node = engine.join();
            let client = client_with(&node, 5).await;
            let (first, second) = (opened(&node, &client).await.id, opened(&node, &client).await.id);
            let credential = Some(PresentedCredential { digest: CredentialIdentity([3; 32]), holder_bound: false });
            let command = |id: TxnId| CompleteTransaction { credential, ..completing(id, 1) };
            engine.begin_disorder(seed);
            let scan = async {
                for _ in 0..20 {
                    for delivery in node.store.due_deliveries(None, None, 10).await.unwrap() {
                        node.claim((&delivery.id, &delivery.subject)).await;
                    }
                }
            };
            let (outcome, ()) = join!(node.complete(command(first)), scan);
            assert!(matches!(outcome, CompleteOutcome::Completed { .. }), "{seed}: {outcome:?}");
            engine.end_disorder();
            assert_eq!(node.complete(command(second)).await, CompleteOutcome::CredentialReplayed, "{seed}");
        });
    }
}
