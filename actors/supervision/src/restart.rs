//! What happens when an actor panics: it is caught, counted, and restarted in its place.
//!
//! [`Watched`] owns the actor's context and its value. A panic unwinds no further than one poll;
//! the overseer says whether to restart. A restart keeps the address and the queued messages,
//! calls [`actix::Supervised::restarting`], where the actor throws its state away, and then
//! `started`, where it loads it again. Only the message at fault is lost.
//!
//! actix's own `Supervisor` does none of this after a panic and is banned by `clippy.toml`.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use actix::dev::ContextFut;
use actix::{Actor, Addr, Context, Supervised};
use tokio::time::{Instant, Sleep, sleep};

/// What to do with an actor that has panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Restart it after this pause.
    Restart(Duration),
    /// Let it end; its messages are dropped.
    GiveUp,
}

/// Why an actor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// It stopped by itself or lost its last address.
    Stopped,
    /// It panicked more often than its budget allows.
    GivenUp,
}

/// Decides about one actor and is told of its end.
pub(crate) trait Overseer: 'static {
    /// The actor panicked.
    fn crashed(&self) -> Verdict;
    /// The actor is gone.
    fn ended(&self, reason: ExitReason);
}

/// How many restarts are allowed within a sliding window.
#[derive(Clone, Debug)]
pub(crate) struct RestartBudget {
    most: usize,
    window: Duration,
    crashes: VecDeque<Instant>,
}

/// Pause before the second restart of a window; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

impl RestartBudget {
    /// At most `most` restarts within `window`.
    pub(crate) const fn new(most: usize, window: Duration) -> Self {
        Self { most, window, crashes: VecDeque::new() }
    }

    /// Counts a crash: the first restart is immediate, later ones pause, one too many is refused.
    pub(crate) fn spend(&mut self) -> Verdict {
        let now = Instant::now();
        while self.crashes.front().is_some_and(|at| now.duration_since(*at) > self.window) {
            self.crashes.pop_front();
        }
        if self.crashes.len() >= self.most {
            return Verdict::GiveUp;
        }
        self.crashes.push_back(now);
        match self.crashes.len() {
            1 => Verdict::Restart(Duration::ZERO),
            earlier => Verdict::Restart(FIRST_PAUSE.saturating_mul(1 << (earlier - 2).min(6))),
        }
    }

    /// Whether every crash has left the window.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.crashes.back().is_none_or(|at| at.elapsed() > self.window)
    }
}

/// Starts a supervised actor on the current arbiter.
pub(crate) fn start<A, O>(actor: A, overseer: O) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Supervised,
    O: Overseer,
{
    start_in(Context::new(), actor, overseer)
}

/// Starts a supervised actor in a context whose address is already known.
pub(crate) fn start_in<A, O>(context: Context<A>, actor: A, overseer: O) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Supervised,
    O: Overseer,
{
    let running = context.into_future(actor);
    let address = running.address();
    actix_rt::spawn(Watched { running: Some(running), pause: None, overseer });
    address
}

/// An actor under watch.
struct Watched<A, O>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    running: Option<ContextFut<A, Context<A>>>,
    pause: Option<Pin<Box<Sleep>>>,
    overseer: O,
}

impl<A, O> Unpin for Watched<A, O> where A: Actor<Context = Context<A>> + Supervised {}

impl<A, O> Future for Watched<A, O>
where
    A: Actor<Context = Context<A>> + Supervised,
    O: Overseer,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<()> {
        loop {
            if let Some(pause) = &mut self.pause {
                if pause.as_mut().poll(task).is_pending() {
                    return Poll::Pending;
                }
                self.pause = None;
            }
            let Some(running) = &mut self.running else { return Poll::Ready(()) };
            match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut *running).poll(task))) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(())) => return self.finish(ExitReason::Stopped),
                Err(_) => {}
            }
            let Verdict::Restart(pause) = self.overseer.crashed() else { return self.finish(ExitReason::GivenUp) };
            let Some(running) = &mut self.running else { return Poll::Ready(()) };
            let restarted = catch_unwind(AssertUnwindSafe(|| running.restart()));
            match restarted {
                Ok(true) if pause.is_zero() => {}
                Ok(true) => self.pause = Some(Box::pin(sleep(pause))),
                Ok(false) => return self.finish(ExitReason::Stopped),
                Err(_) => return self.finish(ExitReason::GivenUp),
            }
        }
    }
}

impl<A, O> Watched<A, O>
where
    A: Actor<Context = Context<A>> + Supervised,
    O: Overseer,
{
    /// Drops what is left of the actor, which may panic once more, and reports its end.
    fn finish(&mut self, reason: ExitReason) -> Poll<()> {
        let left = self.running.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(left))));
        self.overseer.ended(reason);
        Poll::Ready(())
    }
}
