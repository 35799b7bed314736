//! The one thread that writes. It takes all jobs that wait, executes them in one transaction, makes
//! them durable with one commit, and only then answers.

use std::sync::mpsc::Receiver;
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use super::checkpoint::{WriterSide, last_checkpoint};
use super::job::{Job, execute_all};
use crate::embedded::database::statements::Database;

/// Jobs in one commit.
const GROUP_MAX: usize = 512;
/// How long a busy writer waits for more jobs: about as long as a commit takes. A commit costs the
/// same for one job as for many.
const GATHER: Duration = Duration::from_micros(200);
/// Bytes in one commit, roughly.
const GROUP_BYTES_MAX: usize = 8 * 1_024 * 1_024;

pub(crate) struct Writer {
    pub(crate) db: Database,
    pub(crate) checkpoints: WriterSide,
    /// The threads with the other connections. They end by themselves when the queues are closed.
    pub(crate) others: Vec<JoinHandle<()>>,
}

impl Writer {
    /// Executes jobs until every sender is dropped and all jobs are answered.
    pub(crate) fn run(mut self, jobs: &Receiver<Box<dyn Job>>) {
        let mut busy = false;
        let took = metrics::histogram!("sakshi_store_commit_seconds");
        while let Ok(first) = jobs.recv() {
            if busy {
                park_timeout(GATHER);
            }
            let group = gather(first, jobs);
            busy = group.len() > 1;
            let begun = Instant::now();
            execute_all("BEGIN IMMEDIATE", &self.db, group);
            took.record(begun.elapsed().as_secs_f64());
            self.checkpoints.after_group(&self.db);
        }
        self.checkpoints.stop();
        join(self.others);
        // Only the last connection removes the log when it closes.
        last_checkpoint(&self.db.connection);
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
pub(crate) fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        if thread.join().is_err() {
            tracing::error!("a thread of the store panicked");
        }
    }
}
