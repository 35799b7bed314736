//! The supervision tree of one node, built in the order in which it is drawn:
//!
//! ```text
//! root                        restarts a child three times a minute, then ends the process
//! ├─ credit-ledger            its own arbiter, with the reaper
//! ├─ webhook-dispatcher       its own arbiter
//! ├─ reaper
//! ├─ flow-sweeper             finds documents that have lapsed
//! ├─ change-listener          hears what other nodes have changed
//! ├─ events-N                 one shard per HTTP worker, on that worker's arbiter
//! │  └─ event × live          live copy and end of one event
//! ├─ flows-N                  one shard per HTTP worker, on that worker's arbiter
//! │  └─ flow × live           order of the reports and deadline of one flow
//! └─ transactions-N           one shard per HTTP worker, on that worker's arbiter
//!    └─ transaction × live    state and deadline of one transaction
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::dev::channel::channel;
use actix::{Actor, Addr, Context, Supervised};
use actix_rt::Arbiter;
use sakshi_domain::clock::Clock;
use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_outbound::client::WebhookClient;
use sakshi_store::{Retention, Store, StoreError, Vault};
use tokio::sync::{Semaphore, mpsc};

use crate::admission::Admission;
use crate::changes::ChangeListener;
use crate::dispatcher::{LaneBounds, Pause, UnderWay, WebhookDispatcher};
use crate::door::{Door, Shards};
use crate::events::Events;
use crate::flow::{FlowGround, FlowSweeper, LAPSES_AT_ONCE};
use crate::flows::Flows;
use crate::heartbeat::Heartbeats;
use crate::ledger::CreditLedger;
use crate::node::{Node, NodeView};
use crate::reaper::Reaper;
use crate::registry::{Bounds, EventRegistry, FlowRegistry, TransactionRegistry};
use crate::root::{Escalation, Root};
use crate::supervision;
use crate::transaction::Surroundings;
use crate::transactions::Transactions;

/// An arbiter that has not turned for this long counts as hung.
const HEARTBEAT_PATIENCE: Duration = Duration::from_secs(5);

/// What the tree stands on.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The truth.
    pub store: Arc<dyn Store>,
    /// Seals what is personal.
    pub vault: Arc<Vault>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes webhook attempts.
    pub client: WebhookClient,
}

/// How much the tree takes on.
#[derive(Clone, Copy, Debug)]
pub struct TreeBounds {
    /// Shards of the transaction registry: one per HTTP worker, 256 at most.
    pub shards: usize,
    /// Live transactions on this node.
    pub live_transactions: usize,
    /// Questions being answered at once.
    pub in_flight: usize,
    /// Questions that may wait for one shard.
    pub mailbox_depth: usize,
    /// How long a question may take.
    pub patience: Duration,
    /// Webhook attempts in flight.
    pub lanes: LaneBounds,
    /// Live events on this node.
    pub live_events: usize,
    /// Flows that wait for their deadline on this node; those beyond it are found by the sweeper.
    pub live_flows: usize,
    /// How long the result of a flow can be fetched.
    pub flow_result_ttl: Duration,
    /// How long records are kept beyond their use.
    pub retention: Retention,
}

/// The ways to the actors of a node, as seen from one worker.
#[derive(Clone, Debug)]
pub struct Doors {
    /// To all transactions.
    pub transactions: Transactions,
    /// To all events.
    pub events: Events,
    /// To all flows.
    pub flows: Flows,
}

/// A running tree. Cloned into every worker.
#[derive(Clone, Debug)]
pub struct Tree {
    root: Root,
    top: Arc<Node>,
    pub(crate) shards: Arc<Shards<TransactionRegistry>>,
    pub(crate) events: Arc<Shards<EventRegistry>>,
    pub(crate) flows: Arc<Shards<FlowRegistry>>,
    pub(crate) around: Arc<Surroundings>,
    flow_ground: Arc<FlowGround>,
    bounds: TreeBounds,
    admission: Admission,
    under_way: UnderWay,
    heartbeats: Heartbeats,
    arbiters: Arc<Vec<actix_rt::ArbiterHandle>>,
}

impl Tree {
    /// Starts everything but the shards, which start with their workers. Must be called within an
    /// actix system. The receiver tells when the tree cannot mend itself.
    ///
    /// # Errors
    /// The store's, when it cannot say which attempts an earlier life left unfinished.
    pub async fn start(ground: Ground, bounds: TreeBounds) -> Result<(Self, mpsc::UnboundedReceiver<Escalation>), StoreError> {
        let unfinished = ground.store.abandon_attempts().await?;
        if unfinished > 0 {
            metrics::counter!("sakshi_webhook_attempts_total", "outcome" => DeliveryOutcome::Unknown.as_str()).increment(unfinished);
            tracing::warn!(count = unfinished, "webhook attempts were under way when the process ended; their fate is unknown");
        }
        let (root, escalations) = Root::new();
        let top = Node::new("root", "root");
        let heartbeats = Heartbeats::new(HEARTBEAT_PATIENCE);
        let (effects, sending) = (Arbiter::new(), Arbiter::new());
        for (arbiter, name) in [(&effects, "effects"), (&sending, "dispatch")] {
            let heartbeats = heartbeats.clone();
            arbiter.spawn_fn(move || heartbeats.beat_here(name));
        }

        let under = Under { root: &root, top: &top };
        let store = Arc::clone(&ground.store);
        let ledger = under.start(&effects, "credit-ledger", "credit_ledger", move || CreditLedger::new(store));
        let under_way = UnderWay { attempts: Admission::new(bounds.lanes.in_flight), body_bytes: Arc::default() };
        let (store, vault, client, counted) =
            (Arc::clone(&ground.store), Arc::clone(&ground.vault), ground.client.clone(), under_way.clone());
        let dispatcher = under.start(&sending, "webhook-dispatcher", "webhook_dispatcher", move || {
            WebhookDispatcher::new(store, vault, client, counted, bounds.lanes)
        });
        let (store, retention) = (Arc::clone(&ground.store), bounds.retention);
        under.start(&effects, "reaper", "reaper", move || Reaper::new(store, retention));

        let count = bounds.shards.clamp(1, 256);
        let events = Arc::new(Shards::new(count, "events", "event_registry"));
        let flows = Arc::new(Shards::new(count, "flows", "flow_registry"));
        let shards = Arc::new(Shards::new(count, "transactions", "transaction_registry"));
        events.nodes.iter().chain(&flows.nodes).chain(&shards.nodes).for_each(|node| top.adopt(Arc::clone(node)));
        let (store, heard_by) = (Arc::clone(&ground.store), Arc::clone(&shards));
        under.start(&effects, "change-listener", "change_listener", move || ChangeListener::new(store, heard_by));
        let (store, lapsing) = (Arc::clone(&ground.store), Arc::clone(&flows));
        under.start(&effects, "flow-sweeper", "flow_sweeper", move || FlowSweeper::new(store, lapsing));
        let Ground { store, vault, clock, .. } = ground;
        let flow_ground = Arc::new(FlowGround {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            dispatcher: dispatcher.clone(),
            result_ttl: bounds.flow_result_ttl,
            lapses: Semaphore::new(LAPSES_AT_ONCE),
        });
        let shared = store.ended_elsewhere().is_some();
        let around = Arc::new(Surroundings { store, vault, clock, ledger, dispatcher, events: Arc::clone(&events), shared });
        let admission = Admission::new(bounds.in_flight);
        let arbiters = Arc::new(vec![effects.handle(), sending.handle()]);
        let tree = Self { root, top, shards, events, flows, around, flow_ground, bounds, admission, under_way, heartbeats, arbiters };
        Ok((tree, escalations))
    }

    /// Starts a shard of each registry on the current arbiter, in the first free places, and returns
    /// the doors as seen from here; `None` when all places are taken.
    #[must_use]
    pub fn start_shard(&self) -> Option<Doors> {
        let share = |all: usize| all.div_ceil(self.shards.nodes.len());
        let ground = (Arc::clone(&self.around.store), Arc::clone(&self.around.clock));
        let bounds = Bounds { live: share(self.bounds.live_events) };
        self.events.take_place(|index| {
            let node = Arc::clone(&self.events.nodes[index]);
            EventRegistry::start(format!("events-{index}"), node, ground, self.root.clone(), bounds)
        })?;
        let bounds = Bounds { live: share(self.bounds.live_flows) };
        self.flows.take_place(|index| {
            let node = Arc::clone(&self.flows.nodes[index]);
            FlowRegistry::start(format!("flows-{index}"), node, Arc::clone(&self.flow_ground), self.root.clone(), bounds)
        })?;
        let bounds = Bounds { live: share(self.bounds.live_transactions) };
        let local = self.shards.take_place(|index| {
            self.heartbeats.beat_here(&format!("worker-{index}"));
            let node = Arc::clone(&self.shards.nodes[index]);
            TransactionRegistry::start(format!("transactions-{index}"), node, Arc::clone(&self.around), self.root.clone(), bounds)
        })?;
        Some(self.doors(local))
    }

    /// The doors for somebody without shards of their own; new ids go to shard `local`.
    #[must_use]
    pub fn doors(&self, local: usize) -> Doors {
        let transactions = Transactions { door: self.door(&self.shards), vault: Arc::clone(&self.around.vault), local };
        let (events, flows) = (Events { door: self.door(&self.events), local }, Flows { door: self.door(&self.flows), local });
        Doors { transactions, events, flows }
    }

    fn door<R: Actor>(&self, shards: &Arc<Shards<R>>) -> Door<R> {
        let (patience, depth) = (self.bounds.patience, self.bounds.mailbox_depth);
        Door { shards: Arc::clone(shards), admission: self.admission.clone(), patience, depth }
    }

    /// Whether every shard has started.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.shards.complete() && self.events.complete() && self.flows.complete()
    }

    /// The credit ledger.
    #[must_use]
    pub fn ledger(&self) -> Addr<CreditLedger> {
        self.around.ledger.clone()
    }

    /// The tree as it stands; readable while an arbiter hangs.
    #[must_use]
    pub fn view(&self) -> NodeView {
        self.top.view()
    }

    /// The name of an arbiter that does not turn.
    #[must_use]
    pub fn hung_arbiter(&self) -> Option<String> {
        self.heartbeats.hung()
    }

    /// Live transactions on this node.
    #[must_use]
    pub fn live_transactions(&self) -> i64 {
        self.shards.nodes.iter().map(|node| node.live()).sum()
    }

    /// Flows with an actor on this node.
    #[must_use]
    pub fn live_flows(&self) -> i64 {
        self.flows.nodes.iter().map(|node| node.live()).sum()
    }

    /// Webhook attempts in flight.
    #[must_use]
    pub fn attempts_in_flight(&self) -> usize {
        self.under_way.attempts.inside()
    }

    /// Bytes of memory that webhook bodies take, or that are kept for those being loaded.
    #[must_use]
    pub fn webhook_body_bytes(&self) -> usize {
        self.under_way.body_bytes.load(Ordering::Relaxed)
    }

    /// Brings this node's figures up to date, to be called before metrics are shown.
    pub fn show_figures(&self) {
        // A gauge is a float by its format; these numbers lose nothing in it.
        #[allow(clippy::cast_precision_loss)]
        for (name, figure) in [
            ("sakshi_live_transactions", self.live_transactions() as f64),
            ("sakshi_live_flows", self.live_flows() as f64),
            ("sakshi_webhook_attempts_in_flight", self.attempts_in_flight() as f64),
            ("sakshi_webhook_body_bytes", self.webhook_body_bytes() as f64),
        ] {
            metrics::gauge!(name).set(figure);
        }
    }

    /// Begins no further webhook attempt and waits for those in flight, for `patience` at most.
    /// Returns how many were still under way.
    pub async fn drain(&self, patience: Duration) -> usize {
        let end = tokio::time::Instant::now() + patience;
        // Until it has heard, it may begin another one. A dispatcher that is gone begins none.
        let _ = self.around.dispatcher.send(Pause).timeout(patience).await;
        self.under_way.attempts.emptied(end.saturating_duration_since(tokio::time::Instant::now())).await
    }

    /// Stops the arbiters of ledger and dispatcher; the shards end with their workers.
    pub fn stop(&self) {
        self.arbiters.iter().for_each(|arbiter| {
            arbiter.stop();
        });
    }
}

/// Starts single actors directly under the root.
struct Under<'a> {
    root: &'a Root,
    top: &'a Node,
}

impl Under<'_> {
    fn start<A, F>(&self, arbiter: &Arbiter, name: &'static str, kind: &'static str, make: F) -> Addr<A>
    where
        A: Actor<Context = Context<A>> + Supervised,
        F: FnOnce() -> A + Send + 'static,
    {
        let node = Node::new(name, kind);
        self.top.adopt(Arc::clone(&node));
        let root = self.root.clone();
        let (sender, receiver) = channel(16);
        arbiter.spawn_fn(move || {
            supervision::start_in(Context::with_receiver(receiver), make(), root.oversee(name, node));
        });
        Addr::new(sender)
    }
}
