//! One picture of `top`: problems first, then the nodes side by side as far as the width allows.

use sakshi_domain::time::Timestamp;
use sakshi_web::when::format_span;
use sakshi_wire::operator::nodes::{NodeFigures, NodeState, NodesResponse, ReceiverQueue};
use sakshi_wire::operator::views::TreeNode;

use crate::cli::style::{Line, Tone};
use crate::cli::tree;

/// Minimum width of a node.
const NODE_WIDTH: usize = 64;
/// Spaces between two nodes.
const GAP: usize = 3;
/// Characters shown of a node's id; ids are random.
const ID_SHOWN: usize = 8;
/// Age in seconds from which a pending webhook is reported.
const LONG_WAIT_S: u64 = 60;
/// Width of the name of a curve, with its spaces.
const NAME_WIDTH: usize = 12;
/// Width reserved for the latest value of a curve.
const LATEST_WIDTH: usize = 14;
/// Maximum width of a curve: a node keeps this many samples.
const CURVE_WIDTH_MAX: usize = 60;
/// Width of the columns beside the name of a receiver.
const QUEUE_COLUMNS_WIDTH: usize = 32;
/// Minimum width of the name of a receiver.
const ORIGIN_WIDTH_MIN: usize = 16;
/// Bars from the smallest to the largest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the lines of a picture of this width; the first contains the hint.
pub(super) fn picture(answer: &NodesResponse, width: usize, hint: &str) -> Vec<Line> {
    let NodesResponse { now, nodes } = answer;
    let count = |state: &str| nodes.iter().filter(|node| node.state == state).count();
    let states = ["live", "draining", "silent"].map(|state| (count(state), state));
    let states: Vec<_> =
        states.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}")).collect();
    let plural = if nodes.len() == 1 { "node" } else { "nodes" };
    let mut lines = vec![
        Line::new(Tone::Bold, format!("{} {plural}", nodes.len()))
            .and(Tone::Plain, format!(": {}", states.join(", ")))
            .and(Tone::Dim, format!("   {now}   {hint}")),
        Line::default(),
    ];
    let problems: Vec<Line> = nodes.iter().flat_map(|node| problems(node, *now)).collect();
    lines.extend(if problems.is_empty() { vec![Line::new(Tone::Good, "everything runs")] } else { problems });
    let nodes_per_row = ((width + GAP) / (NODE_WIDTH + GAP)).clamp(1, nodes.len().max(1));
    let column_width = ((width + GAP) / nodes_per_row).saturating_sub(GAP);
    for nodes in nodes.chunks(nodes_per_row) {
        lines.push(Line::default());
        lines.extend(side_by_side(
            &nodes.iter().map(|node| node_block(node, *now, column_width)).collect::<Vec<_>>(),
            column_width,
        ));
    }
    lines
}

/// Returns the problems that an operator should look at.
fn problems(node: &NodeState, now: Timestamp) -> Vec<Line> {
    let id = short_id(&node.node);
    let mut problems = Vec::new();
    if node.state != "live" {
        let tone = if node.state == "silent" { Tone::Bad } else { Tone::Warn };
        problems.push(Line::new(
            tone,
            format!("node {id} is {}; its last heartbeat was {} ago", node.state, age(node.seen_at, now)),
        ));
    }
    let mut actors: Vec<&TreeNode> = node.tree.iter().collect();
    while let Some(actor) = actors.pop() {
        if let Some((tone, word)) = tree::trouble(actor) {
            let panic = actor
                .last_panic
                .as_ref()
                .map(|panic| format!(": {}", tree::describe_panic(panic, now)))
                .unwrap_or_default();
            problems.push(Line::new(tone, format!("{} on node {id} {}{panic}", actor.name, phrase(&word))));
        }
        actors.extend(actor.children.iter().rev());
    }
    for receiver in
        node.receivers.iter().filter(|receiver| receiver.oldest_s.is_some_and(|oldest| oldest >= LONG_WAIT_S))
    {
        let ReceiverQueue { origin, waiting, oldest_s, .. } = receiver;
        let webhooks = if *waiting == 1 { "1 webhook waits".to_owned() } else { format!("{waiting} webhooks wait") };
        problems.push(Line::new(
            Tone::Warn,
            format!("{webhooks} for {origin} on node {id}, for {}", format_span(oldest_s.unwrap_or(0))),
        ));
    }
    problems
}

/// Returns the predicate of a sentence about an actor in this state.
fn phrase(word: &str) -> String {
    match word {
        "restarted" => "has restarted".to_owned(),
        "given up" => "was given up".to_owned(),
        other => format!("is {other}"),
    }
}

/// Returns a node's figures, actors and receivers with pending webhooks.
fn node_block(node: &NodeState, now: Timestamp, width: usize) -> Vec<Line> {
    let tone = match &*node.state {
        "live" => Tone::Good,
        "silent" => Tone::Bad,
        _ => Tone::Warn,
    };
    let title = format!("node {}", short_id(&node.node));
    let answers = if node.is_this { ", answers" } else { "" };
    let version = node.version.as_deref().map(|version| format!("   {version}")).unwrap_or_default();
    let mut lines = vec![
        Line::new(Tone::Bold, title)
            .and(Tone::Plain, "  ")
            .and(tone, &*node.state)
            .and(Tone::Dim, format!("{answers}{version}")),
    ];
    let (Some(root), Some(started_at)) = (&node.tree, node.started_at) else {
        lines.push(Line::new(Tone::Dim, "has not published a snapshot yet"));
        return lines;
    };
    let (transactions, events) = (node.live_transactions.unwrap_or(0), node.live_events.unwrap_or(0));
    lines.push(Line::new(
        Tone::Plain,
        format!("up {}, {transactions} live transactions, {events} live events", age(started_at, now)),
    ));
    if let Some(figures) = &node.figures {
        lines.extend(curves(figures, width));
    }
    lines.push(Line::default());
    lines.extend(tree::lines(root, now));
    lines.extend(queues(&node.receivers, node.receivers_total, width));
    lines
}

/// Returns a small curve for each figure, with its latest value.
fn curves(figures: &NodeFigures, width: usize) -> Vec<Line> {
    let seconds = figures.interval_s.max(1);
    let rate = |series: &[u64]| {
        let latest = series.last().copied().unwrap_or(0);
        format!("{}.{} /s", latest / seconds, latest % seconds * 10 / seconds)
    };
    // Counts of two seconds are far below 53 bits.
    #[allow(clippy::cast_precision_loss)]
    let decimal = |series: &[u64]| series.iter().map(|count| *count as f64).collect::<Vec<_>>();
    let failed: u64 = figures.webhooks_failed.iter().sum();
    let failures = if failed > 0 { format!(", {failed} failed in the time shown") } else { String::new() };
    let latest = |series: &[f64]| series.last().copied().unwrap_or(0.0);
    let curve_width = width.saturating_sub(NAME_WIDTH + LATEST_WIDTH).min(CURVE_WIDTH_MAX);
    let curve = |name: &str, series: &[f64], latest: String| {
        Line::new(Tone::Plain, format!("{name:<10}  "))
            .and(Tone::Plain, sparkline(series, curve_width))
            .and(Tone::Plain, format!("  {latest}"))
    };
    vec![
        curve("inits", &decimal(&figures.inits), rate(&figures.inits)),
        curve("callbacks", &decimal(&figures.callbacks), rate(&figures.callbacks)),
        curve("webhooks", &decimal(&figures.webhooks), rate(&figures.webhooks)).and(Tone::Bad, failures),
        curve("p99", &figures.p99_ms, format!("{} ms", latest(&figures.p99_ms))),
        curve("processor", &figures.cpu_percent, format!("{} %", latest(&figures.cpu_percent).round())),
    ]
}

/// Draws the latest values as bars, the newest last; the largest value fills its bar.
fn sparkline(series: &[f64], width: usize) -> String {
    let shown = &series[series.len().saturating_sub(width)..];
    let max = shown.iter().copied().fold(0.0, f64::max);
    // The share of the largest value, from 0 to 7.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bar = |value: &f64| if max > 0.0 { BARS[((value / max * 7.0).round() as usize).min(7)] } else { BARS[0] };
    let bars: String = shown.iter().map(bar).collect();
    format!("{}{bars}", " ".repeat(width - shown.len()))
}

/// Returns the receivers with pending webhooks.
fn queues(receivers: &[ReceiverQueue], total: u64, width: usize) -> Vec<Line> {
    if receivers.is_empty() {
        return vec![Line::default(), Line::new(Tone::Dim, "no webhook waits")];
    }
    let origin_width = width.saturating_sub(QUEUE_COLUMNS_WIDTH).max(ORIGIN_WIDTH_MIN);
    let mut lines = vec![
        Line::default(),
        Line::new(Tone::Dim, format!("{:origin_width$}{:>9}{:>11}  {}", "RECEIVER", "WAITING", "IN FLIGHT", "OLDEST")),
    ];
    lines.extend(receivers.iter().map(|receiver| {
        let ReceiverQueue { origin, waiting, in_flight, oldest_s, .. } = receiver;
        let is_late = oldest_s.is_some_and(|oldest| oldest >= LONG_WAIT_S);
        let columns = format!("{waiting:>9}{in_flight:>11}  {}", oldest_s.map_or_else(|| "-".to_owned(), format_span));
        Line::new(Tone::Plain, origin)
            .cut(origin_width)
            .pad(origin_width)
            .and(if is_late { Tone::Warn } else { Tone::Plain }, columns)
    }));
    let more = total.saturating_sub(receivers.len() as u64);
    if more > 0 {
        lines.push(Line::new(Tone::Dim, format!("and {more} more")));
    }
    lines
}

/// Places blocks of this width beside each other.
fn side_by_side(blocks: &[Vec<Line>], width: usize) -> Vec<Line> {
    let height = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let row = |index: usize| {
        let cells = blocks.iter().map(|block| block.get(index).cloned().unwrap_or_default().cut(width).pad(width));
        cells.reduce(|row, cell| row.and(Tone::Plain, " ".repeat(GAP)).join(cell)).unwrap_or_default()
    };
    (0..height).map(row).collect()
}

fn age(since: Timestamp, now: Timestamp) -> String {
    format_span(now.since(since).as_secs())
}

fn short_id(id: &str) -> &str {
    id.get(..ID_SHOWN).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::style::Capabilities;
    use crate::cli::tree::tests::{node, panicked};

    const NOW: Timestamp = Timestamp::from_millis(8_000);

    /// Returns a live node whose id repeats this text.
    fn state(id: &str) -> NodeState {
        let figures = NodeFigures {
            interval_s: 2,
            inits: vec![0, 7, 14],
            callbacks: vec![0, 0, 3],
            webhooks: vec![1, 1, 1],
            webhooks_failed: vec![0, 0, 0],
            p99_ms: vec![0.0, 0.0, 2.5],
            cpu_percent: vec![10.0, 20.0, 40.4],
        };
        NodeState {
            node: id.repeat(8),
            is_this: id == "5f0c",
            version: Some("0.1.0 (abc)".into()),
            started_at: Some(Timestamp::from_millis(1_000)),
            seen_at: Timestamp::from_millis(4_000),
            state: "live".into(),
            live_transactions: Some(12),
            live_events: Some(1),
            tree: Some(node("root", "root", vec![node("reaper", "reaper", vec![])])),
            receivers: vec![],
            receivers_total: 0,
            figures: Some(figures),
        }
    }

    fn drawn(nodes: Vec<NodeState>, width: usize) -> Vec<String> {
        picture(&NodesResponse { now: NOW, nodes }, width, "q ends")
            .iter()
            .map(|line| line.render(Capabilities::default()))
            .collect()
    }

    #[test]
    fn a_node_is_drawn_with_curves_actors_and_receivers() {
        let receiver = |origin: &str, oldest_s| ReceiverQueue {
            origin: origin.into(),
            client_id: "cl_1".parse().unwrap(),
            waiting: 12,
            in_flight: 2,
            oldest_s,
        };
        let receivers = vec![
            receiver("https://client.example", Some(4)),
            receiver(&format!("https://{}.example", "x".repeat(60)), None),
        ];
        let lines = drawn(vec![NodeState { receivers, receivers_total: 5, ..state("5f0c") }], 70);
        for line in [
            "1 node: 1 live   1970-01-01T00:00:08.000Z   q ends",
            "everything runs",
            "node 5f0c5f0c  live, answers   0.1.0 (abc)",
            "up 7 s, 12 live transactions, 1 live events",
            "inits                                                ▁▅█  7.0 /s",
            "callbacks                                            ▁▁█  1.5 /s",
            "p99                                                  ▁▁█  2.5 ms",
            "processor                                            ▃▄█  40 %",
            "└─ reaper  running        1         0        0  2 h",
            "https://client.example                       12          2  4 s",
            "and 3 more",
        ] {
            assert!(lines.iter().any(|drawn| drawn == line), "{line:?} in {lines:#?}");
        }
        assert!(lines.iter().all(|line| line.chars().count() <= 70), "{lines:#?}");
    }

    #[test]
    fn nodes_are_drawn_side_by_side_if_the_width_allows() {
        let both = || vec![state("5f0c"), state("9e3a")];
        let is_row = |line: &&String| line.contains("node 5f0c5f0c") && line.contains("node 9e3a9e3a");
        assert!(drawn(both(), 140).iter().any(|line| is_row(&line)));
        let narrow = drawn(both(), 100);
        assert!(
            !narrow.iter().any(|line| is_row(&line))
                && narrow.iter().filter(|line| line.starts_with("node ")).count() == 2
        );
        assert!(drawn(both(), 140).iter().all(|line| line.chars().count() <= 140));
    }

    #[test]
    fn problems_come_first_with_their_place_and_request() {
        let failed = panicked(node("credit-ledger", "credit_ledger", vec![]), Some("order-7"));
        let silent =
            NodeState { state: "silent".into(), tree: Some(node("root", "root", vec![failed])), ..state("9e3a") };
        let late = ReceiverQueue {
            origin: "https://slow.example".into(),
            client_id: "cl_1".parse().unwrap(),
            waiting: 40,
            in_flight: 1,
            oldest_s: Some(130),
        };
        let lines = drawn(vec![state("5f0c"), NodeState { receivers: vec![late], receivers_total: 1, ..silent }], 120);
        assert_eq!(
            lines[2..5],
            [
                "node 9e3a9e3a is silent; its last heartbeat was 4 s ago",
                "credit-ledger on node 9e3a9e3a has restarted: panicked 2 times at actors/src/ledger.rs:70, request \
                    order-7, 5 s ago",
                "40 webhooks wait for https://slow.example on node 9e3a9e3a, for 2 min",
            ]
        );
        let unpublished = NodeState { tree: None, started_at: None, figures: None, version: None, ..state("9e3a") };
        assert!(drawn(vec![unpublished], 80).iter().any(|line| line == "has not published a snapshot yet"));
    }

    #[test]
    fn a_curve_is_aligned_right_and_scaled_to_its_largest_value() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0], 5), "  ▁▅█");
        assert_eq!(sparkline(&[9.0, 0.0, 0.0], 2), "▁▁", "only visible values count");
        assert_eq!(sparkline(&[], 3), "   ");
    }
}
