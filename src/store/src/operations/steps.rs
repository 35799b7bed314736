//! The steps of transactions that are under way, for the store of one node: each reads before it commits, and a copy of the transaction
//! that was taken in between would never learn of its end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::ids::TxnId;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

type Locks = HashMap<TxnId, Arc<RwLock<()>>>;

/// Transactions with steps in flight, or with a copy that waits for them.
#[derive(Debug, Default)]
pub(super) struct Steps(Mutex<Locks>);

/// A step, under way until it is dropped.
pub(super) struct Step<'a> {
    steps: &'a Steps,
    id: TxnId,
    under_way: Option<OwnedRwLockReadGuard<()>>,
}

impl Steps {
    /// Begins a step, at once unless a copy waits for others.
    pub(super) async fn begin(&self, id: TxnId) -> Step<'_> {
        let mut step = Step { steps: self, id, under_way: None };
        let lock = self.of(id);
        step.under_way = Some(match Arc::clone(&lock).try_read_owned() {
            Ok(under_way) => under_way,
            Err(_) => lock.read_owned().await,
        });
        step
    }

    /// Waits until the steps that were begun before have ended.
    pub(super) async fn ended(&self, id: TxnId) {
        let lock = self.locks().get(&id).cloned();
        if let Some(lock) = lock {
            let _forgets = Step { steps: self, id, under_way: None };
            drop(lock.write_owned().await);
        }
    }

    fn of(&self, id: TxnId) -> Arc<RwLock<()>> {
        Arc::clone(self.locks().entry(id).or_default())
    }

    fn locks(&self) -> MutexGuard<'_, Locks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.under_way = None;
        let mut locks = self.steps.locks();
        // Every other holder took its lock from the map.
        if locks.get(&self.id).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::join;
    use sakshi_domain::ids::Partition;

    use super::*;

    #[tokio::test]
    async fn a_copy_waits_for_the_steps_that_were_begun_before_and_nothing_is_left() {
        let steps = Steps::default();
        let partition = Partition::all().next().unwrap();
        let (id, other) = (TxnId::generate(partition, 1), TxnId::generate(partition, 1));
        let (first, second) = join(steps.begin(id), steps.begin(id)).await;
        let mut copy = Box::pin(steps.ended(id));
        assert_eq!(steps.ended(other).now_or_never(), Some(()));
        assert_eq!(copy.as_mut().now_or_never(), None);
        drop(first);
        assert_eq!(copy.as_mut().now_or_never(), None);
        let mut later = Box::pin(steps.begin(id));
        assert!(later.as_mut().now_or_never().is_none());
        drop(second);
        copy.await;
        drop(later.await);
        assert!(steps.locks().is_empty());
    }

    #[tokio::test]
    async fn a_copy_and_a_step_that_are_given_up_hold_nobody_up() {
        let steps = Steps::default();
        let id = TxnId::generate(Partition::all().next().unwrap(), 1);
        let step = steps.begin(id).await;
        let mut copy = Box::pin(steps.ended(id));
        assert_eq!(copy.as_mut().now_or_never(), None);
        drop(copy);
        drop(steps.begin(id).await);
        drop(step);
        assert!(steps.locks().is_empty());
    }
}
