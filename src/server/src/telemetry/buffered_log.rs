//! A buffer for log lines, written by a dedicated thread. The service never waits for the log's reader: lines beyond
//! the buffer are counted and dropped. The thread pauses after each write, so a first line is written at once and the
//! following lines in one call. Logging wakes the thread only if the buffer was empty.

use std::io::{self, Write};
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Maximum number of buffered bytes.
const BUFFERED_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// Capacity of the buffer, in bytes, that is kept between two writes.
const CAPACITY_KEPT_BYTES: usize = 256 * 1_024;

/// Longest wait of a line, and so the part of the log that a crash may lose.
const PAUSE: Duration = Duration::from_millis(5);

/// Time the guard waits for the last write.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The buffer; clones share it.
#[derive(Clone)]
pub(super) struct BufferedLog(Arc<Shared>);

struct Shared {
    buffer: Mutex<Buffer>,
    /// Wakes the thread.
    changed: Condvar,
}

/// Lines that the thread has not taken yet.
#[derive(Default)]
struct Buffer {
    lines: Vec<u8>,
    /// Number of lines dropped since the last write.
    dropped: u64,
    /// True once the thread must write the remaining lines and end.
    is_ended: bool,
}

/// Keeps the log's thread running. On drop, the thread writes the remaining lines and ends.
#[must_use]
pub(super) struct FlushGuard {
    log: BufferedLog,
    /// Closed when the thread has ended.
    thread_ended: Receiver<()>,
}

impl BufferedLog {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<(Self, FlushGuard)> {
        let log = Self(Arc::new(Shared { buffer: Mutex::default(), changed: Condvar::new() }));
        let (alive, thread_ended) = channel();
        let shared = log.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || shared.write_out(out, alive))?;
        Ok((log.clone(), FlushGuard { log, thread_ended }))
    }

    fn lock_buffer(&self) -> MutexGuard<'_, Buffer> {
        self.0.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the buffered lines until the guard is dropped. `_alive` closes the guard's channel at the end.
    #[expect(clippy::disallowed_methods, reason = "the pause is intended, and the thread does nothing else")]
    fn write_out(self, mut out: impl Write, _alive: Sender<()>) {
        let mut lines = Vec::new();
        loop {
            let is_idle = |buffer: &mut Buffer| buffer.lines.is_empty() && !buffer.is_ended;
            let mut buffer =
                self.0.changed.wait_while(self.lock_buffer(), is_idle).unwrap_or_else(PoisonError::into_inner);
            mem::swap(&mut buffer.lines, &mut lines);
            let (dropped, is_ended) = (mem::take(&mut buffer.dropped), buffer.is_ended);
            drop(buffer);
            // There is nowhere to report a failed write.
            let _ = out.write_all(&lines).and_then(|()| out.flush());
            lines.clear();
            lines.shrink_to(CAPACITY_KEPT_BYTES);
            if dropped > 0 {
                metrics::counter!("sakshi_log_lines_dropped_total").increment(dropped);
                tracing::warn!(log.dropped = dropped, "log lines were dropped because stderr was read too slowly");
            }
            if is_ended {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Write for &BufferedLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut buffer = self.lock_buffer();
        if buffer.lines.len() + line.len() > BUFFERED_BYTES_MAX {
            buffer.dropped += 1;
            return Ok(line.len());
        }
        let was_empty = buffer.lines.is_empty();
        buffer.lines.extend_from_slice(line);
        drop(buffer);
        if was_empty {
            self.0.changed.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for BufferedLog {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        self.log.lock_buffer().is_ended = true;
        self.log.0.changed.notify_one();
        // The channel closes when the thread ends.
        let _ = self.thread_ended.recv_timeout(FLUSH_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A writer that reports each write and completes it once `proceed` has a message.
    struct BlockingWriter {
        writes: Sender<Vec<u8>>,
        proceed: Receiver<()>,
    }

    impl Write for BlockingWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes.send(bytes.to_vec()).map_err(io::Error::other)?;
            self.proceed.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns a writer, the writes that it reports, and the sender that lets it complete a write.
    fn blocking_writer() -> (BlockingWriter, Receiver<Vec<u8>>, Sender<()>) {
        let ((writes, reported_writes), (release, proceed)) = (channel(), channel());
        (BlockingWriter { writes, proceed }, reported_writes, release)
    }

    #[test]
    fn lines_logged_during_a_write_are_written_together_in_order() {
        let (out, writes, release) = blocking_writer();
        let (log, guard) = BufferedLog::start(out).unwrap();
        (&log).write_all(b"one\n").unwrap();
        assert_eq!(writes.recv().unwrap(), b"one\n");
        (&log).write_all(b"two\n").unwrap();
        (&log).write_all(b"three\n").unwrap();
        release.send(()).unwrap();
        assert_eq!(writes.recv().unwrap(), b"two\nthree\n");
        release.send(()).unwrap();
        drop(guard);
        assert!(writes.recv().is_err(), "the thread has ended");
    }

    #[test]
    fn dropping_the_guard_writes_the_last_lines() {
        let (out, writes, release) = blocking_writer();
        let (log, guard) = BufferedLog::start(out).unwrap();
        release.send(()).unwrap();
        release.send(()).unwrap();
        (&log).write_all(b"almost\n").unwrap();
        (&log).write_all(b"last\n").unwrap();
        drop(guard);
        assert_eq!(writes.iter().collect::<Vec<_>>().concat(), b"almost\nlast\n");
    }

    #[test]
    fn logging_does_not_wait_for_a_stalled_reader() {
        let (out, writes, release) = blocking_writer();
        let (log, guard) = BufferedLog::start(out).unwrap();
        (&log).write_all(b"first\n").unwrap();
        writes.recv().unwrap();
        let line = [b'x'; 1_024];
        for _ in 0..BUFFERED_BYTES_MAX / line.len() + 3 {
            (&log).write_all(&line).unwrap();
        }
        let (buffered, dropped) = {
            let buffer = log.lock_buffer();
            (buffer.lines.len(), buffer.dropped)
        };
        assert_eq!((buffered, dropped), (BUFFERED_BYTES_MAX, 3));
        let started = Instant::now();
        drop(guard);
        assert!(started.elapsed() < FLUSH_TIMEOUT * 10, "dropping the guard does not wait either");
        drop(release);
    }
}
