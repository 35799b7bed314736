//! The flow sweeper: ends documents that nobody has signed in time.
//!
//! Every node sweeps, and several may find the same document; the store ends it once. A node whose clock is not trusted
//! ends none.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Supervised, WrapFuture as _};
use futures_util::stream::{StreamExt as _, iter};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_store::LapseFlowOutcome;

use crate::flows::Flows;
use crate::trusted_clock::TrustedClock;

/// Pause between sweeps when nothing is left to do.
const IDLE: Duration = Duration::from_secs(2);
/// Pause between sweeps while more is left.
const BUSY: Duration = Duration::from_millis(100);
/// Maximum documents per list.
const LIMIT: usize = 500;
/// Documents that lapse at a time. Each is read, written and sealed as a whole, and many may fall due together.
const LAPSES_AT_ONCE: usize = 4;

/// Finds documents that have lapsed.
#[derive(Debug)]
pub(crate) struct FlowSweeper {
    flows: Flows,
    clock: Arc<TrustedClock>,
}

impl FlowSweeper {
    pub(crate) const fn new(flows: Flows, clock: Arc<TrustedClock>) -> Self {
        Self { flows, clock }
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let sweep = sweep(self.flows.clone(), Arc::clone(&self.clock));
        ctx.spawn(sweep.into_actor(self).map(|pause, _, ctx| {
            ctx.run_later(pause, Self::sweep);
        }));
    }
}

/// Sweeps once. Returns the pause after it.
async fn sweep(flows: Flows, clock: Arc<TrustedClock>) -> Duration {
    let found = match flows.store.lapsed_flows(LIMIT).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "the store could not list documents that have lapsed");
            return IDLE;
        }
    };
    let is_full = found.len() == LIMIT;
    let lapses = iter(found).map(|id| lapse(&flows, &clock, id)).buffer_unordered(LAPSES_AT_ONCE);
    let lapsed = lapses.filter(|lapsed| std::future::ready(*lapsed)).count().await;
    if is_full && lapsed > 0 { BUSY } else { IDLE }
}

/// Ends one document. Returns true if it has lapsed.
async fn lapse(flows: &Flows, clock: &TrustedClock, id: FlowId) -> bool {
    // The list was made by a clock that may have jumped since the sweep before.
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
        self.sweep(ctx);
    }
}

impl Supervised for FlowSweeper {}
