//! Opening and reading transactions: debits, retries and idempotency keys.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::ids::{ClientId, TxnId};

use super::TestStore;
use super::fixture::{
    audited_balance, build_completion, build_idempotent_answer, build_opening, client_with, idempotency_scope,
    open_pending,
};
use crate::TransactionRecord;
use crate::{OpenOutcome, OpenTransaction, PageRequest};

const FIRST_PAGE: PageRequest = PageRequest { page: 1, page_size: 100 };

pub(crate) async fn opening_debits_the_balance_and_stores_the_transaction(test: &impl TestStore) {
    let client = client_with(test, 10).await;
    let mut open = build_opening(test, &client);
    open.cost = 3;
    let pending = (*open.pending).clone();
    assert_eq!(test.store().open_transaction(open).await, Ok(OpenOutcome::Opened { balance: 7 }));
    assert_eq!(test.store().load_transaction(pending.id).await, Ok(Some(TransactionRecord::Pending(pending.clone()))));
    let statement = test.store().statement(client.clone(), FIRST_PAGE).await.unwrap();
    let debit = &statement.items[1];
    assert_eq!((debit.seq, debit.kind, debit.amount, debit.balance_after), (2, EntryKind::Debit, 3, 7));
    assert_eq!((debit.reference.clone(), debit.at), (pending.id.to_string(), test.now()));
    assert_eq!(audited_balance(test, &client).await, 7);
}

pub(crate) async fn eighty_concurrent_opens_on_25_credits_open_exactly_25(test: &impl TestStore) {
    let client = client_with(test, 25).await;
    let opens: Vec<_> = (0..80).map(|_| build_opening(test, &client)).collect();
    let ids: Vec<TxnId> = opens.iter().map(|open| open.pending.id).collect();
    let outcomes = join_all(opens.into_iter().map(|open| test.store().open_transaction(open))).await;
    let mut paid = HashSet::new();
    for (id, outcome) in ids.iter().zip(outcomes) {
        let exists = test.store().load_transaction(*id).await.unwrap().is_some();
        match outcome.unwrap() {
            OpenOutcome::Opened { .. } => assert!(exists && paid.insert(id.to_string())),
            other => assert!(!exists && other == OpenOutcome::InsufficientCredits, "{other:?}"),
        }
    }
    assert_eq!(paid.len(), 25);
    let statement = test.store().statement(client.clone(), FIRST_PAGE).await.unwrap();
    assert_eq!(statement.total, 26);
    assert_eq!(statement.items[1..].iter().map(|entry| entry.reference.clone()).collect::<HashSet<_>>(), paid);
    assert_eq!(audited_balance(test, &client).await, 0);
}

pub(crate) async fn repeating_an_open_under_its_id_debits_once(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let open = build_opening(test, &client);
    let outcomes = join_all((0..10).map(|_| test.store().open_transaction(open.clone()))).await;
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(OpenOutcome::Opened { balance: 4 })));
    open_pending(test, &client).await;
    let repetition = test.store().open_transaction(open).await;
    assert_eq!(repetition, Ok(OpenOutcome::Opened { balance: 3 }), "a repetition returns the current balance");
    assert_eq!(audited_balance(test, &client).await, 3);
}

pub(crate) async fn an_unknown_client_has_no_credits(test: &impl TestStore) {
    let open = build_opening(test, &ClientId::generate());
    let id = open.pending.id;
    assert_eq!(test.store().open_transaction(open).await, Ok(OpenOutcome::InsufficientCredits));
    assert_eq!(test.store().load_transaction(id).await, Ok(None));
}

pub(crate) async fn an_idempotency_key_replays_its_first_answer_and_refuses_another_body(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let build_open = |request| {
        let mut open = build_opening(test, &client);
        open.idempotency = Some(build_idempotent_answer(test, &client, 1, request));
        open
    };
    assert_eq!(test.store().open_transaction(build_open(1)).await, Ok(OpenOutcome::Opened { balance: 4 }));
    assert_eq!(
        test.store().open_transaction(build_open(1)).await,
        Ok(OpenOutcome::Replayed(build_idempotent_answer(test, &client, 1, 1).answer))
    );
    assert_eq!(test.store().open_transaction(build_open(2)).await, Ok(OpenOutcome::KeyReused));
    assert_eq!(
        test.store().load_idempotent_answer(idempotency_scope(&client, 1)).await,
        Ok(Some(build_idempotent_answer(test, &client, 1, 1)))
    );
    assert_eq!(test.store().load_idempotent_answer(idempotency_scope(&client, 2)).await, Ok(None));
    assert_eq!(audited_balance(test, &client).await, 4);
}

pub(crate) async fn concurrent_requests_under_one_idempotency_key_open_one_transaction(test: &impl TestStore) {
    let client = client_with(test, 50).await;
    let open_with_key = |_| {
        let mut open = build_opening(test, &client);
        open.idempotency = Some(build_idempotent_answer(test, &client, 3, 3));
        test.store().open_transaction(open)
    };
    let outcomes = join_all((0..40).map(open_with_key)).await;
    let opened = outcomes.iter().filter(|outcome| matches!(outcome, Ok(OpenOutcome::Opened { .. }))).count();
    let replayed = outcomes.iter().filter(|outcome| matches!(outcome, Ok(OpenOutcome::Replayed(_)))).count();
    assert_eq!((opened, replayed), (1, 39));
    assert_eq!(audited_balance(test, &client).await, 49);
}

pub(crate) async fn an_idempotency_key_expires(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let build_open = |request| {
        let mut open = build_opening(test, &client);
        open.idempotency = Some(build_idempotent_answer(test, &client, 1, request));
        open
    };
    let first = build_open(1);
    let until = first.idempotency.clone().unwrap().until;
    test.store().open_transaction(first).await.unwrap();
    test.advance(until.since(test.now()) - Duration::from_millis(1));
    assert!(matches!(test.store().open_transaction(build_open(1)).await, Ok(OpenOutcome::Replayed(_))));
    test.advance(Duration::from_millis(1));
    assert_eq!(test.store().load_idempotent_answer(idempotency_scope(&client, 1)).await, Ok(None));
    assert_eq!(test.store().open_transaction(build_open(2)).await, Ok(OpenOutcome::Opened { balance: 3 }));
    assert!(matches!(test.store().open_transaction(build_open(2)).await, Ok(OpenOutcome::Replayed(_))));
}

pub(crate) async fn repeating_an_open_under_its_id_and_idempotency_key_is_not_a_replay(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let mut open = build_opening(test, &client);
    open.idempotency = Some(build_idempotent_answer(test, &client, 1, 1));
    for _ in 0..3 {
        assert_eq!(test.store().open_transaction(open.clone()).await, Ok(OpenOutcome::Opened { balance: 4 }));
    }
}

pub(crate) async fn a_refused_open_leaves_no_idempotency_record(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let mut open = build_opening(test, &client);
    open.idempotency = Some(build_idempotent_answer(test, &client, 1, 1));
    assert_eq!(test.store().open_transaction(open.clone()).await, Ok(OpenOutcome::InsufficientCredits));
    assert_eq!(test.store().load_idempotent_answer(idempotency_scope(&client, 1)).await, Ok(None));
    test.store().move_credits(client.clone(), super::fixture::grant(1, "late")).await.unwrap();
    assert_eq!(test.store().open_transaction(open).await, Ok(OpenOutcome::Opened { balance: 0 }));
}

pub(crate) async fn an_unknown_transaction_is_not_found(test: &impl TestStore) {
    let client = client_with(test, 1).await;
    assert_eq!(test.store().load_transaction(TxnId::generate(client.partition(), 0)).await, Ok(None));
}

pub(crate) async fn the_bytes_of_an_intent_are_stored_while_the_transaction_is_pending(test: &impl TestStore) {
    let client = client_with(test, 2).await;
    let with_intent = OpenTransaction { intent: Some(vec![7; 300]), ..build_opening(test, &client) };
    let (pending, without_intent) = (with_intent.pending.id, open_pending(test, &client).await.id);
    assert!(matches!(test.store().open_transaction(with_intent).await, Ok(OpenOutcome::Opened { .. })));
    assert_eq!(test.store().load_intent(pending).await, Ok(Some(vec![7; 300])));
    assert_eq!(test.store().load_intent(without_intent).await, Ok(None));
    test.store().complete_transaction(build_completion(pending, 1)).await.unwrap();
    assert_eq!(test.store().load_intent(pending).await, Ok(None));
}
