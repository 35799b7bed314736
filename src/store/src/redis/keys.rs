//! Every key: its name, its type, what it holds, and when it goes.
//!
//! What belongs to a client carries the hash tag of the client's partition, `{p00}` to `{p63}`, so
//! that a script finds all of it in one slot. The partition is readable from the ids of transactions
//! and events. What is looked up across clients has a slot of its own.

use sakshi_domain::delivery::Subject;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, EventId, KeyId, Partition, TxnId};
use sakshi_domain::limits::PARTITIONS;
use sakshi_domain::tenancy::KeyDigest;

use crate::session::SessionDigest;

/// When a key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It always has a time to live.
    Always(&'static str),
    /// It has one, except while what is said holds.
    Except(&'static str),
    /// It has none, for the reason that is given.
    None(&'static str),
}

/// One kind of key.
#[derive(Clone, Copy, Debug)]
pub struct KeyKind {
    /// Its name: `*` stands for an id, `{p*}` for the tag of a partition.
    pub pattern: &'static str,
    /// The type as Redis names it.
    pub of_type: &'static str,
    /// What is in it, field by field.
    pub holds: &'static str,
    /// When it goes.
    pub lifetime: Lifetime,
}

const fn kind(pattern: &'static str, of_type: &'static str, holds: &'static str, lifetime: Lifetime) -> KeyKind {
    KeyKind { pattern, of_type, holds, lifetime }
}

/// Every key that a store writes.
#[rustfmt::skip]
pub const KEYS: &[KeyKind] = &[
    kind("{p*}t:*", "hash", "a transaction: c client, a app, e event, o opened, x window's end, s sealed terms, g origin of its webhook, m nodes that have a copy; \
        ended: v when, p passed, f refusal, d answer, r sealed outcome, u result's end, y completing call; \
        delivery: i position, h sealed address, k claimed, j claiming call, w outcome, n status, l duration",
        Lifetime::Except("its delivery has not ended")),
    kind("{p*}c:*", "hash", "a client: n name, t created, b balance, s entries of its ledger, i events so far", Lifetime::None("clients and their credits stay")),
    kind("{p*}l:*", "list", "a client's ledger: kind, amount, balance after, when, reference; the place is the number", Lifetime::None("the ledger only grows")),
    kind("{p*}g:*", "hash", "a client's grants and adjustments: kind and reference to number", Lifetime::None("a reference is good for one movement for ever")),
    kind("{p*}ac:*", "hash", "a client's apps: id to created and place", Lifetime::None("apps stay")),
    kind("{p*}kc:*", "hash", "a client's keys: id to created and place", Lifetime::None("keys stay, revoked ones too")),
    kind("{p*}i:*", "hash", "the answer kept under an idempotency key: s what it created, q request, a sealed answer, u its end", Lifetime::Always("the answer's end")),
    kind("{p*}o:*", "string", "the request that may place the order of an idempotency key", Lifetime::Always("the lease's end")),
    kind("{p*}e:*", "hash", "an event: c client, a app, t created, i place, s sealed terms, y active, x end, m places, o origin and h sealed URL of its webhook; \
        r registrations, n scans, b abandoned", Lifetime::Always("its end and the retention, or its last scan")),
    kind("{p*}r:*", "list", "an event's registrations: transaction, when, sealed outcome", Lifetime::Always("with its event")),
    kind("{p*}w:*", "zset", "an event's scans that nobody answered, by their window's end", Lifetime::Always("with its event")),
    kind("{p*}ae:*", "zset", "an app's events by creation", Lifetime::Always("with its last event")),
    kind("{p*}ax:*", "zset", "an app's events by when they go", Lifetime::Always("with its last event")),
    kind("{p*}f:*", "hash", "a flow: a app, s sealed standing, z version, u its end, l name of the report that polls show; d and a name: a fetch's sealed standing; \
        w and a name: what a webhook that was queued tells", Lifetime::Always("its result's end, or its own while it is pending")),
    kind("{p*}fr:*:*", "hash", "a report of a flow: r sealed payload, u result's end, y committing call; delivery as of a transaction: v when it was queued", Lifetime::Except("its delivery has not ended")),
    kind("{p*}n:*", "string", "the flow whose webhook a deduplication key is, by the key's digest", Lifetime::Always("its flow's end at that moment")),
    kind("{p*}lapse", "zset", "flows with an open invitation, by its end", Lifetime::Always("with its last flow")),
    kind("{p*}out", "stream", "deliveries that wait: t transaction, or flow and name of the report, o origin; the group's pending lists say for which node", Lifetime::None("its positions must not begin anew; it is empty when nothing waits")),
    kind("{p*}flight", "hash", "attempts under way: position to node and what is reported", Lifetime::None("it is empty when nothing is under way")),
    kind("a:*", "hash", "an app: p partition, r sealed record, w sealed URLs of its webhooks", Lifetime::None("apps stay")),
    kind("k:*", "hash", "an API key by its digest: i id, c client, l label, e environments, t created, x end, v revoked", Lifetime::None("keys stay, revoked ones too")),
    kind("kid:*", "string", "the digest of a key by its id", Lifetime::None("keys stay, revoked ones too")),
    kind("s:*", "hash", "a session by the digest of its id: u when it ends unless it is used, x when it ends in any case, s sealed key and app", Lifetime::Always("its end")),
    kind("clients", "zset", "every client by creation", Lifetime::None("clients and their credits stay")),
    kind("cred:*", "string", "a credential that was presented: transaction, call, end", Lifetime::Always("the replay window")),
    kind("{nodes}beats", "zset", "the nodes by their latest beat; 0 for one that has left", Lifetime::Always("a day after the last beat")),
    kind("canary", "string", "a box that only the store's encryption keys open", Lifetime::None("it tells whether a node has the keys")),
    kind("probe", "string", "what the last health check wrote", Lifetime::Always("a minute")),
];

/// Every partition.
pub(super) fn partitions() -> impl Iterator<Item = Partition> {
    // The number stands in the six leading bits of an id.
    (0..PARTITIONS).map(|number| {
        let mut bytes = [0; 12];
        bytes[0] = number << 2;
        EventId::from_bytes(bytes).partition()
    })
}

fn tagged(partition: Partition, kind: &str, id: &str) -> Vec<u8> {
    // A call names up to nine keys, so they are put together without a formatter.
    let number = partition.number();
    let tag = [b'{', b'p', b'0' + number / 10, b'0' + number % 10, b'}'];
    [&tag, kind.as_bytes(), id.as_bytes()].concat()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(super) fn transaction(id: TxnId) -> Vec<u8> {
    tagged(id.partition(), "t:", &id.to_string())
}

pub(super) fn flow(id: FlowId) -> Vec<u8> {
    tagged(id.partition(), "f:", &id.to_string())
}

/// A report of a flow; each webhook of a flow is one.
pub(super) fn report(id: FlowId, name: DedupDigest) -> Vec<u8> {
    tagged(id.partition(), "fr:", &format!("{id}:{}", hexadecimal(&name.0)))
}

/// Whose webhook a deduplication key is.
pub(super) fn webhook(partition: Partition, name: DedupDigest) -> Vec<u8> {
    tagged(partition, "n:", &hexadecimal(&name.0))
}

/// Where the delivery of a subject is kept: with its transaction, or with its report.
pub(super) fn subject(subject: &Subject) -> Vec<u8> {
    match *subject {
        Subject::Transaction(txn) => transaction(txn),
        Subject::Flow { flow, webhook } => report(flow, webhook),
    }
}

pub(super) fn lapsing(partition: Partition) -> Vec<u8> {
    tagged(partition, "lapse", "")
}

pub(super) fn client(partition: Partition, id: &ClientId) -> Vec<u8> {
    tagged(partition, "c:", id.as_str())
}

pub(super) fn ledger(partition: Partition, id: &ClientId) -> Vec<u8> {
    tagged(partition, "l:", id.as_str())
}

pub(super) fn references(id: &ClientId) -> Vec<u8> {
    tagged(id.partition(), "g:", id.as_str())
}

pub(super) fn apps_of_client(id: &ClientId) -> Vec<u8> {
    tagged(id.partition(), "ac:", id.as_str())
}

pub(super) fn keys_of_client(id: &ClientId) -> Vec<u8> {
    tagged(id.partition(), "kc:", id.as_str())
}

/// The key of a kept answer; without one, a name that is never written.
pub(super) fn idempotency(partition: Partition, digest: Option<&[u8; 32]>) -> Vec<u8> {
    tagged(partition, "i:", &digest.map_or_else(|| "-".into(), |digest| hexadecimal(digest)))
}

/// The lease on the order of an idempotency key.
pub(super) fn order_lease(partition: Partition, digest: &[u8; 32]) -> Vec<u8> {
    tagged(partition, "o:", &hexadecimal(digest))
}

/// The keys of an event: itself, its registrations and its waiting scans. They are named in the
/// partition of whoever asks: an event of another client is not found there.
pub(super) fn event(partition: Partition, id: Option<EventId>) -> [Vec<u8>; 3] {
    let id = id.map_or_else(|| "-".into(), |id| id.to_string());
    ["e:", "r:", "w:"].map(|kind| tagged(partition, kind, &id))
}

/// An app's events, by creation and by their end.
pub(super) fn events_of_app(partition: Partition, app: &AppId) -> [Vec<u8>; 2] {
    ["ae:", "ax:"].map(|kind| tagged(partition, kind, app.as_str()))
}

pub(super) fn outbox(partition: Partition) -> Vec<u8> {
    tagged(partition, "out", "")
}

pub(super) fn flight(partition: Partition) -> Vec<u8> {
    tagged(partition, "flight", "")
}

pub(super) fn app(id: &AppId) -> Vec<u8> {
    format!("a:{id}").into_bytes()
}

pub(super) fn key(digest: &str) -> Vec<u8> {
    format!("k:{digest}").into_bytes()
}

pub(super) fn key_digest(digest: &KeyDigest) -> String {
    hexadecimal(&digest.0)
}

pub(super) fn key_name(id: &KeyId) -> Vec<u8> {
    format!("kid:{id}").into_bytes()
}

pub(super) fn session(digest: &SessionDigest) -> Vec<u8> {
    format!("s:{}", hexadecimal(&digest.0)).into_bytes()
}

pub(super) fn credential(digest: &[u8; 32]) -> Vec<u8> {
    format!("cred:{}", hexadecimal(digest)).into_bytes()
}

pub(super) fn clients() -> Vec<u8> {
    b"clients".to_vec()
}

pub(super) fn beats() -> Vec<u8> {
    b"{nodes}beats".to_vec()
}

pub(super) fn canary() -> Vec<u8> {
    b"canary".to_vec()
}

pub(super) fn probe() -> Vec<u8> {
    b"probe".to_vec()
}

/// What the channel of a node begins with; its id comes after a colon. It is told there that a transaction has ended of
/// which it has a copy: `t` and an id.
pub(super) const NOTICES: &str = "sakshi:changes";

/// The same on a cluster, where a node has a channel for each partition.
pub(super) fn notices_of(partition: Partition) -> String {
    format!("{{p{:02}}}changes", partition.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_owns_is_named_by_its_partition_and_readable_from_its_ids() {
        let owner = ClientId::generate();
        let tag = format!("{{p{:02}}}", owner.partition().number());
        let txn = TxnId::generate(owner.partition(), 1);
        let of_event = event(owner.partition(), Some(EventId::generate(owner.partition(), 1)));
        let names = [transaction(txn), client(owner.partition(), &owner), ledger(owner.partition(), &owner), outbox(txn.partition())];
        for name in names.into_iter().chain(of_event) {
            assert!(name.starts_with(tag.as_bytes()), "{}", String::from_utf8_lossy(&name));
        }
        assert_eq!(partitions().map(Partition::number).collect::<Vec<_>>(), (0..PARTITIONS).collect::<Vec<_>>());
    }
}
