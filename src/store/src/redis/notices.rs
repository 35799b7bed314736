//! Transactions that other nodes have ended: heard on a channel of this node, handed to whoever waits here.
//!
//! What is announced while the connection is lost goes unheard, and so does what a slow listener falls too far behind
//! for; both cost a waiter no more than its own next look.

use std::time::Duration;

use sakshi_domain::ids::TxnId;
use tokio::sync::broadcast::Sender;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::link::{Backoff, Link};
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

/// One connection to each server that is in charge of some of the channels.
async fn follow_shards(link: &Link, channels: &[String], ended: &Sender<TxnId>) {
    let (mut listeners, mut under_way) = (JoinSet::new(), Vec::new());
    loop {
        while let Some(lost) = listeners.try_join_next() {
            match lost {
                Ok(address) => under_way.retain(|known| *known != address),
                // It says no more whose it was; a second connection only tells everything twice.
                Err(_) => under_way.clear(),
            }
        }
        for (address, channels) in link.in_charge_of(channels).await {
            if !under_way.contains(&address) {
                under_way.push(address.clone());
                let (link, heard) = (link.clone(), telling(ended));
                listeners.spawn(async move {
                    let mut subscribed = false;
                    let lost = link.listen_to_shard(&address, &channels, heard, || subscribed = true).await;
                    if subscribed {
                        warn(&lost);
                    }
                    address
                });
            }
        }
        sleep(LOOK).await;
    }
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
