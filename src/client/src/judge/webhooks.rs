//! What a webhook receiver got, by transaction.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

/// The webhooks of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// How many.
    pub count: u32,
    /// When the first came, since the beginning of the run.
    pub first: Duration,
    /// What it said of the verification.
    pub passed: bool,
}

/// Everything that arrived.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// By transaction.
    pub by_txn: HashMap<String, Arrival>,
    /// Bodies without a transaction.
    pub unreadable: u64,
}

impl Arrivals {
    /// Counts a webhook; `at` is the time since the beginning of the run.
    pub fn add(&mut self, body: &[u8], at: Duration) {
        match serde_json::from_slice::<Value>(body).ok().and_then(|body| subject(&body["data"])) {
            Some((txn, passed)) => {
                self.by_txn.entry(txn).and_modify(|arrival| arrival.count += 1).or_insert(Arrival { count: 1, first: at, passed });
            }
            None => self.unreadable += 1,
        }
    }
}

/// The transaction and its outcome, in either spelling.
fn subject(data: &Value) -> Option<(String, bool)> {
    let txn = data["txn_id"].as_str().or(data["txnId"].as_str())?;
    let passed = data["verification_passed"].as_bool().or(data["verificationPassed"].as_bool())?;
    Some((txn.to_owned(), passed))
}
