//! An engine that checks batches and answers.

use std::fmt;

use sakshi_domain::time::Timestamp;
use sakshi_trace::invariant::{Broken, Part};

use super::answers::{self, Expected, ExpectedAnswer};
use super::{form, step};
use crate::engine::{Answers, Applied, Batch, Engine, Query, ScanFrom, Scanned, Table};
use crate::error::{StoreError, StoreFuture};
use crate::redis::{Finish, NodeId};

/// The engine of a store. Batches and answers that break an invariant are neither committed nor served.
pub(crate) struct CheckedEngine(Box<dyn Engine>);

/// Returns the first invariant that a batch breaks.
pub(super) fn broken(batch: &Batch, joins_places: bool) -> Option<&'static str> {
    form::broken(batch, joins_places).or_else(|| step::broken(batch))
}

/// Returns an error for the name of a broken invariant, if there is one.
const fn require_unbroken(name: Option<&'static str>, part: Part) -> Result<(), (Part, &'static str)> {
    match name {
        None => Ok(()),
        Some(name) => Err((part, name)),
    }
}

/// Builds the error for a broken invariant of this part. Counts and logs it.
fn broken_error((part, name): (Part, &'static str)) -> StoreError {
    StoreError::Broken(Broken::new(part, name))
}

impl CheckedEngine {
    /// Wraps an engine in checks.
    pub(crate) const fn new(engine: Box<dyn Engine>) -> Self {
        Self(engine)
    }

    /// Returns the wrapped engine, which answers without checks.
    pub(crate) fn unchecked(&self) -> &dyn Engine {
        &*self.0
    }

    /// Commits batches that break no invariant. Does not check the answers, so records that guards saw may be damaged.
    pub(crate) fn commit_as_is(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        match self.check_batches(&batches) {
            Ok(()) => self.0.commit(batches),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// Refuses batches that break an invariant.
    fn check_batches(&self, batches: &[Batch]) -> Result<(), StoreError> {
        let joins_places = self.0.joins_places();
        batches
            .iter()
            .try_for_each(|batch| require_unbroken(broken(batch, joins_places), Part::Batch))
            .map_err(broken_error)
    }

    /// Commits batches that break no invariant, and checks the answers.
    fn commit_with(
        &self,
        batches: Vec<Batch>,
        commit: fn(&dyn Engine, Vec<Batch>) -> StoreFuture<Vec<Applied>>,
    ) -> StoreFuture<Vec<Applied>> {
        if let Err(error) = self.check_batches(&batches) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let expected: Vec<Expected> = batches.iter().map(Expected::new).collect();
        let committing = commit(&*self.0, batches);
        Box::pin(async move {
            let applied = committing.await?;
            require_unbroken(answers::check_batches(&expected, &applied), Part::Answer).map_err(broken_error)?;
            Ok(applied)
        })
    }

    /// Answers queries, and checks the answers.
    fn read_with(
        &self,
        queries: Vec<Query>,
        read: fn(&dyn Engine, Vec<Query>) -> StoreFuture<Answers>,
    ) -> StoreFuture<Answers> {
        let expected: Vec<_> = queries.iter().map(ExpectedAnswer::new).collect();
        let reading = read(&*self.0, queries);
        Box::pin(async move {
            let answers = reading.await?;
            require_unbroken(answers::check_queries(&expected, &answers), Part::Record).map_err(broken_error)?;
            Ok(answers)
        })
    }
}

impl Engine for CheckedEngine {
    fn system(&self) -> &'static str {
        self.0.system()
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.read_with(queries, |engine, queries| engine.read(queries))
    }

    fn read_confirmed(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.read_with(queries, |engine, queries| engine.read_confirmed(queries))
    }

    fn may_be_ahead(&self) -> bool {
        self.0.may_be_ahead()
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.commit_with(batches, |engine, batches| engine.commit(batches))
    }

    fn commit_until_answered(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.commit_with(batches, |engine, batches| engine.commit_until_answered(batches))
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.0.scan(table, from, limit)
    }

    fn scan_kinds(&self, tables: Vec<&'static Table>, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.0.scan_kinds(tables, from, limit)
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        match self.check_batches(std::slice::from_ref(&batch)) {
            Ok(()) => self.0.sweep(now, limit, batch),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    fn joins_places(&self) -> bool {
        self.0.joins_places()
    }

    fn works_at_once(&self) -> bool {
        self.0.works_at_once()
    }

    fn confirm(&self) -> StoreFuture<()> {
        self.0.confirm()
    }

    fn check(&self) -> StoreFuture<()> {
        self.0.check()
    }

    fn is_nearly_full(&self) -> bool {
        self.0.is_nearly_full()
    }

    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    fn finish_upgrade(&self) -> StoreFuture<Finish> {
        self.0.finish_upgrade()
    }

    fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        self.0.accept_loss()
    }

    fn purge(&self) -> StoreFuture<()> {
        self.0.purge()
    }

    fn members(&self) -> Vec<(NodeId, Timestamp)> {
        self.0.members()
    }

    fn leave(&self) -> StoreFuture<()> {
        self.0.leave()
    }
}

impl fmt::Debug for CheckedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
