//! The flow sweeper: ends documents whose deadline has passed and for which no actor waits, because the process was
//! restarted, their node is gone, or their shard was full.
//!
//! Every node sweeps, and many may find the same document; the store ends it once. The document's actor on this node asks
//! the store, in order with the reports.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Supervised, WrapFuture as _};
use futures_util::stream::{StreamExt as _, iter};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_store::{LapseFlowOutcome, Store};
use sakshi_supervision::Shards;

use super::actor::{FlowActor, LAPSES_AT_ONCE};
use super::message::Lapse;
use super::shard::AskFlow;

/// Pause between sweeps when nothing is left to do.
const IDLE: Duration = Duration::from_secs(2);
/// Pause between sweeps while there is more.
const BUSY: Duration = Duration::from_millis(100);
/// Documents listed at once.
const LIMIT: usize = 500;
/// How long one document may take.
const LAPSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Finds documents that have lapsed.
#[derive(Debug)]
pub(crate) struct FlowSweeper {
    store: Store,
    flows: Arc<Shards<FlowActor>>,
}

impl FlowSweeper {
    pub(crate) const fn new(store: Store, flows: Arc<Shards<FlowActor>>) -> Self {
        Self { store, flows }
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let sweep = sweep(self.store.clone(), Arc::clone(&self.flows));
        ctx.spawn(sweep.into_actor(self).map(|pause, _, ctx| {
            ctx.run_later(pause, Self::sweep);
        }));
    }
}

/// One sweep; returns the pause after it.
async fn sweep(store: Store, flows: Arc<Shards<FlowActor>>) -> Duration {
    let found = match store.lapsed_flows(LIMIT).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "the store could not list documents that have lapsed");
            return IDLE;
        }
    };
    let full = found.len() == LIMIT;
    let lapses = iter(found).map(|id| lapse(&flows, id)).buffer_unordered(LAPSES_AT_ONCE);
    let lapsed = lapses.filter(|lapsed| std::future::ready(*lapsed)).count().await;
    if full && lapsed > 0 { BUSY } else { IDLE }
}

/// Ends a document; whether it did. One that could not end is found again.
async fn lapse(flows: &Shards<FlowActor>, id: FlowId) -> bool {
    let Some(shard) = flows.of(&id) else { return false };
    match shard.send(AskFlow { id, question: Lapse }).timeout(LAPSE_TIMEOUT).await {
        Ok(Ok(Ok(outcome))) => matches!(outcome, LapseFlowOutcome::Lapsed { .. }),
        Ok(Ok(Err(error))) => {
            tracing::warn!(flow.id = %id, %error, "a document could not lapse");
            false
        }
        Ok(Err(_)) | Err(_) => false,
    }
}

impl Actor for FlowSweeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.sweep(ctx);
    }
}

impl Supervised for FlowSweeper {}
