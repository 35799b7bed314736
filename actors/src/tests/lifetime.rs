//! Lifetime of a transaction's actor, and the end of its window.

use sakshi_kit::waiting::assert_within;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor as _, Addr, Handler, Message, MessageResult};
use futures_util::future::join_all;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::transaction::{Answer, Outcome, Pending};
use sakshi_supervision::{Deadline, Shard};

use super::counter::CounterOf;
use super::{Fixture, WINDOW, ask, completion, declined, run, verified, wait_until, yield_often};
use crate::ask::{Ask, StartFrom};
use crate::router::Unanswered;
use crate::transaction::{GetTransaction, TransactionActor, TransactionContext};
use crate::{CompleteReply, View};
use sakshi_store::{CompleteOutcome, CompleteTransaction, ExpireOutcome, seal_outcome};

#[test]
fn no_actor_outlives_its_terminal_transition() {
    run(async {
        let fixture = Fixture::new().await;
        let (first, second) = (fixture.open().await, fixture.open().await);
        assert_eq!(fixture.tree.live_transactions(), 2);
        assert_eq!(fixture.complete(first, verified(1)).await, CompleteReply::Accepted);
        assert_eq!(fixture.complete(second, declined()).await, CompleteReply::Accepted);
        wait_until("both actors have ended", || fixture.tree.live_transactions() == 0).await;
        let View::Completed(record) = fixture.transactions.get(first).await.unwrap() else { panic!("not completed") };
        assert!(matches!(fixture.transactions.reveal(*record).unwrap().outcome, Outcome::Verified(_)));
        assert_eq!(fixture.tree.live_transactions(), 0, "a question after the end starts no actor");
        fixture.end().await;
    });
}

#[test]
fn an_actor_ends_with_its_window_after_fifteen_minutes() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open().await;
        tokio::time::pause();
        let began = Instant::now();
        fixture.clock.advance(WINDOW - Duration::from_millis(1));
        tokio::time::advance(WINDOW - Duration::from_secs(1)).await;
        yield_often().await;
        assert_eq!(fixture.tree.live_transactions(), 1, "the actor is live a millisecond before the end");
        fixture.clock.advance(Duration::from_millis(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::time::resume();
        wait_until("the actor has ended", || fixture.tree.live_transactions() == 0).await;
        assert_within(began.elapsed(), Duration::from_secs(5), "the end without the window");
        assert!(matches!(fixture.transactions.get(id).await.unwrap(), View::Expired(_)));
        assert_eq!(fixture.complete(id, verified(1)).await, CompleteReply::Expired);
        assert_eq!(fixture.credits_spent().await, 1, "an abandoned transaction is not refunded");
        fixture.end().await;
    });
}

#[test]
fn a_shard_wakes_an_actor_that_starts_after_the_last_has_ended() {
    run(async {
        let fixture = Fixture::new().await;
        for _ in 0..2 {
            fixture.open().await;
            fixture.clock.advance(WINDOW);
            wait_until("its actor has ended", || fixture.tree.live_transactions() == 0).await;
        }
        fixture.end().await;
    });
}

#[test]
fn a_transaction_expires_on_time_without_a_timer() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open().await;
        fixture.clock.advance(WINDOW);
        assert!(matches!(fixture.transactions.get(id).await.unwrap(), View::Expired(_)));
        wait_until("the actor has ended", || fixture.tree.live_transactions() == 0).await;
        fixture.end().await;
    });
}

#[test]
fn an_expiry_that_a_poll_notices_first_is_counted_once() {
    let expired = CounterOf::new("sakshi_transactions_expired_total");
    metrics::with_local_recorder(&expired, || {
        run(async {
            let fixture = Fixture::new().await;
            let id = fixture.open().await;
            fixture.clock.advance(WINDOW);
            for _ in 0..2 {
                assert!(matches!(fixture.transactions.get(id).await.unwrap(), View::Expired(_)));
            }
            wait_until("the actor has ended", || fixture.tree.live_transactions() == 0).await;
            assert_eq!(expired.count(), 1);
            fixture.end().await;
        });
    });
}

/// Starts an actor of a transaction as on a shared store, with or without having opened it.
#[derive(Message)]
#[rtype(result = "Addr<TransactionActor>")]
struct StartOnSharedStore {
    pending: Arc<Pending>,
    is_opener: bool,
}

impl Handler<StartOnSharedStore> for Shard<TransactionActor> {
    type Result = MessageResult<StartOnSharedStore>;

    fn handle(&mut self, start: StartOnSharedStore, _: &mut Self::Context) -> Self::Result {
        let TransactionContext { store, vault, clock, dispatcher, events, tally, .. } = &**self.shared();
        let context = Arc::new(TransactionContext {
            store: store.clone(),
            vault: Arc::clone(vault),
            clock: Arc::clone(clock),
            dispatcher: dispatcher.clone(),
            events: Arc::clone(events),
            tally: Arc::clone(tally),
            shared_store: true,
        });
        let StartOnSharedStore { pending, is_opener } = start;
        let actor = if is_opener {
            TransactionActor::opened(pending, context)
        } else {
            TransactionActor::temporary(pending, context)
        };
        MessageResult(actor.start())
    }
}

#[test]
fn on_a_shared_store_the_node_that_opened_a_transaction_counts_its_expiry() {
    let expired = CounterOf::new("sakshi_transactions_expired_total");
    metrics::with_local_recorder(&expired, || {
        run(async {
            let fixture = Fixture::new().await;
            let pending = fixture.open_elsewhere().await;
            fixture.clock.advance(WINDOW);
            for (is_opener, count) in [(false, 0), (true, 1)] {
                let start = StartOnSharedStore { pending: Arc::clone(&pending), is_opener };
                let actor = fixture.tree.transactions.get(0).unwrap().send(start).await.unwrap();
                actor.do_send(Deadline);
                wait_until("the actor has ended", || !actor.connected()).await;
                assert_eq!(expired.count(), count);
            }
            fixture.end().await;
        });
    });
}

#[test]
fn an_answer_wakes_a_long_poll_at_once() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open().await;
        let transactions = fixture.transactions.clone();
        let poll =
            actix_rt::spawn(async move { transactions.wait_for_end(id, Duration::from_secs(30)).await.unwrap() });
        yield_often().await;
        wait_until("the poll waits", || fixture.tree.view().children.iter().all(|node| node.mailbox == 0)).await;
        assert!(!poll.is_finished());
        let began = Instant::now();
        fixture.complete(id, verified(1)).await;
        assert!(matches!(poll.await.unwrap(), View::Completed(_)));
        assert_within(began.elapsed(), Duration::from_secs(2), "the answer to a poll");
        fixture.end().await;
    });
}

#[test]
fn ending_a_window_wakes_a_long_poll_and_ends_the_actor() {
    run(async {
        let fixture = Fixture::new().await;
        let (id, completed) = (fixture.open().await, fixture.open().await);
        fixture.complete(completed, verified(1)).await;
        assert!(matches!(fixture.transactions.expire(completed).await.unwrap(), View::Completed(_)));
        let transactions = fixture.transactions.clone();
        let poll =
            actix_rt::spawn(async move { transactions.wait_for_end(id, Duration::from_secs(30)).await.unwrap() });
        yield_often().await;
        wait_until("the poll waits", || fixture.tree.view().children.iter().all(|node| node.mailbox == 0)).await;
        assert!(!poll.is_finished());
        let began = Instant::now();
        let View::Expired(ended) = fixture.transactions.expire(id).await.unwrap() else { panic!("not expired") };
        let View::Expired(polled) = poll.await.unwrap() else { panic!("not expired for the poll") };
        assert_within(began.elapsed(), Duration::from_secs(2), "the answer to a poll");
        assert_eq!((polled.expires_at, ended.expires_at), (fixture.clock.now(), fixture.clock.now()));
        wait_until("the actor has ended", || fixture.tree.live_transactions() == 0).await;
        assert_eq!(fixture.complete(id, verified(2)).await, CompleteReply::Expired);
        assert!(matches!(fixture.transactions.expire(id).await.unwrap(), View::Expired(_)), "without an actor too");
        fixture.end().await;
    });
}

#[test]
fn a_repeated_answer_is_accepted_and_a_different_one_conflicts() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open().await;
        let replies =
            futures_util::future::join(fixture.complete(id, verified(1)), fixture.complete(id, verified(2))).await;
        assert_eq!(replies, (CompleteReply::Accepted, CompleteReply::AlreadyCompleted));
        wait_until("the actor has ended", || fixture.tree.live_transactions() == 0).await;
        assert_eq!(fixture.complete(id, verified(1)).await, CompleteReply::Accepted);
        assert_eq!(fixture.complete(id, verified(2)).await, CompleteReply::AlreadyCompleted);
        fixture.end().await;
    });
}

#[test]
fn many_answers_to_a_transaction_of_another_node_all_get_its_outcome() {
    run(async {
        let fixture = Fixture::new().await;
        let pending = fixture.open_elsewhere().await;
        let answers = join_all((0..256).map(|_| fixture.complete_known(&pending, verified(1)))).await;
        assert_eq!(answers, vec![CompleteReply::Accepted; 256]);
        assert_eq!(fixture.complete_known(&pending, verified(2)).await, CompleteReply::AlreadyCompleted);
        wait_until("the actors have ended", || fixture.tree.live_transactions() == 0).await;
        fixture.clock.advance(WINDOW);
        let late = fixture.open_elsewhere().await;
        fixture.clock.advance(WINDOW);
        assert_eq!(fixture.complete_known(&late, verified(3)).await, CompleteReply::Expired);
        fixture.end().await;
    });
}

#[test]
fn a_copy_of_a_transaction_of_another_node_ends_after_its_answer() {
    run(async {
        let fixture = Fixture::new().await;
        let (first, second) = (fixture.open_elsewhere().await, fixture.open_elsewhere().await);
        let mut credential = verified(1);
        if let Answer::Credential { holder_bound, .. } = &mut credential {
            *holder_bound = false;
        }
        assert_eq!(fixture.complete_known(&first, credential.clone()).await, CompleteReply::Accepted);
        assert_eq!(fixture.complete_known(&second, credential).await, CompleteReply::CredentialReplayed);
        wait_until("the actors have ended", || fixture.tree.live_transactions() == 0).await;
        assert!(matches!(fixture.transactions.get(second.id).await, Ok(View::Pending(_))));
        assert_eq!(fixture.complete(second.id, verified(2)).await, CompleteReply::Accepted);
        fixture.end().await;
    });
}

/// Otherwise all actors of a node would ask an absent store four times a second, from the end of their windows on.
#[test]
fn a_copy_whose_window_ends_while_the_store_is_away_ends_too() {
    run(async {
        let fixture = Fixture::new().await;
        let pending = fixture.open_elsewhere().await;
        let view = fixture.transactions.wait_for_end(pending.id, Duration::ZERO).await;
        assert!(matches!(view, Ok(View::Pending(_))) && fixture.tree.live_transactions() == 1, "{view:?}");
        fixture.store.close();
        fixture.clock.advance(WINDOW);
        wait_until("the actor has ended", || fixture.tree.live_transactions() == 0).await;
        fixture.tree.stop();
    });
}

/// An actor may learn late that its transaction has ended, and the transaction may have been erased by then.
#[test]
fn a_question_behind_the_end_of_a_transaction_is_answered_from_the_store() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open().await;
        let shard = fixture.tree.transactions.get(0).unwrap();
        let end_reply = shard.send(ask(id, completion(verified(1))));
        let next_reply = shard.send(ask(id, GetTransaction { fresh: true }));
        let (end_reply, next_reply) = tokio::join!(end_reply, next_reply);
        assert!(matches!(end_reply, Ok(Ok(CompleteReply::Accepted))));
        assert!(matches!(next_reply, Ok(Err(Unanswered::Gone))), "{next_reply:?}");
        fixture.store.erase(ErasureSubject::Transaction(id)).await.unwrap();
        assert!(matches!(fixture.transactions.get(id).await, Ok(View::Unknown)));
        fixture.end().await;
    });
}

#[test]
fn only_a_copy_that_is_asked_for_a_fresh_answer_reads_the_store_again() {
    run(async {
        let fixture = Fixture::new().await;
        let (witnessed, copied) = (fixture.open().await, fixture.open_elsewhere().await.id);
        fixture.transactions.wait_for_end(copied, Duration::ZERO).await.unwrap();
        for id in [witnessed, copied] {
            assert!(matches!(fixture.store.expire_transaction(id).await, Ok(ExpireOutcome::Expired(_))));
        }
        let shard = fixture.tree.transactions.get(0).unwrap();
        for (id, fresh, is_pending) in
            [(copied, false, true), (witnessed, false, true), (witnessed, true, true), (copied, true, false)]
        {
            let view = shard.send(ask(id, GetTransaction { fresh })).await;
            let view = view.unwrap().unwrap_or_else(|unanswered| panic!("{unanswered:?}"));
            assert_eq!(matches!(view, View::Pending(_)), is_pending, "{view:?}");
        }
        fixture.end().await;
    });
}

/// The shard learns late that an actor has ended, and would otherwise ask that actor for ever.
#[test]
fn a_question_that_an_ended_actor_did_not_answer_is_answered_from_the_record() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open().await;
        assert!(matches!(fixture.store.expire_transaction(id).await, Ok(ExpireOutcome::Expired(_))));
        let shard = fixture.tree.transactions.get(0).unwrap();
        let first = ask(id, GetTransaction { fresh: false });
        assert!(matches!(shard.send(first).await, Ok(Ok(View::Pending(_)))), "the actor does not know of the end");
        let after_end = Ask { actor_ended: true, ..ask(id, GetTransaction { fresh: false }) };
        assert!(matches!(shard.send(after_end).await, Ok(Ok(View::Expired(_)))));
        fixture.end().await;
    });
}

/// Each answer of a caller who knows the transaction as pending starts an actor. The actor ends at once, together with
/// the questions in its mailbox.
#[test]
fn a_question_between_late_answers_is_answered() {
    run(async {
        let fixture = Fixture::new().await;
        let pending = fixture.open_elsewhere().await;
        let answers = async {
            for mark in 1..=10 {
                let reply = fixture.complete_known(&pending, verified(mark)).await;
                assert_eq!(reply, if mark == 1 { CompleteReply::Accepted } else { CompleteReply::AlreadyCompleted });
            }
        };
        let ((), view, reply) =
            tokio::join!(answers, fixture.transactions.get(pending.id), fixture.complete(pending.id, verified(11)));
        assert!(matches!(view, Ok(View::Completed(_))), "{view:?}");
        assert_eq!(reply, CompleteReply::AlreadyCompleted);
        fixture.end().await;
    });
}

/// The read for a question may be slow: meanwhile an actor may start, end the transaction and stop.
#[test]
fn a_record_read_before_the_end_is_not_shown_after_it() {
    run(async {
        let fixture = Fixture::new().await;
        let pending = fixture.open_elsewhere().await;
        let record = fixture.store.load_transaction(pending.id).await.unwrap().unwrap();
        assert_eq!(fixture.complete_known(&pending, verified(1)).await, CompleteReply::Accepted);
        wait_until("the actor has ended", || fixture.tree.live_transactions() == 0).await;
        fixture.tree.transactions.get(0).unwrap().send(StartFrom { id: pending.id, record }).await.unwrap();
        let view = fixture.transactions.get(pending.id).await;
        assert!(matches!(view, Ok(View::Completed(_))), "{view:?}");
        wait_until("no copy is left", || fixture.tree.live_transactions() == 0).await;
        fixture.end().await;
    });
}

/// An actor may end while the store commits its step, and its successor may have read the record before the commit.
#[test]
fn a_new_actor_shows_the_end_that_the_previous_one_was_committing() {
    run(async {
        let fixture = Fixture::new().await;
        let [completed, expired] = [fixture.open_elsewhere().await, fixture.open_elsewhere().await];
        for pending in [&completed, &expired] {
            assert!(matches!(
                fixture.transactions.wait_for_end(pending.id, Duration::ZERO).await,
                Ok(View::Pending(_))
            ));
        }
        assert_eq!(fixture.tree.live_transactions(), 2, "each has an actor");
        let step = CompleteTransaction {
            code: None,
            evidence: None,
            guest: sakshi_store::GuestDetails::default(),
            id: completed.id,
            known: None,
            passed: true,
            outcome: seal_outcome(&fixture.transactions.vault, completed.id, &verified(1).outcome()),
            answer: verified(1).digest(),
            credential: None,
            replay_window: WINDOW,
            result_ttl: WINDOW,
        };
        assert!(matches!(fixture.store.complete_transaction(step).await, Ok(CompleteOutcome::Completed { .. })));
        assert!(matches!(fixture.store.expire_transaction(expired.id).await, Ok(ExpireOutcome::Expired(_))));
        fixture.clock.advance(WINDOW - Duration::from_secs(1));
        assert!(matches!(fixture.transactions.get(completed.id).await, Ok(View::Completed(_))));
        assert!(matches!(fixture.transactions.get(expired.id).await, Ok(View::Expired(_))));
        wait_until("no copy is left", || fixture.tree.live_transactions() == 0).await;
        fixture.end().await;
    });
}
