//! The supervision tree of one node, built in the order in which it is drawn:
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
use actix_rt::Arbiter;
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

/// Longest wait of the ending process for the figures of its last seconds.
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
    /// True if everything runs on the caller's arbiter, so that behaviour depends on the order of events alone. Hangs
    /// are not detected then.
    pub on_one_arbiter: bool,
}

/// Limits of the tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeBounds {
    /// Shards of each kind: one per HTTP worker, 256 at most.
    pub shards: usize,
    /// Live transactions on this node.
    pub live_transactions: usize,
    /// Questions being answered at once.
    pub in_flight: usize,
    /// Questions that may wait for one shard.
    pub mailbox_depth: usize,
    /// Time limit for a question.
    pub ask_timeout: Duration,
    /// Webhook attempts in flight.
    pub webhooks: DispatchBounds,
    /// Live events on this node.
    pub live_events: usize,
    /// Time for which the result of a flow can be fetched.
    pub flow_result_ttl: Duration,
}

/// The handles to the actors of a node, as one worker uses them.
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
    arbiters: Arc<Vec<actix_rt::ArbiterHandle>>,
    _unasked: Arc<Unasked>,
}

/// The addresses of actors that nobody asks. An actor without an address is not restarted after a panic.
#[derive(Debug)]
struct Unasked {
    _reaper: Addr<Reaper>,
    _figures: Addr<FiguresWriter>,
    _forwarder: Option<Addr<AuditForwarder>>,
    _listener: Option<Addr<ChangeListener>>,
    _sweeper: Addr<FlowSweeper>,
}

impl Tree {
    /// Starts everything but the shards, which start with their workers. Must be called within an actix system. The
    /// receiver gets the failures that restarts did not mend.
    ///
    /// # Errors
    /// The store's, when it cannot record the attempts that an earlier process left unfinished, or read the time of its
    /// last sweep.
    pub async fn start(
        config: TreeConfig,
        bounds: TreeBounds,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Escalation>), StoreError> {
        let TreeConfig { store, vault, clock, client, audit_receiver, on_one_arbiter } = config;
        let unfinished = store.abandon_attempts().await?;
        if unfinished > 0 {
            tracing::warn!(
                count = unfinished,
                "webhook attempts were under way when the process ended; their outcome is unknown"
            );
        }
        let trusted_clock = Arc::new(TrustedClock::starting(Arc::clone(&clock), store.last_sweep().await?));
        let (root, escalations) = Root::new();
        let heartbeats = Heartbeats::new(HEARTBEAT_TIMEOUT);
        let tally = Tally::new(Arc::clone(&clock));
        let [effects, sending] =
            [(); 2].map(|()| if on_one_arbiter { Arbiter::current() } else { Arbiter::new().handle() });
        for (arbiter, name) in [(&effects, "effects"), (&sending, "dispatch")] {
            if on_one_arbiter {
                continue;
            }
            let heartbeats = heartbeats.clone();
            arbiter.spawn_fn(move || heartbeats.beat_here(name));
        }

        let ledger = {
            let (of_actor, accounts) = (store.clone(), Arc::<Accounts>::default());
            let known = Arc::clone(&accounts);
            let actor =
                root.start(&effects, "credit-ledger", "credit_ledger", move || CreditLedger::new(of_actor, known));
            Ledger { actor, accounts, store: store.clone(), ask_timeout: bounds.ask_timeout }
        };
        let in_flight_max = bounds.webhooks.in_flight;
        let in_flight = InFlight {
            attempts: Gate::new(in_flight_max),
            queues: Queues::default(),
            slots: FairSlots::new(in_flight_max),
            body_bytes: Arc::default(),
        };
        let dispatcher = {
            let (tally, clock) = (Arc::clone(&tally), Arc::clone(&clock));
            let (work, in_flight) = (
                Attempter { store: store.clone(), vault: Arc::clone(&vault), client, tally, clock },
                in_flight.clone(),
            );
            let make = move || WebhookDispatcher::new(work, in_flight, bounds.webhooks);
            root.start(&sending, "webhook-dispatcher", "webhook_dispatcher", make)
        };
        let reaper = {
            let (store, clock) = (store.clone(), Arc::clone(&trusted_clock));
            root.start(&effects, "reaper", "reaper", move || Reaper::new(store, clock))
        };
        let figures = {
            let (store, tally) = (store.clone(), Arc::clone(&tally));
            root.start(&effects, "figures", "figures", move || FiguresWriter::new(store, tally))
        };
        let forwarder = audit_receiver.map(|receiver| {
            let store = store.clone();
            root.start(&effects, "audit-forwarder", "audit_forwarder", move || AuditForwarder::new(store, receiver))
        });

        let of_kind = |live| ShardBounds { shards: bounds.shards.clamp(1, 256), live, requests: bounds.mailbox_depth };
        let event_context = Arc::new(EventContext { store: store.clone(), clock: Arc::clone(&clock) });
        let events =
            Shards::new(&root, "events", "event_registry", Arc::clone(&event_context), of_kind(bounds.live_events));
        let context = Arc::new(TransactionContext {
            store: store.clone(),
            vault: Arc::clone(&vault),
            clock,
            dispatcher: dispatcher.clone(),
            events: Arc::clone(&events),
            tally: Arc::clone(&tally),
            shared_store: store.is_shared(),
        });
        let transactions =
            Shards::new(&root, "transactions", "transaction_registry", context, of_kind(bounds.live_transactions));
        let listener = {
            let (store, transactions) = (store.clone(), Arc::clone(&transactions));
            root.start(&effects, "change-listener", "change_listener", move || ChangeListener::new(store, transactions))
        };
        let admission = Gate::new(bounds.in_flight);
        let flows = Flows {
            store: store.clone(),
            dispatcher: dispatcher.clone(),
            admission: Arc::clone(&admission),
            ask_timeout: bounds.ask_timeout,
            result_ttl: bounds.flow_result_ttl,
        };
        let sweeper = {
            let (flows, clock) = (flows.clone(), Arc::clone(&trusted_clock));
            root.start(&effects, "flow-sweeper", "flow_sweeper", move || FlowSweeper::new(flows, clock))
        };
        // Without changes of other nodes it ends by itself.
        let listener = store.is_shared().then_some(listener);
        let unasked = Arc::new(Unasked {
            _reaper: reaper,
            _figures: figures,
            _forwarder: forwarder,
            _listener: listener,
            _sweeper: sweeper,
        });
        let arbiters = Arc::new(vec![effects, sending]);
        let tree = Self {
            root,
            vault,
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
            on_one_arbiter,
            arbiters,
            _unasked: unasked,
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

    /// Returns true if every shard has started.
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

    /// Trusts the clock as it is now. Returns the jump that stopped deletions.
    #[must_use]
    pub fn accept_clock(&self) -> Option<ClockJump> {
        self.trusted_clock.accept()
    }

    /// Returns the current tree; readable while an arbiter hangs.
    #[must_use]
    pub fn view(&self) -> NodeView {
        self.root.view()
    }

    /// Returns the name of an arbiter that hangs.
    #[must_use]
    pub fn hung_arbiter(&self) -> Option<String> {
        self.heartbeats.hung()
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

    /// Returns the longest webhook queues, at most `limit`, and the number of receivers with a queue; readable while an
    /// arbiter hangs.
    #[must_use]
    pub fn receivers(&self, limit: usize) -> (Vec<ReceiverView>, usize) {
        self.in_flight.queues.longest(limit)
    }

    /// Returns the number of webhook attempts in flight.
    pub(crate) fn attempts_in_flight(&self) -> usize {
        self.in_flight.attempts.inside()
    }

    /// Returns the bytes of memory that webhook bodies take, or that are reserved for those being loaded.
    pub(crate) fn webhook_body_bytes(&self) -> usize {
        self.in_flight.body_bytes.load(Ordering::Relaxed)
    }

    /// Sets this node's gauges; call it before metrics are shown.
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

    /// Begins no further webhook attempt and waits for those in flight, for `time` at most. Returns the number still in
    /// flight.
    pub async fn drain(&self, time: Duration) -> usize {
        let end = tokio::time::Instant::now() + time;
        // Until it has received this, it may begin another one. A dispatcher that is gone begins none.
        let _ = self.dispatcher.send(Pause).timeout(time).await;
        let left = self.in_flight.attempts.emptied(end.saturating_duration_since(tokio::time::Instant::now())).await;
        // The figures of the last seconds are given up after this time.
        let _ = tokio::time::timeout(FIGURES_TIMEOUT, self.tally.flush(&self.store)).await;
        left
    }

    /// Stops the arbiters of ledger and dispatcher; the shards end with their workers.
    pub fn stop(&self) {
        self.arbiters.iter().for_each(|arbiter| {
            arbiter.stop();
        });
    }
}
