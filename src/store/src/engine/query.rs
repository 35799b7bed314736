//! Queries, and the answers to them.

use std::collections::VecDeque;

use sakshi_domain::time::Timestamp;

use super::{Key, NO_LOWER_BOUND, Operand, Record, Value};
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
        /// Lower bound of the score, exclusive; [`NO_LOWER_BOUND`] for all.
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
    /// The number of members whose score is at most this operand.
    Count(Key, Operand),
}

/// A member of an index, and its score.
pub type ScoredMember = (Vec<u8>, i64);

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A record, if it exists.
    Record(Option<Record>),
    /// Entries of a list, each with the values of its fields.
    Entries(Vec<Vec<Value>>),
    /// Members of an index.
    Members(Vec<ScoredMember>),
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
    /// Returns a query of all members of an index, in the order of their scores.
    pub fn all_members(index: Key) -> Self {
        Self::page(index, 0, u64::MAX)
    }

    /// Returns a query of a page of members, in the order of their scores.
    pub fn page(index: Key, offset: u64, limit: u64) -> Self {
        Self::Members { index, above: NO_LOWER_BOUND, until: i64::MAX.into(), offset, limit }
    }

    /// Returns a query of at most `limit` members whose score is a time that has passed, in the order of their scores.
    pub const fn members_in_past(index: Key, limit: u64) -> Self {
        Self::Members { index, above: NO_LOWER_BOUND, until: Operand::NOW, offset: 0, limit }
    }

    /// Returns a query of all entries of a list.
    pub const fn all_entries(list: Key) -> Self {
        Self::entries(list, 1, u64::MAX)
    }

    /// Returns a query of the entry with this number.
    pub const fn entry(list: Key, number: u64) -> Self {
        Self::entries(list, number, 1)
    }

    /// Returns a query of at most `limit` entries of a list from number `first` on.
    pub const fn entries(list: Key, first: u64, limit: u64) -> Self {
        Self::Entries { list, first, limit, max_bytes: usize::MAX }
    }

    /// Returns a query of the number of members of an index.
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
    /// Returns the next answer, in the order of the queries.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when no answer is left.
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
    pub fn members(&mut self) -> Result<Vec<ScoredMember>, StoreError> {
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
