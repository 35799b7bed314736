//! The one thread that writes. It takes all jobs that wait, executes them in one transaction, makes
//! them durable with one commit, and only then answers.

use std::sync::mpsc::Receiver;
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use super::checkpoint::WriterSide;
use super::job::{Job, Weight, execute_all};
use crate::embedded::database::statements::Database;

/// Callers' writes in one commit.
const GROUP_MAX: usize = 512;
/// How long a busy writer waits for more jobs at most.
const GATHER_MAX: Duration = Duration::from_millis(2);
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
        let (mut crowd, mut pause) = (0, Duration::ZERO);
        let took = metrics::histogram!("sakshi_store_commit_seconds");
        while let Ok(first) = jobs.recv() {
            if !pause.is_zero() {
                park_timeout(pause);
            }
            let (group, writes) = gather(first, jobs);
            let begun = Instant::now();
            execute_all("BEGIN IMMEDIATE", &self.db, group);
            let elapsed = begun.elapsed();
            took.record(elapsed.as_secs_f64());
            crowd = writes.max(crowd / 2);
            pause = pause_after(crowd, elapsed);
            self.checkpoints.after_group(&self.db);
        }
        // The thread that copies the log ends.
        drop(self.checkpoints);
        // The last connection copies the log into the file and removes it when it closes.
        join(self.others);
    }
}

/// How long to wait for more jobs, after commits of so many writes that took so long. A commit costs about the same for one write as for
/// many: the more came together, the longer it pays to wait for others. A single caller never waits.
fn pause_after(writes: usize, took: Duration) -> Duration {
    took.saturating_mul(writes.max(1).ilog2()).min(GATHER_MAX)
}

/// The jobs of one commit, and the number of writes in them.
fn gather(first: Box<dyn Job>, jobs: &Receiver<Box<dyn Job>>) -> (Vec<Box<dyn Job>>, usize) {
    let Weight { mut writes, mut bytes } = first.weight();
    let mut group = vec![first];
    while writes < GROUP_MAX && bytes < GROUP_BYTES_MAX {
        let Ok(job) = jobs.try_recv() else { break };
        let more = job.weight();
        (writes, bytes) = (writes + more.writes, bytes + more.bytes);
        group.push(job);
    }
    (group, writes)
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

    /// How many of these jobs, each with so many writes and bytes, are in the first group.
    fn gathered(jobs: usize, writes: usize, bytes: usize) -> usize {
        let job = || waiting(Weight { writes, bytes }, |_| Ok(())).0;
        let (sender, waiting) = channel();
        (1..jobs).for_each(|_| sender.send(job()).unwrap());
        let (group, together) = gather(job(), &waiting);
        assert_eq!(together, group.len() * writes);
        group.len()
    }

    #[test]
    fn the_more_write_together_the_longer_the_writer_waits_for_others() {
        let micros = |writes, took| pause_after(writes, Duration::from_micros(took)).as_micros();
        assert_eq!([0, 1, 2, 3, 4, 8, 16, 512].map(|writes| micros(writes, 300)), [0, 0, 300, 300, 600, 900, 1_200, 2_000]);
        assert_eq!([1, 2].map(|writes| micros(writes, 50_000)), [0, 2_000]);
    }

    #[test]
    fn a_group_has_what_waits_but_not_too_many_writes_nor_bytes() {
        assert_eq!([1, 2, 511, 512, 513, 2_000].map(|jobs| gathered(jobs, 1, 0)), [1, 2, 511, 512, 512, 512]);
        assert_eq!([1, 7, 8, 9, 20].map(|jobs| gathered(jobs, 64, 0)), [1, 7, 8, 8, 8]);
        assert_eq!([1, 7, 8, 9, 20].map(|jobs| gathered(jobs, 1, 1_024 * 1_024)), [1, 7, 8, 8, 8]);
        assert_eq!(gathered(3, 1, GROUP_BYTES_MAX + 1), 1);
    }
}
