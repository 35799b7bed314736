//! Invariants of what is kept, checked in production: before a batch goes to an engine, and when an engine has answered.
//!
//! Those of a kind of record are declared beside its fields in `records` ([`rule`]); what a batch needs beside an operation is in
//! [`money`], [`outbox`] and [`people`]; its form in [`form`]; and what engines may answer in [`answers`]. They are about what the
//! store writes, so no input makes one false. A broken one is counted and logged by its name, and its step fails with
//! [`StoreError::Broken`](crate::StoreError::Broken): nothing is committed, and no such record is served.
//!
//! A condition is false only if it is false whatever the batch does not know. What only an engine knows at the time of a commit, such as
//! a balance, is kept by guards; here it is demanded that the batch has them. Results are looked at afterwards.
//!
//! Readers that look for damage read past the checks: the audit of ledgers, readers of the audit log, erasures, new encryption keys and moves.

mod answers;
mod change;
mod checked;
mod form;
mod money;
mod outbox;
mod people;
mod rule;
mod step;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use self::change::changed;
pub(crate) use self::checked::CheckedEngine;
pub(crate) use self::rule::is_id;
pub use self::rule::{Home, Need, Rule};

/// The names of all invariants of the store: of each kind of record, then of batches and of answers.
pub fn invariants() -> impl Iterator<Item = (&'static str, &'static str)> {
    let steps = [money::RULES, outbox::RULES, people::RULES].into_iter().flatten().map(|rule| ("batches", rule.name));
    let form = form::NAMES.iter().map(|name| ("batches", *name));
    let answers = answers::NAMES.iter().chain([&change::VERSION_RISES]).map(|name| ("answers", *name));
    rule::names().chain(steps).chain(form).chain(answers)
}
