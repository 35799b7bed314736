//! Invariants: conditions on the service's own state that no input can make false.
//!
//! Each invariant has a constant name, which appears in the log and in the error. A counter has the part of the service
//! as its label. No state is disclosed. A step that breaks an invariant fails: its batch is not committed, its record
//! not served, its webhook not sent.

use std::cell::RefCell;
use std::fmt;

/// A part of the service that has invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A batch on its way to an engine.
    Batch,
    /// A record, an entry or a member on its way from an engine.
    Record,
    /// The response of an engine to a batch or a query.
    Answer,
    /// The credit ledger.
    Ledger,
    /// Transactions and events with an actor.
    Live,
    /// The webhook dispatcher.
    Dispatcher,
    /// Limits of concurrent work, memory, processor time and connections.
    Bounds,
    /// Use cases.
    Service,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 8] = [
        Self::Batch,
        Self::Record,
        Self::Answer,
        Self::Ledger,
        Self::Live,
        Self::Dispatcher,
        Self::Bounds,
        Self::Service,
    ];

    /// Returns the counter's label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Record => "record",
            Self::Answer => "answer",
            Self::Ledger => "ledger",
            Self::Live => "live",
            Self::Dispatcher => "dispatcher",
            Self::Bounds => "bounds",
            Self::Service => "service",
        }
    }
}

/// A broken invariant, already counted and logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(&'static str);

impl Broken {
    /// Counts and logs an invariant that does not hold.
    #[cold]
    #[must_use]
    pub fn new(part: Part, name: &'static str) -> Self {
        metrics::counter!("sakshi_invariants_broken_total", "part" => part.as_str()).increment(1);
        // A thread that is ending collects nothing.
        let _ = COLLECTED_NAMES.try_with(|collected| collected.borrow_mut().as_mut().map(|names| names.push(name)));
        tracing::error!(invariant.part = part.as_str(), invariant.name = name, "an invariant is broken");
        Self(name)
    }

    /// Returns the name of the invariant.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

thread_local! {
    /// Names of the invariants that this thread breaks, while [`broken_by`] collects them.
    static COLLECTED_NAMES: RefCell<Option<Vec<&'static str>>> = const { RefCell::new(None) };
}

/// Runs work on this thread and returns the names of the invariants that it breaks, for tests.
pub fn broken_by(work: impl FnOnce()) -> Vec<&'static str> {
    COLLECTED_NAMES.with(|collected| *collected.borrow_mut() = Some(vec![]));
    work();
    COLLECTED_NAMES.with(|collected| collected.borrow_mut().take()).unwrap_or_default()
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an invariant is broken: {}", self.0)
    }
}

impl std::error::Error for Broken {}

/// Checks an invariant.
///
/// # Errors
/// [`Broken`] when the invariant does not hold.
#[inline]
pub fn ensure(part: Part, name: &'static str, condition: bool) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken::new(part, name)) }
}

/// Checks an invariant, and returns `condition`. A broken invariant is only counted and logged: for steps that cannot
/// return an error or must continue, such as a release.
#[inline]
pub fn holds(part: Part, name: &'static str, condition: bool) -> bool {
    ensure(part, name, condition).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_invariant_is_an_error_with_its_name_alone() {
        assert_eq!(ensure(Part::Batch, "a is b", true), Ok(()));
        let broken = ensure(Part::Batch, "a is b", false).unwrap_err();
        assert_eq!((broken.name(), broken.to_string().as_str()), ("a is b", "an invariant is broken: a is b"));
        let names = broken_by(|| assert!(holds(Part::Live, "a is a", true) && !holds(Part::Live, "a is b", false)));
        assert_eq!(names, ["a is b"]);
        assert_eq!(broken_by(|| ()), Vec::<&str>::new(), "earlier names are not returned again");
    }

    #[test]
    fn parts_have_different_labels() {
        let mut words = Part::ALL.map(Part::as_str);
        words.sort_unstable();
        assert!(words.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
