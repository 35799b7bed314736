//! What other nodes change: heard on a channel for all nodes and one for this node alone, handed to whoever waits on this node.
//!
//! A change that is announced while the connection is lost goes unheard, and so does one that a slow
//! listener falls too far behind for; both cost a waiter no more than its own next look.

use sakshi_domain::ids::{EventId, TxnId};
use tokio::sync::broadcast;
use tokio::time::sleep;

use super::link::{Backoff, Link};
use super::{NodeId, keys};
use crate::transition::Change;

/// Listens for as long as it is polled, again after every loss.
pub(super) async fn follow(link: Link, node: NodeId, changes: broadcast::Sender<Change>) {
    let channels = [keys::CHANGES.to_owned(), keys::changes_for(&node)];
    let mut backoff = Backoff::default();
    for turn in 0_usize.. {
        let told = changes.clone();
        let heard = move |message: &[u8]| {
            if let Some(change) = read(message) {
                // Nobody listens now.
                let _ = told.send(change);
            }
        };
        let mut subscribed = false;
        let lost = link.listen(&channels, turn, heard, || subscribed = true).await;
        if subscribed {
            tracing::warn!(error = %lost, "changes of other nodes are not heard until Redis answers again");
            backoff = Backoff::default();
        }
        sleep(backoff.pause()).await;
    }
}

/// `t` and a transaction's id, or `e` and an event's.
fn read(message: &[u8]) -> Option<Change> {
    let text = std::str::from_utf8(message).ok()?;
    let mut characters = text.chars();
    match (characters.next()?, characters.as_str()) {
        ('t', id) => id.parse::<TxnId>().ok().map(Change::Transaction),
        ('e', id) => id.parse::<EventId>().ok().map(Change::Event),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::ids::{ClientId, EventId, TxnId};

    use super::read;
    use crate::transition::Change;

    #[test]
    fn an_announcement_names_a_transaction_or_an_event_and_anything_else_is_none() {
        let partition = ClientId::generate().partition();
        let (txn, event) = (TxnId::generate(partition, 1), EventId::generate(partition, 1));
        assert_eq!(read(format!("t{txn}").as_bytes()), Some(Change::Transaction(txn)));
        assert_eq!(read(format!("e{event}").as_bytes()), Some(Change::Event(event)));
        for other in ["", "t", "e", "x", "t1", "é", &format!("e{txn}"), &format!("{txn}")] {
            assert_eq!(read(other.as_bytes()), None, "{other}");
        }
        assert_eq!(read(&[0xff, 0xfe]), None);
    }
}
