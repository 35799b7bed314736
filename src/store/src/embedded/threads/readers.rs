//! Threads that read, and the queue that they share. Each has a connection that cannot write.
//!
//! A reader that wakes up takes its share of all waiting jobs and reads them from one snapshot of the database, because
//! waking up costs more than most reads. The snapshot is taken after the jobs were queued, so a read after an answered
//! write sees that write.

use std::collections::VecDeque;

use super::job::{Job, execute_all};
use crate::embedded::database::statements::Database;
use crate::error::StoreError;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Number of reading threads, each with one connection.
pub(crate) const READERS: usize = 2;

/// Jobs that a reader takes at a time; few, so that a slow one delays little.
const TOGETHER: usize = 16;

/// The queue of reads.
pub(crate) struct Reads {
    waiting: Mutex<Waiting>,
    queued: Condvar,
    max: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Box<dyn Job>>,
    /// Number of sleeping readers, and of those that have been notified.
    asleep: usize,
    notified: usize,
    closed: bool,
}

impl Reads {
    /// Returns a queue for at most `max` reads.
    pub(crate) fn new(max: usize) -> Self {
        Self { waiting: Mutex::default(), queued: Condvar::new(), max }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a read, or refuses it at once when too many wait.
    pub(crate) fn push(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(StoreError::unavailable("it is closed"));
        }
        if waiting.jobs.len() >= self.max {
            return Err(StoreError::Overloaded);
        }
        waiting.jobs.push_back(job);
        if waiting.asleep > waiting.notified {
            waiting.notified += 1;
            drop(waiting);
            self.queued.notify_one();
        }
        Ok(())
    }

    /// Refuses later reads, and lets the readers end when the queue is empty.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.queued.notify_all();
    }

    /// Waits for jobs and takes a reader's share of them; `None` when the queue is closed and empty.
    fn take(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut waiting = self.waiting();
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting.asleep += 1;
            waiting = self.queued.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.asleep -= 1;
            waiting.notified = waiting.notified.saturating_sub(1);
        }
        let share = waiting.jobs.len().div_ceil(READERS).min(TOGETHER);
        Some(waiting.jobs.drain(..share).collect())
    }
}

/// Executes jobs until the queue is closed and empty.
pub(crate) fn run(db: &Database, reads: &Reads) {
    while let Some(jobs) = reads.take() {
        execute_all("BEGIN", db, jobs);
    }
}

#[cfg(all(test, feature = "interleavings"))]
mod interleavings {
    use super::*;
    use crate::sync::Arc;

    /// A job that reads nothing.
    struct Nothing;

    impl Job for Nothing {
        fn weight(&self) -> usize {
            0
        }

        fn execute(&mut self, _: &Database) -> rusqlite::Result<()> {
            Ok(())
        }

        fn answer(self: Box<Self>, _: Result<(), StoreError>) {}
    }

    #[test]
    fn in_no_interleaving_does_a_read_wait_while_every_reader_sleeps() {
        let explored = || {
            let reads = Arc::new(Reads::new(8));
            let readers: Vec<_> = (0..READERS)
                .map(|_| {
                    let reads = Arc::clone(&reads);
                    shuttle::thread::spawn(move || {
                        std::iter::from_fn(|| reads.take()).map(|share| share.len()).sum::<usize>()
                    })
                })
                .collect();
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let reads = Arc::clone(&reads);
                    shuttle::thread::spawn(move || (0..2).for_each(|_| reads.push(Box::new(Nothing)).unwrap()))
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            // They wake up by themselves: nothing else notifies them before it is closed.
            while !reads.waiting().jobs.is_empty() {
                shuttle::thread::yield_now();
            }
            reads.close();
            assert_eq!(readers.into_iter().map(|reader| reader.join().unwrap()).sum::<usize>(), 4);
            assert!(matches!(reads.push(Box::new(Nothing)), Err(StoreError::Unavailable(_))));
        };
        shuttle::check_random(explored, 20_000);
    }
}
