//! Transactions that other nodes have ended: heard on a channel of this node, handed to whoever waits here.
//!
//! What is announced while the connection is lost goes unheard, and so does what a slow listener falls too far behind
//! for; both cost a waiter no more than its own next look.

use std::time::Duration;

use sakshi_domain::ids::TxnId;
use tokio::sync::broadcast::Sender;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::link::{Backoff, Link, Shard};
use super::{NodeId, keys};
use crate::error::StoreError;

/// Between two looks whether every channel of a cluster is listened to.
const LOOK: Duration = Duration::from_secs(1);

/// Listens for as long as it is polled, again after every loss.
pub(super) async fn follow(link: Link, node: NodeId, ended: Sender<TxnId>) {
    if link.is_cluster() {
        let channels: Vec<String> = keys::partitions().map(|partition| format!("{}:{node}", keys::notices_of(partition))).collect();
        return follow_shards(&link, &channels, &ended).await;
    }
    let channel = format!("{}:{node}", keys::NOTICES);
    let mut backoff = Backoff::default();
    for turn in 0_usize.. {
        let mut subscribed = false;
        let lost = link.listen(&channel, turn, telling(&ended), || subscribed = true).await;
        if subscribed {
            warn(&lost);
            backoff = Backoff::default();
        }
        sleep(backoff.pause()).await;
    }
}

/// One connection to each server that is in charge of some of the channels, begun anew whenever these are others.
async fn follow_shards(link: &Link, channels: &[String], ended: &Sender<TxnId>) {
    let mut tasks = JoinSet::new();
    let mut listeners: Vec<Listener> = Vec::new();
    loop {
        let shards = link.in_charge_of(channels).await;
        listeners.retain(|listener| {
            let stays = !listener.task.is_finished() && shards.contains(&listener.shard);
            if !stays {
                listener.task.abort();
            }
            stays
        });
        while tasks.try_join_next().is_some() {}
        for shard in shards {
            if !listeners.iter().any(|listener| listener.shard == shard) {
                let (link, heard, (address, channels)) = (link.clone(), telling(ended), shard.clone());
                let task = tasks.spawn(async move {
                    let mut subscribed = false;
                    let lost = link.listen_to_shard(&address, &channels, heard, || subscribed = true).await;
                    if subscribed {
                        warn(&lost);
                    }
                });
                listeners.push(Listener { shard, task });
            }
        }
        sleep(LOOK).await;
    }
}

/// Who listens to a server, and to what.
struct Listener {
    shard: Shard,
    task: AbortHandle,
}

fn telling(ended: &Sender<TxnId>) -> impl Fn(&[u8]) + Send + Sync + 'static {
    let told = ended.clone();
    move |message| {
        if let Some(id) = read(message) {
            // Nobody listens now.
            let _ = told.send(id);
        }
    }
}

fn warn(lost: &StoreError) {
    tracing::warn!(error = %lost, "notices of other nodes are not heard until Redis answers again");
}

/// `t` and a transaction's id.
fn read(message: &[u8]) -> Option<TxnId> {
    std::str::from_utf8(message).ok()?.strip_prefix('t')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use sakshi_domain::ids::{ClientId, TxnId};

    use super::read;

    #[test]
    fn a_notice_names_a_transaction_and_anything_else_is_none() {
        let id = TxnId::generate(ClientId::generate().partition(), 1);
        assert_eq!(read(format!("t{id}").as_bytes()), Some(id));
        for other in ["", "t", "x", "t1", "é", &format!("e{id}"), &format!("{id}")] {
            assert_eq!(read(other.as_bytes()), None, "{other}");
        }
        assert_eq!(read(&[0xff, 0xfe]), None);
    }
}
