//! A whole node: the supervision tree, the use cases on it, and both HTTP edges. Their handlers are called without
//! sockets.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix_http::Request;
use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service as _, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::header::HeaderMap;
use actix_web::middleware::from_fn;
use actix_web::test::init_service;
use actix_web::web::{self, Data};
use actix_web::{App, Error};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use sakshi_actors::{ByteBounds, DispatchBounds, Flows, Handles, NodeView, Tree, TreeBounds, TreeConfig};
use sakshi_authority::callback_address::CallbackAddresses;
use sakshi_authority::intent::{IntentKey, IntentSettings, IntentSigner};
use sakshi_authority::launch::AppLinks;
use sakshi_authority::sdjwt::{Jwks, KeyBinding, TrustedIssuer, Verifier};
use sakshi_domain::checks::CHECKS;
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_domain::profile::Profile;
use sakshi_domain::time::Timestamp;
use sakshi_domain::time_zone::TimeZone;
use sakshi_operator::{
    ConnectorTokens, CreditDesk, FailedLogins, FlowDesk, Health, InternalDeps, LogLevel, RetentionMax,
};
use sakshi_outbound::Egress;
use sakshi_outbound::document::DocumentClient;
use sakshi_outbound::upstream::UpstreamClient;
use sakshi_pages::intents::PageIntents;
use sakshi_sandbox::issuer::{HolderKey, SandboxIssuer};
use sakshi_service::authentication::KeyGate;
use sakshi_service::authority::AuthorityContext;
use sakshi_service::authority_answers::AuthorityAnswers;
use sakshi_service::budget::{CpuBudget, FlowFetches, MemoryBudgets};
use sakshi_service::clock_suspicion::ClockSuspicion;
use sakshi_service::credential_status::{StatusChecks, StatusRules};
use sakshi_service::drain::Drain;
use sakshi_service::idempotency_locks::IdempotencyLocks;
use sakshi_service::issuer_keys::IssuerKeys;
use sakshi_service::names::Names;
use sakshi_service::upstreams::Upstreams;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_service::{Rules, Service};
use sakshi_store::{CreditOutcome, ReportFlowOutcome, Retention, Store, StoreFuture, Vault};
use sakshi_supervision::Escalation;
use sakshi_supervision::interference::{on_arbiter, while_on_arbiter};
use sakshi_web::body::BodyLimit;
use sakshi_web::edge::edge;
use sakshi_web::error::{ApiError, DocsBase};
use sakshi_web::rate_limit::{RateLimit, RateLimits};
use sakshi_web::routing::{RouteMetrics, configure, unknown_path};
use sakshi_wire::operator::nodes::NodesResponse;
use sakshi_wire::operator::views::TreeNode;
use sakshi_wire::reports::FlowReport;
use tokio::sync::mpsc;
use url::Url;

use crate::clock::SimulatedClock;
use crate::network::{Inbox, Network};
use crate::store;
use crate::world::{Incarnation, World};

/// Time for which a transaction is open: shorter than in production, to keep runs short.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
/// Time limit of a request to an actor or an upstream.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const ADMIN_TOKEN: &str = "admin-token-of-the-simulation-0123456789";
pub(crate) const CONNECTOR_TOKEN: &str = "connector-token-of-the-simulation-0123456789";
/// Credits above which a grant needs a second operator.
pub(crate) const SECOND_PERSON_ABOVE: u64 = 20;
const BASE: &str = "https://sakshi.example";
const ISSUER: &str = "https://issuer.example";
/// A day: longer than any run.
const DAY: Duration = Duration::from_secs(24 * 3_600);
const BODY_BYTES: usize = 64 * 1_024;

/// The answer of a node's HTTP edge.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An arbiter (a thread of actors) of a node, by its number within the node. The workers' arbiters are 0 and 1.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arbiter {
    Effects = 2,
    Dispatch = 3,
}

impl Arbiter {
    pub(crate) const PER_NODE: u32 = 4;

    /// Returns the number of a node's first arbiter in the run. Arbiter 0 belongs to no node: it runs everything else.
    pub(crate) const fn first(node: usize) -> u32 {
        (node as u32 + 1) * Self::PER_NODE
    }

    /// Returns the number, within its node, of the arbiter that runs an actor of this type.
    pub(crate) fn for_actor(type_name: &str) -> u32 {
        match type_name.rsplit("::").next() {
            Some("CreditLedger" | "Reaper" | "ChangeListener" | "FlowSweeper") => Self::Effects as u32,
            Some("WebhookDispatcher") => Self::Dispatch as u32,
            _ => 0,
        }
    }
}

/// An HTTP edge of a node: the handlers of one listener on one worker.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) arbiter: u32,
    service: Rc<dyn Fn(Request) -> LocalBoxFuture<'static, Answer>>,
}

impl Edge {
    /// Starts an app whose handlers run on an arbiter.
    async fn start<F, B>(arbiter: u32, app: App<F>) -> Self
    where
        F: ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<B>, Error = Error, InitError = ()>
            + 'static,
        B: MessageBody + 'static,
    {
        let service = Rc::new(init_service(app).await);
        let service = move |request| -> LocalBoxFuture<'static, Answer> {
            let service = Rc::clone(&service);
            Box::pin(async move {
                let response = match service.call(request).await {
                    Ok(response) => response.into_parts().1.map_into_boxed_body(),
                    Err(error) => error.as_response_error().error_response(),
                };
                let (head, body) = response.into_parts();
                let body = to_bytes(body).await.unwrap_or_default();
                Answer { status: head.status().as_u16(), headers: head.headers().clone(), body }
            })
        };
        Self { arbiter, service: Rc::new(service) }
    }

    /// Calls the handler of a request.
    pub(crate) fn call(&self, request: Request) -> LocalBoxFuture<'static, Answer> {
        (self.service)(request)
    }
}

/// A running node.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) store: Store,
    /// The keys with which its process started.
    pub(crate) vault: Arc<Vault>,
    pub(crate) clock: Arc<SimulatedClock>,
    pub(crate) tree: Tree,
    /// One edge for each worker.
    pub(crate) public: Vec<Edge>,
    pub(crate) internal: Edge,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.incarnation.number)
    }
}

/// The identity authority of all runs, with its keys. They are made once, because making keys takes long.
pub(crate) struct Authority {
    pub(crate) context: Arc<AuthorityContext>,
    pub(crate) issuer: SandboxIssuer,
    pub(crate) holder: HolderKey,
}

/// Returns the identity authority of all runs, made at the first call.
pub(crate) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let issuer = SandboxIssuer::generate(ISSUER).expect("a key");
        let jwks = Jwks::parse(issuer.jwks_json().as_bytes()).expect("a key set");
        let settings = IntentSettings {
            kid: "intent-key".into(),
            typ: "credential-req+jwt".into(),
            issuer: "sakshi".into(),
            lifetime: WINDOW,
            client_id: "client".into(),
            registration: "registration".into(),
            scope_length: 64,
            ..IntentSettings::default()
        };
        let verifier =
            Arc::new(Verifier::new(vec![TrustedIssuer { issuer: ISSUER.into(), jwks }], KeyBinding::WhenPresent));
        // Credentials of the simulation have no status.
        let (rules, issuer_keys, clock) = (StatusRules::default(), IssuerKeys::default(), Arc::new(SystemClock));
        let context = AuthorityContext {
            signer: Arc::new(IntentSigner::new(IntentKey::generate_es256().expect("a key").0, settings)),
            callbacks: CallbackAddresses::new(BASE, &[[9; 32]]).expect("addresses"),
            links: AppLinks {
                android_web_action: "app.WEB".into(),
                android_app_action: "app.NATIVE".into(),
                ios_scheme: "idapp".into(),
                ios_host: "verify".into(),
                ..AppLinks::default()
            },
            qr_host: BASE.into(),
            status: StatusChecks::new(
                rules,
                Arc::new(DocumentClient::new(ASK_TIMEOUT, &Egress::default())),
                Arc::clone(&verifier),
                issuer_keys.clone(),
                clock,
            ),
            verifier,
            clock_suspicion: ClockSuspicion::default(),
            answers: AuthorityAnswers::default(),
            issuer_keys,
            sandbox: false,
            public_base: BASE.into(),
        };
        Authority { context: Arc::new(context), issuer, holder: HolderKey::generate().expect("a key") }
    })
}

/// Retention of ended records: longer than any run.
pub(crate) const RETENTION: Retention = Retention { expired: DAY, events: DAY, consents: DAY };

/// Returns the bounds of a node's supervision tree.
fn bounds(shards: usize, in_flight_per_origin: usize) -> TreeBounds {
    TreeBounds {
        shards,
        live_transactions: 100,
        // Three crowds of 32 equal answers at once are less.
        in_flight: 100,
        mailbox_depth: 100,
        ask_timeout: ASK_TIMEOUT,
        webhooks: DispatchBounds {
            in_flight: 8,
            in_flight_per_origin,
            outcome_bytes: ByteBounds::OUTCOMES,
            flow_bytes: ByteBounds::FLOWS,
        },
        live_events: 100,
        flow_result_ttl: DAY,
        flow_pending_ttl: DAY,
    }
}

/// Returns the rules of the service.
fn rules() -> Rules {
    Rules {
        profile: Profile::Production,
        window: WINDOW,
        result_ttl: DAY,
        time_zone: TimeZone::INDIA,
        registration_ttl: DAY,
        replay_window: WINDOW,
        has_public_base_url: true,
        urls: UrlPolicy::PUBLIC,
        callback_bytes: BODY_BYTES,
        flow_result_ttl: DAY,
        flow_pending_ttl: DAY,
        events_per_app: None,
        low_credits: 0,
    }
}

/// Returns rate limits that only records of refused requests can reach.
fn rates() -> RateLimits {
    RateLimits { refusals: RateLimit::per_second("refusals", 1), ..RateLimits::unlimited() }
}

/// Starts a node. Returns it and the failures that its root supervisor could not end by restarts; `None` if the node
/// cannot reach its store.
pub(crate) async fn start(
    world: &Arc<World>,
    inbox: &Inbox,
    incarnation: Arc<Incarnation>,
    clock_difference_ms: i64,
) -> Option<(Node, mpsc::UnboundedReceiver<Escalation>)> {
    let store = store::node_store(world, &incarnation);
    let network =
        Arc::new(Network { world: Arc::clone(world), incarnation: Arc::clone(&incarnation), inbox: Arc::clone(inbox) });
    let simulated_clock = SimulatedClock::new(world.started_at, clock_difference_ms);
    let clock: Arc<dyn Clock> = simulated_clock.clone();
    let vault = world.vault();
    let config =
        TreeConfig { store, vault, clock, client: network.clone(), audit_receiver: None, on_one_arbiter: true };
    let first_arbiter = Arbiter::first(incarnation.number);
    // In half of the runs, the webhooks of an origin wait for each other.
    let in_flight_per_origin = if world.seed.is_multiple_of(2) { 2 } else { 1 };
    let bounds = bounds(world.worker_count(), in_flight_per_origin);
    let (tree, escalations) = while_on_arbiter(first_arbiter, Tree::start(config.clone(), bounds)).await.ok()?;
    let service = create_service(&config, &tree, network);
    let public = start_public(world, first_arbiter, &tree, &service).await?;
    let deps = internal_deps(&service, &tree);
    let internal = App::new().wrap(from_fn(edge)).configure(move |app| sakshi_operator::configure(app, deps));
    let internal = Edge::start(first_arbiter, internal).await;
    let TreeConfig { store, vault, .. } = config;
    Some((Node { incarnation, store, vault, clock: simulated_clock, tree, public, internal }, escalations))
}

/// Creates the use cases of a node, on the actor shards with number 0.
fn create_service(config: &TreeConfig, tree: &Tree, network: Arc<Network>) -> Service {
    let Handles { transactions, events, flows } = tree.handles(0);
    let upstreams = UpstreamClient::with_sender(network, ASK_TIMEOUT);
    let upstream = |flow: &str| {
        Url::parse(&format!("https://upstream.example/{flow}")).ok().map(|url| upstreams.upstream_at(url, 8))
    };
    Service {
        transactions,
        events,
        flows,
        store: config.store.clone(),
        vault: Arc::clone(&config.vault),
        clock: Arc::clone(&config.clock),
        authority: Arc::clone(&authority().context),
        rules: rules(),
        pages: Arc::default(),
        names: Names::default(),
        drain: Drain::default(),
        upstreams: Upstreams {
            esign: upstream("esign"),
            doclocker: upstream("doclocker"),
            estamp: upstream("estamp"),
            wealth: upstream("wealth"),
            checks: CHECKS.iter().filter_map(|check| Some((check.name, upstream(check.name)?))).collect(),
        },
        idempotency_locks: IdempotencyLocks::new(ASK_TIMEOUT),
        flow_fetches: FlowFetches::default(),
        memory: MemoryBudgets::default(),
        cpu: CpuBudget::without_threads(),
    }
}

/// Starts the public listener's app on each worker, with actor shards of its own. Returns `None` if a shard does not
/// start.
async fn start_public(world: &World, first_arbiter: u32, tree: &Tree, service: &Service) -> Option<Vec<Edge>> {
    let rates = rates();
    let mut public = Vec::new();
    for arbiter in (first_arbiter..).take(world.worker_count()) {
        let Handles { transactions, events, flows } = on_arbiter(arbiter, || tree.start_shard())?;
        let service = Service { transactions, events, flows, ..service.clone() };
        let app = App::new()
            .app_data(DocsBase(BASE.into()))
            .app_data(Data::new(service.memory.clone()))
            .app_data(KeyGate::new(service.store.clone(), Arc::clone(&service.clock), Profile::Sandbox))
            .app_data(Data::new(service))
            .app_data(Data::new(rates.clone()))
            .app_data(BodyLimit(BODY_BYTES))
            .app_data(RouteMetrics::unmatched())
            .app_data(PageIntents::default())
            .configure(|config| {
                configure(config, sakshi_api::ROUTES);
                configure(config, sakshi_pages::ROUTES);
                configure(config, sakshi_portal::ROUTES);
            })
            .default_service(web::to(unknown_path))
            .wrap(from_fn(edge));
        public.push(Edge::start(arbiter, app).await);
    }
    Some(public)
}

/// Creates the dependencies of the internal listener.
fn internal_deps(service: &Service, tree: &Tree) -> InternalDeps {
    let viewed_tree = tree.clone();
    InternalDeps {
        store: service.store.clone(),
        clock: Arc::clone(&service.clock),
        accept_clock: Arc::new(|| None),
        log_level: LogLevel::default(),
        credits: Arc::new(LedgerDesk(tree.clone())),
        flows: Arc::new(ReportDesk(service.flows.clone())),
        signer: Arc::clone(&service.authority.signer),
        memory: service.memory.clone(),
        health: Arc::new(Healthy),
        tree: Arc::new(move || tree_node(viewed_tree.view())),
        nodes: Arc::new(|| {
            Box::pin(std::future::ready(NodesResponse { now: Timestamp::from_millis(0), nodes: Vec::new() }))
        }),
        metrics: Arc::new(String::new),
        admin_token: ADMIN_TOKEN.to_owned().into(),
        connector_tokens: ConnectorTokens { shared: CONNECTOR_TOKEN.to_owned().into(), ..ConnectorTokens::default() },
        failed_logins: FailedLogins::per_minute(0),
        connectors_apart: false,
        trusted_proxies: Vec::new().into(),
        urls: UrlPolicy::PUBLIC,
        docs: DocsBase(BASE.into()),
        provider_roles: None,
        second_person_above: Some(SECOND_PERSON_ABOVE),
        body_bytes: BODY_BYTES,
        retention_max: RetentionMax { result_ttl: DAY, registration_ttl: DAY },
    }
}

/// Converts an actor of the supervision tree, with its children, to the operators' view, without the times of panics.
fn tree_node(view: NodeView) -> TreeNode {
    let NodeView { name, kind, state, live, restarts, last_exit, age_s, mailbox, children, .. } = view;
    TreeNode {
        name,
        kind: kind.into(),
        state: state.into(),
        live,
        restarts,
        last_exit: last_exit.map(Into::into),
        last_panic: None,
        age_s,
        mailbox: mailbox as u64,
        children: children.into_iter().map(tree_node).collect(),
    }
}

/// Moves credits through the actor of the credit ledger.
struct LedgerDesk(Tree);

impl CreditDesk for LedgerDesk {
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.0.move_credits(client, movement)
    }
}

/// Passes the connectors' reports to the actors of flows.
struct ReportDesk(Flows);

impl FlowDesk for ReportDesk {
    fn report(&self, report: FlowReport) -> LocalBoxFuture<'static, Result<ReportFlowOutcome, ApiError>> {
        let flows = self.0.clone();
        Box::pin(async move { Ok(flows.report(report).await?) })
    }
}

/// Health checks that always succeed.
struct Healthy;

impl Health for Healthy {
    fn livez(&self) -> Result<(), String> {
        Ok(())
    }

    fn readyz(&self) -> Result<(), String> {
        Ok(())
    }
}
