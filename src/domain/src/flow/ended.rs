//! The end of a flow, and what a report means that comes after it.

use serde::{Deserialize, Serialize};

use super::transition::{ReportDigest, ReportRefusal, Transition};
use crate::time::Timestamp;

/// A flow's end: how, when, and by which report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnd<E> {
    /// How it ended.
    pub how: E,
    /// When its end was accepted.
    pub at: Timestamp,
    /// The report that ended it.
    pub report: ReportDigest,
}

impl<E> FlowEnd<E> {
    /// Judges a report that comes after the end; `word` is how the flow ended.
    ///
    /// # Errors
    /// [`ReportRefusal::AlreadyEnded`] unless it is the report that ended the flow.
    pub fn judge_repeat<S>(&self, digest: ReportDigest, word: &'static str) -> Result<Transition<S>, ReportRefusal> {
        if self.report == digest { Ok(Transition::Repeated) } else { Err(ReportRefusal::AlreadyEnded(word)) }
    }
}
