//! The Lua scripts. Each works on keys of one hash slot, and is repeatable with the same arguments.
//!
//! A script that is repeated after its reply was lost finds the call, or the value, that it wrote before, and sends the
//! same reply.

use std::fmt::Write;
use std::sync::OnceLock;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// The confirmation that a reply needs, on servers with required replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// Replicas must have the script's writes, or the data that it read.
    ByReplicas,
    Unneeded,
}

/// A Lua script of the store.
#[derive(Debug)]
pub(crate) struct Script {
    /// Name in logs and metrics.
    pub(crate) name: &'static str,
    /// Name of the script's reply in errors.
    pub(crate) reply: &'static str,
    /// Source text.
    pub(crate) source: &'static str,
    /// The servers that must confirm the reply before it counts.
    pub(crate) confirmation: Confirmation,
    sha: OnceLock<String>,
}

impl Script {
    pub(crate) const fn new(
        name: &'static str,
        reply: &'static str,
        source: &'static str,
        confirmation: Confirmation,
    ) -> Self {
        Self { name, reply, source, confirmation, sha: OnceLock::new() }
    }

    /// Returns a script of a test, whose reply replicas must confirm.
    #[cfg(test)]
    pub(crate) const fn confirmed(name: &'static str, source: &'static str) -> Self {
        Self::new(name, "the reply", source, Confirmation::ByReplicas)
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

/// Declares each script: the file `lua/$file.lua` after `prelude.lua` and `records.lua`, with the flags that Redis
/// reads in its first line.
macro_rules! scripts {
    ($($(#[$doc:meta])* $constant:ident = $name:literal in $file:literal, $confirmation:ident,
        flags: $flags:literal;)+) => {
        $(
            $(#[$doc])*
            pub(crate) static $constant: Script = Script::new(
                $name,
                concat!("the reply to ", $name),
                concat!(
                    "#!lua",
                    $flags,
                    "\n",
                    include_str!("lua/prelude.lua"),
                    include_str!("lua/records.lua"),
                    include_str!(concat!("lua/", $file, ".lua"))
                ),
                Confirmation::$confirmation,
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
    APPLY = "apply" in "apply", ByReplicas, flags: "";
    /// Applies batches that take little memory or free some.
    APPLY_ON_FULL = "apply" in "apply", ByReplicas, flags: " flags=allow-oom";
    /// Runs a step on marks of the store.
    MARK_STEP = "step" in "apply", ByReplicas, flags: "";
    /// Runs a step on the nodes' heartbeats.
    NODE_STEP = "step" in "apply", Unneeded, flags: " flags=allow-oom";
    READ = "read" in "read", Unneeded, flags: " flags=no-writes";
    /// Reads data that replicas must confirm before the reply counts.
    CONFIRM_READ = "read" in "read", ByReplicas, flags: " flags=no-writes";
}
