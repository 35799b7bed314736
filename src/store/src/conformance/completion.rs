//! Ending transactions: once, in time, and with a credential that was not used elsewhere.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity};

use super::World;
use super::fixture::{REPLAY_WINDOW, WINDOW, client_with, completed, completing, opened, opening_with_hook, sealed};
use crate::{CompleteOutcome, CompleteTransaction, PresentedCredential};
use crate::{CompletedRecord, TransactionRecord};

pub(crate) async fn completing_keeps_the_result_and_queues_one_webhook(world: &impl World) {
    let client = client_with(world, 1).await;
    let pending = opened(world, &client).await;
    world.advance(Duration::from_secs(60));
    let outcome = world.store().complete_transaction(completing(pending.id, 5)).await.unwrap();
    let expected = CompletedRecord {
        opened: pending.clone(),
        verified_at: world.now(),
        passed: true,
        refused: None,
        answer: AnswerDigest([5; 32]),
        outcome: sealed("outcome 5"),
    };
    let CompleteOutcome::Completed { record, queued: Some(delivery), repeated: false } = outcome else { panic!("{outcome:?}") };
    assert_eq!(record, expected);
    let (record, app) = world.store().load_transaction_with_app(pending.id).await.unwrap().unwrap();
    assert_eq!((record, app), (TransactionRecord::Completed(expected.clone()), world.store().load_app(pending.app.clone()).await.unwrap()));
    assert_eq!(world.store().load_transaction(pending.id).await, Ok(Some(TransactionRecord::Completed(expected))));
    assert_eq!(world.store().load_transaction_with_app(TxnId::generate(client.partition(), 0)).await, Ok(None));
    let due = world.store().due_deliveries(None, None, 10).await.unwrap();
    assert_eq!(due.iter().map(|queued| queued.id).collect::<Vec<_>>(), [delivery.id]);
    assert_eq!(due, std::slice::from_ref(&delivery));
    assert_eq!((delivery.subject, Some(&delivery.url)), (pending.id.into(), pending.terms.webhook_url.as_ref()));
    assert_eq!(delivery.stored_bytes, sealed("outcome 5").size());
    let kept = world.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
    assert_eq!((kept.id, kept.queued_at, kept.claimed_at, kept.attempt), (delivery.id, world.now(), None, None));
    assert_eq!(kept.origin, "https://hooks.example");
}

pub(crate) async fn without_a_webhook_url_nothing_is_queued(world: &impl World) {
    let client = client_with(world, 1).await;
    let open = opening_with_hook(world, &client, None);
    let id = open.pending.id;
    world.store().open_transaction(open).await.unwrap();
    let outcome = world.store().complete_transaction(completing(id, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { queued: None, repeated: false, .. }));
    assert_eq!(world.store().due_deliveries(None, None, 10).await, Ok(vec![]));
    assert_eq!(world.store().load_delivery(id.into()).await, Ok(None));
}

pub(crate) async fn the_same_answer_again_is_repeated_and_another_one_is_refused(world: &impl World) {
    let client = client_with(world, 1).await;
    let (pending, _) = completed(world, &client).await;
    let first = world.store().load_transaction(pending.id).await.unwrap();
    world.advance(Duration::from_secs(5));
    match world.store().complete_transaction(completing(pending.id, 1)).await.unwrap() {
        CompleteOutcome::Completed { record, queued: None, repeated: true } => assert_eq!(Some(record.into()), first),
        other => panic!("{other:?}"),
    }
    match world.store().complete_transaction(completing(pending.id, 2)).await.unwrap() {
        CompleteOutcome::AlreadyCompleted(record) => assert_eq!(Some(record.into()), first),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.store().due_deliveries(None, None, 10).await.unwrap().len(), 1);
}

pub(crate) async fn of_two_racing_answers_one_wins(world: &impl World) {
    let client = client_with(world, 20).await;
    for _ in 0..20 {
        let id = opened(world, &client).await.id;
        let race = join_all((1..=8).map(|answer| world.store().complete_transaction(completing(id, answer)))).await;
        let won: Vec<_> = race.iter().filter(|outcome| matches!(outcome, Ok(CompleteOutcome::Completed { repeated: false, .. }))).collect();
        let lost = race.iter().filter(|outcome| matches!(outcome, Ok(CompleteOutcome::AlreadyCompleted(_)))).count();
        assert_eq!((won.len(), lost), (1, 7));
    }
    assert_eq!(world.store().due_deliveries(None, None, 100).await.unwrap().len(), 20);
}

pub(crate) async fn a_transaction_expires_by_the_clock_of_the_store(world: &impl World) {
    let client = client_with(world, 2).await;
    let (in_time, late) = (opened(world, &client).await.id, opened(world, &client).await.id);
    world.advance(WINDOW - Duration::from_millis(1));
    let outcome = world.store().complete_transaction(completing(in_time, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { .. }));
    world.advance(Duration::from_millis(1));
    assert_eq!(world.store().complete_transaction(completing(late, 2)).await, Ok(CompleteOutcome::Expired));
    assert!(matches!(world.store().load_transaction(late).await, Ok(Some(TransactionRecord::Pending(_)))));
    let again = world.store().complete_transaction(completing(in_time, 1)).await.unwrap();
    assert!(matches!(again, CompleteOutcome::Completed { repeated: true, .. }), "a repetition is not late");
}

fn with_credential(id: TxnId, answer: u8, credential: u8) -> CompleteTransaction {
    CompleteTransaction {
        credential: Some(PresentedCredential { digest: CredentialIdentity([credential; 32]), holder_bound: false }),
        ..completing(id, answer)
    }
}

pub(crate) async fn a_credential_is_refused_under_another_transaction_while_its_window_lasts(world: &impl World) {
    let client = client_with(world, 4).await;
    let (first, second) = (opened(world, &client).await.id, opened(world, &client).await.id);
    world.store().complete_transaction(with_credential(first, 1, 9)).await.unwrap();
    let replay = world.store().complete_transaction(with_credential(second, 1, 9)).await;
    assert_eq!(replay, Ok(CompleteOutcome::CredentialReplayed));
    assert!(matches!(world.store().load_transaction(second).await, Ok(Some(TransactionRecord::Pending(_)))));
    let again = world.store().complete_transaction(with_credential(first, 1, 9)).await.unwrap();
    assert!(matches!(again, CompleteOutcome::Completed { repeated: true, .. }));
    let other = world.store().complete_transaction(with_credential(second, 2, 8)).await.unwrap();
    assert!(matches!(other, CompleteOutcome::Completed { repeated: false, .. }));
    world.advance(REPLAY_WINDOW - Duration::from_millis(1));
    let third = opened(world, &client).await.id;
    assert_eq!(world.store().complete_transaction(with_credential(third, 3, 9)).await, Ok(CompleteOutcome::CredentialReplayed));
    world.advance(Duration::from_millis(1));
    let later = world.store().complete_transaction(with_credential(third, 3, 9)).await.unwrap();
    assert!(matches!(later, CompleteOutcome::Completed { repeated: false, .. }));
}

pub(crate) async fn a_credential_that_its_holder_bound_to_a_transaction_is_no_replay(world: &impl World) {
    let client = client_with(world, 3).await;
    let (first, second, third) = (opened(world, &client).await.id, opened(world, &client).await.id, opened(world, &client).await.id);
    let bound = |id, answer| {
        let credential = PresentedCredential { digest: CredentialIdentity([9; 32]), holder_bound: true };
        CompleteTransaction { credential: Some(credential), ..completing(id, answer) }
    };
    for (id, answer) in [(first, 1), (second, 2)] {
        let outcome = world.store().complete_transaction(bound(id, answer)).await.unwrap();
        assert!(matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }));
    }
    let stripped = world.store().complete_transaction(with_credential(third, 3, 9)).await;
    assert_eq!(stripped, Ok(CompleteOutcome::CredentialReplayed), "without its binding it is known");
}

pub(crate) async fn one_credential_racing_under_two_transactions_completes_one(world: &impl World) {
    let client = client_with(world, 2).await;
    let (first, second) = (opened(world, &client).await.id, opened(world, &client).await.id);
    let race = [with_credential(first, 1, 9), with_credential(second, 1, 9)];
    let race = join_all(race.into_iter().map(|complete| world.store().complete_transaction(complete))).await;
    let won = race.iter().filter(|outcome| matches!(outcome, Ok(CompleteOutcome::Completed { .. }))).count();
    let refused = race.iter().filter(|outcome| **outcome == Ok(CompleteOutcome::CredentialReplayed)).count();
    assert_eq!((won, refused), (1, 1));
}

pub(crate) async fn an_unknown_transaction_cannot_be_completed(world: &impl World) {
    let client = client_with(world, 0).await;
    let id = TxnId::generate(client.partition(), 0);
    assert_eq!(world.store().complete_transaction(completing(id, 1)).await, Ok(CompleteOutcome::NotFound));
}
