//! Counts of the identity app's answers to this node, which show whether the authority works.

use std::sync::{Mutex, PoisonError};

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Answer, Failure};
use sakshi_outbound::recent::RecentCounts;

/// Failure code when the authority's face authentication is down.
const SERVICE_DOWN: &str = "306";
/// Failure code when the app has received an HTTP error.
const HTTP_ERROR: &str = "307";

/// Index in [`AuthorityAnswers::recent`] of the answers without these codes.
const OTHERS: usize = 0;
/// Index of the answers with the code [`SERVICE_DOWN`].
const SERVICE_DOWNS: usize = 1;
/// Index of the answers with the code [`HTTP_ERROR`].
const HTTP_ERRORS: usize = 2;

/// Counter of the identity app's answers.
#[derive(Debug, Default)]
pub struct AuthorityAnswers {
    /// Other answers, reports of a service that is down, and reports of HTTP errors.
    recent: RecentCounts<3>,
    /// Time of the last answer.
    last: Mutex<Option<Timestamp>>,
}

/// Counts of answers in the last half hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerCounts {
    /// All answers.
    pub answers: u64,
    /// Answers that report the authority's service down.
    pub service_down: u64,
    /// Answers that report an HTTP error of the app.
    pub http_errors: u64,
    /// Time of the last answer.
    pub last_at: Option<Timestamp>,
}

impl AuthorityAnswers {
    /// Counts an answer.
    pub(crate) fn count(&self, answer: &Answer, now: Timestamp) {
        self.recent.count(match answer {
            Answer::Failure { failure: Failure { code, .. }, .. } if code.as_deref() == Some(SERVICE_DOWN) => {
                SERVICE_DOWNS
            }
            Answer::Failure { failure: Failure { code, .. }, .. } if code.as_deref() == Some(HTTP_ERROR) => HTTP_ERRORS,
            _ => OTHERS,
        });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Returns the counts of the last half hour.
    #[must_use]
    pub fn counts(&self) -> AnswerCounts {
        let [others, service_down, http_errors] = self.recent.counts();
        let last_at = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        AnswerCounts { answers: others + service_down + http_errors, service_down, http_errors, last_at }
    }
}
