//! The one thread that writes. It takes everything that waits, carries it out in one
//! transaction, makes it durable with one commit, and only then answers.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{JoinHandle, park_timeout};
use std::time::Duration;

use rusqlite::Connection;
use sakshi_domain::clock::Clock;

use super::checkpoint::{WriterSide, last_checkpoint};
use super::fault::Health;
use super::job::{Job, Session, carry_out_all};

/// Transitions in one commit.
const GROUP_MAX: usize = 512;
/// How long a busy writer lets transitions gather: about as long as a commit takes. A commit costs
/// the same whether it carries one or many.
const GATHER: Duration = Duration::from_micros(200);
/// Bytes in one commit, roughly.
const GROUP_BYTES_MAX: usize = 8 * 1_024 * 1_024;

pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) health: Arc<Health>,
    pub(super) checkpoints: WriterSide,
    /// The threads with the other connections; they end by themselves when the queues do.
    pub(super) others: Vec<JoinHandle<()>>,
}

impl Writer {
    /// Works until every sender is gone and everything that waited has been answered.
    pub(super) fn run(mut self, jobs: &Receiver<Box<dyn Job>>) {
        let mut busy = false;
        while let Ok(first) = jobs.recv() {
            if busy {
                park_timeout(GATHER);
            }
            let group = gather(first, jobs);
            busy = group.len() > 1;
            let session = Session { connection: &self.connection, clock: &*self.clock };
            carry_out_all("BEGIN IMMEDIATE", &session, &self.health, group);
            self.checkpoints.after_group(&self.connection, &self.health);
        }
        self.checkpoints.stop();
        join(self.others);
        // Only a connection that is alone removes the log as it closes.
        last_checkpoint(&self.connection);
    }
}

fn gather(first: Box<dyn Job>, jobs: &Receiver<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
    let mut bytes = first.weight();
    let mut group = vec![first];
    while group.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX {
        let Ok(job) = jobs.try_recv() else { break };
        bytes += job.weight();
        group.push(job);
    }
    group
}

/// Waits for threads to end.
pub(super) fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        if thread.join().is_err() {
            tracing::error!("a thread of the store panicked");
        }
    }
}
