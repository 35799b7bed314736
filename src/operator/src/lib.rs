//! The internal listener: the operator's API, probes and metrics.
//!
//! `/admin/v1` requires an operator's bearer token; reports require a connector's token. Probes and metrics require no
//! token: the listener is not reachable from outside. Live state (actors, tree, health) comes through small traits.
//! `routes.rs` is the table that defines routes and OpenAPI document. Connectors may have a separate listener, which
//! accepts only their reports.

mod apps;
mod arguments;
mod audit;
mod audit_log;
mod bearer;
mod brand;
mod clients;
mod clock;
mod consents;
pub mod console_api;
mod credits;
mod data_loss;
mod erasure;
mod examples;
mod failed_logins;
mod grants;
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

pub use bearer::{Caller, Connector, ConnectorTokens, Operator};
pub use failed_logins::FailedLogins;
pub use log_level::LogLevel;
pub use operation::Operation;
pub use routes::operations;

use self::console_api::ProviderRoles;
use self::routes::Part;

/// Moves credits; the movements of one client happen one after the other.
pub trait CreditDesk: Send + Sync + 'static {
    /// Grants or adjusts credits. Idempotent by kind and reference.
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome>;
}

/// Accepts the reports of upstreams.
pub trait FlowDesk: Send + Sync + 'static {
    /// Records a report. Idempotent by its content.
    fn report(&self, report: FlowReport) -> LocalBoxFuture<'static, Result<ReportFlowOutcome, ApiError>>;
}

/// The health of the process, for probes. Its methods must return quickly.
pub trait Health: Send + Sync + 'static {
    /// Checks that the process still makes progress.
    ///
    /// # Errors
    /// A sentence that names the hanging part. The init system then restarts the process.
    fn livez(&self) -> Result<(), String>;

    /// Updates the readiness, unless the last update is recent.
    fn refresh_readiness(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the readiness as of the last update.
    ///
    /// # Errors
    /// A sentence that names the cause.
    fn readyz(&self) -> Result<(), String>;
}

/// The live supervision tree.
pub type TreeView = Arc<dyn Fn() -> TreeNode + Send + Sync>;

/// Returns all nodes of the installation, as this node sees them.
pub type NodesView = Arc<dyn Fn() -> LocalBoxFuture<'static, NodesResponse> + Send + Sync>;

/// Accepts the node's clock after a jump, and returns the jump.
pub type AcceptClock = Arc<dyn Fn() -> Option<ClockJump> + Send + Sync>;

/// The dependencies of the internal listener.
#[derive(Clone)]
pub struct InternalDeps {
    /// Clients, apps, keys, statements, deliveries.
    pub store: Store,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Accepts the clock after a jump.
    pub accept_clock: AcceptClock,
    /// The level of the log.
    pub log_level: LogLevel,
    /// Moves credits.
    pub credits: Arc<dyn CreditDesk>,
    /// Accepts the reports of upstreams.
    pub flows: Arc<dyn FlowDesk>,
    /// Signs intents.
    pub signer: Arc<IntentSigner>,
    /// Memory budgets of bodies.
    pub memory: MemoryBudgets,
    /// Health for the probes.
    pub health: Arc<dyn Health>,
    /// The live supervision tree.
    pub tree: TreeView,
    /// View of all nodes, used by [`InternalDeps::nodes`].
    pub nodes: NodesView,
    /// Renders the current metrics of this process.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The operator's bearer token.
    pub admin_token: SecretString,
    /// The connectors' bearer tokens.
    pub connector_tokens: ConnectorTokens,
    /// Counter of failed logins.
    pub failed_logins: FailedLogins,
    /// True if connectors have a separate listener.
    pub connectors_apart: bool,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
    /// Policy for webhook URLs.
    pub urls: UrlPolicy,
    /// Base address of the pages that explain errors.
    pub docs: DocsBase,
    /// Roles of accounts of the identity provider, if there is one.
    pub provider_roles: Option<ProviderRoles>,
    /// Credits above which a grant waits for a second operator.
    pub second_person_above: Option<u64>,
    /// Maximum number of bytes of a JSON body.
    pub body_bytes: usize,
    /// Maximum retention, from the settings.
    pub retention_max: RetentionMax,
}

/// The maximum retention of shared data, from the settings. A client may have shorter times.
#[derive(Clone, Copy, Debug)]
pub struct RetentionMax {
    /// Retention of results.
    pub result_ttl: Duration,
    /// Retention of events with their guests, after their end.
    pub registration_ttl: Duration,
}

impl InternalDeps {
    /// Returns all nodes of the installation, for `GET /admin/v1/nodes`. This node is always included, even while the
    /// store is unavailable or an arbiter hangs. The others keep reporting for ten seconds after the last call.
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

/// Declares the routes of the connectors' listener: their reports, and the document of this listener.
pub fn configure_reports(cfg: &mut ServiceConfig, deps: InternalDeps) {
    declare(cfg, deps, Part::Reports);
}

fn declare(cfg: &mut ServiceConfig, deps: InternalDeps, part: Part) {
    cfg.app_data(RouteMetrics::unmatched())
        .app_data(BodyLimit(deps.body_bytes))
        .app_data(web::Data::new(deps.memory.clone()));
    cfg.app_data(deps.docs.clone()).app_data(Audience::Operators).app_data(deps.trusted_proxies.clone());
    cfg.app_data(web::Data::new(deps)).app_data(web::Data::new(openapi::lazy_document(part)));
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
