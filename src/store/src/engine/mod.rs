//! Engines: they store records and apply batches, without business rules.
//!
//! A [`Batch`] has guards and operations. If every guard holds, all operations are applied, in order and in one step.
//! Otherwise no operation is, and the answer names the first failed guard and the record that the guard saw.
//! `transitions` decides the content of a batch, once for all engines: [`memory`], [`embedded`] (SQLite) and [`redis`].
//! As in etcd's transactions, and with the commutative guards of FoundationDB: two guests of one event, or two debits
//! of one client, do not conflict.

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

pub(crate) use self::batch::no_field;
pub use self::batch::{Applied, Batch, CallId, Guard, NO_LOWER_BOUND, Op, Operand};
pub use self::query::{Answer, Answers, Query, ScoredMember};
use crate::error::{StoreError, StoreFuture};
use crate::invariants::Rule;
use crate::redis::{Finish, FinishState, NodeId};
use crate::schema::SCHEMA;

/// A kind of record: its name, and its fields in the order in which engines store them.
pub struct Table {
    /// Name: one word.
    pub name: &'static str,
    /// Fields, each named by one word.
    pub fields: &'static [Column],
    /// True for an index in which each member has one score, and each score one member. An engine may then store it by
    /// score alone.
    pub numbered: bool,
    /// Fields that are large and seldom written, none of them an integer. An engine may store them apart, so that a
    /// change of the others does not write them again.
    pub large: &'static [&'static str],
    /// Form of its records.
    pub form: Form,
    /// Lifetime of its records.
    pub life: Life,
    /// Number of the first schema that has it.
    pub since: u32,
    /// Invariants of its records: its own, and those that it shares with other kinds.
    pub rules: &'static [&'static [Rule]],
}

/// Storage form of a kind of record.
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
    /// Until they are removed or expire. The records of these kinds end with them.
    Ends(&'static [&'static Table]),
    /// As long as the record of this other kind with the same place and id. Without that record, nothing is stored.
    With(&'static Table),
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
    /// Number of the schema that introduced it.
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
    /// Bytes that the vault has encrypted for this owner.
    Sealed(Owner),
}

/// Number of bytes of a flow's id, with which the id of its report begins.
pub(crate) const FLOW_ID_BYTES: usize = 16;

/// The id for which a value is sealed: only this owner can open the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The id of the record.
    Id,
    /// The id of the flow, with which the id of the record begins.
    Flow,
    /// The value of this other field.
    Field(&'static str),
    /// This word, followed by the number of the entry.
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

/// The partition of a record. A batch can change several records of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In a partition.
    Partition(Partition),
    /// Outside the partitions: a batch that has such a key has no other one, unless the engine joins places.
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

/// A record as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Number of the change that wrote the record, raised by each [`Op::Put`] and [`Op::Set`], from 1.
    pub version: i64,
    /// The fields.
    pub fields: Fields,
}

/// The position of a scan. The default is its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanFrom {
    /// Number of the server.
    pub part: u16,
    /// The row, or the server's own cursor.
    pub number: u64,
    /// Process of the server whose cursor it is; 0 at the start of a server.
    pub process: u32,
}

/// The keys that one step of a scan has found.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// The keys.
    pub keys: Vec<Key>,
    /// Position of the next step; `None` at the end.
    pub next: Option<ScanFrom>,
    /// Process of the server that has found the keys; 0 without servers.
    pub process: u32,
}

/// Storage of records.
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the database system, for traces.
    fn system(&self) -> &'static str;

    /// Answers queries at the engine's time. Queries on one partition are answered together.
    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers>;

    /// Answers queries as [`Engine::read`] does, but only with data that survives a failover: if writes wait for
    /// replicas, the replicas have it.
    fn read_confirmed(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.read(queries)
    }

    /// Returns true if [`Engine::read`] may return data that replicas do not have yet.
    fn may_be_ahead(&self) -> bool {
        self.is_shared()
    }

    /// Applies batches, each by itself. Batches on one partition are applied in this order.
    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>>;

    /// Returns about `limit` keys of a kind, in any order. A key that exists during the whole scan is returned at least
    /// once, also when a server restarts or is replaced meanwhile: the scan of that server then starts again, after a
    /// step without keys. While slots of a cluster move, a scan may miss their keys.
    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned>;

    /// Scans several kinds as [`Engine::scan`] does, one after the other or mixed.
    fn scan_kinds(&self, tables: Vec<&'static Table>, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        let part = from.part;
        let Some(table) = tables.get(usize::from(part)) else { return Box::pin(ready(Ok(Scanned::default()))) };
        // Here `part` is the index of the kind.
        let step = self.scan(table, ScanFrom { part: 0, ..from }, limit);
        let next_part = Some(part + 1).filter(|next| usize::from(*next) < tables.len());
        Box::pin(async move {
            let step = step.await?;
            let within = step.next.map(|next| ScanFrom { part, ..next });
            let next = within.or_else(|| next_part.map(|part| ScanFrom { part, ..ScanFrom::default() }));
            Ok(Scanned { next, ..step })
        })
    }

    /// Removes at most `limit` records of each kind that have expired at `now` and by the engine's clock, which may
    /// have jumped since the caller read `now`. The batch is applied in the same step, at the earlier of both times.
    /// Returns the number removed of each kind.
    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>>;

    /// Returns true if other nodes use the same records. Records then expire by themselves; otherwise [`Engine::sweep`]
    /// removes them.
    fn is_shared(&self) -> bool;

    /// Returns true if a batch may have keys of several places. Otherwise they may be on several servers.
    fn joins_places(&self) -> bool {
        !self.is_shared()
    }

    /// Returns true if every call finishes on the caller's thread before it returns. The result then depends on the
    /// order of the calls alone.
    fn works_at_once(&self) -> bool {
        false
    }

    /// Commits as [`Engine::commit`] does, but without a time limit, for batches whose outcome must be known.
    fn commit_until_answered(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.commit(batches)
    }

    /// Confirms that records which a read did not find were not lost by a failover.
    fn confirm(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }

    /// Checks that a batch would be applied now.
    fn check(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }

    /// Returns true if little room is left. It is reserved for changes of existing records, so no new ones are
    /// accepted.
    fn is_nearly_full(&self) -> bool {
        false
    }

    /// Returns true once the engine has opened its records; until then it refuses every call.
    fn is_open(&self) -> bool {
        true
    }

    /// Continues the upgrade to the schema of this release. A store that is migrated when it is opened has nothing left
    /// to do.
    fn finish_upgrade(&self) -> StoreFuture<Finish> {
        Box::pin(ready(Ok(Finish { schema: SCHEMA.number(), state: FinishState::Nothing, looked_at: 0, changed: 0 })))
    }

    /// Accepts a loss of data. Returns the time of the loss, or `None` when nothing is missing.
    fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        Box::pin(ready(Ok(None)))
    }

    /// Removes deleted data from the logs of the engine.
    fn purge(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }

    /// Returns the nodes that use the same records, with their last heartbeats, this node included. Empty for an engine
    /// of a single node.
    fn members(&self) -> Vec<(NodeId, Timestamp)> {
        vec![]
    }

    /// Notifies the other nodes that this one leaves.
    fn leave(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }
}

impl Table {
    /// Returns the field with this name.
    pub fn column(&self, name: &str) -> Option<&'static Column> {
        self.fields.iter().find(|column| column.name == name)
    }

    /// Returns the kinds whose records end together with a record of this kind.
    pub const fn children(&self) -> &'static [&'static Self] {
        match self.life {
            Life::Ends(children) => children,
            Life::Stays | Life::With(_) => &[],
        }
    }
}

impl Key {
    /// Returns the key of the same place and id in another kind.
    pub fn in_table(&self, table: &'static Table) -> Self {
        Self { table, place: self.place, id: self.id.clone() }
    }

    /// Returns the key of the record that owns this list or index.
    pub fn parent(&self) -> Option<Self> {
        match self.table.life {
            Life::With(parent) => Some(self.in_table(parent)),
            Life::Stays | Life::Ends(_) => None,
        }
    }
}

impl Place {
    /// Returns the number of the partition; 255 outside the partitions.
    pub const fn number(self) -> u8 {
        match self {
            Self::Partition(partition) => partition.number(),
            Self::Alone => u8::MAX,
        }
    }

    /// Returns the place with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        if number == u8::MAX {
            return Some(Self::Alone);
        }
        Partition::all().find(|partition| partition.number() == number).map(Self::Partition)
    }
}

impl Owner {
    /// Returns the bytes that identify the owner of a value: in the record with this id, or in the entry with this
    /// `number` of the list with this id.
    pub fn bytes(self, id: &[u8], record: &Record, number: u64) -> Vec<u8> {
        match self {
            Self::Id => id.to_vec(),
            Self::Flow => id.get(..FLOW_ID_BYTES).unwrap_or(id).to_vec(),
            Self::Field(name) => record.bytes(name).to_vec(),
            Self::Number(word) => format!("{word}{number}").into_bytes(),
        }
    }
}

impl Record {
    /// Returns an integer field; 0 when it has no value.
    #[must_use]
    pub fn integer(&self, name: &str) -> i64 {
        match self.fields.get(name) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    /// Returns an integer field as a time, if it has a value.
    #[must_use]
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        self.has(name).then(|| Timestamp::from_millis(self.integer(name)))
    }

    /// Returns a field of bytes with a fixed length, such as an id or a digest.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the field has another length.
    pub fn array<const N: usize>(&self, name: &str) -> Result<[u8; N], StoreError> {
        self.bytes(name).try_into().map_err(|_| StoreError::unreadable(name))
    }

    /// Parses a field of text.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the text is invalid.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T, StoreError> {
        self.text(name).parse().map_err(|_| StoreError::unreadable(name))
    }

    /// Returns true if the field has a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Returns a field of text; empty when it has no value.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        match self.fields.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// Returns a field of bytes; empty when it has no value.
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
    /// Returns an integer value; larger numbers become `i64::MAX`.
    pub fn number(number: impl TryInto<i64>) -> Self {
        Self::Integer(number.try_into().unwrap_or(i64::MAX))
    }

    /// Returns the approximate size of the value in bytes.
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
    fn from(flag: bool) -> Self {
        Self::Integer(i64::from(flag))
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
