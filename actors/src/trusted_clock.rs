//! The clock by which this node deletes records and ends documents. It has no time while the wall clock cannot be
//! trusted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::clock::Clock;
use sakshi_domain::clock_watch::{Agreement, ClockJump, ClockWatch, Reading};
use sakshi_domain::time::Timestamp;

/// A clock that is watched for jumps.
#[derive(Debug)]
pub(crate) struct TrustedClock {
    clock: Arc<dyn Clock>,
    watch: Mutex<ClockWatch>,
}

impl TrustedClock {
    /// Creates a clock that is trusted unless it is far from the time of the store's last sweep.
    pub(crate) fn starting(clock: Arc<dyn Clock>, last_sweep: Option<Timestamp>) -> Self {
        let watch = ClockWatch::starting(read_clock(&*clock), last_sweep);
        if let Some(ClockJump { since, .. }) = watch.jump() {
            tracing::error!(
                clock.now = %clock.now(),
                store.last_sweep = %since,
                "the clock is more than an hour from the store's last sweep: it is wrong, or no node ran; nothing is \
                deleted for an hour, or until an operator runs `sakshi admin accept-clock`"
            );
        }
        set_gauge(watch.jump());
        Self { clock, watch: Mutex::new(watch) }
    }

    /// Returns the time, if it can be trusted.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        let mut watch = self.lock();
        let now = read_clock(&*self.clock);
        match watch.compare(now) {
            Agreement::Holds => return Some(now.wall),
            Agreement::Restored => {
                tracing::info!("the clock has run evenly for an hour; expired records are deleted again");
                set_gauge(None);
                return Some(now.wall);
            }
            Agreement::Broken(jump) => {
                tracing::error!(
                    clock.now = %now.wall,
                    clock.before = %jump.since,
                    clock.ahead_ms = jump.ahead_ms,
                    "the clock jumped; nothing is deleted until it has run evenly for an hour, or an operator runs \
                        `sakshi admin accept-clock`"
                );
                set_gauge(Some(jump));
            }
            Agreement::Awaited => {}
        }
        None
    }

    /// Trusts the clock as it is now. Returns the jump for which it was not trusted.
    pub(crate) fn accept(&self) -> Option<ClockJump> {
        // A jump that nobody has noticed yet is accepted, too.
        self.now();
        let jump = self.lock().accept();
        set_gauge(None);
        jump
    }

    fn lock(&self) -> MutexGuard<'_, ClockWatch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_clock(clock: &dyn Clock) -> Reading {
    Reading { wall: clock.now(), monotonic: clock.monotonic() }
}

fn set_gauge(jump: Option<ClockJump>) {
    metrics::gauge!("sakshi_clock_jumped").set(u32::from(jump.is_some()));
}
