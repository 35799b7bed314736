//! The Lua scripts. Each works on keys of one hash slot, and is repeatable with the same arguments.
//!
//! A script that is repeated after its reply was lost finds the call, or the value, that it wrote before, and sends the
//! same reply.

use std::fmt::Write;
use std::sync::OnceLock;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// A script of the store.
#[derive(Debug)]
pub(crate) struct Script {
    /// Name in logs and metrics.
    pub(crate) name: &'static str,
    /// Name of the script's reply in errors.
    pub(crate) reply: &'static str,
    /// Source text.
    pub(crate) source: &'static str,
    /// True if replicas must confirm the script's writes, or the data that it read, before its reply counts.
    pub(crate) is_confirmed: bool,
    sha: OnceLock<String>,
}

impl Script {
    pub(crate) const fn new(name: &'static str, reply: &'static str, source: &'static str, is_confirmed: bool) -> Self {
        Self { name, reply, source, is_confirmed, sha: OnceLock::new() }
    }

    /// Returns the SHA-1 of the source in hexadecimal, by which the server caches the script.
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
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $is_confirmed:literal, $flags:literal,
        [$($part:literal),*];)+) => {
        $(
            $(#[$doc])*
            pub(crate) static $constant: Script = Script::new(
                $name,
                concat!("the reply to ", $name),
                concat!("#!lua", $flags, "\n", include_str!("lua/prelude.lua"), $(include_str!(concat!("lua/", $part,
                    ".lua")),)* include_str!(concat!("lua/", $name, ".lua"))),
                $is_confirmed,
            );
        )+
        /// All scripts.
        #[cfg(test)]
        pub(crate) static ALL: &[&Script] = &[$(&$constant),+];
    };
}

// Without flags a script is refused when the memory is full or the server is a replica. Scripts that
// free memory may run on a full server.
scripts! {
    BEAT = "beat", false, " flags=allow-oom", [];
    FORGET_NODE = "forget_node", false, " flags=allow-oom", [];
    KEEP_MARK = "keep_mark", true, "", [];
    CHECK = "check", true, "", [];
    COUNT_STEP = "count_step", true, "", [];
    COUNT_START = "count_start", true, "", [];
    ACCEPT_LOSS = "accept_loss", true, "", [];
    NOTE_LOSS = "note_loss", true, "", [];
    APPLY = "apply", true, "", ["records"];
    /// Applies batches that take little memory or free some.
    APPLY_ON_FULL = "apply", true, " flags=allow-oom", ["records"];
    READ = "read", false, " flags=no-writes", ["records"];
    /// Reads data that replicas must confirm before the reply counts.
    CONFIRM_READ = "read", true, " flags=no-writes", ["records"];
}
