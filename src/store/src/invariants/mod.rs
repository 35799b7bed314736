//! Invariants of the stored data, checked in production: before a batch goes to an engine, and after an engine has
//! answered.
//!
//! The invariants of a kind of record are declared beside its fields in `records` ([`rule`]). Operations that need each
//! other in a batch are in [`money`], [`outbox`] and [`people`], the form of batches in [`form`], and the answers of
//! engines in [`answers`]. They concern the store's own writes, so no input makes one false. A broken invariant is
//! counted and logged by its name, and its step fails with [`StoreError::Broken`](crate::StoreError::Broken): nothing
//! is committed, and no such record is served.
//!
//! A condition counts as false only if no value of the unknown fields makes it true. Guards protect values that only
//! the engine knows at commit time, such as a balance; here the batch must have these guards. Results are checked
//! afterwards.
//!
//! Readers that look for damage bypass the checks: the audit of ledgers, readers of the audit log, erasures, new
//! encryption keys and moves.

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

pub(crate) use self::change::check_change;
pub(crate) use self::checked::CheckedEngine;
pub(crate) use self::rule::is_id;
pub use self::rule::{KeyRule, Need, Rule};

/// Returns the names of all invariants of the store, each after its group: the kind of record, `batches` or `answers`.
pub fn invariants() -> impl Iterator<Item = (&'static str, &'static str)> {
    let steps = [money::RULES, outbox::RULES, people::RULES].into_iter().flatten().map(|rule| ("batches", rule.name));
    let form = form::NAMES.iter().map(|name| ("batches", *name));
    let answers = answers::NAMES.iter().chain([&change::VERSION_RISES]).map(|name| ("answers", *name));
    rule::names().chain(steps).chain(form).chain(answers)
}
