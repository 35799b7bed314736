//! Engines: they keep records and apply batches, and know no rule.
//!
//! A [`Batch`] has guards and operations. If every guard holds, all operations are applied, in their order and in one step; otherwise
//! nothing is, and the answer names the first guard that failed with the record that it saw. What a batch means is decided by
//! `transitions`, once for all engines: [`memory`], [`embedded`] (SQLite) and [`redis`]. As in etcd's transactions, and with the
//! commutative guards of FoundationDB: two guests of one event, or two debits of one client, do not conflict.
//!
//! Not in use yet. Tests compare what is written here with the stores that are in use.

pub(crate) mod embedded;
pub(crate) mod memory;
pub(crate) mod redis;

use std::collections::BTreeMap;
use std::fmt;

use sakshi_domain::ids::Partition;
use sakshi_domain::time::Timestamp;

use crate::error::StoreFuture;

/// A kind of record: its name and its fields in the order in which engines keep them.
#[derive(Debug)]
pub(crate) struct Table {
    /// The name, a word.
    pub(crate) name: &'static str,
    /// The fields, words as well.
    pub(crate) fields: &'static [Column],
    /// The form of its records.
    pub(crate) form: Form,
}

/// The form in which a kind of record is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One record for each key, which stays.
    Record,
    /// The same, and each record may end at a time.
    Expiring,
    /// A list of entries for each key, numbered from 1.
    List,
    /// Members by score for each key.
    Index,
}

/// A field of a record.
#[derive(Debug)]
pub(crate) struct Column {
    /// The name.
    pub(crate) name: &'static str,
    /// The type of its values.
    pub(crate) kind: ColumnKind,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A 64-bit integer.
    Integer,
    /// UTF-8 text.
    Text,
    /// Any bytes, such as sealed ones.
    Bytes,
}

/// Identifies a record.
#[derive(Clone)]
pub(crate) struct Key {
    /// The kind of record.
    pub(crate) table: &'static Table,
    /// Records of one partition can be changed in one batch.
    pub(crate) partition: Partition,
    /// The id within its kind.
    pub(crate) id: Vec<u8>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    /// A 64-bit integer.
    Integer(i64),
    /// UTF-8 text.
    Text(String),
    /// Any bytes.
    Bytes(Vec<u8>),
}

/// A value as a batch names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// This value.
    Value(Value),
    /// The engine's time in milliseconds, and so many more.
    Now(i64),
    /// The same, or this time if it is later.
    Latest(i64, Timestamp),
    /// The result of an earlier operation of the batch, by its number.
    Result(usize),
}

/// A condition of a batch. A guard on a record that is absent fails, but for [`Guard::Absent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// There is no such record.
    Absent(Key),
    /// There is one.
    Present(Key),
    /// It has this version; each [`Op::Put`] and [`Op::Set`] raises it.
    Version(Key, i64),
    /// The engine's time is before that of the field.
    Before(Key, &'static str),
    /// The first field is less than the second.
    Below(Key, &'static str, &'static str),
    /// The field is at least this.
    AtLeast(Key, &'static str, i64),
    /// The field is at most this.
    AtMost(Key, &'static str, i64),
    /// The field has this value.
    Equal(Key, &'static str, Value),
    /// The field has no value.
    Unset(Key, &'static str),
}

/// An operation of a batch. All but the ones that say otherwise have the result 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Writes a record with these fields alone.
    Put(Key, Vec<(&'static str, Operand)>),
    /// Sets these fields of a record that is there.
    Set(Key, Vec<(&'static str, Operand)>),
    /// Adds to an integer field of a record that is there; results in the sum. Guards must keep it within 64 bits.
    Add(Key, &'static str, Operand),
    /// Appends an entry with all fields of its list; results in its number.
    Append(Key, Vec<Operand>),
    /// Adds a member to an index, or moves it to this score.
    Index(Key, Vec<u8>, Operand),
    /// Removes a member from an index; results in 0, or in -1 if it was not there.
    Unindex(Key, Vec<u8>),
    /// Removes the members of an index up to this score; results in their number.
    Sweep(Key, Operand),
    /// Ends a record at this time.
    ExpireAt(Key, Operand),
    /// The same, unless it ends later.
    ExpireLater(Key, Operand),
    /// Removes a record, a list or an index.
    Remove(Key),
}

/// Guards and operations, applied as a whole or not at all. All keys are of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The conditions.
    pub(crate) guards: Vec<Guard>,
    /// The operations.
    pub(crate) ops: Vec<Op>,
}

/// The fields of a record that have values.
pub(crate) type Fields = BTreeMap<&'static str, Value>;

/// A record as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Raised by each [`Op::Put`] and [`Op::Set`], from 1.
    pub(crate) version: i64,
    /// The fields.
    pub(crate) fields: Fields,
}

/// The answer to a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// All operations were applied.
    Done {
        /// The result of each.
        results: Vec<i64>,
        /// The engine's time.
        now: Timestamp,
    },
    /// Nothing was applied.
    Refused {
        /// The number of the guard that failed.
        guard: usize,
        /// The record that it saw.
        seen: Option<Record>,
        /// The engine's time.
        now: Timestamp,
    },
}

/// Keeps records.
pub(crate) trait Engine: fmt::Debug + Send + Sync + 'static {
    /// The records with these keys.
    fn read(&self, keys: Vec<Key>) -> StoreFuture<Vec<Option<Record>>>;

    /// Applies batches in this order, each for itself.
    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>>;

    /// The entries of a list from this number on, each with the values of its fields.
    fn entries(&self, list: Key, first: u64, count: u64) -> StoreFuture<Vec<Vec<Value>>>;
}

impl Table {
    /// The field with this name.
    pub(crate) fn column(&self, name: &str) -> Option<&'static Column> {
        self.fields.iter().find(|column| column.name == name)
    }
}

impl Record {
    /// An integer field; 0 when it has no value.
    #[must_use]
    pub(crate) fn integer(&self, name: &str) -> i64 {
        match self.fields.get(name) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    /// Returns true if the field has a value.
    #[must_use]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A field of text; empty when it has no value.
    #[must_use]
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.fields.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// A field of bytes; empty when it has no value.
    #[must_use]
    pub(crate) fn bytes(&self, name: &str) -> &[u8] {
        match self.fields.get(name) {
            Some(Value::Bytes(bytes)) => bytes,
            Some(Value::Text(text)) => text.as_bytes(),
            _ => &[],
        }
    }
}

impl Guard {
    /// The record that it looks at.
    #[must_use]
    pub(crate) const fn key(&self) -> &Key {
        match self {
            Self::Absent(key)
            | Self::Present(key)
            | Self::Version(key, _)
            | Self::Before(key, _)
            | Self::Below(key, ..)
            | Self::AtLeast(key, ..)
            | Self::AtMost(key, ..)
            | Self::Equal(key, ..)
            | Self::Unset(key, _) => key,
        }
    }

    /// The fields that it compares.
    pub(crate) fn fields(&self) -> Vec<&'static str> {
        match self {
            Self::Absent(_) | Self::Present(_) => vec![],
            Self::Version(..) => vec!["version"],
            Self::Before(_, field) | Self::AtLeast(_, field, _) | Self::AtMost(_, field, _) | Self::Equal(_, field, _) => vec![field],
            Self::Unset(_, field) => vec!["version", field],
            Self::Below(_, field, limit) => vec![field, limit],
        }
    }

    /// Returns true if the guard holds for what was read.
    pub(crate) fn holds(&self, seen: Option<&Record>, now: Timestamp) -> bool {
        let Some(record) = seen else { return matches!(self, Self::Absent(_)) };
        let has = |field: &str| record.has(field);
        match self {
            Self::Absent(_) => false,
            Self::Present(_) => true,
            Self::Version(_, version) => record.version == *version,
            Self::Before(_, field) => has(field) && now.millis() < record.integer(field),
            Self::Below(_, field, limit) => has(field) && has(limit) && record.integer(field) < record.integer(limit),
            Self::AtLeast(_, field, least) => has(field) && record.integer(field) >= *least,
            Self::AtMost(_, field, most) => has(field) && record.integer(field) <= *most,
            Self::Equal(_, field, value) => record.fields.get(field) == Some(value),
            Self::Unset(_, field) => !has(field),
        }
    }
}

impl Op {
    /// The record that it changes.
    #[must_use]
    pub(crate) const fn key(&self) -> &Key {
        match self {
            Self::Put(key, _)
            | Self::Set(key, _)
            | Self::Add(key, ..)
            | Self::Append(key, _)
            | Self::Index(key, ..)
            | Self::Unindex(key, _)
            | Self::Sweep(key, _)
            | Self::ExpireAt(key, _)
            | Self::ExpireLater(key, _)
            | Self::Remove(key) => key,
        }
    }
}

impl Operand {
    /// The value, given the engine's time and the results so far.
    pub(crate) fn resolve(&self, now: Timestamp, results: &[i64]) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Now(more) => Value::Integer(now.millis().saturating_add(*more)),
            Self::Latest(more, at) => Value::Integer(now.millis().saturating_add(*more).max(at.millis())),
            Self::Result(op) => Value::Integer(results.get(*op).copied().unwrap_or_default()),
        }
    }

    /// The same as an integer.
    pub(crate) fn integer(&self, now: Timestamp, results: &[i64]) -> i64 {
        match self.resolve(now, results) {
            Value::Integer(number) => number,
            Value::Text(_) | Value::Bytes(_) => 0,
        }
    }
}

impl<T: Into<Value>> From<T> for Operand {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<Timestamp> for Value {
    fn from(at: Timestamp) -> Self {
        Self::Integer(at.millis())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.table.name == other.table.name && self.partition == other.partition && self.id == other.id
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table.name, String::from_utf8_lossy(&self.id))
    }
}
