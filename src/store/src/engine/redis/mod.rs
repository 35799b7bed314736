//! Records in Redis: a hash for each record, a list for each list, a sorted set for each index. One script applies
//! batches, and one answers queries.
//!
//! The keys of a partition are in one slot, and a key outside partitions has its own. On a cluster, a script uses one
//! slot. The call of a batch is stored in the hash of a record, in a field that no kind declares. Lists and indexes
//! have the same time to live as their record.

mod pack;
mod unpack;

use std::fmt;
use std::future::ready;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::time::Timestamp;
use tracing::Instrument as _;

use self::pack::{NoticeSender, Packer};
use self::unpack::{parse_answer, parse_applied};
use super::slots::{by_slot, first_key, in_order};
use super::{Answer, Answers, Applied, Batch, Engine, Form, Key, Op, Place, Query, ScanFrom, Scanned, Table};
use crate::error::{StoreError, StoreFuture};
use crate::records::{audit, client};
use crate::redis::reply::Reply;
use crate::redis::script::{APPLY, APPLY_ON_FULL, CONFIRM_READ, READ, Script};
use crate::redis::shared::Shared;
use crate::redis::{Finish, NodeId, Until, data_loss};

/// Records in the servers of a store.
#[derive(Clone)]
pub(crate) struct RedisEngine(Arc<Shared>);

/// Reply of `PEXPIRETIME` for a key without an end. The reply for a missing key is -2.
const NO_END: i64 = -1;

impl RedisEngine {
    /// Returns the engine of a store.
    #[must_use]
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Runs an operation if this node has opened the store. Fails otherwise, with `DataLost` if the store has lost
    /// data.
    fn run<T, F>(&self, operation: impl FnOnce(Arc<Shared>) -> F) -> StoreFuture<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let guard = self.0.link.loss_guard();
        match guard.lost_since() {
            _ if guard.has_opened_store() => self.run_always(operation),
            Some(since) => Box::pin(ready(Err(StoreError::DataLost(since)))),
            None => Box::pin(ready(Err(StoreError::unavailable("it cannot be opened yet")))),
        }
    }

    /// Runs an operation in its own task from the first poll of its future. The task goes on even if the caller stops
    /// polling, because other callers may wait for a connection that the operation opens.
    fn run_always<T, F>(&self, operation: impl FnOnce(Arc<Shared>) -> F) -> StoreFuture<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let work = operation(Arc::clone(&self.0)).instrument(sakshi_trace::current());
        Box::pin(async move {
            let ended = tokio::spawn(work).await;
            ended.unwrap_or_else(|_| {
                Err(StoreError::Unavailable("the runtime of the caller is shutting down".to_owned()))
            })
        })
    }

    /// Answers queries by a script, which reads one slot in each call on a cluster.
    fn read_with(&self, queries: Vec<Query>, script: &'static Script) -> StoreFuture<Answers> {
        self.run(move |store| async move {
            let slots = match queries.len() {
                0 => vec![],
                number if !store.link.is_cluster() => vec![(0..number).collect()],
                _ => by_slot(&queries, |query| Some(query.key())),
            };
            let answers = try_join_all(slots.iter().map(|indexes| store.read_slot(script, &queries, indexes))).await?;
            let now = answers.first().map_or_else(|| store.clock().now(), |(now, _)| *now);
            let answers = answers.into_iter().map(|(_, answers)| answers).collect();
            Ok(Answers { now, found: in_order(queries.len(), &slots, answers).into() })
        })
    }

    /// Applies batches with a call for each slot.
    fn commit_with(&self, batches: Vec<Batch>, until: Until) -> StoreFuture<Vec<Applied>> {
        self.run(move |store| async move {
            let slots = by_slot(&batches, first_key);
            let calls = slots.iter().map(|indexes| store.commit_slot(&batches, indexes, until));
            Ok(in_order(batches.len(), &slots, try_join_all(calls).await?))
        })
    }
}

/// Returns the name of a key in Redis: in the slot of its partition, or in its own.
pub(crate) fn name(key: &Key) -> Vec<u8> {
    let (kind, id) = (key.table.name.as_bytes(), &key.id[..]);
    match key.place {
        Place::Partition(partition) => {
            let number = partition.number();
            let tag = [b'{', b'p', b'0' + number / 10, b'0' + number % 10, b'}'];
            [&tag[..], kind, b":", id].concat()
        }
        Place::Alone => [kind, b":", id].concat(),
    }
}

/// Parses the name of a key of a kind; `None` for a name of another kind.
pub(crate) fn parse_name(table: &'static Table, name: &[u8]) -> Option<Key> {
    let (place, rest) = match name {
        [b'{', b'p', tens, ones, b'}', rest @ ..] => {
            let number = tens.checked_sub(b'0')?.checked_mul(10)?.checked_add(ones.checked_sub(b'0')?)?;
            (Place::from_number(number)?, rest)
        }
        rest => (Place::Alone, rest),
    };
    let id = rest.strip_prefix(table.name.as_bytes())?.strip_prefix(b":")?;
    Some(Key { table, place, id: id.to_vec() })
}

/// Parses the name of a key of these kinds; `None` for a name of any other kind.
pub(crate) fn parse_name_in(tables: &[&'static Table], name: &[u8]) -> Option<Key> {
    tables.iter().find_map(|table| parse_name(table, name))
}

impl Shared {
    /// Applies the batches at these indexes, whose first keys share one slot.
    async fn commit_slot(
        &self,
        batches: &[Batch],
        indexes: &[usize],
        until: Until,
    ) -> Result<Vec<Applied>, StoreError> {
        let in_slot = || indexes.iter().map(|index| &batches[*index]);
        let script = if in_slot().all(|batch| batch.even_when_full) { &APPLY_ON_FULL } else { &APPLY };
        let mut replies = loop {
            let schema_number = self.level().number();
            let (keys, args) = self.pack(in_slot(), schema_number);
            let replies = self.call_timed(script, keys, self.with_time(args), until).await?.fields()?;
            if !replies.is_empty() {
                break replies;
            }
            // An empty reply means that the schema number was raised: retry at the new one, if this node knows it.
            self.read_schema().await?;
            self.level().check()?;
            if self.level().number() == schema_number {
                return Err(StoreError::unavailable("the number of its schema has changed"));
            }
        };
        let now = replies.time()?;
        let answers = parse_all(in_slot(), replies.remaining(), |batch, reply| parse_applied(batch, reply, now))?;
        in_slot().zip(&answers).for_each(|(batch, applied)| self.remember_lengths(batch, applied));
        Ok(answers)
    }

    /// Returns the keys and arguments of the script for batches, in the form of a schema number.
    fn pack<'a>(
        &self,
        batches: impl ExactSizeIterator<Item = &'a Batch>,
        schema_number: u32,
    ) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let notice_sender = NoticeSender { node: self.node, is_cluster: self.link.is_cluster() };
        let converted: Vec<_> =
            batches.map(|batch| self.level().schema().convert_batch(schema_number, batch)).collect();
        let (mut keys, mut args) = Packer::batches(converted.iter().map(|batch| &**batch), notice_sender).finish();
        let place = converted.first().and_then(|batch| first_key(batch)).map_or(Place::Alone, |key| key.place);
        if let Some(schema_key) = self.schema_key_beside(place) {
            keys.push(schema_key);
            args.push(schema_number.to_string().into_bytes());
        }
        (keys, args)
    }

    /// Reports the new lengths of append-only lists to the loss guard, which detects that a failover has lost entries.
    fn remember_lengths(&self, batch: &Batch, applied: &Applied) {
        let Applied::Done { results, .. } = applied else { return };
        for (op, length) in batch.ops.iter().zip(results) {
            let Op::Append(list, _) = op else { continue };
            let list_number = match list.place {
                _ if list.table.name == audit::AUDIT_LOG.name => data_loss::AUDIT_LOG_NUMBER,
                place if list.table.name == client::LEDGER.name => place.number(),
                _ => continue,
            };
            self.link.loss_guard().record_length(list_number, name(list), length.unsigned_abs());
        }
    }

    /// Answers the queries at these indexes, which on a cluster share one slot.
    async fn read_slot(
        &self,
        script: &'static Script,
        queries: &[Query],
        indexes: &[usize],
    ) -> Result<(Timestamp, Vec<Answer>), StoreError> {
        let in_slot = || indexes.iter().map(|index| &queries[*index]);
        let (keys, args) = Packer::queries(in_slot());
        let mut replies = self.call(script, keys, args).await?.fields()?;
        Ok((replies.time()?, parse_all(in_slot(), replies.remaining(), parse_answer)?))
    }

    /// Scans a server from a position on, until some keys of these kinds are found or the server is at its end. A
    /// cursor means nothing to another process, whose hash has another seed: the scan of the server then starts again.
    async fn scan_records(
        &self,
        tables: &[&'static Table],
        from: ScanFrom,
        limit: usize,
    ) -> Result<Scanned, StoreError> {
        let (part, mut number, mut keys) = (from.part, from.number, Vec::new());
        let start = || Scanned { next: Some(ScanFrom { part, ..ScanFrom::default() }), ..Scanned::default() };
        let Some(process) = self.process_of_server(part).await? else { return Ok(Scanned::default()) };
        if from.process != 0 && from.process != process {
            return Ok(start());
        }
        while keys.is_empty() {
            let mut command = cmd("SCAN");
            command.arg(number).arg("COUNT").arg(limit);
            if let [table] = tables {
                let kind = match table.form {
                    Form::Record => "hash",
                    Form::List => "list",
                    Form::Index => "zset",
                };
                command.arg("MATCH").arg(format!("*{}:*", table.name)).arg("TYPE").arg(kind);
            }
            let Some(answer) = self.link.ask_server(part, command).await? else { return Ok(Scanned::default()) };
            let mut answer = Reply::new("a scan", answer).fields()?;
            number = answer.parsed()?;
            keys.extend(
                answer.value()?.fields()?.parse_all(Some)?.iter().filter_map(|name| parse_name_in(tables, name)),
            );
            if number == 0 {
                break;
            }
        }
        if self.process_of_server(part).await? != Some(process) {
            return Ok(start());
        }
        let next = if number == 0 {
            ScanFrom { part: part + 1, ..ScanFrom::default() }
        } else {
            ScanFrom { part, number, process }
        };
        Ok(Scanned { keys: self.unexpired(keys).await?, next: Some(next), process })
    }

    /// Drops the keys that have expired by the clock of a test; without such a clock, the servers have dropped them.
    async fn unexpired(&self, keys: Vec<Key>) -> Result<Vec<Key>, StoreError> {
        let Some(clock) = &self.clock else { return Ok(keys) };
        let now = clock.now().millis();
        let ends = self.read_all("an end", keys.iter().map(|key| cmd("PEXPIRETIME").arg(name(key)).to_owned())).await?;
        let mut unexpired = Vec::with_capacity(keys.len());
        for (key, end) in keys.into_iter().zip(ends) {
            let end: i64 = end.parsed()?;
            if end == NO_END || end > now {
                unexpired.push(key);
            }
        }
        Ok(unexpired)
    }
}

/// Parses the reply to each request.
///
/// # Errors
/// [`StoreError::Corrupt`] when a reply is missing or cannot be parsed.
fn parse_all<'a, Q: 'a, T>(
    requests: impl ExactSizeIterator<Item = &'a Q>,
    replies: impl ExactSizeIterator<Item = Reply>,
    parse: impl Fn(&Q, Reply) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    if requests.len() != replies.len() {
        return Err(StoreError::unreadable("the number of replies"));
    }
    requests.zip(replies).map(|(request, reply)| parse(request, reply)).collect()
}

impl Engine for RedisEngine {
    fn system(&self) -> &'static str {
        "redis"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.read_with(queries, &READ)
    }

    fn read_confirmed(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.read_with(queries, if self.may_be_ahead() { &CONFIRM_READ } else { &READ })
    }

    fn may_be_ahead(&self) -> bool {
        self.0.link.waits_for_replicas()
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.commit_with(batches, Until::Timeout)
    }

    fn commit_until_answered(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        self.commit_with(batches, Until::Answered)
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.run(move |store| async move { store.scan_records(&[table], from, limit).await })
    }

    /// Scans each server once for all kinds together.
    fn scan_kinds(&self, tables: Vec<&'static Table>, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.run(move |store| async move { store.scan_records(&tables, from, limit).await })
    }

    /// Does nothing: every key expires by itself when its time has passed.
    fn sweep(&self, _: Timestamp, _: usize, _: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        Box::pin(ready(Ok(vec![])))
    }

    fn members(&self) -> Vec<(NodeId, Timestamp)> {
        self.0.members.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn joins_places(&self) -> bool {
        !self.0.link.is_cluster()
    }

    fn confirm(&self) -> StoreFuture<()> {
        self.run(|store: Arc<Shared>| async move { store.confirm(()).await })
    }

    fn check(&self) -> StoreFuture<()> {
        self.run_always(|store| async move { store.check().await })
    }

    fn is_nearly_full(&self) -> bool {
        self.0.is_nearly_full.load(Ordering::Relaxed)
    }

    fn is_open(&self) -> bool {
        self.0.link.loss_guard().has_opened_store()
    }

    fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        self.run_always(|store| async move {
            let since = store.accept_loss().await?;
            store.check_untimed().await?;
            store.is_healthy.store(true, Ordering::Relaxed);
            Ok(since)
        })
    }

    fn finish_upgrade(&self) -> StoreFuture<Finish> {
        let engine = self.clone();
        self.run(move |store| async move { store.finish_upgrade(&engine).await })
    }

    fn leave(&self) -> StoreFuture<()> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move { shared.leave().await })
    }
}

impl fmt::Debug for RedisEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisEngine")
    }
}
