//! Threads that read, and the queue that they share. Each has a connection that cannot write.
//!
//! A reader that wakes takes its share of all that waits and reads it from one unchanging state of
//! the database: to be woken costs more than most reads do. That state is no older than the moment
//! of taking, so whoever asks after an answered write sees what it wrote.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use sakshi_domain::clock::Clock;

use super::fault::{Health, unavailable};
use super::job::{Job, Session, carry_out_all};
use crate::error::StoreError;

/// Threads, and connections, that read.
pub(super) const READERS: usize = 2;

/// Reads that one of them takes at a time; few enough that a long one holds up little.
const TOGETHER: usize = 16;

/// What waits to be read.
pub(super) struct Reads {
    waiting: Mutex<Waiting>,
    come: Condvar,
    max: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Box<dyn Job>>,
    /// Readers that sleep, and how many of them have been called.
    asleep: usize,
    called: usize,
    closed: bool,
}

impl Reads {
    /// A queue for so many.
    pub(super) fn new(max: usize) -> Self {
        Self { waiting: Mutex::default(), come: Condvar::new(), max }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a read; refuses it at once when too many wait.
    pub(super) fn push(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(unavailable("it is closed"));
        }
        if waiting.jobs.len() >= self.max {
            return Err(StoreError::Overloaded);
        }
        waiting.jobs.push_back(job);
        if waiting.asleep > waiting.called {
            waiting.called += 1;
            drop(waiting);
            self.come.notify_one();
        }
        Ok(())
    }

    /// Refuses what comes from now on, and lets the readers end when nothing waits any more.
    pub(super) fn close(&self) {
        self.waiting().closed = true;
        self.come.notify_all();
    }

    /// A reader's share of what waits, once something does; `None` at the end.
    fn take(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut waiting = self.waiting();
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting.asleep += 1;
            waiting = self.come.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.asleep -= 1;
            waiting.called = waiting.called.saturating_sub(1);
        }
        let share = waiting.jobs.len().div_ceil(READERS).min(TOGETHER);
        Some(waiting.jobs.drain(..share).collect())
    }
}

pub(super) struct Reader {
    pub(super) connection: Connection,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) health: Arc<Health>,
}

impl Reader {
    /// Works until the queue is closed and empty.
    pub(super) fn run(self, reads: &Reads) {
        let session = Session { connection: &self.connection, clock: &*self.clock };
        while let Some(jobs) = reads.take() {
            carry_out_all("BEGIN", &session, &self.health, jobs);
        }
    }
}
