//! The timers of a shard: actors by their deadlines, in steps of a quarter second.
//!
//! One timer per actor in the runtime's own wheel costs more memory and stalls the arbiter when many fall due together.

use std::collections::BTreeMap;
use std::time::Duration;

/// Timers that are served before other work gets a turn.
pub(crate) const SLICE: usize = 256;
/// Timers checked for ended actors before other work gets a turn: a third of a millisecond when every check misses the
/// processor's caches.
pub(crate) const TIMERS_TIDIED: usize = 1_024;
/// Slices of [`TIMERS_TIDIED`] per tick while many actors have ended.
pub(crate) const TIDIED_PER_TICK: u32 = 4;
/// Pause between two of these slices.
pub(crate) const TIDY_PAUSE: Duration = Duration::from_millis(20);
/// The step of the wheel.
pub(crate) const TICK: Duration = Duration::from_millis(250);
const TICK_MS: i64 = 250;

/// Ids by the step at which they are due.
#[derive(Debug)]
pub(crate) struct Wheel<K> {
    buckets: BTreeMap<i64, Vec<K>>,
    len: usize,
    /// Position at which tidying continues: a bucket, and an index in it.
    tidy_position: (i64, usize),
}

impl<K> Default for Wheel<K> {
    fn default() -> Self {
        Self { buckets: BTreeMap::new(), len: 0, tidy_position: (i64::MIN, 0) }
    }
}

impl<K> Wheel<K> {
    /// Adds an id that is due at the first step not before `at_ms`, in milliseconds since the Unix epoch.
    pub(crate) fn add(&mut self, id: K, at_ms: i64) {
        let step = at_ms.saturating_add(TICK_MS - 1).div_euclid(TICK_MS);
        self.buckets.entry(step).or_default().push(id);
        self.len += 1;
    }

    /// Adds a further timer of one of `live` actors, unless the wheel is untidy. Tidying keeps the timers of live
    /// actors, so they must not grow without bound.
    pub(crate) fn add_further(&mut self, id: K, at_ms: i64, live: usize) {
        if !self.is_untidy(live) {
            self.add(id, at_ms);
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if so many timers may be of ended actors that a search is worthwhile: more than an eighth of
    /// `live`, plus one slice.
    pub(crate) const fn is_untidy(&self, live: usize) -> bool {
        self.len > live + live / 8 + TIMERS_TIDIED
    }

    /// Takes at most `limit` ids that are due at `now_ms`.
    pub(crate) fn take_due(&mut self, now_ms: i64, limit: usize) -> Vec<K> {
        let mut due = Vec::new();
        while due.len() < limit {
            let Some(mut bucket) = self.buckets.first_entry() else { break };
            if bucket.key().saturating_mul(TICK_MS) > now_ms {
                break;
            }
            let ids = bucket.get_mut();
            let first_taken = ids.len().saturating_sub(limit - due.len());
            due.extend(ids.drain(first_taken..));
            if ids.is_empty() {
                bucket.remove();
            }
        }
        self.len -= due.len();
        due
    }

    /// Checks the next `limit` ids, and drops those for which `keep` returns false.
    pub(crate) fn tidy(&mut self, limit: usize, keep: impl Fn(&K) -> bool) {
        let mut checks_left = limit;
        let (first_step, mut index) = self.tidy_position;
        for (step, ids) in self.buckets.range_mut(first_step..) {
            if *step != first_step {
                index = 0;
            }
            while index < ids.len() {
                if checks_left == 0 {
                    self.tidy_position = (*step, index);
                    return;
                }
                checks_left -= 1;
                if keep(&ids[index]) {
                    index += 1;
                } else {
                    ids.swap_remove(index);
                    self.len -= 1;
                }
            }
            if ids.len() < ids.capacity() / 2 {
                ids.shrink_to_fit();
            }
        }
        self.tidy_position = (i64::MIN, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashSet;

    use super::*;

    /// Returns ids from 0 on.
    fn ids(count: u32) -> Vec<u32> {
        (0..count).collect()
    }

    #[test]
    fn ids_are_due_at_their_time_and_never_earlier() {
        let mut wheel = Wheel::default();
        let ids = ids(3);
        for (id, at) in ids.iter().zip([1_000, 1_001, 5_000]) {
            wheel.add(*id, at);
        }
        assert!(wheel.take_due(999, 10).is_empty());
        assert_eq!(wheel.take_due(1_000, 10), [ids[0]]);
        assert_eq!(wheel.take_due(1_250, 10), [ids[1]]);
        assert!(wheel.take_due(4_999, 10).is_empty());
        assert_eq!(wheel.take_due(60_000, 10), [ids[2]]);
    }

    #[test]
    fn ids_that_are_due_together_come_in_slices_and_none_is_lost() {
        let mut wheel = Wheel::default();
        let all = ids(1_000);
        all.iter().for_each(|id| wheel.add(*id, 10));
        let mut woken = Vec::new();
        loop {
            let slice = wheel.take_due(250, 256);
            assert!(slice.len() <= 256);
            if slice.is_empty() {
                break;
            }
            woken.extend(slice);
        }
        woken.sort_unstable();
        let mut all = all;
        all.sort_unstable();
        assert_eq!(woken, all);
    }

    #[test]
    fn a_slice_may_take_a_part_of_a_step() {
        let mut wheel = Wheel::default();
        let (first_step, second_step) = (TICK_MS, 2 * TICK_MS);
        ids(20).iter().for_each(|id| wheel.add(*id, if *id < 10 { first_step } else { second_step }));
        assert_eq!(wheel.take_due(second_step, 15).len(), 15);
        assert_eq!(wheel.take_due(second_step, 15).len(), 5);
    }

    #[test]
    fn tidying_drops_only_ended_ids() {
        let mut wheel = Wheel::default();
        let ids = ids(10);
        for (index, id) in ids.iter().enumerate() {
            wheel.add(*id, i64::try_from(index).unwrap() * 250);
        }
        for _ in 0..4 {
            wheel.tidy(4, |id| *id != ids[3] && *id != ids[9]);
        }
        let due = wheel.take_due(100_000, 100);
        assert_eq!(due, [&ids[..3], &ids[4..9]].concat());
    }

    #[test]
    fn a_round_of_tidying_checks_a_bounded_number_of_ids() {
        let mut wheel = Wheel::default();
        let ids = ids(1_000);
        ids.iter().for_each(|id| wheel.add(*id, 250));
        let (live, ended) = ids.split_at(300);
        let live: HashSet<_> = live.iter().collect();
        for _ in 0..10 {
            let checks = Cell::new(0);
            wheel.tidy(100, |id| {
                checks.set(checks.get() + 1);
                live.contains(id)
            });
            assert_eq!(checks.get(), 100);
        }
        let due = wheel.take_due(250, 1_000);
        assert!(due.len() == live.len() && due.iter().all(|id| !ended.contains(id)), "each was checked once");
    }

    #[test]
    fn a_wheel_may_have_an_eighth_and_one_slice_of_ended_timers() {
        let mut wheel = Wheel::default();
        ids(16 + 2 + 1_024).iter().for_each(|id| wheel.add(*id, 250));
        assert!(!wheel.is_untidy(16));
        wheel.add(2_000, 250);
        assert!(wheel.is_untidy(16));
    }

    #[test]
    fn further_timers_of_a_live_actor_are_bounded() {
        let mut wheel = Wheel::default();
        (0..10_000).for_each(|at_ms| wheel.add_further("live", at_ms, 1));
        assert_eq!(wheel.len, 1 + 1 + 1_024);
        wheel.add("another", 0);
        assert_eq!(wheel.len, 1 + 1 + 1_024 + 1, "an actor that starts has its timer in any case");
    }

    #[test]
    fn a_wheel_is_untidy_while_many_of_its_timers_are_of_ended_actors() {
        let mut wheel = Wheel::default();
        let ids = ids(3_000);
        ids.iter().for_each(|id| wheel.add(*id, 250));
        assert!(!wheel.is_untidy(3_000) && !wheel.is_untidy(2_000), "a few are not worth the time");
        assert!(wheel.is_untidy(1_500));
        wheel.tidy(ids.len(), |id| ids[..1_500].contains(id));
        assert!(!wheel.is_untidy(1_500));
        wheel.take_due(250, 1_400);
        assert!(!wheel.is_untidy(0));
        ids[..2_000].iter().for_each(|id| wheel.add(*id, 500));
        assert!(wheel.is_untidy(100));
    }
}
