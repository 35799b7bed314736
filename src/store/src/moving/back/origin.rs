//! Redis as the origin of a move: its marks, its names by kind, and what they hold.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use redis::{Cmd, cmd};
use tokio::time::sleep;

use super::super::target::{asked, content_of, pairs};
use super::super::{Content, MovedKey};
use super::file::NewStore;
use super::same::{Settled, comparable};
use crate::error::StoreError;
use crate::redis::arguments::arguments;
use crate::redis::nodes::membership::HEARTBEAT_INTERVAL;
use crate::redis::reply::Reply;
use crate::redis::script::{ERASE_RECORD, KEEP_MARK};
use crate::redis::shared::Shared;
use crate::redis::{RedisOptions, keys, unwatched};
use crate::{Ownership, canary};

/// The mark that servers keep whose store was moved into a file.
pub(crate) const MOVED_AWAY: &str = "into a file";
/// Keys that are read at a time.
pub(super) const BATCH: usize = 500;
/// Entries of a list that are read at a time; each may hold a photo.
const ENTRIES: usize = 200;
/// Names that a server is asked for at a time.
const NAMES: u32 = 1_000;
const WHAT: &str = "a key of the origin";

/// The kinds of keys that belong to nodes that run, and those that come with others; the marks of a store that may lose data
/// stay as well.
const NOT_MOVED: [&str; 5] = ["o", "flight", "{nodes}beats", "probe", "moving"];

/// The servers that are moved.
pub(super) struct Origin {
    pub(super) shared: Arc<Shared>,
}

/// Names by kind, each once.
#[derive(Default)]
pub(super) struct Names(HashMap<String, HashSet<Vec<u8>>>);

impl Names {
    /// In pieces.
    pub(super) fn of(&self, kind: &str) -> Vec<Vec<Vec<u8>>> {
        let names: Vec<Vec<u8>> = self.0.get(kind).into_iter().flatten().cloned().collect();
        names.chunks(BATCH).map(<[Vec<u8>]>::to_vec).collect()
    }
}

/// The kind of a key, as the table of keys has it without the partition, and the rest of its name.
pub(super) fn parts(name: &[u8]) -> (&str, &str) {
    let name = std::str::from_utf8(name).unwrap_or_default();
    let name = if name.starts_with("{p") { name.get(5..).unwrap_or_default() } else { name };
    name.split_once(':').unwrap_or((name, ""))
}

/// The fields of a hash.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: Vec<u8>,
    fields: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Record {
    pub(super) fn bytes(&self, field: &str) -> Option<&[u8]> {
        self.fields.get(field.as_bytes()).map(Vec::as_slice)
    }

    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.bytes(field).and_then(|value| std::str::from_utf8(value).ok())
    }

    pub(super) fn number(&self, field: &str) -> Option<i64> {
        self.text(field)?.parse().ok()
    }

    /// The id that its name ends with.
    pub(super) fn id<T: FromStr>(&self) -> Result<T, StoreError> {
        parts(&self.name).1.parse().map_err(|_| StoreError::unreadable("the name of a key"))
    }

    /// The fields whose names begin with a letter that the rest of the name follows.
    pub(super) fn named(&self, letter: u8) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().filter_map(move |(field, value)| match field.split_first() {
            Some((first, name)) if *first == letter && !name.is_empty() => Some((name, value.as_slice())),
            _ => None,
        })
    }
}

impl Origin {
    /// Connects to servers that hold a store which no node has open, and leaves the mark.
    pub(super) async fn open(options: RedisOptions) -> Result<Self, StoreError> {
        let ownership = options.ownership.clone();
        let origin = Self { shared: unwatched(options) };
        origin.shared.check_servers().await?;
        origin.shared.compare().await?;
        origin.check(&ownership).await?;
        let known = origin.read(cmd("GET").arg(keys::moving())).await?.text()?;
        if known.as_deref().is_some_and(|known| known != MOVED_AWAY) {
            return Err(StoreError::unavailable("a store is being moved into these servers; finish that first"));
        }
        // No node starts from here on.
        origin.shared.call(&KEEP_MARK, vec![keys::moving()], arguments![known.clone().unwrap_or_default(), MOVED_AWAY]).await?;
        let before = origin.read(&beats()).await?;
        sleep(HEARTBEAT_INTERVAL * 3).await;
        if pairs(before)? != pairs(origin.read(&beats()).await?)? {
            if known.is_none() {
                origin.shared.call(&ERASE_RECORD, vec![keys::moving()], arguments![""]).await?;
            }
            return Err(StoreError::InUse("these servers".to_owned()));
        }
        Ok(origin)
    }

    async fn check(&self, ownership: &Ownership) -> Result<(), StoreError> {
        let kept = self.read(cmd("GET").arg(keys::canary())).await?.bytes()?;
        if kept.is_none() {
            return Err(StoreError::unavailable("there is no store on these servers"));
        }
        canary::check(&self.shared.vault, kept.as_deref())?;
        self.shared.check_installation(ownership).await
    }

    /// What tells this store from others, and what operators have chosen.
    pub(super) async fn marks(&self, store: &NewStore) -> Result<(), StoreError> {
        let canary = self.read(cmd("GET").arg(keys::canary())).await?.bytes()?;
        let made_under = self.read(cmd("GET").arg(keys::installation())).await?.text()?;
        let chosen = self.read(cmd("GET").arg(keys::intent_key())).await?.text()?;
        store
            .write(move |rows| {
                rows.put("UPDATE canary SET box = ?1", [canary])?;
                rows.put("UPDATE installation SET made_under = ?1", [made_under])?;
                let Some((since, kid)) = chosen.as_deref().and_then(|chosen| chosen.split_once(' ')) else { return Ok(()) };
                rows.put("INSERT INTO intent_key (row, since, kid) VALUES (1, ?1, ?2)", [since, kid])
            })
            .await
    }

    /// Every name.
    pub(super) async fn names(&self) -> Result<Names, StoreError> {
        let mut names = Names::default();
        for server in 0.. {
            let mut cursor = 0_u64;
            loop {
                let command = cmd("SCAN").arg(cursor).arg("COUNT").arg(NAMES).to_owned();
                let Some(found) = self.shared.link.ask_server(server, command).await? else { return Ok(names) };
                let mut found = Reply::new("a scan", found).fields()?;
                cursor = found.parsed()?;
                for name in found.value()?.fields()?.all(Some)? {
                    let kind = parts(&name).0;
                    match names.0.get_mut(kind) {
                        Some(known) => _ = known.insert(name),
                        None => _ = names.0.insert(kind.to_owned(), HashSet::from([name])),
                    }
                }
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(names)
    }

    pub(super) async fn read(&self, command: &Cmd) -> Result<Reply, StoreError> {
        self.shared.read(WHAT, command).await
    }

    pub(super) async fn read_all(&self, commands: impl Iterator<Item = Cmd>) -> Result<Vec<Reply>, StoreError> {
        self.shared.read_all(WHAT, commands).await
    }

    /// Hashes; one that is gone is left out.
    pub(super) async fn hashes(&self, names: Vec<Vec<u8>>) -> Result<Vec<Record>, StoreError> {
        let found = self.read_all(names.iter().map(|name| cmd("HGETALL").arg(name).to_owned())).await?;
        let records = names.into_iter().zip(found).map(|(name, found)| Ok(Record { name, fields: pairs(found)? }));
        records.filter(|record: &Result<_, _>| record.as_ref().map_or(true, |record| !record.fields.is_empty())).collect()
    }

    /// The members of a sorted set with their scores, in order.
    pub(super) async fn members(&self, name: &[u8]) -> Result<Vec<(Vec<u8>, i64)>, StoreError> {
        let mut rest = self.read(cmd("ZRANGE").arg(name).arg(0).arg(-1).arg("WITHSCORES")).await?.fields()?.rest();
        let mut members = Vec::new();
        while let (Some(member), Some(score)) = (rest.next(), rest.next()) {
            members.push((member.bytes()?.unwrap_or_default(), score.parsed()?));
        }
        Ok(members)
    }

    /// Some entries of a list, from a place on; none behind its end.
    pub(super) async fn entries(&self, name: &[u8], from: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.read(cmd("LRANGE").arg(name).arg(from).arg(from + ENTRIES - 1)).await?.fields()?.all(Some)
    }

    /// The kinds of the keys that the server does not hold as they are.
    pub(super) async fn different(&self, batch: Vec<MovedKey>, settled: &Settled) -> Result<Vec<&'static str>, StoreError> {
        let asked = batch.iter().map(|key| match key.content {
            Content::Queue(_) => cmd("XRANGE").arg(&key.name).arg("-").arg("+").to_owned(),
            _ => asked(key),
        });
        let found = self.read_all(asked).await?;
        let mut different = Vec::new();
        for (key, held) in batch.into_iter().zip(found) {
            let held = content_of(&key.content, held)?;
            if comparable(&key.name, held, Some(settled)) != comparable(&key.name, key.content, None) {
                different.push(key.kind);
            }
        }
        Ok(different)
    }

    /// The kinds of the keys that are on the servers and not in the new store.
    pub(super) async fn left_behind(&self, names: Names, told: &HashSet<Vec<u8>>) -> Result<BTreeSet<String>, StoreError> {
        let mut left = BTreeSet::new();
        for (kind, names) in names.0 {
            if NOT_MOVED.contains(&kind.as_str()) || kind.starts_with("{canary}") {
                continue;
            }
            for name in names.iter().filter(|name| !told.contains(*name)) {
                let is_empty = match kind.as_str() {
                    "out" => self.read(cmd("XLEN").arg(name)).await?.parsed::<u64>()? == 0,
                    // Where the events of an app would be that has none.
                    "a" => !self.read(cmd("HEXISTS").arg(name).arg("r")).await?.succeeded()?,
                    // The settings decide.
                    "intent-key" => self.read(cmd("GET").arg(name)).await?.text()?.is_none_or(|chosen| !chosen.contains(' ')),
                    // It may have ended meanwhile.
                    _ => self.read(cmd("EXISTS").arg(name)).await?.parsed::<u64>()? == 0,
                };
                if !is_empty {
                    left.insert(kind.clone());
                }
            }
        }
        Ok(left)
    }
}

fn beats() -> Cmd {
    cmd("ZRANGE").arg(keys::beats()).arg(0).arg(-1).arg("WITHSCORES").to_owned()
}
