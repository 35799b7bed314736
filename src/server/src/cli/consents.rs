//! `sakshi admin consents`: a client's register of consents, for people or as a file for an auditor. Entries are
//! written as they are read, so a large register needs little memory.

use clap::{Args, ValueEnum};
use sakshi_client::internal;
use sakshi_domain::limits::PAGE_SIZE_MAX;
use sakshi_wire::csv::{BYTE_ORDER_MARK, quote_cell};
use sakshi_wire::operator::consents::ConsentEntry;
use serde_json::{Value, json};

use super::api::Api;
use super::error::CliError;
use super::paint;
use super::style::Out;

/// Columns of the table.
const COLUMNS: &[&str] = &["kind", "id", "app_id", "asked", "purpose", "opened_at", "answered_at", "answer", "code"];
/// Columns of the CSV file: all fields of an entry.
const FIELDS: &[&str] = &[
    "kind",
    "id",
    "client_id",
    "app_id",
    "event_id",
    "purpose",
    "asked",
    "language",
    "consent_text_sha256",
    "release",
    "opened_at",
    "answered_at",
    "answer",
    "code",
];

/// Options of `admin consents`.
#[derive(Args, Debug)]
pub(super) struct Consents {
    /// Id of the client that asked the people.
    client_id: String,
    /// Only people asked at this time or later, ISO 8601 with an offset.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only people asked before this time.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns for people.
    Table,
    /// CSV for a spreadsheet.
    Csv,
    /// One JSON object per line; also the format with --json.
    Jsonl,
}

impl Consents {
    /// Reads the whole register and writes it.
    pub(super) async fn export(&self, api: &Api, is_json: bool, out: &mut dyn Out) -> Result<(), CliError> {
        let format = if is_json { Format::Jsonl } else { self.format };
        if format == Format::Csv {
            write!(out, "{BYTE_ORDER_MARK}{}\r\n", FIELDS.join(","))?;
        }
        let mut call = internal::consents(&self.client_id, self.from.as_deref(), self.to.as_deref(), PAGE_SIZE_MAX);
        let mut rows = Vec::new();
        loop {
            let page = api.send(call).await?;
            for entry in &page.consents {
                match format {
                    Format::Table => rows.push(json!(entry)),
                    Format::Csv => write!(out, "{}\r\n", csv_line(entry))?,
                    Format::Jsonl => writeln!(out, "{}", json!(entry))?,
                }
            }
            match page.next {
                Some(next) => call = internal::more_consents(next),
                None => break,
            }
        }
        if format == Format::Table {
            paint::table(&rows, COLUMNS, out)?;
        }
        Ok(())
    }
}

/// Formats an entry as a line of CSV. A list is one cell, separated by spaces.
fn csv_line(entry: &ConsentEntry) -> String {
    let entry = json!(entry);
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    FIELDS.iter().map(|field| quote_cell(&text(&entry[*field]))).collect::<Vec<_>>().join(",")
}
