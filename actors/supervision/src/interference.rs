//! Faults injected by a simulation. Before an actor is polled, the simulator may let it panic, as if at its pending
//! await, or keep it from running for a while, as on an arbiter that hangs.
//!
//! All actors of a simulation run on one thread. Each inherits a number from its starter: that of the arbiter on which
//! it would run. So the actors of one arbiter can hang together.

use std::cell::RefCell;
use std::time::Duration;

/// A fault that replaces a poll of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// The actor panics.
    Panic,
    /// The actor does not run for this long.
    Hang(Duration),
}

/// Chooses a fault before a poll, from the arbiter's number and the name of the actor's type.
pub type Interfere = Box<dyn FnMut(u32, &'static str) -> Option<Interference>>;

thread_local! {
    /// Chooses the faults of this thread's actors; `None` outside a simulation.
    static INTERFERE: RefCell<Option<Interfere>> = const { RefCell::new(None) };
}

tokio::task_local! {
    /// Number of the simulated arbiter on which the current task runs.
    static ARBITER: u32;
}

/// Sets the faults for the actors of this thread.
pub fn interfere_with(choose_fault: Interfere) {
    INTERFERE.with_borrow_mut(|current| *current = Some(choose_fault));
}

/// Runs work that starts its actors on this arbiter.
pub fn on_arbiter<T>(arbiter: u32, work: impl FnOnce() -> T) -> T {
    ARBITER.sync_scope(arbiter, work)
}

/// Runs a future that starts its actors on this arbiter.
pub async fn while_on_arbiter<W: Future>(arbiter: u32, work: W) -> W::Output {
    ARBITER.scope(arbiter, work).await
}

/// Returns the current arbiter; 0 if none is set.
pub(crate) fn current_arbiter() -> u32 {
    ARBITER.try_with(|arbiter| *arbiter).unwrap_or(0)
}

/// Wraps work for another thread of execution, so that it keeps the current arbiter.
pub(crate) fn keep_arbiter(work: impl FnOnce()) -> impl FnOnce() {
    let arbiter = current_arbiter();
    move || on_arbiter(arbiter, work)
}

/// Returns the fault for the next poll of an actor of type `A`.
pub(crate) fn next_fault<A>(arbiter: u32) -> Option<Interference> {
    INTERFERE.with_borrow_mut(|choose_fault| {
        choose_fault.as_mut().and_then(|choose| choose(arbiter, std::any::type_name::<A>()))
    })
}
