//! The flow sweeper: sees to it that documents lapse whose deadline nobody waits for, because the
//! process was restarted, their node is gone, or their shard was full.
//!
//! Every node sweeps, and many may find the same document; the store lets one of them end it. A
//! document goes through its actor here, so that it takes its turn with what is being reported.

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

/// Pause between looks when nothing is left to do.
const IDLE: Duration = Duration::from_secs(2);
/// Pause between looks while there is more.
const BUSY: Duration = Duration::from_millis(100);
/// Documents found at one look.
const LIMIT: usize = 500;
/// How long one document may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks for documents that have lapsed.
#[derive(Debug)]
pub(crate) struct FlowSweeper {
    store: Arc<dyn Store>,
    flows: Arc<Shards<FlowActor>>,
}

impl FlowSweeper {
    /// A sweeper for what lapses in this store, through the shards of this node.
    #[must_use]
    pub(crate) const fn new(store: Arc<dyn Store>, flows: Arc<Shards<FlowActor>>) -> Self {
        Self { store, flows }
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let look = look(Arc::clone(&self.store), Arc::clone(&self.flows));
        ctx.spawn(look.into_actor(self).map(|pause, _, ctx| {
            ctx.run_later(pause, Self::sweep);
        }));
    }
}

/// One look through the store; how long to rest after it.
async fn look(store: Arc<dyn Store>, flows: Arc<Shards<FlowActor>>) -> Duration {
    let found = match store.lapsed_flows(LIMIT).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "documents that have lapsed could not be looked for");
            return IDLE;
        }
    };
    let full = found.len() == LIMIT;
    let lapses = iter(found).map(|id| lapse(&flows, id)).buffer_unordered(LAPSES_AT_ONCE);
    let lapsed = lapses.filter(|lapsed| std::future::ready(*lapsed)).count().await;
    if full && lapsed > 0 { BUSY } else { IDLE }
}

/// Lets a document lapse; whether it did. One that could not is found again.
async fn lapse(flows: &Shards<FlowActor>, id: FlowId) -> bool {
    let Some(shard) = flows.of(&id) else { return false };
    match shard.send(AskFlow { id, question: Lapse }).timeout(PATIENCE).await {
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
