//! The schema of the servers: the number at which a node works, and finishing the upgrade to this release's schema.
//!
//! `{canary}schema` has the number. A node reads it on each new connection, with each heartbeat and at each health
//! check. It opens servers of its own number and of the one before, where it works as a node of the release before
//! (`Schema::at`), so the two run side by side and a rollback is possible. [`Shared::finish_upgrade`] checks that every
//! node with a heartbeat knows the new number, raises it, waits until all work at it, and runs the steps while they
//! serve; "28 from 27" means that the steps are unfinished.
//!
//! The race is a node that has not read the new number. Each batch states its node's number. The script compares it
//! with the current number in the same step, and applies nothing of a lower one. The node then reads the number, and
//! sends the batch in the right form or refuses everything. On a cluster each partition has a copy of the number for
//! this. A key outside partitions has none in its slot: a node that was frozen during the change-over can still write
//! one such record in the earlier form, which this release reads as well.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::cmd;
use sakshi_domain::ids::Partition;
use tokio::time::sleep;

use super::arguments::arguments;
use super::link::failure::Failure;
use super::nodes::heartbeats::LEFT;
use super::reply::Reply;
use super::script::KEEP_MARK;
use super::shared::Shared;
use super::{NodeId, keys};
use crate::engine::redis::RedisEngine;
use crate::engine::{Batch, Engine as _, Guard, Place, Query, ScanFrom};
use crate::error::StoreError;
use crate::schema::Rewrite;
use crate::{SCHEMA, Schema};

const WHAT: &str = "the number of the schema";
/// Keys processed at once.
const KEYS: usize = 200;
/// Time limit of a walk in one call; the next one continues.
const WALK: Duration = Duration::from_secs(5);
/// Time to wait for nodes to work at a new number: they read it with every heartbeat.
const CHANGE_OVER: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The number of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) number: u32,
    /// The number before, while its step is unfinished.
    pub(crate) from: Option<u32>,
}

impl FromStr for Standing {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(" from ") {
            Some((number, from)) => Ok(Self { number: number.parse()?, from: Some(from.parse()?) }),
            None => Ok(Self { number: text.parse()?, from: None }),
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(from) => write!(f, "{} from {from}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

/// The number at which this node works, or the reason why it works at none.
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
        Self::of(&SCHEMA)
    }
}

impl Level {
    pub(crate) const fn of(schema: &'static Schema) -> Self {
        Self { schema, number: AtomicU32::new(0), is_refused: AtomicBool::new(false), refusal: Mutex::new(None) }
    }

    pub(crate) const fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// Returns the number, or this release's before any was read.
    pub(crate) fn number(&self) -> u32 {
        match self.number.load(Ordering::Acquire) {
            0 => self.schema.number(),
            number => number,
        }
    }

    /// Works at the number of the servers from now on, or at none. Servers without a number are new, or have lost it.
    pub(crate) fn follow(&self, standing: Option<Standing>) {
        let Some(standing) = standing else { return };
        let refusal = self.refuse(standing).err();
        self.is_refused.store(refusal.is_some(), Ordering::Release);
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal.map(|error| error.to_string());
        self.number.store(standing.number, Ordering::Release);
    }

    fn refuse(&self, standing: Standing) -> Result<(), StoreError> {
        let known = self.schema.number();
        self.schema.check(standing.number)?;
        let is_next = standing.number + 1 == known;
        if standing.number == known || (is_next && standing.from.is_none()) {
            return Ok(());
        }
        let found = self.schema.in_words(standing.number);
        Err(StoreError::OtherSchema(match standing.from {
            Some(_) if is_next => {
                format!(
                    "the store is being upgraded to {found}: run `sakshi admin finish-upgrade` of that release to its \
                        end first"
                )
            }
            _ => format!(
                "the store has {found}, and this release, with schema {known}, follows a later one: upgrade to that \
                    one first"
            ),
        }))
    }

    /// Refuses everything on servers of another release.
    pub(crate) fn admit(&self) -> Result<(), Failure> {
        if !self.is_refused.load(Ordering::Acquire) {
            return Ok(());
        }
        self.refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .map_or(Ok(()), |why| Err(Failure::OtherSchema(why)))
    }

    /// Does the same for a caller.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.admit().map_err(Failure::into_error)
    }

    /// Returns the numbers that this node knows and works at.
    pub(crate) fn told(&self) -> String {
        format!("{} {}", self.schema.number(), self.number())
    }
}

/// The outcome of one call that finishes an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// The number of this release.
    pub schema: u32,
    /// The state.
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
    /// These nodes run an earlier release; nothing was changed.
    Behind(Vec<NodeId>),
    /// The steps are running: call again.
    Walking,
    /// Finished by this call.
    Finished,
}

/// The position of a walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    rewrite: usize,
    from: ScanFrom,
    looked_at: u64,
    changed: u64,
}

impl Shared {
    pub(crate) fn level(&self) -> &Level {
        &self.link.loss_guard().level
    }

    /// Reads the number, and adopts it.
    pub(crate) async fn read_schema(&self) -> Result<Option<Standing>, StoreError> {
        let found = self.send_always(vec![cmd("GET").arg(keys::schema()).to_owned()]).await?;
        let found =
            found.into_iter().next().map(|value| Reply::new(WHAT, value).optional_parsed()).transpose()?.flatten();
        self.level().follow(found);
        Ok(found)
    }

    /// Checks the number of a store; `None` for servers without one.
    ///
    /// # Errors
    /// [`StoreError::OtherSchema`].
    pub(crate) async fn check_schema(&self) -> Result<Option<Standing>, StoreError> {
        // The canary is written after the number, so it is read before.
        let canary = self.read("the canary", cmd("EXISTS").arg(keys::canary())).await?.succeeded()?;
        let found = self.read_schema().await?;
        self.level().check()?;
        match found {
            None if canary => self.level().schema.check(0).map(|()| None),
            found => Ok(found),
        }
    }

    /// Checks the number, and writes it for a new store.
    ///
    /// # Errors
    /// [`StoreError::OtherSchema`].
    pub(crate) async fn ensure_schema(&self) -> Result<(), StoreError> {
        while self.check_schema().await?.is_none() {
            let fresh = Standing { number: self.level().schema.number(), from: None };
            self.replace_schema(keys::schema(), "", fresh).await?;
        }
        Ok(())
    }

    /// Refuses servers of an earlier number, and those with unfinished steps.
    ///
    /// # Errors
    /// [`StoreError::OtherSchema`].
    pub(crate) async fn require_own_schema(&self) -> Result<(), StoreError> {
        let number = self.level().schema.number();
        match self.check_schema().await? {
            Some(standing) if standing != (Standing { number, from: None }) => Err(StoreError::OtherSchema(format!(
                "the store has schema {standing}, and this release has {number}: run `sakshi admin finish-upgrade` \
                    first"
            ))),
            _ => Ok(()),
        }
    }

    async fn replace_schema(&self, key: Vec<u8>, found: &str, fresh: Standing) -> Result<bool, StoreError> {
        self.call(&KEEP_MARK, vec![key], arguments![found, fresh.to_string()]).await?.succeeded()
    }

    /// Returns the key that a batch on this place is compared with.
    pub(crate) fn schema_beside(&self, place: Place) -> Option<Vec<u8>> {
        match place {
            _ if !self.link.is_cluster() => Some(keys::schema()),
            Place::Partition(partition) => Some(keys::schema_in_partition(partition)),
            Place::Alone => None,
        }
    }

    /// Returns the nodes with a heartbeat whose numbers, known and current, are not as required.
    async fn nodes_that_lack(&self, is_right: impl Fn(u32, u32) -> bool) -> Result<Vec<NodeId>, StoreError> {
        let beats = self.heartbeat(false).await?;
        let told =
            self.read("the schemas of nodes", cmd("HGETALL").arg(keys::node_schemas())).await?.fields()?.pairs()?;
        let numbers = |node: NodeId| {
            let (_, told) = told.iter().find(|(name, _)| NodeId::from_bytes(name) == Some(node))?;
            let (knows, works_at) = std::str::from_utf8(told).ok()?.split_once(' ')?;
            Some((knows.parse().ok()?, works_at.parse().ok()?))
        };
        let live = beats.into_iter().filter(|(_, beat)| beat != LEFT).map(|(node, _)| node);
        Ok(live.filter(|node| !numbers(*node).is_some_and(|(knows, works_at)| is_right(knows, works_at))).collect())
    }

    /// Finishes the upgrade to this release's schema, as far as one call goes: [`FinishState::Walking`] asks for
    /// another. Safe to repeat, also on another node and after this one was killed.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn finish_upgrade(&self, engine: &RedisEngine) -> Result<Finish, StoreError> {
        let mut walk = self.walk.lock().await;
        let number = self.level().schema.number();
        let as_it_is =
            |state, walk: &Walk| Finish { schema: number, state, looked_at: walk.looked_at, changed: walk.changed };
        let found = self.check_schema().await?.ok_or_else(|| StoreError::unreadable(WHAT))?;
        let (fresh, done) = (Standing { number, from: Some(number - 1) }, Standing { number, from: None });
        if found == done {
            return Ok(as_it_is(FinishState::Nothing, &Walk::default()));
        }
        if found.number < number {
            let behind = self.nodes_that_lack(|knows, _| knows >= number).await?;
            if !behind.is_empty() {
                return Ok(as_it_is(FinishState::Behind(behind), &Walk::default()));
            }
            *walk = Walk::default();
            self.replace_schema(keys::schema(), &found.to_string(), fresh).await?;
        }
        self.read_schema().await?;
        self.copy_schema(done).await?;
        let begun = Instant::now();
        loop {
            let behind = self.nodes_that_lack(|_, works_at| works_at == number).await?;
            if behind.is_empty() {
                break;
            }
            if begun.elapsed() > CHANGE_OVER {
                return Ok(as_it_is(FinishState::Behind(behind), &walk));
            }
            sleep(LOOK_EVERY).await;
        }
        if !self.walk_on(engine, &mut walk).await? {
            return Ok(as_it_is(FinishState::Walking, &walk));
        }
        self.replace_schema(keys::schema(), &fresh.to_string(), done).await?;
        let finish = as_it_is(FinishState::Finished, &walk);
        *walk = Walk::default();
        Ok(finish)
    }

    /// Writes the number beside the records of each partition of a cluster.
    async fn copy_schema(&self, fresh: Standing) -> Result<(), StoreError> {
        let partitions = Partition::all().filter(|_| self.link.is_cluster());
        for key in partitions.map(keys::schema_in_partition) {
            let found = self.read(WHAT, cmd("GET").arg(&key)).await?.text()?.unwrap_or_default();
            if found != fresh.to_string() {
                self.replace_schema(key, &found, fresh).await?;
            }
        }
        Ok(())
    }

    /// Continues the last step from a position. Returns true at its end.
    async fn walk_on(&self, engine: &RedisEngine, walk: &mut Walk) -> Result<bool, StoreError> {
        let schema = self.level().schema;
        let rewrites = schema.steps_from(schema.number() - 1).iter().flat_map(|step| step.rewrites);
        let begun = Instant::now();
        for (place, rewrite) in rewrites.enumerate().skip(walk.rewrite) {
            walk.rewrite = place;
            loop {
                if begun.elapsed() > WALK {
                    return Ok(false);
                }
                let found = engine.scan(rewrite.table, walk.from.clone(), KEYS).await?;
                walk.looked_at += found.keys.len() as u64;
                walk.changed += self.rewrite(engine, rewrite, found.keys).await?;
                walk.from = found.next.clone().unwrap_or_default();
                if found.next.is_none() {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Changes these records, each at the version that was read; one that has changed meanwhile is read again.
    async fn rewrite(
        &self,
        engine: &RedisEngine,
        rewrite: &Rewrite,
        mut keys: Vec<crate::engine::Key>,
    ) -> Result<u64, StoreError> {
        let mut changed = 0;
        while !keys.is_empty() {
            let mut found = engine.read(keys.iter().cloned().map(Query::Record).collect()).await?;
            let mut batches = Vec::new();
            for key in keys {
                let Some(record) = found.record()? else { continue };
                let ops = (rewrite.change)(&self.vault, &key, &record)?;
                if !ops.is_empty() {
                    batches.push((Batch::new(vec![Guard::Version(key.clone(), record.version)], ops), key));
                }
            }
            let (batches, of): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
            let applied = engine.commit(batches).await?;
            let is_done: Vec<bool> =
                applied.iter().map(|applied| matches!(applied, crate::engine::Applied::Done { .. })).collect();
            changed += is_done.iter().filter(|is_done| **is_done).count() as u64;
            keys = of.into_iter().zip(is_done).filter(|(_, is_done)| !is_done).map(|(key, _)| key).collect();
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_written() {
        for text in ["27", "28 from 27"] {
            assert_eq!(text.parse::<Standing>().unwrap().to_string(), text);
        }
        assert!("".parse::<Standing>().is_err() && "27 from".parse::<Standing>().is_err());
    }

    #[test]
    fn a_node_works_at_the_number_of_the_servers_or_at_none() {
        let level = Level::default();
        let number = SCHEMA.number();
        let follow = |number, from| {
            level.follow(Some(Standing { number, from }));
            level.check().map(|()| level.number())
        };
        assert_eq!(level.number(), number, "before anything was read");
        assert_eq!(follow(number, None), Ok(number));
        assert_eq!(follow(number, Some(number - 1)), Ok(number), "the walk is not at its end");
        assert!(matches!(follow(number + 1, None), Err(StoreError::OtherSchema(_))));
        assert!(matches!(follow(crate::FIRST - 1, None), Err(StoreError::OtherSchema(_))));
        assert_eq!(follow(number, None), Ok(number), "the store was put back");
    }
}
