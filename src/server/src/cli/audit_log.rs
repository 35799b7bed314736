//! `sakshi admin audit-log`: changes by operators, and their integrity. The hash chain reveals changed, moved and
//! missing entries. A head saved elsewhere also reveals a cut-off end, or a chain forged with the store's keys.

use std::io;

use clap::Args;
use sakshi_client::internal;
use sakshi_domain::limits::PAGE_SIZE_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_store::{AuditHash, AuditHead, AuditRecord};
use sakshi_wire::ISO_8601;
use sakshi_wire::operator::audit_log::{AuditLogEntry, AuditLogHead};
use serde_json::{Value, json};

use super::api::Api;
use super::error::CliError;
use super::paint;
use super::style::Out;

/// Columns of an entry.
const ENTRY: &[&str] = &["number", "at", "operator", "operation", "stage", "status", "ids", "from", "count"];

/// Options of `admin audit-log`.
#[derive(Args, Debug)]
pub(super) struct AuditLog {
    /// Show entries from this time on, ISO 8601 with an offset.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Read the whole log and check that every entry follows from the previous entry; exit code 1 if one does not.
    #[arg(long)]
    verify: bool,
    /// With --verify: the head that an earlier call printed. The log must still contain its entry.
    #[arg(long, value_name = "NUMBER:HASH", requires = "verify", value_parser = parse_head)]
    head: Option<AuditHead>,
}

/// Parses the head of a log: the number of its last entry, a colon, and the hash.
fn parse_head(text: &str) -> Result<AuditHead, String> {
    let (number, hash) = text.split_once(':').ok_or("a head is a number, a colon and a hash")?;
    Ok(AuditHead { number: number.parse().map_err(|_| "a head begins with a whole number")?, hash: hash.parse()? })
}

/// Returns the requested entries, the head of the log, and with `--verify` the fault of the chain.
pub(super) async fn read_log(api: &Api, options: &AuditLog) -> Result<Value, CliError> {
    let AuditLog { since, verify, head } = options;
    if !verify {
        let (entries, log_head) = read_entries(api, since.as_deref()).await?;
        return Ok(json!({ "entries": entries, "head": log_head }));
    }
    let invalid_since = || CliError::Local(format!("--since {ISO_8601}"));
    let since = since.as_deref().map(|since| Timestamp::parse_iso8601(since).ok_or_else(invalid_since)).transpose()?;
    let (mut entries, log_head) = read_entries(api, None).await?;
    let fault = check_chain(&entries, *head).err();
    entries.retain(|entry| entry_time(entry) >= since);
    Ok(json!({ "entries": entries, "head": log_head, "clean": fault.is_none(), "fault": fault }))
}

/// Writes the entries as rows, and the head in the form of `--head`.
pub(super) fn show(answer: &Value, out: &mut dyn Out) -> io::Result<()> {
    let entries = answer["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    paint::table(&entries.iter().map(table_row).collect::<Vec<_>>(), ENTRY, out)?;
    writeln!(out, "\nhead: {}:{}", answer["head"]["number"], answer["head"]["hash"].as_str().unwrap_or_default())?;
    match (answer["clean"].as_bool(), answer["fault"].as_str()) {
        (Some(true), _) => writeln!(out, "verified: every entry follows from the one before"),
        (_, Some(fault)) => writeln!(out, "not as it was written: {fault}"),
        _ => Ok(()),
    }
}

/// Reads every entry since a time, and the head of the log.
async fn read_entries(api: &Api, since: Option<&str>) -> Result<(Vec<AuditLogEntry>, AuditLogHead), CliError> {
    let mut entries: Vec<AuditLogEntry> = Vec::new();
    loop {
        let after = entries.last().map_or(0, |entry| entry.number);
        let page = api.send(internal::audit_log(after, PAGE_SIZE_MAX, since)).await?;
        let is_last =
            page.entries.len() < PAGE_SIZE_MAX as usize || page.entries.iter().any(|entry| entry.number <= after);
        entries.extend(page.entries);
        if is_last {
            return Ok((entries, page.head));
        }
    }
}

fn entry_time(entry: &AuditLogEntry) -> Option<Timestamp> {
    entry.entry.get("at").and_then(Value::as_str).and_then(Timestamp::parse_iso8601)
}

/// Flattens an entry to a row; its ids share one column.
fn table_row(entry: &Value) -> Value {
    let mut row = entry["entry"].clone();
    row["number"] = entry["number"].clone();
    let ids = row["ids"].as_object().into_iter().flatten();
    row["ids"] = ids.filter_map(|(_, id)| id.as_str()).collect::<Vec<_>>().join(" ").into();
    row
}

/// Checks the whole chain, and that it contains the entry of the saved head.
///
/// # Errors
/// A sentence that names the first faulty entry.
fn check_chain(entries: &[AuditLogEntry], saved: Option<AuditHead>) -> Result<(), String> {
    let mut head = AuditHead::NONE;
    for entry in entries {
        head = head.verify_next(&to_record(entry)?)?;
        if saved.is_some_and(|saved| saved.number == head.number && saved.hash != head.hash) {
            return Err(format!("entry {} is not the one that was its head", head.number));
        }
    }
    match saved {
        Some(saved) if saved.number > head.number => {
            Err(format!("entry {} is missing: the end was cut off", head.number + 1))
        }
        _ => Ok(()),
    }
}

/// Converts an entry to the store's record. An unreadable hash becomes one that never matches.
fn to_record(entry: &AuditLogEntry) -> Result<AuditRecord, String> {
    let text = serde_json::to_string(&entry.entry).map_err(|error| error.to_string())?;
    let hash = |text: &str| text.parse().unwrap_or(AuditHash([0xff; 32]));
    Ok(AuditRecord { number: entry.number, previous: hash(&entry.previous_hash), hash: hash(&entry.hash), entry: text })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a valid chain of this many entries.
    fn chain(length: u64) -> Vec<AuditLogEntry> {
        let mut head = AuditHead::NONE;
        let mut entry = |number| {
            let entry = [("operation".to_owned(), json!("createClient")), ("count".to_owned(), json!(number))].into();
            let (previous_hash, hash) =
                (head.hash.to_string(), head.hash.hash_of_next(&serde_json::to_string(&entry).unwrap()));
            head = AuditHead { number, hash };
            AuditLogEntry { number, previous_hash, hash: hash.to_string(), entry }
        };
        (1..=length).map(&mut entry).collect()
    }

    /// Returns the head of a log that ends with these entries.
    fn head_of(entries: &[AuditLogEntry]) -> AuditHead {
        let last = entries.last().unwrap();
        parse_head(&format!("{}:{}", last.number, last.hash)).unwrap()
    }

    #[test]
    fn a_complete_chain_passes_with_the_head_of_any_of_its_entries() {
        assert_eq!(check_chain(&[], None), Ok(()));
        let entries = chain(5);
        assert_eq!(check_chain(&entries, None), Ok(()));
        assert_eq!(check_chain(&entries, Some(head_of(&entries))), Ok(()));
        assert_eq!(check_chain(&entries, Some(head_of(&entries[..3]))), Ok(()));
    }

    #[test]
    fn the_error_names_the_first_entry_that_does_not_follow() {
        let whole = chain(5);
        let fault_after = |change: fn(&mut Vec<AuditLogEntry>)| {
            let mut entries = whole.clone();
            change(&mut entries);
            check_chain(&entries, None).unwrap_err()
        };
        assert_eq!(fault_after(|entries| drop(entries.remove(1))), "entry 2 is missing");
        assert_eq!(fault_after(|entries| entries.swap(2, 3)), "entry 3 is missing");
        let changed = fault_after(|entries| drop(entries[3].entry.insert("operation".to_owned(), json!("createApp"))));
        assert_eq!(changed, "entry 4 was changed");
        let moved = fault_after(|entries| {
            entries.swap(1, 2);
            (entries[1].number, entries[2].number) = (2, 3);
        });
        assert_eq!(moved, "entry 2 does not follow from the one before");
    }

    #[test]
    fn a_saved_head_reveals_a_cut_off_end_and_a_forged_chain() {
        let whole = chain(5);
        assert_eq!(check_chain(&whole[..3], None), Ok(()), "only a saved head reveals it");
        assert_eq!(
            check_chain(&whole[..3], Some(head_of(&whole))),
            Err("entry 4 is missing: the end was cut off".to_owned())
        );
        let other = AuditHead { hash: AuditHash::NONE, ..head_of(&whole) };
        assert_eq!(check_chain(&whole, Some(other)), Err("entry 5 is not the one that was its head".to_owned()));
        assert!(parse_head("5").is_err() && parse_head("x:00").is_err() && parse_head("5:00").is_err());
    }
}
