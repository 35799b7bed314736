//! Reader threads, each with a read-only connection, and the queue that they share.
//!
//! A reader that wakes up takes its share of the waiting jobs and executes them in one snapshot of the database,
//! because waking up costs more than most reads. The snapshot begins after the jobs were queued, so a read sees every
//! write that was answered before it.

use std::collections::VecDeque;

use super::job::{Job, execute_all};
use crate::embedded::database::statements::Database;
use crate::error::StoreError;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Number of reader threads.
pub(crate) const READERS: usize = 2;

/// Maximum number of jobs that a reader takes at once. It is low, so that a slow job delays few others.
const SHARE_MAX: usize = 16;

/// The queue of reads.
pub(crate) struct ReadQueue {
    state: Mutex<QueueState>,
    /// Notifies a sleeping reader of a new job.
    job_queued: Condvar,
    jobs_max: usize,
}

/// The waiting reads and the sleeping readers.
#[derive(Default)]
struct QueueState {
    jobs: VecDeque<Box<dyn Job>>,
    /// Number of sleeping readers, including the notified ones.
    asleep: usize,
    /// Number of notified readers that have not woken up yet.
    notified: usize,
    is_closed: bool,
}

impl ReadQueue {
    /// Returns a queue for at most `jobs_max` reads.
    pub(crate) fn new(jobs_max: usize) -> Self {
        Self { state: Mutex::default(), job_queued: Condvar::new(), jobs_max }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a read, or refuses it immediately if the queue is full or closed.
    pub(crate) fn push(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(StoreError::unavailable("the store is closed"));
        }
        if state.jobs.len() >= self.jobs_max {
            return Err(StoreError::Overloaded);
        }
        state.jobs.push_back(job);
        if state.asleep > state.notified {
            state.notified += 1;
            drop(state);
            self.job_queued.notify_one();
        }
        Ok(())
    }

    /// Refuses further reads, and ends the readers when the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.job_queued.notify_all();
    }

    /// Waits for jobs and takes a reader's share of them; `None` when the queue is closed and empty.
    fn take_share(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut state = self.lock();
        while state.jobs.is_empty() {
            if state.is_closed {
                return None;
            }
            state.asleep += 1;
            state = self.job_queued.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep -= 1;
            state.notified = state.notified.saturating_sub(1);
        }
        let share = state.jobs.len().div_ceil(READERS).min(SHARE_MAX);
        Some(state.jobs.drain(..share).collect())
    }
}

/// Executes jobs until the queue is closed and empty.
pub(crate) fn run(db: &Database, reads: &ReadQueue) {
    while let Some(jobs) = reads.take_share() {
        execute_all("BEGIN", db, jobs);
    }
}

#[cfg(all(test, feature = "interleavings"))]
mod interleavings {
    use super::*;
    use crate::sync::Arc;

    /// A job that reads nothing.
    struct EmptyJob;

    impl Job for EmptyJob {
        fn weight(&self) -> usize {
            0
        }

        fn execute(&mut self, _: &Database) -> rusqlite::Result<()> {
            Ok(())
        }

        fn send_answer(self: Box<Self>, _: Result<(), StoreError>) {}
    }

    #[test]
    fn no_interleaving_leaves_a_read_waiting_while_all_readers_sleep() {
        let scenario = || {
            let reads = Arc::new(ReadQueue::new(8));
            let readers: Vec<_> = (0..READERS)
                .map(|_| {
                    let reads = Arc::clone(&reads);
                    shuttle::thread::spawn(move || {
                        std::iter::from_fn(|| reads.take_share()).map(|share| share.len()).sum::<usize>()
                    })
                })
                .collect();
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let reads = Arc::clone(&reads);
                    shuttle::thread::spawn(move || (0..2).for_each(|_| reads.push(Box::new(EmptyJob)).unwrap()))
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            // Only the pushes notify readers before the queue is closed.
            while !reads.lock().jobs.is_empty() {
                shuttle::thread::yield_now();
            }
            reads.close();
            assert_eq!(readers.into_iter().map(|reader| reader.join().unwrap()).sum::<usize>(), 4);
            assert!(matches!(reads.push(Box::new(EmptyJob)), Err(StoreError::Unavailable(_))));
        };
        shuttle::check_random(scenario, 20_000);
    }
}
