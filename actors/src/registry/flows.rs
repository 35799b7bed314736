//! The flow registry: what a shard does for flows alone.
//!
//! Whatever happens to a flow gets an actor, also when the shard is full: a report must not be
//! refused, and no more of them are under way than the door lets in. Beyond the bound the actor
//! ends as soon as nothing happens, and the flow's deadline is left to the sweeper.

use std::sync::Arc;

use actix::{Addr, AsyncContext as _, Context, Handler, Message, ResponseFuture};
use sakshi_domain::clock::Clock;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::AppId;
use sakshi_domain::time::Timestamp;
use sakshi_store::FlowRecord;

use super::shard::{Live, Registry};
use crate::flow::{FlowActor, FlowAnswer, FlowGround, FlowQuestion};

/// One shard of the registry.
pub(crate) type FlowRegistry = Registry<FlowActor>;

impl Live for FlowActor {
    type Id = FlowId;
    type Ground = Arc<FlowGround>;
    const KIND: &'static str = "flow";

    fn clock(ground: &Arc<FlowGround>) -> &dyn Clock {
        &*ground.clock
    }
}

impl FlowRegistry {
    fn child(&mut self, id: FlowId, ctx: &mut Context<Self>) -> Addr<FlowActor> {
        if let Some(child) = self.children.get(&id) {
            return child.clone();
        }
        let home = (!self.is_full()).then(|| ctx.address());
        let actor = FlowActor::new(id, Arc::clone(&self.ground), home);
        self.start_child(id, actor)
    }
}

/// Something for one flow's actor, which is started if need be.
#[derive(Clone, Debug)]
pub(crate) struct Here<Q> {
    pub(crate) id: FlowId,
    pub(crate) question: Q,
}

impl<Q: FlowQuestion> Message for Here<Q> {
    type Result = FlowAnswer<Q::Answer>;
}

impl<Q> Handler<Here<Q>> for FlowRegistry
where
    Q: FlowQuestion,
    FlowActor: Handler<Q>,
{
    type Result = ResponseFuture<FlowAnswer<Q::Answer>>;

    fn handle(&mut self, Here { id, question }: Here<Q>, ctx: &mut Self::Context) -> Self::Result {
        let ask = self.child(id, ctx).send(question);
        Box::pin(async move { ask.await? })
    }
}

/// How does the flow of this app stand? The store knows, and needs no actor for it.
#[derive(Clone, Debug, Message)]
#[rtype(result = "FlowAnswer<Option<FlowRecord>>")]
pub(crate) struct LookHere {
    pub(crate) id: FlowId,
    pub(crate) app: AppId,
}

impl Handler<LookHere> for FlowRegistry {
    type Result = ResponseFuture<FlowAnswer<Option<FlowRecord>>>;

    fn handle(&mut self, LookHere { id, app }: LookHere, _: &mut Self::Context) -> Self::Result {
        let load = self.ground.store.load_flow(id, app);
        Box::pin(async move { Ok(load.await) })
    }
}

/// Wake a flow's actor at its deadline.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct WakeAt {
    pub(crate) id: FlowId,
    pub(crate) at: Timestamp,
}

impl Handler<WakeAt> for FlowRegistry {
    type Result = ();

    fn handle(&mut self, WakeAt { id, at }: WakeAt, _: &mut Self::Context) {
        self.wheel.set(id, at);
    }
}

/// Makes one flow's actor, or the registry itself, panic.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct DetonateFlow(pub(crate) Option<FlowId>);

#[cfg(test)]
impl Handler<DetonateFlow> for FlowRegistry {
    type Result = ();
    fn handle(&mut self, DetonateFlow(id): DetonateFlow, ctx: &mut Self::Context) {
        match id {
            Some(id) => self.child(id, ctx).do_send(crate::flow::Detonate),
            None => panic!("as the test asked"),
        }
    }
}
