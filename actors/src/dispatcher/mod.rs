//! The webhook dispatcher: takes due deliveries from the outbox and sees to it that each is
//! attempted once, ever.
//!
//! Each origin (scheme, host, port) has a queue, so that a receiver that is slow or dead delays nobody
//! else. A queue has a bound on attempts in flight, all queues together have another, and queues take
//! turns. The queues hold a bounded number of positions in the outbox, which is what counts. They are
//! read from it when a queue runs empty, when the dispatcher restarts and every few seconds in case a
//! notice was lost. A queue whose next body finds no room in memory waits outside the turn, and takes
//! neither a place in flight nor a claim meanwhile.

mod attempt;
mod budget;
mod origin_queue;

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, Message, Supervised, WrapFuture as _};
use sakshi_domain::delivery::{DeliveryId, QueuedDelivery};
use sakshi_outbound::client::WebhookClient;
use sakshi_store::{Store, StoreError, Vault};
use sakshi_supervision::{Gate, Permit};

use self::attempt::Attempter;
pub use self::budget::ByteBounds;
use self::budget::{BodyKind, Budget, BytesFreed, Exceeded, Reservation};
use self::origin_queue::{BATCH, OriginQueue, Source};

/// Pause between two scans of the outbox for deliveries whose notice was lost.
const RESCAN: Duration = Duration::from_secs(2);
/// Pause before a scan may find a delivery again whose attempt could not begin.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// How many attempts may be in flight, and how much memory their bodies may use.
#[derive(Clone, Copy, Debug)]
pub struct DispatchBounds {
    /// To all receivers together.
    pub in_flight: usize,
    /// To one origin.
    pub in_flight_per_host: usize,
    /// Bytes of webhooks about verifications.
    pub outcome_bytes: ByteBounds,
    /// Bytes of webhooks about flows, files included.
    pub flow_bytes: ByteBounds,
}

/// Counts of what is in flight, for metrics and for draining.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub(crate) attempts: Arc<Gate>,
    /// Bytes of their bodies.
    pub(crate) body_bytes: Arc<AtomicUsize>,
}

/// Hands deliveries to attempts, fairly.
#[derive(Debug)]
pub(crate) struct WebhookDispatcher {
    attempter: Rc<Attempter>,
    bounds: DispatchBounds,
    queues: HashMap<Rc<str>, OriginQueue>,
    /// Origins with something to send and a place in flight, in turn.
    ready: VecDeque<Rc<str>>,
    /// Origins whose turn has come and whose next body finds no room in memory, by its kind; longest first.
    blocked: [VecDeque<Rc<str>>; 2],
    /// By kind, whether one of these waits for memory shared by all origins; a smaller body does not overtake it then.
    full: [bool; 2],
    budget: Rc<Budget>,
    /// Every delivery that is in a queue or in flight.
    known: HashSet<DeliveryId>,
    /// Where the next scan of the outbox begins.
    scanned: Option<DeliveryId>,
    scanning: bool,
    caught_up: bool,
    /// Tells attempts begun before a restart from those begun since.
    generation: u64,
    paused: bool,
}

impl WebhookDispatcher {
    /// A dispatcher over a store. The counts in `in_flight` go on across restarts.
    #[must_use]
    pub(crate) fn new(
        store: Arc<dyn Store>,
        vault: Arc<Vault>,
        client: WebhookClient,
        in_flight: InFlight,
        bounds: DispatchBounds,
    ) -> Self {
        let InFlight { attempts, body_bytes } = in_flight;
        Self {
            attempter: Rc::new(Attempter { store, vault, client, attempts }),
            bounds,
            queues: HashMap::new(),
            ready: VecDeque::new(),
            blocked: Default::default(),
            full: [false; 2],
            budget: Rc::new(Budget::new(bounds.outcome_bytes, bounds.flow_bytes, body_bytes)),
            known: HashSet::new(),
            scanned: None,
            scanning: false,
            caught_up: false,
            generation: 0,
            paused: false,
        }
    }

    /// Reads the next part of the outbox; begins anew after the last.
    fn scan(&mut self, ctx: &mut Context<Self>) {
        if self.scanning || self.paused {
            return;
        }
        self.scanning = true;
        let due = self.attempter.store.due_deliveries(self.scanned, None, BATCH);
        ctx.spawn(due.into_actor(self).map(|due, dispatcher, ctx| dispatcher.scanned(due, ctx)));
    }

    fn scanned(&mut self, due: Result<Vec<QueuedDelivery>, StoreError>, ctx: &mut Context<Self>) {
        self.scanning = false;
        let Ok(due) = due else { return };
        let full = due.len() == BATCH;
        self.scanned = if full { due.last().map(|delivery| delivery.id) } else { None };
        due.into_iter().for_each(|delivery| self.enqueue(delivery, Source::Notice));
        let behind: Vec<Rc<str>> = self.queues.keys().map(Rc::clone).collect();
        behind.iter().for_each(|origin| self.read_on(origin, ctx));
        self.dispatch(ctx);
        if full && !self.caught_up {
            // What an earlier process left is read to the end, a batch at a time; later scans only look for what was
            // missed, a batch each.
            ctx.run_later(Duration::from_millis(1), Self::scan);
        }
        self.caught_up |= !full;
    }

    /// Puts a delivery into its queue, unless it is known already or the queue leaves it in the outbox.
    fn enqueue(&mut self, delivery: QueuedDelivery, source: Source) {
        if self.known.contains(&delivery.id) {
            return;
        }
        let origin: Rc<str> = delivery.url.origin().into();
        let queue = self.queues.entry(Rc::clone(&origin)).or_default();
        let id = delivery.id;
        if queue.push(delivery, source) {
            self.known.insert(id);
        }
        self.make_ready(&origin);
    }

    /// Gives a queue a turn when it has something to send and a place in flight.
    fn make_ready(&mut self, origin: &Rc<str>) {
        if let Some(queue) = self.queues.get_mut(origin)
            && queue.become_ready(self.bounds.in_flight_per_host)
        {
            self.ready.push_back(Rc::clone(origin));
        }
    }

    /// Begins attempts while there are places in flight and memory, one per queue and turn.
    fn dispatch(&mut self, ctx: &mut Context<Self>) {
        while !self.paused && (self.budget.was_freed() || !self.ready.is_empty()) {
            let Some(permit) = self.attempter.attempts.enter() else { break };
            let unblocked = if self.budget.was_freed() { self.next_unblocked(ctx) } else { None };
            if unblocked.is_none() {
                self.budget.all_checked();
            }
            let Some((origin, memory)) = unblocked.or_else(|| self.next_ready(ctx)) else { break };
            self.begin(&origin, memory, permit, ctx);
        }
        self.budget.set_notify(self.blocked.iter().any(|blocked| !blocked.is_empty()));
    }

    /// The origin that has waited longest for memory that is free now.
    fn next_unblocked(&mut self, ctx: &Context<Self>) -> Option<(Rc<str>, Reservation)> {
        let notify = ctx.address().recipient();
        for kind in BodyKind::ALL {
            let blocked = &mut self.blocked[kind as usize];
            self.full[kind as usize] = false;
            for index in 0..blocked.len() {
                let Some(next) = self.queues.get(&blocked[index]).and_then(OriginQueue::next) else { continue };
                match self.budget.reserve(next, &blocked[index], &notify) {
                    Ok(memory) => return Some((blocked.remove(index)?, memory)),
                    Err(Exceeded::OfOrigin) => {}
                    Err(Exceeded::OfAll) => {
                        self.full[kind as usize] = true;
                        break;
                    }
                }
            }
        }
        None
    }

    /// The next origin in turn whose body finds memory; those before it become blocked.
    fn next_ready(&mut self, ctx: &Context<Self>) -> Option<(Rc<str>, Reservation)> {
        let notify = ctx.address().recipient();
        while let Some(origin) = self.ready.pop_front() {
            let Some(next) = self.queues.get(&origin).and_then(OriginQueue::next) else { continue };
            let kind = next.kind as usize;
            let memory = if self.full[kind] { Err(Exceeded::OfAll) } else { self.budget.reserve(next, &origin, &notify) };
            match memory {
                Ok(memory) => return Some((origin, memory)),
                Err(exceeded) => {
                    self.full[kind] |= exceeded == Exceeded::OfAll;
                    self.blocked[kind].push_back(origin);
                }
            }
        }
        None
    }

    fn begin(&mut self, origin: &Rc<str>, memory: Reservation, permit: Permit, ctx: &mut Context<Self>) {
        let Some(delivery) = self.queues.get_mut(origin).and_then(OriginQueue::begin) else { return };
        let attempter = Rc::clone(&self.attempter);
        let ended = AttemptEnded { origin: origin.as_ref().into(), id: delivery.id, generation: self.generation, retry: true };
        let mut report = ReportAtEnd { dispatcher: ctx.address(), ended: Some(ended), _permit: permit };
        actix_rt::spawn(async move {
            let retry = attempter.attempt(delivery, memory).await;
            if let Some(ended) = &mut report.ended {
                ended.retry = retry;
            }
        });
        self.make_ready(origin);
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
    /// Forgets what it held; attempts in flight run on and settle themselves.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.queues.clear();
        self.ready.clear();
        self.blocked = Default::default();
        self.full = [false; 2];
        self.known.clear();
        self.scanned = None;
        self.scanning = false;
        self.caught_up = false;
        self.generation += 1;
    }
}

/// A delivery was queued.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct DeliveryQueued(pub QueuedDelivery);

impl Handler<DeliveryQueued> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, DeliveryQueued(delivery): DeliveryQueued, ctx: &mut Self::Context) {
        self.enqueue(delivery, Source::Notice);
        self.dispatch(ctx);
    }
}

/// Reports the end of an attempt when it is dropped, so that one that panics frees its place too.
struct ReportAtEnd {
    dispatcher: Addr<WebhookDispatcher>,
    ended: Option<AttemptEnded>,
    _permit: Permit,
}

impl Drop for ReportAtEnd {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            self.dispatcher.do_send(ended);
        }
    }
}

/// An attempt has ended, one way or another.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
struct AttemptEnded {
    origin: Box<str>,
    id: DeliveryId,
    generation: u64,
    /// The attempt could not begin; the delivery waits in the outbox for a scan.
    retry: bool,
}

impl Handler<AttemptEnded> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, ended: AttemptEnded, ctx: &mut Self::Context) {
        if ended.generation == self.generation {
            if ended.retry {
                ctx.run_later(RETRY_PAUSE, move |dispatcher, _| {
                    dispatcher.known.remove(&ended.id);
                });
            } else {
                self.known.remove(&ended.id);
            }
            let origin: Rc<str> = ended.origin.into();
            if let Some(queue) = self.queues.get_mut(&origin) {
                queue.end();
                if queue.is_idle() {
                    self.queues.remove(&origin);
                }
            }
            self.read_on(&origin, ctx);
            self.make_ready(&origin);
        }
        self.dispatch(ctx);
    }
}

impl WebhookDispatcher {
    /// Reads more of the outbox for a queue that is behind and has places.
    fn read_on(&mut self, origin: &Rc<str>, ctx: &mut Context<Self>) {
        let Some(after) = self.queues.get_mut(origin).and_then(OriginQueue::read_on) else { return };
        let due = self.attempter.store.due_deliveries(after, Some(origin.to_string()), BATCH);
        let (of, generation) = (Rc::clone(origin), self.generation);
        ctx.spawn(due.into_actor(self).map(move |due, dispatcher, ctx| {
            if dispatcher.generation == generation {
                dispatcher.refilled(&of, due, ctx);
            }
        }));
    }

    fn refilled(&mut self, origin: &Rc<str>, due: Result<Vec<QueuedDelivery>, StoreError>, ctx: &mut Context<Self>) {
        // A store that fails is asked again after the next attempt, or with the next scan.
        let more = due.as_ref().map_or(true, |due| due.len() == BATCH);
        let (failed, until) = (due.is_err(), due.as_ref().ok().and_then(|due| due.last()).map(|last| last.id));
        due.unwrap_or_default().into_iter().for_each(|delivery| self.enqueue(delivery, Source::Refill));
        if let Some(queue) = self.queues.get_mut(origin) {
            queue.read(until, more);
            if queue.is_idle() {
                self.queues.remove(origin);
            }
        }
        if !failed {
            self.read_on(origin, ctx);
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

/// Begin no further attempt: the process is about to end.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Pause;

impl Handler<Pause> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, _: Pause, _: &mut Self::Context) {
        self.paused = true;
    }
}
