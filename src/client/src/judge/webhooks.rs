//! Webhooks that a receiver got, counted by transaction.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

/// The webhooks received for one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of webhooks received.
    pub count: u32,
    /// Arrival of the first webhook, since the start of the run.
    pub first: Duration,
    /// True if the first webhook reports that the verification passed.
    pub passed: bool,
}

/// All webhooks received in a run.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Webhooks by transaction id.
    pub by_txn: HashMap<String, Arrival>,
    /// Number of webhooks whose body names no transaction.
    pub unreadable: u64,
}

impl Arrivals {
    /// Counts a webhook that arrived `at` this time since the start of the run.
    pub fn add(&mut self, body: &[u8], at: Duration) {
        match serde_json::from_slice::<Value>(body).ok().and_then(|body| read_outcome(&body["data"])) {
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

/// Reads the transaction id and whether the verification passed, in `snake_case` or `camelCase`.
fn read_outcome(data: &Value) -> Option<(String, bool)> {
    let txn = data["txn_id"].as_str().or(data["txnId"].as_str())?;
    let passed = data["verification_passed"].as_bool().or(data["verificationPassed"].as_bool())?;
    Some((txn.to_owned(), passed))
}
