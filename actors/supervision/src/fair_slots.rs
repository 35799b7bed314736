//! Fair slots: a number of slots that many owners share. No owner has more slots than are free.
//!
//! A single owner gets half of the slots at most, two owners a third each, and an owner without a slot always finds
//! one. A freed slot goes to the waiting owner with the fewest slots.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A number of slots, and their owners. Clones share them.
#[derive(Debug)]
pub struct FairSlots<K: Clone + Eq + Hash>(Arc<Mutex<State<K>>>);

/// The slots in use and the callers that wait for one.
#[derive(Debug)]
struct State<K: Clone + Eq + Hash> {
    total: usize,
    free: usize,
    /// Slots by owner, for owners with at least one.
    by_owner: HashMap<K, usize>,
    /// Waiting callers, in order of arrival.
    waiting: VecDeque<(K, oneshot::Sender<FairSlot<K>>)>,
}

/// A slot, freed on drop.
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
    /// Creates `total` free slots.
    #[must_use]
    pub fn new(total: usize) -> Self {
        Self(Arc::new(Mutex::new(State { total, free: total, by_owner: HashMap::new(), waiting: VecDeque::new() })))
    }

    /// Takes a slot, unless the owner has as many as are free.
    #[must_use]
    pub fn enter(&self, owner: &K) -> Option<FairSlot<K>> {
        self.lock().take(owner).then(|| FairSlot { slots: self.clone(), owner: owner.clone() })
    }

    /// Takes a slot as soon as this owner may have one. Returns `None` after `time`, or at once if as many callers of
    /// the owner wait as there are slots.
    pub async fn enter_within(&self, owner: &K, time: Duration) -> Option<FairSlot<K>> {
        let receiver = {
            let mut state = self.lock();
            if state.take(owner) {
                return Some(FairSlot { slots: self.clone(), owner: owner.clone() });
            }
            // Callers that have given up are dropped.
            state.waiting.retain(|(_, sender)| !sender.is_closed());
            if state.waiting.iter().filter(|(waiting, _)| waiting == owner).count() >= state.total {
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push_back((owner.clone(), sender));
            receiver
        };
        timeout(time, receiver).await.ok()?.ok()
    }

    /// Returns the number of slots in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        let state = self.lock();
        state.total - state.free
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn slots_taken_by(&self, owner: &K) -> usize {
        self.by_owner.get(owner).copied().unwrap_or(0)
    }

    /// Takes a slot. Returns false if the owner must not have another.
    fn take(&mut self, owner: &K) -> bool {
        let is_allowed = self.slots_taken_by(owner) < self.free;
        if is_allowed {
            self.free -= 1;
            *self.by_owner.entry(owner.clone()).or_default() += 1;
        }
        is_allowed
    }

    /// Frees a slot of this owner.
    fn release(&mut self, owner: &K) {
        self.free += 1;
        if let Some(slots) = self.by_owner.get_mut(owner) {
            *slots -= 1;
            if *slots == 0 {
                self.by_owner.remove(owner);
            }
        }
    }

    /// Takes a slot for the waiting owner with the fewest slots; among equals, for the first.
    fn take_for_next(&mut self) -> Option<(K, oneshot::Sender<FairSlot<K>>)> {
        self.waiting.retain(|(_, sender)| !sender.is_closed());
        let (index, _) = self.waiting.iter().enumerate().min_by_key(|(_, (owner, _))| self.slots_taken_by(owner))?;
        let owner = self.waiting.get(index)?.0.clone();
        if self.take(&owner) { self.waiting.remove(index) } else { None }
    }
}

impl<K: Clone + Eq + Hash> Drop for FairSlot<K> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.slots.lock();
            state.release(&self.owner);
            state.take_for_next()
        };
        if let Some((owner, sender)) = next {
            // A receiver that has given up drops the slot, which then goes to the next owner.
            drop(sender.send(FairSlot { slots: self.slots.clone(), owner }));
        }
    }
}

#[cfg(all(test, not(feature = "interleavings")))]
mod tests {
    use super::*;

    fn take_all<K: Clone + Eq + Hash>(slots: &FairSlots<K>, owner: &K) -> Vec<FairSlot<K>> {
        std::iter::from_fn(|| slots.enter(owner)).collect()
    }

    #[test]
    fn one_owner_gets_half_two_get_a_third_and_a_new_one_finds_a_slot() {
        let slots = FairSlots::new(12);
        let first = take_all(&slots, &"a");
        let second = take_all(&slots, &"b");
        assert_eq!((first.len(), second.len(), slots.in_use()), (6, 3, 9));
        let third = slots.enter(&"c");
        assert!(third.is_some() && slots.enter(&"a").is_none());
        drop(first);
        assert_eq!(take_all(&slots, &"b").len(), 3, "half of all slots");
        drop((second, third));
        assert_eq!(take_all(&slots, &"b").len(), 6);
        assert_eq!(slots.lock().by_owner.len(), 0, "owners without slots are removed");
        assert_eq!(take_all(&FairSlots::new(1), &"a").len(), 1);
        assert_eq!(take_all(&FairSlots::new(0), &"a").len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_waiting_owner_with_the_fewest_slots_comes_first() {
        let (slots, one_second) = (FairSlots::new(4), Duration::from_secs(1));
        let (mut slots_of_a, slots_of_b) = (take_all(&slots, &"a"), take_all(&slots, &"b"));
        assert_eq!((slots_of_a.len(), slots_of_b.len(), slots.in_use()), (2, 1, 3));
        let _last = slots.enter(&"d").unwrap();
        let wait = |owner: &'static str| {
            let slots = slots.clone();
            tokio::spawn(async move { slots.enter_within(&owner, one_second).await })
        };
        let (greedy, modest) = (wait("a"), wait("c"));
        tokio::task::yield_now().await;
        slots_of_a.pop();
        let modest = modest.await.unwrap();
        assert!(modest.is_some(), "c has no slot, and came later");
        assert!(greedy.await.unwrap().is_none(), "a has a slot, and no other is free");
        let aborted = wait("e");
        tokio::task::yield_now().await;
        aborted.abort();
        let patient = wait("f");
        tokio::task::yield_now().await;
        drop(slots_of_b);
        assert!(patient.await.unwrap().is_some(), "a caller that has given up blocks nobody");
        let waiting_calls: Vec<_> = (0..5).map(|_| wait("a")).collect();
        tokio::task::yield_now().await;
        assert_eq!(slots.lock().waiting.len(), 4, "of one owner, at most as many callers wait as there are slots");
        for waiting in waiting_calls {
            drop(waiting.await);
        }
        assert_eq!(slots.in_use(), 3);
    }
}

#[cfg(all(test, feature = "interleavings"))]
mod interleavings {
    use super::*;

    #[test]
    fn no_interleaving_gives_a_slot_twice_or_loses_one() {
        let scenario = || {
            let slots = FairSlots::new(3);
            let enter = |owner: &'static str| {
                let slots = slots.clone();
                shuttle::thread::spawn(move || {
                    let own: Vec<_> = (0..2).filter_map(|_| slots.enter(&owner)).collect();
                    assert!((own.len()..=3).contains(&slots.in_use()));
                    shuttle::thread::yield_now();
                    drop(own);
                })
            };
            for thread in [enter("a"), enter("a"), enter("b")] {
                thread.join().unwrap();
            }
            assert_eq!((slots.in_use(), slots.lock().by_owner.len()), (0, 0));
        };
        shuttle::check_random(scenario, 20_000);
    }

    #[test]
    fn in_every_interleaving_a_freed_slot_goes_to_a_caller_that_still_waits() {
        let scenario = || {
            let slots = FairSlots::new(1);
            let only_slot = slots.enter(&"a").unwrap();
            let (sender, mut receiver) = oneshot::channel();
            let (abandoned, abandoned_receiver) = oneshot::channel();
            slots.lock().waiting.extend([("gone", abandoned), ("patient", sender)]);
            let abandoning = shuttle::thread::spawn(move || drop(abandoned_receiver));
            let freeing = shuttle::thread::spawn(move || drop(only_slot));
            abandoning.join().unwrap();
            freeing.join().unwrap();
            let slot = receiver.try_recv().unwrap();
            assert_eq!((slot.owner, slots.in_use()), ("patient", 1));
        };
        shuttle::check_random(scenario, 20_000);
    }
}
