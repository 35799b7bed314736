//! A client's connection as the HTTP library reads and writes it.
//!
//! The library takes in whatever arrives, and holds what it could not send for as long as the client
//! likes. Here a client gets no more of it than its turn: requests are handed over one by one, because
//! each takes kilobytes once it is decoded; while one is answered nothing is read beyond its body; while
//! an answer waits to be sent nothing is read at all; and a client that takes too little of an answer for
//! too long is cut off.

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use sakshi_domain::limits::{ANSWER_PROGRESS_BYTES, ANSWER_STALL_MAX, READ_BODY_BYTES, READ_HEAD_BYTES};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_local, yield_now};
use tokio::time::{Instant, Sleep, sleep};

use super::state::Reads;
use super::table::Entry;
use super::worker::Open;
use crate::budget::{MemoryBudget, MemoryPermit, Owner, Owners, Stage};

/// The answer to a request whose body cannot be read, where the library gives none.
const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A connection, its place among the others, and what it holds.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    pub(super) entry: Entry,
    answers: MemoryBudget,
    owner: IpAddr,
    /// Bytes handed over since the library last came round.
    turn: usize,
    /// What it waits for between two turns of a large body.
    rest: Option<JoinHandle<()>>,
    /// What was read together with the request before it and is not handed over yet.
    ahead: Vec<u8>,
    unsent: Option<Unsent>,
    /// Counts it as open, for whoever accepts.
    _open: Open,
}

/// An answer that waits to be sent.
struct Unsent {
    permit: MemoryPermit,
    taken_back: LocalBoxFuture<'static, ()>,
    deadline: Pin<Box<Sleep>>,
    /// Bytes that the client has taken since the deadline was set.
    taken: usize,
}

impl std::fmt::Debug for Unsent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unsent").field("permit", &self.permit).field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(socket: TcpStream, peer: IpAddr, entry: Entry, answers: MemoryBudget, open: Open) -> Self {
        // As for rates: of an IPv6 address the /64 network, which one subscriber has to itself.
        let owner = match peer.to_canonical() {
            IpAddr::V6(six) => Ipv6Addr::from(u128::from(six) >> 64 << 64).into(),
            four => four,
        };
        Self { socket, entry, answers, owner, turn: 0, rest: None, ahead: Vec::new(), unsent: None, _open: open }
    }

    fn check(&self) -> io::Result<()> {
        if self.entry.state.is_condemned() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// Whether the client has gone, without taking what it has sent.
    fn poll_end(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            self.entry.state.hold_back();
            return Poll::Pending;
        }
        let mut byte = [0];
        match self.socket.poll_peek(context, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(())),
            Poll::Ready(Ok(_)) => {
                self.entry.state.hold_back();
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }

    /// Hands over some of what has arrived, and `most` bytes in one turn. Of what may be more than one
    /// request, the first; when it is decoded, it is known what may be read next.
    fn poll_some(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>, most: usize, is_one: bool) -> Poll<io::Result<()>> {
        if self.turn >= READ_BODY_BYTES {
            self.turn = 0;
            // A task of its own: this one is polled for other reasons, too.
            self.rest = Some(spawn_local(others_first()));
        } else if self.turn >= most {
            // What was handed over is decoded first; then the library comes round again.
            self.turn = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(rest) = &mut self.rest {
            // However it ends.
            let _ = ready!(rest.poll_unpin(context));
            self.rest = None;
        }
        let room = buffer.remaining().min(most - self.turn);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        if self.ahead.is_empty() {
            match Pin::new(&mut self.socket).poll_read(context, &mut part) {
                Poll::Ready(Ok(())) => {}
                other => {
                    self.turn = 0;
                    return other;
                }
            }
        } else {
            let bytes = self.ahead.len().min(room);
            part.put_slice(&self.ahead[..bytes]);
            self.ahead.drain(..bytes);
        }
        let arrived = part.filled();
        let end = if is_one { arrived.len() } else { end_of_first(arrived) };
        if end < arrived.len() {
            self.ahead.splice(..0, arrived[end..].iter().copied());
            self.turn = most;
        } else {
            self.turn += end;
        }
        if self.entry.state.reads() == Reads::Head {
            self.entry.state.has_head(end - blank_line(&arrived[..end]).unwrap_or(end));
        } else {
            self.entry.state.has_read(end);
        }
        buffer.advance(end);
        self.entry.touch();
        Poll::Ready(Ok(()))
    }

    /// The client has taken some bytes of those that were to be sent.
    fn sent(&mut self, bytes: usize, left: usize) {
        self.entry.touch();
        self.entry.state.has_answered();
        let Some(unsent) = &mut self.unsent else { return };
        if left == 0 {
            self.unsent = None;
            return;
        }
        unsent.taken += bytes;
        if unsent.taken >= ANSWER_PROGRESS_BYTES {
            unsent.taken = 0;
            unsent.deadline.as_mut().reset(Instant::now() + ANSWER_STALL_MAX);
        }
        unsent.permit.shrink_to(left);
    }

    /// The client takes nothing at the moment: how long may these bytes wait?
    fn wait(&mut self, context: &mut Context<'_>, bytes: usize) -> Poll<io::Result<usize>> {
        if self.unsent.is_none() {
            let permit = self.answers.permit(Owners::new([Owner::Address(self.owner)]), Stage::Leaving);
            let taken_back = permit.taken_back().boxed_local();
            self.unsent = Some(Unsent { permit, taken_back, deadline: Box::pin(sleep(ANSWER_STALL_MAX)), taken: 0 });
        }
        let Some(unsent) = &mut self.unsent else { return Poll::Pending };
        let reason = if unsent.permit.grow_to(bytes).is_err() || unsent.taken_back.poll_unpin(context).is_ready() {
            "no_room"
        } else if unsent.deadline.as_mut().poll(context).is_ready() {
            "unread"
        } else {
            return Poll::Pending;
        };
        self.entry.closed(reason);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.unsent.is_none() && self.entry.state.was_left_unanswered() {
            // A client that does not take this at once has gone.
            let _ = self.socket.try_write(BAD_REQUEST);
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check()?;
        this.entry.state.remember(context);
        if this.unsent.is_some() {
            // Whatever makes the socket writable wakes this task, and it comes round again then.
            return Poll::Pending;
        }
        match this.entry.state.reads() {
            Reads::Head => this.poll_some(context, buffer, READ_HEAD_BYTES, false),
            Reads::Body(left) => {
                let most = usize::try_from(left).unwrap_or(usize::MAX).min(READ_BODY_BYTES);
                this.poll_some(context, buffer, most, true)
            }
            Reads::Chunks => this.poll_some(context, buffer, READ_BODY_BYTES, false),
            Reads::Held => this.poll_end(context),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check()?;
        match Pin::new(&mut this.socket).poll_write(context, bytes) {
            Poll::Ready(Ok(sent)) => {
                let waited = this.unsent.is_some();
                this.sent(sent, bytes.len() - sent);
                if waited && this.unsent.is_none() {
                    // Nothing was read meanwhile, so nobody would say that there is something to read.
                    context.waker().wake_by_ref();
                }
                Poll::Ready(Ok(sent))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => this.wait(context, bytes.len()),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}

/// Waits until the worker has looked after all its other connections. Of those that wait here one goes on each
/// time, so that large bodies do not keep a worker busy, however many and however fast they come. What is not
/// read of them waits in the kernels of their senders.
async fn others_first() {
    thread_local! {
        static TURN: Rc<Semaphore> = Rc::new(Semaphore::new(1));
    }
    let turns = TURN.with(Rc::clone);
    // It is never closed.
    let _turn = turns.acquire().await;
    yield_now().await;
}

/// Where the first blank line ends, if another one follows: behind each of them a request may begin.
fn end_of_first(bytes: &[u8]) -> usize {
    let first = blank_line(bytes).filter(|end| blank_line(&bytes[*end..]).is_some());
    first.unwrap_or(bytes.len())
}

/// Behind the first blank line. The library takes lines that end without a carriage return, too.
fn blank_line(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == b'\n') {
        from += at + 1;
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
    async fn of_large_bodies_one_goes_on_each_time_that_others_were_looked_after() {
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
                others_first().await;
                turns.borrow_mut().push('b');
            })
        });
        join_all(bodies).await;
        let turns = turns.borrow();
        assert!(turns.matches('b').count() == 4 && !turns.contains("bb"), "{turns}");
    }

    #[test]
    fn of_several_requests_the_first_is_handed_over() {
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
            assert_eq!(end_of_first(bytes.as_bytes()), first, "{bytes:?}");
        }
    }
}
