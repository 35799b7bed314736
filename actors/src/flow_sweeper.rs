//! The flow sweeper: ends documents (flows that wait for signatures) that were not signed in time.
//!
//! Every node sweeps, and several may find the same document; the store ends it once. A node whose clock is not trusted
//! ends no documents.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Supervised, WrapFuture as _};
use futures_util::stream::{StreamExt as _, iter};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_store::LapseFlowOutcome;

use crate::flows::Flows;
use crate::trusted_clock::TrustedClock;

/// Pause after a sweep that has ended all lapsed documents.
const IDLE_PAUSE: Duration = Duration::from_secs(2);
/// Pause after a sweep that has left lapsed documents.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// Maximum documents per sweep.
const DOCUMENTS_PER_SWEEP: usize = 500;
/// Documents ended at a time. Each is read, sealed and written as a whole, and many may fall due together.
const CONCURRENT_LAPSES: usize = 4;

/// Ends documents that were not signed in time, again and again. Other flows do not lapse.
#[derive(Debug)]
pub(crate) struct FlowSweeper {
    flows: Flows,
    clock: Arc<TrustedClock>,
}

impl FlowSweeper {
    pub(crate) const fn new(flows: Flows, clock: Arc<TrustedClock>) -> Self {
        Self { flows, clock }
    }

    /// Sweeps, then schedules the next sweep.
    fn begin_sweep(&mut self, ctx: &mut Context<Self>) {
        let pause = sweep(self.flows.clone(), Arc::clone(&self.clock));
        ctx.spawn(pause.into_actor(self).map(|pause, _, ctx| {
            ctx.run_later(pause, Self::begin_sweep);
        }));
    }
}

/// Ends documents that have lapsed, up to [`DOCUMENTS_PER_SWEEP`]. Returns the pause before the next sweep.
async fn sweep(flows: Flows, clock: Arc<TrustedClock>) -> Duration {
    let ids = match flows.store.lapsed_flows(DOCUMENTS_PER_SWEEP).await {
        Ok(ids) => ids,
        Err(error) => {
            tracing::warn!(%error, "the store could not list documents that have lapsed");
            return IDLE_PAUSE;
        }
    };
    let is_full = ids.len() == DOCUMENTS_PER_SWEEP;
    let lapses = iter(ids).map(|id| lapse(&flows, &clock, id)).buffer_unordered(CONCURRENT_LAPSES);
    let lapsed = lapses.filter(|lapsed| std::future::ready(*lapsed)).count().await;
    if is_full && lapsed > 0 { BUSY_PAUSE } else { IDLE_PAUSE }
}

/// Ends one document. Returns false if it could not, or need not, be ended.
async fn lapse(flows: &Flows, clock: &TrustedClock, id: FlowId) -> bool {
    // The clock may have jumped since the last sweep.
    if clock.now().is_none() {
        return false;
    }
    match flows.lapse(id).await {
        Ok(outcome) => matches!(outcome, LapseFlowOutcome::Lapsed { .. }),
        Err(error) => {
            tracing::warn!(flow.id = %id, %error, "a document could not be ended");
            false
        }
    }
}

impl Actor for FlowSweeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.begin_sweep(ctx);
    }
}

impl Supervised for FlowSweeper {}
