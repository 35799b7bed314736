//! The queue of one receiver: a bounded number of deliveries of the outbox, without their bodies, and a count of
//! attempts in flight.

use std::collections::VecDeque;
use std::time::Duration;

use sakshi_domain::delivery::{DeliveryId, QueuedDelivery};
use sakshi_trace::invariant::{Part, holds};
use tokio::time::Instant;

use super::budget::Need;

/// Maximum deliveries in memory for one receiver; further ones wait in the outbox.
const QUEUED_MAX: usize = 1_000;
/// Maximum deliveries per read of the outbox.
pub(super) const BATCH: usize = 500;

/// Source of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A notice that it was just queued, or a scan of the whole outbox.
    NoticeOrScan,
    /// A read of the outbox for this receiver alone.
    Refill,
}

/// A delivery taken out of the queue for its attempt.
#[derive(Debug)]
pub(super) struct DueDelivery {
    pub(super) delivery: QueuedDelivery,
    /// Time in the queue.
    pub(super) waited: Duration,
    /// True if the receiver had all its attempts in flight while the delivery waited.
    pub(super) receiver_was_busy: bool,
    /// Time for which the receiver's name has not resolved.
    pub(super) unresolved: Option<Duration>,
}

/// Queue of one receiver. When a delivery does not fit, the queue is behind. From then on it takes deliveries only in
/// the order of the outbox, until it has read the outbox to the end.
#[derive(Debug, Default)]
pub(super) struct ReceiverQueue {
    /// Deliveries with their times of arrival.
    queued: VecDeque<(Instant, QueuedDelivery)>,
    in_flight: usize,
    /// True if the receiver has a turn, or waits for its name to resolve or for memory.
    ready: bool,
    /// Last time at which all the receiver's attempts were in flight.
    full_at: Option<Instant>,
    /// Time since which the receiver's name has not resolved, because the resolver fails.
    unresolved_since: Option<Instant>,
    /// Last delivery of the outbox that the queue has seen.
    seen_until: Option<DeliveryId>,
    /// True if the outbox has deliveries for this receiver that the queue must read.
    behind: bool,
    /// First delivery not queued since the last refill began. Notices are not strictly ordered, so later deliveries may
    /// have been queued.
    first_missed: Option<DeliveryId>,
    refilling: bool,
}

impl ReceiverQueue {
    /// Queues a delivery. Returns `false` if a refill must read it later.
    pub(super) fn push(&mut self, delivery: QueuedDelivery, source: Source) -> bool {
        let id = delivery.id;
        let is_new = self.seen_until.is_none_or(|seen| id > seen);
        if self.queued.len() >= QUEUED_MAX || (self.behind && is_new && source == Source::NoticeOrScan) {
            self.behind = true;
            self.first_missed = Some(self.first_missed.map_or(id, |missed| missed.min(id)));
            return false;
        }
        if !self.behind {
            self.seen_until = self.seen_until.max(Some(id));
        }
        self.queued.push_back((Instant::now(), delivery));
        self.is_within_bound();
        true
    }

    fn is_within_bound(&self) -> bool {
        holds(Part::Dispatcher, "a queue of a receiver has its bound", self.queued.len() <= QUEUED_MAX)
    }

    /// Marks the receiver ready for a turn, unless it is ready, has nothing to send or has all its attempts in flight.
    /// Returns the time since which its next delivery has waited for the receiver's name to resolve.
    pub(super) fn become_ready(&mut self, in_flight_max: usize) -> Option<Instant> {
        if self.in_flight >= in_flight_max {
            self.full_at = Some(Instant::now());
            return None;
        }
        if self.ready {
            return None;
        }
        let (arrived_at, _) = self.queued.front()?;
        self.ready = true;
        Some(self.unresolved_since.map_or_else(Instant::now, |since| since.max(*arrived_at)))
    }

    /// Notes the end of a lookup of the receiver's name. `resolves` is false if the resolver still fails.
    pub(super) fn note_resolution(&mut self, resolves: bool, waiting_since: Instant) {
        self.unresolved_since = if resolves { None } else { self.unresolved_since.or(Some(waiting_since)) };
    }

    /// Returns the memory that the next delivery needs.
    pub(super) fn next_need(&self) -> Option<Need> {
        self.queued.front().map(|(_, next)| Need::for_delivery(next))
    }

    /// Takes the next delivery out for an attempt.
    pub(super) fn start_attempt(&mut self) -> Option<DueDelivery> {
        self.ready = false;
        let (arrived_at, delivery) = self.queued.pop_front()?;
        self.in_flight += 1;
        Some(DueDelivery {
            delivery,
            waited: arrived_at.elapsed(),
            receiver_was_busy: self.full_at.is_some_and(|at| at >= arrived_at),
            unresolved: self.unresolved_since.map(|since| since.max(arrived_at).elapsed()),
        })
    }

    /// Counts the end of an attempt.
    pub(super) fn end_attempt(&mut self) {
        holds(Part::Dispatcher, "an attempt that ends was in flight", self.in_flight > 0);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Starts a refill if the queue is behind and has room for a batch. Returns the delivery after which to read the
    /// outbox, or `Some(None)` for its beginning.
    pub(super) fn start_refill(&mut self) -> Option<Option<DeliveryId>> {
        let is_needed = self.behind && !self.refilling && self.queued.len() + BATCH <= QUEUED_MAX;
        is_needed.then(|| {
            self.refilling = true;
            if let Some(DeliveryId(missed)) = self.first_missed.take() {
                self.seen_until = self.seen_until.min(Some(DeliveryId(missed.saturating_sub(1))));
            }
            self.seen_until
        })
    }

    /// Ends a refill that has read the outbox up to `until`; `has_more` is true if the outbox did not end there.
    pub(super) fn finish_refill(&mut self, until: Option<DeliveryId>, has_more: bool) {
        holds(Part::Dispatcher, "a refill that ends was under way", self.refilling);
        self.refilling = false;
        self.seen_until = self.seen_until.max(until);
        self.behind = has_more || self.first_missed.is_some();
    }

    /// Returns the numbers of waiting webhooks and of attempts in flight.
    pub(super) fn waiting_and_in_flight(&self) -> (usize, usize) {
        (self.queued.len(), self.in_flight)
    }

    /// Returns the time at which the first waiting delivery arrived.
    pub(super) fn oldest_arrival(&self) -> Option<Instant> {
        self.queued.front().map(|(arrived_at, _)| *arrived_at)
    }

    /// Returns true if nothing waits, nothing is in flight and nothing is left to read.
    pub(super) fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.in_flight == 0 && !self.refilling && !self.behind
    }
}

#[cfg(test)]
mod tests {
    //! The tests' numbers follow from [`QUEUED_MAX`] of 1000 and [`BATCH`] of 500.

    use sakshi_domain::delivery::Receiver;
    use sakshi_domain::ids::{ClientId, TxnId};
    use sakshi_trace::invariant::broken_by;

    use super::*;

    fn delivery(id: u64) -> QueuedDelivery {
        let subject = TxnId::generate(ClientId::generate().partition(), 0).into();
        let receiver = Receiver { client: ClientId::generate(), origin: "http://127.0.0.1".into() };
        QueuedDelivery { id: DeliveryId(id), subject, receiver, app: None, stored_bytes: 0 }
    }

    /// Starts up to `count` attempts; returns the ids of their deliveries.
    fn start_attempts(queue: &mut ReceiverQueue, count: usize) -> Vec<u64> {
        (0..count).filter_map(|_| queue.start_attempt()).map(|due| due.delivery.id.0).collect()
    }

    #[test]
    fn a_full_queue_refills_in_order_and_nothing_overtakes() {
        let mut queue = ReceiverQueue::default();
        for id in 1..=1_500 {
            assert_eq!(queue.push(delivery(id), Source::NoticeOrScan), id <= 1_000);
        }
        assert_eq!((start_attempts(&mut queue, 499).len(), queue.start_refill()), (499, None), "a batch does not fit");
        assert_eq!(start_attempts(&mut queue, 1), [500]);
        assert!(!queue.push(delivery(1_501), Source::NoticeOrScan), "this delivery would overtake five hundred");
        assert_eq!(queue.start_refill(), Some(Some(DeliveryId(1_000))));
        assert_eq!(queue.start_refill(), None, "a refill is under way");
        assert!((1_001..=1_500).all(|id| queue.push(delivery(id), Source::Refill)));
        queue.finish_refill(Some(DeliveryId(1_500)), true);
        assert_eq!(start_attempts(&mut queue, 1_000), (501..=1_500).collect::<Vec<_>>());
        assert_eq!(queue.start_refill(), Some(Some(DeliveryId(1_500))));
        assert!(queue.push(delivery(1_501), Source::Refill));
        queue.finish_refill(Some(DeliveryId(1_501)), false);
        assert!(queue.push(delivery(1_502), Source::NoticeOrScan), "the refill has read to the end");
    }

    #[test]
    fn a_delivery_that_did_not_fit_is_read_after_a_later_one_was_taken() {
        let mut queue = ReceiverQueue::default();
        for id in (1..=999).chain([1_001, 1_000, 1_002]) {
            queue.push(delivery(id), Source::NoticeOrScan);
        }
        start_attempts(&mut queue, 1_000);
        assert_eq!(queue.start_refill(), Some(Some(DeliveryId(999))));
    }

    #[test]
    fn a_notice_during_a_refill_causes_another_refill() {
        let mut queue = ReceiverQueue::default();
        for id in 1..=1_001 {
            queue.push(delivery(id), Source::NoticeOrScan);
        }
        start_attempts(&mut queue, 1_000);
        assert!(queue.start_refill().is_some());
        assert!(!queue.push(delivery(1_002), Source::NoticeOrScan));
        assert!(queue.push(delivery(1_001), Source::Refill));
        queue.finish_refill(Some(DeliveryId(1_001)), false);
        assert_eq!(queue.start_refill(), Some(Some(DeliveryId(1_001))));
        assert!(queue.push(delivery(1_002), Source::Refill));
        queue.finish_refill(Some(DeliveryId(1_002)), false);
        assert_eq!((queue.start_refill(), start_attempts(&mut queue, 9)), (None, vec![1_001, 1_002]));
    }

    #[test]
    fn a_scan_adds_a_delivery_whose_notice_was_lost() {
        let mut queue = ReceiverQueue::default();
        for id in (1..=1_002).filter(|id| *id != 500) {
            queue.push(delivery(id), Source::NoticeOrScan);
        }
        start_attempts(&mut queue, 10);
        assert!(queue.push(delivery(500), Source::NoticeOrScan));
        assert!(!queue.push(delivery(1_003), Source::NoticeOrScan));
    }

    #[tokio::test(start_paused = true)]
    async fn a_delivery_knows_its_wait_and_whether_its_receiver_was_busy() {
        let (mut queue, one_second) = (ReceiverQueue::default(), Duration::from_secs(1));
        // Returns the id, the seconds waited and the busy mark of the attempt. At the limit of two, ends an attempt
        // instead.
        let mut begin_after_a_second = async |ids: &[u64]| {
            ids.iter().for_each(|id| assert!(queue.push(delivery(*id), Source::NoticeOrScan)));
            tokio::time::advance(one_second).await;
            let is_ready = queue.become_ready(2).is_some();
            let due = is_ready.then(|| queue.start_attempt()).flatten();
            if !is_ready {
                queue.end_attempt();
            }
            due.map(|due| (due.delivery.id.0, due.waited.as_secs(), due.receiver_was_busy))
        };
        assert_eq!(begin_after_a_second(&[1, 2, 3]).await, Some((1, 1, false)));
        assert_eq!(begin_after_a_second(&[]).await, Some((2, 2, false)));
        assert_eq!(begin_after_a_second(&[4]).await, None, "two are in flight");
        assert_eq!(begin_after_a_second(&[]).await, Some((3, 4, true)));
        assert_eq!(begin_after_a_second(&[]).await, None, "again");
        assert_eq!((begin_after_a_second(&[5]).await, begin_after_a_second(&[]).await), (Some((4, 4, true)), None));
        assert_eq!((begin_after_a_second(&[6]).await, begin_after_a_second(&[]).await), (Some((5, 3, true)), None));
        assert_eq!(begin_after_a_second(&[]).await, Some((6, 3, true)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_name_begins_at_arrival_or_at_its_first_failure() {
        let (mut queue, one_second, start) = (ReceiverQueue::default(), Duration::from_secs(1), Instant::now());
        let wait_began_s = |queue: &mut ReceiverQueue| queue.become_ready(9).map(|since| (since - start).as_secs());
        let waited_s =
            |queue: &mut ReceiverQueue| queue.start_attempt().unwrap().unresolved.map(|waited| waited.as_secs());
        assert!((1..=2).all(|id| queue.push(delivery(id), Source::NoticeOrScan)));
        tokio::time::advance(one_second).await;
        assert_eq!(wait_began_s(&mut queue), Some(1), "it waited for something else before");
        assert_eq!(wait_began_s(&mut queue), None, "it waits already");
        tokio::time::advance(one_second).await;
        queue.push(delivery(3), Source::NoticeOrScan);
        queue.note_resolution(false, start + one_second);
        assert_eq!((waited_s(&mut queue), wait_began_s(&mut queue)), (Some(1), Some(1)), "the name fails since then");
        queue.note_resolution(false, start + one_second);
        assert_eq!((waited_s(&mut queue), wait_began_s(&mut queue)), (Some(1), Some(2)), "it came later");
        queue.note_resolution(true, start + 2 * one_second);
        assert_eq!(waited_s(&mut queue), None);
    }

    #[test]
    fn a_queue_is_idle_when_nothing_waits_is_in_flight_or_is_left_to_read() {
        let mut queue = ReceiverQueue::default();
        assert!(queue.is_idle());
        queue.push(delivery(1), Source::NoticeOrScan);
        assert!(!queue.is_idle(), "a delivery waits");
        assert!(queue.start_attempt().is_some() && !queue.is_idle(), "an attempt is in flight");
        queue.end_attempt();
        assert!(queue.is_idle());
        queue.behind = true;
        assert!(!queue.is_idle(), "the outbox has more");
        assert!(queue.start_refill().is_some());
        queue.behind = false;
        assert!(!queue.is_idle(), "a refill is under way");
    }

    #[test]
    fn an_end_without_a_start_breaks_an_invariant() {
        let mut queue = ReceiverQueue::default();
        assert_eq!(broken_by(|| queue.end_attempt()), ["an attempt that ends was in flight"]);
        assert_eq!(broken_by(|| queue.finish_refill(None, false)), ["a refill that ends was under way"]);
        let queued = |number| (Instant::now(), delivery(number));
        queue.queued.extend((0..=QUEUED_MAX as u64).map(queued));
        let is_within = |queue: &ReceiverQueue| broken_by(|| _ = queue.is_within_bound());
        assert_eq!(is_within(&queue), ["a queue of a receiver has its bound"]);
        queue.queued.pop_back();
        assert!(is_within(&queue).is_empty());
    }
}
