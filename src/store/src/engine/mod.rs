//! Engines: they keep records and apply batches, and know no rule.
//!
//! A [`Batch`] has guards and operations. If every guard holds, all operations are applied, in their order and in one step; otherwise
//! nothing is, and the answer names the first guard that failed with the record that it saw. What a batch means is decided by
//! `transitions`, once for all engines: [`memory`], [`embedded`] (SQLite) and [`redis`]. As in etcd's transactions, and with the
//! commutative guards of FoundationDB: two guests of one event, or two debits of one client, do not conflict.

mod batch;
pub(crate) mod embedded;
pub mod memory;
mod query;
pub(crate) mod redis;
pub mod slots;

use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;

use sakshi_domain::ids::Partition;
use sakshi_domain::time::Timestamp;

pub use self::batch::{Applied, Batch, CallId, Guard, Op, Operand};
pub use self::query::{Answer, Answers, Query};
use crate::error::{StoreError, StoreFuture};
use crate::invariants::Rule;
use crate::redis::{Finish, FinishState, NodeId};
use crate::schema::SCHEMA;

/// A kind of record: its name and its fields in the order in which engines keep them.
pub struct Table {
    /// The name, a word.
    pub name: &'static str,
    /// The fields, words as well.
    pub fields: &'static [Column],
    /// The form of its records.
    pub form: Form,
    /// Their lifetime.
    pub life: Life,
    /// The number of the schema in which it is new.
    pub since: u32,
    /// The invariants of its records.
    pub rules: &'static [Rule],
}

/// The form in which a kind of record is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One record for each key.
    Record,
    /// A list of entries for each key, numbered from 1.
    List,
    /// Members by score for each key. Scores have at most 53 bits.
    Index,
}

/// The lifetime of the records of a kind.
#[derive(Clone, Copy)]
pub enum Life {
    /// Until they are removed.
    Stays,
    /// The same, or until a time; the kinds that go with it.
    Ends(&'static [&'static Table]),
    /// As long as the record with this place and id of another kind. While there is none, nothing is kept.
    With(&'static Table),
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
    /// The number of the schema in which it is new.
    pub since: u32,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A 64-bit integer.
    Integer,
    /// UTF-8 text.
    Text,
    /// Any bytes.
    Bytes,
    /// Bytes that the vault has sealed for this owner.
    Sealed(Owner),
}

/// For whom a value is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The id of its record.
    Id,
    /// The first 16 bytes of that.
    Flow,
    /// The value of another field.
    Field(&'static str),
    /// The number of its entry, after this word.
    Number(&'static str),
}

/// Identifies a record.
#[derive(Clone)]
pub struct Key {
    /// The kind of record.
    pub table: &'static Table,
    /// The partition.
    pub place: Place,
    /// The id within its kind.
    pub id: Vec<u8>,
}

/// The partition of a record. One batch can change all records of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In a partition.
    Partition(Partition),
    /// Anywhere: a batch about it is about nothing else.
    Alone,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A 64-bit integer.
    Integer(i64),
    /// UTF-8 text.
    Text(String),
    /// Any bytes.
    Bytes(Vec<u8>),
}

/// The fields of a record that have values.
pub type Fields = BTreeMap<&'static str, Value>;

/// A record as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Raised by each [`Op::Put`] and [`Op::Set`], from 1.
    pub version: i64,
    /// The fields.
    pub fields: Fields,
}

/// The position of a scan. The default is its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanFrom {
    /// The number of the server.
    pub part: u16,
    /// The row, or the server's own cursor.
    pub number: u64,
}

/// Some keys of a kind.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// The keys.
    pub keys: Vec<Key>,
    /// The position of the next step; `None` at the end.
    pub next: Option<ScanFrom>,
}

/// Keeps records.
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// The name of the database, for traces.
    fn system(&self) -> &'static str;

    /// Answers queries, those about one partition in one step at least, at a time that is the engine's.
    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers>;

    /// The same for answers that callers take for final: replicas have what they tell, if writes wait for replicas.
    fn read_confirmed(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.read(queries)
    }

    /// Returns true if replicas may lack what [`Engine::read`] tells.
    fn may_be_ahead(&self) -> bool {
        self.is_shared()
    }

    /// Applies batches, each for itself, those about one partition in this order.
    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>>;

    /// About `limit` keys of a kind, in any order. A key that is there during the whole scan is met at least once.
    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned>;

    /// The same for several kinds, which come one after the other or mixed.
    fn scan_kinds(&self, tables: Vec<&'static Table>, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        let ScanFrom { part, number } = from;
        let Some(table) = tables.get(usize::from(part)) else { return Box::pin(ready(Ok(Scanned::default()))) };
        let step = self.scan(table, ScanFrom { part: 0, number }, limit);
        let following = Some(part + 1).filter(|next| usize::from(*next) < tables.len());
        Box::pin(async move {
            let Scanned { keys, next } = step.await?;
            let within = next.map(|next| ScanFrom { part, ..next });
            Ok(Scanned { keys, next: within.or_else(|| following.map(|part| ScanFrom { part, number: 0 })) })
        })
    }

    /// Removes at most `limit` records of each kind that have ended at `now` and by the engine's clock, which may have jumped since the
    /// caller read `now`. The batch is applied in the same step, at the earlier of both times. Returns the number removed of each kind.
    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>>;

    /// Returns true if other nodes use the same records. What has ended goes by itself then; otherwise [`Engine::sweep`] removes it.
    fn is_shared(&self) -> bool;

    /// Returns true if a batch may be about records of several places. Otherwise they may be on several servers.
    fn joins_places(&self) -> bool {
        !self.is_shared()
    }

    /// Returns true if everything is done on the thread of the caller, also what takes long: what happens then depends on the order of
    /// the calls alone.
    fn works_at_once(&self) -> bool {
        false
    }

    /// The same as [`Engine::commit`], but without a time-out: for a batch whose outcome must be known.
    fn commit_until_answered(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.commit(batches)
    }

    /// Makes sure that what is not there was not lost.
    fn confirm(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }

    /// Checks that a batch would be applied now.
    fn check(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }

    /// Returns true if little room is left. It is kept for what ends: nothing new is begun then.
    fn is_nearly_full(&self) -> bool {
        false
    }

    /// Returns true once the records could be reached; until then every call is refused.
    fn is_open(&self) -> bool {
        true
    }

    /// Finishes the upgrade to the schema of this release, as far as one call goes. Nothing is left to do where a store is walked up when it
    /// is opened.
    fn finish_upgrade(&self) -> StoreFuture<Finish> {
        Box::pin(ready(Ok(Finish { schema: SCHEMA.number(), state: FinishState::Nothing, looked_at: 0, changed: 0 })))
    }

    /// Accepts that data was lost; since when, or `None` when nothing is missing.
    fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        Box::pin(ready(Ok(None)))
    }

    /// Makes sure that what was removed is in no log of the engine's own.
    fn purge(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }

    /// The nodes that use the same records, this one among them, with their last heartbeats; none if there are no others.
    fn members(&self) -> Vec<(NodeId, Timestamp)> {
        vec![]
    }

    /// Lets the other nodes know that this one ends.
    fn leave(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }
}

impl Table {
    /// The field with this name.
    pub fn column(&self, name: &str) -> Option<&'static Column> {
        self.fields.iter().find(|column| column.name == name)
    }

    /// The kinds whose records go with one of this kind.
    pub const fn children(&self) -> &'static [&'static Self] {
        match self.life {
            Life::Ends(children) => children,
            Life::Stays | Life::With(_) => &[],
        }
    }
}

impl Key {
    /// The key of the same place and id in another kind.
    pub fn of(&self, table: &'static Table) -> Self {
        Self { table, place: self.place, id: self.id.clone() }
    }

    /// The record that it goes with.
    pub fn parent(&self) -> Option<Self> {
        match self.table.life {
            Life::With(parent) => Some(self.of(parent)),
            Life::Stays | Life::Ends(_) => None,
        }
    }
}

impl Place {
    /// A number for each place: that of the partition, or 255.
    pub const fn number(self) -> u8 {
        match self {
            Self::Partition(partition) => partition.number(),
            Self::Alone => u8::MAX,
        }
    }

    /// The place with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        if number == u8::MAX {
            return Some(Self::Alone);
        }
        Partition::all().find(|partition| partition.number() == number).map(Self::Partition)
    }
}

impl Owner {
    /// The owner of a value in a record with this id and these fields, or in an entry with this number.
    pub fn bytes(self, id: &[u8], fields: &Record, number: u64) -> Vec<u8> {
        match self {
            Self::Id => id.to_vec(),
            Self::Flow => id.get(..16).unwrap_or(id).to_vec(),
            Self::Field(name) => fields.bytes(name).to_vec(),
            Self::Number(word) => format!("{word}{number}").into_bytes(),
        }
    }
}

impl Record {
    /// An integer field; 0 when it has no value.
    #[must_use]
    pub fn integer(&self, name: &str) -> i64 {
        match self.fields.get(name) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    /// An integer field as a time, if it has a value.
    #[must_use]
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        self.has(name).then(|| Timestamp::from_millis(self.integer(name)))
    }

    /// A field of bytes that is an id or a digest.
    ///
    /// # Errors
    /// It has another length.
    pub fn array<const N: usize>(&self, name: &str) -> Result<[u8; N], StoreError> {
        self.bytes(name).try_into().map_err(|_| StoreError::unreadable(name))
    }

    /// A field of text as a value of its own type.
    ///
    /// # Errors
    /// It is not one.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T, StoreError> {
        self.text(name).parse().map_err(|_| StoreError::unreadable(name))
    }

    /// Returns true if the field has a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A field of text; empty when it has no value.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        match self.fields.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// A field of bytes; empty when it has no value.
    #[must_use]
    pub fn bytes(&self, name: &str) -> &[u8] {
        match self.fields.get(name) {
            Some(Value::Bytes(bytes)) => bytes,
            Some(Value::Text(text)) => text.as_bytes(),
            _ => &[],
        }
    }
}

impl Value {
    /// A number; one beyond 63 bits is the largest.
    pub fn number(number: impl TryInto<i64>) -> Self {
        Self::Integer(number.try_into().unwrap_or(i64::MAX))
    }

    /// Bytes that it takes up, roughly.
    pub const fn size(&self) -> usize {
        match self {
            Self::Integer(_) => 8,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
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

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Integer(i64::from(is))
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
        self.table.name == other.table.name && self.place == other.place && self.id == other.id
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table.name, String::from_utf8_lossy(&self.id))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
