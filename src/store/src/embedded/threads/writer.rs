//! The one thread that writes. It takes all waiting jobs, executes them in one transaction, makes them durable with one
//! commit, and only then answers.

use std::sync::mpsc::Receiver;
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use super::checkpoint::WriterSide;
use super::job::{Job, execute_all};
use crate::embedded::database::statements::Database;

/// Maximum number of jobs in one commit.
const GROUP_MAX: usize = 512;
/// Pause in which a busy writer waits for more jobs: about as long as a commit takes. A commit costs the same for one
/// job as for many.
const GATHER: Duration = Duration::from_micros(200);
/// Maximum number of bytes in one commit, approximately.
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
        // The thread that copies the log ends.
        drop(self.checkpoints);
        // The last connection copies the log into the file and removes it when it closes.
        join(self.others);
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::job::waiting;
    use super::*;

    fn job(bytes: usize) -> Box<dyn Job> {
        waiting(bytes, |_| Ok(())).0
    }

    /// Returns the number of these jobs, each of `bytes` bytes, in the first group.
    fn gathered(jobs: usize, bytes: usize) -> usize {
        let (sender, waiting) = channel();
        (1..jobs).for_each(|_| sender.send(job(bytes)).unwrap());
        gather(job(bytes), &waiting).len()
    }

    #[test]
    fn a_group_has_what_waits_but_not_too_many_jobs_nor_bytes() {
        assert_eq!([1, 2, 511, 512, 513, 2_000].map(|jobs| gathered(jobs, 0)), [1, 2, 511, 512, 512, 512]);
        assert_eq!([1, 7, 8, 9, 20].map(|jobs| gathered(jobs, 1_024 * 1_024)), [1, 7, 8, 8, 8]);
        assert_eq!(gathered(3, GROUP_BYTES_MAX + 1), 1);
    }
}
