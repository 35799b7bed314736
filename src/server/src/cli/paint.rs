//! JSON answers as people read them: pairs, tables, and the tree.
//!
//! Names that operators chose are shown without control characters, so that none can move the
//! terminal's cursor.

use std::io::{self, Write};

use sakshi_domain::unseen::is_unseen;
use serde_json::{Map, Value};

/// One `name: value` a line.
pub(super) fn pairs(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    let Some(object) = value.as_object() else { return writeln!(out, "{}", cell(value)) };
    let width = object.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in object {
        writeln!(out, "{name:width$}  {}", cell(value))?;
    }
    Ok(())
}

/// Rows under their columns; a sentence when there are none.
pub(crate) fn table(rows: &[Value], columns: &[&str], out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "none");
    }
    let lines: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|column| cell(row.get(column).unwrap_or(&Value::Null))).collect()).collect();
    let width = |index: usize| {
        let cells = lines.iter().filter_map(|line| line.get(index)).map(|text| text.chars().count());
        cells.max().unwrap_or(0).max(columns[index].len())
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let header: Vec<String> = columns.iter().map(|column| column.to_uppercase()).collect();
    for line in std::iter::once(&header).chain(&lines) {
        let padded: Vec<String> = line.iter().zip(&widths).map(|(text, width)| format!("{text:width$}")).collect();
        writeln!(out, "{}", padded.join("  ").trim_end())?;
    }
    Ok(())
}

/// The supervision tree with its counts.
pub(super) fn tree(node: &Value, out: &mut dyn Write) -> io::Result<()> {
    branch(node, "", "", out)
}

fn branch(node: &Value, lead: &str, below: &str, out: &mut dyn Write) -> io::Result<()> {
    let text = |name: &str| node.get(name).map(cell).filter(|text| text != "-");
    write!(out, "{lead}{}", text("name").unwrap_or_default())?;
    if let Some(state) = text("state") {
        write!(out, "  {state}")?;
    }
    for name in ["live", "restarts", "mailbox", "last_exit"] {
        if let Some(value) = text(name) {
            write!(out, "  {name}={value}")?;
        }
    }
    writeln!(out)?;
    let children = node.get("children").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, child) in children.iter().enumerate() {
        let (tip, bar) = if index + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        branch(child, &format!("{below}{tip}"), &format!("{below}{bar}"), out)?;
    }
    Ok(())
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.chars().map(|c| if is_unseen(c) { '\u{fffd}' } else { c }).collect(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(","),
        Value::Object(object) => inline(object),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn inline(object: &Map<String, Value>) -> String {
    object.iter().map(|(name, value)| format!("{name}={}", cell(value))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn painted(paint: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        paint(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_tree_is_drawn_with_its_counts() {
        let node = json!({"name": "root", "state": "running", "children": [
            {"name": "ledger", "restarts": 1, "last_exit": "panicked", "children": []},
            {"name": "registry", "live": 12, "children": [{"name": "shard 0", "live": 12}]}]});
        let drawn = "root  running\n├─ ledger  restarts=1  last_exit=panicked\n└─ registry  live=12\n   └─ shard 0  live=12\n";
        assert_eq!(painted(|out| tree(&node, out)), drawn);
    }

    #[test]
    fn a_table_lines_up_and_hides_control_characters() {
        let rows = [json!({"id": "a", "name": "x\u{1b}[2J"}), json!({"id": "abc", "name": null})];
        assert_eq!(painted(|out| table(&rows, &["id", "name"], out)), "ID   NAME\na    x\u{fffd}[2J\nabc  -\n");
        assert_eq!(painted(|out| table(&[], &["id"], out)), "none\n");
    }
}
