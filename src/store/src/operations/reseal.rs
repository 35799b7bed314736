//! Resealing values that are sealed under an old key, one kind of record after the other.
//!
//! A scan returns keys in any order. The keys of one scan step are sorted by digest. An interrupted step resumes after
//! the last processed digest, even if keys were added or removed meanwhile.

use aws_lc_rs::digest::{SHA256, digest};
use tokio::task::spawn_blocking;

use super::{Store, is_done};
use crate::engine::{
    Batch, Column, ColumnKind, Form, Guard, Key, Op, Operand, Owner, Query, Record, ScanFrom, Table, Value,
};
use crate::error::{StoreError, StoreFuture};
use crate::records::{ALL, is_large};
use crate::reseal::{ResealCursor, Resealed, reseal_value};
use crate::vault::EncryptionKeyId;

/// Bytes that one step reads; its last slice may exceed them.
const STEP_BYTES: usize = 4 * 1_024 * 1_024;
/// Records, or entries of a list, read at once; each may contain a photo. Large records are read alone.
const ROWS_AT_ONCE: usize = 16;

/// The first bytes of the digest of a key.
type Digest = [u8; 16];

/// A position in the scan of a kind.
#[derive(Clone, Copy, Default)]
struct Position {
    /// Number of the server.
    part: [u8; 2],
    /// The last processed key of the scan step.
    after: Digest,
    /// Number of the next entry to process if that key is a list; 0 once the key is processed.
    entry: [u8; 8],
    /// Process of the server, whose cursor and keys these are.
    process: [u8; 4],
}

/// A record, or an entry of a list in the form of a record.
struct Row {
    key: Key,
    /// Number of the entry; 0 for a record.
    number: u64,
    record: Record,
}

/// A row with its values that are sealed under an old key, and the resealed values.
struct Replacement {
    row: Row,
    old: Vec<(&'static str, Vec<u8>)>,
    resealed: Vec<(&'static str, Vec<u8>)>,
}

/// The result of a step.
struct Step {
    resealed: Resealed,
    /// Position of the first unprocessed key; `None` if all keys were processed.
    resume_at: Option<Position>,
}

impl Store {
    /// Runs one step of a pass: checks about `limit` records from the cursor on, and reseals values that are sealed
    /// under old keys. Repeatable; a pass can restart at any time.
    pub fn reseal(&self, from: ResealCursor, limit: usize) -> StoreFuture<Resealed> {
        self.run(move |store| async move {
            let Some(table) = sealed_tables().nth(from.part.into()) else { return Ok(Resealed::default()) };
            let position = Position::decode(&from.name);
            let scan = ScanFrom {
                part: u16::from_be_bytes(position.part),
                number: from.number,
                process: u32::from_be_bytes(position.process),
            };
            let scanned = store.engine().scan(table, scan, limit).await?;
            let process = scanned.process.to_be_bytes();
            let keys = keys_after(scanned.keys, position);
            let Step { mut resealed, resume_at } = store.reseal_keys(position, keys, limit).await?;
            resealed.next = match (resume_at, scanned.next) {
                (Some(position), _) => Some(ResealCursor { name: Position { process, ..position }.encode(), ..from }),
                (None, Some(ScanFrom { part, number, process })) => {
                    let (part, process) = (part.to_be_bytes(), process.to_be_bytes());
                    let position = Position { part, process, ..Position::default() };
                    Some(ResealCursor { number, name: position.encode(), ..from })
                }
                (None, None) => Some(from.part + 1)
                    .filter(|part| sealed_tables().nth((*part).into()).is_some())
                    .map(|part| ResealCursor { part, ..ResealCursor::default() }),
            };
            Ok(resealed)
        })
    }

    /// Returns the key with which this node seals.
    pub fn sealing_key(&self) -> EncryptionKeyId {
        self.vault().sealing_key()
    }

    /// Reseals the keys of a scan step, up to `limit` rows and [`STEP_BYTES`].
    async fn reseal_keys(
        &self,
        mut position: Position,
        keys: Vec<(Digest, Key)>,
        limit: usize,
    ) -> Result<Step, StoreError> {
        let (mut resealed, mut rows_left, mut bytes_left) = (Resealed::default(), limit.max(1), STEP_BYTES);
        let mut keys = keys.as_slice();
        while let Some((first, key)) = keys.first() {
            if rows_left == 0 || bytes_left == 0 {
                return Ok(Step { resealed, resume_at: Some(position) });
            }
            let slice = if is_large(key.table) { 1 } else { ROWS_AT_ONCE.min(rows_left) };
            let rows = if key.table.form == Form::List {
                let number = if position.after == *first { u64::from_be_bytes(position.entry).max(1) } else { 1 };
                let rows = self.entries_as_rows(key, number, slice).await?;
                let next = rows.last().map_or(0, |row| row.number + 1);
                position = Position { after: *first, entry: next.to_be_bytes(), ..position };
                if rows.is_empty() {
                    keys = &keys[1..];
                }
                rows
            } else {
                let (chunk, others) = keys.split_at(slice.min(keys.len()));
                let after = chunk.last().map_or(*first, |(last, _)| *last);
                position = Position { after, entry: [0; 8], ..position };
                keys = others;
                self.records_as_rows(chunk).await?
            };
            rows_left -= rows.len();
            let sizes = rows.iter().flat_map(|row| row.record.fields.values().map(Value::size));
            bytes_left = bytes_left.saturating_sub(sizes.sum());
            self.reseal_rows(rows, &mut resealed).await?;
        }
        Ok(Step { resealed, resume_at: None })
    }

    async fn records_as_rows(&self, keys: &[(Digest, Key)]) -> Result<Vec<Row>, StoreError> {
        let mut answers = self.read_as_is(keys.iter().map(|(_, key)| Query::Record(key.clone())).collect()).await?;
        let rows =
            keys.iter().map(|(_, key)| Ok(answers.record()?.map(|record| Row { key: key.clone(), number: 0, record })));
        rows.filter_map(Result::transpose).collect()
    }

    async fn entries_as_rows(&self, list: &Key, first: u64, limit: usize) -> Result<Vec<Row>, StoreError> {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let query = Query::Entries { list: list.clone(), first, limit, max_bytes: STEP_BYTES };
        let entries = self.read_as_is(vec![query]).await?.entries()?;
        let names = || list.table.fields.iter().map(|column| column.name);
        let row = |(number, values): (u64, Vec<Value>)| {
            let record = Record { fields: names().zip(values).collect(), ..Record::default() };
            Row { key: list.clone(), number, record }
        };
        Ok((first..).zip(entries).map(row).collect())
    }

    /// Reseals the values of rows that are sealed under an old key.
    async fn reseal_rows(&self, rows: Vec<Row>, progress: &mut Resealed) -> Result<(), StoreError> {
        let values = |row: &Row| sealed_values(row).count() as u64;
        progress.looked_at += rows.iter().map(values).sum::<u64>();
        let is_old = |row: &Row| sealed_values(row).any(|(_, _, sealed)| !self.vault().is_under_sealing_key(sealed));
        let old: Vec<Row> = rows.into_iter().filter(is_old).collect();
        if old.is_empty() {
            return Ok(());
        }
        let store = self.clone();
        let work = move || old.into_iter().map(|row| store.replacement(row)).collect::<Vec<_>>();
        let replacements = if self.engine().works_at_once() {
            work()
        } else {
            spawn_blocking(work).await.map_err(|_| StoreError::unavailable("the runtime is shutting down"))?
        };
        let mut replaced = Vec::with_capacity(replacements.len());
        let mut batches = Vec::with_capacity(replacements.len());
        for Replacement { row, old, resealed } in replacements {
            let (opened, unopened): (Vec<_>, Vec<_>) =
                old.into_iter().partition(|(name, _)| resealed.iter().any(|(known, _)| known == name));
            unopened.iter().for_each(|(_, sealed)| progress.count_left(sealed));
            if !opened.is_empty() {
                let (key, number) = (row.key.clone(), row.number);
                batches.push(replace_values(row, &opened, resealed));
                replaced.push((key, number, opened));
            }
        }
        if batches.is_empty() {
            return Ok(());
        }
        for ((key, number, opened), applied) in replaced.iter().zip(self.commit_as_is(batches).await?) {
            // A batch whose response was lost is also refused, but its values are stored.
            if is_done(&applied) || self.is_resealed(key, *number, opened).await? {
                progress.resealed += opened.len() as u64;
            } else {
                opened.iter().for_each(|(_, sealed)| progress.count_left(sealed));
            }
        }
        Ok(())
    }

    /// Returns true if these values of a row are sealed under the sealing key.
    async fn is_resealed(&self, key: &Key, number: u64, old: &[(&'static str, Vec<u8>)]) -> Result<bool, StoreError> {
        let rows = if key.table.form == Form::List {
            self.entries_as_rows(key, number, 1).await?
        } else {
            self.records_as_rows(&[(Digest::default(), key.clone())]).await?
        };
        let is_new = |row: &Row, name: &str| self.vault().is_under_sealing_key(row.record.bytes(name));
        Ok(rows.first().is_some_and(|row| old.iter().all(|(name, _)| is_new(row, name))))
    }

    /// Reseals the old values of a row, except those that no key opens.
    fn replacement(&self, row: Row) -> Replacement {
        let is_old = |(_, _, sealed): &(&'static str, Owner, &[u8])| !self.vault().is_under_sealing_key(sealed);
        let (mut old, mut resealed) = (Vec::new(), Vec::new());
        for (name, owner, sealed) in sealed_values(&row).filter(is_old) {
            let owner = owner.bytes(&row.key.id, &row.record, row.number);
            resealed.extend(reseal_value(self.vault(), &owner, sealed).map(|sealed| (name, sealed)));
            old.push((name, sealed.to_vec()));
        }
        Replacement { row, old, resealed }
    }
}

/// Returns the tables with sealed fields.
pub(crate) fn sealed_tables() -> impl Iterator<Item = &'static Table> {
    let is_sealed = |column: &Column| matches!(column.kind, ColumnKind::Sealed(_));
    ALL.iter().copied().filter(move |table| table.fields.iter().any(is_sealed))
}

/// Returns the sealed values of a row.
fn sealed_values(row: &Row) -> impl Iterator<Item = (&'static str, Owner, &[u8])> {
    let columns = row.key.table.fields.iter().filter_map(|column| match column.kind {
        ColumnKind::Sealed(owner) => Some((column.name, owner, row.record.bytes(column.name))),
        _ => None,
    });
    columns.filter(|(_, _, sealed)| !sealed.is_empty())
}

/// Builds the batch that replaces values. It is refused if a value has changed since it was read.
fn replace_values(row: Row, old: &[(&'static str, Vec<u8>)], resealed: Vec<(&'static str, Vec<u8>)>) -> Batch {
    let Row { key, number, mut record } = row;
    let (guards, op) = if key.table.form == Form::List {
        let entry_values = |record: &mut Record| -> Vec<Value> {
            key.table.fields.iter().filter_map(|column| record.fields.get(column.name).cloned()).collect()
        };
        let guards = vec![Guard::Entry(key.clone(), number, entry_values(&mut record))];
        record.fields.extend(resealed.into_iter().map(|(name, sealed)| (name, sealed.into())));
        let entry = entry_values(&mut record).into_iter().map(Operand::Value).collect();
        (guards, Op::Rewrite(key, number, entry))
    } else {
        let guards = old.iter().map(|(name, sealed)| Guard::Equal(key.clone(), name, sealed.clone().into())).collect();
        (guards, Op::Set(key, resealed.into_iter().map(|(name, sealed)| (name, sealed.into())).collect()))
    };
    Batch::even_when_full(guards, vec![op])
}

/// Returns the keys from a position on, in the order of their digests.
fn keys_after(keys: Vec<Key>, position: Position) -> Vec<(Digest, Key)> {
    let is_next = |(digest, _): &(Digest, Key)| {
        *digest > position.after || (*digest == position.after && position.entry != [0; 8])
    };
    let mut keys: Vec<_> = keys.into_iter().map(|key| (digest_of(&key), key)).filter(is_next).collect();
    keys.sort_unstable_by_key(|(digest, _)| *digest);
    // A scan may return a key twice.
    keys.dedup_by_key(|(digest, _)| *digest);
    keys
}

fn digest_of(key: &Key) -> Digest {
    let whole = digest(&SHA256, &[&[key.place.number()], &key.id[..]].concat());
    let mut beginning = Digest::default();
    beginning.iter_mut().zip(whole.as_ref()).for_each(|(to, from)| *to = *from);
    beginning
}

impl Position {
    /// Decodes the position in the name of a cursor; missing bytes count as zeros.
    fn decode(name: &[u8]) -> Self {
        let mut position = Self::default();
        let Self { part, after, entry, process } = &mut position;
        part.iter_mut().chain(after).chain(entry).chain(process).zip(name).for_each(|(to, from)| *to = *from);
        position
    }

    fn encode(self) -> Vec<u8> {
        [&self.part[..], &self.after, &self.entry, &self.process].concat()
    }
}
