//! Threads that read. Each has a connection that cannot write, and each piece of work sees one
//! unchanging state of the database.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use sakshi_domain::clock::Clock;

use super::fault::Health;
use super::job::{Job, Session, in_one_transaction};

/// Threads, and connections, that read.
pub(super) const READERS: usize = 2;

/// The queue that the readers share.
pub(super) type Queue = Arc<Mutex<Receiver<Box<dyn Job>>>>;

pub(super) struct Reader {
    pub(super) connection: Connection,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) health: Arc<Health>,
}

impl Reader {
    /// Works until every sender is gone.
    pub(super) fn run(self, queue: &Queue) {
        let session = Session { connection: &self.connection, clock: &*self.clock };
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(mut job) = next else { return };
            let verdict = in_one_transaction("BEGIN", &session, &self.health, std::slice::from_mut(&mut job));
            job.answer(verdict);
        }
    }
}
