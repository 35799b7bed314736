//! Batches: guards and operations, and the answers to them.

use sakshi_domain::time::Timestamp;

use super::{Key, Record, Value};

/// Lower bound of the scores in an index that excludes none.
pub const NO_LOWER_BOUND: i64 = i64::MIN;

/// An operand of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// This value.
    Value(Value),
    /// The engine's time plus this number, in milliseconds; see [`Operand::NOW`].
    Now(i64),
    /// The engine's time in milliseconds plus this number, or this time if it is later.
    Latest(i64, Timestamp),
    /// The result of an earlier operation of the batch, by its number.
    Result(usize),
    /// The value of this field of the record that the operation changes.
    Field(&'static str),
    /// No value: clears the field.
    Nothing,
}

/// A condition of a batch. A guard on a missing record fails, except [`Guard::Absent`]; a missing list or index counts
/// as empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The record is missing.
    Absent(Key),
    /// The record exists.
    Present(Key),
    /// The record has this version; each [`Op::Put`] and [`Op::Set`] raises it.
    Version(Key, i64),
    /// The engine's time is before the time in the field.
    Before(Key, &'static str),
    /// The first field is less than the second.
    Below(Key, &'static str, &'static str),
    /// The field is at least this number.
    AtLeast(Key, &'static str, i64),
    /// The field is at most this number.
    AtMost(Key, &'static str, i64),
    /// The field has this value.
    Equal(Key, &'static str, Value),
    /// The field has no value.
    Unset(Key, &'static str),
    /// The list has this number of entries.
    Length(Key, u64),
    /// The index has fewer members than this number.
    Fewer(Key, u64),
    /// The index has no member with this score.
    Free(Key, i64),
    /// The entry of the list with this number has these values.
    Entry(Key, u64, Vec<Value>),
}

/// An operation of a batch. Its result is 0 unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes a record with these fields alone.
    Put(Key, Vec<(&'static str, Operand)>),
    /// Sets these fields of an existing record.
    Set(Key, Vec<(&'static str, Operand)>),
    /// Adds to an integer field of an existing record; results in the sum. Guards must keep it within 64 bits.
    Add(Key, &'static str, Operand),
    /// Draws the next number of a sequence, which an integer field stores; results in that number. It is the engine's
    /// time in milliseconds times 2048, or the last number plus 1 if that is higher. Creates a missing record. Does not
    /// raise the version.
    DrawNumber(Key, &'static str),
    /// Appends an entry with all fields of its list; results in its number.
    Append(Key, Vec<Operand>),
    /// Replaces the entry with this number, if the list has one.
    Rewrite(Key, u64, Vec<Operand>),
    /// Adds a member to an index, or moves it to this score.
    Index(Key, Vec<u8>, Operand),
    /// Removes a member from an index; results in 0, or in -1 if it was missing.
    Unindex(Key, Vec<u8>),
    /// Removes the members of an index whose score is above the first number ([`NO_LOWER_BOUND`] for all) and at most
    /// the second; results in their number.
    Sweep(Key, i64, Operand),
    /// Ends a record, with its lists and indexes, at this time.
    ExpireAt(Key, Operand),
    /// Moves the end of a record to this time, if the record has an earlier end.
    ExpireLater(Key, Operand),
    /// Clears the end of a record, which then stays.
    ClearExpiry(Key),
    /// Removes a record with its lists and indexes, or a list, or an index.
    Remove(Key),
    /// Notifies the other nodes listed in a field of a record, in 32 characters each, that the record has ended. Nodes
    /// may miss the notice.
    Notify(Key, &'static str),
}

/// Id of a batch's call, by which an engine recognises a retry.
pub type CallId = [u8; 16];

/// Guards and operations, applied as a whole or not at all. All keys are in one partition, or there is a single key,
/// unless the engine [joins places](super::Engine::joins_places).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// For a batch that may be retried: the id of its call, and a record that it changes. The record stores the id and
    /// the results until another call replaces them.
    pub call: Option<(CallId, Key)>,
    /// True for a batch that is applied even when the memory is full, because it takes little memory or frees some.
    pub even_when_full: bool,
    /// The conditions.
    pub guards: Vec<Guard>,
    /// The operations.
    pub ops: Vec<Op>,
}

impl Batch {
    /// Returns a batch that is refused when the memory is full.
    #[must_use]
    pub const fn new(guards: Vec<Guard>, ops: Vec<Op>) -> Self {
        Self { call: None, even_when_full: false, guards, ops }
    }

    /// Returns a batch that is applied even when the memory is full.
    #[must_use]
    pub const fn even_when_full(guards: Vec<Guard>, ops: Vec<Op>) -> Self {
        Self { call: None, even_when_full: true, guards, ops }
    }

    /// Adds the id of a call, which `record` stores with the results. A retry under the same id gets these results.
    #[must_use]
    pub fn with_call_id(self, call: CallId, record: Key) -> Self {
        Self { call: Some((call, record)), ..self }
    }
}

/// The answer to a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// All operations were applied.
    Done {
        /// The result of each operation.
        results: Vec<i64>,
        /// The engine's time.
        now: Timestamp,
    },
    /// Nothing was applied.
    Refused {
        /// Index of the first guard that failed.
        guard: usize,
        /// The record that the guard concerns, if it exists.
        record: Option<Record>,
        /// The engine's time.
        now: Timestamp,
    },
}

impl Guard {
    /// Returns the guard that an integer field has a value.
    #[must_use]
    pub const fn has_value(key: Key, field: &'static str) -> Self {
        Self::AtLeast(key, field, i64::MIN)
    }

    /// Returns the key that the guard concerns.
    #[must_use]
    pub const fn key(&self) -> &Key {
        match self {
            Self::Absent(key)
            | Self::Present(key)
            | Self::Version(key, _)
            | Self::Before(key, _)
            | Self::Below(key, ..)
            | Self::AtLeast(key, ..)
            | Self::AtMost(key, ..)
            | Self::Equal(key, ..)
            | Self::Unset(key, _)
            | Self::Length(key, _)
            | Self::Fewer(key, _)
            | Self::Free(key, _)
            | Self::Entry(key, ..) => key,
        }
    }

    /// Returns true if the guard compares fields of a record. The record then exists if the guard holds.
    #[must_use]
    pub const fn compares(&self) -> bool {
        !matches!(self, Self::Absent(_) | Self::Present(_)) && self.is_of_record()
    }

    /// Returns true if the guard concerns a record, not a list or an index.
    const fn is_of_record(&self) -> bool {
        !matches!(self, Self::Length(..) | Self::Fewer(..) | Self::Free(..) | Self::Entry(..))
    }

    /// Returns the fields that the guard compares.
    pub fn fields(&self) -> Vec<&'static str> {
        match self {
            Self::Absent(_)
            | Self::Present(_)
            | Self::Length(..)
            | Self::Fewer(..)
            | Self::Free(..)
            | Self::Entry(..) => vec![],
            Self::Version(..) => vec!["version"],
            Self::Before(_, field)
            | Self::AtLeast(_, field, _)
            | Self::AtMost(_, field, _)
            | Self::Equal(_, field, _) => vec![field],
            Self::Unset(_, field) => vec!["version", field],
            Self::Below(_, field, limit) => vec![field, limit],
        }
    }

    /// Returns true if a guard on a record holds for the record that was read.
    pub fn holds(&self, record: Option<&Record>, now: Timestamp) -> bool {
        let Some(record) = record else { return matches!(self, Self::Absent(_)) };
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
            // These do not concern records.
            Self::Length(..) | Self::Fewer(..) | Self::Free(..) | Self::Entry(..) => false,
        }
    }
}

/// Returns the number that [`Op::DrawNumber`] draws after `last`.
#[must_use]
pub(super) fn next_number(last: i64, now: Timestamp) -> i64 {
    last.saturating_add(1).max(now.millis().saturating_mul(1 << NUMBER_BITS))
}

/// Number of bits that distinguish the numbers of [`Op::DrawNumber`] within a millisecond.
pub(super) const NUMBER_BITS: u32 = 11;

impl Op {
    /// Returns the operation that removes the members of an index whose score is a time that has passed. It results in
    /// their number.
    #[must_use]
    pub const fn sweep_past(index: Key) -> Self {
        Self::Sweep(index, NO_LOWER_BOUND, Operand::NOW)
    }

    /// Returns the key that the operation changes.
    #[must_use]
    pub const fn key(&self) -> &Key {
        match self {
            Self::Put(key, _)
            | Self::Set(key, _)
            | Self::Add(key, ..)
            | Self::DrawNumber(key, _)
            | Self::Append(key, _)
            | Self::Rewrite(key, ..)
            | Self::Index(key, ..)
            | Self::Unindex(key, _)
            | Self::Sweep(key, ..)
            | Self::ExpireAt(key, _)
            | Self::ExpireLater(key, _)
            | Self::ClearExpiry(key)
            | Self::Remove(key)
            | Self::Notify(key, _) => key,
        }
    }
}

impl Operand {
    /// The engine's time in milliseconds.
    pub const NOW: Self = Self::Now(0);

    /// Returns the engine's time plus this span.
    #[must_use]
    pub fn after(span: std::time::Duration) -> Self {
        Self::Now(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns the value. `results` has the results of the earlier operations. `own_field` returns fields of the record
    /// that the operation changes, or is `no_field` without such a record.
    pub fn resolve(
        &self,
        now: Timestamp,
        results: &[i64],
        own_field: &dyn Fn(&'static str) -> Option<Value>,
    ) -> Option<Value> {
        Some(match self {
            Self::Value(value) => value.clone(),
            Self::Now(more) => Value::Integer(now.millis().saturating_add(*more)),
            Self::Latest(more, at) => Value::Integer(now.millis().saturating_add(*more).max(at.millis())),
            Self::Result(op) => Value::Integer(results.get(*op).copied().unwrap_or_default()),
            Self::Field(name) => return own_field(name),
            Self::Nothing => return None,
        })
    }

    /// Returns the value as an integer; 0 for anything else.
    pub fn integer(&self, now: Timestamp, results: &[i64], own_field: &dyn Fn(&'static str) -> Option<Value>) -> i64 {
        match self.resolve(now, results, own_field) {
            Some(Value::Integer(number)) => number,
            _ => 0,
        }
    }
}

/// The fields of no record, for operands that name none.
pub(crate) const fn no_field(_: &'static str) -> Option<Value> {
    None
}

impl<T: Into<Value>> From<T> for Operand {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}
