//! The supervision tree for people: aligned columns, with problems in colour and in words.

use std::borrow::Cow;

use sakshi_domain::time::Timestamp;
use sakshi_web::when::format_span;
use sakshi_wire::operator::views::{LastPanic, TreeNode};

use super::style::{Line, Tone};

/// Kind of the actor that is not needed with an embedded store.
const CHANGE_LISTENER: &str = "change_listener";

/// Returns one line for each node of the tree, and one more below each that has panicked.
pub(super) fn lines(root: &TreeNode, now: Timestamp) -> Vec<Line> {
    let mut rows = Vec::new();
    collect_rows(root, "", "", &mut rows);
    let width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).max("ACTOR".len());
    let header =
        format!("{:width$}  {:<10}{:>6}{:>10}{:>9}  {}", "ACTOR", "STATE", "LIVE", "RESTARTS", "MAILBOX", "AGE");
    let mut lines = vec![Line::new(Tone::Dim, header)];
    for Row { label, indentation, node } in rows {
        lines.push(row(&format!("{label:width$}"), node));
        if let Some(panic) = &node.last_panic {
            lines.push(
                Line::new(Tone::Plain, indentation)
                    .and(trouble(node).map_or(Tone::Warn, |(tone, _)| tone), describe_panic(panic, now)),
            );
        }
    }
    lines
}

/// Returns the tone and the words for an unhealthy node.
pub(super) fn trouble(node: &TreeNode) -> Option<(Tone, Cow<'static, str>)> {
    match node.last_exit.as_deref() {
        _ if is_unneeded(node) => None,
        Some("given_up") => Some((Tone::Bad, "given up".into())),
        _ if node.state != "running" => Some((Tone::Bad, node.state.clone())),
        _ if node.restarts > 0 => Some((Tone::Warn, "restarted".into())),
        _ => None,
    }
}

/// Describes the last panic.
pub(super) fn describe_panic(panic: &LastPanic, now: Timestamp) -> String {
    let LastPanic { at, place, request_id, count } = panic;
    let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
    let request = request_id.as_ref().map(|id| format!(", request {id}")).unwrap_or_default();
    format!("panicked {times} at {place}{request}, {} ago", format_span(now.since(*at).as_secs()))
}

/// Returns true for the change listener on an embedded store: there are no changes of other nodes, so it has ended.
fn is_unneeded(node: &TreeNode) -> bool {
    node.kind == CHANGE_LISTENER && node.state == "down" && node.last_exit.is_none()
}

/// The row of an actor.
struct Row<'a> {
    /// The name, with the branches of the tree before it.
    label: String,
    /// Indentation of a line below this row.
    indentation: String,
    node: &'a TreeNode,
}

/// Collects the rows of a node and its descendants. `lead` is drawn before the node, `bars` before its children.
fn collect_rows<'a>(node: &'a TreeNode, lead: &str, bars: &str, rows: &mut Vec<Row<'a>>) {
    let branch = if node.children.is_empty() { "     " } else { "│    " };
    rows.push(Row { label: format!("{lead}{}", node.name), indentation: format!("{bars}{branch}"), node });
    for (index, child) in node.children.iter().enumerate() {
        let (tip, bar) = if index + 1 == node.children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        collect_rows(child, &format!("{bars}{tip}"), &format!("{bars}{bar}"), rows);
    }
}

/// Formats the columns of an actor, its problems in colour.
fn row(label: &str, node: &TreeNode) -> Line {
    if is_unneeded(node) {
        return Line::new(Tone::Dim, format!("{label}  not needed (embedded store)"));
    }
    let (tone, state) = trouble(node).unwrap_or_else(|| (Tone::Plain, node.state.clone()));
    let tone_if = |condition: bool, tone: Tone| if condition { tone } else { Tone::Plain };
    let label_tone = if node.mailbox > 0 && tone == Tone::Plain { Tone::Bold } else { tone };
    let age = node.age_s.map_or_else(|| "-".to_owned(), format_span);
    Line::new(label_tone, label)
        .and(tone, format!("  {state:<10}"))
        .and(Tone::Plain, format!("{:>6}", node.live))
        .and(tone_if(node.restarts > 0, tone), format!("{:>10}", node.restarts))
        .and(tone_if(node.mailbox > 0, Tone::Bold), format!("{:>9}", node.mailbox))
        .and(Tone::Plain, format!("  {age}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::style::Capabilities;
    use super::*;

    /// Builds a node that has run for two hours.
    pub(crate) fn node(name: &str, kind: &'static str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            name: name.into(),
            kind: kind.into(),
            state: "running".into(),
            live: 1,
            restarts: 0,
            last_exit: None,
            last_panic: None,
            age_s: Some(7_200),
            mailbox: 0,
            children,
        }
    }

    /// Builds a node that panicked at three seconds.
    pub(crate) fn panicked(node: TreeNode, request_id: Option<&str>) -> TreeNode {
        let request_id = request_id.map(str::to_owned);
        let last_panic = LastPanic {
            at: Timestamp::from_millis(3_000),
            place: "actors/src/ledger.rs:70".into(),
            request_id,
            count: 2,
        };
        TreeNode {
            restarts: 2,
            last_exit: Some("panicked".into()),
            last_panic: Some(last_panic),
            age_s: Some(5),
            ..node
        }
    }

    /// Renders the tree, five seconds after the panic of [`panicked`].
    fn drawn(root: &TreeNode, capabilities: Capabilities) -> Vec<String> {
        lines(root, Timestamp::from_millis(8_000)).iter().map(|line| line.render(capabilities)).collect()
    }

    #[test]
    fn columns_are_aligned_and_a_panic_shows_its_place_and_request() {
        let listener =
            TreeNode { state: "down".into(), live: 0, age_s: None, ..node("change-listener", CHANGE_LISTENER, vec![]) };
        let ledger = panicked(node("credit-ledger", "credit_ledger", vec![]), Some("order-7"));
        let root =
            node("root", "root", vec![ledger, TreeNode { mailbox: 12, ..node("reaper", "reaper", vec![]) }, listener]);
        assert_eq!(
            drawn(&root, Capabilities::default()),
            [
                "ACTOR               STATE       LIVE  RESTARTS  MAILBOX  AGE",
                "root                running        1         0        0  2 h",
                "├─ credit-ledger    restarted      1         2        0  5 s",
                "│       panicked 2 times at actors/src/ledger.rs:70, request order-7, 5 s ago",
                "├─ reaper           running        1         0       12  2 h",
                "└─ change-listener  not needed (embedded store)",
            ]
        );
    }

    #[test]
    fn a_failed_actor_is_red_and_an_actor_with_messages_is_bold() {
        let capabilities = Capabilities { has_colour: true, ..Capabilities::default() };
        let down = |last_exit: Option<&'static str>| TreeNode {
            state: "down".into(),
            last_exit: last_exit.map(Into::into),
            ..node("reaper", "reaper", vec![])
        };
        for (root, tone, words) in [
            (down(None), Tone::Bad, "down"),
            (down(Some("given_up")), Tone::Bad, "given up"),
            (panicked(node("reaper", "reaper", vec![]), None), Tone::Warn, "restarted"),
        ] {
            let line = &drawn(&root, capabilities)[1];
            assert!(line.starts_with(&capabilities.paint(tone, "reaper")) && line.contains(words), "{line}");
        }
        let waiting = TreeNode { mailbox: 3, ..node("reaper", "reaper", vec![]) };
        assert!(drawn(&waiting, capabilities)[1].starts_with(&capabilities.paint(Tone::Bold, "reaper")));
        assert!(drawn(&node("reaper", "reaper", vec![]), capabilities)[1].starts_with("reaper"));
    }
}
