//! Entries of the operators' audit log, as a receiver gets them.

use std::collections::BTreeMap;

use sakshi_store::AuditHash;
use serde_json::Value;

/// A received entry: number, previous hash, own hash, text.
pub type ReceivedEntry = (u64, AuditHash, AuditHash, String);

/// Reads a log record of OTLP.
pub fn parse_record(record: &Value) -> ReceivedEntry {
    let attributes = record["attributes"].as_array().unwrap();
    let value = |name: &str, kind: &str| {
        let attribute = attributes.iter().find(|attribute| attribute["key"] == name).unwrap();
        attribute["value"][kind].as_str().unwrap().to_owned()
    };
    let hash = |name| value(name, "stringValue").parse().unwrap();
    let text = record["body"]["stringValue"].as_str().unwrap().to_owned();
    (value("audit.number", "intValue").parse().unwrap(), hash("audit.previous_hash"), hash("audit.hash"), text)
}

/// Reads a line written by [`super::rsyslog`].
pub fn parse_line(line: &str) -> ReceivedEntry {
    let element = line.strip_prefix("109 sakshi audit [sakshi@32473 ").unwrap_or_else(|| panic!("{line}"));
    let (element, text) = element.split_once("] ").unwrap();
    let mut parameters = element.split(' ').map(|parameter| parameter.split('"').nth(1).unwrap());
    let mut next = || parameters.next().unwrap();
    (next().parse().unwrap(), next().parse().unwrap(), next().parse().unwrap(), text.to_owned())
}

/// Returns true if exactly the first `count` entries have arrived, and each follows from the one before. Fails the test
/// if two entries with one number differ.
pub fn is_complete(received: &[ReceivedEntry], count: u64) -> bool {
    let mut entries: BTreeMap<u64, &ReceivedEntry> = BTreeMap::new();
    for entry in received {
        let known = entries.entry(entry.0).or_insert(entry);
        assert_eq!(*known, entry);
    }
    let mut head = AuditHash::NONE;
    let all_follow = entries.values().zip(1..).all(|((number, previous, hash, text), next)| {
        let follows = *number == next && *previous == head;
        head = *hash;
        follows && *hash == previous.hash_of_next(text)
    });
    all_follow && entries.len() as u64 == count
}

/// Returns true if entries arrived in order, duplicates aside.
pub fn is_in_order(received: &[ReceivedEntry]) -> bool {
    let mut newest = 0;
    received.iter().all(|(number, ..)| {
        let follows = *number <= newest + 1;
        newest = newest.max(*number);
        follows
    })
}
