//! A client's connection as the HTTP library reads and writes it.
//!
//! The library reads whatever arrives, and keeps unsent responses as long as the client likes. This stream bounds both:
//! - It hands over one request at a time, because each decoded request takes kilobytes.
//! - While a request is in flight, it reads nothing beyond that request's body.
//! - While a response waits to be sent, it reads nothing.
//! - It closes the connection of a client that reads a response too slowly for too long.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use sakshi_domain::limits::{ANSWER_PROGRESS_BYTES, ANSWER_STALL_MAX, READ_BODY_BYTES, READ_HEAD_BYTES};
use sakshi_service::budget::{MemoryBudget, MemoryPermit, Owner, OwnerPath, Stage};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_local, yield_now};
use tokio::time::{Instant, Sleep, sleep};

use super::state::Reads;
use super::table::Entry;
use super::transport::Transport;
use crate::rate_limit::subscriber;

/// Response to a request whose body cannot be read, where the library sends none.
const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A connection, its entry in the worker's table, and its resources.
pub(super) struct Connection {
    transport: Transport,
    pub(super) entry: Entry,
    answers: MemoryBudget,
    owner: IpAddr,
    /// Bytes handed over since the task was last polled.
    handed_over: usize,
    /// Pending turn between two portions of a large body.
    pause: Option<JoinHandle<()>>,
    /// Bytes of the next request that arrived together with the previous one.
    ahead: Vec<u8>,
    unsent: Option<Unsent>,
}

/// A response that waits to be sent.
struct Unsent {
    permit: MemoryPermit,
    revoked: LocalBoxFuture<'static, ()>,
    deadline: Pin<Box<Sleep>>,
    /// Bytes sent since the deadline was set.
    sent: usize,
}

impl Connection {
    pub(super) fn new(transport: Transport, peer: IpAddr, entry: Entry, answers: MemoryBudget) -> Self {
        Self {
            transport,
            entry,
            answers,
            owner: subscriber(peer),
            handed_over: 0,
            pause: None,
            ahead: Vec::new(),
            unsent: None,
        }
    }

    /// Fails if the table has evicted this connection.
    fn check_not_evicted(&self) -> io::Result<()> {
        if self.entry.state.is_closing() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// Becomes ready when the client has closed its side. Hands over no bytes.
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            self.entry.state.note_pending_input();
            return Poll::Pending;
        }
        match self.transport.poll_readable(context, &mut self.ahead) {
            Poll::Ready(Ok(false)) => Poll::Ready(Ok(())),
            Poll::Ready(Ok(true)) => {
                self.entry.state.note_pending_input();
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }

    /// Hands over some of the bytes that have arrived, at most `bytes_max` for each poll of the task. Unless they
    /// belong to a body of known length, the bytes may hold several requests, and only the first is handed over. Its
    /// head decides how much may be read next.
    fn poll_portion(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        bytes_max: usize,
    ) -> Poll<io::Result<()>> {
        if self.handed_over >= READ_BODY_BYTES {
            self.handed_over = 0;
            // A separate task, because this one is polled for other reasons, too.
            self.pause = Some(spawn_local(let_other_connections_run()));
        } else if self.handed_over >= bytes_max {
            // The library decodes what was handed over first; then it polls again.
            self.handed_over = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(pause) = &mut self.pause {
            // The result does not matter.
            let _ = ready!(pause.poll_unpin(context));
            self.pause = None;
        }
        let room = buffer.remaining().min(bytes_max - self.handed_over);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        if self.ahead.is_empty() {
            match Pin::new(&mut self.transport).poll_read(context, &mut part) {
                Poll::Ready(Ok(())) => {}
                other => {
                    self.handed_over = 0;
                    return other;
                }
            }
        } else {
            let bytes = self.ahead.len().min(room);
            part.put_slice(&self.ahead[..bytes]);
            self.ahead.drain(..bytes);
        }
        if self.entry.state.reads() == Reads::Head {
            self.entry.state.set_lacks_certificate(self.transport.lacks_certificate());
        }
        let arrived = part.filled();
        let is_body = matches!(self.entry.state.reads(), Reads::Body(_));
        // The library skips empty lines before a head, and begins anew with each portion.
        let start = if self.entry.state.awaits_head() { empty_lines_end(arrived) } else { 0 };
        let end = if is_body { arrived.len() } else { start + first_request_end(&arrived[start..]) };
        if end < arrived.len() {
            self.ahead.splice(..0, arrived[end..].iter().copied());
            self.handed_over = bytes_max;
        } else {
            self.handed_over += end;
        }
        if self.entry.state.reads() == Reads::Head {
            let head = &arrived[start..end];
            self.entry.state.note_head(head.len(), head.len() - blank_line_end(head).unwrap_or(head.len()));
        } else {
            self.entry.state.note_read(end);
        }
        buffer.advance(end);
        self.entry.touch();
        Poll::Ready(Ok(()))
    }

    /// Records that `bytes` of a response were sent, and `remaining` were not.
    fn note_sent(&mut self, bytes: usize, remaining: usize, context: &Context<'_>) {
        self.entry.touch();
        self.entry.state.note_answered();
        if remaining == 0 {
            return self.end_unsent(context);
        }
        let Some(unsent) = &mut self.unsent else { return };
        unsent.sent += bytes;
        if unsent.sent >= ANSWER_PROGRESS_BYTES {
            unsent.sent = 0;
            unsent.deadline.as_mut().reset(Instant::now() + ANSWER_STALL_MAX);
        }
        unsent.permit.shrink_to(remaining);
    }

    /// Ends the wait for the socket. Nothing was read during the wait, so nothing else would wake the task to read.
    fn end_unsent(&mut self, context: &Context<'_>) {
        if self.unsent.take().is_some() {
            context.waker().wake_by_ref();
        }
    }

    /// Waits until the socket accepts bytes. Fails at the deadline, or when the memory permit is revoked.
    fn poll_unsent(&mut self, context: &mut Context<'_>, bytes: usize) -> Poll<io::Result<usize>> {
        if self.unsent.is_none() {
            let permit = self.answers.permit(OwnerPath::new([Owner::Address(self.owner)]), Stage::Leaving);
            let revoked = permit.wait_until_revoked().boxed_local();
            self.unsent = Some(Unsent { permit, revoked, deadline: Box::pin(sleep(ANSWER_STALL_MAX)), sent: 0 });
        }
        let Some(unsent) = &mut self.unsent else { return Poll::Pending };
        let reason = if unsent.permit.grow_to(bytes).is_err() || unsent.revoked.poll_unpin(context).is_ready() {
            "memory"
        } else if unsent.deadline.as_mut().poll(context).is_ready() {
            "unread"
        } else {
            return Poll::Pending;
        };
        self.entry.count_closed(reason);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.unsent.is_none() && self.entry.state.lacks_answer() {
            self.transport.send_now(BAD_REQUEST);
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check_not_evicted()?;
        this.entry.state.set_waker(context);
        if this.unsent.is_some() {
            // A writable socket wakes the task, which polls again.
            return Poll::Pending;
        }
        match this.entry.state.reads() {
            Reads::Head => this.poll_portion(context, buffer, READ_HEAD_BYTES),
            Reads::Body(remaining) => {
                let bytes_max = usize::try_from(remaining).unwrap_or(usize::MAX).min(READ_BODY_BYTES);
                this.poll_portion(context, buffer, bytes_max)
            }
            Reads::Chunked => this.poll_portion(context, buffer, READ_BODY_BYTES),
            Reads::Nothing => this.poll_closed(context),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check_not_evicted()?;
        match Pin::new(&mut this.transport).poll_write(context, bytes) {
            Poll::Ready(Ok(sent)) => {
                this.note_sent(sent, bytes.len() - sent, context);
                Poll::Ready(Ok(sent))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => this.poll_unsent(context, bytes.len()),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check_not_evicted()?;
        match Pin::new(&mut this.transport).poll_flush(context) {
            // The session has accepted the whole response, the socket has not.
            Poll::Pending => this.poll_unsent(context, 0).map_ok(|_| ()),
            flushed => {
                this.end_unsent(context);
                flushed
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(context)
    }
}

/// Waits until the worker has polled its other connections. Only one waiter continues per turn, so large bodies never
/// monopolise a worker. Meanwhile unread bytes stay in the kernel.
async fn let_other_connections_run() {
    thread_local! {
        static TURN: Rc<Semaphore> = Rc::new(Semaphore::new(1));
    }
    let turns = TURN.with(Rc::clone);
    // The semaphore is never closed.
    let _turn = turns.acquire().await;
    yield_now().await;
}

/// Returns the end of the empty lines at the beginning.
fn empty_lines_end(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(**byte, b'\r' | b'\n')).count()
}

/// Returns the end of the first blank line if another blank line follows, since the next request may begin there.
/// Otherwise returns the end of the bytes.
fn first_request_end(bytes: &[u8]) -> usize {
    let first = blank_line_end(bytes).filter(|end| blank_line_end(&bytes[*end..]).is_some());
    first.unwrap_or(bytes.len())
}

/// Returns the end of the first blank line. Like the library, accepts lines without a carriage return.
fn blank_line_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(offset) = bytes[from..].iter().position(|byte| *byte == b'\n') {
        from += offset + 1;
        match &bytes[from..] {
            [b'\n', ..] => return Some(from + 1),
            [b'\r', b'\n', ..] => return Some(from + 2),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures_util::future::join_all;

    use super::*;

    #[actix_rt::test]
    async fn only_one_large_body_continues_between_polls_of_other_connections() {
        let turns = Rc::new(RefCell::new(String::new()));
        let other = Rc::clone(&turns);
        spawn_local(async move {
            loop {
                yield_now().await;
                other.borrow_mut().push('o');
            }
        });
        let bodies = (0..4).map(|_| {
            let turns = Rc::clone(&turns);
            spawn_local(async move {
                let_other_connections_run().await;
                turns.borrow_mut().push('b');
            })
        });
        join_all(bodies).await;
        let turns = turns.borrow();
        assert!(turns.matches('b').count() == 4 && !turns.contains("bb"), "{turns}");
    }

    #[test]
    fn only_the_first_of_several_requests_is_handed_over() {
        for (bytes, first) in [
            ("GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n", 27),
            ("GET / HTTP/1.1\nhost: x\n\nGET / HTTP/1.1\nhost: x\n\n", 24),
            ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", 27),
            ("GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HT", 35),
            ("POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", 40),
            ("0\r\n\r\nGET / HTTP/1.1\r\n\r\n", 5),
            ("GET / HTTP", 10),
            ("", 0),
        ] {
            assert_eq!(first_request_end(bytes.as_bytes()), first, "{bytes:?}");
        }
    }

    #[test]
    fn all_empty_lines_before_a_head_are_handed_over_at_once() {
        for (bytes, end) in
            [("\n\n\r\n\r\n", 6), ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", 4), ("GET / HTTP/1.1\r\n\r\n", 0), ("", 0)]
        {
            assert_eq!(empty_lines_end(bytes.as_bytes()), end, "{bytes:?}");
        }
    }
}
