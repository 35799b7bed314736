//! What people learned, and between which moments they asked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::Duration;

use bytes::Bytes;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use serde_json::Value;

use crate::history::EventFact;

/// What somebody learned of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) txn: TxnId,
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
    pub(crate) learned: Learned,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// It was opened, costs a credit and is valid until this time; for a guest it is not told.
    Opened {
        expires_at: Option<Timestamp>,
    },
    /// The answer with this digest ended it, and whether the guest has a place.
    Accepted {
        digest: [u8; 32],
        has_place: bool,
    },
    /// Another answer had ended it.
    AnsweredBefore,
    /// The answer came after the window.
    TooLate,
    Pending,
    /// With the body of the poll.
    Completed(Bytes),
    /// The portal shows that it has ended, and how.
    Ended {
        verified: bool,
    },
    Expired,
    Unknown,
}

impl Learned {
    /// What it is called in a table.
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

impl Display for Learned {
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

/// That a client was told that its credits do not suffice.
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
    /// From when on it must be refused.
    pub(crate) from: Duration,
}

/// What became of a report about a flow.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) tenant: usize,
    pub(crate) flow: String,
    /// What tells its webhook apart.
    pub(crate) key: String,
    /// Whether there is a webhook: it tells the end, and the client has said where that is to be told.
    pub(crate) is_told: bool,
    /// The report, if it is one of which the first ends the flow.
    pub(crate) end: Option<Value>,
}

/// What everybody learned.
#[derive(Debug, Default)]
pub(crate) struct Diary {
    pub(crate) facts: RefCell<Vec<Fact>>,
    /// Check-ins as they were answered, by client.
    pub(crate) check_ins: RefCell<Vec<(usize, Value)>>,
    /// The answers that residents gave.
    pub(crate) answers: RefCell<Vec<(TxnId, [u8; 32])>>,
    pub(crate) unpaid: RefCell<Vec<Unpaid>>,
    /// What was seen of events, by the number of their client.
    pub(crate) events: RefCell<Vec<(usize, EventFact)>>,
    pub(crate) revoked: RefCell<Vec<RevokedKey>>,
    /// Keys that an operator has begun to revoke, and when.
    pub(crate) revoking: RefCell<Vec<(String, Duration)>>,
    /// Transactions that an operator has begun to erase, and when that was answered.
    pub(crate) erased: RefCell<BTreeMap<TxnId, Option<Duration>>>,
    pub(crate) reported: RefCell<Vec<Reported>>,
    /// Bodies of polls of flows, by the key of their webhook.
    pub(crate) polled: RefCell<Vec<(String, Bytes)>>,
    /// What somebody asks again until it is answered.
    pub(crate) unanswered: RefCell<Vec<String>>,
    /// What somebody saw that cannot be.
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

    /// Notes that an answer is waited for.
    pub(crate) fn waits_for(&self, what: &str) {
        self.unanswered.borrow_mut().push(what.to_owned());
    }

    pub(crate) fn was_answered(&self, what: &str) {
        self.unanswered.borrow_mut().retain(|waiting| waiting != what);
    }
}
