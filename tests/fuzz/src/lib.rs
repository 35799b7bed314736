//! Everything that strangers feed, as targets of a fuzzer: functions of bytes that panic when a promise is broken.
//!
//! A target checks more than that nothing panics: what is read and written again reads the same, what is accepted is within its
//! bounds, and what is refused is not echoed. `tests/fuzz/README.md` says how targets are run. The functions are called by
//! the fuzzer (`fuzzer.rs`) and by the replay of the corpus (`tests/corpus.rs`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a target that fails must end the run")]

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

/// Every target.
pub const TARGETS: &[Target] = &[
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
    Target { name: "headers", run: browser::headers },
    Target { name: "forms", run: browser::forms },
    Target { name: "queries", run: browser::queries },
    Target { name: "upstream_answers", run: upstream::answers },
    Target { name: "store_rows", run: rows::rows },
    Target { name: "sealed_records", run: rows::sealed },
    Target { name: "redis_replies", run: redis_replies::replies },
];

/// The target of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Splits off the first byte, which chooses among several things.
pub(crate) fn choice(data: &[u8], of: usize) -> Option<(usize, &[u8])> {
    data.split_first().map(|(first, rest)| (usize::from(*first) % of, rest))
}

/// What inputs put where nothing may be echoed: no sentence and no name of ours contains it.
pub(crate) const CANARY: &str = "Zq7";
