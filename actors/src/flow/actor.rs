//! The flow actor: orders the reports of one flow on this node, and has the timer of a document that waits to be signed.
//!
//! It holds no payload and decides nothing: the store reads, lets the domain decide and writes in one step. So it lives
//! only while something happens or until a deadline that the store returned. The sweeper finds documents without an actor.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, AsyncContext as _, AtomicResponse, Context, Handler, Message, Recipient,
    Supervised, WrapFuture as _,
};
use sakshi_domain::clock::Clock;
use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::time::Timestamp;
use sakshi_store::{CreateOutcome, LapseFlowOutcome, ReportFlow, ReportFlowOutcome, Store, StoreError};
use sakshi_supervision::Deadline;
use tokio::sync::Semaphore;

use super::message::{Lapse, OpenFlowTicket, ReportTicket, WakeAt};
use crate::dispatcher::{DeliveryQueued, WebhookDispatcher};
use crate::router::{Answered, Unanswered};
use crate::trusted_clock::TrustedClock;

/// Documents of the node that lapse at once: each is read, written and sealed as a whole, and many may
/// fall due together.
pub(crate) const LAPSES_AT_ONCE: usize = 4;
/// How often an actor asks whether its document has lapsed, by a store whose clock may be behind.
const LAPSE_TRIES: u32 = 5;
/// Pause between two such questions.
const LAPSE_PAUSE: Duration = Duration::from_secs(1);

/// What every flow actor of the node uses.
#[derive(Debug)]
pub(crate) struct FlowContext {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    /// Ends documents.
    pub(crate) trusted_clock: Arc<TrustedClock>,
    pub(crate) dispatcher: Addr<WebhookDispatcher>,
    /// How long a result can be fetched.
    pub(crate) result_ttl: Duration,
    /// Lets [`LAPSES_AT_ONCE`] documents lapse at a time.
    pub(crate) lapses: Semaphore,
}

impl FlowContext {
    /// Tells the dispatcher of a webhook that the store has queued.
    fn queued(&self, delivery: Option<QueuedDelivery>) {
        if let Some(delivery) = delivery {
            self.dispatcher.do_send(DeliveryQueued(delivery));
        }
    }

    async fn lapse(self: Arc<Self>, id: FlowId) -> Result<LapseFlowOutcome, StoreError> {
        let _permit = self.lapses.acquire().await.map_err(|_| StoreError::Overloaded)?;
        if self.trusted_clock.now().is_none() {
            // The sweeper comes back to it.
            return Ok(LapseFlowOutcome::NotDue);
        }
        self.store.lapse_flow(id, self.result_ttl).await
    }
}

/// One live flow.
#[derive(Debug)]
pub(crate) struct FlowActor {
    id: FlowId,
    context: Arc<FlowContext>,
    /// The shard that wakes it at its deadline, if the actor may wait there.
    shard: Option<Recipient<WakeAt>>,
    /// What it waits for.
    deadline: Option<Timestamp>,
    tries: u32,
    /// The store has been asked for something and has not answered yet.
    busy: bool,
}

type Reply<T> = AtomicResponse<FlowActor, Answered<T>>;

impl FlowActor {
    /// An actor for a flow to which something happens. With a `shard` it may stay until the flow's deadline.
    pub(crate) const fn new(id: FlowId, context: Arc<FlowContext>, shard: Option<Recipient<WakeAt>>) -> Self {
        Self { id, context, shard, deadline: None, tries: 0, busy: false }
    }

    /// Takes over the flow's deadline as the store returned it.
    fn set_deadline(&mut self, deadline: Option<Timestamp>) {
        let deadline = deadline.filter(|at| at.millis() < i64::MAX);
        if let (Some(at), Some(shard)) = (deadline, &self.shard)
            && self.deadline != Some(at)
        {
            shard.do_send(WakeAt { id: self.id, at });
        }
        self.deadline = deadline.filter(|_| self.shard.is_some());
        self.tries = 0;
    }

    /// Waits for the store before the next message is handled.
    fn run<T: 'static>(
        &mut self,
        work: impl Future<Output = Result<T, StoreError>> + 'static,
        then: impl FnOnce(&mut Self, &Result<T, StoreError>, &mut Context<Self>) + 'static,
    ) -> Reply<T> {
        self.busy = true;
        AtomicResponse::new(Box::pin(work.into_actor(self).map(|outcome, actor, ctx| {
            actor.busy = false;
            then(actor, &outcome, ctx);
            actor.stop_if_idle(ctx);
            Ok(outcome)
        })))
    }

    /// Stops behind the messages that already wait, unless there is a deadline to wait for.
    fn stop_if_idle(&self, ctx: &mut Context<Self>) {
        if self.deadline.is_none() {
            ctx.notify(Retire);
        }
    }

    /// The answer when the ticket had no value.
    fn lost<T: 'static>(&self, ctx: &mut Context<Self>) -> Reply<T> {
        self.stop_if_idle(ctx);
        AtomicResponse::new(Box::pin(async { Err(Unanswered::Lost) }.into_actor(self)))
    }

    fn opened(&mut self, outcome: &Result<CreateOutcome, StoreError>, deadline: Option<Timestamp>, kind: &'static str) {
        if matches!(outcome, Ok(CreateOutcome::Created)) {
            metrics::counter!("sakshi_flows_opened_total", "flow" => kind).increment(1);
            tracing::info!(flow.id = %self.id, flow.kind = kind, "flow opened");
            self.set_deadline(deadline);
        }
    }

    fn reported(&mut self, outcome: &Result<ReportFlowOutcome, StoreError>, kind: ReportKind) {
        let result = match outcome {
            Ok(ReportFlowOutcome::Accepted { flow, queued }) => {
                self.set_deadline(flow.deadline());
                self.context.queued(queued.clone());
                "accepted"
            }
            Ok(ReportFlowOutcome::Repeated) => "repeated",
            Ok(ReportFlowOutcome::Refused(_)) => "refused",
            Ok(ReportFlowOutcome::NotFound) => "not_found",
            Err(_) => "failed",
        };
        metrics::counter!("sakshi_flow_reports_total", "kind" => kind.as_str(), "result" => result).increment(1);
        tracing::info!(flow.id = %self.id, report.kind = kind.as_str(), result, "flow reported");
    }

    fn lapsed(&mut self, outcome: &Result<LapseFlowOutcome, StoreError>, ctx: &mut Context<Self>) {
        match outcome {
            Ok(LapseFlowOutcome::Lapsed { flow, queued }) => {
                metrics::counter!("sakshi_flows_lapsed_total").increment(1);
                tracing::info!(flow.id = %self.id, "document lapsed");
                self.set_deadline(flow.deadline());
                self.context.queued(queued.clone());
            }
            Ok(LapseFlowOutcome::NotFound) => self.deadline = None,
            // The store's clock decides and may be behind ours; or the document ended elsewhere.
            Ok(LapseFlowOutcome::NotDue) | Err(_) if self.deadline.is_some_and(|at| at <= self.context.clock.now()) => {
                self.tries += 1;
                if self.tries < LAPSE_TRIES {
                    ctx.notify_later(Deadline, LAPSE_PAUSE);
                } else {
                    self.deadline = None;
                }
            }
            Ok(LapseFlowOutcome::NotDue) | Err(_) => {}
        }
    }
}

impl Actor for FlowActor {
    type Context = Context<Self>;
}

impl Supervised for FlowActor {
    /// The state that a panic left behind is not trusted; the sweeper finds what is due.
    fn restarting(&mut self, ctx: &mut Self::Context) {
        self.deadline = None;
        self.tries = 0;
        self.busy = false;
        ctx.notify(Retire);
    }
}

impl Handler<OpenFlowTicket> for FlowActor {
    type Result = Reply<CreateOutcome>;

    fn handle(&mut self, OpenFlowTicket(ticket): OpenFlowTicket, ctx: &mut Self::Context) -> Self::Result {
        let Some(open) = ticket.take() else { return self.lost(ctx) };
        let (deadline, kind) = (open.flow.deadline(), open.flow.kind());
        let opening = self.context.store.open_flow(open);
        self.run(opening, move |actor, outcome, _| actor.opened(outcome, deadline, kind))
    }
}

impl Handler<ReportTicket> for FlowActor {
    type Result = Reply<ReportFlowOutcome>;

    fn handle(&mut self, ReportTicket(ticket): ReportTicket, ctx: &mut Self::Context) -> Self::Result {
        let Some(report) = ticket.take() else { return self.lost(ctx) };
        let kind = report.kind();
        let taking = self.context.store.report_flow(ReportFlow { report, result_ttl: self.context.result_ttl });
        self.run(taking, move |actor, outcome, _| actor.reported(outcome, kind))
    }
}

impl Handler<Lapse> for FlowActor {
    type Result = Reply<LapseFlowOutcome>;

    fn handle(&mut self, _: Lapse, _: &mut Self::Context) -> Self::Result {
        let lapse = Arc::clone(&self.context).lapse(self.id);
        self.run(lapse, Self::lapsed)
    }
}

impl Handler<Deadline> for FlowActor {
    type Result = ();

    fn handle(&mut self, _: Deadline, ctx: &mut Self::Context) {
        match self.deadline {
            Some(at) if at <= self.context.clock.now() => ctx.notify(Lapse),
            Some(_) => {}
            None => self.stop_if_idle(ctx),
        }
    }
}

/// Stop, unless something happens or there is a deadline to wait for.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
struct Retire;

impl Handler<Retire> for FlowActor {
    type Result = ();

    fn handle(&mut self, _: Retire, ctx: &mut Self::Context) {
        // Messages that come later get a fresh actor.
        if self.deadline.is_none() && !self.busy {
            ctx.stop();
        }
    }
}
