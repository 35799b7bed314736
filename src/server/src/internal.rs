//! The internal listener's app: the operator's API and console, connectors' reports, probes, and the sandbox's
//! stand-ins for upstreams.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{App, Error};
use futures_util::future::LocalBoxFuture;
use metrics::gauge;
use sakshi_actors::{Flows, NodeView, Tree};
use sakshi_console::Console;
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;
use sakshi_operator::{CreditDesk, FlowDesk, Health, InternalDeps};
use sakshi_service::budget::{CpuBudget, MemoryBudgets};
use sakshi_service::drain::Drain;
use sakshi_store::{CreditOutcome, ReportFlowOutcome, StoreFuture};
use sakshi_web::edge::edge;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::views::{LastPanic, TreeNode};
use sakshi_wire::reports::FlowReport;

use crate::sandbox::StandIns;
use crate::storage::Storage;
use crate::telemetry::{PrometheusRecorder, process};

/// Builds the app of the listener's single worker.
pub(crate) fn app(
    deps: InternalDeps,
    console: Console,
    stand_ins: Option<StandIns>,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody + use<>>,
        Error = Error,
        InitError = (),
    > + use<>,
> {
    App::new().wrap(from_fn(edge)).configure(move |config| {
        sakshi_operator::configure(config, deps);
        sakshi_console::configure(config, console);
        if let Some(stand_ins) = stand_ins {
            stand_ins.configure_orders(config);
        }
    })
}

/// Builds the app of the connectors' listener, which also has a single worker.
pub(crate) fn connectors_app(
    deps: InternalDeps,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody + use<>>,
        Error = Error,
        InitError = (),
    > + use<>,
> {
    App::new().wrap(from_fn(edge)).configure(move |config| sakshi_operator::configure_reports(config, deps))
}

/// Converts the live supervision tree for the operator.
pub(crate) fn tree_node(view: NodeView) -> TreeNode {
    let NodeView { name, kind, state, live, restarts, last_exit, last_panic, age_s, mailbox, children } = view;
    let (kind, state, last_exit) = (kind.into(), state.into(), last_exit.map(Into::into));
    TreeNode {
        name,
        kind,
        state,
        live,
        restarts,
        last_exit,
        last_panic: last_panic.map(panic_body),
        age_s,
        mailbox: mailbox as u64,
        children: children.into_iter().map(tree_node).collect(),
    }
}

/// Converts the last panic of an actor for the operator.
fn panic_body(panic: sakshi_actors::LastPanic) -> LastPanic {
    let sakshi_actors::LastPanic { at, place, request_id, count } = panic;
    let at = at.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    LastPanic { at: Timestamp::from_millis(at), place, request_id, count }
}

/// Returns a function that renders all metrics, after updating those of the store, the tree, the budgets and the node's
/// health.
pub(crate) fn metrics_page(
    metrics: PrometheusRecorder,
    storage: &Storage,
    health: Arc<dyn Health>,
    tree: Tree,
    memory: MemoryBudgets,
    cpu: CpuBudget,
    drain: Drain,
) -> Arc<dyn Fn() -> String + Send + Sync> {
    let update_store_metrics = storage.metrics_updater();
    Arc::new(move || {
        update_store_metrics();
        process::publish();
        gauge!("sakshi_ready").set(u8::from(health.readyz().is_ok()));
        tree.update_gauges();
        publish_mailboxes(&tree.view());
        // Gauges are floats by their format.
        #[allow(clippy::cast_precision_loss)]
        gauge!("sakshi_http_requests_in_flight").set(drain.requests_in_flight() as f64);
        memory.publish_metrics();
        cpu.publish_metrics();
        metrics.render()
    })
}

/// Publishes the number of messages that wait for actors, by kind of actor.
fn publish_mailboxes(view: &NodeView) {
    let mut waiting_messages = BTreeMap::new();
    let mut nodes = vec![view];
    while let Some(node) = nodes.pop() {
        *waiting_messages.entry(node.kind).or_insert(0) += node.mailbox;
        nodes.extend(&node.children);
    }
    for (kind, messages) in waiting_messages {
        #[allow(clippy::cast_precision_loss)]
        gauge!("sakshi_mailbox_messages", "actor" => kind).set(messages as f64);
    }
}

/// Gives the operator's API access to the credit ledger.
pub(crate) struct LedgerDesk {
    pub(crate) tree: Tree,
}

impl CreditDesk for LedgerDesk {
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.tree.move_credits(client, movement)
    }
}

/// Gives the reports of connectors access to the flows.
pub(crate) struct Reports {
    pub(crate) flows: Flows,
}

impl FlowDesk for Reports {
    fn report(&self, report: FlowReport) -> LocalBoxFuture<'static, Result<ReportFlowOutcome, ApiError>> {
        let flows = self.flows.clone();
        Box::pin(async move { Ok(flows.report(report).await?) })
    }
}
