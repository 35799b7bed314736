//! `/console/tree`: the supervision tree of every node, live. The server draws it; with a script a stream renews the
//! page.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::{Method, StatusCode};
use askama::Template;
use askama::filters::HtmlSafe;
use sakshi_service::ServiceError;
use sakshi_web::event_stream::{Next, STATE_INTERVAL, stream_response};
use sakshi_web::html::{form_page, private};
use sakshi_web::when::When;
use sakshi_wire::operator::nodes::{NodeFigures, NodeState, NodesResponse, ReceiverQueue};
use sakshi_wire::operator::views::TreeNode;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::error::ConsoleError;
use crate::layout::{Layout, SCRIPT, Section};
use crate::staff::{Staff, StreamStaff};

/// Pause between two reads.
const LOOK: Duration = Duration::from_millis(1_000);

/// The kinds of actors: name, thread, and duties in plain words.
const KINDS: [(&str, &str, &str); 9] = [
    (
        "root",
        "no thread",
        "starts the actors below it, and starts an actor again that has failed; if one keeps failing, the process \
            ends and the init system starts it anew.",
    ),
    ("credit_ledger", "effects", "moves the credits of each client in their order, so that no balance is spent twice."),
    (
        "webhook_dispatcher",
        "dispatch",
        "sends each webhook once to its receiver, with a queue for each receiver, so that a slow one holds up nobody \
            else.",
    ),
    ("reaper", "effects", "removes records whose time is over."),
    (
        "event_registry",
        "HTTP worker",
        "is a shard: it keeps one small actor for each event that is asked about, which knows how many guests it has.",
    ),
    (
        "transaction_registry",
        "HTTP worker",
        "is a shard: it keeps one small actor for each verification that waits for a person, with its deadline and \
            who waits for its end.",
    ),
    (
        "change_listener",
        "effects",
        "hears from other nodes that a verification has ended there, and wakes who waits for it here.",
    ),
    ("figures", "effects", "adds what was counted of each app today to the store, every two seconds."),
    ("flow_sweeper", "effects", "finds documents whose invitation to sign has ended, and ends them."),
];

/// An actor or a shard, with what is below it.
#[derive(Template)]
#[template(path = "branch.html")]
struct Branch {
    node: TreeNode,
    /// True if it is down and nothing is wrong.
    not_needed: bool,
    panicked_at: Option<When>,
    /// The longest queues, at the dispatcher.
    queues: Vec<ReceiverQueue>,
    queues_total: u64,
    children: Vec<Self>,
}

impl HtmlSafe for Branch {}

impl Branch {
    fn of(mut node: TreeNode, seen: &NodeState, is_shared: bool) -> Self {
        let children = std::mem::take(&mut node.children);
        let sends = node.kind == "webhook_dispatcher";
        Self {
            not_needed: node.kind == "change_listener" && node.state == "down" && !is_shared,
            panicked_at: node.last_panic.as_ref().map(|panic| When::second(panic.at)),
            queues: if sends { seen.receivers.clone() } else { Vec::new() },
            queues_total: if sends { seen.receivers_total } else { 0 },
            children: children.into_iter().map(|child| Self::of(child, seen, is_shared)).collect(),
            node,
        }
    }

    /// Returns true if somebody should look at it.
    fn is_wrong(&self) -> bool {
        (self.node.state != "running" && !self.not_needed) || self.node.restarts > 0 || self.node.last_panic.is_some()
    }

    fn wrong(&self) -> u64 {
        u64::from(self.is_wrong()) + self.children.iter().map(Self::wrong).sum::<u64>()
    }

    fn state(&self) -> &str {
        if self.not_needed { "not needed with the embedded store" } else { &self.node.state }
    }

    fn age(&self) -> Option<String> {
        self.node.age_s.map(age)
    }

    fn is_shard(&self) -> bool {
        self.node.kind.ends_with("_registry")
    }
}

/// Formats a time in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A small chart of the last two minutes.
struct Line {
    label: &'static str,
    /// The newest value, in words.
    now: String,
    /// The highest value, in words.
    most: String,
    /// The path of an SVG 120 wide and 24 high.
    path: String,
    /// The same for the part that failed.
    failed: Option<String>,
    is_bad: bool,
}

/// Width of a chart, and height of its highest value.
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 22.0;

fn path(values: &[f64], most: f64) -> String {
    let step = WIDTH / 59.0;
    let first = 60_usize.saturating_sub(values.len());
    let points = values.iter().enumerate().map(|(place, value)| {
        // There are 60 samples at most.
        #[allow(clippy::cast_precision_loss)]
        let x = (first + place) as f64 * step;
        format!("{x:.1} {:.1}", 23.0 - value / most.max(f64::MIN_POSITIVE) * HEIGHT)
    });
    let points: Vec<String> = points.collect();
    if points.is_empty() { String::new() } else { format!("M{}", points.join("L")) }
}

fn line(label: &'static str, values: &[f64], unit: &str, failed: Option<&[f64]>) -> Line {
    let most = values.iter().copied().fold(0.0, f64::max);
    let words = |value: f64| {
        if value > 0.0 && value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
    };
    let failing = failed.and_then(|failed| failed.last()).is_some_and(|failed| *failed > 0.0);
    Line {
        label,
        now: words(values.last().copied().unwrap_or_default()),
        most: words(most),
        path: path(values, most),
        failed: failed.filter(|failed| failed.iter().any(|value| *value > 0.0)).map(|failed| path(failed, most)),
        is_bad: failing,
    }
}

fn lines(figures: &NodeFigures) -> Vec<Line> {
    // Counts of two seconds are far below what a float holds exactly.
    #[allow(clippy::cast_precision_loss)]
    let rate = |counts: &[u64]| {
        counts.iter().map(|count| *count as f64 / figures.interval_s.max(1) as f64).collect::<Vec<_>>()
    };
    let failed = rate(&figures.webhooks_failed);
    vec![
        line("inits", &rate(&figures.inits), "a second", None),
        line("callbacks", &rate(&figures.callbacks), "a second", None),
        line("webhooks", &rate(&figures.webhooks), "a second", Some(&failed)),
        line("p99", &figures.p99_ms, "ms", None),
        line("processor", &figures.cpu_percent, "% of a core", None),
    ]
}

/// A node of the installation.
struct NodeRow {
    state: NodeState,
    started_at: Option<When>,
    root: Option<Branch>,
    wrong: u64,
    lines: Vec<Line>,
}

impl NodeRow {
    fn of(mut state: NodeState, is_shared: bool) -> Self {
        let root = state.tree.take().map(|tree| Branch::of(tree, &state, is_shared));
        Self {
            started_at: state.started_at.map(When::second),
            wrong: root.as_ref().map_or(0, Branch::wrong),
            root,
            lines: state.figures.as_ref().map(lines).unwrap_or_default(),
            state,
        }
    }

    /// Returns the beginning of its id, which tells it from others; the only node of an embedded store has none.
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

/// The nodes, side by side: the part of the page that is renewed.
#[derive(Template)]
#[template(path = "nodes.html")]
struct Nodes {
    nodes: Vec<NodeRow>,
}

impl HtmlSafe for Nodes {}

impl Nodes {
    fn of(response: NodesResponse, is_shared: bool) -> Self {
        Self { nodes: response.nodes.into_iter().map(|state| NodeRow::of(state, is_shared)).collect() }
    }

    fn wrong(&self) -> u64 {
        self.nodes.iter().map(|node| node.wrong).sum()
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
/// Nobody has signed in, or the store is unavailable.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    let nodes = Nodes::of(staff.api.nodes().await, staff.api.store.is_shared());
    let layout = Layout::of(&staff.request, Some(Section::Tree));
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
/// Nobody has signed in, or there are too many readers.
pub(crate) async fn live(staff: StreamStaff) -> Result<HttpResponse, ConsoleError> {
    let StreamStaff(staff) = staff;
    if staff.request.method() == Method::HEAD {
        return Ok(private(StatusCode::OK).content_type("text/event-stream").finish());
    }
    let place = staff.console.streams.enter(&staff.session.digest).ok_or(ServiceError::Overloaded)?;
    let is_shared = staff.api.store.is_shared();
    let mut shown = State { html: drawn(&staff, is_shared).await };
    let (first, drain) = (Next::State(shown.clone()), staff.console.drain.clone());
    Ok(stream_response(&drain, place, &first, async move || {
        let repeat = Instant::now() + STATE_INTERVAL;
        loop {
            sleep(LOOK).await;
            if !staff.is_still_valid().await {
                return Next::End;
            }
            let state = State { html: drawn(&staff, is_shared).await };
            if state != shown || Instant::now() >= repeat {
                shown = state.clone();
                return Next::State(state);
            }
        }
    }))
}

async fn drawn(staff: &Staff, is_shared: bool) -> String {
    Nodes::of(staff.api.nodes().await, is_shared).render().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, state: &str, restarts: u64, children: Vec<TreeNode>) -> TreeNode {
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

    fn branch(node: TreeNode, is_shared: bool) -> Branch {
        let seen: NodeState = serde_json::from_value(serde_json::json!({"node": "n", "is_this": true, "version": null,
            "started_at": null,
            "seen_at": "2026-01-15T10:00:00.000Z", "state": "live", "live_transactions": null, "live_events": null,
            "tree": null,
            "receivers": [], "receivers_total": 0, "figures": null}))
        .unwrap();
        Branch::of(node, &seen, is_shared)
    }

    #[test]
    fn what_is_down_or_was_restarted_is_wrong_and_what_is_not_needed_is_not() {
        let tree = || {
            node(
                "root",
                "running",
                0,
                vec![node("reaper", "running", 2, vec![]), node("change_listener", "down", 0, vec![])],
            )
        };
        let embedded = branch(tree(), false);
        assert_eq!((embedded.wrong(), embedded.children[1].state()), (1, "not needed with the embedded store"));
        assert_eq!(branch(tree(), true).wrong(), 2);
        let drawn = embedded.to_string();
        assert_eq!((drawn.matches("class=\"wrong\"").count(), drawn.contains("2 h")), (1, true), "{drawn}");
    }

    #[test]
    fn a_line_ends_at_the_right_and_its_highest_value_reaches_the_top() {
        let drawn = line("inits", &[0.0, 5.0, 10.0], "a second", None);
        assert_eq!((&*drawn.path, &*drawn.now), ("M115.9 23.0L118.0 12.0L120.0 1.0", "10 a second"));
        assert!(drawn.failed.is_none() && line("x", &[], "", None).path.is_empty());
        let failing = line("webhooks", &[2.0], "a second", Some(&[1.5]));
        assert!(failing.is_bad && failing.failed.is_some());
    }
}
