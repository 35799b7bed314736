//! Queries, and the answers to them.

use std::collections::VecDeque;

use sakshi_domain::time::Timestamp;

use super::{Key, Operand, Record, Value};
use crate::error::StoreError;

/// A question about what is kept.
#[derive(Clone, Debug)]
pub enum Query {
    /// A record.
    Record(Key),
    /// The same with these fields alone.
    Fields(Key, &'static [&'static str]),
    /// The end of a record, in milliseconds since 1970; 0 for one that stays, and for a missing one.
    End(Key),
    /// The entries of a list from this number on: at most so many, and no further one once their last fields hold so many bytes.
    Entries {
        /// The list.
        list: Key,
        /// From 1.
        first: u64,
        /// At most so many.
        limit: u64,
        /// The first entry is given in any case.
        max_bytes: usize,
    },
    /// The number of entries of a list.
    Length(Key),
    /// Members of an index by score, and by their bytes where scores are equal.
    Members {
        /// The index.
        index: Key,
        /// Their score is above this; `i64::MIN` for all.
        above: i64,
        /// And at most this; `i64::MAX` for all.
        until: Operand,
        /// Members to skip.
        offset: u64,
        /// At most so many.
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
    /// A record, if there is one.
    Record(Option<Record>),
    /// Entries with the values of their fields.
    Entries(Vec<Vec<Value>>),
    /// Members with their scores.
    Members(Vec<(Vec<u8>, i64)>),
    /// A number.
    Number(u64),
}

/// The answers to some queries, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The engine's time.
    pub now: Timestamp,
    /// The answers.
    pub found: VecDeque<Answer>,
}

impl Query {
    /// All members, in the order of their scores, a page of them.
    pub fn page(index: Key, offset: u64, limit: u64) -> Self {
        Self::Members { index, above: i64::MIN, until: i64::MAX.into(), offset, limit }
    }

    /// All entries of a list from this number on, at most so many.
    pub const fn entries(list: Key, first: u64, limit: u64) -> Self {
        Self::Entries { list, first, limit, max_bytes: usize::MAX }
    }

    /// Counts all members.
    pub fn count(index: Key) -> Self {
        Self::Count(index, i64::MAX.into())
    }

    /// The key of the record, list or index.
    pub const fn key(&self) -> &Key {
        match self {
            Self::Record(key) | Self::Fields(key, _) | Self::End(key) | Self::Length(key) | Self::Last(key) | Self::Count(key, _) => key,
            Self::Entries { list, .. } => list,
            Self::Members { index, .. } => index,
        }
    }
}

impl Answers {
    fn next(&mut self) -> Result<Answer, StoreError> {
        self.found.pop_front().ok_or_else(|| StoreError::unreadable("an answer"))
    }

    /// The next answer, which is a record.
    ///
    /// # Errors
    /// It is something else.
    pub fn record(&mut self) -> Result<Option<Record>, StoreError> {
        match self.next()? {
            Answer::Record(record) => Ok(record),
            _ => Err(StoreError::unreadable("a record")),
        }
    }

    /// The next answer, which is entries.
    ///
    /// # Errors
    /// It is something else.
    pub fn entries(&mut self) -> Result<Vec<Vec<Value>>, StoreError> {
        match self.next()? {
            Answer::Entries(entries) => Ok(entries),
            _ => Err(StoreError::unreadable("a list")),
        }
    }

    /// The next answer, which is members.
    ///
    /// # Errors
    /// It is something else.
    pub fn members(&mut self) -> Result<Vec<(Vec<u8>, i64)>, StoreError> {
        match self.next()? {
            Answer::Members(members) => Ok(members),
            _ => Err(StoreError::unreadable("an index")),
        }
    }

    /// The next answer, which is a number.
    ///
    /// # Errors
    /// It is something else.
    pub fn number(&mut self) -> Result<u64, StoreError> {
        match self.next()? {
            Answer::Number(number) => Ok(number),
            _ => Err(StoreError::unreadable("a number")),
        }
    }
}
