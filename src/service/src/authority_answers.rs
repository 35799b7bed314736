//! Counts of the identity app's answers to this node, which show whether the authority works.

use std::sync::{Mutex, PoisonError};

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Answer, Failure};
use sakshi_outbound::recent::Recent;

/// The code of an authority whose face authentication is down.
const SERVICE_DOWN: &str = "306";
/// The code of an app that met an HTTP error.
const HTTP_ERROR: &str = "307";

/// Counts answers.
#[derive(Debug, Default)]
pub struct AuthorityAnswers {
    recent: Recent<3>,
    last: Mutex<Option<Timestamp>>,
}

/// Counts of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// All answers.
    pub answers: u64,
    /// Those that say that the authority's service is down.
    pub service_down: u64,
    /// Those that say that the app met an HTTP error.
    pub http_errors: u64,
    /// The time of the last one.
    pub last_at: Option<Timestamp>,
}

impl AuthorityAnswers {
    pub(crate) fn note(&self, answer: &Answer, now: Timestamp) {
        self.recent.count(match answer {
            Answer::Failure { failure: Failure { code, .. }, .. } if code.as_deref() == Some(SERVICE_DOWN) => 1,
            Answer::Failure { failure: Failure { code, .. }, .. } if code.as_deref() == Some(HTTP_ERROR) => 2,
            _ => 0,
        });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// The counts of the last half hour.
    #[must_use]
    pub fn counted(&self) -> Counted {
        let [others, service_down, http_errors] = self.recent.counts();
        let last_at = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        Counted { answers: others + service_down + http_errors, service_down, http_errors, last_at }
    }
}
