//! Detection of data loss on the servers: a restart that read only part of its file, an older file, a failover to a
//! lagging replica.
//!
//! Ledgers and the audit log only grow. A node remembers their latest lengths and compares them on each new connection,
//! before it sends anything else there. The store also keeps its own marks beside the canary, which every node
//! reads. Each start is counted by a script of several commands and then by a single command, because a Redis can lose
//! the first kind and keep the second (`deploy/redis/README.md`). A node that finds less than before records the loss.
//! From then on no node sends anything until the data is back or an operator accepts the loss.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Value, cmd};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::limits::PARTITIONS;
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::link::failure::Failure;
use super::reply::Reply;
use super::schema::{Level, StoredSchema};
use super::shared::Shared;
use super::{keys, script};
use crate::error::StoreError;
use crate::{Schema, canary};

/// Number of the mark for the audit log. The mark for the latest ledger of a partition has the partition's number.
pub(crate) const AUDIT_LOG: u8 = PARTITIONS;

/// Knowledge of the store's earlier content, and of a loss.
#[derive(Debug, Default)]
pub(crate) struct LossGuard {
    /// The schema level, read with the other marks.
    pub(crate) level: Level,
    is_lost: AtomicBool,
    known: Mutex<Knowledge>,
    /// Held from a reading of the store to its conclusion, so that no reading from before an acceptance is evaluated
    /// after it.
    reading: tokio::sync::Mutex<()>,
}

/// This node's knowledge of the store.
#[derive(Debug, Default)]
struct Knowledge {
    lost_since: Option<Timestamp>,
    has_opened_store: bool,
    /// Number of accepted losses; `None` before the store was read.
    acceptances: Option<u64>,
    marks: BTreeMap<u8, Mark>,
}

/// An append-only list, and its last length known to this node.
#[derive(Clone, Debug)]
struct Mark {
    list: Vec<u8>,
    length: u64,
    noted_at: Timestamp,
}

/// The queries of one comparison.
#[derive(Debug)]
pub(crate) struct Comparison {
    marks: Vec<Mark>,
}

/// The store's marks of itself.
#[derive(Clone, Copy, Debug)]
struct OwnMarks {
    has_canary: bool,
    /// Number of node starts, counted by single commands.
    starts: u64,
    /// Number of node starts, counted just before by scripts of several commands.
    steps: u64,
    lost_since: Option<Timestamp>,
    acceptances: u64,
    schema: Option<StoredSchema>,
}

impl LossGuard {
    /// Returns a guard without knowledge of the servers, for a node with this schema.
    pub(crate) fn new(schema: &'static Schema) -> Self {
        Self { level: Level::new(schema), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Knowledge> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the length of an append-only list.
    pub(crate) fn record(&self, mark_number: u8, list: Vec<u8>, length: u64) {
        let mark = Mark { list, length, noted_at: SystemClock.now() };
        let mut known = self.lock();
        // Replies may arrive out of order.
        if !known.marks.get(&mark_number).is_some_and(|before| before.list == mark.list && before.length >= length) {
            known.marks.insert(mark_number, mark);
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

    /// Notes that this node has opened the store, which therefore has a canary.
    pub(crate) fn join(&self) {
        self.lock().has_opened_store = true;
    }

    pub(crate) fn has_opened_store(&self) -> bool {
        self.lock().has_opened_store
    }

    /// Returns a comparison of all marks.
    pub(crate) fn comparison(&self) -> Comparison {
        Comparison { marks: self.lock().marks.values().cloned().collect() }
    }

    /// Returns a comparison of the store's own marks.
    const fn brief_comparison() -> Comparison {
        Comparison { marks: Vec::new() }
    }

    /// Evaluates the answers of one server; `None` for a query that it does not answer.
    pub(crate) fn conclude_for_server(
        &self,
        comparison: &Comparison,
        answers: Vec<Option<Value>>,
    ) -> Result<(), StoreError> {
        self.conclude(comparison, answers, false).map(drop)
    }

    /// Evaluates the answers to a comparison. Returns the time of the loss, and the store's own marks.
    fn conclude(
        &self,
        comparison: &Comparison,
        answers: Vec<Option<Value>>,
        is_complete: bool,
    ) -> Result<(Option<Timestamp>, Option<OwnMarks>), StoreError> {
        let mut answers = answers.into_iter();
        let own = answers.next().flatten().map(OwnMarks::read).transpose()?;
        self.level.follow(own.and_then(|own| own.schema));
        let mut lengths = Vec::new();
        for (mark, answer) in comparison.marks.iter().zip(answers) {
            let Some(answer) = answer else { continue };
            lengths.push((mark, Reply::new("the length of a list", answer).parsed::<u64>()?));
        }
        let mut known = self.lock();
        let detected = known.detect_loss(own, &lengths, SystemClock.now());
        known.lost_since = match (detected, known.lost_since) {
            (Some(detected), Some(before)) => Some(detected.min(before)),
            (None, before) if !is_complete => before,
            (detected, _) => detected,
        };
        self.is_lost.store(known.lost_since.is_some(), Ordering::Relaxed);
        Ok((known.lost_since, own))
    }
}

impl Knowledge {
    /// Returns the time of the loss, if data is missing.
    fn detect_loss(&mut self, own: Option<OwnMarks>, lengths: &[(&Mark, u64)], now: Timestamp) -> Option<Timestamp> {
        if let Some(own) = own {
            if own.lost_since.is_some() {
                return own.lost_since;
            }
            let known = self.acceptances.unwrap_or(own.acceptances);
            if own.acceptances > known {
                self.acceptances = Some(own.acceptances);
                self.marks.clear();
                return None;
            }
            let lacks_canary = !own.has_canary && (self.has_opened_store || own.starts > 0);
            if lacks_canary || own.steps < own.starts || own.acceptances < known {
                return Some(now);
            }
            self.acceptances = Some(known);
        }
        lengths.iter().filter(|(mark, length)| *length < mark.length).map(|(mark, _)| mark.noted_at).min()
    }
}

impl Comparison {
    /// Returns the commands whose answers are compared.
    pub(crate) fn commands(&self) -> Vec<Cmd> {
        let own = cmd("MGET").arg(keys::own_marks()).to_owned();
        let lengths = self.marks.iter().map(|mark| cmd("LLEN").arg(&mark.list).to_owned());
        std::iter::once(own).chain(lengths).collect()
    }
}

impl OwnMarks {
    fn read(answer: Value) -> Result<Self, StoreError> {
        let mut marks = Reply::new("the marks of the store", answer).fields()?;
        Ok(Self {
            has_canary: marks.optional()?.is_some(),
            starts: marks.optional_parsed()?.unwrap_or(0),
            steps: marks.optional_parsed()?.unwrap_or(0),
            lost_since: marks.optional_time()?,
            acceptances: marks.optional_parsed()?.unwrap_or(0),
            schema: marks.optional_parsed()?,
        })
    }
}

impl Shared {
    /// Compares the store with this node's knowledge. Records a loss that no other node has noticed.
    ///
    /// # Errors
    /// [`StoreError::DataLost`] when data is missing, [`StoreError::OtherSchema`] on servers of another release.
    pub(crate) async fn compare(&self) -> Result<(), StoreError> {
        let _reading = self.link.loss_guard().reading.lock().await;
        self.compare_locked().await
    }

    /// Compares as [`Shared::compare`] does, for callers that hold the lock on readings.
    async fn compare_locked(&self) -> Result<(), StoreError> {
        let guard = self.link.loss_guard();
        let was_lost = guard.lost_since().is_some();
        let comparison = if was_lost { guard.comparison() } else { LossGuard::brief_comparison() };
        let answers = self.send_always(comparison.commands()).await?;
        let (lost_since, own) = guard.conclude(&comparison, answers.into_iter().map(Some).collect(), true)?;
        metrics::gauge!("sakshi_store_data_lost").set(u8::from(lost_since.is_some()));
        let Some(since) = lost_since else { return guard.level.check() };
        if let Some(own) = own.filter(|own| own.lost_since.is_none()) {
            self.note_loss(own.acceptances, since).await?;
        }
        Err(StoreError::DataLost(since))
    }

    /// Records a loss for every node, unless an operator has accepted a loss since `acceptances` was read.
    pub(crate) async fn note_loss(&self, acceptances: u64, since: Timestamp) -> Result<(), StoreError> {
        let args = self.with_time(arguments![acceptances, since.millis()]);
        self.link.call_always(&script::NOTE_LOSS, keys::loss_marks(), args).await.map(drop)
    }

    /// Counts a start of this node, by a script of several commands and then by a single command.
    pub(crate) async fn count_start(&self) -> Result<(), StoreError> {
        let [starts, steps, joined] = keys::starts();
        let count: u64 = self.call(&script::COUNT_STEP, vec![steps, joined], vec![]).await?.parsed()?;
        self.call(&script::COUNT_START, vec![starts], arguments![count]).await?;
        self.link.loss_guard().join();
        Ok(())
    }

    /// Accepts a loss of data. Returns its time, or `None` when nothing is missing. Other nodes continue within a
    /// second.
    pub(crate) async fn accept_loss(&self) -> Result<Option<Timestamp>, StoreError> {
        let guard = self.link.loss_guard();
        let _reading = guard.reading.lock().await;
        match self.compare_locked().await {
            Ok(()) => return Ok(None),
            Err(StoreError::DataLost(_)) => {}
            Err(error) => return Err(error),
        }
        let (since, acceptances) = {
            let known = guard.lock();
            (known.lost_since, known.acceptances.unwrap_or(0))
        };
        let number = u64::from(guard.level.number());
        let args = self.with_time(arguments![acceptances, canary::create(&self.vault), number]);
        self.link.call_always(&script::ACCEPT_LOSS, keys::own_marks(), args).await?;
        self.compare_locked().await?;
        Ok(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: OwnMarks =
        OwnMarks { has_canary: true, starts: 3, steps: 3, lost_since: None, acceptances: 1, schema: None };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn detected_loss(own: OwnMarks) -> Option<Timestamp> {
        let mut known = Knowledge { has_opened_store: true, acceptances: Some(1), ..Knowledge::default() };
        known.detect_loss(Some(own), &[], at(9))
    }

    #[test]
    fn a_store_whose_marks_went_back_has_lost_data() {
        assert_eq!(detected_loss(WHOLE), None);
        assert_eq!(detected_loss(OwnMarks { steps: 4, ..WHOLE }), None, "a node may end between its two counts");
        assert_eq!(
            detected_loss(OwnMarks { acceptances: 2, has_canary: false, ..WHOLE }),
            None,
            "an operator has accepted the loss meanwhile"
        );
        assert_eq!(
            detected_loss(OwnMarks { lost_since: Some(at(4)), acceptances: 2, ..WHOLE }),
            Some(at(4)),
            "another node has noticed"
        );
        for own in [
            OwnMarks { steps: 2, ..WHOLE },
            OwnMarks { has_canary: false, ..WHOLE },
            OwnMarks { has_canary: false, starts: 0, steps: 0, ..WHOLE },
            OwnMarks { acceptances: 0, ..WHOLE },
        ] {
            assert_eq!(detected_loss(own), Some(at(9)), "{own:?}");
        }
    }

    #[test]
    fn an_empty_store_that_nobody_has_opened_has_lost_nothing() {
        let empty = OwnMarks { has_canary: false, starts: 0, steps: 0, lost_since: None, acceptances: 0, schema: None };
        assert_eq!(Knowledge::default().detect_loss(Some(empty), &[], at(9)), None);
        assert_eq!(
            Knowledge::default().detect_loss(Some(OwnMarks { starts: 1, steps: 1, ..empty }), &[], at(9)),
            Some(at(9))
        );
    }

    #[test]
    fn a_shorter_list_reveals_when_its_missing_data_was_last_seen() {
        let mark = |length, time| Mark { list: vec![], length, noted_at: at(time) };
        let (older, newer) = (mark(5, 100), mark(7, 200));
        let mut known = Knowledge::default();
        assert_eq!(known.detect_loss(None, &[(&older, 5), (&newer, 8)], at(900)), None);
        assert_eq!(known.detect_loss(None, &[(&older, 5), (&newer, 6)], at(900)), Some(at(200)));
        assert_eq!(known.detect_loss(None, &[(&older, 0), (&newer, 0)], at(900)), Some(at(100)));
    }

    #[test]
    fn a_guard_remembers_the_latest_list_of_a_place_and_its_greatest_length() {
        let guard = LossGuard::default();
        for (list, length) in [(b"a", 2), (b"a", 3), (b"a", 1)] {
            guard.record(0, list.to_vec(), length);
        }
        guard.record(AUDIT_LOG, b"audit".to_vec(), 9);
        let lengths = |guard: &LossGuard| guard.comparison().marks.iter().map(|mark| mark.length).collect::<Vec<_>>();
        assert_eq!(lengths(&guard), [3, 9]);
        guard.record(0, b"b".to_vec(), 1);
        assert_eq!(lengths(&guard), [1, 9]);
    }

    #[test]
    fn a_recorded_loss_is_distinguished_from_an_unrecorded_one() {
        let guard = LossGuard::default();
        let recorded_loss = |lost: Value| {
            let marks = Value::Array(vec![
                Value::BulkString(b"c".to_vec()),
                Value::Int(3),
                Value::Int(2),
                lost,
                Value::Int(0),
                Value::Nil,
            ]);
            let (lost_since, own) = guard.conclude(&LossGuard::brief_comparison(), vec![Some(marks)], true).unwrap();
            assert!(lost_since.is_some() && guard.admit().is_err());
            own.unwrap().lost_since
        };
        assert_eq!(recorded_loss(Value::Nil), None, "this node is the first to notice");
        assert_eq!(recorded_loss(Value::Int(4)), Some(at(4)));
    }

    #[test]
    fn the_answer_of_a_single_server_never_ends_a_loss() {
        let guard = LossGuard::default();
        guard.record(3, b"list".to_vec(), 2);
        let comparison = guard.comparison();
        let answers = |length| vec![None, Some(Value::Int(length))];
        guard.conclude_for_server(&comparison, answers(1)).unwrap();
        assert!(guard.admit().is_err());
        guard.conclude_for_server(&comparison, answers(2)).unwrap();
        assert!(guard.admit().is_err(), "another server may still lack something");
        guard.conclude(&comparison, answers(2), true).unwrap();
        assert!(guard.admit().is_ok());
    }
}
