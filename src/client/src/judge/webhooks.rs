//! Webhooks that a receiver got, by transaction.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

/// The webhooks of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of webhooks.
    pub count: u32,
    /// Time at which the first came, since the beginning of the run.
    pub first: Duration,
    /// True if it reports that the verification passed.
    pub passed: bool,
}

/// All webhooks that arrived.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Arrivals by transaction.
    pub by_txn: HashMap<String, Arrival>,
    /// Number of bodies without a transaction.
    pub unreadable: u64,
}

impl Arrivals {
    /// Counts a webhook; `at` is the time since the beginning of the run.
    pub fn add(&mut self, body: &[u8], at: Duration) {
        match serde_json::from_slice::<Value>(body).ok().and_then(|body| subject(&body["data"])) {
            Some((txn, passed)) => {
                self.by_txn.entry(txn).and_modify(|arrival| arrival.count += 1).or_insert(Arrival {
                    count: 1,
                    first: at,
                    passed,
                });
            }
            None => self.unreadable += 1,
        }
    }
}

/// Returns the transaction and its outcome, in either spelling.
fn subject(data: &Value) -> Option<(String, bool)> {
    let txn = data["txn_id"].as_str().or(data["txnId"].as_str())?;
    let passed = data["verification_passed"].as_bool().or(data["verificationPassed"].as_bool())?;
    Some((txn.to_owned(), passed))
}
