//! Tests of memory budgets: bounds, and which holdings are revoked.

use std::net::IpAddr;

use proptest::prelude::*;
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_trace::invariant::broken_by;

use super::*;
use crate::budget::owner::Owner;

impl MemoryPermit {
    fn is_revoked(&self) -> bool {
        self.revoked.is_closed()
    }
}

fn budget(bytes_max: usize) -> MemoryBudget {
    MemoryBudget::new("test", bytes_max)
}

fn address(last: u8) -> Owner {
    Owner::Address(IpAddr::from([203, 0, 113, last]))
}

/// Returns the owners of a fresh transaction from an address.
fn sender(last: u8) -> OwnerPath {
    let client = ClientId::generate();
    let txn = TxnId::generate(client.partition(), 0);
    OwnerPath::new([address(last), Owner::Client(client), Owner::Transaction(txn)])
}

/// Takes a permit for arriving bytes.
fn take(budget: &MemoryBudget, owners: OwnerPath, bytes: usize) -> MemoryPermit {
    let mut permit = budget.permit(owners, Stage::Arriving);
    permit.grow_to(bytes).unwrap();
    permit
}

/// Returns the numbers of revoked and of refused permits.
fn count_revoked_and_refused(budget: &MemoryBudget) -> (u64, u64) {
    let ledger = budget.lock();
    (ledger.revoked, ledger.refused)
}

#[test]
fn only_the_largest_holding_is_revoked() {
    let budget = budget(100);
    let small = take(&budget, sender(1), 20);
    let large = take(&budget, sender(2), 70);
    let newcomer = take(&budget, sender(3), 30);
    assert!(large.is_revoked() && !small.is_revoked() && !newcomer.is_revoked());
    assert_eq!((budget.bytes_held(), count_revoked_and_refused(&budget)), (50, (1, 0)));
    assert_eq!(budget.lock().usage.outermost(), (2, 30));
    drop((small, large, newcomer));
    assert_eq!(budget.bytes_held(), 0);
}

#[test]
fn many_transactions_of_a_sender_count_as_one_owner() {
    let budget = budget(100);
    let first_sender: Vec<_> = (0..9).map(|_| take(&budget, sender(1), 10)).collect();
    let newcomer = take(&budget, sender(2), 40);
    assert_eq!((first_sender.iter().filter(|permit| permit.is_revoked()).count(), newcomer.is_revoked()), (3, false));
    let mut one_more = budget.permit(sender(1), Stage::Arriving);
    assert_eq!(
        one_more.grow_to(11),
        Err(BudgetExhausted),
        "it would be the largest holding of the owner that holds most"
    );
}

#[test]
fn a_greedy_sender_does_not_push_out_others_at_its_address() {
    let budget = budget(100);
    let greedy = take(&budget, sender(1), 60);
    let honest = take(&budget, sender(1), 30);
    let another = take(&budget, sender(1), 20);
    assert!(greedy.is_revoked() && !honest.is_revoked() && !another.is_revoked());
}

#[test]
fn a_newcomer_that_would_hold_most_is_refused() {
    let budget = budget(100);
    let first = take(&budget, sender(1), 50);
    let mut second = take(&budget, sender(2), 50);
    assert_eq!(second.grow_to(51), Err(BudgetExhausted));
    assert_eq!((first.is_revoked(), second.is_revoked(), budget.bytes_held()), (false, false, 100));
    assert_eq!(count_revoked_and_refused(&budget), (0, 1));
    second.shrink_to(10);
    assert_eq!(budget.bytes_held(), 60);
}

#[test]
fn a_newcomer_is_refused_if_it_would_hold_as_much_as_another() {
    let budget = budget(99);
    let first = take(&budget, sender(1), 50);
    assert_eq!(budget.permit(sender(2), Stage::Arriving).grow_to(50), Err(BudgetExhausted));
    assert!(!first.is_revoked());
}

#[test]
fn only_unpinned_holdings_of_an_owner_are_revoked() {
    let (budget, owners) = (budget(100), sender(1));
    let mut pinned = take(&budget, owners.clone(), 60);
    pinned.pin().unwrap();
    let other = take(&budget, owners, 20);
    let newcomer = take(&budget, sender(2), 30);
    assert!(!pinned.is_revoked() && other.is_revoked() && !newcomer.is_revoked());
}

#[test]
fn holdings_of_an_owner_compete_with_those_of_its_inner_owners() {
    for (by_itself, by_inner) in [(60, 30), (30, 60), (45, 45)] {
        let budget = budget(100);
        let client = Owner::Client(ClientId::generate());
        let own = take(&budget, OwnerPath::new([address(1)]), by_itself);
        let inner = take(&budget, OwnerPath::new([address(1), client]), by_inner);
        let _newcomer = take(&budget, sender(2), 20);
        assert_eq!((own.is_revoked(), inner.is_revoked()), (by_itself > by_inner, by_itself <= by_inner));
    }
}

#[test]
fn a_pinned_permit_cannot_be_revoked_but_counts() {
    let budget = budget(100);
    let mut pinned = take(&budget, sender(1), 60);
    pinned.pin().unwrap();
    assert!(budget.take(sender(1), Stage::Arriving, 50).is_err(), "the sender holds most");
    assert!(budget.take(sender(2), Stage::Arriving, 50).is_err(), "no holding can be revoked");
    let other = take(&budget, sender(2), 40);
    let third = take(&budget, sender(3), 30);
    assert!(!pinned.is_revoked() && other.is_revoked() && !third.is_revoked());
}

#[test]
fn an_unpinned_permit_can_be_revoked_again() {
    let budget = budget(100);
    let mut permit = take(&budget, sender(1), 60);
    permit.pin().unwrap();
    permit.unpin();
    let other = take(&budget, sender(2), 50);
    assert!(permit.is_revoked() && !other.is_revoked());
}

#[test]
fn one_body_may_be_pinned_and_more_up_to_half_of_the_rest() {
    let budget = budget(100);
    let pin = |last: u8, bytes: usize| {
        let mut permit = take(&budget, sender(last), bytes);
        permit.pin().map(|()| permit)
    };
    let (first, second) = (pin(1, 25).unwrap(), pin(1, 25).unwrap());
    assert!(pin(1, 1).is_err());
    let (third, fourth) = (pin(2, 20).unwrap(), pin(3, 20).unwrap());
    assert!(pin(2, 1).is_err());
    assert_eq!(count_revoked_and_refused(&budget), (0, 2));
    drop((first, second, third, fourth));
    assert_eq!(budget.bytes_held(), 0);
}

#[tokio::test]
async fn a_revoked_permit_notifies_earlier_and_later_waiters() {
    let budget = budget(100);
    let (first, second) = (take(&budget, sender(1), 90), take(&budget, sender(2), 5));
    let notified = tokio::spawn(async move { first.wait_until_revoked().await });
    tokio::task::yield_now().await;
    let third = take(&budget, sender(3), 50);
    notified.await.unwrap();
    let _fourth = (take(&budget, sender(4), 40), take(&budget, sender(5), 30));
    third.wait_until_revoked().await;
    third.wait_until_revoked().await;
    assert!(!second.is_revoked());
}

#[test]
fn bytes_are_counted_by_stage() {
    let budget = budget(100);
    let mut permit = take(&budget, sender(1), 30);
    let _leaving = budget.take(sender(2), Stage::Leaving, 20).unwrap();
    permit.set_stage(Stage::Waiting);
    assert_eq!(budget.lock().bytes_by_stage, [0, 30, 20]);
}

proptest! {
    #[test]
    fn the_bound_holds_and_no_bytes_leak(steps in prop::collection::vec((0_u8..4, 0_u8..4, 0_usize..60, 0_u8..6),
        1..200)) {
        let budget = budget(100);
        let client = ClientId::generate();
        let txns: Vec<TxnId> = (0..4).map(|_| TxnId::generate(client.partition(), 0)).collect();
        let mut permits: Vec<MemoryPermit> = Vec::new();
        for (address_byte, txn, bytes, action) in steps {
            let owners = OwnerPath::new([address(address_byte), Owner::Transaction(txns[usize::from(txn)])]);
            let chosen = usize::from(address_byte * 4 + txn);
            match action {
                0 => drop(budget.take(owners, Stage::Leaving, bytes).map(|permit| permits.push(permit))),
                1 if chosen < permits.len() => drop(permits.swap_remove(chosen)),
                2 if chosen < permits.len() => permits[chosen].shrink_to(bytes),
                3 if chosen < permits.len() => _ = permits[chosen].grow_to(bytes),
                4 if chosen < permits.len() => _ = permits[chosen].pin(),
                _ => {
                    let mut permit = budget.permit(owners, Stage::Arriving);
                    _ = permit.grow_to(bytes);
                    permits.push(permit);
                }
            }
            let live = permits.iter().filter(|permit| !permit.is_revoked());
            let bytes_present: usize = live.map(|permit| permit.bytes).sum();
            prop_assert!(budget.bytes_held() == bytes_present && bytes_present <= 100);
            prop_assert_eq!(budget.lock().bytes_by_stage.iter().sum::<usize>(), bytes_present);
        }
        drop(permits);
        let ledger = budget.lock();
        prop_assert_eq!((ledger.usage.bytes(), ledger.usage.outermost().0, ledger.records.len()), (0, 0, 0));
    }
}

#[test]
fn inconsistent_counts_break_an_invariant() {
    let budget = budget(100);
    let permit = take(&budget, sender(1), 20);
    budget.lock().bytes_by_stage[Stage::Arriving as usize] = 19;
    let names = broken_by(|| drop(permit));
    assert_eq!(names, ["memory of a stage is given back once"]);
    let permit = take(&budget, sender(1), 20);
    budget.lock().bytes_by_stage[Stage::Waiting as usize] = 5;
    assert_eq!(broken_by(|| drop(permit)), ["memory of all stages is that of all owners"]);
    budget.lock().bytes_by_stage[Stage::Waiting as usize] = 0;
    let mut ledger = Ledger { usage: Usage::default(), ..Ledger::default() };
    assert_eq!(broken_by(|| ledger.check_bound(100)), Vec::<&str>::new());
    ledger.usage.change(&[], 1, Holding::default(), Holding { bytes: 101, revocable: false });
    assert_eq!(broken_by(|| ledger.check_bound(100)), ["memory that is granted is within its budget"]);
}
