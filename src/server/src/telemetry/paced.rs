//! Writes lines together, and sleeps in between.
//!
//! The log's thread flushes whenever no line waits. Woken by each line, it would cost a busy service a
//! switch and a system call per request, a tenth of what a poll takes. So it pauses after each flush:
//! the first line after a silence is written at once, those behind it a moment later and all at once.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

/// Bytes of lines that are written with one call.
const BATCH_BYTES: usize = 64 * 1_024;

/// How much later than at once a line is written at most: what an end without warning may cost the log.
const PAUSE: Duration = Duration::from_millis(5);

/// A writer for a thread of its own, which it puts to sleep.
pub(super) struct Paced<W: Write>(BufWriter<W>);

impl<W: Write> Paced<W> {
    pub(super) fn new(inner: W) -> Self {
        Self(BufWriter::with_capacity(BATCH_BYTES, inner))
    }
}

impl<W: Write> Write for Paced<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    #[expect(clippy::disallowed_methods, reason = "it is the pause that is wanted, and the thread does nothing else")]
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        std::thread::sleep(PAUSE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    struct Calls(Sender<Vec<u8>>);

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_wait_are_written_with_one_call() {
        let (sender, calls) = channel();
        let mut log = Paced::new(Calls(sender));
        for line in ["one\n", "two\n", "three\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert!(calls.try_recv().is_err());
        log.flush().unwrap();
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), [b"one\ntwo\nthree\n"]);
    }
}
