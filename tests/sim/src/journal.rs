//! The journal of a run: the observations of clients, guests, residents and operators, with the times of request and
//! answer.

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

/// A state of a transaction that an answer showed, with the times of request and answer.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) txn: TxnId,
    pub(crate) sent_at: Duration,
    pub(crate) answered_at: Duration,
    pub(crate) observation: Observation,
}

/// The state of a transaction according to an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// Opened for one credit, valid until this time; a guest does not see the time.
    Opened {
        expires_at: Option<Timestamp>,
    },
    /// Ended by the resident's answer with this digest. `has_place` is false for a guest of a full or closed event.
    Accepted {
        digest: [u8; 32],
        has_place: bool,
    },
    /// Another answer of the resident had ended it before.
    AnsweredBefore,
    /// The resident's answer came after the window.
    TooLate,
    Pending,
    /// Ended, according to a poll with this body.
    Completed(Bytes),
    /// The page of the verification shows this end.
    Ended {
        verified: bool,
    },
    /// The portal or a list shows this end. Such a reading does not wait for replicas.
    Listed {
        verified: bool,
    },
    /// Ended, because its signed evidence can be read.
    Proven,
    Expired,
    Unknown,
}

impl Observation {
    /// Returns the name under which runs count the observation.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::Accepted { has_place: true, .. } => "accepted",
            Self::Accepted { has_place: false, .. } => "accepted without a place",
            Self::AnsweredBefore => "answered before",
            Self::TooLate => "too late",
            Self::Pending => "pending",
            Self::Completed(_) => "completed",
            Self::Ended { .. } => "ended on its page",
            Self::Listed { .. } => "ended in a list",
            Self::Proven => "proven",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        }
    }
}

impl Display for Observation {
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
            Self::Ended { verified: true } => "its page shows that it has ended, verified",
            Self::Ended { verified: false } => "its page shows that it has ended, not verified",
            Self::Listed { verified: true } => "a list shows that it has ended, verified",
            Self::Listed { verified: false } => "a list shows that it has ended, not verified",
            Self::Proven => "there is evidence that it has ended",
            Self::Expired => "its window has passed",
            Self::Unknown => "it is unknown",
        })
    }
}

/// A request that was refused for lack of credits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unpaid {
    /// Number of the client.
    pub(crate) tenant: usize,
    pub(crate) sent_at: Duration,
    pub(crate) answered_at: Duration,
}

/// A key that an operator has revoked or rotated.
#[derive(Clone, Debug)]
pub(crate) struct RevokedKey {
    /// Number of the client.
    pub(crate) tenant: usize,
    pub(crate) key: String,
    /// Time from which every node must refuse it.
    pub(crate) refused_from: Duration,
    /// True if it was revoked; false if it was rotated and expires.
    pub(crate) is_revoked: bool,
}

/// An accepted report about a flow.
#[derive(Clone, Debug)]
pub(crate) struct AcceptedReport {
    /// Number of the client.
    pub(crate) tenant: usize,
    pub(crate) flow: String,
    /// Deduplication key of its webhook.
    pub(crate) key: String,
    /// True if the report queued a webhook: it ends the flow, and the client has registered a URL.
    pub(crate) has_webhook: bool,
    /// The report, if it has ended its flow.
    pub(crate) end: Option<Value>,
}

/// Content read from a client's records between two moments.
#[derive(Clone, Debug)]
pub(crate) struct Reading<T> {
    /// Number of the client.
    pub(crate) tenant: usize,
    pub(crate) sent_at: Duration,
    pub(crate) answered_at: Duration,
    pub(crate) content: T,
}

/// A statement, read page by page.
#[derive(Clone, Debug)]
pub(crate) struct StatementRead {
    /// Number of entries according to the last page.
    pub(crate) total: u64,
    pub(crate) entries: Vec<Value>,
}

/// A check of a number that a client has requested.
#[derive(Clone, Debug)]
pub(crate) struct RequestedCheck {
    /// Number of the client.
    pub(crate) tenant: usize,
    pub(crate) check: &'static Check,
    pub(crate) id: String,
    /// False if the request was not answered, so that its outcome is unknown.
    pub(crate) has_answer: bool,
}

/// A large grant that a second operator has confirmed or refused.
#[derive(Clone, Debug)]
pub(crate) struct DecidedGrant {
    /// Number of the client.
    pub(crate) tenant: usize,
    pub(crate) reference: String,
    pub(crate) is_confirmed: bool,
}

/// A guest's check-in at a door, as the answer shows it.
#[derive(Clone, Debug)]
pub(crate) struct DoorCheckIn {
    /// Number of the client.
    pub(crate) tenant: usize,
    pub(crate) code: String,
    pub(crate) gate: String,
    pub(crate) is_new: bool,
}

/// The journal of a run.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) facts: RefCell<Vec<Fact>>,
    /// Answers to check-ins through the API, with the client's number.
    pub(crate) check_ins: RefCell<Vec<(usize, Value)>>,
    pub(crate) door_check_ins: RefCell<Vec<DoorCheckIn>>,
    /// Transactions of guests by their code, as listed after the last fault.
    pub(crate) guest_codes: RefCell<BTreeMap<String, TxnId>>,
    pub(crate) statements: RefCell<Vec<Reading<StatementRead>>>,
    pub(crate) balances: RefCell<Vec<Reading<u64>>>,
    /// The transactions that each client lists after the last fault.
    pub(crate) listed_transactions: RefCell<Vec<(usize, BTreeSet<TxnId>)>>,
    /// Webhooks of transactions as shown to an operator after the last fault.
    pub(crate) shown_webhooks: RefCell<BTreeMap<TxnId, Value>>,
    /// Kinds and ids in the register of consents of each client, as shown to an operator after the last fault.
    pub(crate) consent_registers: RefCell<Vec<(usize, BTreeSet<String>)>>,
    pub(crate) checks: RefCell<Vec<RequestedCheck>>,
    pub(crate) decided_grants: RefCell<Vec<DecidedGrant>>,
    /// Transactions opened with evidence, and the number of the client.
    pub(crate) evidence_owners: RefCell<BTreeMap<TxnId, usize>>,
    /// Digests of the answers that residents gave.
    pub(crate) resident_answers: RefCell<Vec<(TxnId, [u8; 32])>>,
    pub(crate) unpaid: RefCell<Vec<Unpaid>>,
    /// Steps of events, with the number of the client.
    pub(crate) event_facts: RefCell<Vec<(usize, EventFact)>>,
    pub(crate) revoked_keys: RefCell<Vec<RevokedKey>>,
    /// Keys that an operator has begun to revoke, with the time from which they may be refused.
    pub(crate) keys_being_revoked: RefCell<Vec<(String, Duration)>>,
    /// Transactions that an operator has begun to erase, with the time of the answer once it has come.
    pub(crate) erased: RefCell<BTreeMap<TxnId, Option<Duration>>>,
    pub(crate) accepted_reports: RefCell<Vec<AcceptedReport>>,
    /// The deduplication keys of all reports, answered or not, with the id of the flow.
    pub(crate) report_keys: RefCell<Vec<(String, String)>>,
    /// Bodies of polls of ended flows, with the id of the flow.
    pub(crate) flow_polls: RefCell<Vec<(String, Bytes)>>,
    /// Operators' changes that are retried until they are answered.
    pub(crate) pending_operations: RefCell<Vec<String>>,
    /// Observations that no order of events can explain.
    violations: RefCell<Vec<String>>,
}

impl Journal {
    /// Records an impossible observation, once.
    pub(crate) fn record_violation(&self, sentence: String) {
        let mut violations = self.violations.borrow_mut();
        if !violations.contains(&sentence) {
            violations.push(sentence);
        }
    }

    /// Returns the impossible observations so far.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.borrow().clone()
    }

    /// Records an operator's change that is retried until it is answered.
    pub(crate) fn add_pending_operation(&self, sentence: &str) {
        self.pending_operations.borrow_mut().push(sentence.to_owned());
    }

    /// Removes an operation of the same sentence: it has ended.
    pub(crate) fn remove_pending_operation(&self, sentence: &str) {
        self.pending_operations.borrow_mut().retain(|pending| pending != sentence);
    }
}
