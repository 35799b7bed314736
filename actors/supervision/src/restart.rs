//! Panics of actors: each is caught and counted, and the actor is restarted in its place.
//!
//! [`RestartLoop`] owns the actor's context and its value. A panic unwinds no further than one poll; the supervisor
//! decides about a restart. A restart keeps the address and the queued messages. It calls
//! [`actix::Supervised::restarting`], where the actor drops its state, and then `started`, where it loads it again.
//! Only the message at fault is lost.
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

#[cfg(feature = "simulation")]
use crate::interference::{self, Interference};
use crate::panics::{Panic, take_panic};

/// Restarts that one actor may have within [`WINDOW`].
pub(crate) const RESTARTS_MAX: usize = 3;
/// The sliding window within which restarts are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Pause before the second restart of a window; it doubles with each further one, [`DOUBLINGS_MAX`] times.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const DOUBLINGS_MAX: usize = 6;

/// Reason for the end of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// The actor stopped by itself or lost its last address.
    Stopped,
    /// The actor panicked more often than its budget allows.
    GivenUp,
}

/// Decides about one actor and is notified of its end.
pub(crate) trait Supervisor: 'static {
    /// Handles a panic of the actor. Returns the pause before the restart. With `None` the actor ends, and its messages
    /// are dropped.
    fn handle_panic(&self, panic: Panic) -> Option<Duration>;
    /// Returns true if the supervisor has forgotten the actor. The actor then ends before its next message, because a
    /// new actor may have its id.
    fn has_forgotten_actor(&self) -> bool {
        false
    }
    /// Handles the end of the actor.
    fn handle_end(&self, reason: ExitReason);
}

/// Budget of restarts within [`WINDOW`].
#[derive(Clone, Debug)]
pub(crate) struct RestartBudget {
    restarts_max: usize,
    /// Times of the last crashes, the oldest first.
    crashes: VecDeque<Instant>,
}

impl RestartBudget {
    /// Creates a budget of at most `restarts_max` restarts within a window.
    pub(crate) const fn new(restarts_max: usize) -> Self {
        Self { restarts_max, crashes: VecDeque::new() }
    }

    /// Counts a crash. Returns the pause before the restart, zero before the first of a window; `None` when the budget
    /// is spent.
    pub(crate) fn spend(&mut self) -> Option<Duration> {
        let now = Instant::now();
        while self.crashes.front().is_some_and(|at| now.duration_since(*at) > WINDOW) {
            self.crashes.pop_front();
        }
        if self.crashes.len() >= self.restarts_max {
            return None;
        }
        self.crashes.push_back(now);
        Some(match self.crashes.len() {
            1 => Duration::ZERO,
            crashes => FIRST_PAUSE.saturating_mul(1 << (crashes - 2).min(DOUBLINGS_MAX)),
        })
    }

    /// Returns true if a crash is within the window.
    pub(crate) fn has_recent_crash(&self) -> bool {
        self.crashes.back().is_some_and(|at| at.elapsed() <= WINDOW)
    }
}

/// Starts a supervised actor on the current arbiter, in a context whose address may already be known.
pub(crate) fn start<A, S>(context: Context<A>, actor: A, supervisor: S) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Supervised,
    S: Supervisor,
{
    let running = context.into_future(actor);
    let address = running.address();
    actix_rt::spawn(RestartLoop {
        running: Some(running),
        pause: None,
        supervisor,
        #[cfg(feature = "simulation")]
        arbiter: interference::current_arbiter(),
    });
    address
}

/// Polls an actor, and restarts it after a panic.
struct RestartLoop<A, S>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    /// The actor with its context; `None` after its end.
    running: Option<ContextFut<A, Context<A>>>,
    /// Pause before the actor is polled again.
    pause: Option<Pin<Box<Sleep>>>,
    supervisor: S,
    #[cfg(feature = "simulation")]
    arbiter: u32,
}

impl<A, S> Unpin for RestartLoop<A, S> where A: Actor<Context = Context<A>> + Supervised {}

impl<A, S> Future for RestartLoop<A, S>
where
    A: Actor<Context = Context<A>> + Supervised,
    S: Supervisor,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            if let Some(pause) = &mut this.pause {
                if pause.as_mut().poll(task).is_pending() {
                    return Poll::Pending;
                }
                this.pause = None;
            }
            if this.supervisor.has_forgotten_actor() {
                return this.finish(ExitReason::Stopped);
            }
            let Some(running) = &mut this.running else { return Poll::Ready(()) };
            #[cfg(feature = "simulation")]
            let interference = match interference::next_fault::<A>(this.arbiter) {
                Some(Interference::Hang(time)) => {
                    this.pause = Some(Box::pin(sleep(time)));
                    continue;
                }
                interference => interference,
            };
            let poll = || Pin::new(&mut *running).poll(task);
            #[cfg(feature = "simulation")]
            let poll = || {
                assert!(interference.is_none(), "a simulated panic");
                interference::on_arbiter(this.arbiter, poll)
            };
            match catch_unwind(AssertUnwindSafe(poll)) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(())) => return this.finish(ExitReason::Stopped),
                Err(_) => {}
            }
            let Some(pause) = this.supervisor.handle_panic(take_panic()) else {
                return this.finish(ExitReason::GivenUp);
            };
            match catch_unwind(AssertUnwindSafe(|| running.restart())) {
                Ok(true) if pause.is_zero() => {}
                Ok(true) => this.pause = Some(Box::pin(sleep(pause))),
                Ok(false) => return this.finish(ExitReason::Stopped),
                Err(_) => return this.finish(ExitReason::GivenUp),
            }
        }
    }
}

impl<A, S> RestartLoop<A, S>
where
    A: Actor<Context = Context<A>> + Supervised,
    S: Supervisor,
{
    /// Drops the actor, which may panic once more, and reports its end.
    fn finish(&mut self, reason: ExitReason) -> Poll<()> {
        let running = self.running.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(running))));
        self.supervisor.handle_end(reason);
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_restart_is_at_once_and_the_pauses_double_up_to_a_bound() {
        let mut budget = RestartBudget::new(10);
        let pauses: Vec<_> = (0..10).map(|_| budget.spend()).collect();
        let expected = [0, 10, 20, 40, 80, 160, 320, 640, 640, 640].map(|millis| Some(Duration::from_millis(millis)));
        assert_eq!(pauses, expected);
        assert_eq!(budget.spend(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_counts_for_the_whole_window_and_no_longer() {
        let mut budget = RestartBudget::new(1);
        assert!(!budget.has_recent_crash());
        assert_eq!(budget.spend(), Some(Duration::ZERO));
        advance(WINDOW).await;
        assert!(budget.has_recent_crash());
        assert_eq!(budget.spend(), None);
        advance(Duration::from_millis(1)).await;
        assert!(!budget.has_recent_crash());
        assert_eq!(budget.spend(), Some(Duration::ZERO));
        assert!(budget.has_recent_crash());
    }
}
