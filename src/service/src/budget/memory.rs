//! Bytes that the service holds for clients: arriving requests, waiting requests, and responses being sent.
//!
//! Each kind of body has a budget, charged with the bytes present, never with a declared length. When a budget is used
//! up, the largest holding of the owner that holds most is revoked, chosen from the outermost owner inwards. A request
//! is refused only when its own holding would be revoked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{counter, gauge};
use sakshi_domain::limits::{
    ANSWER_BYTES_HELD_MAX, CALLBACK_BYTES_HELD_MAX, FILE_REQUEST_BYTES_HELD_MAX, REPORT_BYTES_HELD_MAX,
    REQUEST_BYTES_HELD_MAX,
};
use sakshi_trace::invariant::{Part, holds};
use tokio::sync::Semaphore;

use super::owner::OwnerPath;
use super::usage::{Holding, HoldingId, Usage};
use crate::error::ServiceError;

/// All budgets of a node, shared by its workers and listeners.
#[derive(Clone, Debug)]
pub struct MemoryBudgets {
    /// The identity app's callbacks.
    pub callbacks: MemoryBudget,
    /// Requests with a file.
    pub files: MemoryBudget,
    /// Upstreams' reports.
    pub reports: MemoryBudget,
    /// Other request bodies that do not arrive at once.
    pub requests: MemoryBudget,
    /// Responses, until their clients have read them.
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
    /// Updates the metrics.
    pub fn publish_metrics(&self) {
        for budget in [&self.callbacks, &self.files, &self.reports, &self.requests, &self.answers] {
            budget.publish_metrics();
        }
    }
}

/// Stage of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Being received.
    Arriving,
    /// Complete, and waiting or being processed.
    Waiting,
    /// A response being sent.
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

/// The error for a used-up budget or a revoked permit.
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

/// The limit and the permits of a budget.
#[derive(Debug)]
struct Shared {
    kind: &'static str,
    bytes_max: usize,
    ledger: Mutex<Ledger>,
}

/// Holdings of all owners.
#[derive(Debug, Default)]
struct Ledger {
    usage: Usage,
    records: HashMap<HoldingId, Record>,
    next_id: HoldingId,
    bytes_by_stage: [usize; Stage::ALL.len()],
    /// Number of refused permits, for metrics.
    refused: u64,
    /// Number of revoked permits, for metrics.
    revoked: u64,
}

/// A permit in the ledger. A revoked permit has no record.
#[derive(Debug)]
struct Record {
    owners: OwnerPath,
    holding: Holding,
    stage: Stage,
    /// Closed when the permit is revoked.
    revoked: Arc<Semaphore>,
}

impl Ledger {
    /// Changes the record of a permit and all counts with it. Does nothing after a revocation.
    fn update(&mut self, id: HoldingId, change: impl FnOnce(&mut Holding, &mut Stage)) {
        let Some(record) = self.records.get_mut(&id) else { return };
        let old = record.holding;
        let bytes_by_stage = &mut self.bytes_by_stage[record.stage as usize];
        holds(Part::Bounds, "memory of a stage is given back once", *bytes_by_stage >= old.bytes);
        *bytes_by_stage = bytes_by_stage.saturating_sub(old.bytes);
        change(&mut record.holding, &mut record.stage);
        self.bytes_by_stage[record.stage as usize] += record.holding.bytes;
        self.usage.change(record.owners.path(), id, old, record.holding);
        let total: usize = self.bytes_by_stage.iter().sum();
        holds(Part::Bounds, "memory of all stages is that of all owners", total == self.usage.bytes());
    }

    /// Removes a permit and the bytes that it holds.
    fn remove(&mut self, id: HoldingId) -> Option<Record> {
        self.update(id, |holding, _| *holding = Holding::default());
        self.records.remove(&id)
    }

    /// Grows a holding to this size; revokes other holdings as needed.
    fn grow(&mut self, id: HoldingId, bytes: usize, bytes_max: usize) -> Result<(), BudgetExhausted> {
        let record = self.records.get(&id).ok_or(BudgetExhausted)?;
        let (old, owners) = (record.holding, record.owners.clone());
        // During the growth the holding is compared with the others, even if it cannot be revoked later.
        self.update(id, |holding, _| *holding = Holding { bytes, revocable: true });
        while self.usage.bytes() > bytes_max {
            match self.usage.choose_to_revoke(owners.path(), id) {
                Some(largest) if largest != id => {
                    self.revoked += 1;
                    if let Some(record) = self.remove(largest) {
                        record.revoked.close();
                    }
                }
                _ => {
                    self.refused += 1;
                    self.update(id, |holding, _| *holding = old);
                    return Err(BudgetExhausted);
                }
            }
        }
        self.update(id, |holding, _| holding.revocable = old.revocable);
        self.check_bound(bytes_max);
        Ok(())
    }

    fn check_bound(&self, bytes_max: usize) {
        holds(Part::Bounds, "memory that is granted is within its budget", self.usage.bytes() <= bytes_max);
    }

    /// Makes a permit irrevocable; see [`MemoryPermit::pin`].
    fn pin(&mut self, id: HoldingId, bytes_max: usize) -> Result<(), BudgetExhausted> {
        let record = self.records.get(&id).ok_or(BudgetExhausted)?;
        let (pinned_by_all, pinned_by_owner) = self.usage.pinned_bytes(record.owners.path());
        // Half of the bytes that other owners have not pinned.
        let share = (bytes_max - (pinned_by_all - pinned_by_owner).min(bytes_max)) / 2;
        if pinned_by_owner > 0 && pinned_by_owner + record.holding.bytes > share {
            self.refused += 1;
            return Err(BudgetExhausted);
        }
        self.update(id, |holding, _| holding.revocable = false);
        Ok(())
    }
}

impl MemoryBudget {
    /// Creates a budget of `bytes_max` bytes for bodies of this kind.
    #[must_use]
    pub fn new(kind: &'static str, bytes_max: usize) -> Self {
        Self(Arc::new(Shared { kind, bytes_max, ledger: Mutex::default() }))
    }

    /// Creates a revocable permit for 0 bytes.
    #[must_use]
    pub fn permit(&self, owners: OwnerPath, stage: Stage) -> MemoryPermit {
        let revoked = Arc::new(Semaphore::new(0));
        let mut ledger = self.lock();
        let id = ledger.next_id;
        ledger.next_id += 1;
        let holding = Holding { bytes: 0, revocable: true };
        ledger.records.insert(id, Record { owners, holding, stage, revoked: Arc::clone(&revoked) });
        drop(ledger);
        MemoryPermit { budget: self.clone(), id, bytes: 0, revoked }
    }

    /// Creates a permit for this many bytes.
    ///
    /// # Errors
    /// [`BudgetExhausted`] when the owner already holds most.
    pub fn take(&self, owners: OwnerPath, stage: Stage, bytes: usize) -> Result<MemoryPermit, BudgetExhausted> {
        let mut permit = self.permit(owners, stage);
        permit.grow_to(bytes).map(|()| permit)
    }

    /// Returns the bytes that all owners hold.
    #[must_use]
    pub fn bytes_held(&self) -> usize {
        self.lock().usage.bytes()
    }

    fn publish_metrics(&self) {
        let ledger = self.lock();
        let (bytes_by_stage, (owners, largest)) = (ledger.bytes_by_stage, ledger.usage.outermost());
        let (refused, revoked) = (ledger.refused, ledger.revoked);
        drop(ledger);
        let kind = self.0.kind;
        for stage in Stage::ALL {
            gauge!("sakshi_body_bytes", "kind" => kind, "stage" => stage.as_str())
                .set(bytes_by_stage[stage as usize] as f64);
        }
        gauge!("sakshi_body_owners", "kind" => kind).set(owners as f64);
        gauge!("sakshi_body_bytes_of_largest_owner", "kind" => kind).set(largest as f64);
        counter!("sakshi_bodies_refused_total", "kind" => kind).absolute(refused);
        counter!("sakshi_bodies_dropped_total", "kind" => kind).absolute(revoked);
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right of one body to hold bytes, until the permit is dropped.
#[derive(Debug)]
pub struct MemoryPermit {
    budget: MemoryBudget,
    id: HoldingId,
    bytes: usize,
    /// Has no permits, so a wait for one ends only when the semaphore is closed.
    revoked: Arc<Semaphore>,
}

impl MemoryPermit {
    /// Grows the holding to at least this many bytes.
    ///
    /// # Errors
    /// [`BudgetExhausted`] when the budget is used up and the holding unchanged, or the permit was revoked.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        if bytes > self.bytes {
            self.budget.lock().grow(self.id, bytes, self.budget.0.bytes_max)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Shrinks the holding to at most this many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.lock().update(self.id, |holding, _| holding.bytes = bytes);
            self.bytes = bytes;
        }
    }

    /// Moves the bytes to another stage.
    pub fn set_stage(&mut self, stage: Stage) {
        self.budget.lock().update(self.id, |_, current| *current = stage);
    }

    /// Makes the permit irrevocable, because its body is being processed. An outermost owner may always pin one body,
    /// and more up to half of the bytes that others have not pinned.
    ///
    /// # Errors
    /// [`BudgetExhausted`] when the owner has pinned too much, or the permit was revoked.
    pub fn pin(&mut self) -> Result<(), BudgetExhausted> {
        self.budget.lock().pin(self.id, self.budget.0.bytes_max)
    }

    /// Makes a pinned permit revocable again.
    pub fn unpin(&mut self) {
        self.budget.lock().update(self.id, |holding, _| holding.revocable = true);
    }

    /// Waits until the permit is revoked.
    pub fn wait_until_revoked(&self) -> impl Future<Output = ()> + Send + use<> {
        let revoked = Arc::clone(&self.revoked);
        async move { drop(revoked.acquire_owned().await) }
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        drop(self.budget.lock().remove(self.id));
    }
}

#[cfg(test)]
mod tests;
