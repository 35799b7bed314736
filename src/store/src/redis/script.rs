//! The scripts: one for each operation, each on keys of one hash slot, each repeatable with the same
//! arguments.
//!
//! A script that is executed again after its reply was lost finds what it did and replies the same: it
//! recognises the id, the reference, the ciphertext or the call that it wrote.

use std::fmt::Write;
use std::sync::OnceLock;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// A script of the store.
#[derive(Debug)]
pub(crate) struct Script {
    /// Its name in logs and metrics.
    pub(crate) name: &'static str,
    /// What its reply is called in errors.
    pub(crate) reply: &'static str,
    /// Its source.
    pub(crate) source: &'static str,
    /// Whether replicas must have what it wrote, or found done, before its reply counts.
    pub(crate) is_confirmed: bool,
    sha: OnceLock<String>,
}

impl Script {
    pub(crate) const fn new(name: &'static str, reply: &'static str, source: &'static str, is_confirmed: bool) -> Self {
        Self { name, reply, source, is_confirmed, sha: OnceLock::new() }
    }

    /// Its SHA-1 in hexadecimal, by which the server caches it.
    pub(crate) fn sha(&self) -> &str {
        self.sha.get_or_init(|| {
            let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, self.source.as_bytes());
            digest.as_ref().iter().fold(String::with_capacity(40), |mut text, byte| {
                // Writing to a string does not fail.
                let _ = write!(text, "{byte:02x}");
                text
            })
        })
    }
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $is_confirmed:literal, $flags:literal, [$($part:literal),*];)+) => {
        $(
            $(#[$doc])*
            pub(crate) static $constant: Script = Script::new(
                $name,
                concat!("the reply to ", $name),
                concat!("#!lua", $flags, "\n", include_str!("lua/prelude.lua"), $(include_str!(concat!("lua/", $part, ".lua")),)* include_str!(concat!("lua/", $name, ".lua"))),
                $is_confirmed,
            );
        )+
        /// All of them.
        #[cfg(test)]
        pub(crate) static ALL: &[&Script] = &[$(&$constant),+];
    };
}

// Without flags a script is refused when the memory is full or the server is a replica. Scripts that
// free memory may run on a full server.
scripts! {
    OPEN_TRANSACTION = "open_transaction", true, "", ["ledger", "repetition", "gate"];
    COMPLETE_TRANSACTION = "complete_transaction", true, "", ["gate", "outbox", "notices"];
    EXPIRE_TRANSACTION = "expire_transaction", true, "", ["transaction_fields", "notices"];
    LOAD_TRANSACTION = "load_transaction", false, " flags=no-writes", ["transaction_fields"];
    /// The same, and its reply counts when the replicas have what it tells.
    CONFIRM_TRANSACTION = "load_transaction", true, " flags=no-writes", ["transaction_fields"];
    /// It does no harm if the note of who has a copy is lost: a watcher also reads from time to time.
    WATCH_TRANSACTION = "watch_transaction", false, " flags=allow-oom", ["transaction_fields"];
    RESERVE_CREDENTIAL = "credential_reserve", true, "", [];
    RELEASE_CREDENTIAL = "credential_release", true, " flags=allow-oom", [];
    LOAD_IDEMPOTENT_ANSWER = "load_idempotent_answer", false, " flags=no-writes", [];
    /// The same, and its reply counts when the replicas have what it tells.
    CONFIRM_IDEMPOTENT_ANSWER = "load_idempotent_answer", true, " flags=no-writes", [];
    CLAIM_DELIVERY = "claim_delivery", true, " flags=allow-oom", [];
    SETTLE_DELIVERY = "settle_delivery", true, " flags=allow-oom", [];
    ABANDON_ATTEMPTS = "abandon_attempts", true, " flags=allow-oom", [];
    TAKE_OVER = "take_over", true, " flags=allow-oom", [];
    /// Redis treats reading a consumer group as a write; it does no harm if that is lost.
    DUE_DELIVERIES = "due_deliveries", false, " flags=allow-oom", [];
    LOAD_DELIVERY = "load_delivery", false, " flags=no-writes", [];
    MOVE_CREDITS = "move_credits", true, "", ["ledger"];
    ACCOUNT = "account", false, " flags=no-writes", [];
    CREATE_CLIENT = "create_client", true, "", [];
    PATCH_CLIENT = "patch_client", true, "", [];
    INDEX_CLIENT = "index_client", true, "", [];
    INDEX_OF_CLIENT = "index_of_client", true, "", [];
    CREATE_APP = "create_app", true, "", [];
    PATCH_APP = "patch_app", true, "", [];
    NAME_KEY = "name_key", true, "", [];
    CREATE_KEY = "create_key", true, "", [];
    RETIRE_KEY = "retire_key", true, "", ["retirement"];
    IMPORT_CLIENT = "import_client", true, "", [];
    IMPORT_KEY = "import_key", true, "", ["retirement"];
    OPEN_SESSION = "open_session", true, "", [];
    LOAD_SESSION = "load_session", false, " flags=no-writes", [];
    /// Prolonging frees no memory, but a session must not end because the memory is full.
    PROLONG_SESSION = "prolong_session", true, " flags=allow-oom", [];
    END_SESSION = "end_session", true, " flags=allow-oom", [];
    KEEP_REFUSAL = "keep_refusal", true, "", [];
    LOAD_REFUSALS = "load_refusals", false, " flags=no-writes", [];
    APPEND_AUDIT = "append_audit", true, "", [];
    ADD_OPERATOR = "add_operator", true, "", [];
    REVOKE_OPERATOR = "revoke_operator", true, " flags=allow-oom", [];
    ERASE_RECORD = "erase_record", true, " flags=allow-oom", [];
    ERASE_EVENT = "erase_event", true, " flags=allow-oom", [];
    FIND_REGISTRATION = "find_registration", false, " flags=no-writes", [];
    ERASE_REGISTRATION = "erase_registration", true, " flags=allow-oom", [];
    PUT_MOVED = "put_moved", true, "", [];
    PUT_QUEUE = "put_queue", true, "", [];
    ASSIGN_QUEUE = "assign_queue", true, "", [];
    LOAD_QUEUE = "load_queue", false, " flags=allow-oom", [];
    CREATE_EVENT = "create_event", true, "", ["repetition"];
    LOAD_EVENT = "load_event", false, " flags=no-writes", [];
    LIST_EVENTS = "list_events", false, " flags=allow-oom", [];
    PATCH_EVENT = "patch_event", true, "", [];
    LIST_REGISTRATIONS = "list_registrations", false, " flags=no-writes", [];
    OPEN_FLOW = "open_flow", true, "", ["repetition", "lapsing"];
    TAKE_ORDER_LEASE = "take_order_lease", true, "", [];
    END_ORDER_LEASE = "end_order_lease", false, " flags=allow-oom", [];
    LOAD_FLOW = "load_flow", false, " flags=no-writes", [];
    LOAD_REPORT = "load_report", false, " flags=no-writes", [];
    COMMIT_FLOW = "commit_flow", true, "", ["outbox", "lapsing"];
    LIST_WEBHOOKS = "list_webhooks", false, " flags=no-writes", [];
    LOAD_DELIVERIES = "load_deliveries", false, " flags=no-writes", [];
    LAPSED_FLOWS = "lapsed_flows", false, " flags=no-writes", [];
    FORGET_LAPSE = "forget_lapse", true, " flags=allow-oom", [];
    NOW = "now", false, " flags=no-writes", [];
    BEAT = "beat", false, " flags=allow-oom", [];
    FORGET_NODE = "forget_node", false, " flags=allow-oom", [];
    HOLDERS = "holders", false, " flags=allow-oom", [];
    KEEP_MARK = "keep_mark", true, "", [];
    CHECK = "check", true, "", [];
    COUNT_STEP = "count_step", true, "", [];
    COUNT_START = "count_start", true, "", [];
    ACCEPT_LOSS = "accept_loss", true, "", [];
    NOTE_LOSS = "note_loss", true, "", [];
    FIND_SEALED = "find_sealed", false, " flags=no-writes", [];
    /// A value is replaced by one of the same length.
    REPLACE_SEALED = "replace_sealed", true, " flags=allow-oom", [];
}
