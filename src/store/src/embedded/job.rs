//! One waiting piece of work: what to do inside the database, and whom to answer.
//!
//! Work is repeatable, because a group whose transaction failed is carried out once more one by
//! one; what it returned is kept back until the commit and only then sent.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use sakshi_domain::clock::Clock;
use sakshi_domain::time::Timestamp;
use tokio::sync::oneshot;

use super::fault::{Health, unavailable};
use crate::error::StoreError;

/// The database as a piece of work sees it.
pub(super) struct Session<'a> {
    pub(super) connection: &'a Connection,
    pub(super) clock: &'a dyn Clock,
}

impl Session<'_> {
    /// The store's clock.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn statement(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// The first row, if there is one.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.statement(sql)?.query_row(params, read).optional()
    }

    /// Every row.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.statement(sql)?.query_map(params, read)?.collect()
    }

    /// Changes rows; how many.
    pub(super) fn change(&self, sql: &str, params: impl Params) -> rusqlite::Result<u64> {
        self.statement(sql)?.execute(params).map(|rows| u64::try_from(rows).unwrap_or(u64::MAX))
    }
}

/// Work that waits for its turn.
pub(super) trait Job: Send {
    /// Bytes that it will write, roughly, beyond a small row or two.
    fn weight(&self) -> usize;
    /// Carries the work out inside the current transaction and keeps what it returns.
    fn carry_out(&mut self, session: &Session<'_>) -> rusqlite::Result<()>;
    /// Sends what was kept, or the error.
    fn answer(self: Box<Self>, verdict: Result<(), StoreError>);
}

/// A job around a closure.
pub(super) struct Waiting<W, T> {
    work: W,
    weight: usize,
    kept: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

/// A boxed job, and where its answer will arrive.
pub(super) fn waiting<W, T>(weight: usize, work: W) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>)
where
    W: FnMut(&Session<'_>) -> rusqlite::Result<T> + Send + 'static,
    T: Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(Waiting { work, weight, kept: None, reply }), answer)
}

impl<W, T> Job for Waiting<W, T>
where
    W: FnMut(&Session<'_>) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn weight(&self) -> usize {
        self.weight
    }

    fn carry_out(&mut self, session: &Session<'_>) -> rusqlite::Result<()> {
        self.kept = Some((self.work)(session)?);
        Ok(())
    }

    fn answer(self: Box<Self>, verdict: Result<(), StoreError>) {
        let kept = self.kept.ok_or_else(|| unavailable("the work was not carried out"));
        // A caller that no longer listens has its answer in the database.
        let _ = self.reply.send(verdict.and(kept));
    }
}

/// Carries out jobs in one transaction and answers them. When it fails, each gets a transaction of its
/// own, so that one that cannot succeed takes no other with it.
pub(super) fn carry_out_all(begin: &str, session: &Session<'_>, health: &Health, mut jobs: Vec<Box<dyn Job>>) {
    match in_one_transaction(begin, session, health, &mut jobs) {
        Err(_) if jobs.len() > 1 => {
            for mut job in jobs {
                let verdict = in_one_transaction(begin, session, health, std::slice::from_mut(&mut job));
                job.answer(verdict);
            }
        }
        verdict => jobs.into_iter().for_each(|job| job.answer(verdict.clone())),
    }
}

/// All of it is committed, or none.
fn in_one_transaction(begin: &str, session: &Session<'_>, health: &Health, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    health.check()?;
    let attempt = catch_unwind(AssertUnwindSafe(|| -> rusqlite::Result<()> {
        session.statement(begin)?.execute([])?;
        for job in jobs {
            job.carry_out(session)?;
        }
        session.statement("COMMIT")?.execute([]).map(drop)
    }));
    let verdict = match attempt {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => health.judge(&error),
        Err(_) => unavailable("a transition panicked"),
    };
    // SQLite ends a transaction by itself after some errors.
    if !session.connection.is_autocommit() && session.connection.execute_batch("ROLLBACK").is_err() {
        tracing::error!("a transaction could not be rolled back");
    }
    Err(verdict)
}
