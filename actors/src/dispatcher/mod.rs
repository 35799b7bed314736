//! The webhook dispatcher: takes due deliveries from the outbox and attempts each at most once.
//!
//! Each receiver, an origin of a client, has a queue, so that a slow or dead one delays no other. Attempts in flight
//! are bounded per queue and in total. No client has more of them than are free, and clients take turns.
//!
//! The outbox holds every due delivery; the queues are bounded copies of parts of it. It is read when a queue has room,
//! after a start or restart, and every few seconds in case a [`DeliveryQueued`] was lost. A queue whose next body
//! exceeds the memory budget is skipped until it fits. Until then, its delivery is neither claimed nor in flight.
//!
//! The same holds while a receiver's name does not resolve because our resolver fails. The delivery waits for up to
//! `WEBHOOK_RESOLUTION_MAX`, and is then recorded as `unresolved`. Deliveries that still wait when the process ends are
//! sent by the next one.

mod attempt;
mod budget;
mod queues;
mod receiver_queue;
mod turns;

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, Message, Supervised, WrapFuture as _,
};
use futures_util::FutureExt as _;
use sakshi_domain::delivery::{DeliveryId, QueuedDelivery, Receiver};
use sakshi_domain::ids::ClientId;
use sakshi_store::{CompletedRecord, StoreError};
use sakshi_supervision::{FairSlot, FairSlots, Gate, Permit};
use sakshi_trace::invariant::{Part, holds};
use tokio::time::Instant;

pub(crate) use self::attempt::Attempter;
pub use self::budget::ByteBounds;
use self::budget::{BodyKind, Budget, BytesFreed, Exceeded, Reservation};
pub(crate) use self::queues::Queues;
pub use self::queues::ReceiverView;
use self::receiver_queue::{BATCH, ReceiverQueue, Source};
use self::turns::Turns;

/// Pause between two scans of the outbox for deliveries whose [`DeliveryQueued`] was lost.
const RESCAN: Duration = Duration::from_secs(2);
/// Pause after an attempt that could not begin, before a scan may queue its delivery again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

const ORIGINS_RESOLVING: &str = "sakshi_webhook_origins_resolving";

/// Bounds on attempts in flight and on the memory of their bodies.
#[derive(Clone, Copy, Debug)]
pub struct DispatchBounds {
    /// Attempts to all receivers together.
    pub in_flight: usize,
    /// Attempts to one origin of a client.
    pub in_flight_per_origin: usize,
    /// Bytes of webhooks about verifications.
    pub outcome_bytes: ByteBounds,
    /// Bytes of webhooks about flows, files included.
    pub flow_bytes: ByteBounds,
}

/// Counts of waiting webhooks and of attempts in flight, for the operator, for metrics and for draining.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub(crate) attempts: Arc<Gate>,
    /// Waiting webhooks, by receiver.
    pub(crate) queues: Queues,
    /// Slots of the clients for attempts.
    pub(crate) slots: FairSlots<ClientId>,
    /// Bytes reserved for webhook bodies.
    pub(crate) body_bytes: Arc<AtomicUsize>,
}

/// Begins attempts, one per receiver and turn.
#[derive(Debug)]
pub(crate) struct WebhookDispatcher {
    attempter: Rc<Attempter>,
    /// Counts the attempts in flight.
    attempts: Arc<Gate>,
    /// Bounds the attempts in flight.
    slots: FairSlots<ClientId>,
    in_flight_per_origin: usize,
    queues: Queues,
    /// Receivers with something to send that may begin an attempt.
    ready: Turns,
    /// By the kind of their next body: receivers whose turn has come, but whose body exceeds the memory budget. The
    /// longest waiting is first.
    blocked: [Vec<Arc<Receiver>>; 2],
    /// By kind: true if a blocked receiver waits for the shared memory. Then no other body, however small, overtakes
    /// it.
    exhausted: [bool; 2],
    budget: Rc<Budget>,
    /// Deliveries that are queued, in flight or in their retry pause; they are not queued again.
    known: HashSet<DeliveryId>,
    /// Delivery after which the next scan begins; `None` begins at the start of the outbox.
    scan_after: Option<DeliveryId>,
    pub(crate) scanning: bool,
    /// True if a scan has reached the end of the outbox since the last start or restart.
    caught_up: bool,
    /// Number of restarts. Reports of attempts and refills from before the last restart are ignored.
    generation: u64,
    /// True while the process shuts down; no further attempt begins.
    paused: bool,
    /// The completed transaction whose delivery is being queued. It spares a read if the attempt begins at once; a
    /// later attempt reads the transaction again.
    just_completed: Option<(DeliveryId, Box<CompletedRecord>)>,
}

impl WebhookDispatcher {
    /// Builds a dispatcher for the outbox of the attempter's store. The counts in `in_flight` survive restarts.
    #[must_use]
    pub(crate) fn new(attempter: Attempter, in_flight: InFlight, bounds: DispatchBounds) -> Self {
        Self {
            attempter: Rc::new(attempter),
            attempts: in_flight.attempts,
            slots: in_flight.slots,
            in_flight_per_origin: bounds.in_flight_per_origin,
            queues: in_flight.queues,
            ready: Turns::default(),
            blocked: Default::default(),
            exhausted: [false; 2],
            budget: Rc::new(Budget::new(bounds.outcome_bytes, bounds.flow_bytes, in_flight.body_bytes)),
            known: HashSet::new(),
            scan_after: None,
            scanning: false,
            caught_up: false,
            generation: 0,
            paused: false,
            just_completed: None,
        }
    }

    /// Reads the next batch of the outbox; after the last one it starts over.
    fn scan(&mut self, ctx: &mut Context<Self>) {
        if self.scanning || self.paused {
            return;
        }
        self.scanning = true;
        let due = self.attempter.store.due_deliveries(self.scan_after, None, BATCH);
        ctx.spawn(due.into_actor(self).map(|due, dispatcher, ctx| dispatcher.enqueue_scanned(due, ctx)));
    }

    /// Queues the batch of a scan. Schedules the next scan at once if the outbox was not read to its end yet.
    fn enqueue_scanned(&mut self, due: Result<Vec<QueuedDelivery>, StoreError>, ctx: &mut Context<Self>) {
        self.scanning = false;
        let Ok(due) = due else { return };
        let full_batch = due.len() == BATCH;
        self.scan_after = if full_batch { due.last().map(|delivery| delivery.id) } else { None };
        due.into_iter().for_each(|delivery| self.enqueue(delivery, Source::NoticeOrScan, ctx));
        self.queues.receivers().iter().for_each(|receiver| self.refill(receiver, ctx));
        self.dispatch(ctx);
        if full_batch && !self.caught_up {
            // After a start the whole outbox is read without a long pause. Later scans read one batch per `RESCAN`.
            ctx.run_later(Duration::from_millis(1), Self::scan);
        }
        self.caught_up |= !full_batch;
    }

    /// Queues a delivery, unless it is known already or the queue leaves it to a refill.
    fn enqueue(&mut self, delivery: QueuedDelivery, source: Source, ctx: &mut Context<Self>) {
        if self.known.contains(&delivery.id) {
            return;
        }
        let (id, receiver) = (delivery.id, self.queues.get_or_create(&delivery.receiver));
        if self.queues.with(&receiver, |queue| queue.push(delivery, source)) == Some(true) {
            self.known.insert(id);
        }
        self.make_ready(&receiver, ctx);
    }

    /// Gives a receiver a turn if it has something to send and may begin an attempt, as soon as its name resolves.
    fn make_ready(&mut self, receiver: &Arc<Receiver>, ctx: &mut Context<Self>) {
        let next = self.queues.with(receiver, |queue| queue.become_ready(self.in_flight_per_origin)).flatten();
        let Some(waiting_since) = next else { return };
        let mut resolution = self.attempter.client.wait_for_resolution(&receiver.origin, waiting_since);
        if let Some(resolves) = (&mut resolution).now_or_never() {
            return self.give_turn(receiver, resolves, waiting_since);
        }
        let (receiver, generation) = (Arc::clone(receiver), self.generation);
        // Reported unchanged if the lookup panics; the attempt is then made.
        let resolved = NameResolved { receiver, generation, waiting_since, resolves: true };
        let mut report = ReportResolved::begin(ctx.address(), resolved);
        actix_rt::spawn(async move {
            let resolves = resolution.await;
            if let Some(resolved) = &mut report.resolved {
                resolved.resolves = resolves;
            }
        });
    }

    /// Gives a receiver a turn after its name has resolved, or has not resolved in time.
    fn give_turn(&mut self, receiver: &Arc<Receiver>, resolves: bool, waiting_since: Instant) {
        if self.queues.with(receiver, |queue| queue.note_resolution(resolves, waiting_since)).is_some() {
            self.ready.push(Arc::clone(receiver));
        }
    }

    /// Begins attempts while the bounds and the memory budget allow it, one per receiver and turn.
    fn dispatch(&mut self, ctx: &mut Context<Self>) {
        while !self.paused && (self.budget.was_freed() || !self.ready.is_empty()) {
            let unblocked = if self.budget.was_freed() { self.next_unblocked(ctx) } else { None };
            let Some((receiver, slot, memory)) = unblocked.or_else(|| self.next_ready(ctx)) else { break };
            self.begin_attempt(&receiver, slot, memory, ctx);
        }
        self.budget.set_notify(self.blocked.iter().any(|blocked| !blocked.is_empty()));
    }

    /// Returns the receiver that has been blocked longest, among those that may have a slot and whose next body fits
    /// now.
    fn next_unblocked(&mut self, ctx: &Context<Self>) -> Option<ReadyAttempt> {
        let notify = ctx.address().recipient();
        let mut waits_for_slot = false;
        for kind in BodyKind::ALL {
            let blocked = &mut self.blocked[kind as usize];
            self.exhausted[kind as usize] = false;
            for index in 0..blocked.len() {
                let Some(need) = self.queues.with(&blocked[index], |queue| queue.next_need()).flatten() else {
                    continue;
                };
                let Some(slot) = self.slots.enter(&blocked[index].client) else {
                    waits_for_slot = true;
                    continue;
                };
                match self.budget.reserve(need, &blocked[index], &notify) {
                    Ok(memory) => return Some((blocked.remove(index), slot, memory)),
                    Err(Exceeded::Share) => {}
                    Err(Exceeded::Total) => {
                        self.exhausted[kind as usize] = true;
                        break;
                    }
                }
            }
        }
        // Those that wait for a slot are checked again when an attempt ends.
        if !waits_for_slot {
            self.budget.clear_freed();
        }
        None
    }

    /// Returns the next receiver in turn whose body fits into the memory budget. Those before it become blocked.
    fn next_ready(&mut self, ctx: &Context<Self>) -> Option<ReadyAttempt> {
        let notify = ctx.address().recipient();
        while let Some((receiver, slot)) = self.ready.next(&self.slots) {
            let Some(need) = self.queues.with(&receiver, |queue| queue.next_need()).flatten() else { continue };
            let kind = need.kind as usize;
            let memory =
                if self.exhausted[kind] { Err(Exceeded::Total) } else { self.budget.reserve(need, &receiver, &notify) };
            match memory {
                Ok(memory) => return Some((receiver, slot, memory)),
                Err(exceeded) => {
                    self.exhausted[kind] |= exceeded == Exceeded::Total;
                    self.blocked[kind].push(receiver);
                }
            }
        }
        None
    }

    /// Begins the attempt at the receiver's next delivery, in a task of its own.
    fn begin_attempt(
        &mut self,
        receiver: &Arc<Receiver>,
        slot: FairSlot<ClientId>,
        memory: Reservation,
        ctx: &mut Context<Self>,
    ) {
        let Some(due) = self.queues.with(receiver, ReceiverQueue::start_attempt).flatten() else { return };
        let id = due.delivery.id;
        if !holds(Part::Dispatcher, "a webhook whose attempt begins was queued once", self.known.contains(&id))
            || !holds(
                Part::Dispatcher,
                "a webhook is in the queue of its receiver",
                due.delivery.receiver == **receiver,
            )
        {
            // A scan finds it again.
            self.known.remove(&id);
            self.queues.update(receiver, ReceiverQueue::end_attempt);
            return;
        }
        let attempter = Rc::clone(&self.attempter);
        let completed = self.just_completed.take_if(|(delivery_id, _)| *delivery_id == id).map(|(_, record)| record);
        let ended = AttemptEnded { receiver: Arc::clone(receiver), id, generation: self.generation, retry: true };
        let mut report = ReportAtEnd {
            dispatcher: ctx.address(),
            ended: Some(ended),
            _slot: slot,
            _permit: self.attempts.enter_unbounded(),
        };
        actix_rt::spawn(async move {
            let retry = attempter.attempt(due, completed, memory).await;
            if let Some(ended) = &mut report.ended {
                ended.retry = retry;
            }
        });
        self.make_ready(receiver, ctx);
    }
}

impl Actor for WebhookDispatcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.scan(ctx);
        ctx.run_interval(RESCAN, Self::scan);
    }
}

impl Supervised for WebhookDispatcher {
    /// Forgets the queues. Attempts in flight continue and record their outcomes themselves.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.queues.clear();
        self.ready = Turns::default();
        self.blocked = Default::default();
        self.exhausted = [false; 2];
        self.known.clear();
        self.scan_after = None;
        self.scanning = false;
        self.caught_up = false;
        self.just_completed = None;
        self.generation += 1;
    }
}

/// A delivery was queued; the record is that of the transaction whose end queued it.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct DeliveryQueued(pub QueuedDelivery, pub Option<Box<CompletedRecord>>);

impl Handler<DeliveryQueued> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, DeliveryQueued(delivery, completed): DeliveryQueued, ctx: &mut Self::Context) {
        self.just_completed = completed.map(|record| (delivery.id, record));
        self.enqueue(delivery, Source::NoticeOrScan, ctx);
        self.dispatch(ctx);
        self.just_completed = None;
    }
}

/// Reports the end of an attempt on drop, so that an attempt that panics is reported too.
struct ReportAtEnd {
    dispatcher: Addr<WebhookDispatcher>,
    ended: Option<AttemptEnded>,
    /// Held until the attempt has ended, like the permit.
    _slot: FairSlot<ClientId>,
    _permit: Permit,
}

impl Drop for ReportAtEnd {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            self.dispatcher.do_send(ended);
        }
    }
}

/// A receiver with the slot and the memory for an attempt.
type ReadyAttempt = (Arc<Receiver>, FairSlot<ClientId>, Reservation);

/// Counts an origin while its name is looked up, and reports the end on drop, so that a panic is reported too.
struct ReportResolved {
    dispatcher: Addr<WebhookDispatcher>,
    resolved: Option<NameResolved>,
}

impl ReportResolved {
    fn begin(dispatcher: Addr<WebhookDispatcher>, resolved: NameResolved) -> Self {
        metrics::gauge!(ORIGINS_RESOLVING).increment(1.0);
        Self { dispatcher, resolved: Some(resolved) }
    }
}

impl Drop for ReportResolved {
    fn drop(&mut self) {
        metrics::gauge!(ORIGINS_RESOLVING).decrement(1.0);
        if let Some(resolved) = self.resolved.take() {
            self.dispatcher.do_send(resolved);
        }
    }
}

/// An origin's name has resolved, has failed for good, or has timed out.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
struct NameResolved {
    receiver: Arc<Receiver>,
    /// [`WebhookDispatcher::generation`] when the lookup began.
    generation: u64,
    /// Time from which the next delivery has waited.
    waiting_since: Instant,
    /// True if the resolver has answered.
    resolves: bool,
}

impl Handler<NameResolved> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, resolved: NameResolved, ctx: &mut Self::Context) {
        if resolved.generation == self.generation {
            self.give_turn(&resolved.receiver, resolved.resolves, resolved.waiting_since);
            self.dispatch(ctx);
        }
    }
}

/// An attempt has ended: it was made, it could not begin, or it panicked.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
struct AttemptEnded {
    receiver: Arc<Receiver>,
    id: DeliveryId,
    /// [`WebhookDispatcher::generation`] when the attempt began.
    generation: u64,
    /// True if the attempt could not begin; a scan will find the delivery again.
    retry: bool,
}

impl Handler<AttemptEnded> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, ended: AttemptEnded, ctx: &mut Self::Context) {
        if ended.generation == self.generation {
            holds(
                Part::Dispatcher,
                "an attempt that ends is of a webhook that was queued",
                self.known.contains(&ended.id),
            );
            if ended.retry {
                ctx.run_later(RETRY_PAUSE, move |dispatcher, _| {
                    dispatcher.known.remove(&ended.id);
                });
            } else {
                self.known.remove(&ended.id);
            }
            self.queues.update(&ended.receiver, ReceiverQueue::end_attempt);
            self.refill(&ended.receiver, ctx);
            self.make_ready(&ended.receiver, ctx);
        }
        self.dispatch(ctx);
    }
}

impl WebhookDispatcher {
    /// Reads more of the outbox for a queue that is behind and has room.
    fn refill(&mut self, receiver: &Arc<Receiver>, ctx: &mut Context<Self>) {
        let Some(after) = self.queues.with(receiver, ReceiverQueue::start_refill).flatten() else { return };
        let due = self.attempter.store.due_deliveries(after, Some(Receiver::clone(receiver)), BATCH);
        let (receiver, generation) = (Arc::clone(receiver), self.generation);
        ctx.spawn(due.into_actor(self).map(move |due, dispatcher, ctx| {
            if dispatcher.generation == generation {
                dispatcher.enqueue_refill(&receiver, due, ctx);
            }
        }));
    }

    /// Queues the batch of a refill, and reads on if the queue still has room.
    fn enqueue_refill(
        &mut self,
        receiver: &Arc<Receiver>,
        due: Result<Vec<QueuedDelivery>, StoreError>,
        ctx: &mut Context<Self>,
    ) {
        // After a failure of the store, the next attempt or scan tries again.
        let has_more = due.as_ref().map_or(true, |due| due.len() == BATCH);
        let (failed, last_id) = (due.is_err(), due.as_ref().ok().and_then(|due| due.last()).map(|last| last.id));
        due.unwrap_or_default().into_iter().for_each(|delivery| self.enqueue(delivery, Source::Refill, ctx));
        self.queues.update(receiver, |queue| queue.finish_refill(last_id, has_more));
        if !failed {
            self.refill(receiver, ctx);
        }
        self.dispatch(ctx);
    }
}

impl Handler<BytesFreed> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, _: BytesFreed, ctx: &mut Self::Context) {
        self.dispatch(ctx);
    }
}

/// Stops the dispatcher from beginning further attempts, because the process shuts down.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Pause;

impl Handler<Pause> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, _: Pause, _: &mut Self::Context) {
        self.paused = true;
    }
}
