//! Detection of data loss on the servers: a restart that read only part of its file, an older file, a failover to a
//! lagging replica.
//!
//! Ledgers and the audit log only grow. A node remembers their latest lengths and compares them on each new connection,
//! before it sends anything else there. The store also keeps marks of its own beside the canary (a sealed text that
//! every store has), and every node reads them. Each node start is counted twice, by a script of several commands and
//! then by a single command, because a Redis can lose the first kind and keep the second (`deploy/redis/README.md`). A
//! node that finds less than before records the loss. From then on no node sends anything until the data is back or an
//! operator accepts the loss.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Value, cmd};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::limits::PARTITIONS;
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::link::failure::Failure;
use super::reply::Reply;
use super::schema::{Level, StoredSchema};
use super::script::MARK_STEP;
use super::shared::Shared;
use super::step::Step;
use crate::error::StoreError;
use crate::{Schema, canary};

/// Number of the audit log among the lists whose length a node remembers. The latest ledger of each partition has the
/// partition's number.
pub(crate) const AUDIT_LOG_NUMBER: u8 = PARTITIONS;

/// Name of the replies with the store's own marks, in errors.
const MARKS_REPLY: &str = "the marks of the store";

/// Detects that the servers lack data that they had before, and then refuses every call.
#[derive(Debug, Default)]
pub(crate) struct LossGuard {
    /// The schema number at which this node works, read with the store's other marks.
    pub(crate) level: Level,
    is_lost: AtomicBool,
    known: Mutex<Knowledge>,
    /// Lets one comparison run at a time. So no reply from before an operator accepted a loss is evaluated afterwards.
    comparing: tokio::sync::Mutex<()>,
}

/// This node's knowledge of the store's earlier content.
#[derive(Debug, Default)]
struct Knowledge {
    lost_since: Option<Timestamp>,
    has_opened_store: bool,
    /// Number of losses that operators have accepted; `None` before the store was read.
    acceptances: Option<u64>,
    /// The remembered lengths, by list number ([`AUDIT_LOG_NUMBER`] or a partition).
    lengths: BTreeMap<u8, KnownLength>,
}

/// The latest length of an append-only list that this node knows.
#[derive(Clone, Debug)]
struct KnownLength {
    list_key: Vec<u8>,
    length: u64,
    noted_at: Timestamp,
}

/// A comparison of the servers with this node's knowledge: of the store's own marks, and of these lists.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// Number of accepted losses when the lengths were copied. Another acceptance ends this comparison.
    acceptances: Option<u64>,
    lengths: Vec<KnownLength>,
    /// True if all lists with a known length are compared.
    is_complete: bool,
}

/// The servers that a comparison has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    /// One server, which may have only some of the lists.
    OneServer,
    AllServers,
}

/// The marks that the store keeps of itself, beside its records.
#[derive(Clone, Copy, Debug)]
struct OwnMarks {
    has_canary: bool,
    /// Number of node starts, counted by single commands.
    single_starts: u64,
    /// Number of node starts, counted just before by scripts of several commands.
    scripted_starts: u64,
    lost_since: Option<Timestamp>,
    acceptances: u64,
    schema: Option<StoredSchema>,
}

impl LossGuard {
    /// Returns a guard that knows nothing of the servers yet, for a node with this schema.
    pub(crate) fn new(schema: &'static Schema) -> Self {
        Self { level: Level::new(schema), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Knowledge> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the length of an append-only list.
    pub(crate) fn record_length(&self, list_number: u8, list_key: Vec<u8>, length: u64) {
        let mut known = self.lock();
        // Replies may arrive out of order.
        let is_outdated = known
            .lengths
            .get(&list_number)
            .is_some_and(|before| before.list_key == list_key && before.length >= length);
        if !is_outdated {
            known.lengths.insert(list_number, KnownLength { list_key, length, noted_at: SystemClock.now() });
        }
    }

    /// Refuses every call while the store lacks data, or has the schema of another release.
    pub(crate) fn admit(&self) -> Result<(), Failure> {
        if !self.is_lost.load(Ordering::Relaxed) {
            return self.level.admit();
        }
        self.lost_since().map_or(Ok(()), |since| Err(Failure::DataLost(since)))
    }

    /// Returns the time of the loss, if this node knows of one.
    pub(crate) fn lost_since(&self) -> Option<Timestamp> {
        self.lock().lost_since
    }

    /// Notes that this node has opened the store. From then on a missing canary is a loss.
    pub(crate) fn record_opening(&self) {
        self.lock().has_opened_store = true;
    }

    /// Returns true if this node has opened the store.
    pub(crate) fn has_opened_store(&self) -> bool {
        self.lock().has_opened_store
    }

    /// Returns a comparison of the store's own marks and of all lists with a known length.
    pub(crate) fn comparison(&self) -> Comparison {
        let known = self.lock();
        let lengths = known.lengths.values().cloned().collect();
        Comparison { acceptances: known.acceptances, lengths, is_complete: true }
    }

    /// Returns a comparison of the store's own marks, without the lists.
    const fn comparison_without_lists() -> Comparison {
        Comparison { acceptances: None, lengths: Vec::new(), is_complete: false }
    }

    /// Evaluates the replies of one server; `None` for a key of another server.
    pub(crate) fn evaluate_server(
        &self,
        comparison: &Comparison,
        answers: Vec<Option<Value>>,
    ) -> Result<(), StoreError> {
        self.evaluate(comparison, answers, Coverage::OneServer).map(drop)
    }

    /// Evaluates the replies to a comparison. Returns the time of a loss, and the store's own marks. A loss is ended by
    /// a complete comparison with all servers, or by an operator: a new connection may just have noticed it.
    fn evaluate(
        &self,
        comparison: &Comparison,
        answers: Vec<Option<Value>>,
        coverage: Coverage,
    ) -> Result<(Option<Timestamp>, Option<OwnMarks>), StoreError> {
        let mut answers = answers.into_iter();
        let own = answers.next().flatten().map(OwnMarks::parse).transpose()?;
        self.level.adopt(own.and_then(|own| own.schema));
        let mut lengths = Vec::new();
        for (known, answer) in comparison.lengths.iter().zip(answers) {
            let Some(answer) = answer else { continue };
            lengths.push((known, Reply::new("the length of a list", answer).parsed::<u64>()?));
        }
        let mut known = self.lock();
        match coverage {
            Coverage::AllServers if own.is_some_and(|own| known.adopt_acceptances(own)) => lengths.clear(),
            // The servers may have been asked before the acceptance.
            Coverage::OneServer if known.acceptances != comparison.acceptances => return Ok((known.lost_since, own)),
            _ => {}
        }
        let detected = known.detect_loss(own, &lengths, SystemClock.now());
        known.lost_since = match (detected, known.lost_since) {
            (Some(detected), Some(before)) => Some(detected.min(before)),
            (None, before) if coverage == Coverage::OneServer || !comparison.is_complete => before,
            (detected, _) => detected,
        };
        self.is_lost.store(known.lost_since.is_some(), Ordering::Relaxed);
        Ok((known.lost_since, own))
    }
}

impl Knowledge {
    /// Notes the losses that operators have accepted. After another one, this node's earlier knowledge no longer holds:
    /// then returns true.
    fn adopt_acceptances(&mut self, own: OwnMarks) -> bool {
        let known = *self.acceptances.get_or_insert(own.acceptances);
        let is_another = own.acceptances > known;
        if is_another {
            (self.acceptances, self.lost_since) = (Some(own.acceptances), None);
            self.lengths.clear();
        }
        is_another
    }

    /// Returns the time of the loss, if data is missing. Each known length comes with the length on the server.
    fn detect_loss(&self, own: Option<OwnMarks>, lengths: &[(&KnownLength, u64)], now: Timestamp) -> Option<Timestamp> {
        if let Some(own) = own {
            if own.lost_since.is_some() {
                return own.lost_since;
            }
            let known_acceptances = self.acceptances.unwrap_or(own.acceptances);
            // An operator has accepted a loss, which this node will notice with the next comparison of all servers.
            if own.acceptances > known_acceptances {
                return None;
            }
            let lacks_canary = !own.has_canary && (self.has_opened_store || own.single_starts > 0);
            let lacks_start = own.scripted_starts < own.single_starts;
            if lacks_canary || lacks_start || own.acceptances < known_acceptances {
                return Some(now);
            }
        }
        lengths.iter().filter(|(known, length)| *length < known.length).map(|(known, _)| known.noted_at).min()
    }
}

/// Returns a count as the servers store it. One of zero is not stored.
fn stored_count(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

impl Comparison {
    /// Returns the commands whose replies are compared: the own marks, then each list's length.
    pub(crate) fn commands(&self) -> Vec<Cmd> {
        let own = cmd("MGET").arg(keys::own_marks()).to_owned();
        let lengths = self.lengths.iter().map(|known| cmd("LLEN").arg(&known.list_key).to_owned());
        std::iter::once(own).chain(lengths).collect()
    }
}

impl OwnMarks {
    /// Parses the values of [`keys::own_marks`], in that order.
    fn parse(answer: Value) -> Result<Self, StoreError> {
        let mut marks = Reply::new(MARKS_REPLY, answer).fields()?;
        Ok(Self {
            has_canary: marks.optional()?.is_some(),
            single_starts: marks.optional_parsed()?.unwrap_or(0),
            scripted_starts: marks.optional_parsed()?.unwrap_or(0),
            lost_since: marks.optional_time()?,
            acceptances: marks.optional_parsed()?.unwrap_or(0),
            schema: marks.optional_parsed()?,
        })
    }
}

impl Shared {
    /// Compares the servers with this node's knowledge. Records a loss that no other node has noticed.
    ///
    /// # Errors
    /// [`StoreError::DataLost`] when data is missing, [`StoreError::OtherSchema`] on servers of another release.
    pub(crate) async fn check_for_loss(&self) -> Result<(), StoreError> {
        let _lock = self.link.loss_guard().comparing.lock().await;
        self.check_for_loss_locked().await
    }

    /// Compares as [`Shared::check_for_loss`] does, for callers that hold the lock on comparisons.
    async fn check_for_loss_locked(&self) -> Result<(), StoreError> {
        let guard = self.link.loss_guard();
        let was_lost = guard.lost_since().is_some();
        // Each new connection compares the lists. They are compared here only to notice that lost data is back.
        let comparison = if was_lost { guard.comparison() } else { LossGuard::comparison_without_lists() };
        let answers = self.send_always(comparison.commands()).await?;
        let answers = answers.into_iter().map(Some).collect();
        let (lost_since, own) = guard.evaluate(&comparison, answers, Coverage::AllServers)?;
        metrics::gauge!("sakshi_store_data_lost").set(u8::from(lost_since.is_some()));
        let Some(since) = lost_since else { return guard.level.check() };
        if let Some(own) = own.filter(|own| own.lost_since.is_none()) {
            self.note_loss(own.acceptances, since).await?;
        }
        Err(StoreError::DataLost(since))
    }

    /// Records a loss for every node, unless an operator has accepted a loss since `acceptances` was read.
    pub(crate) async fn note_loss(&self, acceptances: u64, since: Timestamp) -> Result<(), StoreError> {
        let (keys, args) = Step::default()
            .only_if(stored_count(acceptances), "GET", keys::acceptances(), vec![])
            .then("SET", keys::data_lost(), arguments![since, "NX"])
            .pack();
        self.link.call_always(&MARK_STEP, keys, args).await.map(drop)
    }

    /// Counts a start of this node twice: by a script of several commands, then by a single command. A server whose
    /// count by scripts is the lower one has lost a script's writes.
    pub(crate) async fn count_start(&self) -> Result<(), StoreError> {
        let [single_starts, scripted_starts, latest_start] = keys::starts();
        let count = Step::default().then_with_time("SET", latest_start, vec![]).then("INCR", scripted_starts, vec![]);
        let count = self.run_step(&MARK_STEP, count).await?.ok_or_else(|| StoreError::unreadable(MARKS_REPLY))?;
        let count: u64 = count.parsed()?;
        loop {
            let stored = self.read(MARKS_REPLY, cmd("GET").arg(&single_starts)).await?.optional_parsed()?.unwrap_or(0);
            if stored >= count || self.replace_mark(single_starts.clone(), stored_count(stored), count).await? {
                break;
            }
            // Another node has just counted its start.
        }
        self.link.loss_guard().record_opening();
        Ok(())
    }

    /// Accepts a loss of data. Returns its time, or `None` when nothing is missing. Other nodes continue within a
    /// second.
    pub(crate) async fn accept_loss(&self) -> Result<Option<Timestamp>, StoreError> {
        let guard = self.link.loss_guard();
        let _lock = guard.comparing.lock().await;
        match self.check_for_loss_locked().await {
            Ok(()) => return Ok(None),
            Err(StoreError::DataLost(_)) => {}
            Err(error) => return Err(error),
        }
        let (since, acceptances) = {
            let known = guard.lock();
            (known.lost_since, known.acceptances.unwrap_or(0))
        };
        let stored = self.send_always(vec![cmd("GET").arg(keys::acceptances()).to_owned()]).await?.pop();
        let stored = Reply::new(MARKS_REPLY, stored.unwrap_or(Value::Nil)).optional_parsed()?.unwrap_or(0);
        let [single_starts, scripted_starts, _] = keys::starts();
        let (keys, args) = Step::default()
            // A node that has accepted the loss meanwhile has made the same step.
            .only_if(stored_count(stored), "GET", keys::acceptances(), vec![])
            .then("SET", keys::canary(), arguments![canary::create(&self.vault), "NX"])
            .then("SET", keys::schema(), arguments![u64::from(guard.level.number()), "NX"])
            .then("DEL", single_starts, vec![])
            .then("DEL", scripted_starts, vec![])
            .then("DEL", keys::data_lost(), vec![])
            .then("SET", keys::acceptances(), arguments![acceptances.max(stored) + 1])
            .pack();
        self.link.call_always(&MARK_STEP, keys, args).await?;
        self.check_for_loss_locked().await?;
        Ok(since)
    }
}

#[cfg(test)]
mod tests;
