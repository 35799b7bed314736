//! Formats JSON responses as pairs and tables. Control characters in names are replaced, since they could move the
//! cursor.

use std::io::{self, Write};

use sakshi_domain::unseen::is_unseen;
use serde_json::{Map, Value};

use super::style::{Line, Out, Tone, write_lines};

/// Spaces between two columns.
const GAP: usize = 2;
/// Width below which a column is not narrowed further.
const COLUMN_WIDTH_MIN: usize = 12;

/// Writes one `name: value` per line.
pub(super) fn pairs(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    let Some(object) = value.as_object() else { return writeln!(out, "{}", cell(value)) };
    let width = object.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in object {
        writeln!(out, "{name:width$}  {}", cell(value))?;
    }
    Ok(())
}

/// Writes rows under their columns, or `none`. On a narrow terminal the widest columns are cut.
pub(crate) fn table(rows: &[Value], columns: &[&str], out: &mut dyn Out) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "none");
    }
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| columns.iter().map(|column| cell(row.get(column).unwrap_or(&Value::Null))).collect())
        .collect();
    let width = |index: usize| {
        let cells = lines.iter().filter_map(|line| line.get(index)).map(|text| text.chars().count());
        cells.max().unwrap_or(0).max(columns[index].len())
    };
    let widths = fit_widths((0..columns.len()).map(width).collect(), out.capabilities().width());
    let header: Vec<String> = columns.iter().map(|column| column.to_uppercase()).collect();
    let lines = std::iter::once((Tone::Dim, &header)).chain(lines.iter().map(|line| (Tone::Plain, line)));
    let table = lines.map(|(tone, cells)| {
        let cells = cells.iter().zip(&widths).map(|(text, width)| Line::new(tone, text).cut(*width).pad(*width));
        cells.reduce(|line, cell| line.and(Tone::Plain, " ".repeat(GAP)).join(cell)).unwrap_or_default()
    });
    write_lines(table.collect::<Vec<_>>(), out)
}

/// Narrows the widest columns until a row fits, or none is wider than [`COLUMN_WIDTH_MIN`].
fn fit_widths(mut widths: Vec<usize>, row_width_max: Option<usize>) -> Vec<usize> {
    let Some(row_width_max) = row_width_max else { return widths };
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    while total(&widths) > row_width_max {
        let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > COLUMN_WIDTH_MIN) else { break };
        *widest -= 1;
    }
    widths
}

/// Formats a value in one line.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.chars().map(|c| if is_unseen(c) { '\u{fffd}' } else { c }).collect(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(","),
        Value::Object(object) => inline(object),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Formats the members of an object in one line.
fn inline(object: &Map<String, Value>) -> String {
    object.iter().map(|(name, value)| format!("{name}={}", cell(value))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::style::tests::Screen;
    use super::*;

    fn plain_table(rows: &[Value], columns: &[&str]) -> String {
        let mut out = Vec::new();
        table(rows, columns, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_table_is_cut_at_the_width_of_a_terminal_but_not_in_a_pipe() {
        let rows = [json!({"id": "ev_1", "name": "n".repeat(120), "status": "active"})];
        let columns = ["id", "name", "status"];
        let mut screen = Screen { output: Vec::new(), width: 40 };
        table(&rows, &columns, &mut screen).unwrap();
        let output = String::from_utf8(screen.output).unwrap();
        let row = output.lines().nth(1).unwrap().replace("\u{1b}[2m", "").replace("\u{1b}[0m", "");
        assert_eq!(row, format!("ev_1  {}…  active", "n".repeat(25)));
        assert!(plain_table(&rows, &columns).contains(&"n".repeat(120)));
        let narrow = fit_widths(vec![30, 13, 12], Some(20));
        assert_eq!(narrow, [12, 12, 12], "no column disappears");
    }

    #[test]
    fn a_table_is_aligned_and_hides_control_characters() {
        let rows = [json!({"id": "a", "name": "x\u{1b}[2J"}), json!({"id": "abc", "name": null})];
        assert_eq!(plain_table(&rows, &["id", "name"]), "ID   NAME\na    x\u{fffd}[2J\nabc  -\n");
        assert_eq!(plain_table(&[], &["id"]), "none\n");
    }
}
