//! A buffer for log lines, written by a thread of its own. The service never waits for the log's reader: lines beyond
//! the buffer are counted and dropped. The thread pauses after each write, so a first line is written at once and the
//! following ones in one call. Logging wakes it only if no line waits.

use std::io::{self, Write};
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Most bytes of lines that wait to be written.
const WAITING_MAX: usize = 16 * 1_024 * 1_024;

/// Capacity that the buffer keeps between two writes.
const CAPACITY_KEPT: usize = 256 * 1_024;

/// Longest wait of a line, and so the part of the log that a crash may lose.
const PAUSE: Duration = Duration::from_millis(5);

/// Time the guard waits for a reader that does not read.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The buffer; clones share it.
#[derive(Clone)]
pub(super) struct BufferedLog(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    dropped: u64,
    ended: bool,
}

/// Keeps the log's thread running. On drop, the thread writes the remaining lines and ends.
#[must_use]
pub(super) struct FlushGuard {
    lines: BufferedLog,
    written: Receiver<()>,
}

impl BufferedLog {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<(Self, FlushGuard)> {
        let lines = Self(Arc::new(Shared { waiting: Mutex::default(), changed: Condvar::new() }));
        let (end, written) = channel();
        let taken = lines.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || taken.write_out(out, end))?;
        Ok((lines.clone(), FlushGuard { lines, written }))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::disallowed_methods, reason = "it is the pause that is wanted, and the thread does nothing else")]
    fn write_out(self, mut out: impl Write, _end: Sender<()>) {
        let mut lines = Vec::new();
        loop {
            let idle = |waiting: &mut Waiting| waiting.lines.is_empty() && !waiting.ended;
            let mut waiting = self.0.changed.wait_while(self.waiting(), idle).unwrap_or_else(PoisonError::into_inner);
            mem::swap(&mut waiting.lines, &mut lines);
            let (dropped, ended) = (mem::take(&mut waiting.dropped), waiting.ended);
            drop(waiting);
            // There is nowhere to report a failed write.
            let _ = out.write_all(&lines).and_then(|()| out.flush());
            lines.clear();
            lines.shrink_to(CAPACITY_KEPT);
            if dropped > 0 {
                metrics::counter!("sakshi_log_lines_dropped_total").increment(dropped);
                tracing::warn!(
                    log.dropped = dropped,
                    "lines of the log were dropped, because their reader was too slow"
                );
            }
            if ended {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Write for &BufferedLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.waiting();
        if waiting.lines.len() + line.len() > WAITING_MAX {
            waiting.dropped += 1;
            return Ok(line.len());
        }
        let first = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(line);
        drop(waiting);
        if first {
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
        self.lines.waiting().ended = true;
        self.lines.0.changed.notify_one();
        // The channel closes when the thread ends.
        let _ = self.written.recv_timeout(FLUSH_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Records each write, and completes it when allowed.
    struct Calls {
        called: Sender<Vec<u8>>,
        may: Receiver<()>,
    }

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.called.send(bytes.to_vec()).map_err(io::Error::other)?;
            self.may.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn calls() -> (Calls, Receiver<Vec<u8>>, Sender<()>) {
        let ((called, calls), (go, may)) = (channel(), channel());
        (Calls { called, may }, calls, go)
    }

    #[test]
    fn what_comes_while_a_line_is_written_is_written_with_one_call_in_order() {
        let (out, calls, go) = calls();
        let (lines, ending) = BufferedLog::start(out).unwrap();
        (&lines).write_all(b"one\n").unwrap();
        assert_eq!(calls.recv().unwrap(), b"one\n");
        (&lines).write_all(b"two\n").unwrap();
        (&lines).write_all(b"three\n").unwrap();
        go.send(()).unwrap();
        assert_eq!(calls.recv().unwrap(), b"two\nthree\n");
        go.send(()).unwrap();
        drop(ending);
        assert!(calls.recv().is_err(), "the thread has ended");
    }

    #[test]
    fn the_last_lines_are_written_before_the_end() {
        let (out, calls, go) = calls();
        let (lines, ending) = BufferedLog::start(out).unwrap();
        go.send(()).unwrap();
        go.send(()).unwrap();
        (&lines).write_all(b"almost\n").unwrap();
        (&lines).write_all(b"last\n").unwrap();
        drop(ending);
        assert_eq!(calls.iter().collect::<Vec<_>>().concat(), b"almost\nlast\n");
    }

    #[test]
    fn a_writer_does_not_wait_for_a_reader_that_takes_nothing() {
        let (out, calls, go) = calls();
        let (lines, ending) = BufferedLog::start(out).unwrap();
        (&lines).write_all(b"first\n").unwrap();
        calls.recv().unwrap();
        let line = [b'x'; 1_024];
        for _ in 0..WAITING_MAX / line.len() + 3 {
            (&lines).write_all(&line).unwrap();
        }
        let (held, dropped) = {
            let waiting = lines.waiting();
            (waiting.lines.len(), waiting.dropped)
        };
        assert_eq!((held, dropped), (WAITING_MAX, 3));
        let begun = Instant::now();
        drop(ending);
        assert!(begun.elapsed() < FLUSH_TIMEOUT * 10, "nor does the end");
        drop(go);
    }
}
