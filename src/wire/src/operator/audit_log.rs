//! The log of what operators have changed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::body::body;

body! { answer
    /// Entries of the audit log, oldest first.
    pub struct AuditLogPage {
        /// The entries.
        entries: Vec<AuditLogEntry>,
        /// The newest entry of all.
        head: AuditLogHead,
    }
}

body! { answer
    /// The newest entry of the audit log. Keep it elsewhere: it alone reveals that the end of the log was cut off.
    pub struct AuditLogHead {
        /// Its number; 0 if the log is empty.
        number: u64,
        /// Its hash in hexadecimal; zeros if the log is empty.
        hash: String,
    }
}

body! { answer
    /// An entry of the audit log. `hash` is the SHA-256 of the bytes of `previous_hash` and of `entry` as JSON in
    /// UTF-8, with its members sorted by name and without spaces.
    #[derive(Clone)]
    pub struct AuditLogEntry {
        /// From 1, without gaps.
        number: u64,
        /// The hash of the entry before it; zeros before the first.
        previous_hash: String,
        /// The hash of this entry.
        hash: String,
        /// `at`, `operator_id` (null for the token of the settings), `operator`, `operation` (its `operationId`),
        /// `ids`, `from` (an address) and `request_id`. With `stage` `asked`: `asked`, and `before` where the record
        /// was there. With `stage` `answered`: `asked_number`, `status`, `code` of a refusal, and `after`. Secrets are
        /// left out, and of a URL all but its origin. With `operation` `login`, which has `stage` `refused`: `count`
        /// failed logins with a `token` of an `operator` or a `connector` since the entry before. `from` is one
        /// address, or null for all others.
        entry: BTreeMap<String, Value>,
    }
}
