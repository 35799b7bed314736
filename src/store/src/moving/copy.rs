//! Moving the records of one engine to another. No node works on either meanwhile.
//!
//! Each key is compared with what is there, and what differs is written. So a move that was interrupted is simply begun again, a later
//! one carries what has changed since, and a pass that finds no difference is the verification. Until the move is finished the target
//! has a mark, with which no node opens it. What is sealed is carried as it is; versions and calls begin anew.

use crate::engine::{Answers, Batch, Engine, Form, Guard, Key, Op, Operand, Query, Record, ScanFrom, Scanned, Table, Value};
use crate::error::StoreError;
use crate::moving::{Moved, MovedKind};
use crate::records::ALL;
use crate::records::installation::{MOVING, moving};

/// Keys that are looked at at once.
const KEYS: usize = 1_000;
/// Records that are read at once; each may be a document.
const RECORDS: usize = 16;
/// Entries that are read at once, and about how many bytes of them.
const ENTRIES: u64 = 1_000;
const ENTRY_BYTES: usize = 4 * 1_024 * 1_024;
/// Members that are read at once.
const MEMBERS: u64 = 1_000;

/// A pass over a source and its target.
struct Pass<'a> {
    from: &'a dyn Engine,
    to: &'a dyn Engine,
    /// Otherwise it only compares.
    writes: bool,
}

/// Copies every record, and compares all of them afterwards. With `finish` nodes can open the target then. `source` names the source in
/// the mark. `progress` is told the number of keys of the source so far, of each pass.
///
/// # Errors
/// [`StoreError::Unavailable`] for a target that holds something else, and when source and target still differ at the end.
pub(crate) async fn move_records(
    from: &dyn Engine,
    to: &dyn Engine,
    source: &str,
    finish: bool,
    progress: impl Fn(&str, u64) + Sync,
) -> Result<Moved, StoreError> {
    begin(to, source).await?;
    let mut moved = Pass { from, to, writes: true }.run("copied", &progress).await?;
    Pass { from, to, writes: false }.run("compared", &progress).await?.without_differences()?;
    if finish {
        to.commit(vec![only(Op::Remove(moving()))]).await?;
        moved.is_finished = true;
    }
    Ok(moved)
}

/// Leaves the mark in a target that is empty, or has it.
async fn begin(to: &dyn Engine, source: &str) -> Result<(), StoreError> {
    match to.read(vec![Query::Record(moving())]).await?.record()? {
        Some(known) if known.text("source") == source => return Ok(()),
        Some(_) => return Err(StoreError::unavailable("another store is being moved into the target")),
        None => {}
    }
    for table in tables() {
        let mut next = Some(ScanFrom::default());
        while let Some(at) = next {
            let Scanned { keys, next: further } = to.scan(table, at, KEYS).await?;
            next = further;
            let mut answers = to.read(keys.iter().map(presence).collect()).await?;
            for _ in &keys {
                if is_there(table, &mut answers)? {
                    return Err(StoreError::unavailable("the target is not empty, and no move into it has begun"));
                }
            }
        }
    }
    to.commit(vec![only(Op::Put(moving(), vec![("source", source.into())]))]).await.map(drop)
}

impl Pass<'_> {
    /// Holds every key of the source against the target, and every key of the target against the source.
    async fn run(&self, what: &str, progress: &(impl Fn(&str, u64) + Sync)) -> Result<Moved, StoreError> {
        let (mut moved, mut seen) = (Moved::default(), 0);
        for table in tables() {
            let mut next = Some(ScanFrom::default());
            while let Some(at) = next {
                let Scanned { keys, next: further } = self.from.scan(table, at, KEYS).await?;
                next = further;
                for some in keys.chunks(RECORDS) {
                    let MovedKind { keys, written } = self.settle(table, some).await?;
                    if keys > 0 {
                        let kind = moved.kinds.entry(table.name).or_default();
                        kind.keys += keys;
                        kind.written += written;
                    }
                    seen += keys;
                }
                progress(what, seen);
            }
        }
        moved.removed = self.remove_others().await?;
        Ok(moved)
    }

    /// Compares some keys of a kind, and writes those that differ; how many there are.
    async fn settle(&self, table: &Table, keys: &[Key]) -> Result<MovedKind, StoreError> {
        if table.form == Form::Record {
            return self.settle_records(keys).await;
        }
        let mut counts = MovedKind::default();
        for key in keys {
            // Nothing is kept without the record that it goes with, which may have ended.
            if let Some(parent) = key.parent()
                && !is_there(parent.table, &mut self.to.read(vec![presence(&parent)]).await?)?
            {
                continue;
            }
            let [in_source, in_target] = self.sizes(key).await?;
            if in_source > 0 {
                let is_list = table.form == Form::List;
                let differs = if is_list {
                    self.settle_list(key, in_source, in_target).await?
                } else {
                    self.settle_index(key, in_source, in_target).await?
                };
                counts.keys += 1;
                counts.written += u64::from(differs);
            }
        }
        Ok(counts)
    }

    async fn settle_records(&self, keys: &[Key]) -> Result<MovedKind, StoreError> {
        let asked: Vec<Query> = keys.iter().flat_map(|key| [Query::Record(key.clone()), Query::End(key.clone())]).collect();
        let (mut source, mut target) = (self.from.read(asked.clone()).await?, self.to.read(asked).await?);
        let (mut counts, mut batches) = (MovedKind::default(), Vec::new());
        for key in keys {
            let (record, end) = (source.record()?, source.number()?);
            let (known, known_end) = (target.record()?, target.number()?);
            let Some(record) = record else { continue };
            counts.keys += 1;
            let is_same = match known {
                Some(known) => known.fields == record.fields && known_end == end,
                None => has_passed(end, &target),
            };
            if !is_same {
                batches.push(put(key, record, end));
            }
        }
        counts.written = batches.len() as u64;
        self.write(batches).await?;
        Ok(counts)
    }

    /// Returns true if the list differs.
    async fn settle_list(&self, list: &Key, in_source: u64, in_target: u64) -> Result<bool, StoreError> {
        let mut differs = in_target != in_source;
        if in_target > in_source {
            self.write(vec![only(Op::Remove(list.clone()))]).await?;
        }
        let mut first = 1;
        while first <= in_source {
            let query = |limit, max_bytes| vec![Query::Entries { list: list.clone(), first, limit, max_bytes }];
            let entries = self.from.read(query(ENTRIES, ENTRY_BYTES)).await?.entries()?;
            if entries.is_empty() {
                break;
            }
            let count = entries.len() as u64;
            let known = self.to.read(query(count, usize::MAX)).await?.entries()?;
            if let Some(batch) = rewrite(list, first, entries, &known) {
                differs = true;
                self.write(vec![batch]).await?;
            }
            first += count;
        }
        Ok(differs)
    }

    /// Returns true if the index differs. Members that the source does not have are gone with the whole index, which is written again.
    async fn settle_index(&self, index: &Key, in_source: u64, in_target: u64) -> Result<bool, StoreError> {
        let mut differs = self.copy_members(index, in_source).await? || in_target != in_source;
        let [_, left] = self.sizes(index).await?;
        if left > in_source {
            differs = true;
            self.write(vec![only(Op::Remove(index.clone()))]).await?;
            self.copy_members(index, in_source).await?;
        }
        Ok(differs)
    }

    /// Adds the members of each page that differs, and returns true if one does.
    async fn copy_members(&self, index: &Key, count: u64) -> Result<bool, StoreError> {
        let mut differs = false;
        let mut offset = 0;
        while offset < count {
            let query = vec![Query::page(index.clone(), offset, MEMBERS)];
            let (members, known) = (self.from.read(query.clone()).await?.members()?, self.to.read(query).await?.members()?);
            if members != known {
                differs = true;
                let ops = members.into_iter().map(|(member, score)| Op::Index(index.clone(), member, score.into())).collect();
                self.write(vec![Batch::new(vec![], ops)]).await?;
            }
            offset += MEMBERS;
        }
        Ok(differs)
    }

    /// Removes what the source does not have; how many keys there are.
    async fn remove_others(&self) -> Result<u64, StoreError> {
        let mut others = 0;
        for table in tables() {
            let mut next = Some(ScanFrom::default());
            while let Some(at) = next {
                let Scanned { keys, next: further } = self.to.scan(table, at, KEYS).await?;
                next = further;
                let asked = keys.iter().flat_map(|key| [presence(key), Query::End(key.parent().unwrap_or_else(|| key.clone()))]);
                let mut target = self.to.read(asked.collect()).await?;
                let mut source = self.from.read(keys.iter().map(presence).collect()).await?;
                let mut batches = Vec::new();
                for key in keys {
                    let (is_in_target, end, is_in_source) =
                        (is_there(table, &mut target)?, target.number()?, is_there(table, &mut source)?);
                    if is_in_target && !is_in_source && !has_passed(end, &source) {
                        batches.push(only(Op::Remove(key)));
                    }
                }
                others += batches.len() as u64;
                self.write(batches).await?;
            }
        }
        Ok(others)
    }

    /// How many entries or members a key has in the source and in the target.
    async fn sizes(&self, key: &Key) -> Result<[u64; 2], StoreError> {
        let query = vec![presence(key)];
        Ok([self.from.read(query.clone()).await?.number()?, self.to.read(query).await?.number()?])
    }

    /// Writes, if this pass does. The next pass tells what was refused.
    async fn write(&self, batches: Vec<Batch>) -> Result<(), StoreError> {
        if self.writes && !batches.is_empty() {
            self.to.commit(batches).await?;
        }
        Ok(())
    }
}

/// Every kind that is moved.
fn tables() -> impl Iterator<Item = &'static Table> {
    ALL.iter().copied().filter(|table| table.name != MOVING.name)
}

/// Asks whether there is something: for a record, or for a number of entries or members.
fn presence(key: &Key) -> Query {
    match key.table.form {
        Form::Record => Query::Fields(key.clone(), &[]),
        Form::List => Query::Length(key.clone()),
        Form::Index => Query::count(key.clone()),
    }
}

/// The next answer to [`presence`].
fn is_there(table: &Table, answers: &mut Answers) -> Result<bool, StoreError> {
    if table.form == Form::Record { Ok(answers.record()?.is_some()) } else { Ok(answers.number()? > 0) }
}

/// Returns true if what ends then had ended for an engine when it answered: the clocks of two engines differ.
fn has_passed(end: u64, answers: &Answers) -> bool {
    end > 0 && end <= u64::try_from(answers.now.millis()).unwrap_or(0)
}

fn only(op: Op) -> Batch {
    Batch::new(vec![], vec![op])
}

/// The batch that writes a record with its end.
fn put(key: &Key, record: Record, end: u64) -> Batch {
    let fields = record.fields.into_iter().map(|(name, value)| (name, Operand::Value(value))).collect();
    let mut ops = vec![Op::Put(key.clone(), fields)];
    if end > 0 {
        ops.push(Op::ExpireAt(key.clone(), Value::number(end).into()));
    }
    Batch::new(vec![], ops)
}

/// The batch that makes entries from this number on what they are to be; `None` when they are.
fn rewrite(list: &Key, first: u64, entries: Vec<Vec<Value>>, known: &[Vec<Value>]) -> Option<Batch> {
    // Nothing is appended twice.
    let is_short = known.len() < entries.len();
    let guards = is_short.then(|| Guard::Length(list.clone(), first - 1 + known.len() as u64)).into_iter().collect();
    let mut ops = Vec::new();
    for (place, entry) in entries.into_iter().enumerate() {
        match known.get(place) {
            Some(known) if *known == entry => {}
            Some(_) => ops.push(Op::Rewrite(list.clone(), first + place as u64, operands(entry))),
            None => ops.push(Op::Append(list.clone(), operands(entry))),
        }
    }
    (!ops.is_empty()).then_some(Batch::new(guards, ops))
}

fn operands(entry: Vec<Value>) -> Vec<Operand> {
    entry.into_iter().map(Operand::Value).collect()
}
