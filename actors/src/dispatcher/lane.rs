//! The deliveries to one origin: a bounded queue of outbox positions and a count of attempts.

use std::collections::VecDeque;

use sakshi_domain::delivery::{DeliveryId, QueuedDelivery, Subject};

/// Positions held in memory for one origin; the rest waits in the outbox.
pub(super) const HELD_MAX: usize = 1_000;

/// One origin's lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    queued: VecDeque<QueuedDelivery>,
    in_flight: usize,
    in_line: bool,
    last: Option<DeliveryId>,
    /// More is waiting in the outbox than was taken into memory.
    overflowed: bool,
    reading: bool,
}

impl Lane {
    /// Takes a delivery in; `false` when the lane holds as many as it may.
    pub(super) fn push(&mut self, delivery: QueuedDelivery) -> bool {
        if self.queued.len() >= HELD_MAX {
            self.overflowed = true;
            return false;
        }
        self.last = self.last.max(Some(delivery.id));
        self.queued.push_back(delivery);
        true
    }

    /// Whether the lane should now be lined up for a turn; it is then in line.
    pub(super) fn line_up(&mut self, in_flight_max: usize) -> bool {
        let ready = !self.in_line && !self.queued.is_empty() && self.in_flight < in_flight_max;
        self.in_line |= ready;
        ready
    }

    /// What is sent next.
    pub(super) fn next(&self) -> Option<Subject> {
        self.queued.front().map(|delivery| delivery.subject)
    }

    /// Takes the lane's turn.
    pub(super) fn begin(&mut self) -> Option<QueuedDelivery> {
        self.in_line = false;
        let delivery = self.queued.pop_front()?;
        self.in_flight += 1;
        Some(delivery)
    }

    /// An attempt of this lane has ended.
    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Whether the lane has run low while more waits in the outbox.
    pub(super) fn wants_more(&self) -> bool {
        self.overflowed && !self.reading && self.queued.len() < HELD_MAX / 4
    }

    /// The outbox is being read for this lane.
    pub(super) fn reading(&mut self) {
        self.reading = true;
    }

    /// The outbox has been read; `more` when it did not end there.
    pub(super) fn read(&mut self, more: bool) {
        self.reading = false;
        self.overflowed = more;
    }

    /// The furthest position that was ever taken in.
    pub(super) const fn last(&self) -> Option<DeliveryId> {
        self.last
    }

    /// Whether nothing waits and nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.in_flight == 0 && !self.reading && !self.overflowed
    }
}
