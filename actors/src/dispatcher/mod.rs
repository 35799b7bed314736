//! The webhook dispatcher: takes due deliveries from the outbox and sees to it that each is
//! attempted once, ever.
//!
//! Deliveries to one origin share a lane, so that a receiver that is slow or dead holds up nobody
//! else: a lane has a bound on attempts in flight, all lanes together have another, and lanes take
//! turns. The outbox is the truth; what is held here are positions in it, a bounded number per
//! lane, re-read from the store when a lane runs dry, when the dispatcher restarts and every few
//! seconds in case a notice was lost.

mod attempt;
mod lane;

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, Message, Supervised, WrapFuture as _};
use sakshi_domain::delivery::{DeliveryId, QueuedDelivery};
use sakshi_outbound::client::WebhookClient;
use sakshi_store::{Store, StoreError, Vault};

use self::attempt::Attempter;
use self::lane::Lane;
use crate::admission::{Admission, Permit};

/// How often the outbox is looked through for deliveries whose notice was lost.
const RESCAN: Duration = Duration::from_secs(2);
/// How long a delivery that could not be begun is left alone before a scan may find it again.
const AGAIN: Duration = Duration::from_secs(5);
/// Deliveries read from the outbox at a time.
const BATCH: usize = 500;

/// How many attempts may be in flight.
#[derive(Clone, Copy, Debug)]
pub struct LaneBounds {
    /// To all receivers together.
    pub in_flight: usize,
    /// To one origin.
    pub in_flight_per_host: usize,
}

/// Hands deliveries to attempts, fairly.
#[derive(Debug)]
pub(crate) struct WebhookDispatcher {
    attempter: Rc<Attempter>,
    bounds: LaneBounds,
    lanes: HashMap<Rc<str>, Lane>,
    /// Lanes with something to send and room to send it, in turn.
    turn: VecDeque<Rc<str>>,
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
    /// A dispatcher over a store; attempts in flight are counted in `in_flight`, across restarts.
    #[must_use]
    pub(crate) fn new(store: Arc<dyn Store>, vault: Arc<Vault>, client: WebhookClient, in_flight: Admission, bounds: LaneBounds) -> Self {
        Self {
            attempter: Rc::new(Attempter { store, vault, client, in_flight }),
            bounds,
            lanes: HashMap::new(),
            turn: VecDeque::new(),
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
        due.into_iter().for_each(|delivery| self.enqueue(delivery));
        self.dispatch(ctx);
        if full && !self.caught_up {
            // The backlog of an earlier life is read in one go, a batch at a time, with others'
            // turns between; later scans only look for what was missed, a batch per round.
            ctx.run_later(Duration::from_millis(1), Self::scan);
        }
        self.caught_up |= !full;
    }

    /// Puts a delivery into its lane, unless it is held already or the lane is full.
    fn enqueue(&mut self, delivery: QueuedDelivery) {
        if self.held.contains(&delivery.id) {
            return;
        }
        let origin: Rc<str> = delivery.url.origin().into();
        let lane = self.lanes.entry(Rc::clone(&origin)).or_default();
        let id = delivery.id;
        if lane.push(delivery) {
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

    /// Begins attempts while there is room, one per lane and turn.
    fn dispatch(&mut self, ctx: &mut Context<Self>) {
        while !self.paused && !self.turn.is_empty() {
            let Some(permit) = self.attempter.in_flight.enter() else { return };
            let Some(origin) = self.turn.pop_front() else { return };
            let Some(delivery) = self.lanes.get_mut(&origin).and_then(Lane::begin) else { continue };
            let (id, life) = (delivery.id, self.life);
            let attempter = Rc::clone(&self.attempter);
            let ended = AttemptEnded { origin: origin.as_ref().into(), id, life, again: true };
            let mut report = ReportAtEnd { dispatcher: ctx.address(), ended: Some(ended), _permit: permit };
            actix_rt::spawn(async move {
                let again = attempter.attempt(delivery).await;
                if let Some(ended) = &mut report.ended {
                    ended.again = again;
                }
            });
            self.take_turn(&origin);
        }
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
        self.enqueue(delivery);
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
                if lane.wants_more() {
                    lane.reading();
                    let after = lane.last();
                    let due = self.attempter.store.due_deliveries(after, Some(origin.to_string()), BATCH);
                    let of = Rc::clone(&origin);
                    ctx.spawn(due.into_actor(self).map(move |due, dispatcher, ctx| dispatcher.refilled(&of, due, ctx)));
                } else if lane.is_idle() {
                    self.lanes.remove(&origin);
                }
            }
            self.take_turn(&origin);
        }
        self.dispatch(ctx);
    }
}

impl WebhookDispatcher {
    fn refilled(&mut self, origin: &Rc<str>, due: Result<Vec<QueuedDelivery>, StoreError>, ctx: &mut Context<Self>) {
        if let Some(lane) = self.lanes.get_mut(origin) {
            lane.read(due.as_ref().is_ok_and(|due| due.len() == BATCH));
        }
        due.unwrap_or_default().into_iter().for_each(|delivery| self.enqueue(delivery));
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
