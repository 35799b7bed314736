//! The pool of TLS connections to each receiver: it assigns requests to connections, opens new connections, and retires
//! old ones.
//!
//! Only the first connection shows if a receiver speaks HTTP/2. So one attempt connects while the others wait. With
//! HTTP/2 the others then share its connection; with HTTP/1.1 each opens its own. If the connection fails, each waiting
//! attempt connects for itself until one succeeds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use sakshi_trace::invariant::{Part, holds};
use tokio::sync::Notify;

use crate::activity::Activity;

/// Number of receivers at which unused ones are removed.
const ORIGINS_MAX: usize = 4_096;
/// Maximum concurrent requests of one connection, even if the receiver permits more.
const STREAMS_MAX: usize = 256;
/// An HTTP/1.1 connection carries one request at a time.
const HTTP1_CAPACITY: usize = 1;
/// Time for which a connection without requests is kept. It is short, because a receiver that closes an idle connection
/// just as a request is sent would lose the request.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// Age at which a connection gets no more new requests, so that a change of the receiver's addresses takes effect.
const AGE_MAX: Duration = Duration::from_secs(60);
/// Time without a read after which a connection in use gets no new requests; it may be dead.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Time for which HTTP/2 is not offered to a receiver whose HTTP/2 is broken.
const HTTP2_DISABLED_FOR: Duration = Duration::from_secs(300);
/// Number of consecutive connections that broke before their first request, after which HTTP/2 is considered broken.
const FAILED_STARTS_MAX: u32 = 2;

/// The pools of all receivers that speak TLS, by host and port.
#[derive(Debug, Default)]
pub(crate) struct OriginPools(Mutex<HashMap<Box<str>, Arc<OriginPool>>>);

impl OriginPools {
    pub(crate) fn get(&self, authority: &str) -> Arc<OriginPool> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(authority) {
            return Arc::clone(pool);
        }
        if pools.len() >= ORIGINS_MAX {
            pools.retain(|_, pool| Arc::strong_count(pool) > 1);
        }
        Arc::clone(pools.entry(authority.into()).or_default())
    }
}

/// Id of a connection within its pool.
pub(crate) type ConnectionId = u64;

/// The connections to one receiver.
#[derive(Debug, Default)]
pub(crate) struct OriginPool {
    state: Mutex<State>,
    /// Notified when an attempt to connect has succeeded or failed.
    changed: Notify,
}

/// The state of a pool. An attempt is one delivery of a webhook.
#[derive(Debug)]
struct State {
    connections: Vec<PooledConnection>,
    /// Number of attempts that connect.
    connecting: usize,
    /// Number of attempts that wait for a connecting attempt.
    waiting: usize,
    /// Requests that a new connection is expected to carry.
    expected_capacity: usize,
    /// Number of consecutive connections that broke before their first request.
    failed_starts: u32,
    /// Time until which only HTTP/1.1 is offered.
    http1_until: Option<Instant>,
    next_id: ConnectionId,
}

impl Default for State {
    fn default() -> Self {
        Self {
            connections: Vec::new(),
            connecting: 0,
            waiting: 0,
            expected_capacity: usize::MAX,
            failed_starts: 0,
            http1_until: None,
            next_id: 0,
        }
    }
}

/// A connection that takes further requests.
#[derive(Debug)]
struct PooledConnection {
    id: ConnectionId,
    requests: SendRequest<Bytes>,
    activity: Arc<Activity>,
    /// Requests in flight.
    active: usize,
    /// Time at which the connection last became active or idle.
    since: Instant,
}

impl PooledConnection {
    /// Returns the number of concurrent requests that are allowed.
    fn capacity(&self) -> usize {
        self.requests.current_max_send_streams().min(STREAMS_MAX)
    }

    /// Returns true if the connection may carry more requests. Ignores that its capacity may be used up.
    fn is_usable(&self) -> bool {
        let is_silent = self.active > 0 && self.activity.last_read().max(self.since).elapsed() >= SILENCE_MAX;
        !is_silent && !self.activity.write_failed() && self.activity.age() < AGE_MAX
    }

    fn is_idle(&self) -> bool {
        self.active == 0 && self.since.elapsed() >= IDLE_MAX
    }
}

impl State {
    /// Returns a usable connection with free capacity.
    fn find_available(&mut self) -> Option<&mut PooledConnection> {
        self.connections.retain(PooledConnection::is_usable);
        self.connections.iter_mut().find(|pooled| pooled.active < pooled.capacity())
    }

    /// Returns true if the connections being opened are expected to be too few for another waiting attempt.
    fn needs_connection(&self) -> bool {
        self.waiting >= self.connecting.saturating_mul(self.expected_capacity.saturating_sub(1))
    }

    fn disable_http2(&mut self) {
        self.http1_until = Some(Instant::now() + HTTP2_DISABLED_FOR);
        self.connections.clear();
        self.expected_capacity = HTTP1_CAPACITY;
    }
}

/// The next step of an attempt that needs a connection.
pub(crate) enum Checkout {
    /// Send the request on this connection.
    Reuse(StreamSlot),
    /// Open a connection.
    Connect(Connecting),
}

impl OriginPool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a connection for a request. May wait for another attempt's connection. With `exclusive`, the
    /// request gets a connection of its own.
    pub(crate) async fn checkout(self: &Arc<Self>, exclusive: bool) -> Checkout {
        if exclusive {
            return Checkout::Connect(self.begin_connecting(&mut self.state(), exclusive));
        }
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            let _waiting = {
                let mut state = self.state();
                if let Some(pooled) = state.find_available() {
                    return Checkout::Reuse(StreamSlot::take(self, pooled));
                }
                if state.needs_connection() {
                    return Checkout::Connect(self.begin_connecting(&mut state, exclusive));
                }
                state.waiting += 1;
                WaitingAttempt(self)
            };
            changed.await;
        }
    }

    /// Lets the calling attempt connect. The pool does not wait for an exclusive connection.
    fn begin_connecting(self: &Arc<Self>, state: &mut State, exclusive: bool) -> Connecting {
        if !exclusive {
            state.connecting += 1;
        }
        let offer_http2 = state.http1_until.is_none_or(|until| Instant::now() >= until);
        Connecting { pool: Arc::clone(self), offer_http2, exclusive, finished: false }
    }

    /// Returns true if a connection is still available for requests. Removes it from the pool if it is no longer usable
    /// or was idle too long.
    pub(crate) fn is_available(&self, id: ConnectionId) -> bool {
        let mut state = self.state();
        state.connections.retain(|pooled| pooled.id != id || (pooled.is_usable() && !pooled.is_idle()));
        state.connections.iter().any(|pooled| pooled.id == id)
    }

    /// Retires a connection: it gets no further requests.
    pub(crate) fn retire(&self, id: ConnectionId) {
        self.state().connections.retain(|pooled| pooled.id != id);
    }

    /// Stops offering HTTP/2, because it is broken at the receiver, or the receiver asks for HTTP/1.1.
    pub(crate) fn disable_http2(&self) {
        self.state().disable_http2();
    }
}

/// An attempt that waits for the connection of another attempt. Dropping it ends the wait.
struct WaitingAttempt<'a>(&'a OriginPool);

impl Drop for WaitingAttempt<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        holds(Part::Bounds, "a wait for a connection ends once", state.waiting > 0);
        state.waiting = state.waiting.saturating_sub(1);
    }
}

/// The task of an attempt to connect and to report the result to the pool. Dropping it without a result counts as a
/// failure.
pub(crate) struct Connecting {
    pool: Arc<OriginPool>,
    /// True to offer HTTP/2.
    pub(crate) offer_http2: bool,
    /// True if the connection is for this attempt alone.
    exclusive: bool,
    /// True once the result is reported.
    finished: bool,
}

impl Connecting {
    /// Records that the receiver speaks HTTP/1.1.
    pub(crate) fn finish_with_http1(mut self) {
        let pool = Arc::clone(&self.pool);
        self.finish(&mut pool.state(), HTTP1_CAPACITY);
    }

    /// Records that the receiver speaks HTTP/2, and returns the slot of this attempt. Others may share the connection,
    /// unless one with free capacity exists.
    pub(crate) fn finish_with_http2(
        mut self,
        requests: SendRequest<Bytes>,
        activity: Arc<Activity>,
    ) -> (StreamSlot, Arc<OriginPool>) {
        let pool = Arc::clone(&self.pool);
        let mut state = pool.state();
        state.failed_starts = 0;
        state.next_id += 1;
        let mut pooled = PooledConnection { id: state.next_id, requests, activity, active: 0, since: Instant::now() };
        let slot = StreamSlot::take(&pool, &mut pooled);
        let capacity = pooled.capacity();
        if !self.exclusive && state.find_available().is_none() {
            state.connections.push(pooled);
        }
        self.finish(&mut state, capacity);
        drop(state);
        (slot, pool)
    }

    /// Records that the receiver agreed to HTTP/2, but the connection broke before its first request.
    pub(crate) fn finish_with_failure(mut self) {
        let pool = Arc::clone(&self.pool);
        let mut state = pool.state();
        state.failed_starts += 1;
        if state.failed_starts >= FAILED_STARTS_MAX {
            state.failed_starts = 0;
            state.disable_http2();
        }
        let expected_capacity = state.expected_capacity;
        self.finish(&mut state, expected_capacity);
    }

    /// Ends the task, and wakes the waiting attempts. They expect the next connection to have this capacity.
    fn finish(&mut self, state: &mut State, expected_capacity: usize) {
        if !self.exclusive {
            holds(Part::Bounds, "a connection that is opened ends once", state.connecting > 0);
            state.connecting = state.connecting.saturating_sub(1);
            state.expected_capacity = expected_capacity;
        }
        self.finished = true;
        self.pool.changed.notify_waiters();
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if !self.finished {
            let pool = Arc::clone(&self.pool);
            self.finish(&mut pool.state(), HTTP1_CAPACITY);
        }
    }
}

/// The right to send one request on a connection; frees its capacity when dropped.
pub(crate) struct StreamSlot {
    pub(crate) pool: Arc<OriginPool>,
    pub(crate) id: ConnectionId,
    pub(crate) requests: SendRequest<Bytes>,
    pub(crate) activity: Arc<Activity>,
}

impl StreamSlot {
    /// Takes one request of a connection's capacity.
    fn take(pool: &Arc<OriginPool>, pooled: &mut PooledConnection) -> Self {
        if pooled.active == 0 {
            pooled.since = Instant::now();
        }
        pooled.active += 1;
        Self {
            pool: Arc::clone(pool),
            id: pooled.id,
            requests: pooled.requests.clone(),
            activity: Arc::clone(&pooled.activity),
        }
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        if let Some(pooled) = state.connections.iter_mut().find(|pooled| pooled.id == self.id) {
            holds(Part::Bounds, "a place on a connection is given back once", pooled.active > 0);
            pooled.active = pooled.active.saturating_sub(1);
            if pooled.active == 0 {
                pooled.since = Instant::now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use sakshi_trace::invariant::broken_by;
    use tokio::io::{AsyncWriteExt as _, DuplexStream};

    /// Settings of a receiver that accepts four concurrent requests (RFC 9113 §6.5).
    const FOUR_STREAMS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x04";

    /// Value of `exclusive` for a request that may share its connection.
    const SHARED: bool = false;

    /// Opens the sending half of a connection of this age; the third value keeps it alive.
    async fn connection(age: Duration) -> (SendRequest<Bytes>, Arc<Activity>, impl Sized) {
        let (client, mut receiver): (DuplexStream, DuplexStream) = tokio::io::duplex(4_096);
        receiver.write_all(FOUR_STREAMS).await.unwrap();
        let handshake = crate::http2::handshake(client).await.unwrap();
        (handshake.requests, Activity::aged(age), (handshake.connection, handshake.activity, receiver))
    }

    /// Checks out a connection, and fails unless a new one must be opened.
    async fn expect_connect(pool: &Arc<OriginPool>) -> Connecting {
        match pool.checkout(SHARED).await {
            Checkout::Connect(connecting) => connecting,
            Checkout::Reuse(_) => panic!("there is a connection"),
        }
    }

    /// Checks out a connection, and fails unless there is one.
    async fn expect_reuse(pool: &Arc<OriginPool>) -> StreamSlot {
        match pool.checkout(SHARED).await {
            Checkout::Reuse(slot) => slot,
            Checkout::Connect(_) => panic!("there is no connection"),
        }
    }

    #[tokio::test]
    async fn one_attempt_connects_and_the_others_share_its_connection_up_to_its_capacity() {
        let pool = Arc::new(OriginPool::default());
        let first = expect_connect(&pool).await;
        let mut others: Vec<_> = (0..5).map(|_| Box::pin(pool.checkout(SHARED))).collect();
        for other in &mut others {
            assert!(other.now_or_never().is_none());
        }
        let (requests, activity, _alive) = connection(Duration::ZERO).await;
        let (_slot, _) = first.finish_with_http2(requests, activity);
        let mut checkouts: Vec<Checkout> = Vec::new();
        for other in &mut others {
            checkouts.extend(other.now_or_never());
        }
        let sharing = checkouts.iter().filter(|checkout| matches!(checkout, Checkout::Reuse(_))).count();
        assert_eq!((sharing, checkouts.len()), (3, 4), "three share the connection, one connects, and one waits");
    }

    #[tokio::test]
    async fn after_http1_or_a_failure_every_attempt_connects() {
        for fails in [true, false] {
            let pool = Arc::new(OriginPool::default());
            let first = expect_connect(&pool).await;
            if fails {
                drop(first);
            } else {
                first.finish_with_http1();
            }
            let _all = [expect_connect(&pool).await, expect_connect(&pool).await, expect_connect(&pool).await];
        }
    }

    #[tokio::test]
    async fn an_old_silent_or_idle_connection_gets_no_requests() {
        let pool = Arc::new(OriginPool::default());
        let (requests, activity, _alive) = connection(AGE_MAX.saturating_sub(Duration::from_secs(1))).await;
        let (slot, _) = expect_connect(&pool).await.finish_with_http2(requests, activity);
        drop((expect_reuse(&pool).await, expect_reuse(&pool).await));
        assert!(pool.is_available(slot.id));
        // A request is in flight, and nothing was read after it.
        pool.state().connections[0].since -= SILENCE_MAX;
        drop(expect_connect(&pool).await);
        assert!(!pool.is_available(slot.id));

        let (requests, activity, _alive) = connection(AGE_MAX).await;
        let (old, _) = expect_connect(&pool).await.finish_with_http2(requests, activity);
        drop(expect_connect(&pool).await);
        assert!(!pool.is_available(old.id));

        let (requests, activity, _alive) = connection(Duration::ZERO).await;
        let (idle, _) = expect_connect(&pool).await.finish_with_http2(requests, activity);
        let id = idle.id;
        drop(idle);
        assert!(pool.is_available(id));
        pool.state().connections[0].since -= IDLE_MAX;
        assert!(!pool.is_available(id));
        drop(expect_connect(&pool).await);
    }

    #[tokio::test]
    async fn http2_is_not_offered_after_it_breaks_twice_before_the_first_request() {
        let pool = Arc::new(OriginPool::default());
        for _ in 0..2 {
            let connecting = expect_connect(&pool).await;
            assert!(connecting.offer_http2);
            connecting.finish_with_failure();
        }
        assert!(!expect_connect(&pool).await.offer_http2);
        pool.state().http1_until = Some(Instant::now());
        assert!(expect_connect(&pool).await.offer_http2);
    }

    #[tokio::test]
    async fn a_double_release_breaks_an_invariant_and_no_count_becomes_negative() {
        let pool = Arc::new(OriginPool::default());
        assert_eq!(broken_by(|| drop(WaitingAttempt(&pool))), ["a wait for a connection ends once"]);
        let connecting = expect_connect(&pool).await;
        pool.state().connecting = 0;
        let (requests, activity, _alive) = connection(Duration::ZERO).await;
        let mut opened = None;
        assert_eq!(
            broken_by(|| opened = Some(connecting.finish_with_http2(requests, activity))),
            ["a connection that is opened ends once"]
        );
        pool.state().connections[0].active = 0;
        assert_eq!(broken_by(|| drop(opened)), ["a place on a connection is given back once"]);
        let state = pool.state();
        assert_eq!((state.waiting, state.connecting, state.connections[0].active), (0, 0, 0));
    }
}
