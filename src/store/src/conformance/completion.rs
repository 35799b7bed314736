//! Completing transactions: once, in time, and with a credential that is not a replay.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity, Pending};

use super::TestStore;
use super::fixture::{
    REPLAY_WINDOW, RESULT_TTL, WINDOW, build_completion, build_event, build_opening_with_hook, client_with,
    open_and_complete, open_guest_scan, open_pending, receiver, sealed, store_event,
};
use crate::{CompleteOutcome, CompleteTransaction, ExpireOutcome, PresentedCredential};
use crate::{CompletedRecord, TransactionRecord};

pub(crate) async fn completing_stores_the_result_and_queues_one_webhook(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let pending = open_pending(test, &client).await;
    test.advance(Duration::from_secs(60));
    let outcome = test.store().complete_transaction(build_completion(pending.id, 5)).await.unwrap();
    let expected = CompletedRecord {
        opened: pending.clone(),
        verified_at: test.now(),
        passed: true,
        refused: None,
        registration: None,
        answer: AnswerDigest([5; 32]),
        outcome: sealed("outcome 5"),
        address: None,
        is_polled: false,
    };
    let CompleteOutcome::Completed { record, queued: Some(delivery), repeated: false } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(record, expected);
    let (record, app) = test.store().load_transaction_with_app(pending.id, pending.app.clone()).await.unwrap().unwrap();
    assert_eq!(
        (record, app),
        (TransactionRecord::Completed(expected.clone()), test.store().load_app(pending.app.clone()).await.unwrap())
    );
    assert_eq!(test.store().load_transaction(pending.id).await, Ok(Some(TransactionRecord::Completed(expected))));
    assert_eq!(
        test.store().load_transaction_with_app(TxnId::generate(client.partition(), 0), pending.app).await,
        Ok(None)
    );
    let due = test.store().first_due_deliveries(10).await.unwrap();
    assert_eq!(due.iter().map(|queued| queued.id).collect::<Vec<_>>(), [delivery.id]);
    assert_eq!(due, std::slice::from_ref(&delivery));
    assert_eq!(
        (delivery.subject, Some(receiver(test.store(), &delivery).await)),
        (pending.id.into(), pending.terms.webhook_url)
    );
    assert_eq!(delivery.stored_bytes, sealed("outcome 5").size());
    let stored = test.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
    assert_eq!((stored.id, stored.queued_at, stored.claimed_at, stored.attempt), (delivery.id, test.now(), None, None));
    assert_eq!(stored.origin, "https://hooks.example");
}

pub(crate) async fn a_transaction_without_a_webhook_url_queues_no_delivery(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let open = build_opening_with_hook(test, &client, None);
    let id = open.pending.id;
    test.store().open_transaction(open).await.unwrap();
    let outcome = test.store().complete_transaction(build_completion(id, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { queued: None, repeated: false, .. }));
    assert_eq!(test.store().first_due_deliveries(10).await, Ok(vec![]));
    assert_eq!(test.store().load_delivery(id.into()).await, Ok(None));
}

pub(crate) async fn an_equal_answer_is_a_repetition_and_a_different_one_is_refused(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, _) = open_and_complete(test, &client).await;
    let first = test.store().load_transaction(pending.id).await.unwrap();
    test.advance(Duration::from_secs(5));
    match test.store().complete_transaction(build_completion(pending.id, 1)).await.unwrap() {
        CompleteOutcome::Completed { record, queued: None, repeated: true } => assert_eq!(Some(record.into()), first),
        other => panic!("{other:?}"),
    }
    match test.store().complete_transaction(build_completion(pending.id, 2)).await.unwrap() {
        CompleteOutcome::AlreadyCompleted(record) => assert_eq!(Some(record.into()), first),
        other => panic!("{other:?}"),
    }
    assert_eq!(test.store().first_due_deliveries(10).await.unwrap().len(), 1);
}

pub(crate) async fn one_of_several_racing_answers_wins(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    for _ in 0..20 {
        let id = open_pending(test, &client).await.id;
        let race =
            join_all((1..=8).map(|answer| test.store().complete_transaction(build_completion(id, answer)))).await;
        let winners: Vec<_> = race
            .iter()
            .filter(|outcome| matches!(outcome, Ok(CompleteOutcome::Completed { repeated: false, .. })))
            .collect();
        let losers = race.iter().filter(|outcome| matches!(outcome, Ok(CompleteOutcome::AlreadyCompleted(_)))).count();
        assert_eq!((winners.len(), losers), (1, 7));
    }
    assert_eq!(test.store().first_due_deliveries(100).await.unwrap().len(), 20);
}

pub(crate) async fn a_transaction_expires_by_the_clock_of_the_store(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let (in_time, late) = (open_pending(test, &client).await.id, open_pending(test, &client).await.id);
    test.advance(WINDOW - Duration::from_millis(1));
    let outcome = test.store().complete_transaction(build_completion(in_time, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { .. }));
    test.advance(Duration::from_millis(1));
    assert_eq!(test.store().complete_transaction(build_completion(late, 2)).await, Ok(CompleteOutcome::Expired));
    assert!(matches!(test.store().load_transaction(late).await, Ok(Some(TransactionRecord::Expired(_)))));
    let repetition = test.store().complete_transaction(build_completion(in_time, 1)).await.unwrap();
    assert!(
        matches!(repetition, CompleteOutcome::Completed { repeated: true, .. }),
        "a repetition is accepted after the window"
    );
}

pub(crate) async fn a_window_that_was_ended_early_stays_ended(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let pending = open_pending(test, &client).await;
    test.advance(Duration::from_secs(60));
    let ended = Pending { expires_at: test.now(), ..pending.clone() };
    assert_eq!(test.store().expire_transaction(pending.id).await, Ok(ExpireOutcome::Expired(ended.clone())));
    assert_eq!(test.store().complete_transaction(build_completion(pending.id, 1)).await, Ok(CompleteOutcome::Expired));
    assert_eq!(test.store().load_transaction(pending.id).await, Ok(Some(TransactionRecord::Expired(ended.clone()))));
    test.advance(Duration::from_secs(60));
    assert_eq!(
        test.store().expire_transaction(pending.id).await,
        Ok(ExpireOutcome::Expired(ended)),
        "the first end stands"
    );
    assert_eq!(test.store().first_due_deliveries(10).await, Ok(vec![]));

    let (expiring, completed) = (open_pending(test, &client).await, open_and_complete(test, &client).await.0);
    let Ok(Some(TransactionRecord::Completed(record))) = test.store().load_transaction(completed.id).await else {
        panic!("{completed:?}")
    };
    assert_eq!(test.store().expire_transaction(completed.id).await, Ok(ExpireOutcome::AlreadyCompleted(record)));
    test.advance(WINDOW);
    assert_eq!(test.store().expire_transaction(expiring.id).await, Ok(ExpireOutcome::Expired(expiring)));
    let unknown = TxnId::generate(client.partition(), 0);
    assert_eq!(test.store().expire_transaction(unknown).await, Ok(ExpireOutcome::NotFound));
}

pub(crate) async fn either_an_answer_or_the_end_of_the_window_wins_a_race(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    for _ in 0..20 {
        let id = open_pending(test, &client).await.id;
        let (completed, expired) = tokio::join!(
            test.store().complete_transaction(build_completion(id, 1)),
            test.store().expire_transaction(id)
        );
        match (completed.unwrap(), expired.unwrap()) {
            (CompleteOutcome::Completed { repeated: false, .. }, ExpireOutcome::AlreadyCompleted(_))
            | (CompleteOutcome::Expired, ExpireOutcome::Expired(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Builds a completion with a credential. Numbers identify the answer and the credential.
fn with_credential(id: TxnId, answer: u8, credential: u8) -> CompleteTransaction {
    CompleteTransaction {
        credential: Some(PresentedCredential { digest: CredentialIdentity([credential; 32]), holder_bound: false }),
        ..build_completion(id, answer)
    }
}

pub(crate) async fn a_credential_is_refused_under_another_transaction_in_the_replay_window(test: &impl TestStore) {
    let client = client_with(test, 4).await;
    let (first, second) = (open_pending(test, &client).await.id, open_pending(test, &client).await.id);
    test.store().complete_transaction(with_credential(first, 1, 9)).await.unwrap();
    let replay = test.store().complete_transaction(with_credential(second, 1, 9)).await;
    assert_eq!(replay, Ok(CompleteOutcome::CredentialReplayed));
    assert!(matches!(test.store().load_transaction(second).await, Ok(Some(TransactionRecord::Pending(_)))));
    let again = test.store().complete_transaction(with_credential(first, 1, 9)).await.unwrap();
    assert!(matches!(again, CompleteOutcome::Completed { repeated: true, .. }));
    let other = test.store().complete_transaction(with_credential(second, 2, 8)).await.unwrap();
    assert!(matches!(other, CompleteOutcome::Completed { repeated: false, .. }));
    test.advance(REPLAY_WINDOW - Duration::from_millis(1));
    let third = open_pending(test, &client).await.id;
    assert_eq!(
        test.store().complete_transaction(with_credential(third, 3, 9)).await,
        Ok(CompleteOutcome::CredentialReplayed)
    );
    test.advance(Duration::from_millis(1));
    let later = test.store().complete_transaction(with_credential(third, 3, 9)).await.unwrap();
    assert!(matches!(later, CompleteOutcome::Completed { repeated: false, .. }));
}

pub(crate) async fn a_holder_bound_credential_is_not_a_replay(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let (first, second, third) = (
        open_pending(test, &client).await.id,
        open_pending(test, &client).await.id,
        open_pending(test, &client).await.id,
    );
    let bound = |id, answer| {
        let credential = PresentedCredential { digest: CredentialIdentity([9; 32]), holder_bound: true };
        CompleteTransaction { credential: Some(credential), ..build_completion(id, answer) }
    };
    for (id, answer) in [(first, 1), (second, 2)] {
        let outcome = test.store().complete_transaction(bound(id, answer)).await.unwrap();
        assert!(matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }));
    }
    let unbound = test.store().complete_transaction(with_credential(third, 3, 9)).await;
    assert_eq!(unbound, Ok(CompleteOutcome::CredentialReplayed), "without the binding it is a replay");
}

pub(crate) async fn one_credential_racing_under_two_transactions_completes_one(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let (first, second) = (open_pending(test, &client).await.id, open_pending(test, &client).await.id);
    let race = [with_credential(first, 1, 9), with_credential(second, 1, 9)];
    let race = join_all(race.into_iter().map(|complete| test.store().complete_transaction(complete))).await;
    let completed = race.iter().filter(|outcome| matches!(outcome, Ok(CompleteOutcome::Completed { .. }))).count();
    let refused = race.iter().filter(|outcome| **outcome == Ok(CompleteOutcome::CredentialReplayed)).count();
    assert_eq!((completed, refused), (1, 1));
}

/// Causes every possible outcome of a completion. Returns their names, in a fixed order.
async fn cause_outcomes(test: &impl TestStore, client: &ClientId, is_known: bool) -> Vec<&'static str> {
    let answer = |pending: &Pending, answer, credential: u8| CompleteTransaction {
        known: is_known.then(|| Arc::new(pending.clone())),
        ..with_credential(pending.id, answer, 2 * credential + u8::from(is_known))
    };
    let (first, second, ended, late) = (
        open_pending(test, client).await,
        open_pending(test, client).await,
        open_pending(test, client).await,
        open_pending(test, client).await,
    );
    test.store().expire_transaction(ended.id).await.unwrap();
    let event = store_event(test, build_event(test, client, 1)).await;
    let mut guests = vec![];
    for _ in 0..2 {
        let scan = test.store().load_transaction(open_guest_scan(test, &event).await).await;
        let Ok(Some(TransactionRecord::Pending(guest))) = scan else { panic!("{scan:?}") };
        guests.push(guest);
    }
    let unknown = Pending { id: TxnId::generate(client.partition(), 0), ..late.clone() };
    let mut outcomes = vec![];
    let answers = [
        answer(&first, 1, 1),
        answer(&first, 1, 1),
        answer(&first, 2, 2),
        answer(&second, 3, 1),
        answer(&second, 4, 3),
        answer(&ended, 5, 4),
        answer(&guests[0], 6, 5),
        answer(&guests[1], 7, 6),
        answer(&unknown, 8, 7),
    ];
    for answer in answers {
        outcomes.push(outcome_name(test.store().complete_transaction(answer).await.unwrap()));
    }
    test.advance(WINDOW);
    outcomes.push(outcome_name(test.store().complete_transaction(answer(&late, 9, 8)).await.unwrap()));
    outcomes
}

fn outcome_name(outcome: CompleteOutcome) -> &'static str {
    match outcome {
        CompleteOutcome::Completed { record, .. } if record.refused.is_some() => "refused a place",
        CompleteOutcome::Completed { repeated: false, .. } => "completed",
        CompleteOutcome::Completed { repeated: true, .. } => "repeated",
        CompleteOutcome::AlreadyCompleted(_) => "already completed",
        CompleteOutcome::Expired => "expired",
        CompleteOutcome::CredentialReplayed => "replayed",
        CompleteOutcome::NotFound => "not found",
    }
}

pub(crate) async fn passing_the_known_transaction_changes_no_outcome(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    let expected = [
        "completed",
        "repeated",
        "already completed",
        "replayed",
        "completed",
        "expired",
        "completed",
        "refused a place",
        "not found",
        "expired",
    ];
    assert_eq!(cause_outcomes(test, &client, false).await, expected);
    assert_eq!(cause_outcomes(test, &client, true).await, expected);
}

pub(crate) async fn an_unknown_transaction_cannot_be_completed(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let id = TxnId::generate(client.partition(), 0);
    assert_eq!(test.store().complete_transaction(build_completion(id, 1)).await, Ok(CompleteOutcome::NotFound));
}

pub(crate) async fn evidence_is_stored_and_removed_with_the_result(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let proof = |text: &str| Some(sealed(text));
    let (expiring, erased, without_evidence) =
        (open_pending(test, &client).await, open_pending(test, &client).await, open_pending(test, &client).await);
    for (pending, evidence) in [(&expiring, proof("one")), (&erased, proof("two")), (&without_evidence, None)] {
        let complete = CompleteTransaction { evidence: evidence.clone(), ..build_completion(pending.id, 1) };
        test.store().complete_transaction(complete.clone()).await.unwrap();
        // A different answer does not replace the evidence.
        let other = CompleteTransaction { evidence: proof("other"), ..build_completion(pending.id, 2) };
        assert!(matches!(test.store().complete_transaction(other).await, Ok(CompleteOutcome::AlreadyCompleted(_))));
        assert_eq!(test.store().load_evidence(pending.id).await, Ok(evidence));
    }
    test.store().erase(ErasureSubject::Transaction(erased.id)).await.unwrap();
    assert_eq!(test.store().load_evidence(erased.id).await, Ok(None));
    assert_eq!(test.store().load_evidence(expiring.id).await, Ok(proof("one")));
    test.advance(RESULT_TTL);
    assert_eq!(test.store().load_evidence(expiring.id).await, Ok(None), "even while its webhook is pending");
}
