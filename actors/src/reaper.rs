//! The reaper: removes expired records, a bounded number at a time, so that a sweep never delays a
//! verification.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Supervised, WrapFuture as _};
use sakshi_store::{Store, StoreError, Swept};

use crate::trusted_clock::TrustedClock;

/// Pause after a sweep that has removed all expired records.
pub(crate) const IDLE_PAUSE: Duration = Duration::from_secs(10);
/// Pause after a sweep that has left expired records.
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// Maximum records of each kind per sweep. Verifications wait for a sweep, about 2 ms for a hundred records in the
/// embedded store. So sweeps are small and frequent.
const RECORDS_PER_SWEEP: usize = 100;

/// Sweeps the store while the clock can be trusted.
#[derive(Debug)]
pub(crate) struct Reaper {
    store: Store,
    clock: Arc<TrustedClock>,
}

impl Reaper {
    /// Builds a reaper of this store.
    pub(crate) const fn new(store: Store, clock: Arc<TrustedClock>) -> Self {
        Self { store, clock }
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let Some(now) = self.clock.now() else {
            ctx.run_later(IDLE_PAUSE, Self::sweep);
            return;
        };
        let sweep = self.store.sweep(now, RECORDS_PER_SWEEP);
        ctx.spawn(sweep.into_actor(self).map(|swept, _, ctx| {
            ctx.run_later(pause_after(swept), Self::sweep);
        }));
    }
}

/// Returns the pause after a sweep.
fn pause_after(swept: Result<Swept, StoreError>) -> Duration {
    match swept {
        Ok(swept) => {
            let Swept {
                transactions,
                idempotency,
                credentials,
                events,
                flows,
                sessions,
                refusals,
                nodes,
                consents,
                days,
                logs,
            } = swept;
            let counts = [
                transactions,
                idempotency,
                credentials,
                events,
                flows,
                sessions,
                refusals,
                nodes,
                consents,
                days,
                logs,
            ];
            metrics::counter!("sakshi_records_swept_total").increment(counts.iter().sum());
            if counts.iter().any(|count| usize::try_from(*count).unwrap_or(usize::MAX) >= RECORDS_PER_SWEEP) {
                BUSY_PAUSE
            } else {
                IDLE_PAUSE
            }
        }
        Err(error) => {
            tracing::warn!(%error, "a sweep of the store failed");
            IDLE_PAUSE
        }
    }
}

impl Actor for Reaper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.sweep(ctx);
    }
}

impl Supervised for Reaper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_follows_at_once_when_more_records_of_a_kind_may_be_left() {
        let full = RECORDS_PER_SWEEP as u64;
        let pauses =
            [Swept::default(), Swept { logs: full - 1, ..Swept::default() }, Swept { logs: full, ..Swept::default() }]
                .map(|swept| pause_after(Ok(swept)));
        assert_eq!(pauses, [IDLE_PAUSE, IDLE_PAUSE, BUSY_PAUSE]);
        assert_eq!(pause_after(Err(StoreError::Unavailable("the store is away".into()))), IDLE_PAUSE);
    }
}
