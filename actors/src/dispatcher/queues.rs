//! The queues of all receivers. They are outside the dispatcher, so that the operator sees them while it hangs.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::delivery::Receiver;
use sakshi_domain::ids::ClientId;

use super::receiver_queue::ReceiverQueue;

/// Queues by receiver. Clones share them; each access takes the lock for a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues(Arc<Mutex<HashMap<Arc<Receiver>, ReceiverQueue>>>);

/// A summary of a receiver's queue, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverView {
    /// Client of the receiver.
    pub client: ClientId,
    /// Scheme, host and port.
    pub origin: String,
    /// Waiting webhooks in memory; more may wait in the outbox.
    pub waiting: usize,
    /// Attempts in flight.
    pub in_flight: usize,
    /// Seconds that the oldest webhook has waited in this queue.
    pub oldest_s: Option<u64>,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<Receiver>, ReceiverQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes a queue; `None` if there is none.
    pub(super) fn with<R>(&self, receiver: &Receiver, work: impl FnOnce(&mut ReceiverQueue) -> R) -> Option<R> {
        self.lock().get_mut(receiver).map(work)
    }

    /// Creates the queue if it is missing. Returns the queue's key.
    pub(super) fn get_or_create(&self, receiver: &Receiver) -> Arc<Receiver> {
        let mut queues = self.lock();
        if let Some((known, _)) = queues.get_key_value(receiver) {
            return Arc::clone(known);
        }
        let receiver = Arc::new(receiver.clone());
        queues.insert(Arc::clone(&receiver), ReceiverQueue::default());
        receiver
    }

    /// Changes a queue, and removes it if it is idle then.
    pub(super) fn update(&self, receiver: &Receiver, change: impl FnOnce(&mut ReceiverQueue)) {
        let mut queues = self.lock();
        if let Some(queue) = queues.get_mut(receiver) {
            change(queue);
            if queue.is_idle() {
                queues.remove(receiver);
            }
        }
    }

    /// Returns every receiver that has a queue.
    pub(super) fn receivers(&self) -> Vec<Arc<Receiver>> {
        self.lock().keys().map(Arc::clone).collect()
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Returns the longest queues, at most `limit`, and the number of all queues.
    pub(crate) fn longest(&self, limit: usize) -> (Vec<ReceiverView>, usize) {
        let queues = self.lock();
        let total = queues.len();
        let mut longest: Vec<_> =
            queues.iter().map(|(receiver, queue)| (Reverse(queue.waiting_and_in_flight()), receiver, queue)).collect();
        longest.sort_unstable_by(|(counts, receiver, _), (other_counts, other, _)| {
            (counts, &receiver.origin).cmp(&(other_counts, &other.origin))
        });
        let views =
            longest.into_iter().take(limit).map(|(Reverse((waiting, in_flight)), receiver, queue)| ReceiverView {
                client: receiver.client.clone(),
                origin: receiver.origin.clone(),
                waiting,
                in_flight,
                oldest_s: queue.oldest_arrival().map(|arrived_at| arrived_at.elapsed().as_secs()),
            });
        (views.collect(), total)
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::delivery::{DeliveryId, QueuedDelivery};
    use sakshi_domain::ids::TxnId;

    use super::*;
    use crate::dispatcher::receiver_queue::Source;

    #[test]
    fn the_longest_queues_come_first_and_the_total_counts_all() {
        let (queues, client) = (Queues::default(), ClientId::generate());
        for (origin, count) in [("http://b", 1), ("http://e", 1), ("http://a", 1), ("http://c", 3), ("http://d", 1)] {
            let receiver = Receiver { client: client.clone(), origin: origin.into() };
            for id in 0..count {
                let subject = TxnId::generate(client.partition(), 0).into();
                let delivery = QueuedDelivery {
                    id: DeliveryId(id),
                    subject,
                    receiver: receiver.clone(),
                    app: None,
                    stored_bytes: 0,
                };
                queues.with(&queues.get_or_create(&receiver), |queue| queue.push(delivery, Source::NoticeOrScan));
            }
        }
        queues.with(&Receiver { client: client.clone(), origin: "http://c".into() }, ReceiverQueue::start_attempt);
        let view = |origin: &str, waiting, in_flight| ReceiverView {
            client: client.clone(),
            origin: origin.into(),
            waiting,
            in_flight,
            oldest_s: Some(0),
        };
        assert_eq!(queues.longest(2), (vec![view("http://c", 2, 1), view("http://a", 1, 0)], 5));
        queues.clear();
        assert_eq!(queues.longest(2), (vec![], 0));
    }
}
