//! The observations of clients, guests and residents, with the times of request and answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::Duration;

use bytes::Bytes;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use serde_json::Value;

use crate::history::EventFact;

/// An observation about a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) txn: TxnId,
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
    pub(crate) learned: Knowledge,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// Opened for one credit, valid until this time; a guest does not see the time.
    Opened {
        expires_at: Option<Timestamp>,
    },
    /// Ended by the answer with this digest. For a guest: true if there was a place.
    Accepted {
        digest: [u8; 32],
        has_place: bool,
    },
    /// Another answer had ended it.
    AnsweredBefore,
    /// The answer came after the window.
    TooLate,
    Pending,
    /// The body of the poll.
    Completed(Bytes),
    /// The portal shows this end.
    Ended {
        verified: bool,
    },
    Expired,
    Unknown,
}

impl Knowledge {
    /// Returns its name in a table.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::Accepted { has_place: true, .. } => "accepted",
            Self::Accepted { has_place: false, .. } => "accepted without a place",
            Self::AnsweredBefore => "answered before",
            Self::TooLate => "too late",
            Self::Pending => "pending",
            Self::Completed(_) => "completed",
            Self::Ended { .. } => "ended in the portal",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        }
    }
}

impl Display for Knowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opened { .. } => "it is open",
            Self::Accepted { has_place: true, .. } => "its answer is accepted",
            Self::Accepted { has_place: false, .. } => "its answer is accepted, and there is no place",
            Self::AnsweredBefore => "another answer came before",
            Self::TooLate => "the answer is too late",
            Self::Pending => "it waits",
            Self::Completed(body) if body.starts_with(b"{\"success\":true") => "it has ended, verified",
            Self::Completed(_) => "it has ended, not verified",
            Self::Ended { verified: true } => "the portal shows that it has ended, verified",
            Self::Ended { verified: false } => "the portal shows that it has ended, not verified",
            Self::Expired => "its window has passed",
            Self::Unknown => "it is unknown",
        })
    }
}

/// A refusal for lack of credits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unpaid {
    pub(crate) tenant: usize,
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
}

/// A key that an operator has revoked.
#[derive(Clone, Debug)]
pub(crate) struct RevokedKey {
    pub(crate) tenant: usize,
    pub(crate) key: String,
    /// Time from which it must be refused.
    pub(crate) from: Duration,
}

/// The outcome of a report about a flow.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) tenant: usize,
    pub(crate) flow: String,
    /// Deduplication key of its webhook.
    pub(crate) key: String,
    /// True if there is a webhook: the report ends the flow, and the client has registered a URL.
    pub(crate) is_told: bool,
    /// The report, if the first of its kind ends the flow.
    pub(crate) end: Option<Value>,
}

/// All observations of a run.
#[derive(Debug, Default)]
pub(crate) struct Diary {
    pub(crate) facts: RefCell<Vec<Fact>>,
    /// Check-ins as answered, by client.
    pub(crate) check_ins: RefCell<Vec<(usize, Value)>>,
    /// The answers that residents gave.
    pub(crate) answers: RefCell<Vec<(TxnId, [u8; 32])>>,
    pub(crate) unpaid: RefCell<Vec<Unpaid>>,
    /// Observations of events, by number of the client.
    pub(crate) events: RefCell<Vec<(usize, EventFact)>>,
    pub(crate) revoked: RefCell<Vec<RevokedKey>>,
    /// Keys that an operator has begun to revoke, with the time.
    pub(crate) revoking: RefCell<Vec<(String, Duration)>>,
    /// Transactions that an operator has begun to erase, with the time of the answer.
    pub(crate) erased: RefCell<BTreeMap<TxnId, Option<Duration>>>,
    pub(crate) reported: RefCell<Vec<Reported>>,
    /// Bodies of polls of flows, by deduplication key of their webhook.
    pub(crate) polled: RefCell<Vec<(String, Bytes)>>,
    /// Requests being retried until they are answered.
    pub(crate) unanswered: RefCell<Vec<String>>,
    /// Impossible observations.
    wrong: RefCell<Vec<String>>,
}

impl Diary {
    pub(crate) fn is_wrong(&self, what: String) {
        let mut wrong = self.wrong.borrow_mut();
        if !wrong.contains(&what) {
            wrong.push(what);
        }
    }

    pub(crate) fn wrong(&self) -> Vec<String> {
        self.wrong.borrow().clone()
    }

    /// Records a request that is being retried.
    pub(crate) fn waits_for(&self, what: &str) {
        self.unanswered.borrow_mut().push(what.to_owned());
    }

    pub(crate) fn was_answered(&self, what: &str) {
        self.unanswered.borrow_mut().retain(|waiting| waiting != what);
    }
}
