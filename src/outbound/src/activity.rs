//! Activity of a connection below HTTP/2: the bytes written, the time of the last read, and a limit on the bytes that
//! the receiver sends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use sakshi_domain::limits::WEBHOOK_RESPONSE_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum bytes of a response's headers; a stream with more is reset.
pub(crate) const HEADERS_BYTES_MAX: u32 = 64 * 1_024;
/// Bytes that a receiver may send in addition to its responses: settings, window updates, pings.
const BASE_ALLOWANCE: i64 = 256 * 1_024;
/// Bytes that a receiver may send for each request: headers, the part of the body that is read, and frames that may be
/// in flight when reading stops.
const ALLOWANCE_PER_REQUEST: i64 = (HEADERS_BYTES_MAX as usize + 2 * WEBHOOK_RESPONSE_BYTES_MAX + 64 * 1_024) as i64;
/// The largest allowance that can accumulate: that of 64 requests.
const ALLOWANCE_MAX: i64 = BASE_ALLOWANCE + 64 * ALLOWANCE_PER_REQUEST;

/// Observed activity of a connection. Everything that uses the connection holds a reference.
#[derive(Debug)]
pub(crate) struct Activity {
    began: Instant,
    /// Bytes that were, or may have been, handed to TLS.
    written: AtomicU64,
    /// Milliseconds from `began` to the last read.
    last_read: AtomicU64,
    /// Bytes that the receiver may still send.
    allowance: AtomicI64,
    write_failed: AtomicBool,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        let (written, last_read) = (AtomicU64::new(0), AtomicU64::new(0));
        let (allowance, write_failed) = (AtomicI64::new(BASE_ALLOWANCE), AtomicBool::new(false));
        Arc::new(Self { began: Instant::now(), written, last_read, allowance, write_failed })
    }

    /// Builds the activity of a connection of this age that has read nothing.
    #[cfg(test)]
    pub(crate) fn aged(age: Duration) -> Arc<Self> {
        let mut activity = Self::new();
        if let Some(activity) = Arc::get_mut(&mut activity) {
            activity.began -= age;
        }
        activity
    }

    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the number of bytes written so far. While it is the same as before a request was queued, no byte of the
    /// request was sent.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    pub(crate) fn last_read(&self) -> Instant {
        self.began + Duration::from_millis(self.last_read.load(Ordering::Relaxed))
    }

    pub(crate) fn write_failed(&self) -> bool {
        self.write_failed.load(Ordering::Relaxed)
    }

    /// Raises the number of bytes that the receiver may send, because a request is about to be sent.
    pub(crate) fn add_request(&self) {
        // The closure never returns `None`, so this cannot fail.
        let _ = self.allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |allowance| {
            Some((allowance + ALLOWANCE_PER_REQUEST).min(ALLOWANCE_MAX))
        });
    }

    /// Records that `bytes` were read. Fails when the receiver exceeds its allowance.
    fn record_read(&self, bytes: usize) -> io::Result<()> {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_read.store(now, Ordering::Relaxed);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let allowance = self.allowance.fetch_sub(bytes, Ordering::Relaxed);
        if allowance < bytes {
            Err(io::Error::other("the receiver sends more than the requests allow"))
        } else {
            Ok(())
        }
    }
}

/// A connection whose activity is recorded.
///
/// After a failed write, reading continues until the end, because the receiver may have named the requests that it did
/// not process. HTTP/2 alone would give up at once.
#[derive(Debug)]
pub(crate) struct TrackedIo<Io> {
    io: Io,
    activity: Arc<Activity>,
}

impl<Io> TrackedIo<Io> {
    pub(crate) fn new(io: Io, activity: Arc<Activity>) -> Self {
        Self { io, activity }
    }

    /// Drops the bytes of all later writes, which then seem to succeed.
    fn fail_writes(&self) {
        self.activity.write_failed.store(true, Ordering::Relaxed);
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for TrackedIo<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes_before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        match buffer.filled().len() - bytes_before {
            0 => Poll::Ready(Ok(())),
            bytes => Poll::Ready(self.activity.record_read(bytes)),
        }
    }
}

/// Vectored writes are not offered, so that small bodies are written together with their headers, many requests at a
/// time.
impl<Io: AsyncWrite + Unpin> AsyncWrite for TrackedIo<Io> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // An error would end HTTP/2 before it has read what the receiver still sends.
        if self.activity.write_failed() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = ready!(Pin::new(&mut self.io).poll_write(context, bytes)).unwrap_or_else(|_| {
            self.fail_writes();
            bytes.len()
        });
        self.activity.written.fetch_add(written as u64, Ordering::SeqCst);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.activity.write_failed() && ready!(Pin::new(&mut self.io).poll_flush(context)).is_err() {
            self.fail_writes();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.activity.write_failed() { Poll::Ready(Ok(())) } else { Pin::new(&mut self.io).poll_shutdown(context) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// A connection that the receiver has closed after it sent these bytes. They can still be read; every write fails.
    struct ClosedConnection(&'static [u8]);

    impl AsyncRead for ClosedConnection {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for ClosedConnection {
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
    async fn bytes_sent_before_the_close_are_read_although_writing_fails() {
        let activity = Activity::new();
        let mut tracked = TrackedIo::new(ClosedConnection(b"last words"), Arc::clone(&activity));
        let written_before = activity.written();
        tracked.write_all(b"request").await.unwrap();
        tracked.flush().await.unwrap();
        assert!(activity.write_failed() && activity.written() > written_before, "the first bytes may have been sent");
        let written_after = activity.written();
        tracked.write_all(b"another").await.unwrap();
        assert_eq!(activity.written(), written_after, "later bytes are not attempted");
        let mut read = String::new();
        tracked.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "last words");
        tracked.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_receiver_may_send_the_base_allowance_and_an_allowance_per_request() {
        for requests in [0, 1, 64, 1_000] {
            let activity = Activity::new();
            (0..requests).for_each(|_| activity.add_request());
            let allowance = (BASE_ALLOWANCE + requests * ALLOWANCE_PER_REQUEST).min(ALLOWANCE_MAX);
            assert!(activity.record_read(usize::try_from(allowance).unwrap()).is_ok(), "{requests}");
            assert!(activity.record_read(1).is_err(), "{requests}");
        }
    }
}
