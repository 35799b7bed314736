//! The tester's own record of its actions and the answers to them, by transaction. The service's records are compared
//! with it, and never change it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// The service's reply to the answer that was posted for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 200.
    Accepted,
    /// 409: the last place had gone.
    Full,
    /// 409: the person is registered already.
    Duplicate,
    /// Any other status.
    Refused(u16),
    /// No reply came, although the answer was sent again.
    Unknown,
}

/// Kind of answer that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// A credential.
    Consent,
    /// The code of a person who declines.
    Refusal,
}

/// The answer that was posted for a transaction.
#[derive(Clone, Copy, Debug)]
pub struct PostedAnswer {
    /// The kind of answer.
    pub posted: Posted,
    /// Time at which it was first sent.
    pub sent: Duration,
    /// Time at which the reply had come.
    pub replied: Duration,
    /// The reply.
    pub reply: Reply,
}

/// The code of a person who declines (authority protocol, section 5).
pub const REJECTED: &str = "301";

/// A transaction's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polled {
    /// There is no result yet.
    Pending,
    /// It has ended.
    Finished {
        /// True if the verification passed.
        passed: bool,
        /// Reason for a failure.
        code: Option<String>,
    },
    /// The service answered with this status, or with 200 and no result.
    Refused(u16),
}

impl Polled {
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

/// One transaction. Times count from the beginning of the run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Number of the guest.
    pub guest: u64,
    /// Time at which the request that opened it was sent.
    pub asked: Duration,
    /// Time at which the answer to that had come.
    pub opened: Duration,
    /// End of its intent, in seconds since the Unix epoch.
    pub expires: Option<i64>,
    /// The person's answer, unless they left.
    pub answered: Option<PostedAnswer>,
    /// The last result that was read.
    pub polled: Option<Polled>,
}

/// The end of a guest's visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The guest left, declined, or got an answer to a credential, as planned.
    Done,
    /// Turned away at the full event.
    TurnedAway,
    /// A step failed, so the rest did not happen.
    Failed,
}

/// The service's answer to a check-in at a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckInAnswer {
    /// The guest is checked in now.
    In {
        /// Time and gate, as the door shows them.
        when: String,
    },
    /// The guest was checked in before.
    Already {
        /// Time and gate of that check-in.
        when: String,
    },
    /// Another state, or another status than 200.
    Refused(String),
    /// No answer came, although the scan was sent again.
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
    /// True if it was stored without a network, and sent later.
    pub kept: bool,
    /// The answer to the last try.
    pub answer: CheckInAnswer,
}

/// All records of a run.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Entries by transaction.
    pub entries: HashMap<String, Entry>,
    /// Guests whose person had come before, with the number of that person's first guest.
    pub comes_again: HashMap<u64, u64>,
    /// Scans at doors.
    pub scans: Vec<Scan>,
    /// Times at which guests learned that the event is full.
    pub turned_away: Vec<Duration>,
    /// Number of openings whose answer never came: each may have cost a credit.
    pub unknown_openings: u64,
    /// Transactions that were given to more than one guest.
    pub shared: Vec<String>,
    /// The first problems, in words.
    pub problems: Vec<String>,
    /// Number of visits that have ended.
    pub visits: u64,
    /// Number of visits with a failed step.
    pub failed: u64,
}

/// Number of problems that are stored.
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

    /// Records the end of its intent, in seconds since the Unix epoch.
    pub fn expires(&self, txn: &str, at: i64) {
        self.change(txn, |entry| entry.expires = Some(at));
    }

    /// Records the person's answer; called again with the reply when it comes.
    pub fn answered(&self, txn: &str, answered: PostedAnswer) {
        self.change(txn, |entry| entry.answered = Some(answered));
    }

    /// Records a result that was read.
    pub fn polled(&self, txn: &str, polled: Polled) {
        self.change(txn, |entry| entry.polled = Some(polled));
    }

    /// Records that a guest is the person who came as this earlier guest.
    pub fn came_again(&self, guest: u64, first: u64) {
        self.records().comes_again.insert(guest, first);
    }

    /// Records a scan of a guest at a door, with its answer.
    pub fn scanned(&self, scan: Scan) {
        self.records().scans.push(scan);
    }

    /// Records an opening whose answer never came.
    pub fn opening_unknown(&self) {
        self.records().unknown_openings += 1;
    }

    /// Records that a guest learned that the event is full.
    pub fn turned_away(&self, told: Duration) {
        self.records().turned_away.push(told);
    }

    /// Records a problem: one sentence without personal data.
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

    /// Reads the records without copying them.
    pub fn with<T>(&self, look: impl FnOnce(&Records) -> T) -> T {
        look(&self.records())
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
    /// Iterates over transactions whose answer of this kind got this reply.
    pub fn replied(&self, posted: Posted, reply: Reply) -> impl Iterator<Item = &str> {
        let is = move |entry: &Entry| {
            entry.answered.is_some_and(|answered| answered.posted == posted && answered.reply == reply)
        };
        self.entries.iter().filter(move |(_, entry)| is(entry)).map(|(txn, _)| txn.as_str())
    }

    /// Returns the person of a transaction's guest: the number of their first guest. None if this tester did not open
    /// the transaction.
    #[must_use]
    pub fn person(&self, txn: &str) -> Option<u64> {
        let guest = self.entries.get(txn)?.guest;
        Some(self.comes_again.get(&guest).copied().unwrap_or(guest))
    }

    /// Formats the records of a transaction as a line.
    #[must_use]
    pub fn line(&self, txn: &str) -> String {
        let Some(entry) = self.entries.get(txn) else { return format!("{txn}: not opened by this tester") };
        let opened = format!(
            "{txn}: guest {}, opened {:.3} s to {:.3} s",
            entry.guest,
            entry.asked.as_secs_f64(),
            entry.opened.as_secs_f64()
        );
        let answered = match entry.answered {
            None => "left without an answer".to_owned(),
            Some(it) => {
                format!(
                    "{:?} {:.3} s to {:.3} s: {:?}",
                    it.posted,
                    it.sent.as_secs_f64(),
                    it.replied.as_secs_f64(),
                    it.reply
                )
            }
        };
        format!("{opened}, {answered}")
    }
}
