//! The servers of a move: their marks and their keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use redis::cmd;
use sakshi_domain::ids::Partition;
use tokio::time::sleep;

use super::MOVED_AWAY;
use crate::canary;
use crate::engine::redis::{RedisEngine, parse_name_in};
use crate::error::StoreError;
use crate::records::ALL;
use crate::redis::nodes::membership::HEARTBEAT_INTERVAL;
use crate::redis::reply::{Pair, Reply};
use crate::redis::shared::Shared;
use crate::redis::{RedisOptions, build_shared, keys};

/// Maximum number of calls in flight: each key outside partitions is one.
const CALLS_MAX: usize = 16_384;
/// Number of names requested from a server at a time.
const NAMES_PER_SCAN: u32 = 1_000;
/// Maximum number of reported prefixes.
const PREFIXES_REPORTED_MAX: usize = 10;
/// Name of the reply with the mark, for errors.
const MARK_REPLY: &str = "the mark of a move";

/// Redis servers that no node uses, as source or target of a move.
pub(super) struct Servers {
    shared: Arc<Shared>,
    pub(super) engine: RedisEngine,
    /// True if this run has set the permanent mark; false for the mark of an earlier run.
    has_marked: bool,
}

/// Keys of the servers that are not part of a store.
#[derive(Debug, Default)]
pub(super) struct ForeignKeys {
    /// Number of foreign keys.
    pub(super) keys: u64,
    /// Prefixes of some of their names.
    pub(super) prefixes: BTreeSet<String>,
}

/// Treatment of the keys that are not part of a store.
#[derive(Clone, Copy)]
pub(super) enum ForeignKeyAction {
    Remove,
    Count,
}

impl Servers {
    /// Connects to servers without the background tasks of a node.
    fn connect(options: RedisOptions) -> Self {
        let shared = build_shared(RedisOptions { max_waiting: CALLS_MAX, ..options });
        Self { engine: RedisEngine::new(Arc::clone(&shared)), shared, has_marked: false }
    }

    /// Connects to servers that are empty or have this mark, which excludes nodes, and sets the mark. The servers then
    /// hold a store with the encryption keys and the installation of the options.
    pub(super) async fn open_target(options: RedisOptions, mark: &str) -> Result<Self, StoreError> {
        let servers = Self::connect(options);
        let shared = &servers.shared;
        shared.check_servers().await?;
        let refusal = || StoreError::unavailable("another store is being moved into the target");
        match servers.mark().await? {
            Some(current) if current == mark => {}
            Some(_) => return Err(refusal()),
            None => {
                for server in 0.. {
                    let Some(size) = shared.link.ask_server(server, cmd("DBSIZE")).await? else { break };
                    if Reply::new("the number of keys", size).parsed::<u64>()? > 0 {
                        return Err(StoreError::unavailable("the target is not empty, and no move into it has begun"));
                    }
                }
                servers.change_mark("", mark).await?;
                // Another process may have been faster.
                if servers.mark().await?.as_deref() != Some(mark) {
                    return Err(refusal());
                }
            }
        }
        shared.check_installation(&shared.ownership).await?;
        shared.ensure_schema().await?;
        shared.require_own_schema().await?;
        shared.check_keys().await?;
        shared.ensure_installation(&shared.ownership).await?;
        shared.link.loss_guard().record_opening();
        Ok(servers)
    }

    /// Removes the mark, so that nodes can open the servers.
    pub(super) async fn finish(&self, mark: &str) -> Result<(), StoreError> {
        self.change_mark(mark, "").await?;
        self.shared.check_not_moving().await
    }

    /// Connects to servers with a store that no node has open, and sets a permanent mark. A refusal leaves no new one.
    pub(super) async fn open_origin(options: RedisOptions) -> Result<Self, StoreError> {
        let mut servers = Self::connect(options);
        let shared = &servers.shared;
        shared.check_servers().await?;
        shared.check_for_loss().await?;
        let stored = shared.read("the canary", cmd("GET").arg(keys::canary())).await?.bytes()?;
        if stored.is_none() {
            return Err(StoreError::unavailable("there is no store on these servers"));
        }
        canary::check(&shared.vault, stored.as_deref())?;
        shared.check_installation(&shared.ownership).await?;
        shared.require_own_schema().await?;
        let known = servers.mark().await?;
        if known.as_deref().is_some_and(|known| known != MOVED_AWAY) {
            return Err(StoreError::unavailable("a store is being moved into these servers; finish that first"));
        }
        // From here on, no node can start.
        servers.change_mark(known.as_deref().unwrap_or_default(), MOVED_AWAY).await?;
        servers.has_marked = known.is_none();
        if let Err(refusal) = servers.require_no_node().await {
            servers.unmark().await?;
            return Err(refusal);
        }
        servers.shared.link.loss_guard().record_opening();
        Ok(servers)
    }

    /// Refuses servers that a node has open.
    async fn require_no_node(&self) -> Result<(), StoreError> {
        let before = self.heartbeats().await?;
        sleep(HEARTBEAT_INTERVAL * 3).await;
        if before == self.heartbeats().await? { Ok(()) } else { Err(StoreError::InUse("these servers".to_owned())) }
    }

    /// Removes the permanent mark of this run, which has moved nothing, so that nodes can start again. The mark of an
    /// earlier run stays: that one may have finished.
    pub(super) async fn unmark(&self) -> Result<(), StoreError> {
        if self.has_marked { self.change_mark(MOVED_AWAY, "").await } else { Ok(()) }
    }

    /// Returns the mark that excludes nodes, if the servers have one.
    async fn mark(&self) -> Result<Option<String>, StoreError> {
        self.shared.read(MARK_REPLY, cmd("GET").arg(keys::moving())).await?.text()
    }

    /// Replaces a mark by another; an empty text means no mark.
    async fn change_mark(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.shared.replace_mark(keys::moving(), from, to).await.map(drop)
    }

    /// Returns the ids of the nodes with their last heartbeats.
    async fn heartbeats(&self) -> Result<Vec<Pair>, StoreError> {
        let command = cmd("ZRANGE").arg(keys::heartbeats()).arg(0).arg(-1).arg("WITHSCORES").to_owned();
        self.shared.read("heartbeats", &command).await?.fields()?.pairs()
    }

    /// Finds the keys that are not part of a store, and removes or only counts them.
    pub(super) async fn find_foreign_keys(&self, action: ForeignKeyAction) -> Result<ForeignKeys, StoreError> {
        let command_for_key = match action {
            ForeignKeyAction::Remove => "DEL",
            ForeignKeyAction::Count => "EXISTS",
        };
        let keys_of_store = [
            keys::own_marks(),
            keys::starts().into(),
            Partition::all().map(keys::schema_in_partition).collect(),
            keys::outside_record_slots(),
        ]
        .concat();
        let mut foreign_keys = ForeignKeys::default();
        for server in 0.. {
            let mut cursor = 0_u64;
            loop {
                let command = cmd("SCAN").arg(cursor).arg("COUNT").arg(NAMES_PER_SCAN).to_owned();
                let Some(reply) = self.shared.link.ask_server(server, command).await? else { return Ok(foreign_keys) };
                let mut reply = Reply::new("a scan", reply).fields()?;
                cursor = reply.parsed()?;
                let names = reply.value()?.fields()?.parse_all(Some)?;
                // Nodes that waited for replicas have left such keys, which expire within a minute.
                let is_of_store = |name: &Vec<u8>| {
                    parse_name_in(ALL, name).is_some()
                        || keys_of_store.contains(name)
                        || name.starts_with(keys::WAITED.as_bytes())
                };
                for name in names.into_iter().filter(|name| !is_of_store(name)) {
                    foreign_keys.keys +=
                        self.shared.read("a key", cmd(command_for_key).arg(&name)).await?.parsed::<u64>()?;
                    if foreign_keys.prefixes.len() < PREFIXES_REPORTED_MAX {
                        foreign_keys.prefixes.insert(prefix(&name));
                    }
                }
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(foreign_keys)
    }
}

/// Returns the prefix of a name, up to a colon.
fn prefix(name: &[u8]) -> String {
    let prefix = name.split(|byte| *byte == b':').next().unwrap_or_default();
    String::from_utf8_lossy(prefix).into_owned()
}
