//! Bytes that the service holds for clients: requests that arrive, requests that wait, answers that are being sent.
//!
//! Each kind of body has a budget of its own, charged with the bytes that are there, never with a declared length. When a budget is
//! used up, the largest holding of the owner that holds most is revoked, chosen from the outermost owner inwards. A request is
//! refused only when that would be its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{counter, gauge};
use sakshi_domain::limits::{
    ANSWER_BYTES_HELD_MAX, CALLBACK_BYTES_HELD_MAX, FILE_REQUEST_BYTES_HELD_MAX, REPORT_BYTES_HELD_MAX, REQUEST_BYTES_HELD_MAX,
};
use tokio::sync::Semaphore;

use super::owner::OwnerPath;
use super::usage::{Holding, HoldingId, Usage};
use crate::error::ServiceError;

/// All budgets of a node, shared by its workers and listeners.
#[derive(Clone, Debug)]
pub struct MemoryBudgets {
    /// The identity app's callbacks.
    pub callbacks: MemoryBudget,
    /// Requests that hold a file.
    pub files: MemoryBudget,
    /// Upstreams' reports.
    pub reports: MemoryBudget,
    /// Every other request body that does not arrive at once.
    pub requests: MemoryBudget,
    /// Answers until their clients have read them.
    pub answers: MemoryBudget,
}

impl Default for MemoryBudgets {
    fn default() -> Self {
        Self {
            callbacks: MemoryBudget::new("callbacks", CALLBACK_BYTES_HELD_MAX),
            files: MemoryBudget::new("files", FILE_REQUEST_BYTES_HELD_MAX),
            reports: MemoryBudget::new("reports", REPORT_BYTES_HELD_MAX),
            requests: MemoryBudget::new("requests", REQUEST_BYTES_HELD_MAX),
            answers: MemoryBudget::new("answers", ANSWER_BYTES_HELD_MAX),
        }
    }
}

impl MemoryBudgets {
    /// Brings the metrics up to date.
    pub fn publish_metrics(&self) {
        for budget in [&self.callbacks, &self.files, &self.reports, &self.requests, &self.answers] {
            budget.publish_metrics();
        }
    }
}

/// What happens to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is being received.
    Arriving,
    /// It is whole, and waits or is worked on.
    Waiting,
    /// It is an answer that is being sent.
    Leaving,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Arriving, Self::Waiting, Self::Leaving];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Arriving => "arriving",
            Self::Waiting => "waiting",
            Self::Leaving => "leaving",
        }
    }
}

/// There is no memory left in a budget, or the permit was revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetExhausted;

impl From<BudgetExhausted> for ServiceError {
    fn from(_: BudgetExhausted) -> Self {
        Self::Overloaded
    }
}

/// The budget of bodies of one kind.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    kind: &'static str,
    most: usize,
    ledger: Mutex<Ledger>,
}

/// Who holds what.
#[derive(Debug, Default)]
struct Ledger {
    usage: Usage,
    records: HashMap<HoldingId, Record>,
    next: HoldingId,
    of_stage: [usize; Stage::ALL.len()],
    refused: u64,
    revoked: u64,
}

/// A permit in the ledger. A revoked one has no record.
#[derive(Debug)]
struct Record {
    owners: OwnerPath,
    holding: Holding,
    stage: Stage,
    /// Closed when the permit is revoked.
    revoked: Arc<Semaphore>,
}

impl Ledger {
    fn set(&mut self, id: HoldingId, change: impl FnOnce(&mut Holding, &mut Stage)) {
        let Some(record) = self.records.get_mut(&id) else { return };
        let old = record.holding;
        self.of_stage[record.stage as usize] -= old.bytes;
        change(&mut record.holding, &mut record.stage);
        self.of_stage[record.stage as usize] += record.holding.bytes;
        self.usage.change(record.owners.path(), id, old, record.holding);
    }

    fn forget(&mut self, id: HoldingId) -> Option<Record> {
        self.set(id, |holding, _| *holding = Holding::default());
        self.records.remove(&id)
    }

    /// Makes the holding this large; revokes what is needed for it.
    fn grow(&mut self, id: HoldingId, bytes: usize, most: usize) -> Result<(), BudgetExhausted> {
        let record = self.records.get(&id).ok_or(BudgetExhausted)?;
        let (old, owners) = (record.holding, record.owners.clone());
        // While it grows it is compared with the others, even if it cannot be revoked later.
        self.set(id, |holding, _| *holding = Holding { bytes, revocable: true });
        while self.usage.bytes() > most {
            match self.usage.to_revoke(owners.path(), id) {
                Some(largest) if largest != id => {
                    self.revoked += 1;
                    if let Some(record) = self.forget(largest) {
                        record.revoked.close();
                    }
                }
                _ => {
                    self.refused += 1;
                    self.set(id, |holding, _| *holding = old);
                    return Err(BudgetExhausted);
                }
            }
        }
        self.set(id, |holding, _| holding.revocable = old.revocable);
        Ok(())
    }

    fn pin(&mut self, id: HoldingId, most: usize) -> Result<(), BudgetExhausted> {
        let record = self.records.get(&id).ok_or(BudgetExhausted)?;
        let (of_all, of_owner) = self.usage.pinned(record.owners.path());
        let share = (most - (of_all - of_owner).min(most)) / 2;
        if of_owner > 0 && of_owner + record.holding.bytes > share {
            self.refused += 1;
            return Err(BudgetExhausted);
        }
        self.set(id, |holding, _| holding.revocable = false);
        Ok(())
    }
}

impl MemoryBudget {
    /// A budget of `most` bytes for bodies of this kind.
    #[must_use]
    pub fn new(kind: &'static str, most: usize) -> Self {
        Self(Arc::new(Shared { kind, most, ledger: Mutex::default() }))
    }

    /// A permit that holds nothing yet and can be revoked.
    #[must_use]
    pub fn permit(&self, owners: OwnerPath, stage: Stage) -> MemoryPermit {
        let revoked = Arc::new(Semaphore::new(0));
        let mut ledger = self.lock();
        let id = ledger.next;
        ledger.next += 1;
        let holding = Holding { bytes: 0, revocable: true };
        ledger.records.insert(id, Record { owners, holding, stage, revoked: Arc::clone(&revoked) });
        drop(ledger);
        MemoryPermit { budget: self.clone(), id, bytes: 0, revoked }
    }

    /// A permit for this many bytes.
    ///
    /// # Errors
    /// [`BudgetExhausted`] when its owner holds most already.
    pub fn take(&self, owners: OwnerPath, stage: Stage, bytes: usize) -> Result<MemoryPermit, BudgetExhausted> {
        let mut permit = self.permit(owners, stage);
        permit.grow_to(bytes).map(|()| permit)
    }

    /// Bytes held by all.
    #[must_use]
    pub fn held(&self) -> usize {
        self.lock().usage.bytes()
    }

    fn publish_metrics(&self) {
        let ledger = self.lock();
        let (of_stage, (owners, most)) = (ledger.of_stage, ledger.usage.outermost());
        let (refused, revoked) = (ledger.refused, ledger.revoked);
        drop(ledger);
        let kind = self.0.kind;
        for stage in Stage::ALL {
            gauge!("sakshi_body_bytes", "kind" => kind, "stage" => stage.as_str()).set(of_stage[stage as usize] as f64);
        }
        gauge!("sakshi_body_owners", "kind" => kind).set(owners as f64);
        gauge!("sakshi_body_bytes_of_largest_owner", "kind" => kind).set(most as f64);
        counter!("sakshi_bodies_refused_total", "kind" => kind).absolute(refused);
        counter!("sakshi_bodies_dropped_total", "kind" => kind).absolute(revoked);
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right of one body to hold bytes, until this is dropped.
#[derive(Debug)]
pub struct MemoryPermit {
    budget: MemoryBudget,
    id: HoldingId,
    bytes: usize,
    /// Never has a permit of its own, so whoever waits for one waits until it is closed.
    revoked: Arc<Semaphore>,
}

impl MemoryPermit {
    /// Holds at least this many bytes.
    ///
    /// # Errors
    /// [`BudgetExhausted`]: what it holds is unchanged, or was revoked.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        if bytes > self.bytes {
            self.budget.lock().grow(self.id, bytes, self.budget.0.most)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Holds at most this many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.lock().set(self.id, |holding, _| holding.bytes = bytes);
            self.bytes = bytes;
        }
    }

    /// Counts the bytes under another stage.
    pub fn set_stage(&mut self, stage: Stage) {
        self.budget.lock().set(self.id, |_, of| *of = stage);
    }

    /// Makes the permit irrevocable, because its body is being worked on. An outermost owner may pin one body, and more up to half
    /// of what the others have not pinned.
    ///
    /// # Errors
    /// [`BudgetExhausted`]: its owner has pinned too much, or it was revoked before.
    pub fn pin(&mut self) -> Result<(), BudgetExhausted> {
        self.budget.lock().pin(self.id, self.budget.0.most)
    }

    /// Waits until it is revoked.
    pub fn revoked(&self) -> impl Future<Output = ()> + Send + use<> {
        let revoked = Arc::clone(&self.revoked);
        async move { drop(revoked.acquire_owned().await) }
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        drop(self.budget.lock().forget(self.id));
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;
    use sakshi_domain::ids::{ClientId, TxnId};

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

    /// A fresh transaction from an address.
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

    /// How many permits were revoked, and how many were refused.
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
        fn the_bound_holds_and_nothing_leaks(steps in prop::collection::vec((0_u8..4, 0_u8..4, 0_usize..60, 0_u8..6), 1..200)) {
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
}
