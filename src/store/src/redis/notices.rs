//! Transactions that other nodes have ended: heard on a channel of this node, handed to whoever waits here.
//!
//! What is announced while the connection is lost goes unheard, and so does what a slow listener falls too far behind
//! for; both cost a waiter no more than its own next look.

use sakshi_domain::ids::TxnId;
use tokio::sync::broadcast;
use tokio::time::sleep;

use super::link::{Backoff, Link};
use super::{NodeId, keys};

/// Listens for as long as it is polled, again after every loss.
pub(super) async fn follow(link: Link, node: NodeId, ended: broadcast::Sender<TxnId>) {
    let channel = keys::notices_for(&node);
    let mut backoff = Backoff::default();
    for turn in 0_usize.. {
        let told = ended.clone();
        let heard = move |message: &[u8]| {
            if let Some(id) = read(message) {
                // Nobody listens now.
                let _ = told.send(id);
            }
        };
        let mut subscribed = false;
        let lost = link.listen(&channel, turn, heard, || subscribed = true).await;
        if subscribed {
            tracing::warn!(error = %lost, "notices of other nodes are not heard until Redis answers again");
            backoff = Backoff::default();
        }
        sleep(backoff.pause()).await;
    }
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
