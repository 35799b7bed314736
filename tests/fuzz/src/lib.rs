//! Fuzz targets for all untrusted input: functions of bytes that panic when a promise is broken.
//!
//! A target checks more than the absence of panics: values survive writing and reading, accepted input is within its
//! bounds, and refused input is not echoed. See `tests/fuzz/README.md`. The fuzzer (`programs/`) and the replay of the
//! corpus (`tests/corpus.rs`) call the functions.

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

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target and of its folder in the corpus.
    pub name: &'static str,
    /// The function that takes an input.
    pub run: fn(&[u8]),
}

/// Targets of parsers without HTTP and stores.
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

/// Targets of browser input.
pub const BROWSERS: &[Target] = &[
    Target { name: "headers", run: browser::headers },
    Target { name: "forms", run: browser::forms },
    Target { name: "queries", run: browser::queries },
];

/// Targets of input from stores.
pub const STORES: &[Target] = &[
    Target { name: "store_rows", run: rows::rows },
    Target { name: "sealed_records", run: rows::sealed },
    Target { name: "redis_replies", run: redis_replies::replies },
];

/// All targets, grouped by program, because libFuzzer reads the counters of a whole program after every execution.
pub const GROUPS: [&[Target]; 3] = [PARSERS, BROWSERS, STORES];

/// Runs the target of this group named by `SAKSHI_FUZZ_TARGET`; the name may not change.
pub fn run(group: &'static [Target], data: &[u8]) {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("SAKSHI_FUZZ_TARGET").unwrap_or_default();
        group.iter().find(|target| target.name == name).expect("SAKSHI_FUZZ_TARGET names a target of this program")
    });
    (target.run)(data);
}

/// Splits off the first byte, which selects a case.
pub(crate) fn choice(data: &[u8], cases: usize) -> Option<(usize, &[u8])> {
    data.split_first().map(|(first, rest)| (usize::from(*first) % cases, rest))
}

/// Marker in inputs that may not be echoed; no sentence and no name of the service contains it.
pub(crate) const CANARY: &str = "Zq7";
