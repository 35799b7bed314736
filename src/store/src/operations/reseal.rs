//! Resealing values that are sealed under an old key: one kind of record after the other, by its sealed fields.
//!
//! A scan gives keys in any order. Those of a step are sorted by their digests, so that an interrupted step resumes
//! with the following ones, even if others were added or removed.

use aws_lc_rs::digest::{SHA256, digest};
use tokio::task::spawn_blocking;

use super::{Store, is_done};
use crate::engine::{
    Batch, Column, ColumnKind, Form, Guard, Key, Op, Operand, Owner, Query, Record, ScanFrom, Table, Value,
};
use crate::error::{StoreError, StoreFuture};
use crate::records::ALL;
use crate::reseal::{ResealCursor, Resealed, sealed_anew};
use crate::vault::EncryptionKeyId;

/// Bytes that one step reads, except its last slice.
const STEP_BYTES: usize = 4 * 1_024 * 1_024;
/// Records, or entries of a list, read at once; each may hold a photo.
const SLICE: usize = 16;

/// The beginning of the digest of a key.
type Digest = [u8; 16];

/// A place in the scan of a kind.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The number of the server.
    part: [u8; 2],
    /// The last processed key of the scan's step.
    after: Digest,
    /// Number of the next entry in that key, a list; 0 when it was processed completely.
    entry: [u8; 8],
}

/// A record, or an entry of a list as one.
struct Row {
    key: Key,
    /// The number of the entry; 0 for a record.
    number: u64,
    record: Record,
}

/// A row with its values under an old key, and the same values resealed.
struct Replacement {
    row: Row,
    old: Vec<(&'static str, Vec<u8>)>,
    fresh: Vec<(&'static str, Vec<u8>)>,
}

/// The result of a step.
struct Step {
    resealed: Resealed,
    /// The first unprocessed key.
    rest: Option<Place>,
}

impl Store {
    /// Runs one step of a pass: checks about `limit` records from the cursor on, and reseals values under other keys.
    /// Repeatable; a pass can begin again at any time.
    pub fn reseal(&self, from: ResealCursor, limit: usize) -> StoreFuture<Resealed> {
        self.run(move |store| async move {
            let Some(table) = sealed_tables().nth(from.part.into()) else { return Ok(Resealed::default()) };
            let place = Place::read(&from.name);
            let scan = ScanFrom { part: u16::from_be_bytes(place.part), number: from.number };
            let scanned = store.engine().scan(table, scan, limit).await?;
            let Step { mut resealed, rest } = store.reseal_keys(place, following(scanned.keys, place), limit).await?;
            resealed.next = match (rest, scanned.next) {
                (Some(rest), _) => Some(ResealCursor { name: rest.written(), ..from }),
                (None, Some(ScanFrom { part, number })) => {
                    let place = Place { part: part.to_be_bytes(), ..Place::default() };
                    Some(ResealCursor { number, name: place.written(), ..from })
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

    /// Processes the keys of a scan's step, up to a number of rows or bytes.
    async fn reseal_keys(&self, mut place: Place, keys: Vec<(Digest, Key)>, limit: usize) -> Result<Step, StoreError> {
        let (mut resealed, mut rows_left, mut room) = (Resealed::default(), limit.max(1), STEP_BYTES);
        let mut keys = keys.as_slice();
        while let Some((first, key)) = keys.first() {
            if rows_left == 0 || room == 0 {
                return Ok(Step { resealed, rest: Some(place) });
            }
            let slice = SLICE.min(rows_left);
            let rows = if key.table.form == Form::List {
                let number = if place.after == *first { u64::from_be_bytes(place.entry).max(1) } else { 1 };
                let rows = self.entries_as_rows(key, number, slice).await?;
                let next = rows.last().map_or(0, |row| row.number + 1);
                place = Place { after: *first, entry: next.to_be_bytes(), ..place };
                if rows.is_empty() {
                    keys = &keys[1..];
                }
                rows
            } else {
                let (some, others) = keys.split_at(slice.min(keys.len()));
                place = Place { after: some.last().map_or(*first, |(last, _)| *last), entry: [0; 8], ..place };
                keys = others;
                self.records_as_rows(some).await?
            };
            rows_left -= rows.len();
            let sizes = rows.iter().flat_map(|row| row.record.fields.values().map(Value::size));
            room = room.saturating_sub(sizes.sum());
            self.reseal_rows(rows, &mut resealed).await?;
        }
        Ok(Step { resealed, rest: None })
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

    /// Reseals the values of rows that are under another key than the sealing one.
    async fn reseal_rows(&self, rows: Vec<Row>, resealed: &mut Resealed) -> Result<(), StoreError> {
        let is_sealed = |row: &Row| values(row).count() as u64;
        resealed.looked_at += rows.iter().map(is_sealed).sum::<u64>();
        let is_old = |row: &Row| values(row).any(|(_, _, sealed)| !self.vault().seals_like(sealed));
        let old: Vec<Row> = rows.into_iter().filter(is_old).collect();
        if old.is_empty() {
            return Ok(());
        }
        let store = self.clone();
        let work = move || old.into_iter().map(|row| store.replacement(row)).collect::<Vec<_>>();
        let ready = if self.engine().works_at_once() {
            work()
        } else {
            spawn_blocking(work).await.map_err(|_| StoreError::unavailable("the runtime is shutting down"))?
        };
        let mut sent = Vec::with_capacity(ready.len());
        let mut batches = Vec::with_capacity(ready.len());
        for Replacement { row, old, fresh } in ready {
            let (opened, unopened): (Vec<_>, Vec<_>) =
                old.into_iter().partition(|(name, _)| fresh.iter().any(|(known, _)| known == name));
            unopened.iter().for_each(|(_, sealed)| resealed.leave(sealed));
            if !opened.is_empty() {
                let (key, number) = (row.key.clone(), row.number);
                batches.push(replace(row, &opened, fresh));
                sent.push((key, number, opened));
            }
        }
        if batches.is_empty() {
            return Ok(());
        }
        for ((key, number, opened), applied) in sent.iter().zip(self.commit_as_is(batches).await?) {
            // A batch whose response was lost is refused as well, and its writes are stored.
            if is_done(&applied) || self.is_sealed_anew(key, *number, opened).await? {
                resealed.resealed += opened.len() as u64;
            } else {
                opened.iter().for_each(|(_, sealed)| resealed.leave(sealed));
            }
        }
        Ok(())
    }

    /// Returns true if the values of a row are under the sealing key.
    async fn is_sealed_anew(
        &self,
        key: &Key,
        number: u64,
        old: &[(&'static str, Vec<u8>)],
    ) -> Result<bool, StoreError> {
        let rows = if key.table.form == Form::List {
            self.entries_as_rows(key, number, 1).await?
        } else {
            self.records_as_rows(&[(Digest::default(), key.clone())]).await?
        };
        let is_new = |row: &Row, name: &str| self.vault().seals_like(row.record.bytes(name));
        Ok(rows.first().is_some_and(|row| old.iter().all(|(name, _)| is_new(row, name))))
    }

    fn replacement(&self, row: Row) -> Replacement {
        let is_old = |(_, _, sealed): &(&'static str, Owner, &[u8])| !self.vault().seals_like(sealed);
        let (mut old, mut fresh) = (Vec::new(), Vec::new());
        for (name, owner, sealed) in values(&row).filter(is_old) {
            let owner = owner.bytes(&row.key.id, &row.record, row.number);
            fresh.extend(sealed_anew(self.vault(), &owner, sealed).map(|sealed| (name, sealed)));
            old.push((name, sealed.to_vec()));
        }
        Replacement { row, old, fresh }
    }
}

/// Returns the kinds with sealed fields.
pub(crate) fn sealed_tables() -> impl Iterator<Item = &'static Table> {
    let is_sealed = |column: &Column| matches!(column.kind, ColumnKind::Sealed(_));
    ALL.iter().copied().filter(move |table| table.fields.iter().any(is_sealed))
}

/// Returns the sealed values of a row.
fn values(row: &Row) -> impl Iterator<Item = (&'static str, Owner, &[u8])> {
    let columns = row.key.table.fields.iter().filter_map(|column| match column.kind {
        ColumnKind::Sealed(owner) => Some((column.name, owner, row.record.bytes(column.name))),
        _ => None,
    });
    columns.filter(|(_, _, sealed)| !sealed.is_empty())
}

/// Returns the batch that replaces values which are unchanged since they were read.
fn replace(row: Row, old: &[(&'static str, Vec<u8>)], fresh: Vec<(&'static str, Vec<u8>)>) -> Batch {
    let Row { key, number, mut record } = row;
    let (guards, op) = if key.table.form == Form::List {
        let of_entry = |record: &mut Record| -> Vec<Value> {
            key.table.fields.iter().filter_map(|column| record.fields.get(column.name).cloned()).collect()
        };
        let guards = vec![Guard::Entry(key.clone(), number, of_entry(&mut record))];
        record.fields.extend(fresh.into_iter().map(|(name, sealed)| (name, sealed.into())));
        let entry = of_entry(&mut record).into_iter().map(Operand::Value).collect();
        (guards, Op::Rewrite(key, number, entry))
    } else {
        let guards = old.iter().map(|(name, sealed)| Guard::Equal(key.clone(), name, sealed.clone().into())).collect();
        (guards, Op::Set(key, fresh.into_iter().map(|(name, sealed)| (name, sealed.into())).collect()))
    };
    Batch::on_full(guards, vec![op])
}

/// Returns the keys after a place, in the order of their digests.
fn following(keys: Vec<Key>, place: Place) -> Vec<(Digest, Key)> {
    let is_next =
        |(digest, _): &(Digest, Key)| *digest > place.after || (*digest == place.after && place.entry != [0; 8]);
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

impl Place {
    /// Returns the place in the name of a cursor; missing bytes are zeros.
    fn read(name: &[u8]) -> Self {
        let mut place = Self::default();
        let Self { part, after, entry } = &mut place;
        part.iter_mut().chain(after).chain(entry).zip(name).for_each(|(to, from)| *to = *from);
        place
    }

    fn written(self) -> Vec<u8> {
        [&self.part[..], &self.after, &self.entry].concat()
    }
}
