//! What is seen of a connection from below HTTP/2: whether anything was written since, when
//! something was last heard, and that a receiver does not say more than it was asked.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use sakshi_domain::limits::WEBHOOK_RESPONSE_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::HEADERS_MAX;

/// What a receiver may say beside its answers: settings, windows, pings.
const BESIDE: i64 = 256 * 1_024;
/// What it may say for each request: its headers, as much of a body as is read, and as much as may
/// be under way when the reader has had enough, in frames.
const PER_REQUEST: i64 = (HEADERS_MAX as usize + 2 * WEBHOOK_RESPONSE_BYTES_MAX + 64 * 1_024) as i64;
/// However much it was asked and did not say before.
const MOST: i64 = BESIDE + 64 * PER_REQUEST;

/// What is known of a connection's life. One holder at least while it is used.
#[derive(Debug)]
pub(crate) struct Pulse {
    began: Instant,
    /// Bytes that were handed to TLS, or may have been.
    written: AtomicU64,
    /// Milliseconds from the beginning to the last bytes that came.
    heard: AtomicU64,
    /// Bytes that may still come.
    allowance: AtomicI64,
    /// Writing has failed.
    lost: AtomicBool,
}

impl Pulse {
    pub(crate) fn new() -> Arc<Self> {
        let (written, heard) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { began: Instant::now(), written, heard, allowance: AtomicI64::new(BESIDE), lost: AtomicBool::new(false) })
    }

    /// That of a connection which is so old and has said nothing since.
    #[cfg(test)]
    pub(crate) fn aged(age: Duration) -> Arc<Self> {
        let mut pulse = Self::new();
        if let Some(pulse) = Arc::get_mut(&mut pulse) {
            pulse.began -= age;
        }
        pulse
    }

    /// How long ago the connection was made.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Grows with everything that is written. As long as it is what it was when a request was
    /// handed over, not a byte of that request has left.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// When something was last heard.
    pub(crate) fn heard(&self) -> Instant {
        self.began + Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }

    /// Nothing can be written any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// A request is about to be sent, so the receiver may say more.
    pub(crate) fn ask(&self) {
        // Never `None`, so never an error.
        let _ = self.allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some((left + PER_REQUEST).min(MOST)));
    }

    fn hear(&self, bytes: usize) -> io::Result<()> {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let left = self.allowance.fetch_sub(bytes, Ordering::Relaxed);
        if left < bytes { Err(io::Error::other("the receiver says more than it was asked")) } else { Ok(()) }
    }
}

/// A connection with its pulse.
///
/// When writing fails it goes on reading: what the receiver has said before it closed, above all
/// which requests it has not processed, is read to its end. HTTP/2 would otherwise give up at once.
#[derive(Debug)]
pub(crate) struct Watched<Io> {
    io: Io,
    pulse: Arc<Pulse>,
}

impl<Io> Watched<Io> {
    pub(crate) fn new(io: Io, pulse: Arc<Pulse>) -> Self {
        Self { io, pulse }
    }

    fn lose(&self) {
        self.pulse.lost.store(true, Ordering::Relaxed);
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Watched<Io> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        match buffer.filled().len() - before {
            0 => Poll::Ready(Ok(())),
            bytes => Poll::Ready(self.pulse.hear(bytes)),
        }
    }
}

/// Not vectored: small bodies are then written together with their headers, many requests at a time.
impl<Io: AsyncWrite + Unpin> AsyncWrite for Watched<Io> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.pulse.is_lost() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = ready!(Pin::new(&mut self.io).poll_write(context, bytes)).unwrap_or_else(|_| {
            self.lose();
            bytes.len()
        });
        self.pulse.written.fetch_add(written as u64, Ordering::SeqCst);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.pulse.is_lost() && ready!(Pin::new(&mut self.io).poll_flush(context)).is_err() {
            self.lose();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.pulse.is_lost() { Poll::Ready(Ok(())) } else { Pin::new(&mut self.io).poll_shutdown(context) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// A connection that the other side has closed after it said something.
    struct Closed(&'static [u8]);

    impl AsyncRead for Closed {
        fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Closed {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
        }
    }

    #[tokio::test]
    async fn what_was_said_before_the_close_is_read_though_writing_fails() {
        let pulse = Pulse::new();
        let mut watched = Watched::new(Closed(b"last words"), Arc::clone(&pulse));
        let before = pulse.written();
        watched.write_all(b"request").await.unwrap();
        watched.flush().await.unwrap();
        assert!(pulse.is_lost() && pulse.written() > before, "what was tried may have left");
        let after = pulse.written();
        watched.write_all(b"another").await.unwrap();
        assert_eq!(pulse.written(), after, "what was not tried has not");
        let mut said = String::new();
        watched.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "last words");
        watched.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_receiver_may_say_as_much_as_it_is_asked_for_and_a_little_more() {
        let pulse = Pulse::new();
        let mut bytes = BESIDE;
        assert!(pulse.hear(usize::try_from(bytes).unwrap()).is_ok() && pulse.hear(1).is_err());
        for requests in [1, 64, 1_000] {
            let pulse = Pulse::new();
            (0..requests).for_each(|_| pulse.ask());
            bytes = (BESIDE + requests * PER_REQUEST).min(MOST);
            assert!(pulse.hear(usize::try_from(bytes).unwrap()).is_ok() && pulse.hear(1).is_err(), "{requests}");
        }
    }
}
