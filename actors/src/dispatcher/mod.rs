//! The webhook dispatcher: takes due deliveries from the outbox and sees to it that each is
//! attempted once, ever.
//!
//! Deliveries to one origin share a lane, so that a receiver that is slow or dead holds up nobody
//! else: a lane has a bound on attempts in flight, all lanes together have another, and lanes take
//! turns. The outbox is the truth; what is held here are positions in it, a bounded number per
//! lane, re-read from the store when a lane runs dry, when the dispatcher restarts and every few
//! seconds in case a notice was lost. A lane whose next body finds no room in memory waits for it
//! outside the turn, and holds neither a place in flight nor a claim meanwhile.

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
use self::budget::{BodyKind, Budget, Held, Short};
use self::origin_queue::{BATCH, Lane, Source};

/// How often the outbox is looked through for deliveries whose notice was lost.
const RESCAN: Duration = Duration::from_secs(2);
/// How long a delivery that could not be begun is left alone before a scan may find it again.
const AGAIN: Duration = Duration::from_secs(5);

/// How many attempts may be in flight, and how much memory their bodies may take.
#[derive(Clone, Copy, Debug)]
pub struct LaneBounds {
    /// To all receivers together.
    pub in_flight: usize,
    /// To one origin.
    pub in_flight_per_host: usize,
    /// Bytes of the outcomes of verifications.
    pub outcome_bytes: ByteBounds,
    /// Bytes of what upstreams reported, files included.
    pub flow_bytes: ByteBounds,
}

/// What can be seen from outside of the attempts under way.
#[derive(Clone, Debug)]
pub(crate) struct UnderWay {
    pub(crate) attempts: Arc<Gate>,
    /// Bytes of their bodies.
    pub(crate) body_bytes: Arc<AtomicUsize>,
}

/// Hands deliveries to attempts, fairly.
#[derive(Debug)]
pub(crate) struct WebhookDispatcher {
    attempter: Rc<Attempter>,
    bounds: LaneBounds,
    lanes: HashMap<Rc<str>, Lane>,
    /// Lanes with something to send and a place to send it, in turn.
    turn: VecDeque<Rc<str>>,
    /// Lanes whose turn has come and whose next body finds no room, by its kind; longest first.
    waiting: [VecDeque<Rc<str>>; 2],
    /// By kind, whether one of these waits for the room of all; what is smaller then does not overtake it.
    full: [bool; 2],
    budget: Rc<Budget>,
    /// Every delivery that is in a lane or in flight.
    held: HashSet<DeliveryId>,
    /// Where the next look through the outbox begins.
    scanned: Option<DeliveryId>,
    scanning: bool,
    caught_up: bool,
    /// Tells attempts begun before a restart from those begun since.
    life: u64,
    paused: bool,
}

impl WebhookDispatcher {
    /// A dispatcher over a store; attempts in flight and the bytes of their bodies are counted in
    /// `under_way`, across restarts.
    #[must_use]
    pub(crate) fn new(store: Arc<dyn Store>, vault: Arc<Vault>, client: WebhookClient, under_way: UnderWay, bounds: LaneBounds) -> Self {
        let UnderWay { attempts: in_flight, body_bytes } = under_way;
        Self {
            attempter: Rc::new(Attempter { store, vault, client, in_flight }),
            bounds,
            lanes: HashMap::new(),
            turn: VecDeque::new(),
            waiting: Default::default(),
            full: [false; 2],
            budget: Rc::new(Budget::new(bounds.outcome_bytes, bounds.flow_bytes, body_bytes)),
            held: HashSet::new(),
            scanned: None,
            scanning: false,
            caught_up: false,
            life: 0,
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
        let behind: Vec<Rc<str>> = self.lanes.keys().map(Rc::clone).collect();
        behind.iter().for_each(|origin| self.read_on(origin, ctx));
        self.dispatch(ctx);
        if full && !self.caught_up {
            // The backlog of an earlier life is read in one go, a batch at a time, with others'
            // turns between; later scans only look for what was missed, a batch per round.
            ctx.run_later(Duration::from_millis(1), Self::scan);
        }
        self.caught_up |= !full;
    }

    /// Puts a delivery into its lane, unless it is held already or the lane leaves it in the outbox.
    fn enqueue(&mut self, delivery: QueuedDelivery, source: Source) {
        if self.held.contains(&delivery.id) {
            return;
        }
        let origin: Rc<str> = delivery.url.origin().into();
        let lane = self.lanes.entry(Rc::clone(&origin)).or_default();
        let id = delivery.id;
        if lane.push(delivery, source) {
            self.held.insert(id);
        }
        self.take_turn(&origin);
    }

    /// Lines a lane up when it has something to send and room to send it.
    fn take_turn(&mut self, origin: &Rc<str>) {
        if let Some(lane) = self.lanes.get_mut(origin)
            && lane.line_up(self.bounds.in_flight_per_host)
        {
            self.turn.push_back(Rc::clone(origin));
        }
    }

    /// Begins attempts while there are places and room, one per lane and turn.
    fn dispatch(&mut self, ctx: &mut Context<Self>) {
        while !self.paused && (self.budget.was_freed() || !self.turn.is_empty()) {
            let Some(permit) = self.attempter.in_flight.enter() else { break };
            let waited = if self.budget.was_freed() { self.next_waiting(ctx) } else { None };
            if waited.is_none() {
                self.budget.seen();
            }
            let Some((origin, room)) = waited.or_else(|| self.next_in_turn(ctx)) else { break };
            self.begin(&origin, room, permit, ctx);
        }
        self.budget.tell(self.waiting.iter().any(|waiting| !waiting.is_empty()));
    }

    /// The lane that has waited longest for room that is there now.
    fn next_waiting(&mut self, ctx: &Context<Self>) -> Option<(Rc<str>, Held)> {
        let tell = ctx.address().recipient();
        for kind in BodyKind::ALL {
            let waiting = &mut self.waiting[kind as usize];
            self.full[kind as usize] = false;
            for index in 0..waiting.len() {
                let Some(next) = self.lanes.get(&waiting[index]).and_then(Lane::next) else { continue };
                match self.budget.take(next, &waiting[index], &tell) {
                    Ok(room) => return Some((waiting.remove(index)?, room)),
                    Err(Short::Origin) => {}
                    Err(Short::All) => {
                        self.full[kind as usize] = true;
                        break;
                    }
                }
            }
        }
        None
    }

    /// The next lane in turn whose body finds room; those before it wait for theirs.
    fn next_in_turn(&mut self, ctx: &Context<Self>) -> Option<(Rc<str>, Held)> {
        let tell = ctx.address().recipient();
        while let Some(origin) = self.turn.pop_front() {
            let Some(next) = self.lanes.get(&origin).and_then(Lane::next) else { continue };
            let kind = next.kind as usize;
            let room = if self.full[kind] { Err(Short::All) } else { self.budget.take(next, &origin, &tell) };
            match room {
                Ok(room) => return Some((origin, room)),
                Err(short) => {
                    self.full[kind] |= short == Short::All;
                    self.waiting[kind].push_back(origin);
                }
            }
        }
        None
    }

    fn begin(&mut self, origin: &Rc<str>, room: Held, permit: Permit, ctx: &mut Context<Self>) {
        let Some(delivery) = self.lanes.get_mut(origin).and_then(Lane::begin) else { return };
        let attempter = Rc::clone(&self.attempter);
        let ended = AttemptEnded { origin: origin.as_ref().into(), id: delivery.id, life: self.life, again: true };
        let mut report = ReportAtEnd { dispatcher: ctx.address(), ended: Some(ended), _permit: permit };
        actix_rt::spawn(async move {
            let again = attempter.attempt(delivery, room).await;
            if let Some(ended) = &mut report.ended {
                ended.again = again;
            }
        });
        self.take_turn(origin);
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
        self.lanes.clear();
        self.turn.clear();
        self.waiting = Default::default();
        self.full = [false; 2];
        self.held.clear();
        self.scanned = None;
        self.scanning = false;
        self.caught_up = false;
        self.life += 1;
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
    life: u64,
    /// The attempt could not be claimed; the delivery waits in the outbox for the next scan.
    again: bool,
}

impl Handler<AttemptEnded> for WebhookDispatcher {
    type Result = ();

    fn handle(&mut self, ended: AttemptEnded, ctx: &mut Self::Context) {
        if ended.life == self.life {
            if ended.again {
                ctx.run_later(AGAIN, move |dispatcher, _| {
                    dispatcher.held.remove(&ended.id);
                });
            } else {
                self.held.remove(&ended.id);
            }
            let origin: Rc<str> = ended.origin.into();
            if let Some(lane) = self.lanes.get_mut(&origin) {
                lane.end();
                if lane.is_idle() {
                    self.lanes.remove(&origin);
                }
            }
            self.read_on(&origin, ctx);
            self.take_turn(&origin);
        }
        self.dispatch(ctx);
    }
}

impl WebhookDispatcher {
    /// Reads the outbox on for a lane that is behind and has room.
    fn read_on(&mut self, origin: &Rc<str>, ctx: &mut Context<Self>) {
        let Some(after) = self.lanes.get_mut(origin).and_then(Lane::read_on) else { return };
        let due = self.attempter.store.due_deliveries(after, Some(origin.to_string()), BATCH);
        let (of, life) = (Rc::clone(origin), self.life);
        ctx.spawn(due.into_actor(self).map(move |due, dispatcher, ctx| {
            if dispatcher.life == life {
                dispatcher.refilled(&of, due, ctx);
            }
        }));
    }

    fn refilled(&mut self, origin: &Rc<str>, due: Result<Vec<QueuedDelivery>, StoreError>, ctx: &mut Context<Self>) {
        // A store that is away is asked again after the next attempt, or with the next look through the outbox.
        let more = due.as_ref().map_or(true, |due| due.len() == BATCH);
        let (failed, until) = (due.is_err(), due.as_ref().ok().and_then(|due| due.last()).map(|last| last.id));
        due.unwrap_or_default().into_iter().for_each(|delivery| self.enqueue(delivery, Source::Refill));
        if let Some(lane) = self.lanes.get_mut(origin) {
            lane.read(until, more);
            if lane.is_idle() {
                self.lanes.remove(origin);
            }
        }
        if !failed {
            self.read_on(origin, ctx);
        }
        self.dispatch(ctx);
    }
}

/// Bodies take less memory than before, and a lane waits for that.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
struct BytesFreed;

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

/// Makes the dispatcher panic while it handles a message.
#[cfg(test)]
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Detonate;

#[cfg(test)]
impl Handler<Detonate> for WebhookDispatcher {
    type Result = ();
    fn handle(&mut self, _: Detonate, _: &mut Self::Context) {
        panic!("as the test asked");
    }
}
