//! The internal listener: the operator's API, probes and metrics.
//!
//! Everything under `/admin/v1` takes an operator's bearer token, what connectors report theirs. Probes and metrics take none: the
//! listener is not reachable from outside. What is live (actors, tree, health) is handed in behind
//! small traits, so that this module knows neither actors nor their wiring. `routes.rs` is the table of which routes and the
//! OpenAPI document are made. Connectors may have a listener of their own, which takes their reports alone.

mod apps;
mod arguments;
mod audit;
mod audit_log;
mod bearer;
mod brand;
mod clients;
mod clock;
mod consents;
mod credits;
mod data_loss;
mod erasure;
mod examples;
mod failed_logins;
mod grants;
pub mod inside;
mod intent_keys;
mod keys;
mod log_level;
mod openapi;
mod operation;
mod operators;
mod probes;
mod reports;
mod reseal;
mod routes;
mod transfers;
mod upgrade;
mod users;
mod views;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{self, ServiceConfig};
use futures_util::future::LocalBoxFuture;
use sakshi_authority::intent::IntentSigner;
use sakshi_domain::clock::Clock;
use sakshi_domain::clock_watch::ClockJump;
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_service::budget::MemoryBudgets;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_store::{CreditOutcome, ReportFlowOutcome, Store, StoreFuture};
use sakshi_web::body::BodyLimit;
use sakshi_web::error::{ApiError, DocsBase};
use sakshi_web::rate_limit::TrustedProxies;
use sakshi_web::routing::{Audience, RouteMetrics, resource, unknown_path};
use sakshi_wire::operator::nodes::NodesResponse;
use sakshi_wire::operator::views::TreeNode;
use sakshi_wire::reports::FlowReport;
use secrecy::SecretString;

pub use bearer::{Connector, ConnectorTokens, Operator, Who};
pub use failed_logins::FailedLogins;
pub use log_level::LogLevel;
pub use operation::Operation;
pub use routes::operations;

use self::inside::ProviderRoles;
use self::routes::Part;

/// Where credits are moved: the ledger actor, which keeps the order per client.
pub trait CreditDesk: Send + Sync + 'static {
    /// Grants or adjusts credits. Repeatable by kind and reference.
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome>;
}

/// Takes the reports of upstreams.
pub trait FlowDesk: Send + Sync + 'static {
    /// Takes in a report. Repeatable by its content.
    fn report(&self, report: FlowReport) -> LocalBoxFuture<'static, Result<ReportFlowOutcome, ApiError>>;
}

/// What the probes ask. Answers must be at hand: a probe does not wait.
pub trait Health: Send + Sync + 'static {
    /// Whether the process can still do anything at all.
    ///
    /// # Errors
    /// One sentence on what hangs; the init system then restarts the process.
    fn livez(&self) -> Result<(), String>;

    /// Looks whether requests should be sent here, unless it has just looked.
    fn look(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Says why no requests should be sent here, as it was seen last.
    ///
    /// # Errors
    /// One sentence on what is missing.
    fn readyz(&self) -> Result<(), String>;
}

/// The live supervision tree.
pub type TreeView = Arc<dyn Fn() -> TreeNode + Send + Sync>;

/// All nodes of the installation, as this one sees them.
pub type NodesView = Arc<dyn Fn() -> LocalBoxFuture<'static, NodesResponse> + Send + Sync>;

/// Trusts the node's clock as it is now; returns the jump because of which it was not trusted.
pub type AcceptClock = Arc<dyn Fn() -> Option<ClockJump> + Send + Sync>;

/// What the internal listener needs.
#[derive(Clone)]
pub struct InternalDeps {
    /// Clients, apps, keys, statements, deliveries.
    pub store: Store,
    /// Where "now" comes from.
    pub clock: Arc<dyn Clock>,
    /// Accepts that clock after a jump.
    pub accept_clock: AcceptClock,
    /// The level of the log.
    pub log_level: LogLevel,
    /// Where credits are moved.
    pub credits: Arc<dyn CreditDesk>,
    /// Takes the reports of upstreams.
    pub flows: Arc<dyn FlowDesk>,
    /// Signs intents.
    pub signer: Arc<IntentSigner>,
    /// What bodies hold.
    pub memory: MemoryBudgets,
    /// What the probes ask.
    pub health: Arc<dyn Health>,
    /// The live supervision tree.
    pub tree: TreeView,
    /// All nodes; [`InternalDeps::nodes`] asks it.
    pub nodes: NodesView,
    /// Renders the metrics of this process, all of them up to date.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The operator's bearer token.
    pub admin_token: SecretString,
    /// The connectors' bearer tokens.
    pub connector_tokens: ConnectorTokens,
    /// Tokens that were not good.
    pub failed_logins: FailedLogins,
    /// Whether connectors report on a listener of their own.
    pub connectors_apart: bool,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: TrustedProxies,
    /// The URLs that webhooks may go to.
    pub urls: UrlPolicy,
    /// The address of the pages that explain errors.
    pub docs: DocsBase,
    /// The roles of people who sign in at the identity provider, if there is one.
    pub provider_roles: Option<ProviderRoles>,
    /// Credits above which a grant waits for a second operator.
    pub second_person_above: Option<u64>,
    /// Bytes of a JSON body.
    pub body_bytes: usize,
    /// For how long the settings let anything be kept.
    pub longest: LongestKept,
}

/// For how long the settings let what people have shared be kept; a client may have shorter times.
#[derive(Clone, Copy, Debug)]
pub struct LongestKept {
    /// Results.
    pub result_ttl: Duration,
    /// Events with their guests, after their end.
    pub registration_ttl: Duration,
}

impl InternalDeps {
    /// All nodes of the installation side by side: what `GET /admin/v1/nodes` answers. It always has this node, also while the store is
    /// away or an arbiter hangs. The others go on telling about themselves for ten seconds after the last call.
    pub async fn nodes(&self) -> NodesResponse {
        (self.nodes)().await
    }
}

impl fmt::Debug for InternalDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InternalDeps").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Declares the routes of the internal listener; the app wraps them in [`sakshi_web::edge::edge`].
pub fn configure(cfg: &mut ServiceConfig, deps: InternalDeps) {
    let part = if deps.connectors_apart { Part::WithoutReports } else { Part::Whole };
    declare(cfg, deps, part);
}

/// Declares the routes of the connectors' own listener: their reports, and the document of those.
pub fn configure_reports(cfg: &mut ServiceConfig, deps: InternalDeps) {
    declare(cfg, deps, Part::Reports);
}

fn declare(cfg: &mut ServiceConfig, deps: InternalDeps, part: Part) {
    cfg.app_data(RouteMetrics::unmatched()).app_data(BodyLimit(deps.body_bytes)).app_data(web::Data::new(deps.memory.clone()));
    cfg.app_data(deps.docs.clone()).app_data(Audience::Operators).app_data(deps.trusted_proxies.clone());
    cfg.app_data(web::Data::new(deps)).app_data(web::Data::new(openapi::document_of(part)));
    let mut table = part.operations().map(|(_, operation)| operation).peekable();
    while let Some(Operation { method, path, roles, logging, route, body_bytes, .. }) = table.next() {
        let mut routes = vec![(method, route(roles, logging))];
        while let Some(next) = table.next_if(|next| next.path == path) {
            routes.push((next.method, (next.route)(next.roles, next.logging)));
        }
        let resource = resource(path, routes);
        cfg.service(match body_bytes {
            Some(bytes) => resource.app_data(BodyLimit(bytes)),
            None => resource,
        });
    }
    cfg.default_service(web::to(unknown_path));
}
