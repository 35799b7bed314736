//! The supervision tree of one node. Its actors start in this order:
//!
//! ```text
//! root                        restarts its children, or asks the process to end
//! ├─ credit-ledger            on the arbiter "effects"
//! ├─ webhook-dispatcher       on the arbiter "dispatch"
//! ├─ reaper                   removes expired records
//! ├─ figures                  adds the figures of the day to the store
//! ├─ audit-forwarder          sends the audit log to its receiver, if there is one
//! ├─ events-N                 one shard per HTTP worker, on that worker's arbiter
//! │  └─ event × live          live copy and end of one event
//! ├─ transactions-N           one shard per HTTP worker, on that worker's arbiter
//! │  └─ transaction × live    state and deadline of one transaction
//! ├─ change-listener          receives notices of what other nodes have ended
//! └─ flow-sweeper             finds documents that have lapsed
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::Addr;
use actix_rt::{Arbiter, ArbiterHandle};
use sakshi_domain::clock::Clock;
use sakshi_domain::clock_watch::ClockJump;
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_outbound::audit::SendAuditLog;
use sakshi_outbound::client::SendWebhook;
use sakshi_store::{CreditOutcome, Store, StoreError, StoreFuture, Vault};
use sakshi_supervision::{Escalation, FairSlots, Gate, Heartbeats, NodeView, Root, ShardActor, ShardBounds, Shards};
use tokio::sync::mpsc;

use crate::accounts::Accounts;
use crate::audit_forwarder::AuditForwarder;
use crate::dispatcher::{Attempter, DispatchBounds, InFlight, Pause, Queues, ReceiverView, WebhookDispatcher};
use crate::event::{EventActor, EventContext, Events};
use crate::figures::{FiguresWriter, Tally};
use crate::flow_sweeper::FlowSweeper;
use crate::flows::Flows;
use crate::ledger::{CreditLedger, Ledger};
use crate::reaper::Reaper;
use crate::router::ShardRouter;
use crate::transaction::{ChangeListener, TransactionActor, TransactionContext, Transactions};
use crate::trusted_clock::TrustedClock;

/// Silence after which an arbiter counts as hung.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit of a drain for writing the figures of the last seconds.
const FIGURES_TIMEOUT: Duration = Duration::from_secs(1);

/// Dependencies of the tree.
#[derive(Clone, Debug)]
pub struct TreeConfig {
    /// The durable store.
    pub store: Store,
    /// Encrypts personal data.
    pub vault: Arc<Vault>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Makes webhook attempts.
    pub client: Arc<dyn SendWebhook>,
    /// Sends the audit log to its receiver, if there is one.
    pub audit_receiver: Option<Arc<dyn SendAuditLog>>,
    /// True if all actors run on the caller's arbiter, so that behaviour depends only on the order of events. Hangs are
    /// not detected then.
    pub on_one_arbiter: bool,
}

/// Limits of the tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeBounds {
    /// Number of shards of each kind: one per HTTP worker, 256 at most.
    pub shards: usize,
    /// Maximum live transactions on this node.
    pub live_transactions: usize,
    /// Maximum questions in flight on this node.
    pub in_flight: usize,
    /// Maximum questions in flight to one shard.
    pub mailbox_depth: usize,
    /// Time limit for a question.
    pub ask_timeout: Duration,
    /// Bounds on webhook attempts.
    pub webhooks: DispatchBounds,
    /// Maximum live events on this node.
    pub live_events: usize,
    /// Time for which the result of a flow can be fetched.
    pub flow_result_ttl: Duration,
    /// Time for which a flow waits for its upstream.
    pub flow_pending_ttl: Duration,
}

impl TreeBounds {
    /// Returns the bounds of the shards of one kind, with at most `live` actors in all of them.
    fn for_shards(&self, live: usize) -> ShardBounds {
        ShardBounds { shards: self.shards.clamp(1, 256), live, requests: self.mailbox_depth }
    }
}

/// The handles of one worker to the actors of a node.
#[derive(Clone, Debug)]
pub struct Handles {
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
    vault: Arc<Vault>,
    trusted_clock: Arc<TrustedClock>,
    pub(crate) ledger: Ledger,
    pub(crate) dispatcher: Addr<WebhookDispatcher>,
    pub(crate) transactions: Arc<Shards<TransactionActor>>,
    pub(crate) events: Arc<Shards<EventActor>>,
    event_context: Arc<EventContext>,
    flows: Flows,
    tally: Arc<Tally>,
    store: Store,
    bounds: TreeBounds,
    admission: Arc<Gate>,
    in_flight: InFlight,
    heartbeats: Heartbeats,
    on_one_arbiter: bool,
    arbiters: Arc<Vec<ArbiterHandle>>,
    _background: Arc<BackgroundActors>,
}

/// The addresses of actors that receive no requests. An actor without an address is not restarted after a panic.
#[derive(Debug)]
struct BackgroundActors {
    _reaper: Addr<Reaper>,
    _figures: Addr<FiguresWriter>,
    _forwarder: Option<Addr<AuditForwarder>>,
    /// `None` on a store of one node: the listener stops there.
    _listener: Option<Addr<ChangeListener>>,
    _sweeper: Addr<FlowSweeper>,
}

impl Tree {
    /// Starts all actors except the shards, which start with their workers. Must be called within an actix system. The
    /// receiver gets the failures that restarts did not end.
    ///
    /// # Errors
    /// Any error of the store, which must record the attempts that an earlier process left unfinished, and return the
    /// time of its last sweep.
    pub async fn start(
        config: TreeConfig,
        bounds: TreeBounds,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Escalation>), StoreError> {
        let store = config.store.clone();
        abandon_attempts(&store).await?;
        let trusted_clock = Arc::new(TrustedClock::starting(Arc::clone(&config.clock), store.last_sweep().await?));
        let (root, escalations) = Root::new();
        let heartbeats = Heartbeats::new(HEARTBEAT_TIMEOUT);
        let tally = Tally::new(Arc::clone(&config.clock));
        let [effects, sending] = start_arbiters(&heartbeats, config.on_one_arbiter);

        let ledger = start_ledger(&root, &effects, &store, bounds.ask_timeout);
        let (dispatcher, in_flight) = start_dispatcher(&root, &sending, &config, &tally, bounds.webhooks);
        let (reaper, figures, forwarder) = start_store_tasks(&root, &effects, &config, &trusted_clock, &tally);
        let event_context = Arc::new(EventContext { store: store.clone(), clock: Arc::clone(&config.clock) });
        let events = create_event_shards(&root, &event_context, bounds);
        let transactions = create_transaction_shards(&root, &config, &dispatcher, &events, &tally, bounds);
        let listener = start_change_listener(&root, &effects, &store, &transactions);
        let admission = Gate::new(bounds.in_flight);
        let flows = Flows {
            store: store.clone(),
            dispatcher: dispatcher.clone(),
            admission: Arc::clone(&admission),
            ask_timeout: bounds.ask_timeout,
            result_ttl: bounds.flow_result_ttl,
            pending_ttl: bounds.flow_pending_ttl,
        };
        let background = BackgroundActors {
            _reaper: reaper,
            _figures: figures,
            _forwarder: forwarder,
            _listener: store.is_shared().then_some(listener),
            _sweeper: start_flow_sweeper(&root, &effects, &flows, &trusted_clock),
        };
        let tree = Self {
            root,
            vault: config.vault,
            trusted_clock,
            ledger,
            dispatcher,
            transactions,
            events,
            event_context,
            flows,
            tally,
            store,
            bounds,
            admission,
            in_flight,
            heartbeats,
            on_one_arbiter: config.on_one_arbiter,
            arbiters: Arc::new(vec![effects, sending]),
            _background: Arc::new(background),
        };
        Ok((tree, escalations))
    }

    /// Starts a shard of each kind on the current arbiter, in the first free places. Returns the handles for this
    /// worker; `None` if all places are taken.
    #[must_use]
    pub fn start_shard(&self) -> Option<Handles> {
        self.events.start_here()?;
        let local = self.transactions.start_here()?;
        if !self.on_one_arbiter {
            self.heartbeats.beat_here(&format!("worker-{local}"));
        }
        Some(self.handles(local))
    }

    /// Returns the handles for a caller without shards of its own; new ids go to shard `local`.
    #[must_use]
    pub fn handles(&self, local: usize) -> Handles {
        Handles {
            transactions: Transactions {
                router: self.router(&self.transactions, local),
                ledger: self.ledger.clone(),
                events: Arc::clone(&self.events),
                vault: Arc::clone(&self.vault),
                tally: Arc::clone(&self.tally),
            },
            events: Events { router: self.router(&self.events, local), context: Arc::clone(&self.event_context) },
            flows: self.flows.clone(),
        }
    }

    fn router<A: ShardActor>(&self, shards: &Arc<Shards<A>>, local: usize) -> ShardRouter<A> {
        ShardRouter {
            shards: Arc::clone(shards),
            admission: Arc::clone(&self.admission),
            ask_timeout: self.bounds.ask_timeout,
            local,
        }
    }

    /// Returns true if every shard has started, so that the tree can serve all ids.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.transactions.all_started() && self.events.all_started()
    }

    /// Grants or adjusts credits for the operator.
    #[must_use]
    pub fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        let ledger = self.ledger.clone();
        Box::pin(async move { ledger.move_credits(client, movement).await })
    }

    /// Trusts the clock from now on. Returns the jump that had stopped deletions.
    #[must_use]
    pub fn accept_clock(&self) -> Option<ClockJump> {
        self.trusted_clock.accept()
    }

    /// Returns a snapshot of the tree; works while an arbiter hangs.
    #[must_use]
    pub fn view(&self) -> NodeView {
        self.root.view()
    }

    /// Returns the name of an arbiter that hangs.
    #[must_use]
    pub fn hung_arbiter(&self) -> Option<String> {
        self.heartbeats.hung_arbiter()
    }

    /// Returns the number of live transactions on this node.
    #[must_use]
    pub fn live_transactions(&self) -> i64 {
        self.transactions.live()
    }

    /// Returns the questions in flight, as a share of those that the node admits.
    #[must_use]
    pub fn admission_ratio(&self) -> f64 {
        self.admission.fill_ratio()
    }

    /// Returns the number of live events on this node.
    #[must_use]
    pub fn live_events(&self) -> i64 {
        self.events.live()
    }

    /// Returns the longest webhook queues, at most `limit`, and the number of receivers with a queue; works while an
    /// arbiter hangs.
    #[must_use]
    pub fn receivers(&self, limit: usize) -> (Vec<ReceiverView>, usize) {
        self.in_flight.queues.longest(limit)
    }

    /// Returns the number of webhook attempts in flight.
    pub(crate) fn attempts_in_flight(&self) -> usize {
        self.in_flight.attempts.inside()
    }

    /// Returns the bytes of memory reserved for webhook bodies.
    pub(crate) fn webhook_body_bytes(&self) -> usize {
        self.in_flight.body_bytes.load(Ordering::Relaxed)
    }

    /// Sets this node's gauges; to be called before metrics are exported.
    pub fn update_gauges(&self) {
        // Gauges are floats; these numbers fit exactly.
        #[allow(clippy::cast_precision_loss)]
        for (name, figure) in [
            ("sakshi_live_transactions", self.live_transactions() as f64),
            ("sakshi_webhook_attempts_in_flight", self.attempts_in_flight() as f64),
            ("sakshi_webhook_body_bytes", self.webhook_body_bytes() as f64),
        ] {
            metrics::gauge!(name).set(figure);
        }
    }

    /// Stops further webhook attempts. Waits for `time_max` at most until the dispatcher knows.
    pub async fn pause_webhooks(&self, time_max: Duration) {
        // The dispatcher may begin attempts until it has received this message. A stopped dispatcher begins none.
        let _ = self.dispatcher.send(Pause).timeout(time_max).await;
    }

    /// Stops further webhook attempts and waits for those in flight, for `time_max` at most. Returns the number still
    /// in flight.
    pub async fn drain(&self, time_max: Duration) -> usize {
        let deadline = tokio::time::Instant::now() + time_max;
        self.pause_webhooks(time_max).await;
        let still_in_flight = self
            .in_flight
            .attempts
            .wait_until_empty(deadline.saturating_duration_since(tokio::time::Instant::now()))
            .await;
        // After the timeout, the figures of the last seconds are lost.
        let _ = tokio::time::timeout(FIGURES_TIMEOUT, self.tally.flush(&self.store)).await;
        still_in_flight
    }

    /// Stops the arbiters of the ledger and the dispatcher; the shards end with their workers.
    pub fn stop(&self) {
        self.arbiters.iter().for_each(|arbiter| {
            arbiter.stop();
        });
    }
}

/// Records the attempts that an earlier process left unfinished as unknown.
async fn abandon_attempts(store: &Store) -> Result<(), StoreError> {
    let unfinished = store.abandon_attempts().await?;
    if unfinished > 0 {
        tracing::warn!(
            count = unfinished,
            "webhook attempts were under way when the process ended; their outcome is unknown"
        );
    }
    Ok(())
}

/// Starts the arbiters "effects" and "dispatch" with their heartbeats, or returns the current arbiter for both.
fn start_arbiters(heartbeats: &Heartbeats, on_one_arbiter: bool) -> [ArbiterHandle; 2] {
    if on_one_arbiter {
        return [(); 2].map(|()| Arbiter::current());
    }
    ["effects", "dispatch"].map(|name| {
        let (arbiter, heartbeats) = (Arbiter::new().handle(), heartbeats.clone());
        arbiter.spawn_fn(move || heartbeats.beat_here(name));
        arbiter
    })
}

fn start_ledger(root: &Root, arbiter: &ArbiterHandle, store: &Store, ask_timeout: Duration) -> Ledger {
    let accounts = Arc::<Accounts>::default();
    let (actor_store, actor_accounts) = (store.clone(), Arc::clone(&accounts));
    let actor =
        root.start(arbiter, "credit-ledger", "credit_ledger", move || CreditLedger::new(actor_store, actor_accounts));
    Ledger { actor, accounts, store: store.clone(), ask_timeout }
}

fn start_dispatcher(
    root: &Root,
    arbiter: &ArbiterHandle,
    config: &TreeConfig,
    tally: &Arc<Tally>,
    bounds: DispatchBounds,
) -> (Addr<WebhookDispatcher>, InFlight) {
    let in_flight = InFlight {
        attempts: Gate::new(bounds.in_flight),
        queues: Queues::default(),
        slots: FairSlots::new(bounds.in_flight),
        body_bytes: Arc::default(),
    };
    let attempter = Attempter {
        store: config.store.clone(),
        vault: Arc::clone(&config.vault),
        client: Arc::clone(&config.client),
        tally: Arc::clone(tally),
        clock: Arc::clone(&config.clock),
    };
    let actor_in_flight = in_flight.clone();
    let dispatcher = root.start(arbiter, "webhook-dispatcher", "webhook_dispatcher", move || {
        WebhookDispatcher::new(attempter, actor_in_flight, bounds)
    });
    (dispatcher, in_flight)
}

/// Starts the actors that work on the store at intervals: reaper, figures and audit forwarder.
fn start_store_tasks(
    root: &Root,
    arbiter: &ArbiterHandle,
    config: &TreeConfig,
    trusted_clock: &Arc<TrustedClock>,
    tally: &Arc<Tally>,
) -> (Addr<Reaper>, Addr<FiguresWriter>, Option<Addr<AuditForwarder>>) {
    let (store, clock) = (config.store.clone(), Arc::clone(trusted_clock));
    let reaper = root.start(arbiter, "reaper", "reaper", move || Reaper::new(store, clock));
    let (store, tally) = (config.store.clone(), Arc::clone(tally));
    let figures = root.start(arbiter, "figures", "figures", move || FiguresWriter::new(store, tally));
    let forwarder = config.audit_receiver.clone().map(|receiver| {
        let store = config.store.clone();
        root.start(arbiter, "audit-forwarder", "audit_forwarder", move || AuditForwarder::new(store, receiver))
    });
    (reaper, figures, forwarder)
}

fn create_event_shards(root: &Root, context: &Arc<EventContext>, bounds: TreeBounds) -> Arc<Shards<EventActor>> {
    let shard_bounds = bounds.for_shards(bounds.live_events);
    Shards::new(root, "events", "event_registry", Arc::clone(context), shard_bounds)
}

fn create_transaction_shards(
    root: &Root,
    config: &TreeConfig,
    dispatcher: &Addr<WebhookDispatcher>,
    events: &Arc<Shards<EventActor>>,
    tally: &Arc<Tally>,
    bounds: TreeBounds,
) -> Arc<Shards<TransactionActor>> {
    let context = Arc::new(TransactionContext {
        store: config.store.clone(),
        vault: Arc::clone(&config.vault),
        clock: Arc::clone(&config.clock),
        dispatcher: dispatcher.clone(),
        events: Arc::clone(events),
        tally: Arc::clone(tally),
        shared_store: config.store.is_shared(),
    });
    let shard_bounds = bounds.for_shards(bounds.live_transactions);
    Shards::new(root, "transactions", "transaction_registry", context, shard_bounds)
}

fn start_change_listener(
    root: &Root,
    arbiter: &ArbiterHandle,
    store: &Store,
    transactions: &Arc<Shards<TransactionActor>>,
) -> Addr<ChangeListener> {
    let (store, transactions) = (store.clone(), Arc::clone(transactions));
    root.start(arbiter, "change-listener", "change_listener", move || ChangeListener::new(store, transactions))
}

fn start_flow_sweeper(
    root: &Root,
    arbiter: &ArbiterHandle,
    flows: &Flows,
    trusted_clock: &Arc<TrustedClock>,
) -> Addr<FlowSweeper> {
    let (flows, clock) = (flows.clone(), Arc::clone(trusted_clock));
    root.start(arbiter, "flow-sweeper", "flow_sweeper", move || FlowSweeper::new(flows, clock))
}
