//! Queries, and the answers to them.

use std::collections::VecDeque;

use sakshi_domain::time::Timestamp;

use super::{Key, Operand, Record, Value};
use crate::error::StoreError;

/// A query of the records.
#[derive(Clone, Debug)]
pub enum Query {
    /// A record.
    Record(Key),
    /// A record with these fields alone.
    Fields(Key, &'static [&'static str]),
    /// The end of a record, in milliseconds since 1970; 0 for a missing record and for one without an end.
    End(Key),
    /// The entries of a list from this number on. Stops at `limit` entries, or once their last fields hold `max_bytes`
    /// bytes.
    Entries {
        /// The list.
        list: Key,
        /// First number, from 1.
        first: u64,
        /// Maximum number of entries.
        limit: u64,
        /// Maximum number of bytes; the first entry is returned in any case.
        max_bytes: usize,
    },
    /// The number of entries of a list.
    Length(Key),
    /// Members of an index by score, and by their bytes where scores are equal.
    Members {
        /// The index.
        index: Key,
        /// Lower bound of the score, exclusive; `i64::MIN` for all.
        above: i64,
        /// Upper bound of the score, inclusive; `i64::MAX` for all.
        until: Operand,
        /// Number of members to skip.
        offset: u64,
        /// Maximum number of members.
        limit: u64,
    },
    /// The member with the highest score.
    Last(Key),
    /// The number of members with at most this score.
    Count(Key, Operand),
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A record, if it exists.
    Record(Option<Record>),
    /// Entries with the values of their fields.
    Entries(Vec<Vec<Value>>),
    /// Members with their scores.
    Members(Vec<(Vec<u8>, i64)>),
    /// A number.
    Number(u64),
}

/// The answers to queries, in the order of the queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The engine's time.
    pub now: Timestamp,
    /// The answers.
    pub found: VecDeque<Answer>,
}

impl Query {
    /// Returns a query of a page of members, in the order of their scores.
    pub fn page(index: Key, offset: u64, limit: u64) -> Self {
        Self::Members { index, above: i64::MIN, until: i64::MAX.into(), offset, limit }
    }

    /// Returns a query of at most `limit` entries of a list from this number on.
    pub const fn entries(list: Key, first: u64, limit: u64) -> Self {
        Self::Entries { list, first, limit, max_bytes: usize::MAX }
    }

    /// Returns a query that counts all members.
    pub fn count(index: Key) -> Self {
        Self::Count(index, i64::MAX.into())
    }

    /// Returns the key of the record, list or index.
    pub const fn key(&self) -> &Key {
        match self {
            Self::Record(key)
            | Self::Fields(key, _)
            | Self::End(key)
            | Self::Length(key)
            | Self::Last(key)
            | Self::Count(key, _) => key,
            Self::Entries { list, .. } => list,
            Self::Members { index, .. } => index,
        }
    }
}

impl Answers {
    fn next(&mut self) -> Result<Answer, StoreError> {
        self.found.pop_front().ok_or_else(|| StoreError::unreadable("an answer"))
    }

    /// Returns the next answer, which is a record.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the next answer is something else.
    pub fn record(&mut self) -> Result<Option<Record>, StoreError> {
        match self.next()? {
            Answer::Record(record) => Ok(record),
            _ => Err(StoreError::unreadable("a record")),
        }
    }

    /// Returns the next answer, which is entries.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the next answer is something else.
    pub fn entries(&mut self) -> Result<Vec<Vec<Value>>, StoreError> {
        match self.next()? {
            Answer::Entries(entries) => Ok(entries),
            _ => Err(StoreError::unreadable("a list")),
        }
    }

    /// Returns the next answer, which is members.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the next answer is something else.
    pub fn members(&mut self) -> Result<Vec<(Vec<u8>, i64)>, StoreError> {
        match self.next()? {
            Answer::Members(members) => Ok(members),
            _ => Err(StoreError::unreadable("an index")),
        }
    }

    /// Returns the next answer, which is a number.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the next answer is something else.
    pub fn number(&mut self) -> Result<u64, StoreError> {
        match self.next()? {
            Answer::Number(number) => Ok(number),
            _ => Err(StoreError::unreadable("a number")),
        }
    }
}
