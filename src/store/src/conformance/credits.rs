//! Credits: balances, movements, statements and audits.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use futures_util::future::join_all;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::ClientId;

use super::TestStore;
use super::fixture::{audited_balance, client_with, grant, open_pending};
use crate::{CreditOutcome, PageRequest};

/// Builds an adjustment of the balance; the reference identifies it.
pub(crate) fn adjust(amount: i64, reference: &str) -> CreditMove {
    CreditMove { kind: EntryKind::Adjust, amount, reference: reference.into() }
}

pub(crate) async fn grants_and_adjustments_move_the_balance_and_are_repeatable(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let first = test.store().move_credits(client.clone(), grant(10, "invoice 1")).await.unwrap();
    let CreditOutcome::Moved(entry) = &first else { panic!("{first:?}") };
    assert_eq!((entry.seq, entry.kind, entry.amount, entry.balance_after), (1, EntryKind::Grant, 10, 10));
    assert_eq!((entry.reference.as_str(), entry.at), ("invoice 1", test.now()));
    let second = test.store().move_credits(client.clone(), adjust(-4, "mistake")).await.unwrap();
    assert!(matches!(&second, CreditOutcome::Moved(entry) if entry.seq == 2 && entry.balance_after == 6));
    test.advance(std::time::Duration::from_secs(1));
    assert_eq!(test.store().move_credits(client.clone(), grant(10, "invoice 1")).await, Ok(first));
    assert_eq!(test.store().move_credits(client.clone(), adjust(-4, "mistake")).await, Ok(second));
    assert_eq!(audited_balance(test, &client).await, 6);
}

pub(crate) async fn a_reference_identifies_one_amount_of_one_kind(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    test.store().move_credits(client.clone(), grant(10, "r")).await.unwrap();
    assert_eq!(test.store().move_credits(client.clone(), grant(11, "r")).await, Ok(CreditOutcome::ReferenceReused));
    let other_kind = test.store().move_credits(client.clone(), adjust(5, "r")).await.unwrap();
    assert!(matches!(other_kind, CreditOutcome::Moved(_)));
    let other_client = client_with(test, 0).await;
    let of_other_client = test.store().move_credits(other_client, grant(1, "r")).await.unwrap();
    assert!(matches!(of_other_client, CreditOutcome::Moved(_)));
    assert_eq!(audited_balance(test, &client).await, 15);
}

pub(crate) async fn the_balance_never_leaves_its_range(test: &impl TestStore) {
    let client = client_with(test, 5).await;
    let refused = [grant(0, "a"), grant(-1, "b"), adjust(-6, "c"), grant(i64::MAX, "d"), adjust(i64::MIN, "e")];
    let debit = CreditMove { kind: EntryKind::Debit, amount: 1, reference: "f".into() };
    for movement in refused.into_iter().chain([debit]) {
        let outcome = test.store().move_credits(client.clone(), movement.clone()).await;
        assert_eq!(outcome, Ok(CreditOutcome::OutOfRange), "{movement:?}");
    }
    assert!(matches!(test.store().move_credits(client.clone(), adjust(-5, "all")).await, Ok(CreditOutcome::Moved(_))));
    assert_eq!(audited_balance(test, &client).await, 0);
    let unknown = ClientId::generate();
    assert_eq!(test.store().move_credits(unknown.clone(), grant(1, "a")).await, Ok(CreditOutcome::NotFound));
    assert_eq!(test.store().balance(unknown).await, Ok(None));
}

pub(crate) async fn a_statement_has_every_entry_once_on_its_pages(test: &impl TestStore) {
    let client = client_with(test, 50).await;
    for _ in 0..22 {
        open_pending(test, &client).await;
    }
    let page = |page| test.store().statement(client.clone(), PageRequest { page, page_size: 10 });
    let mut entries = page(1).await.unwrap().items;
    // An entry that arrives between two pages does not change a full page.
    open_pending(test, &client).await;
    for number in 2..=4 {
        let rows = page(number).await.unwrap();
        assert_eq!(rows.total, 24);
        entries.extend(rows.items);
    }
    let entries: Vec<_> = entries.into_iter().map(|entry| (entry.seq, entry.balance_after)).collect();
    assert_eq!(entries, (1..=24).map(|seq| (seq, 51 - seq)).collect::<Vec<_>>());
    let empty = test.store().statement(ClientId::generate(), PageRequest { page: 1, page_size: 10 }).await.unwrap();
    assert_eq!((empty.items.len(), empty.total), (0, 0));
}

pub(crate) async fn concurrent_movements_add_up(test: &impl TestStore) {
    let client = client_with(test, 100).await;
    let moves =
        (0..200).map(|n| if n % 2 == 0 { grant(3, &format!("g{}", n / 4)) } else { adjust(-1, &format!("a{n}")) });
    let outcomes = join_all(moves.map(|movement| test.store().move_credits(client.clone(), movement))).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(CreditOutcome::Moved(_)))), "{outcomes:?}");
    assert_eq!(audited_balance(test, &client).await, 100 + 50 * 3 - 100);
}

pub(crate) async fn an_audit_covers_every_client(test: &impl TestStore) {
    let (rich, new) = (client_with(test, 3).await, client_with(test, 0).await);
    open_pending(test, &rich).await;
    let mut audits = test.store().audit().await.unwrap();
    audits.sort_by_key(|audit| audit.client != rich);
    let found: Vec<_> =
        audits.iter().map(|audit| (&audit.client, audit.balance, audit.sum, audit.entries, audit.is_clean())).collect();
    assert_eq!(found, [(&rich, 2, 2, 2, true), (&new, 0, 0, 0, true)]);
}
