//! Faults from outside, for simulations: before an actor is polled, whoever simulates may say that it panics there, which is a panic
//! at the await where it waits, or that it does not run for a while, as on an arbiter that hangs.
//!
//! All actors of a simulation run on one thread. So that those of one arbiter can hang together, each has the number of the arbiter on
//! which it would run: that of whoever started it.

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

/// Decides what happens to an actor of this type on this arbiter.
pub type Interfere = Box<dyn FnMut(u32, &'static str) -> Option<Interference>>;

thread_local! {
    static INTERFERE: RefCell<Option<Interfere>> = const { RefCell::new(None) };
}

tokio::task_local! {
    static ARBITER: u32;
}

/// From now on the actors of this thread are interfered with.
pub fn interfere_with(interfere: Interfere) {
    INTERFERE.with_borrow_mut(|place| *place = Some(interfere));
}

/// Actors that this work starts are of this arbiter.
pub fn on_arbiter<T>(arbiter: u32, work: impl FnOnce() -> T) -> T {
    ARBITER.sync_scope(arbiter, work)
}

/// The same for work that waits.
pub async fn while_on_arbiter<W: Future>(arbiter: u32, work: W) -> W::Output {
    ARBITER.scope(arbiter, work).await
}

/// The arbiter of whoever asks; 0 if nobody has said which.
pub(crate) fn arbiter() -> u32 {
    ARBITER.try_with(|arbiter| *arbiter).unwrap_or(0)
}

/// Work that is done elsewhere, still on this arbiter.
pub(crate) fn here(work: impl FnOnce()) -> impl FnOnce() {
    let arbiter = arbiter();
    move || on_arbiter(arbiter, work)
}

/// What happens to an actor of type `A` now.
pub(crate) fn now<A>(arbiter: u32) -> Option<Interference> {
    INTERFERE.with_borrow_mut(|interfere| interfere.as_mut().and_then(|interfere| interfere(arbiter, std::any::type_name::<A>())))
}
