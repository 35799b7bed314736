//! Jobs: work inside the database, and the channel for the answer.
//!
//! Work must be repeatable: if the transaction of a group of jobs fails, each job is executed again in its own
//! transaction. The result of a job is sent only after the commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use crate::embedded::database::statements::Database;
use crate::error::StoreError;

/// Work queued for a thread.
pub(crate) trait Job: Send {
    /// Returns the approximate number of bytes that the job writes beyond a few small rows.
    fn weight(&self) -> usize;
    /// Does the work inside the current transaction and stores the result.
    fn execute(&mut self, db: &Database) -> rusqlite::Result<()>;
    /// Sends the stored result, or the error of the commit.
    fn send_answer(self: Box<Self>, commit_result: Result<(), StoreError>);
}

/// A job that runs a closure.
pub(crate) struct ClosureJob<W, T> {
    work: W,
    weight: usize,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

/// Returns a job that runs a closure, and the receiver of its answer.
pub(crate) fn job_with_answer<W, T>(weight: usize, work: W) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>)
where
    W: FnMut(&Database) -> rusqlite::Result<T> + Send + 'static,
    T: Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(ClosureJob { work, weight, result: None, reply }), answer)
}

impl<W, T> Job for ClosureJob<W, T>
where
    W: FnMut(&Database) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn weight(&self) -> usize {
        self.weight
    }

    fn execute(&mut self, db: &Database) -> rusqlite::Result<()> {
        self.result = Some((self.work)(db)?);
        Ok(())
    }

    fn send_answer(self: Box<Self>, commit_result: Result<(), StoreError>) {
        let result = self.result.ok_or_else(|| StoreError::unavailable("the work was not executed"));
        // The caller may have stopped waiting; the write is committed nevertheless.
        let _ = self.reply.send(commit_result.and(result));
    }
}

/// Executes jobs in one transaction, which the statement `begin` begins, and answers them. If the transaction fails,
/// each job gets its own transaction, so that a failing job does not affect the others.
pub(crate) fn execute_all(begin: &str, db: &Database, mut jobs: Vec<Box<dyn Job>>) {
    match execute_in_one_transaction(begin, db, &mut jobs) {
        Err(_) if jobs.len() > 1 => {
            for mut job in jobs {
                let commit_result = execute_in_one_transaction(begin, db, std::slice::from_mut(&mut job));
                job.send_answer(commit_result);
            }
        }
        commit_result => jobs.into_iter().for_each(|job| job.send_answer(commit_result.clone())),
    }
}

/// Executes and commits all jobs, or none.
fn execute_in_one_transaction(begin: &str, db: &Database, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    db.health.check()?;
    let attempt = catch_unwind(AssertUnwindSafe(|| -> rusqlite::Result<()> {
        db.statement(begin)?.execute([])?;
        for job in jobs {
            job.execute(db)?;
        }
        db.statement("COMMIT")?.execute([]).map(drop)
    }));
    let error = match attempt {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => db.health.translate(error),
        Err(_) => StoreError::unavailable("an operation panicked"),
    };
    // SQLite rolls back by itself after some errors.
    if !db.connection.is_autocommit() && db.connection.execute_batch("ROLLBACK").is_err() {
        tracing::error!("a transaction could not be rolled back");
    }
    Err(error)
}
