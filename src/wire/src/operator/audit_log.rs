//! The audit log: changes by operators, and failed logins.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::body::body;

body! { response
    /// Entries of the audit log, oldest first.
    pub struct AuditLogPage {
        /// The entries.
        entries: Vec<AuditLogEntry>,
        /// The newest entry of the whole log.
        head: AuditLogHead,
    }
}

body! { response
    /// The newest entry of the audit log. Store it outside the service: only it reveals that the end of the log was cut
    /// off.
    pub struct AuditLogHead {
        /// The number of the entry; 0 if the log is empty.
        number: u64,
        /// The hash of the entry in hexadecimal; zeros if the log is empty.
        hash: String,
    }
}

body! { response
    /// An entry of the audit log. `hash` is the SHA-256 of the bytes of `previous_hash`, followed by `entry` as JSON in
    /// UTF-8 with members sorted by name and without spaces.
    #[derive(Clone)]
    pub struct AuditLogEntry {
        /// The number of the entry, from 1 without gaps.
        number: u64,
        /// The hash of the previous entry; zeros in the first entry.
        previous_hash: String,
        /// The hash of this entry.
        hash: String,
        /// Every entry has `at`, `operator_id` (null for the token of the settings), `operator`, `operation` (an
        /// `operationId`), `ids`, `from` (an address) and `request_id`. An entry with `stage` `asked` precedes the
        /// change: it has `asked`, and `before` if the record exists. An entry with `stage` `answered` follows it:
        /// `asked_number`, `status`, `code` of a refusal, and `after`. Secrets are omitted, and of URLs everything but
        /// the origin. An entry with `operation` `login` and `stage` `refused` counts failed logins since the previous
        /// one: `count`, and `token`, which is `operator` or `connector`. Its `from` is null for all further addresses.
        entry: BTreeMap<String, Value>,
    }
}
