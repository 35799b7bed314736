//! The cost of a panic: the message at fault, and nothing else.

use std::sync::Arc;

use actix::Actor as _;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use sakshi_domain::ids::TxnId;
use sakshi_store::OpenOutcome;

use super::panics::{Panic, PanicIn};
use super::{Fixture, ask, run, verified, wait_until};
use crate::ledger::{CreditLedger, Ledger};
use crate::transaction::Subscribe;
use crate::{CompleteReply, View};

impl Fixture {
    fn panic_in(&self, id: TxnId) {
        self.tree.transactions.get(0).unwrap().do_send(PanicIn(id));
    }

    fn panic_in_the_shard(&self) {
        self.tree.transactions.get(0).unwrap().do_send(Panic);
    }

    fn restarts(&self, name: &str) -> u64 {
        self.tree.view().children.iter().find(|node| node.name == name).unwrap().restarts
    }
}

#[test]
fn a_panic_in_one_transaction_loses_no_state_and_disturbs_no_neighbour() {
    run(async {
        let fixture = Fixture::new().await;
        let ids: Vec<_> = join_all((0..50).map(|_| fixture.open())).await;
        let shard = fixture.tree.transactions.get(0).unwrap();
        let mut neighbours = Vec::new();
        for id in &ids[1..] {
            let watch = shard.send(ask(*id, Subscribe)).await.unwrap().unwrap();
            let Some(change) = watch else { panic!("refused") };
            neighbours.push(change);
        }
        fixture.panic_in(ids[0]);
        // This question waits in the crashed actor's mailbox and is answered after the restart.
        let View::Pending(pending) = fixture.transactions.get(ids[0]).await.unwrap() else {
            panic!("the state was lost")
        };
        assert_eq!(pending.id, ids[0]);
        assert_eq!(fixture.restarts("transactions-0"), 1);
        assert_eq!(fixture.tree.live_transactions(), 50);
        for neighbour in &mut neighbours {
            assert_eq!(neighbour.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Empty));
        }
        for (mark, id) in (1..).zip(&ids) {
            assert_eq!(fixture.complete(*id, verified(mark)).await, CompleteReply::Accepted);
        }
        assert_eq!(fixture.credits_spent().await, 50);
        fixture.end().await;
    });
}

#[test]
fn a_transaction_that_keeps_crashing_is_given_up_and_rebuilt_on_demand() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open().await;
        for crash in 1..=4 {
            fixture.panic_in(id);
            // The fourth crash in a row ends the actor.
            wait_until("it has crashed", || fixture.restarts("transactions-0") >= crash).await;
            wait_until("it is back or gone", || fixture.tree.live_transactions() == i64::from(crash < 4)).await;
            if crash < 4 {
                assert!(matches!(fixture.transactions.get(id).await.unwrap(), View::Pending(_)));
            }
        }
        assert!(
            matches!(fixture.transactions.get(id).await.unwrap(), View::Pending(_)),
            "a fresh actor answers from the store"
        );
        assert_eq!(fixture.complete(id, verified(1)).await, CompleteReply::Accepted);
        fixture.end().await;
    });
}

#[test]
fn a_shard_that_crashes_forgets_its_actors_but_no_transaction() {
    run(async {
        let fixture = Fixture::new().await;
        let ids = join_all((0..20).map(|_| fixture.open())).await;
        fixture.panic_in_the_shard();
        for id in &ids {
            assert!(matches!(fixture.transactions.get(*id).await.unwrap(), View::Pending(_)));
        }
        wait_until("the forgotten actors have ended", || fixture.tree.live_transactions() == 20).await;
        assert_eq!(fixture.restarts("transactions-0"), 1);
        fixture.end().await;
    });
}

#[test]
fn a_restart_of_the_ledger_loses_no_credit() {
    run(async {
        let fixture = Fixture::new().await;
        let before = join_all((0..10).map(|_| fixture.open())).await;
        fixture.tree.ledger.actor.do_send(Panic);
        let after = join_all((0..10).map(|_| fixture.open())).await;
        assert_eq!(fixture.restarts("credit-ledger"), 1);
        assert_eq!(fixture.credits_spent().await, 20);
        for id in before.iter().chain(&after) {
            assert!(matches!(fixture.transactions.get(*id).await.unwrap(), View::Pending(_)));
        }
        fixture.end().await;
    });
}

#[test]
fn a_restarted_ledger_begins_the_waiting_movements() {
    run(async {
        let fixture = Fixture::new().await;
        let ledger = &fixture.tree.ledger;
        // The notice of a waiting movement reaches a ledger with other accounts.
        let other_ledger = CreditLedger::new(ledger.store.clone(), Arc::default()).start();
        let asker = Ledger { actor: other_ledger, ..ledger.clone() };
        let mut open = Box::pin(asker.open(fixture.opening(fixture.transactions.new_id(&fixture.client), None)));
        assert!(open.as_mut().now_or_never().is_none());
        ledger.actor.do_send(Panic);
        assert!(matches!(open.await, Ok(OpenOutcome::Opened { .. })));
        assert_eq!(fixture.credits_spent().await, 1);
        fixture.end().await;
    });
}

#[test]
fn a_ledger_in_a_crash_loop_escalates() {
    run(async {
        let mut fixture = Fixture::new().await;
        for _ in 0..4 {
            fixture.tree.ledger.actor.do_send(Panic);
        }
        let failure = fixture.escalations.recv().await.unwrap();
        assert_eq!(failure.actor, "credit-ledger");
        let node = fixture.tree.view().children.into_iter().find(|node| node.name == "credit-ledger").unwrap();
        assert_eq!((node.state, node.restarts, node.last_exit), ("down", 4, Some("given_up")));
        fixture.tree.stop();
    });
}

#[test]
fn a_shard_in_a_crash_loop_escalates() {
    run(async {
        let mut fixture = Fixture::new().await;
        for _ in 0..4 {
            fixture.panic_in_the_shard();
        }
        assert_eq!(fixture.escalations.recv().await.unwrap().actor, "transactions-0");
        fixture.tree.stop();
    });
}

#[test]
fn a_shard_with_many_crashing_transactions_starts_over_then_escalates() {
    run(async {
        let mut fixture = Fixture::new().await;
        let mut actors_given_up = 0;
        let escalated = loop {
            let id = fixture.open().await;
            for _ in 0..4 {
                fixture.panic_in(id);
            }
            wait_until("it was given up", || fixture.tree.live_transactions() == 0).await;
            actors_given_up += 1;
            if let Ok(failure) = fixture.escalations.try_recv() {
                break failure;
            }
            assert!(actors_given_up < 100, "nothing escalated");
        };
        assert_eq!(escalated.actor, "transactions-0");
        assert!(actors_given_up > 5, "a single shard does not end the process at once: {actors_given_up}");
        fixture.tree.stop();
    });
}
