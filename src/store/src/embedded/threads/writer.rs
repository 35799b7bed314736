//! The only thread that writes. It executes all waiting jobs in one transaction, makes them durable with one commit,
//! and then answers them.

use std::sync::mpsc::Receiver;
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use super::checkpoint::WriterSide;
use super::job::{Job, execute_all};
use crate::embedded::database::statements::Database;

/// Maximum number of jobs in one commit.
const GROUP_MAX: usize = 512;
/// Time for which a busy writer gathers more jobs: about the duration of a commit, which costs the same for one job as
/// for many.
const GATHER_TIME: Duration = Duration::from_micros(200);
/// Maximum number of bytes in one commit, approximately.
const GROUP_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) db: Database,
    pub(crate) checkpoints: WriterSide,
    /// The threads of the other connections, which end when the queues are closed.
    pub(crate) other_threads: Vec<JoinHandle<()>>,
}

impl Writer {
    /// Executes jobs until every sender is dropped and all jobs are answered.
    pub(crate) fn run(mut self, jobs: &Receiver<Box<dyn Job>>) {
        let mut is_busy = false;
        let commit_seconds = metrics::histogram!("sakshi_store_commit_seconds");
        while let Ok(first) = jobs.recv() {
            if is_busy {
                park_timeout(GATHER_TIME);
            }
            let group = gather(first, jobs);
            is_busy = group.len() > 1;
            let started = Instant::now();
            execute_all("BEGIN IMMEDIATE", &self.db, group);
            commit_seconds.record(started.elapsed().as_secs_f64());
            self.checkpoints.checkpoint_if_due(&self.db);
        }
        // Ends the checkpoint thread.
        drop(self.checkpoints);
        // The last connection to close copies the log into the file and removes the log.
        join(self.other_threads);
    }
}

/// Returns a group of waiting jobs, within the limits of one commit.
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

    use super::super::job::job_with_answer;
    use super::*;

    /// Returns a job that writes about this number of bytes.
    fn job(bytes: usize) -> Box<dyn Job> {
        job_with_answer(bytes, |_| Ok(())).0
    }

    /// Returns the size of the first group when `jobs` jobs of `bytes` bytes wait.
    fn first_group_size(jobs: usize, bytes: usize) -> usize {
        let (sender, waiting) = channel();
        (1..jobs).for_each(|_| sender.send(job(bytes)).unwrap());
        gather(job(bytes), &waiting).len()
    }

    #[test]
    fn a_group_has_the_waiting_jobs_within_limits_of_count_and_bytes() {
        let counts = [1, GROUP_MAX - 1, GROUP_MAX, GROUP_MAX + 1, 4 * GROUP_MAX];
        assert_eq!(counts.map(|jobs| first_group_size(jobs, 0)), [1, GROUP_MAX - 1, GROUP_MAX, GROUP_MAX, GROUP_MAX]);
        assert_eq!([1, 7, 8, 9, 20].map(|jobs| first_group_size(jobs, 1_024 * 1_024)), [1, 7, 8, 8, 8]);
        assert_eq!(first_group_size(3, GROUP_BYTES_MAX + 1), 1);
    }
}
