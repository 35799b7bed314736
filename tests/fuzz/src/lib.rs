//! Everything that strangers feed, as targets of a fuzzer: functions of bytes that panic when a promise is broken.
//!
//! A target checks more than that nothing panics: what is read and written again reads the same, what is accepted is within its
//! bounds, and what is refused is not echoed. `tests/fuzz/README.md` says how targets are run. The functions are called by
//! the fuzzer (`programs/`) and by the replay of the corpus (`tests/corpus.rs`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a target that fails must end the run")]

use std::sync::OnceLock;

mod bodies;
mod browser;
mod callback;
mod credential;
mod intent;
mod redis_replies;
mod rows;
mod schema;
mod upstream;
mod values;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in the corpus.
    pub name: &'static str,
    /// Feeds it.
    pub run: fn(&[u8]),
}

/// The targets of parsers that know nothing of HTTP and of stores.
pub const PARSERS: &[Target] = &[
    Target { name: "callback_xml", run: callback::xml },
    Target { name: "callback_json", run: callback::json },
    Target { name: "callback_reply", run: callback::reply },
    Target { name: "credential", run: credential::signed },
    Target { name: "credential_text", run: credential::text },
    Target { name: "key_binding", run: credential::bound },
    Target { name: "jwks", run: credential::jwks },
    Target { name: "intent", run: intent::read },
    Target { name: "intent_signed", run: intent::signed },
    Target { name: "qr_value", run: intent::qr },
    Target { name: "json", run: values::json },
    Target { name: "values", run: values::values },
    Target { name: "requests", run: bodies::requests },
    Target { name: "reports", run: bodies::reports },
    Target { name: "checks", run: bodies::checks },
    Target { name: "upstream_answers", run: upstream::answers },
];

/// The targets of what browsers send.
pub const BROWSERS: &[Target] = &[
    Target { name: "headers", run: browser::headers },
    Target { name: "forms", run: browser::forms },
    Target { name: "queries", run: browser::queries },
];

/// The targets of what stores read.
pub const STORES: &[Target] = &[
    Target { name: "store_rows", run: rows::rows },
    Target { name: "sealed_records", run: rows::sealed },
    Target { name: "redis_replies", run: redis_replies::replies },
];

/// Every target. Each group is a program of its own, because libFuzzer looks at the counters of a whole program after every execution.
pub const GROUPS: [&[Target]; 3] = [PARSERS, BROWSERS, STORES];

/// Runs the target of this group that `SAKSHI_FUZZ_TARGET` names, the same one every time.
pub fn run(group: &'static [Target], data: &[u8]) {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("SAKSHI_FUZZ_TARGET").unwrap_or_default();
        group.iter().find(|target| target.name == name).expect("SAKSHI_FUZZ_TARGET names a target of this program")
    });
    (target.run)(data);
}

/// Splits off the first byte, which chooses among several things.
pub(crate) fn choice(data: &[u8], of: usize) -> Option<(usize, &[u8])> {
    data.split_first().map(|(first, rest)| (usize::from(*first) % of, rest))
}

/// What inputs put where nothing may be echoed: no sentence and no name of ours contains it.
pub(crate) const CANARY: &str = "Zq7";
