//! The connections to one receiver that speaks TLS: which request goes over which, who makes a new
//! one, and when one is used no more.
//!
//! What a receiver speaks is not known before somebody has connected. So one attempt connects while
//! the others wait for what comes of it; with HTTP/2 they share its connection, with HTTP/1.1 each
//! makes its own from then on, all at once. A connection that failed keeps nobody waiting: the next
//! attempts try for themselves until one succeeds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::sync::Notify;

use crate::http2::Pulse;

/// Receivers that are known before those without connections are forgotten.
const ORIGINS: usize = 4_096;
/// Requests under way over one connection, whatever the receiver permits.
const STREAMS: usize = 256;
/// A connection without requests is closed before a receiver gets tired of it: one that closes at
/// the moment of sending loses what is sent.
const IDLE: Duration = Duration::from_secs(1);
/// From then on a connection gets no new requests, so that a change of the receiver's addresses is followed.
const LIFE: Duration = Duration::from_secs(60);
/// A connection with requests that has said nothing for so long gets no further ones: it may be dead.
const SILENCE: Duration = Duration::from_secs(3);
/// For how long a receiver whose HTTP/2 is broken is spoken to in HTTP/1.1 only.
const DISTRUST: Duration = Duration::from_secs(300);
/// Connections in a row that broke before the first request until HTTP/2 is held to be broken.
const BROKEN_BEGINNINGS: u32 = 2;

/// All receivers that speak TLS.
#[derive(Debug, Default)]
pub(crate) struct Origins(Mutex<HashMap<Box<str>, Arc<Origin>>>);

impl Origins {
    /// The receiver at this host and port.
    pub(crate) fn at(&self, authority: &str) -> Arc<Origin> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = known.get(authority) {
            return Arc::clone(origin);
        }
        if known.len() >= ORIGINS {
            known.retain(|_, origin| Arc::strong_count(origin) > 1);
        }
        Arc::clone(known.entry(authority.into()).or_default())
    }
}

/// Tells the connections to one receiver apart.
pub(crate) type ConnectionId = u64;

/// One receiver.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    state: Mutex<State>,
    /// A connection was made, or was not.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    connections: Vec<Kept>,
    /// Attempts that connect, and attempts that wait for what comes of it.
    connecting: usize,
    waiting: usize,
    /// Requests that a connection which is being made will probably carry.
    expected: usize,
    /// Connections in a row that broke before their first request.
    broken: u32,
    /// Until when only HTTP/1.1 is offered.
    http1_until: Option<Instant>,
    next: ConnectionId,
}

impl Default for State {
    fn default() -> Self {
        Self { connections: Vec::new(), connecting: 0, waiting: 0, expected: usize::MAX, broken: 0, http1_until: None, next: 0 }
    }
}

/// A connection that takes further requests.
#[derive(Debug)]
struct Kept {
    id: ConnectionId,
    requests: SendRequest<Bytes>,
    pulse: Arc<Pulse>,
    active: usize,
    /// Since when there have been requests, or none.
    since: Instant,
}

impl Kept {
    fn room(&self) -> usize {
        self.requests.current_max_send_streams().min(STREAMS)
    }

    /// Whether it may get another request as far as its age and its silence go.
    fn is_fit(&self) -> bool {
        let silent = self.active > 0 && self.pulse.heard().max(self.since).elapsed() >= SILENCE;
        !silent && !self.pulse.is_lost() && self.pulse.age() < LIFE
    }

    fn is_needed(&self) -> bool {
        self.active > 0 || self.since.elapsed() < IDLE
    }
}

impl State {
    /// A place on a connection that has one.
    fn place(&mut self) -> Option<&mut Kept> {
        self.connections.retain(Kept::is_fit);
        self.connections.iter_mut().find(|kept| kept.active < kept.room())
    }

    /// Whether those who connect will have no place for one more who waits.
    fn is_short(&self) -> bool {
        self.waiting >= self.connecting.saturating_mul(self.expected.saturating_sub(1))
    }

    fn distrust(&mut self) {
        self.http1_until = Some(Instant::now() + DISTRUST);
        self.connections.clear();
        self.expected = 1;
    }
}

/// What an attempt does next.
pub(crate) enum Way {
    /// It sends its request here.
    Send(Slot),
    /// It connects.
    Connect(Connecting),
}

impl Origin {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a way for a request, which may mean to wait for another attempt's connection. With
    /// `alone` it gets a connection that nobody else uses.
    pub(crate) async fn way(self: &Arc<Self>, alone: bool) -> Way {
        if alone {
            return Way::Connect(self.connect(&mut self.state(), true));
        }
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            let _waiting = {
                let mut state = self.state();
                if let Some(kept) = state.place() {
                    return Way::Send(Slot::on(self, kept));
                }
                if state.is_short() {
                    return Way::Connect(self.connect(&mut state, false));
                }
                state.waiting += 1;
                Waiting(self)
            };
            changed.await;
        }
    }

    fn connect(self: &Arc<Self>, state: &mut State, alone: bool) -> Connecting {
        if !alone {
            state.connecting += 1;
        }
        let offer_http2 = state.http1_until.is_none_or(|until| Instant::now() >= until);
        Connecting { origin: Arc::clone(self), offer_http2, alone, settled: false }
    }

    /// Whether a connection is still to be had for requests. One that was not needed for a while is
    /// let go of here, and by this step nobody can take it any more.
    pub(crate) fn keeps(&self, id: ConnectionId) -> bool {
        let mut state = self.state();
        state.connections.retain(|kept| kept.id != id || (kept.is_fit() && kept.is_needed()));
        state.connections.iter().any(|kept| kept.id == id)
    }

    /// The connection gets no further requests.
    pub(crate) fn retire(&self, id: ConnectionId) {
        self.state().connections.retain(|kept| kept.id != id);
    }

    /// The receiver's HTTP/2 is broken, or it asks for HTTP/1.1.
    pub(crate) fn distrust(&self) {
        self.state().distrust();
    }
}

struct Waiting<'a>(&'a Origin);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

/// An attempt connects. Dropped without a result it has failed.
pub(crate) struct Connecting {
    origin: Arc<Origin>,
    /// Whether to offer HTTP/2.
    pub(crate) offer_http2: bool,
    alone: bool,
    settled: bool,
}

impl Connecting {
    /// The receiver speaks HTTP/1.1.
    pub(crate) fn http1(mut self) {
        let origin = Arc::clone(&self.origin);
        self.settle(&mut origin.state(), 1);
    }

    /// The receiver speaks HTTP/2: the place of this attempt on the connection, which others may use
    /// as well unless they have one already.
    pub(crate) fn http2(mut self, requests: SendRequest<Bytes>, pulse: Arc<Pulse>) -> (Slot, Arc<Origin>) {
        let origin = Arc::clone(&self.origin);
        let mut state = origin.state();
        state.broken = 0;
        state.next += 1;
        let mut kept = Kept { id: state.next, requests, pulse, active: 0, since: Instant::now() };
        let slot = Slot::on(&origin, &mut kept);
        let room = kept.room();
        if !self.alone && state.place().is_none() {
            state.connections.push(kept);
        }
        self.settle(&mut state, room);
        drop(state);
        (slot, origin)
    }

    /// The receiver has agreed on HTTP/2, and the connection broke before a request was sent.
    pub(crate) fn broke(mut self) {
        let origin = Arc::clone(&self.origin);
        let mut state = origin.state();
        state.broken += 1;
        if state.broken >= BROKEN_BEGINNINGS {
            state.broken = 0;
            state.distrust();
        }
        let expected = state.expected;
        self.settle(&mut state, expected);
    }

    fn settle(&mut self, state: &mut State, expected: usize) {
        if !self.alone {
            state.connecting -= 1;
            state.expected = expected;
        }
        self.settled = true;
        self.origin.changed.notify_waiters();
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if !self.settled {
            let origin = Arc::clone(&self.origin);
            self.settle(&mut origin.state(), 1);
        }
    }
}

/// A place for one request on a connection, until it is dropped.
pub(crate) struct Slot {
    origin: Arc<Origin>,
    pub(crate) id: ConnectionId,
    pub(crate) requests: SendRequest<Bytes>,
    pub(crate) pulse: Arc<Pulse>,
}

impl Slot {
    fn on(origin: &Arc<Origin>, kept: &mut Kept) -> Self {
        if kept.active == 0 {
            kept.since = Instant::now();
        }
        kept.active += 1;
        Self { origin: Arc::clone(origin), id: kept.id, requests: kept.requests.clone(), pulse: Arc::clone(&kept.pulse) }
    }

    /// The connection gets no further requests.
    pub(crate) fn retire(&self) {
        self.origin.retire(self.id);
    }

    /// The receiver's HTTP/2 is broken, or it asks for HTTP/1.1.
    pub(crate) fn distrust(&self) {
        self.origin.distrust();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.origin.state();
        if let Some(kept) = state.connections.iter_mut().find(|kept| kept.id == self.id) {
            kept.active -= 1;
            if kept.active == 0 {
                kept.since = Instant::now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncWriteExt as _, DuplexStream};

    /// Settings of a receiver that takes four requests at a time (RFC 9113 §6.5).
    const FOUR: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x04";

    /// The sending half of a connection of such an age; the rest keeps it alive.
    async fn connection(age: Duration) -> (SendRequest<Bytes>, Arc<Pulse>, impl Sized) {
        let (near, mut far): (DuplexStream, DuplexStream) = tokio::io::duplex(4_096);
        far.write_all(FOUR).await.unwrap();
        let begun = crate::http2::begin(near).await.unwrap();
        (begun.requests, Pulse::aged(age), (begun.connection, begun.pulse, far))
    }

    async fn connecting(origin: &Arc<Origin>) -> Connecting {
        match origin.way(false).await {
            Way::Connect(connecting) => connecting,
            Way::Send(_) => panic!("there is a connection"),
        }
    }

    async fn sending(origin: &Arc<Origin>) -> Slot {
        match origin.way(false).await {
            Way::Send(slot) => slot,
            Way::Connect(_) => panic!("there is no connection"),
        }
    }

    #[tokio::test]
    async fn one_connects_and_the_others_share_what_comes_of_it_as_far_as_it_goes() {
        let origin = Arc::new(Origin::default());
        let first = connecting(&origin).await;
        let mut others: Vec<_> = (0..5).map(|_| Box::pin(origin.way(false))).collect();
        for other in &mut others {
            assert!(other.now_or_never().is_none());
        }
        let (requests, pulse, _alive) = connection(Duration::ZERO).await;
        let (_slot, _) = first.http2(requests, pulse);
        let mut ways: Vec<Way> = Vec::new();
        for other in &mut others {
            ways.extend(other.now_or_never());
        }
        let sending = ways.iter().filter(|way| matches!(way, Way::Send(_))).count();
        assert_eq!((sending, ways.len()), (3, 4), "three share it, one connects, one waits for that one");
    }

    #[tokio::test]
    async fn after_http1_or_a_failure_all_connect_at_once() {
        for fails in [true, false] {
            let origin = Arc::new(Origin::default());
            let first = connecting(&origin).await;
            if fails {
                drop(first);
            } else {
                first.http1();
            }
            let _all = [connecting(&origin).await, connecting(&origin).await, connecting(&origin).await];
        }
    }

    #[tokio::test]
    async fn a_connection_gets_no_requests_when_it_is_old_or_silent_or_lost_or_was_not_needed() {
        let origin = Arc::new(Origin::default());
        let (requests, pulse, _alive) = connection(LIFE.saturating_sub(Duration::from_secs(1))).await;
        let (slot, _) = connecting(&origin).await.http2(requests, pulse);
        drop((sending(&origin).await, sending(&origin).await));
        assert!(origin.keeps(slot.id));
        // There is a request under way, and nothing was heard since.
        origin.state().connections[0].since -= SILENCE;
        drop(connecting(&origin).await);
        assert!(!origin.keeps(slot.id));

        let (requests, pulse, _alive) = connection(LIFE).await;
        let (old, _) = connecting(&origin).await.http2(requests, pulse);
        drop(connecting(&origin).await);
        assert!(!origin.keeps(old.id));

        let (requests, pulse, _alive) = connection(Duration::ZERO).await;
        let (idle, _) = connecting(&origin).await.http2(requests, pulse);
        let id = idle.id;
        drop(idle);
        assert!(origin.keeps(id));
        origin.state().connections[0].since -= IDLE;
        assert!(!origin.keeps(id));
        drop(connecting(&origin).await);
    }

    #[tokio::test]
    async fn http2_that_breaks_twice_before_the_first_request_is_not_offered_for_a_while() {
        let origin = Arc::new(Origin::default());
        for _ in 0..2 {
            let connecting = connecting(&origin).await;
            assert!(connecting.offer_http2);
            connecting.broke();
        }
        assert!(!connecting(&origin).await.offer_http2);
        origin.state().http1_until = Some(Instant::now());
        assert!(connecting(&origin).await.offer_http2);
    }
}
