//! The names of the keys that are no records: the marks that a store keeps of itself, and the nodes. Those of records are made of their
//! kinds and ids; `key_table` has all of them.

use sakshi_domain::ids::Partition;

pub(crate) fn beats() -> Vec<u8> {
    b"{nodes}beats".to_vec()
}

pub(crate) fn canary() -> Vec<u8> {
    b"canary".to_vec()
}

/// The marks that the store keeps of itself, in one slot: the canary, starts, steps, the time of a loss, acceptances, the schema.
pub(crate) fn own_marks() -> Vec<Vec<u8>> {
    let [single, steps, _] = starts();
    vec![canary(), single, steps, data_lost(), acceptances(), schema()]
}

/// The number of the schema.
pub(crate) fn schema() -> Vec<u8> {
    b"{canary}schema".to_vec()
}

/// Its copy beside the records of a partition, on a cluster.
pub(crate) fn schema_of(partition: Partition) -> Vec<u8> {
    format!("{{p{:02}}}schema", partition.number()).into_bytes()
}

/// The numbers that each node knows and works at.
pub(crate) fn node_schemas() -> Vec<u8> {
    b"{nodes}schemas".to_vec()
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
fn data_lost() -> Vec<u8> {
    b"{canary}lost".to_vec()
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

/// The keys that share no slot with the canary or with records.
pub(crate) fn apart() -> Vec<Vec<u8>> {
    vec![moving(), installation(), probe(), beats(), node_schemas()]
}

/// The prefix of a node's channel; a colon and the node's id follow. A message says that a transaction
/// of which the node has a copy has ended: `t` and its id.
pub(crate) const NOTICES: &str = "sakshi:changes";

/// The same on a cluster, where a node has a channel for each partition.
pub(crate) fn notices_of(partition: Partition) -> String {
    format!("{{p{:02}}}changes", partition.number())
}
