//! A wall clock that jumps deletes nothing until it has run evenly for an hour or an operator accepts it.

use std::time::Duration;

use futures_util::poll;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::clock_watch::ClockJump;
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::CLOCK_AGREEMENT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use sakshi_store::ReportFlowOutcome;

use super::flow_fixture::INVITED;
use super::{Fixture, large_bounds, run, verified, yield_often};
use crate::reaper::IDLE_PAUSE;
use crate::trusted_clock::TrustedClock;
use crate::{Tree, TreeConfig};

const TWO_DAYS_MS: i64 = 2 * 24 * 3_600_000;
const MILLISECOND: Duration = Duration::from_millis(1);

impl Fixture {
    /// Starts another tree on the same store, on the test's arbiter, whose timers follow the test's time.
    async fn start_here(&self) -> Tree {
        let tree =
            Tree::start(TreeConfig { on_one_arbiter: true, ..self.config.clone() }, large_bounds()).await.unwrap().0;
        self.settle().await;
        tree
    }

    /// Lets the reaper sweep once.
    async fn sweep(&self) {
        tokio::time::advance(IDLE_PAUSE + Duration::from_secs(1)).await;
        self.settle().await;
    }

    /// Lets the actors of this arbiter run, then the store, then the actors again with its answers. The runtime is
    /// never idle, which would advance a paused time.
    async fn settle(&self) {
        yield_often().await;
        let mut check = self.store.check();
        while poll!(&mut check).is_pending() {
            tokio::task::yield_now().await;
        }
        yield_often().await;
    }

    async fn is_stored(&self, id: TxnId) -> bool {
        self.store.load_transaction(id).await.unwrap().is_some()
    }
}

#[test]
fn a_clock_that_is_two_days_ahead_for_twenty_seconds_deletes_nothing() {
    run(async {
        let fixture = Fixture::with_bounds(large_bounds()).await;
        let (pending, completed) = (fixture.open().await, fixture.open().await);
        fixture.complete(completed, verified(1)).await;
        fixture.start_here().await;
        tokio::time::pause();
        fixture.clock.jump(TWO_DAYS_MS);
        for _ in 0..2 {
            fixture.clock.advance(IDLE_PAUSE);
            fixture.sweep().await;
        }
        assert!(!fixture.is_stored(completed).await, "the transaction is over by that clock");
        fixture.clock.jump(-TWO_DAYS_MS);
        fixture.sweep().await;
        assert!(fixture.is_stored(pending).await && fixture.is_stored(completed).await);
    });
}

#[test]
fn a_clock_that_has_run_evenly_for_an_hour_deletes_again() {
    for (elapsed, is_still_stored) in [(CLOCK_AGREEMENT - MILLISECOND, true), (CLOCK_AGREEMENT, false)] {
        run(async {
            let fixture = Fixture::with_bounds(large_bounds()).await;
            let expired = fixture.open().await;
            fixture.start_here().await;
            tokio::time::pause();
            fixture.clock.jump(TWO_DAYS_MS);
            fixture.sweep().await;
            fixture.clock.advance(elapsed);
            fixture.sweep().await;
            fixture.clock.jump(-TWO_DAYS_MS);
            assert_eq!(fixture.is_stored(expired).await, is_still_stored, "{elapsed:?}");
        });
    }
}

#[test]
fn a_clock_that_an_operator_accepts_deletes_with_the_next_sweep() {
    run(async {
        let fixture = Fixture::with_bounds(large_bounds()).await;
        let expired = fixture.open().await;
        let tree = fixture.start_here().await;
        assert_eq!(tree.accept_clock(), None);
        tokio::time::pause();
        let since = fixture.clock.now();
        fixture.clock.jump(TWO_DAYS_MS);
        fixture.sweep().await;
        assert_eq!(tree.accept_clock(), Some(ClockJump { since, ahead_ms: TWO_DAYS_MS }));
        assert_eq!(tree.accept_clock(), None);
        fixture.sweep().await;
        fixture.clock.jump(-TWO_DAYS_MS);
        assert!(!fixture.is_stored(expired).await);
    });
}

#[test]
fn a_node_that_starts_far_from_its_stores_time_deletes_nothing() {
    run(async {
        let fixture = Fixture::with_bounds(large_bounds()).await;
        let pending = fixture.open().await;
        tokio::time::pause();
        fixture.clock.jump(TWO_DAYS_MS);
        // A tree that starts, and a tree that starts again: health checks do not write the clock's time to the store.
        for _ in 0..2 {
            fixture.start_here().await;
            fixture.sweep().await;
        }
        fixture.clock.jump(-TWO_DAYS_MS);
        assert!(fixture.is_stored(pending).await);
    });
}

#[test]
fn a_document_does_not_lapse_by_a_clock_that_jumped() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let id = fixture.open_document(&receiver.url("/hook")).await;
        tokio::time::pause();
        let ahead = i64::try_from(INVITED.as_millis()).unwrap();
        fixture.clock.jump(ahead);
        assert_eq!(fixture.store.lapsed_flows(10).await.unwrap(), [id], "by this clock the document has lapsed");
        for _ in 0..5 {
            fixture.sweep().await;
        }
        tokio::time::resume();
        fixture.clock.jump(-ahead);
        assert!(receiver.received().is_empty());
        let signed = fixture.flows.report(fixture.signed_report(id, ["Completed"; 2])).await;
        assert!(matches!(signed, Ok(ReportFlowOutcome::Accepted { .. })), "{signed:?}");
        assert_eq!(receiver.wait_for(1, Duration::from_secs(20)).await.len(), 1);
        fixture.end().await;
    });
}

#[test]
fn a_clock_that_jumps_after_it_was_read_deletes_nothing() {
    run(async {
        let fixture = Fixture::with_bounds(large_bounds()).await;
        let pending = fixture.open().await;
        let clock = TrustedClock::starting(fixture.clock.clone(), fixture.store.last_sweep().await.unwrap());
        let now = clock.now().unwrap();
        fixture.clock.jump(TWO_DAYS_MS);
        fixture.store.sweep(now, 100).await.unwrap();
        fixture.clock.jump(-TWO_DAYS_MS);
        assert!(fixture.is_stored(pending).await);
    });
}
