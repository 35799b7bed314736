//! A job: work inside the database, and the receiver of its answer.
//!
//! Work is repeatable, because a group of jobs whose transaction failed is executed again one by one. A job's result is
//! sent only after the commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use crate::embedded::database::statements::Database;
use crate::error::StoreError;

/// Work queued for a thread.
pub(crate) trait Job: Send {
    /// Returns the approximate number of bytes that it will write, besides a small row or two.
    fn weight(&self) -> usize;
    /// Does the work inside the current transaction and keeps the result.
    fn execute(&mut self, db: &Database) -> rusqlite::Result<()>;
    /// Sends the kept result, or the error.
    fn answer(self: Box<Self>, verdict: Result<(), StoreError>);
}

/// A job around a closure.
pub(crate) struct Waiting<W, T> {
    work: W,
    weight: usize,
    kept: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

/// Returns a boxed job, and the receiver of its answer.
pub(crate) fn waiting<W, T>(weight: usize, work: W) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>)
where
    W: FnMut(&Database) -> rusqlite::Result<T> + Send + 'static,
    T: Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(Waiting { work, weight, kept: None, reply }), answer)
}

impl<W, T> Job for Waiting<W, T>
where
    W: FnMut(&Database) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn weight(&self) -> usize {
        self.weight
    }

    fn execute(&mut self, db: &Database) -> rusqlite::Result<()> {
        self.kept = Some((self.work)(db)?);
        Ok(())
    }

    fn answer(self: Box<Self>, verdict: Result<(), StoreError>) {
        let kept = self.kept.ok_or_else(|| StoreError::unavailable("the work was not executed"));
        // The caller may have stopped waiting; the write stands.
        let _ = self.reply.send(verdict.and(kept));
    }
}

/// Executes jobs in one transaction and answers them. If it fails, each job gets a transaction of its own, so a failing
/// job makes no other fail.
pub(crate) fn execute_all(begin: &str, db: &Database, mut jobs: Vec<Box<dyn Job>>) {
    match in_one_transaction(begin, db, &mut jobs) {
        Err(_) if jobs.len() > 1 => {
            for mut job in jobs {
                let verdict = in_one_transaction(begin, db, std::slice::from_mut(&mut job));
                job.answer(verdict);
            }
        }
        verdict => jobs.into_iter().for_each(|job| job.answer(verdict.clone())),
    }
}

/// Commits all of it, or nothing.
fn in_one_transaction(begin: &str, db: &Database, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    db.health.check()?;
    let attempt = catch_unwind(AssertUnwindSafe(|| -> rusqlite::Result<()> {
        db.statement(begin)?.execute([])?;
        for job in jobs {
            job.execute(db)?;
        }
        db.statement("COMMIT")?.execute([]).map(drop)
    }));
    let verdict = match attempt {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => db.health.judge(error),
        Err(_) => StoreError::unavailable("an operation panicked"),
    };
    // SQLite ends a transaction by itself after some errors.
    if !db.connection.is_autocommit() && db.connection.execute_batch("ROLLBACK").is_err() {
        tracing::error!("a transaction could not be rolled back");
    }
    Err(verdict)
}
