//! Opening and reading transactions: the debit, repetition, idempotency keys.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::ids::{ClientId, TxnId};

use super::World;
use super::fixture::{audited_balance, client_with, kept, opened, opening, scope};
use crate::TransactionRecord;
use crate::{OpenOutcome, PageRequest};

const FIRST_PAGE: PageRequest = PageRequest { page: 1, page_size: 100 };

pub(crate) async fn opening_debits_the_balance_and_keeps_what_was_asked_for(world: &impl World) {
    let client = client_with(world, 10).await;
    let mut open = opening(world, &client);
    open.cost = 3;
    let pending = (*open.pending).clone();
    assert_eq!(world.store().open_transaction(open).await, Ok(OpenOutcome::Opened { balance: 7 }));
    assert_eq!(world.store().load_transaction(pending.id).await, Ok(Some(TransactionRecord::Pending(pending.clone()))));
    let statement = world.store().statement(client.clone(), FIRST_PAGE).await.unwrap();
    let debit = &statement.items[1];
    assert_eq!((debit.seq, debit.kind, debit.amount, debit.balance_after), (2, EntryKind::Debit, 3, 7));
    assert_eq!((debit.reference.clone(), debit.at), (pending.id.to_string(), world.now()));
    assert_eq!(audited_balance(world, &client).await, 7);
}

pub(crate) async fn eighty_concurrent_opens_on_25_credits_open_exactly_25(world: &impl World) {
    let client = client_with(world, 25).await;
    let opens: Vec<_> = (0..80).map(|_| opening(world, &client)).collect();
    let ids: Vec<TxnId> = opens.iter().map(|open| open.pending.id).collect();
    let outcomes = join_all(opens.into_iter().map(|open| world.store().open_transaction(open))).await;
    let mut paid = HashSet::new();
    for (id, outcome) in ids.iter().zip(outcomes) {
        let known = world.store().load_transaction(*id).await.unwrap().is_some();
        match outcome.unwrap() {
            OpenOutcome::Opened { .. } => assert!(known && paid.insert(id.to_string())),
            other => assert!(!known && other == OpenOutcome::InsufficientCredits, "{other:?}"),
        }
    }
    assert_eq!(paid.len(), 25);
    let statement = world.store().statement(client.clone(), FIRST_PAGE).await.unwrap();
    assert_eq!(statement.total, 26);
    assert_eq!(statement.items[1..].iter().map(|entry| entry.reference.clone()).collect::<HashSet<_>>(), paid);
    assert_eq!(audited_balance(world, &client).await, 0);
}

pub(crate) async fn an_open_repeated_under_its_id_debits_once(world: &impl World) {
    let client = client_with(world, 5).await;
    let open = opening(world, &client);
    let outcomes = join_all((0..10).map(|_| world.store().open_transaction(open.clone()))).await;
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(OpenOutcome::Opened { balance: 4 })));
    opened(world, &client).await;
    let again = world.store().open_transaction(open).await;
    assert_eq!(again, Ok(OpenOutcome::Opened { balance: 3 }), "the balance of the moment");
    assert_eq!(audited_balance(world, &client).await, 3);
}

pub(crate) async fn an_unknown_client_has_no_credits(world: &impl World) {
    let open = opening(world, &ClientId::generate());
    let id = open.pending.id;
    assert_eq!(world.store().open_transaction(open).await, Ok(OpenOutcome::InsufficientCredits));
    assert_eq!(world.store().load_transaction(id).await, Ok(None));
}

pub(crate) async fn an_idempotency_key_replays_its_first_answer_and_refuses_another_body(world: &impl World) {
    let client = client_with(world, 5).await;
    let asked = |request| {
        let mut open = opening(world, &client);
        open.idempotency = Some(kept(world, &client, 1, request));
        open
    };
    assert_eq!(world.store().open_transaction(asked(1)).await, Ok(OpenOutcome::Opened { balance: 4 }));
    assert_eq!(world.store().open_transaction(asked(1)).await, Ok(OpenOutcome::Replayed(kept(world, &client, 1, 1).answer)));
    assert_eq!(world.store().open_transaction(asked(2)).await, Ok(OpenOutcome::KeyReused));
    assert_eq!(world.store().load_idempotent_answer(scope(&client, 1)).await, Ok(Some(kept(world, &client, 1, 1))));
    assert_eq!(world.store().load_idempotent_answer(scope(&client, 2)).await, Ok(None));
    assert_eq!(audited_balance(world, &client).await, 4);
}

pub(crate) async fn concurrent_requests_under_one_idempotency_key_open_one_transaction(world: &impl World) {
    let client = client_with(world, 50).await;
    let asked = |_| {
        let mut open = opening(world, &client);
        open.idempotency = Some(kept(world, &client, 3, 3));
        world.store().open_transaction(open)
    };
    let outcomes = join_all((0..40).map(asked)).await;
    let opened = outcomes.iter().filter(|outcome| matches!(outcome, Ok(OpenOutcome::Opened { .. }))).count();
    let replayed = outcomes.iter().filter(|outcome| matches!(outcome, Ok(OpenOutcome::Replayed(_)))).count();
    assert_eq!((opened, replayed), (1, 39));
    assert_eq!(audited_balance(world, &client).await, 49);
}

pub(crate) async fn an_idempotency_key_is_forgotten_after_its_time(world: &impl World) {
    let client = client_with(world, 5).await;
    let asked = |request| {
        let mut open = opening(world, &client);
        open.idempotency = Some(kept(world, &client, 1, request));
        open
    };
    let first = asked(1);
    let until = first.idempotency.clone().unwrap().until;
    world.store().open_transaction(first).await.unwrap();
    world.advance(until.since(world.now()) - Duration::from_millis(1));
    assert!(matches!(world.store().open_transaction(asked(1)).await, Ok(OpenOutcome::Replayed(_))));
    world.advance(Duration::from_millis(1));
    assert_eq!(world.store().load_idempotent_answer(scope(&client, 1)).await, Ok(None));
    assert_eq!(world.store().open_transaction(asked(2)).await, Ok(OpenOutcome::Opened { balance: 3 }));
    assert!(matches!(world.store().open_transaction(asked(2)).await, Ok(OpenOutcome::Replayed(_))));
}

pub(crate) async fn an_open_repeated_under_its_id_and_idempotency_key_is_no_replay(world: &impl World) {
    let client = client_with(world, 5).await;
    let mut open = opening(world, &client);
    open.idempotency = Some(kept(world, &client, 1, 1));
    for _ in 0..3 {
        assert_eq!(world.store().open_transaction(open.clone()).await, Ok(OpenOutcome::Opened { balance: 4 }));
    }
}

pub(crate) async fn a_refused_open_leaves_no_idempotency_record(world: &impl World) {
    let client = client_with(world, 0).await;
    let mut open = opening(world, &client);
    open.idempotency = Some(kept(world, &client, 1, 1));
    assert_eq!(world.store().open_transaction(open.clone()).await, Ok(OpenOutcome::InsufficientCredits));
    assert_eq!(world.store().load_idempotent_answer(scope(&client, 1)).await, Ok(None));
    world.store().move_credits(client.clone(), super::fixture::grant(1, "late")).await.unwrap();
    assert_eq!(world.store().open_transaction(open).await, Ok(OpenOutcome::Opened { balance: 0 }));
}

pub(crate) async fn an_unknown_transaction_is_not_found(world: &impl World) {
    let client = client_with(world, 1).await;
    assert_eq!(world.store().load_transaction(TxnId::generate(client.partition(), 0)).await, Ok(None));
}
