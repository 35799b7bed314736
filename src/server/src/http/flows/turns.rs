//! Requests under one idempotency key take turns, so that a client that sends one request twenty times
//! at once has one order placed.
//!
//! The order is placed outside of the store's step, which alone would keep the answers apart and not
//! the orders. Turns are taken within a node first, where waiting costs nothing, and then among the
//! nodes by a lease of the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sakshi_store::{IdempotencyScope, OrderLease, Store};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as Queue, OwnedMutexGuard};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::http::error::ApiError;

/// Requests with a key that one node carries out or lets wait; each holds what it has read.
const AT_ONCE_MAX: usize = 4_096;
/// How long a lease lasts beyond the time that an upstream may take: enough for the steps around its order.
const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// Between two looks whether another node has ended its turn.
const LOOK: Duration = Duration::from_millis(50);

/// The turns of one node. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Turns {
    lines: Arc<Mutex<Lines>>,
    patience: Duration,
}

/// The lines of all keys.
#[derive(Debug, Default)]
struct Lines {
    /// Each is here as long as a request stands in it.
    by_key: HashMap<IdempotencyScope, Line>,
    /// In all of them together.
    requests: usize,
}

#[derive(Debug, Default)]
struct Line {
    queue: Arc<Queue<()>>,
    requests: usize,
}

/// The only request under its key, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _lease: Lease,
    // Dropped before the place, so that a line without requests is a free one.
    _first: OwnedMutexGuard<()>,
    _place: Place,
}

/// Keeps other nodes waiting, until this is dropped.
#[derive(Debug)]
struct Lease {
    store: Arc<dyn Store>,
    lease: OrderLease,
}

/// A place in the line of a key.
#[derive(Debug)]
struct Place {
    turns: Turns,
    scope: IdempotencyScope,
}

impl Turns {
    /// No request yet; none will wait longer than this.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self { lines: Arc::default(), patience }
    }

    /// Waits for the turn of a request.
    ///
    /// # Errors
    /// [`ApiError::Overloaded`] when it does not come in time, or too many wait: the one before may
    /// have hung, and the next would only hang as long.
    pub(super) async fn take(&self, store: &Arc<dyn Store>, scope: IdempotencyScope) -> Result<Turn, ApiError> {
        let until = Instant::now() + self.patience;
        let (place, queue) = self.line_up(scope)?;
        let first = timeout_at(until, queue.lock_owned()).await.map_err(|_| ApiError::Overloaded)?;
        let lease = Lease { store: Arc::clone(store), lease: OrderLease { scope, holder: Uuid::new_v4() } };
        while !store.take_order_lease(lease.lease, self.patience + LEASE_MARGIN).await? {
            if Instant::now() >= until {
                return Err(ApiError::Overloaded);
            }
            sleep(LOOK).await;
        }
        Ok(Turn { _lease: lease, _first: first, _place: place })
    }

    fn line_up(&self, scope: IdempotencyScope) -> Result<(Place, Arc<Queue<()>>), ApiError> {
        let mut lines = self.lines();
        if lines.requests >= AT_ONCE_MAX {
            return Err(ApiError::Overloaded);
        }
        lines.requests += 1;
        let line = lines.by_key.entry(scope).or_default();
        line.requests += 1;
        Ok((Place { turns: self.clone(), scope }, Arc::clone(&line.queue)))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease {
    /// Also when it was not taken, or nobody knows whether it was.
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
        let mut lines = self.turns.lines();
        lines.requests -= 1;
        if let Entry::Occupied(mut line) = lines.by_key.entry(self.scope) {
            line.get_mut().requests -= 1;
            if line.get().requests == 0 {
                line.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use sakshi_domain::ids::ClientId;

    use super::*;
    use crate::universe::Universe;

    const PLENTY: Duration = Duration::from_secs(20);

    fn scope(key: u8) -> IdempotencyScope {
        IdempotencyScope { partition: "cl_1".parse::<ClientId>().unwrap().partition(), digest: [key; 32] }
    }

    /// Requests and lines that there are.
    fn left(turns: &Turns) -> (usize, usize) {
        let lines = turns.lines();
        (lines.requests, lines.by_key.len())
    }

    #[actix_rt::test]
    async fn requests_of_one_key_go_one_after_the_other_and_those_of_another_do_not_wait() {
        let universe = Universe::new();
        let (store, turns) = (universe.shared_store(), Turns::new(PLENTY));
        let first = turns.take(&store, scope(1)).await.unwrap();
        let _other = turns.take(&store, scope(2)).await.unwrap();
        let mut next = Box::pin(turns.take(&store, scope(1)));
        assert!((&mut next).now_or_never().is_none());
        drop(first);
        next.await.unwrap();
    }

    #[actix_rt::test]
    async fn nothing_is_left_of_requests_that_are_over_or_were_given_up() {
        let universe = Universe::new();
        let (store, turns) = (universe.shared_store(), Turns::new(PLENTY));
        let first = turns.take(&store, scope(1)).await.unwrap();
        let mut given_up = Box::pin(turns.take(&store, scope(1)));
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        assert_eq!(left(&turns), (1, 1));
        drop(first);
        assert_eq!(left(&turns), (0, 0));
    }

    #[actix_rt::test]
    async fn a_request_whose_turn_does_not_come_is_told_to_come_again() {
        let universe = Universe::new();
        let (store, turns) = (universe.shared_store(), Turns::new(Duration::from_millis(1)));
        let _hangs = turns.take(&store, scope(1)).await.unwrap();
        assert_eq!(turns.take(&store, scope(1)).await.map(|_| ()).unwrap_err(), ApiError::Overloaded);
        let many: Vec<_> = (1..AT_ONCE_MAX).map(|_| turns.line_up(scope(3)).unwrap()).collect();
        assert_eq!(turns.line_up(scope(4)).map(|_| ()).unwrap_err(), ApiError::Overloaded);
        drop(many);
        assert!(turns.line_up(scope(4)).is_ok());
    }
}
