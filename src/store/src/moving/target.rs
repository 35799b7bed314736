//! Redis as the target of a move: what each key holds, and writing what it is to hold. No node works on it meanwhile.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use redis::{Cmd, cmd};
use sakshi_domain::clock::{Clock as _, SystemClock};
use tokio::sync::mpsc;

use super::{Content, MovedKey};
use crate::error::StoreError;
use crate::redis::arguments::{Argument as _, arguments};
use crate::redis::reply::Reply;
use crate::redis::script::{ASSIGN_QUEUE, ERASE_RECORD, KEEP_MARK, LOAD_QUEUE, PUT_MOVED, PUT_QUEUE};
use crate::redis::shared::Shared;
use crate::redis::{RedisOptions, keys, unwatched};

/// Keys that are compared at a time, and about how many bytes of them.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 4 * 1_024 * 1_024;
/// Scripts under way.
const WRITES: usize = 32;
/// Deliveries that are written at a time.
const ENTRIES: usize = 1_000;
/// Names that a server is asked for at a time.
const NAMES: u32 = 1_000;
/// The node to which waiting deliveries are assigned. It never lives.
const NOBODY: &str = "00000000000000000000000000000000";
/// A key that is gone may have ended just now.
const JUST_NOW_MS: i64 = 2_000;

/// The servers of the target.
pub(crate) struct Target {
    shared: Arc<Shared>,
    /// Lists of which a piece was written in this pass: the pieces behind it are written as well.
    cut: Mutex<HashSet<Vec<u8>>>,
}

impl Target {
    /// Connects to servers that are empty or have the mark of this move, and leaves the mark.
    pub(super) async fn open(options: RedisOptions, mark: &str) -> Result<Self, StoreError> {
        let shared = unwatched(options);
        shared.check_servers().await?;
        let known = shared.read("the mark of a move", cmd("GET").arg(keys::moving())).await?.text()?;
        match known.as_deref() {
            Some(known) if known == mark => {}
            Some(_) => return Err(StoreError::unavailable("another store is being moved into the target")),
            None => {
                for server in 0.. {
                    let Some(size) = shared.link.ask_server(server, cmd("DBSIZE")).await? else { break };
                    if Reply::new("the number of keys", size).parsed::<u64>()? > 0 {
                        return Err(StoreError::unavailable("the target is not empty, and no move into it has begun"));
                    }
                }
                shared.call(&KEEP_MARK, vec![keys::moving()], arguments!["", mark]).await?;
            }
        }
        Ok(Self { shared, cut: Mutex::default() })
    }

    /// Takes the mark away.
    pub(super) async fn finish(&self) -> Result<(), StoreError> {
        self.shared.call(&ERASE_RECORD, vec![keys::moving()], arguments![""]).await.map(drop)
    }

    /// The next keys; none at the end.
    pub(super) async fn batch(receiver: &mut mpsc::Receiver<MovedKey>) -> Vec<MovedKey> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let next = if batch.is_empty() { receiver.recv().await } else { receiver.try_recv().ok() };
            let Some(key) = next else { break };
            bytes += size(&key.content);
            batch.push(key);
        }
        batch
    }

    /// Compares keys with what is there, and writes those that differ; the kind of each that differs.
    pub(super) async fn settle(&self, batch: Vec<MovedKey>, writes: bool) -> Result<Vec<&'static str>, StoreError> {
        let asked = batch.iter().flat_map(|key| [asked(key), cmd("PEXPIRETIME").arg(&key.name).to_owned()]);
        let mut found = self.shared.read_all("a key of the target", asked).await?.into_iter();
        let mut different = Vec::new();
        for key in batch {
            let (Some(held), Some(ends)) = (found.next(), found.next()) else { return Err(StoreError::unreadable("a key of the target")) };
            if !self.is_equal(&key, held, ends.parsed()?).await? {
                different.push(key);
            }
        }
        let kinds = different.iter().map(|key| key.kind).collect();
        if writes {
            // The pieces of a list follow each other.
            let (lists, others): (Vec<_>, Vec<_>) = different.into_iter().partition(|key| matches!(key.content, Content::List { .. }));
            stream::iter(others.into_iter().map(|key| self.write(key))).buffer_unordered(WRITES).try_collect::<Vec<_>>().await?;
            for list in lists {
                self.write(list).await?;
            }
        }
        Ok(kinds)
    }

    async fn is_equal(&self, key: &MovedKey, held: Reply, ends: i64) -> Result<bool, StoreError> {
        // -2: there is no such key; -1: it has no end.
        if ends == -2 {
            let is_over = key.expires_at.is_some_and(|end| end <= SystemClock.now().millis() + JUST_NOW_MS);
            return Ok(is_over);
        }
        if ends != key.expires_at.unwrap_or(-1) {
            return Ok(false);
        }
        if let Content::Queue(queue) = &key.content {
            let found = self.shared.call(&LOAD_QUEUE, vec![key.name.clone()], arguments![NOBODY]).await?;
            let Some(found) = found.optional_fields()? else { return Ok(false) };
            return Ok(found.rest().map(entry).collect::<Result<Vec<_>, StoreError>>()? == *queue);
        }
        let is_cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner).contains(&key.name);
        Ok(!is_cut && content_of(&key.content, held)? == key.content)
    }

    async fn write(&self, MovedKey { name, content, expires_at, .. }: MovedKey) -> Result<(), StoreError> {
        let (of_type, place, items) = match content {
            Content::Text(value) => ("string", 0, vec![value]),
            Content::Hash(fields) => ("hash", 0, fields.into_iter().flat_map(|(field, value)| [field, value]).collect()),
            Content::Sorted(members) => ("zset", 0, members.into_iter().flat_map(|(member, score)| [score.argument(), member]).collect()),
            Content::List { from, entries, .. } => {
                self.cut.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
                ("list", from, entries)
            }
            Content::Queue(queue) => {
                self.shared.call(&ERASE_RECORD, vec![name.clone()], arguments![""]).await?;
                for some in queue.chunks(ENTRIES) {
                    let entries =
                        some.iter().flat_map(|(entry, subject, origin)| arguments![entry.as_str(), subject.clone(), origin.as_str()]);
                    self.shared.call(&PUT_QUEUE, vec![name.clone()], entries.collect()).await?;
                }
                return self.shared.call(&ASSIGN_QUEUE, vec![name], arguments![NOBODY]).await.map(drop);
            }
        };
        let mut args = arguments![of_type, expires_at, place];
        args.extend(items);
        self.shared.call(&PUT_MOVED, vec![name], args).await.map(drop)
    }

    /// Removes names that the source does not have; how many there are.
    pub(super) async fn remove_others(&self, names: &HashSet<Vec<u8>>, writes: bool) -> Result<u64, StoreError> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let mut others = 0;
        for server in 0.. {
            let mut cursor = 0_u64;
            loop {
                let command = cmd("SCAN").arg(cursor).arg("COUNT").arg(NAMES).to_owned();
                let Some(found) = self.shared.link.ask_server(server, command).await? else { return Ok(others) };
                let mut found = Reply::new("a scan", found).fields()?;
                cursor = found.parsed()?;
                for name in found.value()?.fields()?.all(Some)? {
                    if names.contains(&name) || name == keys::moving() {
                        continue;
                    }
                    others += self.shared.read("a key of the target", cmd("EXISTS").arg(&name)).await?.parsed::<u64>()?;
                    if writes {
                        self.shared.call(&ERASE_RECORD, vec![name], arguments![""]).await?;
                    }
                }
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(others)
    }
}

/// What reads a key.
pub(super) fn asked(key: &MovedKey) -> Cmd {
    let name = &key.name;
    match &key.content {
        Content::Text(_) => cmd("GET").arg(name).to_owned(),
        Content::Hash(_) => cmd("HGETALL").arg(name).to_owned(),
        Content::Sorted(_) => cmd("ZRANGE").arg(name).arg(0).arg(-1).arg("WITHSCORES").to_owned(),
        Content::List { from, entries, .. } => cmd("LRANGE").arg(name).arg(*from).arg(from + entries.len() as u64).to_owned(),
        Content::Queue(_) => cmd("EXISTS").arg(name).to_owned(),
    }
}

/// What a key holds, as far as it was asked for; a queue by its entries.
pub(super) fn content_of(like: &Content, held: Reply) -> Result<Content, StoreError> {
    Ok(match like {
        Content::Text(_) => Content::Text(held.bytes()?.unwrap_or_default()),
        Content::Hash(_) => Content::Hash(pairs(held)?),
        Content::Sorted(_) => {
            let scored = pairs(held)?.into_iter().map(|(member, score)| {
                let score = std::str::from_utf8(&score).ok().and_then(|score| score.parse().ok());
                score.map(|score| (member, score)).ok_or_else(|| StoreError::unreadable("a key of the target"))
            });
            Content::Sorted(scored.collect::<Result<_, _>>()?)
        }
        Content::List { from, entries, is_last } => {
            let mut held = held.fields()?.all(Some)?;
            // One entry more is asked for where the list ends.
            if !is_last {
                held.truncate(entries.len());
            }
            Content::List { from: *from, entries: held, is_last: *is_last }
        }
        Content::Queue(_) => Content::Queue(held.fields()?.rest().map(entry).collect::<Result<_, _>>()?),
    })
}

fn size(content: &Content) -> usize {
    match content {
        Content::Text(value) => value.len(),
        Content::Hash(fields) => fields.values().map(Vec::len).sum(),
        Content::Sorted(members) => members.keys().map(Vec::len).sum(),
        Content::List { entries, .. } => entries.iter().map(Vec::len).sum(),
        Content::Queue(queue) => queue.len() * 64,
    }
}

/// A reply of fields and values, or of members and scores.
pub(super) fn pairs(held: Reply) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, StoreError> {
    let mut pairs = BTreeMap::new();
    let mut rest = held.fields()?.rest();
    while let (Some(field), Some(value)) = (rest.next(), rest.next()) {
        pairs.insert(field.bytes()?.unwrap_or_default(), value.bytes()?.unwrap_or_default());
    }
    Ok(pairs)
}

fn entry(found: Reply) -> Result<(String, Vec<u8>, String), StoreError> {
    let mut found = found.fields()?;
    let id = found.text()?;
    let (mut subject, mut origin) = (Vec::new(), String::new());
    for (field, value) in found.value()?.fields()?.pairs()? {
        match field.as_slice() {
            b"t" => subject = value,
            _ => origin = String::from_utf8(value).map_err(|_| StoreError::unreadable("an entry of the outbox"))?,
        }
    }
    Ok((id, subject, origin))
}
