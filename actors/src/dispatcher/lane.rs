//! The deliveries to one origin: a bounded queue of outbox positions and a count of attempts.

use std::collections::VecDeque;

use sakshi_domain::delivery::{DeliveryId, QueuedDelivery, Subject};

/// Positions held in memory for one origin; the rest waits in the outbox.
pub(super) const HELD_MAX: usize = 1_000;

/// One origin's lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    queued: VecDeque<QueuedDelivery>,
    /// Attempts whose receiver has not answered yet.
    in_flight: usize,
    /// The same and those that are being recorded.
    under_way: usize,
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
        let room = self.in_flight < in_flight_max && self.under_way < in_flight_max.saturating_mul(2);
        let ready = !self.in_line && !self.queued.is_empty() && room;
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
        self.under_way += 1;
        Some(delivery)
    }

    /// An attempt of this lane has been made or given up.
    pub(super) fn free_place(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// It has been recorded, too.
    pub(super) fn end(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
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

    /// Whether nothing waits and nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.under_way == 0 && !self.reading && !self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::ids::{ClientId, TxnId};
    use sakshi_domain::web_address::{Schemes, WebAddress};

    use super::*;

    const PLACES: usize = 2;

    /// Begins as many attempts as the lane may.
    fn begun(lane: &mut Lane) -> usize {
        std::iter::from_fn(|| lane.line_up(PLACES).then(|| lane.begin()).flatten()).count()
    }

    #[test]
    fn attempts_that_are_being_recorded_leave_their_places_to_others_up_to_as_many() {
        let mut lane = Lane::default();
        for number in 1..=9 {
            let subject = Subject::Transaction(TxnId::generate(ClientId::generate().partition(), 0));
            let url = WebAddress::parse("https://hooks.example/", Schemes::HttpAndHttps).unwrap();
            assert!(lane.push(QueuedDelivery { id: DeliveryId(number), subject, url }));
        }
        assert_eq!(begun(&mut lane), PLACES);
        lane.free_place();
        assert_eq!(begun(&mut lane), 1, "while nothing is recorded yet");
        lane.free_place();
        lane.free_place();
        assert_eq!(begun(&mut lane), 1, "or as many would be under way without a place as with one");
        lane.end();
        assert_eq!(begun(&mut lane), 1);
    }
}
