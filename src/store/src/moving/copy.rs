//! Copying the records of one engine to another. No node uses either meanwhile.
//!
//! A pass compares each key with the target, and writes differences. So an interrupted move is simply restarted, and a
//! later move copies the changes since. A pass without differences proves that both are equal. Sealed values are copied
//! unchanged; versions and calls start anew.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{Moved, MovedKind};
use crate::engine::{
    Answers, Batch, Engine, Form, Guard, Key, Life, Op, Operand, Query, Record, ScanFrom, Scanned, Table, Value,
};
use crate::error::StoreError;
use crate::records::{ALL, idempotency, installation, is_large, node};

/// Number of keys processed at once.
const KEYS_PER_SCAN: usize = 500;
/// Maximum number of records read at once; large ones are read alone.
const RECORDS_PER_READ: usize = 100;
/// Number of chunks of records, lists or indexes compared at once.
const CONCURRENT_READS: usize = 4;
/// Maximum number of entries read at once.
const ENTRIES_PER_READ: u64 = 1_000;
/// Approximate bytes of entries read at once.
const ENTRY_BYTES_PER_READ: usize = 4 * 1_024 * 1_024;
/// Number of members read at once.
const MEMBERS_PER_READ: u64 = 1_000;

/// Kinds that belong to running nodes: leases, the time of the last sweep, the record of a watching operator, and the
/// snapshots of nodes.
static NOT_MOVED: [&Table; 4] = [&idempotency::ORDER_LEASE, &installation::SWEPT, &node::WATCH, &node::SNAPSHOT];

/// The kind of a compared key, and true if the target differed from the source.
type ComparedKey = (&'static Table, bool);

/// A pass over a source and its target.
struct Pass<'a> {
    /// The source.
    from: &'a dyn Engine,
    /// The target.
    to: &'a dyn Engine,
    /// True if differences are written; otherwise the pass only compares.
    writes: bool,
}

/// Copies every record that is missing or different in the target, and removes records that the source does not have.
/// `progress` gets the number of keys of the source so far.
///
/// # Errors
/// Any error of the engines.
pub(super) async fn copy(
    from: &dyn Engine,
    to: &dyn Engine,
    progress: &(impl Fn(&str, u64) + Sync),
) -> Result<Moved, StoreError> {
    Pass { from, to, writes: true }.run("copied", progress).await
}

/// Compares every record without writing. Reports differences as [`copy`] does.
///
/// # Errors
/// Any error of the engines.
pub(super) async fn compare(
    from: &dyn Engine,
    to: &dyn Engine,
    progress: &(impl Fn(&str, u64) + Sync),
) -> Result<Moved, StoreError> {
    Pass { from, to, writes: false }.run("compared", progress).await
}

impl Pass<'_> {
    /// Compares every key of the source with the target, and every key of the target with the source.
    async fn run(&self, pass_name: &str, progress: &(impl Fn(&str, u64) + Sync)) -> Result<Moved, StoreError> {
        let (mut moved, mut compared_keys) = (Moved::default(), 0);
        for tables in kinds_in_order() {
            let mut next = Some(ScanFrom::default());
            while let Some(position) = next {
                let scanned = self.from.scan_kinds(tables.clone(), position, KEYS_PER_SCAN).await?;
                next = scanned.next;
                for (table, differs) in self.sync_keys(scanned.keys).await? {
                    let MovedKind { keys, written } = moved.kinds.entry(table.name).or_default();
                    *keys += 1;
                    *written += u64::from(differs);
                    compared_keys += 1;
                }
                if compared_keys > 0 {
                    progress(pass_name, compared_keys);
                }
            }
        }
        moved.removed = self.remove_extra_keys().await?;
        Ok(moved)
    }

    /// Compares keys, and writes the ones that differ.
    async fn sync_keys(&self, keys: Vec<Key>) -> Result<Vec<ComparedKey>, StoreError> {
        let (records, lists_and_indexes): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|key| key.table.form == Form::Record);
        let (large, small): (Vec<_>, Vec<_>) = records.into_iter().partition(|key| is_large(key.table));
        let chunks = small.chunks(RECORDS_PER_READ).chain(large.chunks(1));
        let groups: Vec<_> = chunks.map(|chunk| self.sync_records(chunk)).collect();
        let mut compared: Vec<ComparedKey> =
            stream::iter(groups).buffer_unordered(CONCURRENT_READS).try_concat().await?;
        let lists_and_indexes: Vec<_> = lists_and_indexes.iter().map(|key| self.sync_list_or_index(key)).collect();
        let lists_and_indexes: Vec<_> =
            stream::iter(lists_and_indexes).buffer_unordered(CONCURRENT_READS).try_collect().await?;
        compared.extend(lists_and_indexes.into_iter().flatten());
        Ok(compared)
    }

    /// Compares records with their ends, and writes the ones that differ.
    async fn sync_records(&self, keys: &[Key]) -> Result<Vec<ComparedKey>, StoreError> {
        let queries: Vec<Query> =
            keys.iter().flat_map(|key| [Query::Record(key.clone()), Query::End(key.clone())]).collect();
        let (mut source, mut target) = (self.from.read(queries.clone()).await?, self.to.read(queries).await?);
        let (mut compared, mut batches) = (Vec::with_capacity(keys.len()), Vec::new());
        for key in keys {
            let (record, end) = (source.record()?, source.number()?);
            let (target_record, target_end) = (target.record()?, target.number()?);
            let Some(record) = record else { continue };
            let is_same = match target_record {
                Some(target_record) => target_record.fields == record.fields && target_end == end,
                None => has_passed(end, &target),
            };
            compared.push((key.table, !is_same));
            if !is_same && self.writes {
                batches.push(put_batch(key, record, end));
            }
        }
        self.write(batches).await?;
        Ok(compared)
    }

    /// Compares a list or an index, and writes the differences; `None` for one that no longer exists.
    async fn sync_list_or_index(&self, key: &Key) -> Result<Option<ComparedKey>, StoreError> {
        if self.lacks_owner(key).await? {
            return Ok(None);
        }
        let [in_source, in_target] = self.sizes(key).await?;
        if in_source == 0 {
            return Ok(None);
        }
        let differs = if key.table.form == Form::List {
            self.sync_list(key, in_source, in_target).await?
        } else {
            self.sync_index(key, in_source, in_target).await?
        };
        if differs && self.lacks_owner(key).await? { Ok(None) } else { Ok(Some((key.table, differs))) }
    }

    /// Returns true if the record that owns a list or index is missing in the source or in the target.
    async fn lacks_owner(&self, key: &Key) -> Result<bool, StoreError> {
        let Some(parent) = key.parent() else { return Ok(false) };
        let queries = || vec![presence(&parent)];
        Ok(self.to.read(queries()).await?.record()?.is_none() || self.from.read(queries()).await?.record()?.is_none())
    }

    /// Compares a list, and writes the differences. Returns true if there are any.
    async fn sync_list(&self, list: &Key, in_source: u64, in_target: u64) -> Result<bool, StoreError> {
        let mut differs = in_target != in_source;
        if in_target > in_source {
            self.write(vec![single_op(Op::Remove(list.clone()))]).await?;
        }
        let mut first = 1;
        while first <= in_source {
            let query = |limit, max_bytes| vec![Query::Entries { list: list.clone(), first, limit, max_bytes }];
            let entries = self.from.read(query(ENTRIES_PER_READ, ENTRY_BYTES_PER_READ)).await?.entries()?;
            if entries.is_empty() {
                break;
            }
            let count = entries.len() as u64;
            let in_target = self.to.read(query(count, usize::MAX)).await?.entries()?;
            if let Some(batch) = rewrite_batch(list, first, entries, &in_target) {
                differs = true;
                self.write(vec![batch]).await?;
            }
            first += count;
        }
        Ok(differs)
    }

    /// Compares an index, and writes the differences. Returns true if there are any. Removes and rewrites an index with
    /// members that the source does not have.
    async fn sync_index(&self, index: &Key, in_source: u64, in_target: u64) -> Result<bool, StoreError> {
        let mut differs = self.copy_members(index, in_source).await? || in_target != in_source;
        let [_, in_target] = self.sizes(index).await?;
        if in_target > in_source {
            differs = true;
            self.write(vec![single_op(Op::Remove(index.clone()))]).await?;
            self.copy_members(index, in_source).await?;
        }
        Ok(differs)
    }

    /// Adds the members of each page that differs. Returns true if any page does.
    async fn copy_members(&self, index: &Key, count: u64) -> Result<bool, StoreError> {
        let mut differs = false;
        let mut offset = 0;
        while offset < count {
            let query = vec![Query::page(index.clone(), offset, MEMBERS_PER_READ)];
            let (members, in_target) =
                (self.from.read(query.clone()).await?.members()?, self.to.read(query).await?.members()?);
            if members != in_target {
                differs = true;
                let ops =
                    members.into_iter().map(|(member, score)| Op::Index(index.clone(), member, score.into())).collect();
                self.write(vec![Batch::new(vec![], ops)]).await?;
            }
            offset += MEMBERS_PER_READ;
        }
        Ok(differs)
    }

    /// Removes records that the source does not have. Returns the number of keys.
    async fn remove_extra_keys(&self) -> Result<u64, StoreError> {
        let mut extra_keys = 0;
        for tables in kinds_in_order() {
            let mut next = Some(ScanFrom::default());
            while let Some(position) = next {
                let Scanned { keys, next: next_position, .. } =
                    self.to.scan_kinds(tables.clone(), position, KEYS_PER_SCAN).await?;
                next = next_position;
                let queries = keys
                    .iter()
                    .flat_map(|key| [presence(key), Query::End(key.parent().unwrap_or_else(|| key.clone()))]);
                let mut target = self.to.read(queries.collect()).await?;
                let mut source = self.from.read(keys.iter().map(presence).collect()).await?;
                let mut batches = Vec::new();
                for key in keys {
                    let (is_in_target, end, is_in_source) =
                        (read_presence(&key, &mut target)?, target.number()?, read_presence(&key, &mut source)?);
                    if is_in_target && !is_in_source && !has_passed(end, &source) {
                        batches.push(single_op(Op::Remove(key)));
                    }
                }
                extra_keys += batches.len() as u64;
                self.write(batches).await?;
            }
        }
        Ok(extra_keys)
    }

    /// Returns the number of entries or members under a key, in the source and in the target.
    async fn sizes(&self, key: &Key) -> Result<[u64; 2], StoreError> {
        let query = vec![presence(key)];
        Ok([self.from.read(query.clone()).await?.number()?, self.to.read(query).await?.number()?])
    }

    /// Commits batches, unless this pass only compares. The next pass finds refused batches.
    async fn write(&self, batches: Vec<Batch>) -> Result<(), StoreError> {
        if self.writes && !batches.is_empty() {
            self.to.commit(batches).await?;
        }
        Ok(())
    }
}

/// Returns the kinds to move in two groups: first the records, then the lists and indexes that records own.
fn kinds_in_order() -> [Vec<&'static Table>; 2] {
    let moved = ALL.iter().copied().filter(|table| NOT_MOVED.iter().all(|other| other.name != table.name));
    let (owned, independent) = moved.partition(|table| matches!(table.life, Life::With(_)));
    [independent, owned]
}

/// Returns a query that shows whether a key exists: the record, or the number of entries or members.
fn presence(key: &Key) -> Query {
    match key.table.form {
        Form::Record => Query::Fields(key.clone(), &[]),
        Form::List => Query::Length(key.clone()),
        Form::Index => Query::count(key.clone()),
    }
}

/// Returns the next answer to [`presence`].
fn read_presence(key: &Key, answers: &mut Answers) -> Result<bool, StoreError> {
    if key.table.form == Form::Record { Ok(answers.record()?.is_some()) } else { Ok(answers.number()? > 0) }
}

/// Returns true if an end had passed by the clock of an engine when it answered. The clocks of two engines differ.
fn has_passed(end: u64, answers: &Answers) -> bool {
    end > 0 && end <= u64::try_from(answers.now.millis()).unwrap_or(0)
}

fn single_op(op: Op) -> Batch {
    Batch::new(vec![], vec![op])
}

/// Returns the batch that writes a record with its end.
fn put_batch(key: &Key, record: Record, end: u64) -> Batch {
    let fields = record.fields.into_iter().map(|(name, value)| (name, Operand::Value(value))).collect();
    let mut ops = vec![Op::Put(key.clone(), fields)];
    if end > 0 {
        ops.push(Op::ExpireAt(key.clone(), Value::number(end).into()));
    }
    Batch::new(vec![], ops)
}

/// Returns the batch that makes the entries `in_target` from number `first` on equal to `entries`; `None` if they are.
fn rewrite_batch(list: &Key, first: u64, entries: Vec<Vec<Value>>, in_target: &[Vec<Value>]) -> Option<Batch> {
    // The guard prevents that an entry is appended twice.
    let is_short = in_target.len() < entries.len();
    let guards =
        is_short.then(|| Guard::Length(list.clone(), first - 1 + in_target.len() as u64)).into_iter().collect();
    let mut ops = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        match in_target.get(index) {
            Some(other) if *other == entry => {}
            Some(_) => ops.push(Op::Rewrite(list.clone(), first + index as u64, operands(entry))),
            None => ops.push(Op::Append(list.clone(), operands(entry))),
        }
    }
    (!ops.is_empty()).then_some(Batch::new(guards, ops))
}

fn operands(entry: Vec<Value>) -> Vec<Operand> {
    entry.into_iter().map(Operand::Value).collect()
}
