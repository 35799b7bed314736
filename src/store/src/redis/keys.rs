//! Names of keys that are not records: the store's own marks, and the nodes. Names of records consist of their kinds
//! and ids; `key_table` lists all kinds of keys.

use sakshi_domain::ids::Partition;

/// Returns the key of the latest heartbeat of each node.
pub(crate) fn heartbeats() -> Vec<u8> {
    b"{nodes}beats".to_vec()
}

/// Returns the key of the canary, a sealed text that shows whether a node has the store's encryption keys.
pub(crate) fn canary() -> Vec<u8> {
    b"canary".to_vec()
}

/// Returns the keys of the store's own marks, in one slot: the canary, the starts counted by single commands and by
/// scripts, the time of a loss, acceptances of losses, the schema.
pub(crate) fn own_marks() -> Vec<Vec<u8>> {
    let [single_starts, scripted_starts, _] = starts();
    vec![canary(), single_starts, scripted_starts, data_lost(), acceptances(), schema()]
}

/// Returns the key of the schema number.
pub(crate) fn schema() -> Vec<u8> {
    b"{canary}schema".to_vec()
}

/// Returns the key of the schema number's copy beside the records of a partition, on a cluster.
pub(crate) fn schema_in_partition(partition: Partition) -> Vec<u8> {
    format!("{{p{:02}}}schema", partition.number()).into_bytes()
}

/// Returns the key of the schema numbers of each node: the newest that it knows, and the current.
pub(crate) fn node_schemas() -> Vec<u8> {
    b"{nodes}schemas".to_vec()
}

/// Returns the keys of node starts: the count by single commands, the count by scripts of several commands, and the
/// time of the latest start.
pub(crate) fn starts() -> [Vec<u8>; 3] {
    [b"{canary}starts".to_vec(), b"{canary}steps".to_vec(), b"{canary}started".to_vec()]
}

/// Returns the key of the number of losses that operators have accepted.
pub(crate) fn acceptances() -> Vec<u8> {
    b"{canary}acceptances".to_vec()
}

/// Returns the key of the time of a detected loss.
pub(crate) fn data_lost() -> Vec<u8> {
    b"{canary}lost".to_vec()
}

/// Returns the key of the mark for a store that is being moved here.
pub(crate) fn moving() -> Vec<u8> {
    b"moving".to_vec()
}

/// Returns the key of the installation that owns the store.
pub(crate) fn installation() -> Vec<u8> {
    b"installation".to_vec()
}

/// Returns the key that health checks write.
pub(crate) fn probe() -> Vec<u8> {
    b"probe".to_vec()
}

/// Prefix of the short-lived keys that a link writes before it waits for replicas; a number follows.
pub(crate) const WAITED: &str = "waited:";

/// Returns the keys that share no slot with the canary or with records.
pub(crate) fn outside_record_slots() -> Vec<Vec<u8>> {
    vec![moving(), installation(), probe(), heartbeats(), node_schemas()]
}

/// Prefix of a node's channel; a colon and the node's id follow. A message reports the end of a transaction that the
/// node has a copy of: `t` and its id.
pub(crate) const NOTICES: &str = "sakshi:changes";

/// Returns the prefix of a node's channel for one partition of a cluster.
pub(crate) fn partition_notices(partition: Partition) -> String {
    format!("{{p{:02}}}changes", partition.number())
}
