//! Locks that run requests under one idempotency key one after the other. So a request that a client sends twenty times
//! at once places one order with the upstream.
//!
//! An order is placed outside of the store's step, which alone would give all twenty requests the same response, but
//! place twenty orders. A request first waits within its node, which is cheap, and then for a lease of the store, which
//! excludes other nodes.

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

/// Maximum requests with a key that one node runs or queues; each holds its body.
const REQUESTS_MAX: usize = 4_096;
/// Maximum requests under one key that one node runs or queues.
const REQUESTS_PER_KEY_MAX: usize = 64;
/// Time that a lease lasts beyond the longest wait: enough for the steps around the order.
const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// Pause between two attempts to take a lease that another node holds.
const LEASE_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The locks of one node. Clones share them.
#[derive(Clone, Debug)]
pub struct IdempotencyLocks {
    /// Queues of the keys under which requests wait or run.
    queues: Arc<Mutex<HashMap<IdempotencyScope, Arc<Queue<()>>>>>,
    /// Slots of the clients for requests that wait or run.
    requests: FairSlots<ClientId>,
    wait_max: Duration,
}

/// The lock of a key: until it is dropped, no other request under the key runs.
#[derive(Debug)]
pub(crate) struct IdempotencyLock {
    _lease: Lease,
    // Dropped before the place, which checks if the queue has other users.
    _turn: OwnedMutexGuard<()>,
    _place: QueuePlace,
}

/// A lease of the store that makes other nodes wait, until it is dropped.
#[derive(Debug)]
struct Lease {
    store: Store,
    lease: OrderLease,
}

/// A place in the queue of a key.
#[derive(Debug)]
struct QueuePlace {
    locks: IdempotencyLocks,
    scope: IdempotencyScope,
    _slot: FairSlot<ClientId>,
}

impl IdempotencyLocks {
    /// Creates the locks of a node. Requests wait for at most `wait_max`.
    #[must_use]
    pub fn new(wait_max: Duration) -> Self {
        Self { queues: Arc::default(), requests: FairSlots::new(REQUESTS_MAX), wait_max }
    }

    /// Waits until no other request under the key runs.
    ///
    /// # Errors
    /// [`ServiceError::Overloaded`] when the lock is not free in time, or too many requests of the client or under the
    /// key wait. Any error of the store.
    pub(crate) async fn acquire(
        &self,
        store: &Store,
        client: &ClientId,
        scope: IdempotencyScope,
    ) -> Result<IdempotencyLock, ServiceError> {
        let until = Instant::now() + self.wait_max;
        let (place, queue) = self.join_queue(client, scope)?;
        let turn = timeout_at(until, queue.lock_owned()).await.map_err(|_| ServiceError::Overloaded)?;
        let lease = Lease { store: store.clone(), lease: OrderLease { scope, holder: Uuid::new_v4() } };
        retry_until_true(async || Ok(store.take_order_lease(lease.lease, self.wait_max + LEASE_MARGIN).await?), until)
            .await?;
        Ok(IdempotencyLock { _lease: lease, _turn: turn, _place: place })
    }

    /// Takes a place in the queue of a key.
    fn join_queue(
        &self,
        client: &ClientId,
        scope: IdempotencyScope,
    ) -> Result<(QueuePlace, Arc<Queue<()>>), ServiceError> {
        let slot = self.requests.enter(client).ok_or(ServiceError::Overloaded)?;
        let mut queues = self.queues();
        let queue = queues.entry(scope).or_default();
        // Each request holds a reference to its queue.
        if Arc::strong_count(queue) > REQUESTS_PER_KEY_MAX {
            return Err(ServiceError::Overloaded);
        }
        let queue = Arc::clone(queue);
        drop(queues);
        Ok((QueuePlace { locks: self.clone(), scope, _slot: slot }, queue))
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<IdempotencyScope, Arc<Queue<()>>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `take` until it returns true, or until the deadline.
async fn retry_until_true(
    mut take: impl AsyncFnMut() -> Result<bool, ServiceError>,
    until: Instant,
) -> Result<(), ServiceError> {
    while !take().await? {
        if Instant::now() >= until {
            return Err(ServiceError::Overloaded);
        }
        sleep(LEASE_RETRY_PAUSE).await;
    }
    Ok(())
}

impl Drop for Lease {
    /// Ends the lease, even if the attempt to take it had no answer.
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

impl Drop for QueuePlace {
    fn drop(&mut self) {
        // Every waiting or running request holds a reference to its queue.
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

    const LONG_WAIT: Duration = Duration::from_secs(20);

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

    /// Returns the numbers of requests and of queues.
    fn count_requests_and_queues(locks: &IdempotencyLocks) -> (usize, usize) {
        (locks.requests.in_use(), locks.queues().len())
    }

    #[actix_rt::test]
    async fn requests_under_one_key_run_in_turn_and_other_keys_do_not_wait() {
        let (_directory, store) = store();
        let locks = IdempotencyLocks::new(LONG_WAIT);
        let first = locks.acquire(&store, &client(), scope(1)).await.unwrap();
        let _other = locks.acquire(&store, &client(), scope(2)).await.unwrap();
        let client = client();
        let mut next = Box::pin(locks.acquire(&store, &client, scope(1)));
        assert!((&mut next).now_or_never().is_none());
        drop(first);
        next.await.unwrap();
    }

    #[actix_rt::test]
    async fn ended_and_abandoned_requests_leave_no_queue() {
        let (_directory, store) = store();
        let locks = IdempotencyLocks::new(LONG_WAIT);
        let first = locks.acquire(&store, &client(), scope(1)).await.unwrap();
        let client = client();
        let mut abandoned = Box::pin(locks.acquire(&store, &client, scope(1)));
        assert!((&mut abandoned).now_or_never().is_none());
        drop(abandoned);
        assert_eq!(count_requests_and_queues(&locks), (1, 1));
        drop(first);
        assert_eq!(count_requests_and_queues(&locks), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn taking_a_lease_is_retried_until_it_is_free_or_the_deadline() {
        let until = Instant::now() + 10 * LEASE_RETRY_PAUSE;
        let mut attempts = 0;
        let free_at_fifth_attempt = async || {
            attempts += 1;
            Ok(attempts == 5)
        };
        assert_eq!(retry_until_true(free_at_fifth_attempt, until).await, Ok(()));
        // Four pauses of ten have passed.
        assert_eq!((attempts, Instant::now()), (5, until - 6 * LEASE_RETRY_PAUSE));
        assert_eq!(retry_until_true(async || Ok(false), until).await, Err(ServiceError::Overloaded));
        assert_eq!(Instant::now(), until);
    }

    #[actix_rt::test]
    async fn a_request_that_waits_too_long_is_refused_as_overloaded() {
        let (_directory, store) = store();
        let locks = IdempotencyLocks::new(Duration::from_millis(1));
        let _hangs = locks.acquire(&store, &client(), scope(1)).await.unwrap();
        assert_eq!(locks.acquire(&store, &client(), scope(1)).await.map(|_| ()).unwrap_err(), ServiceError::Overloaded);
        let full_queue: Vec<_> =
            (0..REQUESTS_PER_KEY_MAX).map(|_| locks.join_queue(&client(), scope(3)).unwrap()).collect();
        let is_refused =
            |client: &ClientId, key| locks.join_queue(client, key).map(|_| ()) == Err(ServiceError::Overloaded);
        assert!(is_refused(&client(), scope(3)) && !is_refused(&client(), scope(4)));
        drop(full_queue);
        assert!(!is_refused(&client(), scope(3)));
    }

    #[actix_rt::test]
    async fn hanging_requests_of_a_client_leave_places_to_others() {
        let locks = IdempotencyLocks::new(LONG_WAIT);
        let key = |number: usize| IdempotencyScope {
            digest: std::array::from_fn(|index| number.to_be_bytes()[index % 8]),
            ..scope(0)
        };
        let hanging: Vec<_> =
            (0..REQUESTS_MAX).map_while(|number| locks.join_queue(&client(), key(number)).ok()).collect();
        assert_eq!(hanging.len(), REQUESTS_MAX / 2);
        assert!(locks.join_queue(&ClientId::generate(), key(0)).is_ok());
    }
}
