//! Faults from outside, for simulations: before an actor is polled, whoever simulates may say that it panics there, which is a panic
//! at the await where it waits, or that it does not run for a while, as on an arbiter that hangs.

use std::cell::RefCell;
use std::time::Duration;

/// What happens to an actor instead of its being polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// It panics.
    Panic,
    /// It does not run for so long.
    Hang(Duration),
}

/// Decides what happens to an actor of this type.
pub type Interfere = Box<dyn FnMut(&'static str) -> Option<Interference>>;

thread_local! {
    static INTERFERE: RefCell<Option<Interfere>> = const { RefCell::new(None) };
}

/// From now on the actors of this thread are interfered with.
pub fn interfere_with(interfere: Interfere) {
    INTERFERE.with_borrow_mut(|place| *place = Some(interfere));
}

/// What happens to an actor of type `A` now.
pub(crate) fn now<A>() -> Option<Interference> {
    INTERFERE.with_borrow_mut(|interfere| interfere.as_mut().and_then(|interfere| interfere(std::any::type_name::<A>())))
}
