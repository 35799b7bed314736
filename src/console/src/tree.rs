//! `/console/tree`: the supervision tree of every node, live. The server renders the page; with JavaScript a stream
//! updates it.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::{Method, StatusCode};
use askama::Template;
use askama::filters::HtmlSafe;
use sakshi_service::ServiceError;
use sakshi_web::event_stream::{Next, STATE_INTERVAL, stream_response};
use sakshi_web::html::{form_page, private};
use sakshi_web::when::{When, format_span};
use sakshi_wire::operator::nodes::{NodeFigures, NodeState, NodesResponse, ReceiverQueue};
use sakshi_wire::operator::views::TreeNode;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::error::ConsoleError;
use crate::layout::{Layout, SCRIPT, Section};
use crate::staff::{Staff, StreamStaff};

/// Interval between two reads of the nodes.
const READ_INTERVAL: Duration = Duration::from_millis(1_000);

/// The kinds of actors: name, thread, and duties in plain words.
const KINDS: [(&str, &str, &str); 9] = [
    (
        "root",
        "no thread",
        "starts the actors below it and restarts failed actors; if an actor keeps failing, the process ends and the \
            init system restarts it.",
    ),
    ("credit_ledger", "effects", "moves the credits of each client in order, so that no credit is spent twice."),
    (
        "webhook_dispatcher",
        "dispatch",
        "sends each webhook once, with a queue for each receiver, so that a slow receiver does not delay others.",
    ),
    ("reaper", "effects", "deletes expired records."),
    (
        "event_registry",
        "HTTP worker",
        "is a shard: it has a small actor for each event in use, which knows the number of guests.",
    ),
    (
        "transaction_registry",
        "HTTP worker",
        "is a shard: it has a small actor for each pending verification, with its deadline and the requests that wait \
            for its outcome.",
    ),
    (
        "change_listener",
        "effects",
        "learns from other nodes that a verification has ended, and wakes the requests on this node that wait for it.",
    ),
    ("figures", "effects", "adds today's counts of each app to the store, every two seconds."),
    ("flow_sweeper", "effects", "ends documents whose invitation to sign has expired."),
];

/// An actor or a shard, with what is below it.
#[derive(Template)]
#[template(path = "branch.html")]
struct Branch {
    node: TreeNode,
    /// True if the actor is down because it is not needed.
    not_needed: bool,
    panicked_at: Option<When>,
    /// The longest queues, at the dispatcher.
    queues: Vec<ReceiverQueue>,
    queues_total: u64,
    children: Vec<Self>,
}

impl HtmlSafe for Branch {}

impl Branch {
    /// Builds the branch of an actor on a node; `is_shared` is true if nodes share the store.
    fn new(mut node: TreeNode, node_state: &NodeState, is_shared: bool) -> Self {
        let children = std::mem::take(&mut node.children);
        let is_dispatcher = node.kind == "webhook_dispatcher";
        Self {
            not_needed: node.kind == "change_listener" && node.state == "down" && !is_shared,
            panicked_at: node.last_panic.as_ref().map(|panic| When::second(panic.at)),
            queues: if is_dispatcher { node_state.receivers.clone() } else { Vec::new() },
            queues_total: if is_dispatcher { node_state.receivers_total } else { 0 },
            children: children.into_iter().map(|child| Self::new(child, node_state, is_shared)).collect(),
            node,
        }
    }

    /// Returns true if the actor needs attention.
    fn has_problem(&self) -> bool {
        (self.node.state != "running" && !self.not_needed) || self.node.restarts > 0 || self.node.last_panic.is_some()
    }

    fn problem_count(&self) -> u64 {
        u64::from(self.has_problem()) + self.children.iter().map(Self::problem_count).sum::<u64>()
    }

    fn state(&self) -> &str {
        if self.not_needed { "not needed with the embedded store" } else { &self.node.state }
    }

    fn age(&self) -> Option<String> {
        self.node.age_s.map(format_span)
    }

    fn is_shard(&self) -> bool {
        self.node.kind.ends_with("_registry")
    }
}

/// A small chart of the last two minutes.
struct Chart {
    label: &'static str,
    /// The newest value, with its unit.
    now: String,
    /// The highest value, with its unit.
    maximum: String,
    /// SVG path, 120 wide and 24 high.
    path: String,
    /// SVG path of the failures.
    failed: Option<String>,
    /// True if the newest sample has failures.
    is_bad: bool,
}

/// Width of a chart, and height of its highest value.
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 22.0;
/// Distance of the value 0 from the top of a chart.
const BASELINE: f64 = 23.0;
/// Maximum number of samples in a chart: one in two seconds for two minutes.
const SAMPLES_MAX: u8 = 60;

/// Returns the SVG path of a line, aligned right and scaled to `maximum`.
fn chart_path(values: &[f64], maximum: f64) -> String {
    let step = WIDTH / f64::from(SAMPLES_MAX - 1);
    let first = usize::from(SAMPLES_MAX).saturating_sub(values.len());
    let points = values.iter().enumerate().map(|(index, value)| {
        // There are few samples.
        #[allow(clippy::cast_precision_loss)]
        let x = (first + index) as f64 * step;
        format!("{x:.1} {:.1}", BASELINE - value / maximum.max(f64::MIN_POSITIVE) * HEIGHT)
    });
    let points: Vec<String> = points.collect();
    if points.is_empty() { String::new() } else { format!("M{}", points.join("L")) }
}

fn chart(label: &'static str, values: &[f64], unit: &str, failed: Option<&[f64]>) -> Chart {
    let maximum = values.iter().copied().fold(0.0, f64::max);
    let with_unit = |value: f64| {
        if value > 0.0 && value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
    };
    let is_failing = failed.and_then(|failed| failed.last()).is_some_and(|failed| *failed > 0.0);
    Chart {
        label,
        now: with_unit(values.last().copied().unwrap_or_default()),
        maximum: with_unit(maximum),
        path: chart_path(values, maximum),
        failed: failed
            .filter(|failed| failed.iter().any(|value| *value > 0.0))
            .map(|failed| chart_path(failed, maximum)),
        is_bad: is_failing,
    }
}

fn charts(figures: &NodeFigures) -> Vec<Chart> {
    // Counts of two seconds are far below what a float holds exactly.
    #[allow(clippy::cast_precision_loss)]
    let rate = |counts: &[u64]| {
        counts.iter().map(|count| *count as f64 / figures.interval_s.max(1) as f64).collect::<Vec<_>>()
    };
    let failed = rate(&figures.webhooks_failed);
    vec![
        chart("inits", &rate(&figures.inits), "a second", None),
        chart("callbacks", &rate(&figures.callbacks), "a second", None),
        chart("webhooks", &rate(&figures.webhooks), "a second", Some(&failed)),
        chart("p99", &figures.p99_ms, "ms", None),
        chart("processor", &figures.cpu_percent, "% of a core", None),
    ]
}

/// A node of the installation.
struct NodeRow {
    state: NodeState,
    started_at: Option<When>,
    root: Option<Branch>,
    problem_count: u64,
    charts: Vec<Chart>,
}

impl NodeRow {
    fn new(mut state: NodeState, is_shared: bool) -> Self {
        let root = state.tree.take().map(|tree| Branch::new(tree, &state, is_shared));
        Self {
            started_at: state.started_at.map(When::second),
            problem_count: root.as_ref().map_or(0, Branch::problem_count),
            root,
            charts: state.figures.as_ref().map(charts).unwrap_or_default(),
            state,
        }
    }

    /// Returns the beginning of the node's id; empty for the only node of an embedded store.
    fn short(&self) -> &str {
        let short = self.state.node.get(..8).unwrap_or(&self.state.node);
        if short.bytes().all(|byte| byte == b'0') { "" } else { short }
    }

    fn class(&self) -> &'static str {
        match &*self.state.state {
            "live" => "live",
            "draining" => "pending",
            _ => "bad",
        }
    }
}

/// The nodes, side by side: the part of the page that the stream updates.
#[derive(Template)]
#[template(path = "nodes.html")]
struct Nodes {
    nodes: Vec<NodeRow>,
}

impl HtmlSafe for Nodes {}

impl Nodes {
    fn new(response: NodesResponse, is_shared: bool) -> Self {
        Self { nodes: response.nodes.into_iter().map(|state| NodeRow::new(state, is_shared)).collect() }
    }

    fn problem_count(&self) -> u64 {
        self.nodes.iter().map(|node| node.problem_count).sum()
    }
}

#[derive(Template)]
#[template(path = "tree.html")]
struct Page {
    layout: Layout,
    nodes: Nodes,
    kinds: &'static [(&'static str, &'static str, &'static str)],
}

impl Page {
    fn script(&self) -> String {
        SCRIPT.url()
    }
}

/// Shows the nodes.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    let nodes = Nodes::new(staff.api.nodes().await, staff.api.store.is_shared());
    let layout = Layout::new(&staff.request, Some(Section::Tree));
    Ok(form_page(StatusCode::OK, &Page { layout, nodes, kinds: &KINDS }))
}

/// An event of the stream: the nodes as the page shows them.
#[derive(Clone, PartialEq, Eq, Serialize)]
struct State {
    html: String,
}

/// Sends the nodes whenever they have changed, until the session ends.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; [`ServiceError::Overloaded`] if there are too many streams.
pub(crate) async fn live(staff: StreamStaff) -> Result<HttpResponse, ConsoleError> {
    let StreamStaff(staff) = staff;
    if staff.request.method() == Method::HEAD {
        return Ok(private(StatusCode::OK).content_type("text/event-stream").finish());
    }
    let slot = staff.console.streams.enter(&staff.session.digest).ok_or(ServiceError::Overloaded)?;
    let is_shared = staff.api.store.is_shared();
    let mut last_sent = State { html: render_nodes(&staff, is_shared).await };
    let (first, drain) = (Next::State(last_sent.clone()), staff.console.drain.clone());
    Ok(stream_response(&drain, slot, &first, async move || {
        let repeat_at = Instant::now() + STATE_INTERVAL;
        loop {
            sleep(READ_INTERVAL).await;
            if !staff.is_still_valid().await {
                return Next::End;
            }
            let state = State { html: render_nodes(&staff, is_shared).await };
            if state != last_sent || Instant::now() >= repeat_at {
                last_sent = state.clone();
                return Next::State(state);
            }
        }
    }))
}

async fn render_nodes(staff: &Staff, is_shared: bool) -> String {
    Nodes::new(staff.api.nodes().await, is_shared).render().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_node(kind: &str, state: &str, restarts: u64, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            name: kind.to_owned(),
            kind: kind.to_owned().into(),
            state: state.to_owned().into(),
            live: 1,
            restarts,
            last_exit: None,
            last_panic: None,
            age_s: Some(7_300),
            mailbox: 0,
            children,
        }
    }

    fn branch_on_store(node: TreeNode, is_shared: bool) -> Branch {
        let node_state: NodeState =
            serde_json::from_value(serde_json::json!({"node": "n", "is_this": true, "version": null,
            "started_at": null,
            "seen_at": "2026-01-15T10:00:00.000Z", "state": "live", "live_transactions": null, "live_events": null,
            "tree": null,
            "receivers": [], "receivers_total": 0, "figures": null}))
            .unwrap();
        Branch::new(node, &node_state, is_shared)
    }

    #[test]
    fn a_down_or_restarted_actor_is_a_problem_unless_it_is_not_needed() {
        let tree = || {
            tree_node(
                "root",
                "running",
                0,
                vec![tree_node("reaper", "running", 2, vec![]), tree_node("change_listener", "down", 0, vec![])],
            )
        };
        let (embedded, shared) = (branch_on_store(tree(), false), branch_on_store(tree(), true));
        assert_eq!((embedded.problem_count(), embedded.children[1].state()), (1, "not needed with the embedded store"));
        assert_eq!(shared.problem_count(), 2);
        let html = embedded.to_string();
        assert_eq!((html.matches("class=\"wrong\"").count(), html.contains("2 h")), (1, true), "{html}");
    }

    #[test]
    fn a_chart_is_aligned_right_and_scaled_to_its_maximum() {
        let rising = chart("inits", &[0.0, 5.0, 10.0], "a second", None);
        assert_eq!((&*rising.path, &*rising.now), ("M115.9 23.0L118.0 12.0L120.0 1.0", "10 a second"));
        assert!(rising.failed.is_none() && chart("x", &[], "", None).path.is_empty());
        let failing = chart("webhooks", &[2.0], "a second", Some(&[1.5]));
        assert!(failing.is_bad && failing.failed.is_some());
    }
}
