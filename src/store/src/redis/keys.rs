//! The names of the keys. What each of them holds is listed in `key_table.rs`, which the tests compare
//! with a server.
//!
//! Keys of a client carry the hash tag of the client's partition, `{p00}` to `{p63}`, so that a script
//! finds all of them in one slot. The ids of transactions, events and flows name their partition. Keys
//! that are looked up across clients have slots of their own.

use sakshi_domain::delivery::Subject;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, EventId, KeyId, Partition, TxnId};
use sakshi_domain::tenancy::KeyDigest;

use crate::sessions::SessionDigest;

/// Every partition.
pub(crate) fn partitions() -> impl Iterator<Item = Partition> {
    Partition::all()
}

fn tagged(partition: Partition, kind: &str, id: &str) -> Vec<u8> {
    // A call names up to nine keys, so they are built without a formatter.
    let number = partition.number();
    let tag = [b'{', b'p', b'0' + number / 10, b'0' + number % 10, b'}'];
    [&tag, kind.as_bytes(), id.as_bytes()].concat()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(crate) fn transaction(id: TxnId) -> Vec<u8> {
    tagged(id.partition(), "t:", &id.to_string())
}

pub(crate) fn flow(id: FlowId) -> Vec<u8> {
    tagged(id.partition(), "f:", &id.to_string())
}

/// A report of a flow; each webhook of a flow is one.
pub(crate) fn report(id: FlowId, name: DedupDigest) -> Vec<u8> {
    tagged(id.partition(), "fr:", &format!("{id}:{}", hexadecimal(&name.0)))
}

/// The flow that a webhook's deduplication key belongs to.
pub(crate) fn webhook(partition: Partition, name: DedupDigest) -> Vec<u8> {
    tagged(partition, "n:", &hexadecimal(&name.0))
}

/// The key that holds the delivery of a subject: its transaction, or its report.
pub(crate) fn subject(subject: &Subject) -> Vec<u8> {
    match *subject {
        Subject::Transaction(txn) => transaction(txn),
        Subject::Flow { flow, webhook } => report(flow, webhook),
    }
}

pub(crate) fn lapsing(partition: Partition) -> Vec<u8> {
    tagged(partition, "lapse", "")
}

pub(crate) fn client(partition: Partition, id: &ClientId) -> Vec<u8> {
    tagged(partition, "c:", id.as_str())
}

pub(crate) fn ledger(partition: Partition, id: &ClientId) -> Vec<u8> {
    tagged(partition, "l:", id.as_str())
}

pub(crate) fn references(id: &ClientId) -> Vec<u8> {
    tagged(id.partition(), "g:", id.as_str())
}

pub(crate) fn apps_of_client(id: &ClientId) -> Vec<u8> {
    tagged(id.partition(), "ac:", id.as_str())
}

pub(crate) fn keys_of_client(id: &ClientId) -> Vec<u8> {
    tagged(id.partition(), "kc:", id.as_str())
}

/// The answer kept under an idempotency key; without a digest, a name that is never written.
pub(crate) fn idempotency(partition: Partition, digest: Option<&[u8; 32]>) -> Vec<u8> {
    tagged(partition, "i:", &digest.map_or_else(|| "-".into(), |digest| hexadecimal(digest)))
}

/// The lease on the order of an idempotency key.
pub(crate) fn order_lease(partition: Partition, digest: &[u8; 32]) -> Vec<u8> {
    tagged(partition, "o:", &hexadecimal(digest))
}

/// The keys of an event: itself, its registrations and its waiting scans. They are in the partition
/// of the caller: an event of another client is not found there.
pub(crate) fn event(partition: Partition, id: Option<EventId>) -> [Vec<u8>; 3] {
    let id = id.map_or_else(|| "-".into(), |id| id.to_string());
    ["e:", "r:", "w:"].map(|kind| tagged(partition, kind, &id))
}

/// An app's events, by creation and by their end.
pub(crate) fn events_of_app(partition: Partition, app: &AppId) -> [Vec<u8>; 2] {
    ["ae:", "ax:"].map(|kind| tagged(partition, kind, app.as_str()))
}

pub(crate) fn outbox(partition: Partition) -> Vec<u8> {
    tagged(partition, "out", "")
}

pub(crate) fn flight(partition: Partition) -> Vec<u8> {
    tagged(partition, "flight", "")
}

pub(crate) fn app(id: &AppId) -> Vec<u8> {
    format!("a:{id}").into_bytes()
}

pub(crate) fn key(digest: &str) -> Vec<u8> {
    format!("k:{digest}").into_bytes()
}

pub(crate) fn key_digest(digest: &KeyDigest) -> String {
    hexadecimal(&digest.0)
}

/// The digest in a name.
pub(crate) fn parse_digest(text: &str) -> Option<KeyDigest> {
    parse_bytes(text)?.try_into().ok().map(KeyDigest)
}

/// The bytes that a name has in hexadecimal.
pub(crate) fn parse_bytes(text: &str) -> Option<Vec<u8>> {
    let byte = |place| u8::from_str_radix(text.get(place..place + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}

pub(crate) fn key_name(id: &KeyId) -> Vec<u8> {
    format!("kid:{id}").into_bytes()
}

pub(crate) fn session(digest: &SessionDigest) -> Vec<u8> {
    format!("s:{}", hexadecimal(&digest.0)).into_bytes()
}

pub(crate) fn refusals(app: &AppId) -> Vec<u8> {
    format!("rf:{app}").into_bytes()
}

pub(crate) fn audit_log() -> Vec<u8> {
    b"audit".to_vec()
}

/// Both are in one slot.
pub(crate) fn operators() -> Vec<u8> {
    b"{operators}all".to_vec()
}

pub(crate) fn revoked_operators() -> Vec<u8> {
    b"{operators}revoked".to_vec()
}

pub(crate) fn credential(digest: &[u8; 32]) -> Vec<u8> {
    format!("cred:{}", hexadecimal(digest)).into_bytes()
}

pub(crate) fn clients() -> Vec<u8> {
    b"clients".to_vec()
}

pub(crate) fn beats() -> Vec<u8> {
    b"{nodes}beats".to_vec()
}

pub(crate) fn canary() -> Vec<u8> {
    b"canary".to_vec()
}

/// The marks that the store keeps of itself, in one slot: the canary, starts, steps, the time of a loss, acceptances.
pub(crate) fn own_marks() -> Vec<Vec<u8>> {
    let [single, steps, _] = starts();
    vec![canary(), single, steps, data_lost(), acceptances()]
}

/// The time of a loss, and how many losses were accepted.
pub(crate) fn note_of_loss() -> Vec<Vec<u8>> {
    vec![data_lost(), acceptances()]
}

/// The starts of nodes as single commands count them and as steps of several commands do, and when the latest was.
pub(crate) fn starts() -> [Vec<u8>; 3] {
    [b"{canary}starts".to_vec(), b"{canary}steps".to_vec(), b"{canary}started".to_vec()]
}

fn acceptances() -> Vec<u8> {
    b"{canary}acceptances".to_vec()
}

/// Since when data is missing, if a node has noticed.
pub(crate) fn data_lost() -> Vec<u8> {
    b"{canary}lost".to_vec()
}

pub(crate) fn intent_key() -> Vec<u8> {
    b"intent-key".to_vec()
}

/// What tells that a store is being moved here.
pub(crate) fn moving() -> Vec<u8> {
    b"moving".to_vec()
}

pub(crate) fn installation() -> Vec<u8> {
    b"installation".to_vec()
}

pub(crate) fn probe() -> Vec<u8> {
    b"probe".to_vec()
}

/// The prefix of a node's channel; a colon and the node's id follow. A message says that a transaction
/// of which the node has a copy has ended: `t` and its id.
pub(crate) const NOTICES: &str = "sakshi:changes";

/// The same on a cluster, where a node has a channel for each partition.
pub(crate) fn notices_of(partition: Partition) -> String {
    format!("{{p{:02}}}changes", partition.number())
}

#[cfg(test)]
mod tests {
    use sakshi_domain::limits::PARTITIONS;

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
