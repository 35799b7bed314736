//! One running node: store, tree and listeners, wired in the order in which they need each other,
//! and taken down in the opposite one.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use futures_util::future::LocalBoxFuture;
use sakshi_actors::{ByteBounds, DispatchBounds, Escalation, Flows, Handles, Tree, TreeBounds, TreeConfig};
use sakshi_api::polls::Polls;
use sakshi_authority::callback_address::CallbackAddressError;
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_domain::profile::Profile;
use sakshi_operator::{CreditDesk, FlowDesk, InternalDeps};
use sakshi_outbound::ClientError;
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_outbound::guard::AddressPolicy;
use sakshi_service::drain::Drain;
use sakshi_service::idempotency_locks::IdempotencyLocks;
use sakshi_service::service::{Rules, Service};
use sakshi_service::url_policy::UrlPolicy;
use sakshi_store::{CreditOutcome, ReportFlowOutcome, Retention, Store, StoreError, StoreFuture};
use sakshi_web::budget::{CpuBudget, MemoryBudgets};
use sakshi_web::error::ApiError;
use sakshi_web::listener::{Listener, ListenerConfig};
use sakshi_web::rate_limit::{RateLimit, RateLimits};
use sakshi_wire::reports::FlowReport;
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::fd_budget::FdBudget;
use crate::health::Health;
use crate::keys::{self, KeyError};
use crate::public;
use crate::sandbox::{self, StandIns};
use crate::settings::{Settings, StoreKind};
use crate::storage::Storage;
use crate::store_path;
use crate::telemetry::PrometheusRecorder;
use crate::{authority, upstreams};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;
/// How long the first worker may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an ask of an actor may take before the caller is told to come again.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an expired transaction still answers 410 before it is forgotten.
const EXPIRED_GRACE: Duration = Duration::from_secs(24 * 3_600);

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Keys are missing or unreadable.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// No callback address can be made.
    #[error(transparent)]
    Authority(#[from] CallbackAddressError),
    /// The store's directory is none that can be written to.
    #[error("store.path {path} cannot be used: {error}")]
    StorePath {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The store does not open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client for webhooks or the one for upstreams cannot be built.
    #[error(transparent)]
    Outbound(#[from] ClientError),
    /// The sandbox's stand-ins cannot be set up.
    #[error(transparent)]
    Sandbox(#[from] sandbox::SetupError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The listeners do not start.
    #[error("the listeners do not start: {0}")]
    Io(#[from] io::Error),
    /// A worker did not start in time.
    #[error("the HTTP workers did not start")]
    Workers,
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    /// Where clients and residents connect.
    pub public_addr: SocketAddr,
    /// Where the operator connects.
    pub internal_addr: SocketAddr,
    /// The URL under which the public sees the node.
    pub public_base: String,
    /// The durable store.
    pub store: Arc<dyn Store>,
    /// Failures that the tree could not mend.
    pub escalations: mpsc::UnboundedReceiver<Escalation>,
    /// The actors.
    pub tree: Tree,
    storage: Storage,
    drain: Drain,
    drain_notice: Duration,
    drain_timeout: Duration,
    public: Listener,
    internal: Listener,
}

impl Node {
    /// Starts everything. Must be called within an actix system.
    ///
    /// # Errors
    /// The first part that does not start; what had started ends.
    pub async fn start(settings: &Settings, metrics: PrometheusRecorder) -> Result<Self, StartError> {
        // A sandbox keeps its keys there, whatever its store is.
        if settings.profile == Profile::Sandbox || matches!(settings.store.kind, StoreKind::Embedded) {
            let path = &settings.store.path;
            store_path::prepare(path).map_err(|error| StartError::StorePath { path: path.clone(), error })?;
        }
        let fds = FdBudget::claim(workers(settings), settings.webhooks.max_in_flight);
        let keys = keys::read_all(settings)?;
        let (public, public_addr) = listen(settings.server.public_addr)?;
        let (internal, internal_addr) = listen(settings.server.internal_addr)?;
        let public_base = match &settings.server.public_base_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("http://{}", reachable(public_addr)),
        };

        let storage = Storage::open(settings, Arc::clone(&keys.vault), retention(settings)).await?;
        let (store, clock) = (Arc::clone(&storage.store), Arc::clone(&storage.clock));
        let client = WebhookClient::new(&WebhookClientOptions {
            allow_private: settings.webhooks.allow_private_targets,
            connect_timeout: settings.webhooks.connect_timeout,
            total_timeout: settings.webhooks.timeout,
            extra_roots_pem: None,
        })?;
        let context = TreeConfig { store: Arc::clone(&store), vault: Arc::clone(&keys.vault), clock: Arc::clone(&clock), client };
        let (tree, escalations) = Tree::start(context, bounds(settings, &fds)).await?;

        let internal_at = reachable(internal_addr);
        let stand_ins = StandIns::of(settings, keys.sandbox_issuer.as_ref(), (&public_base, internal_at), &clock)?;
        let Handles { transactions, events, flows } = tree.handles(0);
        let drain = Drain::new();
        let (memory, cpu) = (MemoryBudgets::new(), CpuBudget::for_this_machine());
        let vault = Arc::clone(&keys.vault);
        let authority = Arc::new(authority::build(settings, keys, public_base.clone())?);
        let shared = public::Shared {
            service: Service {
                transactions,
                events,
                flows,
                store: Arc::clone(&store),
                vault,
                clock: Arc::clone(&clock),
                authority,
                rules: rules(settings),
                drain: drain.clone(),
                upstreams: upstreams::build(settings, internal_at, fds.orders_of_a_kind)?,
                idempotency_locks: IdempotencyLocks::new(settings.upstreams.timeout),
            },
            tree: tree.clone(),
            rates: rates(settings),
            polls: Polls::new(memory.answers.clone()),
            memory: memory.clone(),
            cpu: cpu.clone(),
            profile: settings.profile,
            body_bytes: settings.limits.body_bytes,
            stand_ins: stand_ins.clone(),
        };
        let answers = memory.answers.clone();
        let listener =
            |name, workers, connections_per_worker| ListenerConfig { name, workers, connections_per_worker, answers: answers.clone() };
        let public_config = listener("public", workers(settings), fds.public_per_worker);
        let public = Listener::start(public_config, public, move || public::app(&shared))?;
        let deps = InternalDeps {
            store: Arc::clone(&store),
            clock,
            credits: Arc::new(LedgerDesk(tree.clone())),
            flows: Arc::new(Reports(tree.handles(0).flows)),
            memory: memory.clone(),
            health: Arc::new(Health::watch(tree.clone(), drain.clone(), Arc::clone(&store))),
            tree: {
                let tree = tree.clone();
                Arc::new(move || serde_json::to_value(tree.view()).unwrap_or_default())
            },
            metrics: metrics_page(metrics, &storage, tree.clone(), memory, cpu),
            admin_token: settings.admin.token.clone(),
            connector_token: settings.admin.connector_token.clone(),
            urls: rules(settings).urls,
            body_bytes: settings.limits.body_bytes,
        };
        let internal = Listener::start(listener("internal", 1, fds.internal), internal, move || {
            let (deps, stand_ins) = (deps.clone(), stand_ins.clone());
            App::new().wrap(actix_web::middleware::from_fn(sakshi_web::edge::edge)).configure(move |config| {
                sakshi_operator::configure(config, deps);
                if let Some(stand_ins) = stand_ins {
                    stand_ins.configure_orders(config);
                }
            })
        })?;
        let (drain_notice, drain_timeout) = (settings.server.drain_notice, settings.server.drain_timeout);
        let node = Self {
            public_addr,
            internal_addr,
            public_base,
            store,
            escalations,
            storage,
            tree,
            drain,
            drain_notice,
            drain_timeout,
            public,
            internal,
        };
        node.wait_for_workers().await?;
        Ok(node)
    }

    async fn wait_for_workers(&self) -> Result<(), StartError> {
        let end = Instant::now() + START_TIMEOUT;
        while !self.tree.is_complete() {
            if Instant::now() > end {
                return Err(StartError::Workers);
            }
            sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Ends the node in good order: unready, after the notice no new connections, requests and webhooks under way
    /// finish within the drain's time, then actors, store and listeners go.
    pub async fn stop(self) {
        tracing::info!(drain.notice_s = self.drain_notice.as_secs(), drain.timeout_s = self.drain_timeout.as_secs(), "draining");
        self.drain.announce();
        sleep(self.drain_notice).await;
        let end = Instant::now() + self.drain_timeout;
        self.drain.begin();
        self.public.stop_accepting().await;
        let requests = self.drain.finish(end.saturating_duration_since(Instant::now())).await;
        let attempts = self.tree.drain(end.saturating_duration_since(Instant::now())).await;
        if requests + attempts > 0 {
            tracing::warn!(requests, webhook.attempts = attempts, "the drain's time is over; what is still under way is cut off");
        }
        self.public.stop().await;
        self.internal.stop().await;
        self.tree.stop();
        self.storage.close().await;
        tracing::info!("stopped");
    }
}

/// A listening socket, and the address it got.
fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?.into_std()?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    open().map_err(|error| StartError::Listen { address, error })
}

/// An address to connect to, for one that listens everywhere.
fn reachable(bound: SocketAddr) -> SocketAddr {
    match bound {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], v4.port())),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], v6.port())),
        named => named,
    }
}

/// HTTP workers, each with a registry shard: as set, or one per core.
fn workers(settings: &Settings) -> usize {
    match settings.server.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        set => set,
    }
    .min(256)
}

/// Renders all metrics, with those of the store, of the tree and of the budgets up to date.
fn metrics_page(
    metrics: PrometheusRecorder,
    storage: &Storage,
    tree: Tree,
    memory: MemoryBudgets,
    cpu: CpuBudget,
) -> Arc<dyn Fn() -> String + Send + Sync> {
    let store = storage.figures();
    Arc::new(move || {
        store();
        tree.show_figures();
        memory.publish_metrics();
        cpu.publish_metrics();
        metrics.render()
    })
}

fn bounds(settings: &Settings, fds: &FdBudget) -> TreeBounds {
    TreeBounds {
        shards: workers(settings),
        live_transactions: settings.limits.max_live_transactions,
        in_flight: settings.limits.max_in_flight,
        mailbox_depth: settings.limits.mailbox_depth,
        patience: ASK_TIMEOUT,
        webhooks: DispatchBounds {
            in_flight: fds.webhooks,
            in_flight_per_host: settings.webhooks.max_in_flight_per_host.min(fds.webhooks),
            outcome_bytes: ByteBounds::OUTCOMES,
            flow_bytes: ByteBounds::FLOWS,
        },
        live_events: settings.limits.max_live_transactions,
        live_flows: settings.limits.max_live_transactions,
        flow_result_ttl: settings.flows.result_ttl,
        retention: retention(settings),
    }
}

fn retention(settings: &Settings) -> Retention {
    Retention { expired: EXPIRED_GRACE, events: settings.ovse.registration_ttl }
}

fn rules(settings: &Settings) -> Rules {
    Rules {
        window: settings.ovse.window,
        result_ttl: settings.ovse.result_ttl,
        replay_window: settings.authority.credential_replay_window,
        has_one_name: settings.server.public_base_url.is_some(),
        urls: UrlPolicy {
            schemes: settings.webhooks.schemes,
            targets: AddressPolicy { allow_private: settings.webhooks.allow_private_targets },
        },
        callback_bytes: settings.limits.callback_bytes,
        flow_result_ttl: settings.flows.result_ttl,
        flow_pending_ttl: settings.flows.pending_ttl,
    }
}

fn rates(settings: &Settings) -> RateLimits {
    let limits = &settings.limits;
    RateLimits {
        init: RateLimit::per_second(limits.init_per_second_per_app),
        polls: RateLimit::per_second(limits.polls_per_second_per_app),
        callbacks: RateLimit::per_second(limits.callbacks_per_second_per_address),
        pages: RateLimit::per_second(limits.pages_per_second_per_address),
        event_starts: RateLimit::per_second(limits.event_starts_per_second_per_address),
        sign_ins: RateLimit::per_minute(limits.sign_ins_per_minute_per_address),
        trusted_proxies: settings.server.trusted_proxies.clone().into(),
    }
}

/// The credit ledger for the operator's API.
struct LedgerDesk(Tree);

impl CreditDesk for LedgerDesk {
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.0.move_credits(client, movement)
    }
}

/// The flows for connectors' reports.
struct Reports(Flows);

impl FlowDesk for Reports {
    fn report(&self, report: FlowReport) -> LocalBoxFuture<'static, Result<ReportFlowOutcome, ApiError>> {
        let flows = self.0.clone();
        Box::pin(async move { Ok(flows.report(report).await?) })
    }
}
