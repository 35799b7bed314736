//! Graceful shutdown: a shared drain state and a count of requests in flight.
//!
//! First the shutdown is announced: the node is unready and closes each connection after a response, but still serves.
//! So a balancer has time to send requests elsewhere. Then the shutdown begins: long polls and event streams end, and
//! the process ends when no request is in flight.

use sakshi_actors::Gate;
/// Counts a request as in flight until it is dropped.
pub use sakshi_actors::Permit as RequestInFlight;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Stage of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    Announced,
    Begun,
}

/// The state of the drain, shared by all workers.
#[derive(Clone, Debug)]
pub struct Drain {
    stage: Arc<watch::Sender<Stage>>,
    in_flight: Arc<Gate>,
}

/// Not draining, nothing in flight.
impl Default for Drain {
    fn default() -> Self {
        Self { stage: Arc::new(watch::channel(Stage::Serving).0), in_flight: Gate::new(usize::MAX) }
    }
}

impl Drain {
    /// Announces the shutdown.
    pub fn announce(&self) {
        self.stage.send_replace(Stage::Announced);
    }

    /// Begins the shutdown: long polls and event streams end.
    pub fn begin(&self) {
        self.stage.send_replace(Stage::Begun);
    }

    /// Returns true once the shutdown is announced.
    #[must_use]
    pub fn is_announced(&self) -> bool {
        *self.stage.borrow() >= Stage::Announced
    }

    /// Waits until the shutdown begins.
    pub async fn wait_until_begun(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.stage.subscribe().wait_for(|stage| *stage == Stage::Begun).await;
    }

    /// Counts a request until the permit is dropped.
    #[must_use]
    pub fn enter(&self) -> RequestInFlight {
        self.in_flight.enter_unbounded()
    }

    /// Returns the number of requests in flight.
    #[must_use]
    pub fn requests_in_flight(&self) -> usize {
        self.in_flight.inside()
    }

    /// Waits until no request is in flight, for `time_max` at most. Returns the number still in flight.
    pub async fn finish(&self, time_max: Duration) -> usize {
        self.in_flight.wait_until_empty(time_max).await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_shutdown_is_announced_before_it_begins() {
        let drain = Drain::default();
        assert!(!drain.is_announced());
        drain.announce();
        assert!(drain.is_announced() && drain.wait_until_begun().now_or_never().is_none());
        drain.begin();
        assert!(drain.is_announced() && drain.clone().wait_until_begun().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_in_flight_until_their_permits_are_dropped() {
        let drain = Drain::default();
        let permits = [drain.enter(), drain.clone().enter(), drain.enter()];
        assert_eq!((drain.requests_in_flight(), drain.finish(Duration::from_secs(1)).await), (3, 3));
        drop(permits);
        assert_eq!((drain.requests_in_flight(), drain.finish(Duration::from_secs(1)).await), (0, 0));
    }
}
