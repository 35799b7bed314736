//! The part of a shard that is particular to flows.
//!
//! Whatever happens to a flow gets an actor, also when the shard is full: a report must not be
//! refused, and admission bounds how many are under way. Beyond the bound the actor ends as soon as
//! nothing happens, and the flow's deadline is left to the sweeper.

use std::sync::Arc;

use actix::{Addr, AsyncContext as _, Context, Handler, Message, ResponseFuture};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_store::FlowRecord;
use sakshi_supervision::{Shard, ShardActor};

use super::actor::{FlowActor, FlowContext};
use super::message::{GetFlow, Lapse, OpenFlowTicket, ReportTicket, WakeAt};
use crate::router::Answered;
use crate::traced::{Traced, handle_traced};

impl ShardActor for FlowActor {
    type Id = FlowId;
    type Shared = Arc<FlowContext>;
    const KIND: &'static str = "flow";

    fn random_byte(id: &FlowId) -> u8 {
        id.as_bytes()[15]
    }

    fn shard_byte(id: &FlowId) -> u8 {
        id.shard_byte()
    }

    fn now_millis(context: &Arc<FlowContext>) -> i64 {
        context.clock.now().millis()
    }
}

/// The live actor of a flow, or a new one.
fn actor(shard: &mut Shard<FlowActor>, id: FlowId, ctx: &Context<Shard<FlowActor>>) -> Addr<FlowActor> {
    if let Some(actor) = shard.get(&id) {
        return actor.clone();
    }
    let shard_address = (!shard.is_full()).then(|| ctx.address().recipient());
    let actor = FlowActor::new(id, Arc::clone(shard.shared()), shard_address);
    shard.start_child(id, actor)
}

/// Something for one flow's actor, which is started if need be.
#[derive(Clone, Debug)]
pub(crate) struct AskFlow<Q> {
    pub(crate) id: FlowId,
    pub(crate) question: Q,
}

impl<Q: Message> Message for AskFlow<Q> {
    type Result = Q::Result;
}

impl<Q, T> Handler<AskFlow<Q>> for Shard<FlowActor>
where
    Q: Message<Result = Answered<T>> + Send + 'static,
    T: Send + 'static,
    FlowActor: Handler<Traced<Q>>,
{
    type Result = ResponseFuture<Answered<T>>;

    fn handle(&mut self, AskFlow { id, question }: AskFlow<Q>, ctx: &mut Self::Context) -> Self::Result {
        let ask = actor(self, id, ctx).send(Traced::new(question));
        Box::pin(async move { ask.await? })
    }
}

impl Handler<GetFlow> for Shard<FlowActor> {
    type Result = ResponseFuture<Answered<Option<FlowRecord>>>;

    fn handle(&mut self, GetFlow { id, app }: GetFlow, _: &mut Self::Context) -> Self::Result {
        let load = self.shared().store.load_flow(id, app);
        Box::pin(async move { Ok(load.await) })
    }
}

impl Handler<WakeAt> for Shard<FlowActor> {
    type Result = ();

    fn handle(&mut self, WakeAt { id, at }: WakeAt, _: &mut Self::Context) {
        self.wake_at(id, at.millis());
    }
}

handle_traced! {
    [Q, T] [Q: Message<Result = Answered<T>> + Send + 'static, T: Send + 'static, FlowActor: Handler<Traced<Q>>]
        AskFlow<Q> => Shard<FlowActor>;
    [] [] GetFlow => Shard<FlowActor>;
    [] [] OpenFlowTicket => FlowActor;
    [] [] ReportTicket => FlowActor;
    [] [] Lapse => FlowActor;
}
