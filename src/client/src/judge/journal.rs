//! The tester's own records of its requests and the service's responses, by transaction. The service's records are
//! compared with them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// The service's reply to a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 200.
    Accepted,
    /// 409: the event is full.
    Full,
    /// 409: the person is registered already.
    Duplicate,
    /// Any other status.
    Refused(u16),
    /// No reply, even after retries.
    Unknown,
}

/// The kind of a posted callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackKind {
    /// The credential of a person who consents.
    Consent,
    /// The error code of a person who declines.
    Refusal,
}

/// The callback that was posted for a transaction.
#[derive(Clone, Copy, Debug)]
pub struct PostedCallback {
    /// The kind of callback.
    pub kind: CallbackKind,
    /// Time of the first attempt, since the start of the run.
    pub sent_at: Duration,
    /// Time of the reply, since the start of the run.
    pub replied_at: Duration,
    /// The service's reply.
    pub reply: Reply,
}

/// The error code of a callback from a person who declines (authority protocol, section 5).
pub const REJECTED: &str = "301";

/// The result of polling a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollResult {
    /// The transaction is pending.
    Pending,
    /// The transaction has ended.
    Finished {
        /// True if the verification passed.
        passed: bool,
        /// The error code of a failure.
        code: Option<String>,
    },
    /// The service responded with this status, or with 200 without a result.
    Refused(u16),
}

impl PollResult {
    /// Reads the body of a response with status 200.
    #[must_use]
    pub fn read(body: &Value) -> Self {
        let data = &body["data"];
        if data["pending"] == true || body["pending"] == true {
            return Self::Pending;
        }
        let code = data["error_code"].as_str().map(str::to_owned);
        data["verification_passed"].as_bool().map_or(Self::Refused(200), |passed| Self::Finished { passed, code })
    }
}

/// The records of a transaction. Times count from the start of the run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The number of the guest.
    pub guest: u64,
    /// Time at which the opening request was sent.
    pub requested_at: Duration,
    /// Time of the response to the opening request.
    pub opened_at: Duration,
    /// Expiry of the intent, in seconds since the Unix epoch.
    pub intent_expires_at: Option<i64>,
    /// The callback of the person; `None` if the person left.
    pub callback: Option<PostedCallback>,
    /// The last result of polling.
    pub poll_result: Option<PollResult>,
}

/// The end of a guest's visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The guest left, declined, or got a reply to a credential, as planned.
    Done,
    /// The guest was turned away, because the event was full.
    TurnedAway,
    /// A step failed, so the guest skipped the remaining steps.
    Failed,
}

/// The service's response to a check-in at a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckInAnswer {
    /// The guest is checked in now.
    In {
        /// Time and gate, as the door shows them.
        when: String,
    },
    /// The guest was checked in before.
    Already {
        /// Time and gate of the earlier check-in, as the door shows them.
        when: String,
    },
    /// The check-in was refused, with this state or status.
    Refused(String),
    /// No response, even after retries.
    Lost,
}

/// A scan of a guest's code at a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The gate of the door.
    pub gate: String,
    /// The registration code of the guest.
    pub code: String,
    /// The time of the scan, in milliseconds since 1970.
    pub at: i64,
    /// True if the scan was stored without a network, and sent later.
    pub was_sent_later: bool,
    /// The response to the last attempt.
    pub answer: CheckInAnswer,
}

/// All records of a run.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Records of transactions, by id.
    pub entries: HashMap<String, Entry>,
    /// For each guest who is the same person as an earlier guest: the number of that person's first guest.
    pub repeat_guests: HashMap<u64, u64>,
    /// Scans at doors.
    pub scans: Vec<Scan>,
    /// Times at which guests were turned away because the event was full.
    pub turned_away: Vec<Duration>,
    /// Number of opening requests without a response. Each may have cost a credit.
    pub unknown_openings: u64,
    /// Ids of transactions that several guests received.
    pub shared: Vec<String>,
    /// The first problems of the run.
    pub problems: Vec<String>,
    /// Number of ended visits.
    pub visits: u64,
    /// Number of visits with a failed step.
    pub failed: u64,
}

/// Maximum number of problems that are recorded.
const PROBLEMS_MAX: usize = 50;

/// The tester's records, which any thread may write.
#[derive(Debug, Default)]
pub struct Journal(Mutex<Records>);

impl Journal {
    /// Records that a transaction was opened.
    pub fn opened(&self, txn: &str, entry: Entry) {
        let mut records = self.records();
        if records.entries.insert(txn.to_owned(), entry).is_some() {
            records.shared.push(txn.to_owned());
        }
    }

    /// Records the expiry of a transaction's intent, in seconds since the Unix epoch.
    pub fn expires(&self, txn: &str, at: i64) {
        self.change(txn, |entry| entry.intent_expires_at = Some(at));
    }

    /// Records the callback of a person; called again with the reply.
    pub fn record_callback(&self, txn: &str, callback: PostedCallback) {
        self.change(txn, |entry| entry.callback = Some(callback));
    }

    /// Records a result of polling.
    pub fn polled(&self, txn: &str, result: PollResult) {
        self.change(txn, |entry| entry.poll_result = Some(result));
    }

    /// Records that a guest is the same person as an earlier guest.
    pub fn came_again(&self, guest: u64, first: u64) {
        self.records().repeat_guests.insert(guest, first);
    }

    /// Records a scan at a door, with its response.
    pub fn scanned(&self, scan: Scan) {
        self.records().scans.push(scan);
    }

    /// Records an opening request without a response.
    pub fn opening_unknown(&self) {
        self.records().unknown_openings += 1;
    }

    /// Records that a guest was turned away at this time, because the event was full.
    pub fn turned_away(&self, at: Duration) {
        self.records().turned_away.push(at);
    }

    /// Records a problem, in a sentence without personal data.
    pub fn problem(&self, sentence: String) {
        let mut records = self.records();
        if records.problems.len() < PROBLEMS_MAX {
            records.problems.push(sentence);
        }
    }

    /// Records the end of a visit.
    pub fn ended(&self, visit: Visit) {
        let mut records = self.records();
        records.visits += 1;
        records.failed += u64::from(visit == Visit::Failed);
    }

    /// Reads the records without a copy.
    pub fn with<T>(&self, read: impl FnOnce(&Records) -> T) -> T {
        read(&self.records())
    }

    fn change(&self, txn: &str, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.records().entries.get_mut(txn) {
            change(entry);
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    /// Returns the ids of transactions whose callback of this kind got this reply.
    pub fn txns_with_reply(&self, kind: CallbackKind, reply: Reply) -> impl Iterator<Item = &str> {
        let matches = move |entry: &Entry| {
            entry.callback.is_some_and(|callback| callback.kind == kind && callback.reply == reply)
        };
        self.entries.iter().filter(move |(_, entry)| matches(entry)).map(|(txn, _)| txn.as_str())
    }

    /// Returns the number of the first guest who is the same person as the guest of a transaction. `None` if this
    /// tester did not open the transaction.
    #[must_use]
    pub fn person(&self, txn: &str) -> Option<u64> {
        let guest = self.entries.get(txn)?.guest;
        Some(self.repeat_guests.get(&guest).copied().unwrap_or(guest))
    }

    /// Formats the records of a transaction as one line.
    #[must_use]
    pub fn line(&self, txn: &str) -> String {
        let Some(entry) = self.entries.get(txn) else { return format!("{txn}: not opened by this tester") };
        let opened = format!(
            "{txn}: guest {}, opened {:.3} s to {:.3} s",
            entry.guest,
            entry.requested_at.as_secs_f64(),
            entry.opened_at.as_secs_f64()
        );
        let end = match entry.callback {
            None => "left without an answer".to_owned(),
            Some(callback) => {
                format!(
                    "{:?} {:.3} s to {:.3} s: {:?}",
                    callback.kind,
                    callback.sent_at.as_secs_f64(),
                    callback.replied_at.as_secs_f64(),
                    callback.reply
                )
            }
        };
        format!("{opened}, {end}")
    }
}
