//! Holdings of memory: their bounds, and the ones that are revoked.

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

fn budget(most: usize) -> MemoryBudget {
    MemoryBudget::new("test", most)
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

fn holding(budget: &MemoryBudget, owners: OwnerPath, bytes: usize) -> MemoryPermit {
    let mut permit = budget.permit(owners, Stage::Arriving);
    permit.grow_to(bytes).unwrap();
    permit
}

/// Returns the numbers of permits that were revoked and refused.
fn counted(budget: &MemoryBudget) -> (u64, u64) {
    let ledger = budget.lock();
    (ledger.revoked, ledger.refused)
}

#[test]
fn the_largest_holder_is_revoked_and_the_others_keep_what_they_have() {
    let budget = budget(100);
    let small = holding(&budget, sender(1), 20);
    let large = holding(&budget, sender(2), 70);
    let newcomer = holding(&budget, sender(3), 30);
    assert!(large.is_revoked() && !small.is_revoked() && !newcomer.is_revoked());
    assert_eq!((budget.held(), counted(&budget)), (50, (1, 0)));
    assert_eq!(budget.lock().usage.outermost(), (2, 30));
    drop((small, large, newcomer));
    assert_eq!(budget.held(), 0);
}

#[test]
fn many_transactions_of_one_sender_weigh_as_one() {
    let budget = budget(100);
    let of_one: Vec<_> = (0..9).map(|_| holding(&budget, sender(1), 10)).collect();
    let newcomer = holding(&budget, sender(2), 40);
    assert_eq!((of_one.iter().filter(|permit| permit.is_revoked()).count(), newcomer.is_revoked()), (3, false));
    let mut one_more = budget.permit(sender(1), Stage::Arriving);
    assert_eq!(one_more.grow_to(11), Err(BudgetExhausted), "now it would be the largest of the one who holds most");
}

#[test]
fn who_shares_an_address_with_a_greedy_sender_is_not_pushed_out() {
    let budget = budget(100);
    let greedy = holding(&budget, sender(1), 60);
    let honest = holding(&budget, sender(1), 30);
    let another = holding(&budget, sender(1), 20);
    assert!(greedy.is_revoked() && !honest.is_revoked() && !another.is_revoked());
}

#[test]
fn a_newcomer_who_would_hold_most_is_refused_and_pushes_nobody_out() {
    let budget = budget(100);
    let first = holding(&budget, sender(1), 50);
    let mut second = holding(&budget, sender(2), 50);
    assert_eq!(second.grow_to(51), Err(BudgetExhausted));
    assert_eq!((first.is_revoked(), second.is_revoked(), budget.held()), (false, false, 100));
    assert_eq!(counted(&budget), (0, 1));
    second.shrink_to(10);
    assert_eq!(budget.held(), 60);
}

#[test]
fn of_two_who_would_hold_as_much_the_newcomer_is_refused() {
    let budget = budget(99);
    let first = holding(&budget, sender(1), 50);
    assert_eq!(budget.permit(sender(2), Stage::Arriving).grow_to(50), Err(BudgetExhausted));
    assert!(!first.is_revoked());
}

#[test]
fn of_one_owner_what_is_pinned_stays_and_what_is_not_is_revoked() {
    let (budget, owners) = (budget(100), sender(1));
    let mut pinned = holding(&budget, owners.clone(), 60);
    pinned.pin().unwrap();
    let other = holding(&budget, owners, 20);
    let newcomer = holding(&budget, sender(2), 30);
    assert!(!pinned.is_revoked() && other.is_revoked() && !newcomer.is_revoked());
}

#[test]
fn what_an_owner_holds_by_itself_is_compared_with_what_its_inner_owners_hold() {
    for (by_itself, by_inner) in [(60, 30), (30, 60), (45, 45)] {
        let budget = budget(100);
        let client = Owner::Client(ClientId::generate());
        let own = holding(&budget, OwnerPath::new([address(1)]), by_itself);
        let inner = holding(&budget, OwnerPath::new([address(1), client]), by_inner);
        let _newcomer = holding(&budget, sender(2), 20);
        assert_eq!((own.is_revoked(), inner.is_revoked()), (by_itself > by_inner, by_itself <= by_inner));
    }
}

#[test]
fn a_pinned_permit_cannot_be_revoked_but_counts() {
    let budget = budget(100);
    let mut pinned = holding(&budget, sender(1), 60);
    pinned.pin().unwrap();
    assert!(budget.take(sender(1), Stage::Arriving, 50).is_err(), "its own sender holds most");
    assert!(budget.take(sender(2), Stage::Arriving, 50).is_err(), "there is nothing to revoke");
    let other = holding(&budget, sender(2), 40);
    let third = holding(&budget, sender(3), 30);
    assert!(!pinned.is_revoked() && other.is_revoked() && !third.is_revoked());
}

#[test]
fn one_body_may_always_be_pinned_and_more_up_to_half_of_what_others_leave() {
    let budget = budget(100);
    let pin = |last: u8, bytes: usize| {
        let mut permit = holding(&budget, sender(last), bytes);
        permit.pin().map(|()| permit)
    };
    let (first, second) = (pin(1, 25).unwrap(), pin(1, 25).unwrap());
    assert!(pin(1, 1).is_err());
    let (third, fourth) = (pin(2, 20).unwrap(), pin(3, 20).unwrap());
    assert!(pin(2, 1).is_err());
    assert_eq!(counted(&budget), (0, 2));
    drop((first, second, third, fourth));
    assert_eq!(budget.held(), 0);
}

#[tokio::test]
async fn a_revoked_permit_notifies_whether_somebody_waits_already_or_not() {
    let budget = budget(100);
    let (first, second) = (holding(&budget, sender(1), 90), holding(&budget, sender(2), 5));
    let told = tokio::spawn(async move { first.revoked().await });
    tokio::task::yield_now().await;
    let third = holding(&budget, sender(3), 50);
    told.await.unwrap();
    let _fourth = (holding(&budget, sender(4), 40), holding(&budget, sender(5), 30));
    third.revoked().await;
    third.revoked().await;
    assert!(!second.is_revoked());
}

#[test]
fn bytes_are_counted_by_stage() {
    let budget = budget(100);
    let mut permit = holding(&budget, sender(1), 30);
    let _leaving = budget.take(sender(2), Stage::Leaving, 20).unwrap();
    permit.set_stage(Stage::Waiting);
    assert_eq!(budget.lock().of_stage, [0, 30, 20]);
}

proptest! {
    #[test]
    fn the_bound_holds_and_nothing_leaks(steps in prop::collection::vec((0_u8..4, 0_u8..4, 0_usize..60, 0_u8..6),
        1..200)) {
        let budget = budget(100);
        let client = ClientId::generate();
        let txns: Vec<TxnId> = (0..4).map(|_| TxnId::generate(client.partition(), 0)).collect();
        let mut permits: Vec<MemoryPermit> = Vec::new();
        for (outer, txn, bytes, what) in steps {
            let owners = OwnerPath::new([address(outer), Owner::Transaction(txns[usize::from(txn)])]);
            let chosen = usize::from(outer * 4 + txn);
            match what {
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
            let there: usize = permits.iter().filter(|permit| !permit.is_revoked()).map(|permit| permit.bytes).sum();
            prop_assert!(budget.held() == there && there <= 100);
            prop_assert_eq!(budget.lock().of_stage.iter().sum::<usize>(), there);
        }
        drop(permits);
        let ledger = budget.lock();
        prop_assert_eq!((ledger.usage.bytes(), ledger.usage.outermost().0, ledger.records.len()), (0, 0, 0));
    }
}

#[test]
fn memory_that_does_not_add_up_is_noticed() {
    let budget = budget(100);
    let permit = holding(&budget, sender(1), 20);
    budget.lock().of_stage[Stage::Arriving as usize] = 19;
    let names = broken_by(|| drop(permit));
    assert_eq!(names, ["memory of a stage is given back once"]);
    let permit = holding(&budget, sender(1), 20);
    budget.lock().of_stage[Stage::Waiting as usize] = 5;
    assert_eq!(broken_by(|| drop(permit)), ["memory of all stages is that of all owners"]);
    budget.lock().of_stage[Stage::Waiting as usize] = 0;
    let mut ledger = Ledger { usage: Usage::default(), ..Ledger::default() };
    assert_eq!(broken_by(|| ledger.is_within(100)), Vec::<&str>::new());
    ledger.usage.change(&[], 1, Holding::default(), Holding { bytes: 101, revocable: false });
    assert_eq!(broken_by(|| ledger.is_within(100)), ["memory that is granted is within its budget"]);
}
