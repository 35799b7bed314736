//! An order and its progress: its details, the reports that the service has not accepted yet, and a journal of the
//! service's answers.
//!
//! A decision and its reports are recorded in one step and sent afterwards, so that nothing is lost if the browser
//! disconnects.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::time::Timestamp;
use tokio::sync::{Mutex, MutexGuard};

use super::doclocker::Locker;
use super::error::FlowError;
use super::esign::Esign;
use super::estamp::EStamp;
use super::order::Order;
use super::reporter::{PendingReport, ReportAnswer, Reporter};
use super::wealth::Wealth;

/// Maximum lines of a journal.
const JOURNAL_LINES_MAX: usize = 50;

/// The upstreams whose orders open flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upstream {
    /// Signs documents.
    ESign,
    /// Keeps people's documents.
    DocLocker,
    /// Makes e-stamps.
    EStamp,
    /// Collects wealth data under a consent.
    Wealth,
}

impl Upstream {
    pub(super) const ALL: [Self; 4] = [Self::ESign, Self::DocLocker, Self::EStamp, Self::Wealth];

    /// Returns the upstream's name in paths.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ESign => "esign",
            Self::DocLocker => "doclocker",
            Self::EStamp => "estamp",
            Self::Wealth => "wealth",
        }
    }

    pub(super) fn from_name(name: &str) -> Result<Self, FlowError> {
        Self::ALL.into_iter().find(|upstream| upstream.name() == name).ok_or(FlowError::NoSuchOrder)
    }
}

/// A short description of an order's state.
#[derive(Clone, Copy)]
pub(super) struct Summary {
    pub(super) text: &'static str,
    /// True if something is left to decide.
    pub(super) is_open: bool,
}

impl Summary {
    pub(super) const fn open(text: &'static str) -> Self {
        Self { text, is_open: true }
    }

    pub(super) const fn ended(text: &'static str) -> Self {
        Self { text, is_open: false }
    }

    /// Returns an error if nothing is left to decide.
    pub(super) fn require_open(self) -> Result<(), FlowError> {
        if self.is_open { Ok(()) } else { Err(FlowError::Ended(self.text)) }
    }
}

/// Details of an order, with its state.
pub(super) enum Details {
    ESign(Esign),
    DocLocker(Locker),
    EStamp(EStamp),
    Wealth(Wealth),
}

impl Details {
    pub(super) const fn upstream(&self) -> Upstream {
        match self {
            Self::ESign(_) => Upstream::ESign,
            Self::DocLocker(_) => Upstream::DocLocker,
            Self::EStamp(_) => Upstream::EStamp,
            Self::Wealth(_) => Upstream::Wealth,
        }
    }

    /// Returns the bytes of documents in memory.
    fn bytes_in_memory(&self) -> usize {
        match self {
            Self::ESign(esign) => esign.bytes_in_memory(),
            Self::EStamp(stamp) => stamp.bytes_in_memory(),
            Self::DocLocker(_) | Self::Wealth(_) => 0,
        }
    }

    /// Carries out the outcome that a script names, with all decisions up to it. Returns the reports to send.
    fn play(&mut self, order: &Order, outcome: &str, now: Timestamp) -> Result<Vec<PendingReport>, FlowError> {
        match self {
            Self::ESign(esign) => esign.play(order, outcome, now),
            Self::DocLocker(locker) => Ok(vec![locker.play(order, outcome, now)?]),
            Self::EStamp(stamp) => Ok(vec![stamp.play(order, outcome, now)?]),
            Self::Wealth(wealth) => wealth.play(order, outcome, now),
        }
    }

    pub(super) fn summary(&self, now: Timestamp) -> Summary {
        match self {
            Self::ESign(esign) => esign.summary(now),
            Self::DocLocker(locker) => locker.summary(),
            Self::EStamp(stamp) => stamp.summary(),
            Self::Wealth(wealth) => wealth.summary(),
        }
    }
}

/// A report and the service's answer.
#[derive(Clone, Debug)]
pub(super) struct SentReport {
    pub(super) kind: ReportKind,
    pub(super) description: String,
    pub(super) at: Timestamp,
    pub(super) attempts: u32,
    pub(super) answer: ReportAnswer,
}

/// The changing part of an order.
pub(super) struct OrderProgress {
    pub(super) details: Details,
    /// Reports that the service has not accepted yet.
    waiting: VecDeque<PendingReport>,
    /// Reports with the service's answer, oldest first.
    journal: VecDeque<SentReport>,
}

impl OrderProgress {
    /// Returns the reports that the service has not accepted yet.
    pub(super) fn waiting_reports(&self) -> impl Iterator<Item = &PendingReport> {
        self.waiting.iter()
    }

    /// Returns the reports with an answer, newest first.
    pub(super) fn journal(&self) -> impl Iterator<Item = &SentReport> {
        self.journal.iter().rev()
    }

    fn bytes_in_memory(&self) -> usize {
        self.details.bytes_in_memory() + self.waiting.iter().map(|report| report.body.len()).sum::<usize>()
    }
}

/// An order and its progress.
pub(super) struct OrderEntry {
    pub(super) order: Order,
    pub(super) upstream: Upstream,
    /// SHA-256 digest of the order's body.
    pub(super) digest: [u8; 32],
    /// Bytes of documents and waiting reports.
    bytes_in_memory: AtomicUsize,
    progress: Mutex<OrderProgress>,
}

impl OrderEntry {
    pub(super) fn new(order: Order, digest: [u8; 32], details: Details) -> Self {
        let upstream = details.upstream();
        let progress = OrderProgress { details, waiting: VecDeque::new(), journal: VecDeque::new() };
        Self {
            order,
            upstream,
            digest,
            bytes_in_memory: AtomicUsize::new(progress.bytes_in_memory()),
            progress: Mutex::new(progress),
        }
    }

    /// Returns the bytes of documents and waiting reports in memory.
    pub(super) fn bytes_in_memory(&self) -> usize {
        self.bytes_in_memory.load(Ordering::Relaxed)
    }

    /// Locks the progress. Waits while a decision is being reported.
    pub(super) async fn progress(&self) -> MutexGuard<'_, OrderProgress> {
        self.progress.lock().await
    }

    /// Locks the progress. Returns `None` while a decision is being reported.
    pub(super) fn try_progress(&self) -> Option<MutexGuard<'_, OrderProgress>> {
        self.progress.try_lock().ok()
    }

    /// Carries out the outcome that a script names, with all decisions up to it, and reports it.
    pub(super) async fn play(
        &self,
        outcome: &str,
        reporter: &Reporter,
        now: Timestamp,
    ) -> Result<Vec<SentReport>, FlowError> {
        self.decide(reporter, now, |details| details.play(&self.order, outcome, now)).await
    }

    /// Carries out a decision, and sends the waiting reports and then the new ones. Stops at a report that may be
    /// retried later.
    pub(super) async fn decide(
        &self,
        reporter: &Reporter,
        now: Timestamp,
        decision: impl FnOnce(&mut Details) -> Result<Vec<PendingReport>, FlowError>,
    ) -> Result<Vec<SentReport>, FlowError> {
        let mut progress = self.progress.lock().await;
        let reports = decision(&mut progress.details)?;
        progress.waiting.extend(reports);
        self.bytes_in_memory.store(progress.bytes_in_memory(), Ordering::Relaxed);
        let mut sent = Vec::new();
        while let Some(next) = progress.waiting.front() {
            let (answer, attempts) = reporter.report(next).await;
            let report =
                SentReport { kind: next.kind, description: next.description.clone(), at: now, attempts, answer };
            let is_final = report.answer.is_final();
            if progress.journal.len() == JOURNAL_LINES_MAX {
                progress.journal.pop_front();
            }
            progress.journal.push_back(report.clone());
            sent.push(report);
            if !is_final {
                break;
            }
            progress.waiting.pop_front();
            self.bytes_in_memory.store(progress.bytes_in_memory(), Ordering::Relaxed);
        }
        Ok(sent)
    }
}
