//! The database for operations: cached statements, rows, and the store's clock.

use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use sakshi_domain::clock::Clock;
use sakshi_domain::time::Timestamp;

use crate::embedded::errors::Health;

/// A connection with the clock that decides expiry, and the health of the file.
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) health: Arc<Health>,
}

impl Database {
    /// Returns the time by the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns a prepared statement from the cache.
    pub(crate) fn statement(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// Returns the first row; `None` without rows.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        parse: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.statement(sql)?.query_row(params, parse).optional()
    }

    /// Returns true if the query has a row.
    pub(crate) fn any(&self, sql: &str, params: impl Params) -> rusqlite::Result<bool> {
        self.statement(sql)?.exists(params)
    }

    /// Returns all rows.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        parse: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.statement(sql)?.query_map(params, parse)?.collect()
    }

    /// Changes rows. Returns the number of changed rows.
    pub(crate) fn change(&self, sql: &str, params: impl Params) -> rusqlite::Result<u64> {
        self.statement(sql)?.execute(params).map(|rows| u64::try_from(rows).unwrap_or(u64::MAX))
    }
}
