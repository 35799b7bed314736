//! Notices of transactions that other nodes have ended: received on a channel of this node and forwarded to waiting
//! callers.
//!
//! Notices published while the connection is lost are missed, and a slow receiver may miss some. A waiting caller
//! therefore also reads the transaction from time to time.

use std::time::Duration;

use sakshi_domain::ids::{Partition, TxnId};
use tokio::sync::broadcast::Sender;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::redis::keys;
use crate::redis::link::{Address, Backoff, Channels, Link, Shard};
use crate::redis::options::NodeId;

/// Interval between two checks that every channel of a cluster is subscribed to.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Forwards the notices on this node's channels to `ended`, and subscribes again after every loss. Never returns.
pub(crate) async fn forward_all(link: Link, node: NodeId, ended: Sender<TxnId>) {
    if link.is_cluster() {
        let channels: Vec<String> =
            Partition::all().map(|partition| format!("{}:{node}", keys::partition_notices(partition))).collect();
        return forward_from_shards(&link, &channels, &ended).await;
    }
    let channel = format!("{}:{node}", keys::NOTICES);
    let mut backoff = Backoff::default();
    for turn in 0_usize.. {
        if let Some(address) = link.subscription_address(turn).await
            && forward(&link, &address, &Channels::Anywhere(&channel), &ended).await
        {
            backoff = Backoff::default();
        }
        sleep(backoff.pause()).await;
    }
}

/// Forwards notices from a cluster: keeps one connection to each server that owns some of the channels, and replaces it
/// when its channels change.
async fn forward_from_shards(link: &Link, channels: &[String], ended: &Sender<TxnId>) {
    let mut tasks = JoinSet::new();
    let mut listeners: Vec<Listener> = Vec::new();
    loop {
        let shards = link.shards_of(channels).await;
        listeners.retain(|listener| {
            let is_current = !listener.task.is_finished() && shards.contains(&listener.shard);
            if !is_current {
                listener.task.abort();
            }
            is_current
        });
        // Drops the results of ended tasks.
        while tasks.try_join_next().is_some() {}
        for shard in shards {
            if !listeners.iter().any(|listener| listener.shard == shard) {
                let (link, ended, (address, channels)) = (link.clone(), ended.clone(), shard.clone());
                let task = tasks.spawn(async move {
                    forward(&link, &address, &Channels::Sharded(&channels), &ended).await;
                });
                listeners.push(Listener { shard, task });
            }
        }
        sleep(CHECK_INTERVAL).await;
    }
}

/// A task that listens to a server's channels.
struct Listener {
    shard: Shard,
    task: AbortHandle,
}

/// Forwards notices from one server until the connection is lost. Returns true if the subscription became active.
async fn forward(link: &Link, address: &Address, channels: &Channels<'_>, ended: &Sender<TxnId>) -> bool {
    let (ended, mut is_subscribed) = (ended.clone(), false);
    let on_message = move |message: &[u8]| {
        // The channel may have no receiver now.
        let _ = parse(message).map(|id| ended.send(id));
    };
    let error = link.listen(address, channels, on_message, || is_subscribed = true).await;
    if is_subscribed {
        tracing::warn!(%error, "notices of other nodes are missed until Redis answers again");
    }
    is_subscribed
}

/// Parses a notice: `t` and a transaction's id.
pub(crate) fn parse(message: &[u8]) -> Option<TxnId> {
    std::str::from_utf8(message).ok()?.strip_prefix('t')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use sakshi_domain::ids::{ClientId, TxnId};

    use super::parse;

    #[test]
    fn a_notice_names_a_transaction_and_anything_else_is_ignored() {
        let id = TxnId::generate(ClientId::generate().partition(), 1);
        assert_eq!(parse(format!("t{id}").as_bytes()), Some(id));
        for other in ["", "t", "x", "t1", "é", &format!("e{id}"), &format!("{id}")] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
        assert_eq!(parse(&[0xff, 0xfe]), None);
    }
}
