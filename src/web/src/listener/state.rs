//! What a connection and the requests on it know of each other: the stream holds back what a client
//! sends ahead of its answers, and a connection on which a request is under way is not closed to make
//! room.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};

use tokio::task::AbortHandle;

/// What may be read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The next request.
    Head,
    /// What is left of the body of the request under way.
    Body(u64),
    /// A body that says itself where it ends.
    Chunks,
    /// Nothing: the request under way is known, and the next one waits for its answer.
    Held,
}

/// The state of one connection, shared with the requests on it.
#[derive(Debug)]
pub struct ConnectionState {
    reads: Cell<Reads>,
    /// Bytes that were handed over behind the head of a request: of its body, if it has one.
    behind_head: Cell<u64>,
    /// When it was last active, in the worker's own count of such moments.
    active_at: Cell<u64>,
    is_condemned: Cell<bool>,
    /// The client has sent something that may not be read yet.
    is_held_back: Cell<bool>,
    /// A request was taken, and nothing of its answer has been sent.
    owes_answer: Cell<bool>,
    /// The library has ended the connection by itself.
    is_over: Cell<bool>,
    task: RefCell<Option<Waker>>,
}

impl ConnectionState {
    pub(super) const fn new() -> Self {
        Self {
            reads: Cell::new(Reads::Head),
            behind_head: Cell::new(0),
            active_at: Cell::new(0),
            is_condemned: Cell::new(false),
            is_held_back: Cell::new(false),
            owes_answer: Cell::new(false),
            is_over: Cell::new(false),
            task: RefCell::new(None),
        }
    }

    /// What may be read now.
    pub(super) const fn reads(&self) -> Reads {
        self.reads.get()
    }

    /// Counts what was read together with the head of a request and belongs to its body.
    pub(super) fn has_head(&self, bytes_behind: usize) {
        self.behind_head.set(bytes_behind as u64);
    }

    /// Counts what was read of a body.
    pub(super) fn has_read(&self, bytes: usize) {
        if let Reads::Body(left) = self.reads.get() {
            self.reads.set(match left.saturating_sub(bytes as u64) {
                0 => Reads::Held,
                left => Reads::Body(left),
            });
        }
    }

    /// The body of the request under way has ended, if one is.
    pub(crate) fn body_ended(&self) {
        if matches!(self.reads.get(), Reads::Body(_) | Reads::Chunks) {
            self.reads.set(Reads::Held);
        }
    }

    pub(super) fn touch(&self, moment: u64) {
        self.active_at.set(moment);
    }

    pub(super) const fn active_at(&self) -> u64 {
        self.active_at.get()
    }

    /// Whether no request is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.reads.get() == Reads::Head
    }

    /// Ends the connection when this future ends: what is being sent on it must be let go.
    pub fn condemn_when(self: Rc<Self>, ends: impl Future<Output = ()> + 'static) -> Watch {
        let watch = actix_rt::spawn(async move {
            ends.await;
            self.condemn();
        });
        Watch(watch.abort_handle())
    }

    /// Ends the connection as soon as its task runs.
    pub(super) fn condemn(&self) {
        self.is_condemned.set(true);
        self.wake();
    }

    pub(super) const fn is_condemned(&self) -> bool {
        self.is_condemned.get()
    }

    /// Something has arrived that may not be read yet: the end of the exchange wakes the task.
    pub(super) fn hold_back(&self) {
        self.is_held_back.set(true);
    }

    /// Some of an answer has been sent.
    pub(super) fn has_answered(&self) {
        self.owes_answer.set(false);
    }

    /// The library has ended the connection.
    pub(super) fn end(&self) {
        self.is_over.set(true);
    }

    /// Whether the library has ended the connection and left a request without an answer: it does so
    /// when the encoding of a body is broken.
    pub(super) fn was_left_unanswered(&self) -> bool {
        self.is_over.get() && self.owes_answer.get() && !self.is_condemned.get()
    }

    /// Keeps whom to wake.
    pub(super) fn remember(&self, context: &Context<'_>) {
        let mut task = self.task.borrow_mut();
        if !task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            *task = Some(context.waker().clone());
        }
    }

    fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }
}

/// Ends a connection when somebody says so, unless this is dropped before.
#[derive(Debug)]
pub struct Watch(AbortHandle);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A request under way on a connection, until its answer has been handed over.
#[derive(Debug)]
pub(crate) struct Exchange(Rc<ConnectionState>);

impl Exchange {
    /// Begins one whose body has this many bytes, `None` if nobody knows how many.
    pub(crate) fn begin(connection: Rc<ConnectionState>, body: Option<u64>) -> Self {
        let read = connection.behind_head.take();
        connection.reads.set(match body {
            Some(bytes) if bytes > read => Reads::Body(bytes - read),
            Some(_) => Reads::Held,
            None => Reads::Chunks,
        });
        connection.owes_answer.set(true);
        Self(connection)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.reads.set(Reads::Head);
        if self.0.is_held_back.take() {
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_the_body_until_the_exchange_is_over() {
        let state = Rc::new(ConnectionState::new());
        assert!(state.reads() == Reads::Head && state.is_idle());
        let exchange = Exchange::begin(Rc::clone(&state), Some(10));
        state.has_read(4);
        assert_eq!((state.reads(), state.is_idle()), (Reads::Body(6), false));
        state.has_read(60);
        assert_eq!(state.reads(), Reads::Held);
        drop(exchange);
        assert_eq!(state.reads(), Reads::Head);
        state.has_head(3);
        drop(Exchange::begin(Rc::clone(&state), Some(3)));
        state.has_head(3);
        let begun = Exchange::begin(Rc::clone(&state), Some(10));
        assert_eq!(state.reads(), Reads::Body(7), "three bytes came with the head");
        drop(begun);
        let unknown = Exchange::begin(Rc::clone(&state), None);
        state.has_read(usize::MAX / 2);
        assert_eq!(state.reads(), Reads::Chunks);
        state.body_ended();
        assert_eq!(state.reads(), Reads::Held);
        drop(unknown);
        state.body_ended();
        assert_eq!(state.reads(), Reads::Head, "the exchange of that body is over");
    }
}
