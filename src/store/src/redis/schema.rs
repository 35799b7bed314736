//! The schema of the servers: the number at which a node works, and finishing the upgrade to this release's schema.
//!
//! `{canary}schema` has the number. A node reads it on each new connection, with each heartbeat and at each health
//! check. It opens servers of its own number and of the one before, where it works as a node of the release before
//! (`Schema::convert_batch`), so the two run side by side and a rollback is possible. [`Shared::finish_upgrade`] checks
//! that every node with a heartbeat knows the new number, raises it, waits until all work at it, and runs the steps
//! while they serve; "28 from 27" means that the steps are unfinished.
//!
//! A node that has not read the new number could still write in the earlier form. So each batch states its node's
//! number. The script compares it with the current number in the same step, and applies nothing of a lower one. The
//! node then reads the number, and sends the batch in the right form or refuses everything. On a cluster each partition
//! has a copy of the number for this. A key outside partitions has none in its slot: a node that was frozen during the
//! change-over can still write one such record in the earlier form. This release reads that form as well.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::cmd;
use sakshi_domain::ids::Partition;
use tokio::time::sleep;

use super::link::failure::Failure;
use super::nodes::heartbeats::LAST_HEARTBEAT;
use super::nodes::membership::Presence;
use super::reply::Reply;
use super::shared::Shared;
use super::{NodeId, keys};
use crate::engine::redis::RedisEngine;
use crate::engine::{Batch, Engine as _, Guard, Place, Query, ScanFrom};
use crate::error::StoreError;
use crate::schema::Rewrite;
use crate::{SCHEMA, Schema};

/// Name of the reply in errors.
const REPLY_NAME: &str = "the number of the schema";
/// Number of keys processed at once.
const KEYS_PER_ROUND: usize = 200;
/// Time limit of the walk over the records in one call; the next call continues it.
const WALK_TIME_MAX: Duration = Duration::from_secs(5);
/// Time to wait for nodes to work at a new number: they read it with every heartbeat.
const CHANGE_OVER_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between two looks at the numbers of the nodes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The schema number that the servers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredSchema {
    pub(crate) number: u32,
    /// The number before the upgrade, while its migration steps are unfinished.
    pub(crate) from: Option<u32>,
}

impl FromStr for StoredSchema {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(" from ") {
            Some((number, from)) => Ok(Self { number: number.parse()?, from: Some(from.parse()?) }),
            None => Ok(Self { number: text.parse()?, from: None }),
        }
    }
}

impl fmt::Display for StoredSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(from) => write!(f, "{} from {from}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

/// The schema number at which this node works, or the reason why it cannot work with the servers.
#[derive(Debug)]
pub(crate) struct Level {
    schema: &'static Schema,
    /// 0 until it is read.
    number: AtomicU32,
    is_refused: AtomicBool,
    refusal: Mutex<Option<String>>,
}

impl Default for Level {
    fn default() -> Self {
        Self::new(&SCHEMA)
    }
}

impl Level {
    /// Returns the level of a node that has not read the servers' number yet.
    pub(crate) const fn new(schema: &'static Schema) -> Self {
        Self { schema, number: AtomicU32::new(0), is_refused: AtomicBool::new(false), refusal: Mutex::new(None) }
    }

    pub(crate) const fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// Returns the current number; before any was read, this release's.
    pub(crate) fn number(&self) -> u32 {
        match self.number.load(Ordering::Acquire) {
            0 => self.schema.number(),
            number => number,
        }
    }

    /// Adopts the servers' number, or refuses every call if this release cannot work at it. Servers without a number
    /// are new, or have lost it.
    pub(crate) fn adopt(&self, stored: Option<StoredSchema>) {
        let Some(stored) = stored else { return };
        let refusal = self.check_stored(stored).err();
        self.is_refused.store(refusal.is_some(), Ordering::Release);
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal.map(|error| error.to_string());
        self.number.store(stored.number, Ordering::Release);
    }

    /// Checks that this release can work at the servers' number.
    fn check_stored(&self, stored: StoredSchema) -> Result<(), StoreError> {
        let known = self.schema.number();
        self.schema.check(stored.number)?;
        let is_next = stored.number + 1 == known;
        if stored.number == known || (is_next && stored.from.is_none()) {
            return Ok(());
        }
        let actual = self.schema.in_words(stored.number);
        Err(StoreError::OtherSchema(match stored.from {
            Some(_) if is_next => {
                format!(
                    "the store is being upgraded to {actual}: run `sakshi admin finish-upgrade` of that release to its \
                        end first"
                )
            }
            _ => format!(
                "the store has {actual}, and this release, with schema {known}, follows a later one: upgrade to that \
                    one first"
            ),
        }))
    }

    /// Refuses every call while this release cannot work at the servers' number.
    pub(crate) fn admit(&self) -> Result<(), Failure> {
        if !self.is_refused.load(Ordering::Acquire) {
            return Ok(());
        }
        self.refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .map_or(Ok(()), |reason| Err(Failure::OtherSchema(reason)))
    }

    /// Refuses calls as [`Level::admit`] does, with the error for a caller.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.admit().map_err(Failure::into_error)
    }

    /// Returns the newest number that this node knows and the current one, as text for its heartbeat.
    pub(crate) fn known_and_current(&self) -> String {
        format!("{} {}", self.schema.number(), self.number())
    }
}

/// The outcome of one call that finishes an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// The schema number of this release.
    pub schema: u32,
    /// The state of the upgrade.
    pub state: FinishState,
    /// Number of records processed so far.
    pub looked_at: u64,
    /// Number of records changed so far.
    pub changed: u64,
}

/// The state of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishState {
    /// Nothing to do: finished before, or no upgrade.
    Nothing,
    /// Nothing was changed, because these nodes run an earlier release.
    Behind(Vec<NodeId>),
    /// The steps are running: call again.
    Walking,
    /// This call has finished the upgrade.
    Finished,
}

/// The progress of the migration steps over the records.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Index of the current rewrite among those of all steps.
    rewrite_index: usize,
    /// The position in the records of its kind.
    from: ScanFrom,
    looked_at: u64,
    changed: u64,
}

impl Shared {
    pub(crate) fn level(&self) -> &Level {
        &self.link.loss_guard().level
    }

    /// Reads the number of the servers, and adopts it.
    pub(crate) async fn read_schema(&self) -> Result<Option<StoredSchema>, StoreError> {
        let replies = self.send_always(vec![cmd("GET").arg(keys::schema()).to_owned()]).await?;
        let stored = replies
            .into_iter()
            .next()
            .map(|value| Reply::new(REPLY_NAME, value).optional_parsed())
            .transpose()?
            .flatten();
        self.level().adopt(stored);
        Ok(stored)
    }

    /// Reads the number of the servers and checks that this release can work at it. Returns the number; `None` for new
    /// servers.
    ///
    /// # Errors
    /// [`StoreError::OtherSchema`] when this release cannot.
    pub(crate) async fn check_schema(&self) -> Result<Option<StoredSchema>, StoreError> {
        // The canary is written after the number. So it is read first: a node that sees a canary also sees a number.
        let has_canary = self.read("the canary", cmd("EXISTS").arg(keys::canary())).await?.succeeded()?;
        let stored = self.read_schema().await?;
        self.level().check()?;
        match stored {
            // A store without a number is from before the first release.
            None if has_canary => self.level().schema.check(0).map(|()| None),
            stored => Ok(stored),
        }
    }

    /// Checks the number of the servers; writes this release's to a new store.
    ///
    /// # Errors
    /// [`StoreError::OtherSchema`] when this release cannot work at the number.
    pub(crate) async fn ensure_schema(&self) -> Result<(), StoreError> {
        while self.check_schema().await?.is_none() {
            let own = StoredSchema { number: self.level().schema.number(), from: None };
            self.replace_schema(keys::schema(), "", own).await?;
        }
        Ok(())
    }

    /// Refuses servers with an earlier number or with unfinished migration steps.
    ///
    /// # Errors
    /// [`StoreError::OtherSchema`] for such servers.
    pub(crate) async fn require_own_schema(&self) -> Result<(), StoreError> {
        let number = self.level().schema.number();
        match self.check_schema().await? {
            Some(stored) if stored != (StoredSchema { number, from: None }) => Err(StoreError::OtherSchema(format!(
                "the store has schema {stored}, and this release has {number}: run `sakshi admin finish-upgrade` \
                    first"
            ))),
            _ => Ok(()),
        }
    }

    /// Replaces the number under a key, if it is still `before`; empty for no number. Returns true if it was.
    async fn replace_schema(&self, key: Vec<u8>, before: &str, after: StoredSchema) -> Result<bool, StoreError> {
        self.replace_mark(key, before, after.to_string()).await
    }

    /// Returns the key of the schema number with which the script compares a batch at this place. It is in the batch's
    /// slot; a key outside partitions has none on a cluster.
    pub(crate) fn schema_key_beside(&self, place: Place) -> Option<Vec<u8>> {
        match place {
            _ if !self.link.is_cluster() => Some(keys::schema()),
            Place::Partition(partition) => Some(keys::schema_in_partition(partition)),
            Place::Alone => None,
        }
    }

    /// Returns the live nodes that do not meet a condition on the newest number that a node knows and the number at
    /// which it works.
    async fn live_nodes_failing(&self, condition: impl Fn(u32, u32) -> bool) -> Result<Vec<NodeId>, StoreError> {
        let heartbeats = self.heartbeat(Presence::Alive).await?;
        let reported =
            self.read("the schemas of nodes", cmd("HGETALL").arg(keys::node_schemas())).await?.fields()?.pairs()?;
        let numbers = |node: NodeId| {
            let (_, reported) = reported.iter().find(|(name, _)| NodeId::from_bytes(name) == Some(node))?;
            let (knows, works_at) = std::str::from_utf8(reported).ok()?.split_once(' ')?;
            Some((knows.parse().ok()?, works_at.parse().ok()?))
        };
        let live = heartbeats.into_iter().filter(|(_, heartbeat)| heartbeat != LAST_HEARTBEAT).map(|(node, _)| node);
        Ok(live.filter(|node| !numbers(*node).is_some_and(|(knows, works_at)| condition(knows, works_at))).collect())
    }

    /// Continues the upgrade to this release's schema. [`FinishState::Walking`] asks for another call. The call is safe
    /// to repeat, also on another node and after this one was killed.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) async fn finish_upgrade(&self, engine: &RedisEngine) -> Result<Finish, StoreError> {
        let mut walk = self.walk.lock().await;
        let number = self.level().schema.number();
        let progress =
            |state, walk: &Walk| Finish { schema: number, state, looked_at: walk.looked_at, changed: walk.changed };
        let stored = self.check_schema().await?.ok_or_else(|| StoreError::unreadable(REPLY_NAME))?;
        let upgrading = StoredSchema { number, from: Some(number - 1) };
        let finished = StoredSchema { number, from: None };
        if stored == finished {
            return Ok(progress(FinishState::Nothing, &Walk::default()));
        }
        if stored.number < number {
            let behind = self.live_nodes_failing(|knows, _| knows >= number).await?;
            if !behind.is_empty() {
                return Ok(progress(FinishState::Behind(behind), &Walk::default()));
            }
            *walk = Walk::default();
            self.replace_schema(keys::schema(), &stored.to_string(), upgrading).await?;
        }
        self.read_schema().await?;
        self.copy_schema(finished).await?;
        // All nodes must work at the new number before the steps run.
        let started = Instant::now();
        loop {
            let behind = self.live_nodes_failing(|_, works_at| works_at == number).await?;
            if behind.is_empty() {
                break;
            }
            if started.elapsed() > CHANGE_OVER_TIMEOUT {
                return Ok(progress(FinishState::Behind(behind), &walk));
            }
            sleep(POLL_INTERVAL).await;
        }
        if !self.continue_walk(engine, &mut walk).await? {
            return Ok(progress(FinishState::Walking, &walk));
        }
        self.replace_schema(keys::schema(), &upgrading.to_string(), finished).await?;
        let outcome = progress(FinishState::Finished, &walk);
        *walk = Walk::default();
        Ok(outcome)
    }

    /// Writes the schema number beside the records of each partition, on a cluster.
    async fn copy_schema(&self, schema: StoredSchema) -> Result<(), StoreError> {
        let partitions = Partition::all().filter(|_| self.link.is_cluster());
        for key in partitions.map(keys::schema_in_partition) {
            let before = self.read(REPLY_NAME, cmd("GET").arg(&key)).await?.text()?.unwrap_or_default();
            if before != schema.to_string() {
                self.replace_schema(key, &before, schema).await?;
            }
        }
        Ok(())
    }

    /// Runs the migration steps from a position on, for at most [`WALK_TIME_MAX`]. Returns true when all are finished.
    async fn continue_walk(&self, engine: &RedisEngine, walk: &mut Walk) -> Result<bool, StoreError> {
        let schema = self.level().schema;
        let rewrites = schema.steps_from(schema.number() - 1).iter().flat_map(|step| step.rewrites);
        let started = Instant::now();
        for (index, rewrite) in rewrites.enumerate().skip(walk.rewrite_index) {
            walk.rewrite_index = index;
            loop {
                if started.elapsed() > WALK_TIME_MAX {
                    return Ok(false);
                }
                let scanned = engine.scan(rewrite.table, walk.from.clone(), KEYS_PER_ROUND).await?;
                walk.looked_at += scanned.keys.len() as u64;
                walk.changed += self.rewrite(engine, rewrite, scanned.keys).await?;
                walk.from = scanned.next.clone().unwrap_or_default();
                if scanned.next.is_none() {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Rewrites the records under these keys. Returns the number of changed ones. A record that another call has
    /// changed meanwhile is read and rewritten again.
    async fn rewrite(
        &self,
        engine: &RedisEngine,
        rewrite: &Rewrite,
        mut keys: Vec<crate::engine::Key>,
    ) -> Result<u64, StoreError> {
        let mut changed = 0;
        while !keys.is_empty() {
            let mut records = engine.read(keys.iter().cloned().map(Query::Record).collect()).await?;
            let mut batches = Vec::new();
            for key in keys {
                let Some(record) = records.record()? else { continue };
                let ops = (rewrite.change)(&self.vault, &key, &record)?;
                if !ops.is_empty() {
                    batches.push((Batch::new(vec![Guard::Version(key.clone(), record.version)], ops), key));
                }
            }
            let (batches, batch_keys): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
            let applied = engine.commit(batches).await?;
            let is_done: Vec<bool> =
                applied.iter().map(|applied| matches!(applied, crate::engine::Applied::Done { .. })).collect();
            changed += is_done.iter().filter(|is_done| **is_done).count() as u64;
            keys = batch_keys.into_iter().zip(is_done).filter(|(_, is_done)| !is_done).map(|(key, _)| key).collect();
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_number_parses_and_formats_unchanged() {
        for text in ["27", "28 from 27"] {
            assert_eq!(text.parse::<StoredSchema>().unwrap().to_string(), text);
        }
        assert!("".parse::<StoredSchema>().is_err() && "27 from".parse::<StoredSchema>().is_err());
    }

    #[test]
    fn a_node_works_at_the_number_of_the_servers_or_at_none() {
        let level = Level::default();
        let number = SCHEMA.number();
        let adopt = |number, from| {
            level.adopt(Some(StoredSchema { number, from }));
            level.check().map(|()| level.number())
        };
        assert_eq!(level.number(), number, "before anything was read");
        assert_eq!(adopt(number, None), Ok(number));
        assert_eq!(adopt(number, Some(number - 1)), Ok(number), "the walk is not at its end");
        assert!(matches!(adopt(number + 1, None), Err(StoreError::OtherSchema(_))));
        assert!(matches!(adopt(crate::FIRST - 1, None), Err(StoreError::OtherSchema(_))));
        assert_eq!(adopt(number, None), Ok(number), "the store was put back");
    }
}
