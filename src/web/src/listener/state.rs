//! The state that a connection shares with its requests. It keeps the stream from reading ahead of the responses. It
//! tells the table the owner and phase of the connection.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Waker};

use actix_web::HttpRequest;
use sakshi_service::ServiceError;
use tokio::task::AbortHandle;

use crate::error::ApiError;

/// The part of a request that may be read from a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The head of the next request.
    #[default]
    Head,
    /// At most this many more bytes of the body of the request in flight.
    Body(u64),
    /// The chunked body of the request in flight.
    Chunked,
    /// Nothing: the request in flight was read, and the next one waits for its response.
    Nothing,
}

/// The phase of a connection. Within one address, earlier phases are evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// No response was sent on the connection, and no request is in flight.
    Unused,
    /// No request is in flight.
    Idle,
    /// Part of a response has been sent, and more follows.
    Answering,
    /// The body of a request arrives.
    Arriving,
    /// A response is being computed.
    Computing,
}

/// The state of one connection, shared with the requests on it.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    /// Subscriber at the other end.
    peer: Cell<Option<IpAddr>>,
    /// The peer, or the client behind a trusted proxy's request in flight. `None` between two requests of a proxy,
    /// because the next request may be from another client.
    owner: Cell<Option<IpAddr>>,
    /// True if the connection serves probes only, because there are too many connections.
    is_for_probes: Cell<bool>,
    /// True if the client has sent no certificate, so that it may send probes only.
    lacks_certificate: Cell<bool>,
    reads: Cell<Reads>,
    /// True if part of the head of the next request was handed over.
    has_head_begun: Cell<bool>,
    /// Body bytes that were handed over together with the head.
    after_head: Cell<u64>,
    /// Last activity, as a tick of the worker's counter.
    active_at: Cell<u64>,
    is_closing: Cell<bool>,
    /// True if the client has sent bytes that may not be read yet.
    has_pending_input: Cell<bool>,
    /// True if a request was read and nothing of its response has been sent.
    owes_answer: Cell<bool>,
    /// True if a response was sent on the connection.
    has_answered: Cell<bool>,
    /// True if the library has ended the connection.
    has_ended: Cell<bool>,
    task: RefCell<Option<Waker>>,
}

impl ConnectionState {
    /// Returns the part that may be read now.
    pub(super) const fn reads(&self) -> Reads {
        self.reads.get()
    }

    /// Returns true before the first byte of the head of the next request.
    pub(super) const fn awaits_head(&self) -> bool {
        matches!(self.reads.get(), Reads::Head) && !self.has_head_begun.get()
    }

    /// Notes that `bytes` were read without empty lines before the head. The last `after_head` of them are of the body.
    pub(super) fn note_head(&self, bytes: usize, after_head: usize) {
        self.has_head_begun.set(self.has_head_begun.get() || bytes > 0);
        self.after_head.set(after_head as u64);
    }

    /// Notes the number of body bytes that were read.
    pub(super) fn note_read(&self, bytes: usize) {
        if let Reads::Body(remaining) = self.reads.get() {
            self.reads.set(match remaining.saturating_sub(bytes as u64) {
                0 => Reads::Nothing,
                remaining => Reads::Body(remaining),
            });
        }
    }

    /// Returns true while bytes of a body of known length seem to be missing.
    pub(crate) const fn awaits_body(&self) -> bool {
        matches!(self.reads.get(), Reads::Body(_))
    }

    /// Notes the end of the body of the request in flight.
    pub(crate) fn note_body_end(&self) {
        if matches!(self.reads.get(), Reads::Body(_) | Reads::Chunked) {
            self.reads.set(Reads::Nothing);
        }
    }

    pub(super) fn touch(&self, tick: u64) {
        self.active_at.set(tick);
    }

    pub(super) const fn active_at(&self) -> u64 {
        self.active_at.get()
    }

    pub(super) fn phase(&self) -> Phase {
        match self.reads.get() {
            Reads::Head if !self.has_answered.get() => Phase::Unused,
            Reads::Head => Phase::Idle,
            _ if !self.owes_answer.get() => Phase::Answering,
            Reads::Body(_) | Reads::Chunked => Phase::Arriving,
            Reads::Nothing => Phase::Computing,
        }
    }

    pub(super) const fn owner(&self) -> Option<IpAddr> {
        self.owner.get()
    }

    pub(super) fn set_peer(&self, peer: IpAddr) {
        self.peer.set(Some(peer));
        self.owner.set(Some(peer));
    }

    pub(crate) fn set_owner(&self, owner: IpAddr) {
        self.owner.set(Some(owner));
    }

    /// Returns the error for all requests but probes; `None` on an unrestricted connection.
    pub(crate) fn refusal(&self) -> Option<ApiError> {
        if self.lacks_certificate.get() {
            return Some(ApiError::CertificateRequired);
        }
        self.is_for_probes.get().then(|| ServiceError::Overloaded.into())
    }

    pub(super) fn set_lacks_certificate(&self, lacks: bool) {
        self.lacks_certificate.set(lacks);
    }

    pub(super) fn restrict_to_probes(&self) {
        self.is_for_probes.set(true);
    }

    /// Closes the connection as soon as its task runs.
    pub(super) fn close(&self) {
        self.is_closing.set(true);
        self.wake();
    }

    pub(super) const fn is_closing(&self) -> bool {
        self.is_closing.get()
    }

    /// Notes input that may not be read yet. The end of the request in flight wakes the task.
    pub(super) fn note_pending_input(&self) {
        self.has_pending_input.set(true);
    }

    /// Notes that part of a response was sent.
    pub(super) fn note_answered(&self) {
        self.owes_answer.set(false);
        self.has_answered.set(true);
    }

    /// Notes that the library has ended the connection.
    pub(super) fn note_end(&self) {
        self.has_ended.set(true);
    }

    /// Returns true if the library has ended the connection without a response. It does so when the chunks of a body
    /// are malformed.
    pub(super) fn lacks_answer(&self) -> bool {
        self.has_ended.get() && self.owes_answer.get() && !self.is_closing.get()
    }

    /// Stores the waker of the connection's task.
    pub(super) fn set_waker(&self, context: &Context<'_>) {
        let mut task = self.task.borrow_mut();
        if !task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            *task = Some(context.waker().clone());
        }
    }

    pub(super) fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }
}

/// Closes a connection when a future completes, unless the watch is dropped before.
#[derive(Debug)]
pub struct CloseWatch(AbortHandle);

/// Closes the connection of a request when the future `end` completes, unless the watch is dropped before. Only a
/// [`super::Listener`] has connections that can be closed.
#[must_use]
pub fn close_connection_when(request: &HttpRequest, end: impl Future<Output = ()> + 'static) -> Option<CloseWatch> {
    let connection = request.conn_data::<Rc<ConnectionState>>().cloned()?;
    let watch = actix_rt::spawn(async move {
        end.await;
        connection.close();
    });
    Some(CloseWatch(watch.abort_handle()))
}

impl Drop for CloseWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A request in flight on a connection, until the library has its whole response.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Rc<ConnectionState>);

impl ActiveRequest {
    /// Begins a request; `body` is the length of its body, `None` if the body is chunked.
    pub(crate) fn begin(connection: Rc<ConnectionState>, body: Option<u64>) -> Self {
        connection.has_head_begun.set(false);
        let read_with_head = connection.after_head.take();
        connection.reads.set(match body {
            Some(bytes) if bytes > read_with_head => Reads::Body(bytes - read_with_head),
            Some(_) => Reads::Nothing,
            None => Reads::Chunked,
        });
        connection.owes_answer.set(true);
        Self(connection)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.reads.set(Reads::Head);
        if self.0.owner != self.0.peer {
            self.0.owner.set(None);
        }
        if self.0.has_pending_input.take() {
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_body_is_read_until_the_request_ends() {
        let state = Rc::<ConnectionState>::default();
        assert_eq!((state.reads(), state.phase()), (Reads::Head, Phase::Unused));
        let active = ActiveRequest::begin(Rc::clone(&state), Some(10));
        state.note_read(4);
        assert_eq!((state.reads(), state.phase()), (Reads::Body(6), Phase::Arriving));
        state.note_read(60);
        assert_eq!((state.reads(), state.phase()), (Reads::Nothing, Phase::Computing));
        state.note_answered();
        assert_eq!(state.phase(), Phase::Answering);
        drop(active);
        assert_eq!((state.reads(), state.phase()), (Reads::Head, Phase::Idle));
        state.note_head(0, 0);
        assert!(state.awaits_head(), "empty lines are no head");
        state.note_head(40, 3);
        assert!(!state.awaits_head());
        drop(ActiveRequest::begin(Rc::clone(&state), Some(3)));
        assert!(state.awaits_head());
        state.note_head(40, 3);
        let active_request = ActiveRequest::begin(Rc::clone(&state), Some(10));
        assert_eq!(state.reads(), Reads::Body(7), "three bytes came with the head");
        drop(active_request);
        let unknown = ActiveRequest::begin(Rc::clone(&state), None);
        state.note_read(usize::MAX / 2);
        assert_eq!(state.reads(), Reads::Chunked);
        state.note_body_end();
        assert_eq!(state.reads(), Reads::Nothing);
        drop(unknown);
        state.note_body_end();
        assert_eq!(state.reads(), Reads::Head, "the request of that body has ended");
    }
}
