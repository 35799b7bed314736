//! One running node: store, actors and listeners, started in the order of their dependencies and stopped in reverse.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::{Escalation, Handles, Tree, TreeConfig};
use sakshi_authority::callback_address::CallbackAddressError;
use sakshi_console::{Console, Provider, STREAMS_MAX};
use sakshi_domain::profile::Profile;
use sakshi_operator::{FailedLogins, InternalDeps, LogLevel, RetentionMax};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_outbound::document::DocumentClient;
use sakshi_outbound::{ClientError, Egress};
use sakshi_portal::docs::DocsPages;
use sakshi_service::Service;
use sakshi_service::authority::AuthorityContext;
use sakshi_service::budget::{CpuBudget, FlowFetches, MemoryBudgets};
use sakshi_service::drain::Drain;
use sakshi_service::idempotency_locks::IdempotencyLocks;
use sakshi_service::names::Names;
use sakshi_store::{Store, StoreError, Vault};
use sakshi_supervision::FairSlots;
use sakshi_web::error::DocsBase;
use sakshi_web::listener::{Listener, ListenerConfig, ListenerTls};
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::fd_budget::{FdBudget, PROBES};
use crate::health::Health;
use crate::intent_key_choice;
use crate::issuer_keys::{self, ReadError};
use crate::keys::{self, KeyError, KeyMaterial};
use crate::nodes::Nodes;
use crate::sandbox::{self, StandIns};
use crate::settings::endpoints::reachable;
use crate::settings::{Settings, StoreKind};
use crate::storage::{self, Storage};
use crate::telemetry::figures::Figures;
use crate::telemetry::{PrometheusRecorder, store_figures};
use crate::{audit_receiver, authority, bounds, internal, public, tls_files, upstreams};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 4_096;
/// Timeout of the operators' identity provider.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the start of the HTTP workers.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of workers of the listeners that clients do not use.
const SINGLE_WORKER: usize = 1;
/// Number of connections reserved for probes on a listener without probes.
const NO_PROBES: usize = 0;
/// Index of the shard (a part of the actors) that gets the new ids of callers without a shard of their own.
const FIRST_SHARD: usize = 0;

/// Error of a node's start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Keys are missing or unreadable.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The issuer's keys cannot be fetched.
    #[error(transparent)]
    IssuerKeys(#[from] ReadError),
    /// No callback address can be made.
    #[error(transparent)]
    Authority(#[from] CallbackAddressError),
    /// The store's directory is not writable.
    #[error("store.path {path} cannot be used: {error}")]
    StorePath {
        /// Path of the directory.
        path: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The HTTP client for webhooks or for upstreams cannot be built.
    #[error(transparent)]
    Outbound(#[from] ClientError),
    /// The sandbox's stand-ins cannot be set up.
    #[error(transparent)]
    Sandbox(#[from] sandbox::SetupError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Address of the listener.
        address: SocketAddr,
        /// Cause.
        error: io::Error,
    },
    /// The listeners cannot start.
    #[error("the listeners do not start: {0}")]
    Io(#[from] io::Error),
    /// A worker did not start in time.
    #[error("the HTTP workers did not start")]
    Workers,
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    /// Address for clients and residents.
    pub public_addr: SocketAddr,
    /// Address for the operator.
    pub internal_addr: SocketAddr,
    /// Address for connectors, if they have their own listener.
    pub connector_addr: Option<SocketAddr>,
    /// URL of the node from outside.
    pub public_base: String,
    /// The durable store.
    pub store: Store,
    /// Failures that the supervision tree could not handle.
    pub escalations: mpsc::UnboundedReceiver<Escalation>,
    /// The actors.
    pub tree: Tree,
    pub(crate) tls: tls_files::Listeners,
    storage: Storage,
    drain: Drain,
    drain_notice: Duration,
    drain_timeout: Duration,
    public: Listener,
    internal: Listener,
    connectors: Option<Listener>,
}

impl Node {
    /// Starts everything. Must be called within an actix system. Operators may change the log level.
    ///
    /// # Errors
    /// The first part that fails to start; started parts are stopped.
    pub async fn start(
        settings: &Settings,
        metrics: PrometheusRecorder,
        log_level: LogLevel,
    ) -> Result<Self, StartError> {
        let resources = Resources::claim(settings).await?;
        let Resources { workers, fds, tls, egress, keys, public_socket, internal_socket, connector_socket } = resources;
        let (public_socket, public_addr) = public_socket;
        let (internal_socket, internal_addr) = internal_socket;
        let (connector_socket, connector_addr) = connector_socket.unzip();
        let public_base = match &settings.server.public_base_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => tls_files::url(&tls.public, reachable(public_addr)),
        };
        let internal = reachable(internal_addr);
        let addresses = Addresses { public_base, internal, reports: connector_addr.map_or(internal, reachable) };

        let (parts, service, stand_ins, escalations) =
            Box::pin(Parts::start(settings, fds, egress, keys, addresses)).await?;

        // The listeners.
        let shared = public::Shared {
            service,
            tree: parts.tree.clone(),
            rates: bounds::rates(settings, workers * fds.public_per_worker),
            profile: settings.profile,
            body_bytes: settings.limits.body_bytes,
            docs: DocsPages::default(),
            stand_ins: stand_ins.clone(),
        };
        let config = parts.listener("public", &tls.public, workers, fds.public_per_worker, NO_PROBES);
        let public = Listener::start(config, public_socket, move || public::app(&shared))?;
        tls.watch(&settings.server)?;
        log_level.watch();
        store_figures::watch(
            parts.storage.store.clone(),
            Arc::clone(&parts.storage.clock),
            settings.telemetry.low_credits,
        );
        let deps = parts.internal_deps(metrics, log_level, connector_addr.is_some());
        let console = parts.console(tls.internal.is_some());
        let reports = deps.clone();
        let config = parts.listener("connectors", &tls.connectors, SINGLE_WORKER, fds.internal, NO_PROBES);
        let start = |socket| Listener::start(config, socket, move || internal::connectors_app(reports.clone()));
        let connectors = connector_socket.map(start).transpose()?;
        let config = parts.listener("internal", &tls.internal, SINGLE_WORKER, fds.internal, PROBES);
        let internal = Listener::start(config, internal_socket, move || {
            internal::app(deps.clone(), console.clone(), stand_ins.clone())
        })?;
        let Parts { storage, tree, drain, public_base, .. } = parts;
        let node = Self {
            public_addr,
            internal_addr,
            connector_addr,
            public_base,
            store: storage.store.clone(),
            escalations,
            tree,
            tls,
            storage,
            drain,
            drain_notice: settings.server.drain_notice,
            drain_timeout: settings.server.drain_timeout,
            public,
            internal,
            connectors,
        };
        node.wait_for_workers().await?;
        Ok(node)
    }

    /// Waits until every worker has started its shard of the actors.
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

    /// Shuts the node down. It becomes unready, and after the notice accepts no new connections and begins no webhook.
    /// Requests, their responses, and webhooks in flight may finish within the drain timeout; then actors, store and
    /// listeners stop.
    pub async fn stop(self) {
        tracing::info!(
            drain.notice_s = self.drain_notice.as_secs(),
            drain.timeout_s = self.drain_timeout.as_secs(),
            "draining"
        );
        self.drain.announce();
        sleep(self.drain_notice).await;
        let end = Instant::now() + self.drain_timeout;
        let remaining = || end.saturating_duration_since(Instant::now());
        self.drain.begin();
        let finish_requests = async {
            self.public.stop_accepting().await;
            self.drain.finish(remaining()).await
        };
        // A webhook that began while requests finish could be cut off. Another node, or the next start, sends it.
        let ((), requests) = tokio::join!(self.tree.pause_webhooks(remaining()), finish_requests);
        let attempts = self.tree.drain(remaining()).await;
        let mut connections = self.public.stop(remaining()).await + self.internal.stop(remaining()).await;
        if let Some(listener) = self.connectors {
            connections += listener.stop(remaining()).await;
        }
        if requests + attempts + connections > 0 {
            tracing::warn!(
                requests,
                connections,
                webhook.attempts = attempts,
                "the drain timed out; requests, responses and webhooks in flight are cut off"
            );
        }
        self.tree.stop();
        self.storage.close().await;
        tracing::info!("stopped");
    }
}

/// Resources of the machine that a node claims before it opens its store.
struct Resources {
    workers: usize,
    fds: FdBudget,
    tls: tls_files::Listeners,
    egress: Egress,
    /// Keys, and the source of the issuer's keys if an issuer is set.
    keys: (KeyMaterial, Option<issuer_keys::Source>),
    public_socket: (TcpListener, SocketAddr),
    internal_socket: (TcpListener, SocketAddr),
    connector_socket: Option<(TcpListener, SocketAddr)>,
}

impl Resources {
    /// Claims file descriptors and sockets, and reads TLS files and keys.
    async fn claim(settings: &Settings) -> Result<Self, StartError> {
        // A sandbox keeps its keys in the directory, whatever its store is.
        if settings.profile == Profile::Sandbox || matches!(settings.store.kind, StoreKind::Embedded) {
            let path = &settings.store.path;
            storage::prepare_directory(path).map_err(|error| StartError::StorePath { path: path.clone(), error })?;
        }
        let workers = bounds::workers(settings);
        let fds = FdBudget::claim(
            workers,
            1 + usize::from(settings.server.connector_addr.is_some()),
            settings.webhooks.max_in_flight,
        );
        let tls = tls_files::Listeners::read(&settings.server).map_err(KeyError::from)?;
        let egress = keys::egress(settings)?;
        let issuer_key_source = issuer_keys::prepare(settings, &egress).await?;
        let published_keys = issuer_key_source.as_ref().and_then(issuer_keys::Source::published_keys);
        let keys = (keys::read_all(settings, published_keys)?, issuer_key_source);
        let public_socket = listen(settings.server.public_addr)?;
        let internal_socket = listen(settings.server.internal_addr)?;
        let connector_socket = settings.server.connector_addr.map(listen).transpose()?;
        Ok(Self { workers, fds, tls, egress, keys, public_socket, internal_socket, connector_socket })
    }
}

/// Addresses of a starting node, for links to it and for its own requests.
struct Addresses {
    /// URL of the node from outside.
    public_base: String,
    internal: SocketAddr,
    /// Address that takes the connectors' reports.
    reports: SocketAddr,
}

/// Escalations of the supervision tree.
type Escalations = mpsc::UnboundedReceiver<Escalation>;

/// The started parts of a node that its listeners share.
struct Parts<'a> {
    settings: &'a Settings,
    egress: Egress,
    public_base: String,
    vault: Arc<Vault>,
    storage: Storage,
    tree: Tree,
    authority: Arc<AuthorityContext>,
    drain: Drain,
    memory: MemoryBudgets,
    cpu: CpuBudget,
}

impl<'a> Parts<'a> {
    /// Opens the store, starts the actors on it, and builds the use cases and the sandbox's stand-ins.
    async fn start(
        settings: &'a Settings,
        fds: FdBudget,
        egress: Egress,
        (keys, issuer_key_source): (KeyMaterial, Option<issuer_keys::Source>),
        addresses: Addresses,
    ) -> Result<(Self, Service, Option<StandIns>, Escalations), StartError> {
        let Addresses { public_base, internal, reports } = addresses;
        let vault = Arc::clone(&keys.vault);
        let storage = Storage::open(settings, Arc::clone(&vault), bounds::retention(settings)).await?;
        metrics::gauge!("sakshi_store_sealing_key_info", "key" => vault.sealing_key().to_string()).set(1);
        let client = Arc::new(WebhookClient::new(&WebhookClientOptions {
            allow_private: settings.webhooks.allow_private_targets,
            connect_timeout: settings.webhooks.connect_timeout,
            total_timeout: settings.webhooks.timeout,
            egress: egress.clone(),
        })?);
        let context = TreeConfig {
            store: storage.store.clone(),
            vault: Arc::clone(&vault),
            clock: Arc::clone(&storage.clock),
            client: client.clone(),
            audit_receiver: audit_receiver::build(settings, &egress),
            on_one_arbiter: false,
        };
        let (tree, escalations) = Tree::start(context, bounds::tree(settings, &fds)).await?;

        let issuer = keys.sandbox_issuer.as_ref();
        let stand_ins = StandIns::build(settings, issuer, (&public_base, reports), &storage.clock, &client)?;
        let clock = Arc::clone(&storage.clock);
        let authority = Arc::new(authority::build(settings, keys, &egress, public_base.clone(), clock)?);
        intent_key_choice::follow(storage.store.clone(), Arc::clone(&authority.signer)).await;
        issuer_keys::watch(issuer_key_source, Arc::clone(&authority))?;
        let parts = Self {
            settings,
            egress,
            public_base,
            vault,
            storage,
            tree,
            authority,
            drain: Drain::default(),
            memory: MemoryBudgets::default(),
            cpu: CpuBudget::for_this_machine(),
        };
        let service = parts.service(internal, fds.orders_of_a_kind)?;
        Ok((parts, service, stand_ins, escalations))
    }

    /// Builds the use cases.
    fn service(&self, internal: SocketAddr, orders_of_a_kind: usize) -> Result<Service, StartError> {
        let settings = self.settings;
        let Handles { transactions, events, flows } = self.tree.handles(FIRST_SHARD);
        Ok(Service {
            transactions,
            events,
            flows,
            store: self.storage.store.clone(),
            vault: Arc::clone(&self.vault),
            clock: Arc::clone(&self.storage.clock),
            authority: Arc::clone(&self.authority),
            rules: bounds::rules(settings),
            pages: Arc::new(settings.pages.clone()),
            names: Names::default(),
            drain: self.drain.clone(),
            upstreams: upstreams::build(settings, &self.egress, internal, orders_of_a_kind)?,
            idempotency_locks: IdempotencyLocks::new(settings.upstreams.timeout),
            flow_fetches: FlowFetches::default(),
            memory: self.memory.clone(),
            cpu: self.cpu.clone(),
        })
    }

    /// Returns the configuration of a listener.
    fn listener(
        &self,
        name: &'static str,
        tls: &Option<ListenerTls>,
        workers: usize,
        connections_per_worker: usize,
        probes_per_worker: usize,
    ) -> ListenerConfig {
        let answers = self.memory.answers.clone();
        ListenerConfig { name, workers, connections_per_worker, probes_per_worker, answers, tls: tls.clone() }
    }

    /// Builds the dependencies of the internal listener, and starts watching the nodes and the health.
    /// `connectors_apart` is true if connectors have their own listener.
    fn internal_deps(&self, metrics: PrometheusRecorder, log_level: LogLevel, connectors_apart: bool) -> InternalDeps {
        let Self { settings, tree, drain, .. } = self;
        let (store, clock) = (&self.storage.store, &self.storage.clock);
        let (tree_for_view, tree_for_clock) = (tree.clone(), tree.clone());
        let nodes = Nodes::watch(
            store.clone(),
            tree.clone(),
            drain.clone(),
            Figures::watch(metrics.clone(), tree.clone(), bounds::processors(settings)),
            Arc::clone(clock),
        );
        let health: Arc<dyn sakshi_operator::Health> = {
            let signer = Arc::clone(&self.authority.signer);
            Arc::new(Health::watch(tree.clone(), drain.clone(), store.clone(), signer, Arc::clone(clock)))
        };
        let (memory, cpu) = (self.memory.clone(), self.cpu.clone());
        InternalDeps {
            retention_max: RetentionMax {
                result_ttl: settings.ovse.result_ttl,
                registration_ttl: settings.ovse.registration_ttl,
            },
            store: store.clone(),
            clock: Arc::clone(clock),
            accept_clock: Arc::new(move || tree_for_clock.accept_clock()),
            log_level,
            credits: Arc::new(internal::LedgerDesk { tree: tree.clone() }),
            flows: Arc::new(internal::Reports { flows: tree.handles(FIRST_SHARD).flows }),
            signer: Arc::clone(&self.authority.signer),
            memory: memory.clone(),
            health: Arc::clone(&health),
            tree: Arc::new(move || internal::tree_node(tree_for_view.view())),
            nodes: Arc::new(move || {
                let nodes = nodes.clone();
                Box::pin(async move { nodes.all().await })
            }),
            metrics: internal::metrics_page(metrics, &self.storage, health, tree.clone(), memory, cpu, drain.clone()),
            admin_token: settings.admin.token.clone(),
            connector_tokens: settings.admin.connector_tokens.clone(),
            failed_logins: FailedLogins::per_minute(settings.limits.sign_ins_per_minute_per_address),
            connectors_apart,
            trusted_proxies: settings.server.trusted_proxies.clone().into(),
            urls: bounds::rules(settings).urls,
            docs: DocsBase(self.public_base.as_str().into()),
            provider_roles: settings.console.provider.as_ref().map(|(_, roles)| roles.clone()),
            second_person_above: settings.admin.second_person_above,
            body_bytes: settings.limits.body_bytes,
        }
    }

    /// Builds the console. `has_tls` is true if the internal listener speaks TLS.
    fn console(&self, has_tls: bool) -> Console {
        let settings = self.settings;
        let base_url = settings.console.base_url.as_ref();
        Console {
            is_https: has_tls || base_url.is_some_and(|url| url.scheme() == "https"),
            sandbox: settings.profile == Profile::Sandbox,
            low_credits: settings.telemetry.low_credits,
            transaction_retention: settings.ovse.window + settings.ovse.result_ttl,
            installation: self.public_base.as_str().into(),
            provider: settings
                .console
                .provider
                .clone()
                .map(|(settings, _)| Provider::new(settings, DocumentClient::new(PROVIDER_TIMEOUT, &self.egress))),
            drain: self.drain.clone(),
            streams: FairSlots::new(STREAMS_MAX),
        }
    }
}

/// Opens a listening socket and returns it with its bound address.
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
