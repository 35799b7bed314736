//! The end of a flow, and what a report means that comes after it.

use serde::{Deserialize, Serialize};

use super::transition::{Refusal, ReportDigest, Transition};
use crate::time::Timestamp;

/// A flow's end: how, when, and by which report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended<E> {
    /// How it ended.
    pub how: E,
    /// When its end was accepted.
    pub at: Timestamp,
    /// The report that ended it.
    pub report: ReportDigest,
}

impl<E> Ended<E> {
    /// Judges a report that comes after the end; `word` is how the flow ended.
    ///
    /// # Errors
    /// [`Refusal::AlreadyEnded`] unless it is the report that ended the flow.
    pub fn again<S>(&self, digest: ReportDigest, word: &'static str) -> Result<Transition<S>, Refusal> {
        if self.report == digest { Ok(Transition::Repeated) } else { Err(Refusal::AlreadyEnded(word)) }
    }
}
