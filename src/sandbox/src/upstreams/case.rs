//! One order and what has become of it: its matter, the reports that the service has not taken
//! yet, and a journal of those that it has answered.
//!
//! A decision and its reports are noted in one step; sending them comes after, so that whoever
//! hangs up in between loses nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use super::doclocker::Locker;
use super::error::FlowError;
use super::esign::Esign;
use super::estamp::EStamp;
use super::intake::Order;
use super::reporter::{Heard, Reporter};
use super::wealth::Wealth;

/// Lines of a journal that are kept.
const JOURNAL_LINES_MAX: usize = 50;

/// The upstreams that take orders whose end is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upstream {
    /// Signs documents.
    ESign,
    /// Holds people's documents.
    DocLocker,
    /// Stamps papers.
    EStamp,
    /// Gathers wealth data under a consent.
    Wealth,
}

impl Upstream {
    pub(super) const ALL: [Self; 4] = [Self::ESign, Self::DocLocker, Self::EStamp, Self::Wealth];

    /// The word of its paths.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::ESign => "esign",
            Self::DocLocker => "doclocker",
            Self::EStamp => "estamp",
            Self::Wealth => "wealth",
        }
    }

    /// Reads the word of a path.
    pub(super) fn named(word: &str) -> Result<Self, FlowError> {
        Self::ALL.into_iter().find(|upstream| upstream.word() == word).ok_or(FlowError::NoSuchFlow)
    }
}

/// What was ordered, and how it stands.
pub(super) enum Matter {
    ESign(Esign),
    DocLocker(Locker),
    EStamp(EStamp),
    Wealth(Wealth),
}

impl Matter {
    pub(super) const fn upstream(&self) -> Upstream {
        match self {
            Self::ESign(_) => Upstream::ESign,
            Self::DocLocker(_) => Upstream::DocLocker,
            Self::EStamp(_) => Upstream::EStamp,
            Self::Wealth(_) => Upstream::Wealth,
        }
    }

    /// Bytes of documents that it holds.
    fn held(&self) -> usize {
        match self {
            Self::ESign(esign) => esign.held(),
            Self::EStamp(stamp) => stamp.held(),
            Self::DocLocker(_) | Self::Wealth(_) => 0,
        }
    }

    /// Carries a whole outcome out, as a script names it.
    fn play(&mut self, order: &Order, outcome: &str, now: Timestamp) -> Result<Vec<Outgoing>, FlowError> {
        match self {
            Self::ESign(esign) => esign.play(order, outcome, now),
            Self::DocLocker(locker) => locker.play(order, outcome, now),
            Self::EStamp(stamp) => stamp.play(order, outcome, now),
            Self::Wealth(wealth) => wealth.play(order, outcome, now),
        }
    }

    /// How it stands, in a few words, and whether there is something left to decide.
    pub(super) fn standing(&self, now: Timestamp) -> (&'static str, bool) {
        match self {
            Self::ESign(esign) => esign.standing(now),
            Self::DocLocker(locker) => locker.standing(),
            Self::EStamp(stamp) => stamp.standing(),
            Self::Wealth(wealth) => wealth.standing(),
        }
    }
}

/// A report that waits to be sent.
pub(super) struct Outgoing {
    /// Which kind of report.
    pub(super) kind: ReportKind,
    /// What it says, for the journal.
    pub(super) what: String,
    /// Its JSON.
    pub(super) body: Bytes,
}

impl Outgoing {
    /// A report of this flow; the order says for whom.
    pub(super) fn new(order: &Order, kind: ReportKind, what: impl Into<String>, mut payload: Value) -> Self {
        payload["app_id"] = json!(order.app);
        Self { kind, what: what.into(), body: payload.to_string().into() }
    }
}

/// A report and what the service made of it.
#[derive(Clone, Debug)]
pub(super) struct Reported {
    pub(super) kind: ReportKind,
    pub(super) what: String,
    pub(super) at: Timestamp,
    /// How often it was sent for this line.
    pub(super) attempts: u32,
    pub(super) heard: Heard,
}

/// What changes about an order.
pub(super) struct Desk {
    pub(super) matter: Matter,
    waiting: VecDeque<Outgoing>,
    journal: VecDeque<Reported>,
}

impl Desk {
    /// Reports that the service has not taken yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Outgoing> {
        self.waiting.iter()
    }

    /// What was reported, newest first.
    pub(super) fn journal(&self) -> impl Iterator<Item = &Reported> {
        self.journal.iter().rev()
    }

    fn held(&self) -> usize {
        self.matter.held() + self.waiting.iter().map(|report| report.body.len()).sum::<usize>()
    }
}

/// One order.
pub(super) struct Case {
    pub(super) order: Order,
    pub(super) upstream: Upstream,
    /// SHA-256 of the order's body.
    pub(super) digest: [u8; 32],
    held: AtomicUsize,
    desk: Mutex<Desk>,
}

impl Case {
    pub(super) fn new(order: Order, digest: [u8; 32], matter: Matter) -> Self {
        let upstream = matter.upstream();
        let desk = Desk { matter, waiting: VecDeque::new(), journal: VecDeque::new() };
        Self { order, upstream, digest, held: AtomicUsize::new(desk.held()), desk: Mutex::new(desk) }
    }

    /// Bytes of documents and waiting reports that it holds.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The desk, once nobody else is at it.
    pub(super) async fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().await
    }

    /// The desk, unless somebody is at it.
    pub(super) fn free_desk(&self) -> Option<MutexGuard<'_, Desk>> {
        self.desk.try_lock().ok()
    }

    /// Plays a whole outcome and reports it.
    pub(super) async fn play(&self, outcome: &str, reporter: &Reporter, now: Timestamp) -> Result<Vec<Reported>, FlowError> {
        self.decide(reporter, now, |matter| matter.play(&self.order, outcome, now)).await
    }

    /// Carries a decision out and reports it, after the reports that still wait.
    ///
    /// # Errors
    /// Those of the decision, which then has changed nothing. What the service answers is no error.
    pub(super) async fn decide(
        &self,
        reporter: &Reporter,
        now: Timestamp,
        decision: impl FnOnce(&mut Matter) -> Result<Vec<Outgoing>, FlowError>,
    ) -> Result<Vec<Reported>, FlowError> {
        let mut desk = self.desk.lock().await;
        let reports = decision(&mut desk.matter)?;
        desk.waiting.extend(reports);
        self.held.store(desk.held(), Ordering::Relaxed);
        let mut reported = Vec::new();
        while let Some(next) = desk.waiting.front() {
            let (heard, attempts) = reporter.report(next).await;
            let line = Reported { kind: next.kind, what: next.what.clone(), at: now, attempts, heard };
            let taken = line.heard.is_final();
            if desk.journal.len() == JOURNAL_LINES_MAX {
                desk.journal.pop_front();
            }
            desk.journal.push_back(line.clone());
            reported.push(line);
            if !taken {
                break;
            }
            desk.waiting.pop_front();
            self.held.store(desk.held(), Ordering::Relaxed);
        }
        Ok(reported)
    }
}
