//! The owners of the slots, as sentinels and the nodes of a cluster report them.

use redis::{Cmd, Value, cmd};

use super::topology::{Address, RedisTopology};

/// Number of slots of a Redis Cluster; other topologies have one range of all slots.
pub(super) const SLOTS: u16 = 16_384;

/// A range of slots and the server that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) address: Address,
}

impl SlotRange {
    /// Returns all slots, owned by one server.
    pub(super) const fn all_slots(address: Address) -> Self {
        Self { first: 0, last: SLOTS - 1, address }
    }
}

/// Returns the command that queries the owners of the slots.
pub(super) fn owners_query(topology: &RedisTopology) -> Cmd {
    let mut query;
    match topology {
        RedisTopology::Standalone => query = cmd("PING"),
        RedisTopology::Sentinel { service } => {
            query = cmd("SENTINEL");
            query.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
        }
        RedisTopology::Cluster => {
            query = cmd("CLUSTER");
            query.arg("SLOTS");
        }
    }
    query
}

/// Parses the answer to [`owners_query`] into ranges, in the order of the slots. The server that was asked completes an
/// answer without a host.
pub(super) fn parse_owners(topology: &RedisTopology, answer: &Value, asked_server: &Address) -> Option<Vec<SlotRange>> {
    match topology {
        RedisTopology::Standalone => Some(vec![SlotRange::all_slots(asked_server.clone())]),
        RedisTopology::Sentinel { .. } => parse_master(answer),
        RedisTopology::Cluster => parse_slots(answer, asked_server),
    }
}

/// Returns the result of [`parse_owners`] for the fuzzer: first slot, last slot, host, port.
#[cfg(feature = "fuzzing")]
pub(crate) fn parse_masters(topology: &RedisTopology, answer: &Value) -> Option<Vec<(u16, u16, String, u16)>> {
    let asked_server = Address { host: "asked".to_owned(), port: 1 };
    let owners = parse_owners(topology, answer, &asked_server)?.into_iter();
    Some(owners.map(|SlotRange { first, last, address: Address { host, port } }| (first, last, host, port)).collect())
}

/// Parses `[host, port]`, or nil for a name that the sentinel does not know.
fn parse_master(answer: &Value) -> Option<Vec<SlotRange>> {
    match answer.as_sequence()? {
        [host, port] => {
            Some(vec![SlotRange::all_slots(Address { host: parse_text(host)?, port: parse_text(port)?.parse().ok()? })])
        }
        _ => None,
    }
}

/// Parses `[[first, last, [host, port, id, …], replica, …], …]`; an empty or unknown host is the asked server itself.
fn parse_slots(answer: &Value, asked_server: &Address) -> Option<Vec<SlotRange>> {
    let mut ranges = Vec::new();
    for range in answer.as_sequence()? {
        let [first, last, master, ..] = range.as_sequence()? else { return None };
        let [host, port, ..] = master.as_sequence()? else { return None };
        let host = parse_text(host)
            .filter(|host| !host.is_empty() && host != "?")
            .unwrap_or_else(|| asked_server.host.clone());
        ranges.push(SlotRange {
            first: parse_number(first)?,
            last: parse_number(last)?,
            address: Address { host, port: parse_number(port)? },
        });
    }
    ranges.sort_by_key(|range| range.first);
    Some(ranges).filter(|ranges| !ranges.is_empty())
}

fn parse_text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

fn parse_number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_server() -> Address {
        Address { host: "asked".to_owned(), port: 1 }
    }

    /// Returns a range as CLUSTER SLOTS reports it.
    fn range(first: i64, last: i64, host: &str) -> Value {
        let master =
            Value::Array(vec![Value::BulkString(host.into()), Value::Int(6379), Value::BulkString(b"id".to_vec())]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master, Value::Array(Vec::new())])
    }

    /// Parses an answer. Returns first slot, last slot and address of each range.
    fn read_ranges(topology: &RedisTopology, answer: &Value) -> Option<Vec<(u16, u16, String)>> {
        let ranges = parse_owners(topology, answer, &asked_server())?;
        Some(ranges.into_iter().map(|range| (range.first, range.last, range.address.to_string())).collect())
    }

    #[test]
    fn cluster_ranges_are_sorted_and_an_unnamed_host_is_the_asked_server() {
        let read = |answer: &Value| read_ranges(&RedisTopology::Cluster, answer);
        let answer = Value::Array(vec![range(200, 299, "b"), range(0, 99, ""), range(100, 199, "?")]);
        let expected = [(0, 99, "asked:6379"), (100, 199, "asked:6379"), (200, 299, "b:6379")];
        assert_eq!(read(&answer).unwrap(), expected.map(|(first, last, address)| (first, last, address.to_owned())));
        let wrong = [
            Value::Nil,
            Value::Array(Vec::new()),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 70_000, "b")]),
        ];
        for wrong in wrong {
            assert_eq!(read(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_master_named_by_a_sentinel_owns_all_slots() {
        let sentinel = RedisTopology::Sentinel { service: "main".to_owned() };
        let read = |words: &[Value]| read_ranges(&sentinel, &Value::Array(words.to_vec()));
        let (host, port) = (Value::SimpleString("a".to_owned()), Value::BulkString(b"6380".to_vec()));
        assert_eq!(read(&[host.clone(), port.clone()]), Some(vec![(0, 16_383, "a:6380".to_owned())]));
        assert_eq!(read(&[host.clone(), Value::BulkString(b"no number".to_vec())]), None);
        assert_eq!(read(&[host, port, Value::Nil]), None);
        assert_eq!(read_ranges(&sentinel, &Value::Nil), None, "it knows no such name");
        assert_eq!(
            read_ranges(&RedisTopology::Standalone, &Value::Okay),
            Some(vec![(0, 16_383, "asked:1".to_owned())])
        );
    }
}
