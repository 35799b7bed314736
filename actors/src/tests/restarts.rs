//! What a panic costs: the message at fault, and nothing else.

use futures_util::future::join_all;

use super::{Universe, run, until, verified};
use crate::ask::Ask;
use crate::transaction::Detonate;
use crate::transaction::Subscribe;
use crate::{CompleteReply, View, ledger};

impl Universe {
    fn detonate(&self, what: Detonate) {
        self.tree.transactions.get(0).unwrap().do_send(what);
    }

    fn restarts(&self, name: &str) -> u64 {
        self.tree.view().children.iter().find(|node| node.name == name).unwrap().restarts
    }
}

#[test]
fn a_panic_in_one_transaction_loses_no_state_and_disturbs_no_neighbour() {
    run(async {
        let universe = Universe::new().await;
        let ids: Vec<_> = join_all((0..50).map(|_| universe.open())).await;
        let shard = universe.tree.transactions.get(0).unwrap();
        let mut neighbours = Vec::new();
        for id in &ids[1..] {
            let watch = shard.send(Ask { id: *id, question: Subscribe }).await.unwrap().unwrap().unwrap();
            let Some(changed) = watch else { panic!("refused") };
            neighbours.push(changed);
        }
        universe.detonate(Detonate(Some(ids[0])));
        // This look waits in the crashed actor's mailbox and is answered after the restart.
        let View::Pending(pending) = universe.door.look(ids[0]).await.unwrap() else { panic!("the state was lost") };
        assert_eq!(pending.id, ids[0]);
        assert_eq!(universe.restarts("transactions-0"), 1);
        assert_eq!(universe.tree.live_transactions(), 50);
        for neighbour in &mut neighbours {
            assert_eq!(neighbour.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Empty));
        }
        for (mark, id) in (1..).zip(&ids) {
            assert_eq!(universe.complete(*id, verified(mark)).await, CompleteReply::Accepted);
        }
        assert_eq!(universe.spent().await, 50);
        universe.end().await;
    });
}

#[test]
fn a_transaction_that_keeps_crashing_is_let_go_and_rebuilt_for_whoever_asks() {
    run(async {
        let universe = Universe::new().await;
        let id = universe.open().await;
        for crash in 1..=4 {
            universe.detonate(Detonate(Some(id)));
            until("it has crashed", || universe.restarts("transactions-0") >= crash).await;
            until("it is back or gone", || universe.tree.live_transactions() == i64::from(crash < 4)).await;
            if crash < 4 {
                assert!(matches!(universe.door.look(id).await.unwrap(), View::Pending(_)));
            }
        }
        assert!(matches!(universe.door.look(id).await.unwrap(), View::Pending(_)), "a fresh actor answers from the store");
        assert_eq!(universe.complete(id, verified(1)).await, CompleteReply::Accepted);
        universe.end().await;
    });
}

#[test]
fn a_shard_that_crashes_forgets_its_actors_and_no_transaction() {
    run(async {
        let universe = Universe::new().await;
        let ids = join_all((0..20).map(|_| universe.open())).await;
        universe.detonate(Detonate(None));
        for id in &ids {
            assert!(matches!(universe.door.look(*id).await.unwrap(), View::Pending(_)));
        }
        until("the forgotten actors have ended", || universe.tree.live_transactions() == 20).await;
        assert_eq!(universe.restarts("transactions-0"), 1);
        universe.end().await;
    });
}

#[test]
fn the_ledger_restarts_and_every_credit_is_where_it_should_be() {
    run(async {
        let universe = Universe::new().await;
        let before = join_all((0..10).map(|_| universe.open())).await;
        universe.tree.ledger.do_send(ledger::Detonate);
        let after = join_all((0..10).map(|_| universe.open())).await;
        assert_eq!(universe.restarts("credit-ledger"), 1);
        assert_eq!(universe.spent().await, 20);
        for id in before.iter().chain(&after) {
            assert!(matches!(universe.door.look(*id).await.unwrap(), View::Pending(_)));
        }
        universe.end().await;
    });
}

#[test]
fn a_ledger_in_a_crash_loop_escalates() {
    run(async {
        let mut universe = Universe::new().await;
        for _ in 0..4 {
            universe.tree.ledger.do_send(ledger::Detonate);
        }
        let failure = universe.escalations.recv().await.unwrap();
        assert_eq!(failure.actor, "credit-ledger");
        let node = universe.tree.view().children.into_iter().find(|node| node.name == "credit-ledger").unwrap();
        assert_eq!((node.state, node.restarts, node.last_exit), ("down", 4, Some("given_up")));
        universe.tree.stop();
    });
}

#[test]
fn a_shard_in_a_crash_loop_escalates() {
    run(async {
        let mut universe = Universe::new().await;
        for _ in 0..4 {
            universe.detonate(Detonate(None));
        }
        assert_eq!(universe.escalations.recv().await.unwrap().actor, "transactions-0");
        universe.tree.stop();
    });
}

#[test]
fn when_many_transactions_keep_crashing_the_shard_starts_over_and_at_last_escalates() {
    run(async {
        let mut universe = Universe::new().await;
        let mut given_up = 0;
        let escalated = loop {
            let id = universe.open().await;
            for _ in 0..4 {
                universe.detonate(Detonate(Some(id)));
            }
            until("it was let go", || universe.tree.live_transactions() == 0).await;
            given_up += 1;
            if let Ok(failure) = universe.escalations.try_recv() {
                break failure;
            }
            assert!(given_up < 100, "nothing escalated");
        };
        assert_eq!(escalated.actor, "transactions-0");
        assert!(given_up > 5, "one shard alone does not end the process at once: {given_up}");
        universe.tree.stop();
    });
}
