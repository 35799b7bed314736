//! Fair slots: places that many owners share. No owner has more than are free.
//!
//! An owner alone has half of the places at most, two have a third each, and an owner with none finds one. A freed
//! place goes to the waiting owner with the fewest.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A number of places, and their owners. Clones share them.
#[derive(Debug)]
pub struct FairSlots<K: Clone + Eq + Hash>(Arc<Mutex<Places<K>>>);

#[derive(Debug)]
struct Places<K: Clone + Eq + Hash> {
    all: usize,
    free: usize,
    /// Places by owner, for owners with at least one.
    held: HashMap<K, usize>,
    /// Waiting callers, in order of arrival.
    waiting: VecDeque<(K, oneshot::Sender<FairSlot<K>>)>,
}

/// A place, given back on drop.
#[derive(Debug)]
pub struct FairSlot<K: Clone + Eq + Hash> {
    slots: FairSlots<K>,
    owner: K,
}

impl<K: Clone + Eq + Hash> Clone for FairSlots<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Eq + Hash> FairSlots<K> {
    /// Creates `places` free places.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(Places { all: places, free: places, held: HashMap::new(), waiting: VecDeque::new() })))
    }

    /// Takes a place, unless the owner has as many as are free.
    #[must_use]
    pub fn enter(&self, owner: &K) -> Option<FairSlot<K>> {
        self.places().take(owner).then(|| FairSlot { slots: self.clone(), owner: owner.clone() })
    }

    /// Takes a place as soon as there is one for this owner. Returns `None` after `time`, or at once if as many callers
    /// of the owner wait as there are places.
    pub async fn enter_within(&self, owner: &K, time: Duration) -> Option<FairSlot<K>> {
        let given = {
            let mut places = self.places();
            if places.take(owner) {
                return Some(FairSlot { slots: self.clone(), owner: owner.clone() });
            }
            // Callers that have given up are dropped.
            places.waiting.retain(|(_, place)| !place.is_closed());
            if places.waiting.iter().filter(|(waiting, _)| waiting == owner).count() >= places.all {
                return None;
            }
            let (place, given) = oneshot::channel();
            places.waiting.push_back((owner.clone(), place));
            given
        };
        timeout(time, given).await.ok()?.ok()
    }

    /// Returns the number of places taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        let places = self.places();
        places.all - places.free
    }

    fn places(&self) -> MutexGuard<'_, Places<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> Places<K> {
    fn held(&self, owner: &K) -> usize {
        self.held.get(owner).copied().unwrap_or(0)
    }

    /// Takes a place; false if the owner must not have another.
    fn take(&mut self, owner: &K) -> bool {
        let may = self.held(owner) < self.free;
        if may {
            self.free -= 1;
            *self.held.entry(owner.clone()).or_default() += 1;
        }
        may
    }

    fn give_back(&mut self, owner: &K) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(owner) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(owner);
            }
        }
    }

    /// Takes a place for the waiting owner with the fewest; among equals, for the first.
    fn take_for_next(&mut self) -> Option<(K, oneshot::Sender<FairSlot<K>>)> {
        self.waiting.retain(|(_, place)| !place.is_closed());
        let (place, _) = self.waiting.iter().enumerate().min_by_key(|(_, (owner, _))| self.held(owner))?;
        let owner = self.waiting.get(place)?.0.clone();
        if self.take(&owner) { self.waiting.remove(place) } else { None }
    }
}

impl<K: Clone + Eq + Hash> Drop for FairSlot<K> {
    fn drop(&mut self) {
        let next = {
            let mut places = self.slots.places();
            places.give_back(&self.owner);
            places.take_for_next()
        };
        if let Some((owner, place)) = next {
            // A receiver that has given up drops the place, which then goes to the next.
            drop(place.send(FairSlot { slots: self.slots.clone(), owner }));
        }
    }
}

#[cfg(all(test, not(feature = "interleavings")))]
mod tests {
    use super::*;

    fn taken<K: Clone + Eq + Hash>(slots: &FairSlots<K>, owner: &K) -> Vec<FairSlot<K>> {
        std::iter::from_fn(|| slots.enter(owner)).collect()
    }

    #[test]
    fn one_owner_has_half_and_two_a_third_each_and_who_has_none_finds_a_place() {
        let slots = FairSlots::new(12);
        let first = taken(&slots, &"a");
        let second = taken(&slots, &"b");
        assert_eq!((first.len(), second.len(), slots.taken()), (6, 3, 9));
        let third = slots.enter(&"c");
        assert!(third.is_some() && slots.enter(&"a").is_none());
        drop(first);
        assert_eq!(taken(&slots, &"b").len(), 3, "half of all");
        drop((second, third));
        assert_eq!(taken(&slots, &"b").len(), 6);
        assert_eq!(slots.places().held.len(), 0, "nothing is kept of who has none");
        assert_eq!(taken(&FairSlots::new(1), &"a").len(), 1);
        assert_eq!(taken(&FairSlots::new(0), &"a").len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn of_those_who_wait_the_owner_with_fewest_comes_first_and_nobody_waits_for_ever() {
        let (slots, second) = (FairSlots::new(4), Duration::from_secs(1));
        let (mut of_a, of_b) = (taken(&slots, &"a"), taken(&slots, &"b"));
        assert_eq!((of_a.len(), of_b.len(), slots.taken()), (2, 1, 3));
        let _last = slots.enter(&"d").unwrap();
        let wait = |owner: &'static str| {
            let slots = slots.clone();
            tokio::spawn(async move { slots.enter_within(&owner, second).await })
        };
        let (greedy, modest) = (wait("a"), wait("c"));
        tokio::task::yield_now().await;
        of_a.pop();
        let modest = modest.await.unwrap();
        assert!(modest.is_some(), "c has none, and was later");
        assert!(greedy.await.unwrap().is_none(), "a has one, and none is free");
        let gone = wait("e");
        tokio::task::yield_now().await;
        gone.abort();
        let patient = wait("f");
        tokio::task::yield_now().await;
        drop(of_b);
        assert!(patient.await.unwrap().is_some(), "who has given up stands in nobody's way");
        let many: Vec<_> = (0..5).map(|_| wait("a")).collect();
        tokio::task::yield_now().await;
        assert_eq!(slots.places().waiting.len(), 4, "no more of an owner wait than there are places");
        for waited in many {
            drop(waited.await);
        }
        assert_eq!(slots.taken(), 3);
    }
}

#[cfg(all(test, feature = "interleavings"))]
mod interleavings {
    use super::*;

    #[test]
    fn no_interleaving_gives_a_place_twice_or_loses_one() {
        let explored = || {
            let slots = FairSlots::new(3);
            let enter = |owner: &'static str| {
                let slots = slots.clone();
                shuttle::thread::spawn(move || {
                    let held: Vec<_> = (0..2).filter_map(|_| slots.enter(&owner)).collect();
                    assert!((held.len()..=3).contains(&slots.taken()));
                    shuttle::thread::yield_now();
                    drop(held);
                })
            };
            for thread in [enter("a"), enter("a"), enter("b")] {
                thread.join().unwrap();
            }
            assert_eq!((slots.taken(), slots.places().held.len()), (0, 0));
        };
        shuttle::check_random(explored, 20_000);
    }

    #[test]
    fn in_every_interleaving_who_waits_gets_the_place_and_who_has_given_up_does_not_keep_it() {
        let explored = || {
            let slots = FairSlots::new(1);
            let only = slots.enter(&"a").unwrap();
            let (place, mut given) = oneshot::channel();
            let (gone, received) = oneshot::channel();
            slots.places().waiting.extend([("gone", gone), ("patient", place)]);
            let gives_up = shuttle::thread::spawn(move || drop(received));
            let leaves = shuttle::thread::spawn(move || drop(only));
            gives_up.join().unwrap();
            leaves.join().unwrap();
            let place = given.try_recv().unwrap();
            assert_eq!((place.owner, slots.taken()), ("patient", 1));
        };
        shuttle::check_random(explored, 20_000);
    }
}
