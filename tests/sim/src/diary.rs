//! The observations of clients, guests and residents, with the times of request and answer.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::time::Duration;

use bytes::Bytes;
use sakshi_domain::checks::Check;
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
    /// The portal or a list shows this end.
    Ended {
        verified: bool,
    },
    /// There is evidence of its end.
    Proven,
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
            Self::Ended { .. } => "ended in a list",
            Self::Proven => "proven",
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
            Self::Ended { verified: true } => "a list shows that it has ended, verified",
            Self::Ended { verified: false } => "a list shows that it has ended, not verified",
            Self::Proven => "there is evidence that it has ended",
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
    /// True if it was revoked, false if it expires because it was rotated.
    pub(crate) is_revoked: bool,
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

/// A reading of a client's records between two moments.
#[derive(Clone, Debug)]
pub(crate) struct Reading<T> {
    pub(crate) tenant: usize,
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
    pub(crate) content: T,
}

/// All pages of a statement.
#[derive(Clone, Debug)]
pub(crate) struct StatementRead {
    /// Number of entries according to the last page.
    pub(crate) total: u64,
    pub(crate) entries: Vec<Value>,
}

/// A check that a client has asked for.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) tenant: usize,
    pub(crate) check: &'static Check,
    pub(crate) id: String,
    /// False if nobody knows what became of the request.
    pub(crate) has_answer: bool,
}

/// A grant on which a second operator has decided.
#[derive(Clone, Debug)]
pub(crate) struct DecidedGrant {
    pub(crate) tenant: usize,
    pub(crate) reference: String,
    pub(crate) is_confirmed: bool,
}

/// A check-in at a door, as answered.
#[derive(Clone, Debug)]
pub(crate) struct DoorCheckIn {
    pub(crate) tenant: usize,
    pub(crate) code: String,
    pub(crate) gate: String,
    pub(crate) is_new: bool,
}

/// All observations of a run.
#[derive(Debug, Default)]
pub(crate) struct Diary {
    pub(crate) facts: RefCell<Vec<Fact>>,
    /// Check-ins as answered, by client.
    pub(crate) check_ins: RefCell<Vec<(usize, Value)>>,
    pub(crate) door_check_ins: RefCell<Vec<DoorCheckIn>>,
    /// Codes of guests, as listed after the last fault.
    pub(crate) codes: RefCell<BTreeMap<String, TxnId>>,
    pub(crate) statements: RefCell<Vec<Reading<StatementRead>>>,
    pub(crate) balances: RefCell<Vec<Reading<u64>>>,
    /// The transactions that each client lists after the last fault.
    pub(crate) lists: RefCell<Vec<(usize, BTreeSet<TxnId>)>>,
    /// Webhooks of transactions as shown to an operator after the last fault.
    pub(crate) shown_webhooks: RefCell<BTreeMap<TxnId, Value>>,
    /// Kinds and ids in the register of consents of each client, as shown to an operator after the last fault.
    pub(crate) registers: RefCell<Vec<(usize, BTreeSet<String>)>>,
    pub(crate) checks: RefCell<Vec<Checked>>,
    pub(crate) decided: RefCell<Vec<DecidedGrant>>,
    /// Transactions opened with evidence, and the client.
    pub(crate) evidence_askers: RefCell<BTreeMap<TxnId, usize>>,
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
    /// Flows and the deduplication keys of the reports on them, answered or not.
    pub(crate) report_keys: RefCell<Vec<(String, String)>>,
    /// Bodies of polls of flows, by deduplication key of their webhook.
    pub(crate) polled: RefCell<Vec<(String, Bytes)>>,
    /// Requests being retried until they are answered.
    pub(crate) unanswered: RefCell<Vec<String>>,
    /// Impossible observations.
    wrong: RefCell<Vec<String>>,
}

impl Diary {
    pub(crate) fn record_fault(&self, what: String) {
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
