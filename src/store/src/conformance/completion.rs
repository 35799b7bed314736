//! Completing transactions: once, in time, and with a credential that was not used elsewhere.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity, Pending};

use super::TestStore;
use super::fixture::{
    REPLAY_WINDOW, RESULT_TTL, WINDOW, client_with, completed, completing, created, event, opened, opening_with_hook,
    receiver, scanned, sealed,
};
use crate::{CompleteOutcome, CompleteTransaction, ExpireOutcome, PresentedCredential};
use crate::{CompletedRecord, TransactionRecord};

pub(crate) async fn completing_keeps_the_result_and_queues_one_webhook(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let pending = opened(test, &client).await;
    test.advance(Duration::from_secs(60));
    let outcome = test.store().complete_transaction(completing(pending.id, 5)).await.unwrap();
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
    let due = test.store().due_deliveries(None, None, 10).await.unwrap();
    assert_eq!(due.iter().map(|queued| queued.id).collect::<Vec<_>>(), [delivery.id]);
    assert_eq!(due, std::slice::from_ref(&delivery));
    assert_eq!(
        (delivery.subject, Some(receiver(test.store(), &delivery).await)),
        (pending.id.into(), pending.terms.webhook_url)
    );
    assert_eq!(delivery.stored_bytes, sealed("outcome 5").size());
    let kept = test.store().load_delivery(pending.id.into()).await.unwrap().unwrap();
    assert_eq!((kept.id, kept.queued_at, kept.claimed_at, kept.attempt), (delivery.id, test.now(), None, None));
    assert_eq!(kept.origin, "https://hooks.example");
}

pub(crate) async fn without_a_webhook_url_nothing_is_queued(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let open = opening_with_hook(test, &client, None);
    let id = open.pending.id;
    test.store().open_transaction(open).await.unwrap();
    let outcome = test.store().complete_transaction(completing(id, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { queued: None, repeated: false, .. }));
    assert_eq!(test.store().due_deliveries(None, None, 10).await, Ok(vec![]));
    assert_eq!(test.store().load_delivery(id.into()).await, Ok(None));
}

pub(crate) async fn the_same_answer_again_is_repeated_and_another_one_is_refused(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    let (pending, _) = completed(test, &client).await;
    let first = test.store().load_transaction(pending.id).await.unwrap();
    test.advance(Duration::from_secs(5));
    match test.store().complete_transaction(completing(pending.id, 1)).await.unwrap() {
        CompleteOutcome::Completed { record, queued: None, repeated: true } => assert_eq!(Some(record.into()), first),
        other => panic!("{other:?}"),
    }
    match test.store().complete_transaction(completing(pending.id, 2)).await.unwrap() {
        CompleteOutcome::AlreadyCompleted(record) => assert_eq!(Some(record.into()), first),
        other => panic!("{other:?}"),
    }
    assert_eq!(test.store().due_deliveries(None, None, 10).await.unwrap().len(), 1);
}

pub(crate) async fn of_two_racing_answers_one_wins(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    for _ in 0..20 {
        let id = opened(test, &client).await.id;
        let race = join_all((1..=8).map(|answer| test.store().complete_transaction(completing(id, answer)))).await;
        let won: Vec<_> = race
            .iter()
            .filter(|outcome| matches!(outcome, Ok(CompleteOutcome::Completed { repeated: false, .. })))
            .collect();
        let lost = race.iter().filter(|outcome| matches!(outcome, Ok(CompleteOutcome::AlreadyCompleted(_)))).count();
        assert_eq!((won.len(), lost), (1, 7));
    }
    assert_eq!(test.store().due_deliveries(None, None, 100).await.unwrap().len(), 20);
}

pub(crate) async fn a_transaction_expires_by_the_clock_of_the_store(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let (in_time, late) = (opened(test, &client).await.id, opened(test, &client).await.id);
    test.advance(WINDOW - Duration::from_millis(1));
    let outcome = test.store().complete_transaction(completing(in_time, 1)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Completed { .. }));
    test.advance(Duration::from_millis(1));
    assert_eq!(test.store().complete_transaction(completing(late, 2)).await, Ok(CompleteOutcome::Expired));
    assert!(matches!(test.store().load_transaction(late).await, Ok(Some(TransactionRecord::Expired(_)))));
    let again = test.store().complete_transaction(completing(in_time, 1)).await.unwrap();
    assert!(matches!(again, CompleteOutcome::Completed { repeated: true, .. }), "a repetition is not late");
}

pub(crate) async fn a_window_that_is_ended_before_its_time_stays_over(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let pending = opened(test, &client).await;
    test.advance(Duration::from_secs(60));
    let ended = Pending { expires_at: test.now(), ..pending.clone() };
    assert_eq!(test.store().expire_transaction(pending.id).await, Ok(ExpireOutcome::Expired(ended.clone())));
    assert_eq!(test.store().complete_transaction(completing(pending.id, 1)).await, Ok(CompleteOutcome::Expired));
    assert_eq!(test.store().load_transaction(pending.id).await, Ok(Some(TransactionRecord::Expired(ended.clone()))));
    test.advance(Duration::from_secs(60));
    assert_eq!(
        test.store().expire_transaction(pending.id).await,
        Ok(ExpireOutcome::Expired(ended)),
        "it ended when it ended"
    );
    assert_eq!(test.store().due_deliveries(None, None, 10).await, Ok(vec![]));

    let (by_itself, completed) = (opened(test, &client).await, completed(test, &client).await.0);
    let Ok(Some(TransactionRecord::Completed(record))) = test.store().load_transaction(completed.id).await else {
        panic!("{completed:?}")
    };
    assert_eq!(test.store().expire_transaction(completed.id).await, Ok(ExpireOutcome::AlreadyCompleted(record)));
    test.advance(WINDOW);
    assert_eq!(test.store().expire_transaction(by_itself.id).await, Ok(ExpireOutcome::Expired(by_itself)));
    let unknown = TxnId::generate(client.partition(), 0);
    assert_eq!(test.store().expire_transaction(unknown).await, Ok(ExpireOutcome::NotFound));
}

pub(crate) async fn of_an_answer_and_an_end_of_the_window_that_race_one_wins(test: &impl TestStore) {
    let client = client_with(test, 20).await;
    for _ in 0..20 {
        let id = opened(test, &client).await.id;
        let (completed, expired) =
            tokio::join!(test.store().complete_transaction(completing(id, 1)), test.store().expire_transaction(id));
        match (completed.unwrap(), expired.unwrap()) {
            (CompleteOutcome::Completed { repeated: false, .. }, ExpireOutcome::AlreadyCompleted(_))
            | (CompleteOutcome::Expired, ExpireOutcome::Expired(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn with_credential(id: TxnId, answer: u8, credential: u8) -> CompleteTransaction {
    CompleteTransaction {
        credential: Some(PresentedCredential { digest: CredentialIdentity([credential; 32]), holder_bound: false }),
        ..completing(id, answer)
    }
}

pub(crate) async fn a_credential_is_refused_under_another_transaction_while_its_window_lasts(test: &impl TestStore) {
    let client = client_with(test, 4).await;
    let (first, second) = (opened(test, &client).await.id, opened(test, &client).await.id);
    test.store().complete_transaction(with_credential(first, 1, 9)).await.unwrap();
    let replay = test.store().complete_transaction(with_credential(second, 1, 9)).await;
    assert_eq!(replay, Ok(CompleteOutcome::CredentialReplayed));
    assert!(matches!(test.store().load_transaction(second).await, Ok(Some(TransactionRecord::Pending(_)))));
    let again = test.store().complete_transaction(with_credential(first, 1, 9)).await.unwrap();
    assert!(matches!(again, CompleteOutcome::Completed { repeated: true, .. }));
    let other = test.store().complete_transaction(with_credential(second, 2, 8)).await.unwrap();
    assert!(matches!(other, CompleteOutcome::Completed { repeated: false, .. }));
    test.advance(REPLAY_WINDOW - Duration::from_millis(1));
    let third = opened(test, &client).await.id;
    assert_eq!(
        test.store().complete_transaction(with_credential(third, 3, 9)).await,
        Ok(CompleteOutcome::CredentialReplayed)
    );
    test.advance(Duration::from_millis(1));
    let later = test.store().complete_transaction(with_credential(third, 3, 9)).await.unwrap();
    assert!(matches!(later, CompleteOutcome::Completed { repeated: false, .. }));
}

pub(crate) async fn a_credential_that_its_holder_bound_to_a_transaction_is_no_replay(test: &impl TestStore) {
    let client = client_with(test, 3).await;
    let (first, second, third) =
        (opened(test, &client).await.id, opened(test, &client).await.id, opened(test, &client).await.id);
    let bound = |id, answer| {
        let credential = PresentedCredential { digest: CredentialIdentity([9; 32]), holder_bound: true };
        CompleteTransaction { credential: Some(credential), ..completing(id, answer) }
    };
    for (id, answer) in [(first, 1), (second, 2)] {
        let outcome = test.store().complete_transaction(bound(id, answer)).await.unwrap();
        assert!(matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }));
    }
    let stripped = test.store().complete_transaction(with_credential(third, 3, 9)).await;
    assert_eq!(stripped, Ok(CompleteOutcome::CredentialReplayed), "without its binding it is known");
}

pub(crate) async fn one_credential_racing_under_two_transactions_completes_one(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let (first, second) = (opened(test, &client).await.id, opened(test, &client).await.id);
    let race = [with_credential(first, 1, 9), with_credential(second, 1, 9)];
    let race = join_all(race.into_iter().map(|complete| test.store().complete_transaction(complete))).await;
    let won = race.iter().filter(|outcome| matches!(outcome, Ok(CompleteOutcome::Completed { .. }))).count();
    let refused = race.iter().filter(|outcome| **outcome == Ok(CompleteOutcome::CredentialReplayed)).count();
    assert_eq!((won, refused), (1, 1));
}

/// Returns the names of every possible outcome of an answer, in a fixed order.
async fn outcomes(test: &impl TestStore, client: &ClientId, is_known: bool) -> Vec<&'static str> {
    let answer = |pending: &Pending, answer, credential: u8| CompleteTransaction {
        known: is_known.then(|| Arc::new(pending.clone())),
        ..with_credential(pending.id, answer, 2 * credential + u8::from(is_known))
    };
    let (first, second, ended, late) = (
        opened(test, client).await,
        opened(test, client).await,
        opened(test, client).await,
        opened(test, client).await,
    );
    test.store().expire_transaction(ended.id).await.unwrap();
    let party = created(test, event(test, client, 1)).await;
    let mut guests = vec![];
    for _ in 0..2 {
        let scan = test.store().load_transaction(scanned(test, &party).await).await;
        let Ok(Some(TransactionRecord::Pending(guest))) = scan else { panic!("{scan:?}") };
        guests.push(guest);
    }
    let nobody = Pending { id: TxnId::generate(client.partition(), 0), ..late.clone() };
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
        answer(&nobody, 8, 7),
    ];
    for answer in answers {
        outcomes.push(named(test.store().complete_transaction(answer).await.unwrap()));
    }
    test.advance(WINDOW);
    outcomes.push(named(test.store().complete_transaction(answer(&late, 9, 8)).await.unwrap()));
    outcomes
}

fn named(outcome: CompleteOutcome) -> &'static str {
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

pub(crate) async fn what_a_caller_knows_of_a_transaction_changes_no_outcome(test: &impl TestStore) {
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
    assert_eq!(outcomes(test, &client, false).await, expected);
    assert_eq!(outcomes(test, &client, true).await, expected);
}

pub(crate) async fn an_unknown_transaction_cannot_be_completed(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let id = TxnId::generate(client.partition(), 0);
    assert_eq!(test.store().complete_transaction(completing(id, 1)).await, Ok(CompleteOutcome::NotFound));
}

pub(crate) async fn evidence_is_kept_beside_the_result_and_goes_with_it(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let proof = |text: &str| Some(sealed(text));
    let (expires, erased, without) =
        (opened(test, &client).await, opened(test, &client).await, opened(test, &client).await);
    for (pending, evidence) in [(&expires, proof("one")), (&erased, proof("two")), (&without, None)] {
        let complete = CompleteTransaction { evidence: evidence.clone(), ..completing(pending.id, 1) };
        test.store().complete_transaction(complete.clone()).await.unwrap();
        // Another answer replaces nothing.
        let other = CompleteTransaction { evidence: proof("other"), ..completing(pending.id, 2) };
        assert!(matches!(test.store().complete_transaction(other).await, Ok(CompleteOutcome::AlreadyCompleted(_))));
        assert_eq!(test.store().load_evidence(pending.id).await, Ok(evidence));
    }
    test.store().erase(ErasureSubject::Transaction(erased.id)).await.unwrap();
    assert_eq!(test.store().load_evidence(erased.id).await, Ok(None));
    assert_eq!(test.store().load_evidence(expires.id).await, Ok(proof("one")));
    test.advance(RESULT_TTL);
    assert_eq!(test.store().load_evidence(expires.id).await, Ok(None), "though its webhook waits");
}
