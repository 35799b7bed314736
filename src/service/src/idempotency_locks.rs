//! Requests under one idempotency key run one after the other. A client that sends one request twenty times at once
//! thus has one order placed with the upstream.
//!
//! The order is placed outside of the store's step. That step alone would give all of them the same response and still
//! place twenty orders. A request waits within its node first, where waiting costs nothing, and then for a lease of the
//! store, which keeps other nodes out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sakshi_domain::ids::ClientId;
use sakshi_store::{IdempotencyScope, OrderLease, Store};
use sakshi_supervision::{FairSlot, FairSlots};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as Queue, OwnedMutexGuard};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::ServiceError;

/// Number of requests with a key that one node runs or lets wait; each holds its body.
const AT_ONCE_MAX: usize = 4_096;
/// Number of such requests under one key.
const OF_A_KEY_MAX: usize = 64;
/// Time that a lease lasts beyond the upstream's limit: enough for the steps around its order.
const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// Pause between two checks whether another node has released its lease.
const LOOK: Duration = Duration::from_millis(50);

/// The locks of one node. Cloning shares them.
#[derive(Clone, Debug)]
pub struct IdempotencyLocks {
    /// Has a key as long as a request under it waits or runs.
    queues: Arc<Mutex<HashMap<IdempotencyScope, Arc<Queue<()>>>>>,
    requests: FairSlots<ClientId>,
    patience: Duration,
}

/// The only request under its key, until this is dropped.
#[derive(Debug)]
pub(crate) struct IdempotencyLock {
    _lease: Lease,
    // Dropped before the place, which checks whether anybody else has the queue.
    _first: OwnedMutexGuard<()>,
    _place: Place,
}

/// A lease that keeps other nodes waiting, until this is dropped.
#[derive(Debug)]
struct Lease {
    store: Store,
    lease: OrderLease,
}

/// A place in the queue of a key.
#[derive(Debug)]
struct Place {
    locks: IdempotencyLocks,
    scope: IdempotencyScope,
    _slot: FairSlot<ClientId>,
}

impl IdempotencyLocks {
    /// Creates locks without requests; none will wait longer than `patience`.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self { queues: Arc::default(), requests: FairSlots::new(AT_ONCE_MAX), patience }
    }

    /// Waits until no other request under the key runs.
    ///
    /// # Errors
    /// [`ServiceError::Overloaded`] when the lock is not free in time, or too many of the client or under the key wait.
    /// The request before may hang, and the next would only hang as long.
    pub(crate) async fn acquire(
        &self,
        store: &Store,
        client: &ClientId,
        scope: IdempotencyScope,
    ) -> Result<IdempotencyLock, ServiceError> {
        let until = Instant::now() + self.patience;
        let (place, queue) = self.join_queue(client, scope)?;
        let first = timeout_at(until, queue.lock_owned()).await.map_err(|_| ServiceError::Overloaded)?;
        let lease = Lease { store: store.clone(), lease: OrderLease { scope, holder: Uuid::new_v4() } };
        until_taken(async || Ok(store.take_order_lease(lease.lease, self.patience + LEASE_MARGIN).await?), until)
            .await?;
        Ok(IdempotencyLock { _lease: lease, _first: first, _place: place })
    }

    fn join_queue(&self, client: &ClientId, scope: IdempotencyScope) -> Result<(Place, Arc<Queue<()>>), ServiceError> {
        let slot = self.requests.enter(client).ok_or(ServiceError::Overloaded)?;
        let mut queues = self.queues();
        let queue = queues.entry(scope).or_default();
        // Each request has a reference.
        if Arc::strong_count(queue) > OF_A_KEY_MAX {
            return Err(ServiceError::Overloaded);
        }
        let queue = Arc::clone(queue);
        drop(queues);
        Ok((Place { locks: self.clone(), scope, _slot: slot }, queue))
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<IdempotencyScope, Arc<Queue<()>>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn until_taken(
    mut take: impl AsyncFnMut() -> Result<bool, ServiceError>,
    until: Instant,
) -> Result<(), ServiceError> {
    while !take().await? {
        if Instant::now() >= until {
            return Err(ServiceError::Overloaded);
        }
        sleep(LOOK).await;
    }
    Ok(())
}

impl Drop for Lease {
    /// Ends the lease, also when it is unknown whether it was taken.
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let ended = self.store.end_order_lease(self.lease);
        runtime.spawn(async move {
            if let Err(error) = ended.await {
                tracing::warn!(%error, "the lease on an order could not be given back; it ends by itself");
            }
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Every waiter and holder of the queue has a reference of its own.
        if let Entry::Occupied(queue) = self.locks.queues().entry(self.scope)
            && Arc::strong_count(queue.get()) == 1
        {
            queue.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use sakshi_domain::clock::SystemClock;

    use super::*;
    use crate::test_store;

    const PLENTY: Duration = Duration::from_secs(20);

    fn store() -> (tempfile::TempDir, Store) {
        let (directory, store) = test_store::store(Arc::new(SystemClock));
        (directory, (*store).clone())
    }

    fn client() -> ClientId {
        "cl_1".parse().unwrap()
    }

    fn scope(key: u8) -> IdempotencyScope {
        IdempotencyScope { partition: client().partition(), digest: [key; 32] }
    }

    /// Returns the numbers of requests and queues.
    fn left(locks: &IdempotencyLocks) -> (usize, usize) {
        (locks.requests.taken(), locks.queues().len())
    }

    #[actix_rt::test]
    async fn requests_under_one_key_go_one_after_the_other_and_those_under_another_do_not_wait() {
        let (_directory, store) = store();
        let locks = IdempotencyLocks::new(PLENTY);
        let first = locks.acquire(&store, &client(), scope(1)).await.unwrap();
        let _other = locks.acquire(&store, &client(), scope(2)).await.unwrap();
        let client = client();
        let mut next = Box::pin(locks.acquire(&store, &client, scope(1)));
        assert!((&mut next).now_or_never().is_none());
        drop(first);
        next.await.unwrap();
    }

    #[actix_rt::test]
    async fn nothing_is_left_of_requests_that_are_over_or_were_given_up() {
        let (_directory, store) = store();
        let locks = IdempotencyLocks::new(PLENTY);
        let first = locks.acquire(&store, &client(), scope(1)).await.unwrap();
        let client = client();
        let mut given_up = Box::pin(locks.acquire(&store, &client, scope(1)));
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        assert_eq!(left(&locks), (1, 1));
        drop(first);
        assert_eq!(left(&locks), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_another_node_has_is_asked_for_again_until_it_is_free_or_the_time_is_over() {
        let until = Instant::now() + 10 * LOOK;
        let mut asked = 0;
        let free_at_last = async || {
            asked += 1;
            Ok(asked == 5)
        };
        assert_eq!(until_taken(free_at_last, until).await, Ok(()));
        assert_eq!((asked, Instant::now()), (5, until - 6 * LOOK));
        assert_eq!(until_taken(async || Ok(false), until).await, Err(ServiceError::Overloaded));
        assert_eq!(Instant::now(), until);
    }

    #[actix_rt::test]
    async fn a_request_that_waits_too_long_is_told_to_come_again() {
        let (_directory, store) = store();
        let locks = IdempotencyLocks::new(Duration::from_millis(1));
        let _hangs = locks.acquire(&store, &client(), scope(1)).await.unwrap();
        assert_eq!(locks.acquire(&store, &client(), scope(1)).await.map(|_| ()).unwrap_err(), ServiceError::Overloaded);
        let many: Vec<_> = (0..OF_A_KEY_MAX).map(|_| locks.join_queue(&client(), scope(3)).unwrap()).collect();
        let is_refused =
            |client: &ClientId, key| locks.join_queue(client, key).map(|_| ()) == Err(ServiceError::Overloaded);
        assert!(is_refused(&client(), scope(3)) && !is_refused(&client(), scope(4)));
        drop(many);
        assert!(!is_refused(&client(), scope(3)));
    }

    #[actix_rt::test]
    async fn a_client_whose_requests_hang_under_many_keys_leaves_places_to_others() {
        let locks = IdempotencyLocks::new(PLENTY);
        let key = |number: usize| IdempotencyScope {
            digest: std::array::from_fn(|at| number.to_be_bytes()[at % 8]),
            ..scope(0)
        };
        let hang: Vec<_> = (0..AT_ONCE_MAX).map_while(|number| locks.join_queue(&client(), key(number)).ok()).collect();
        assert_eq!(hang.len(), AT_ONCE_MAX / 2);
        assert!(locks.join_queue(&ClientId::generate(), key(0)).is_ok());
    }
}
