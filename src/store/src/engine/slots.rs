//! Batches and queries by slot of a Redis cluster: one call carries those of one slot. A partition is in one slot, and
//! a key outside the partitions is in its own.

use super::{Batch, Guard, Key, Op, Place};

/// Returns the first key of a batch, which determines its slot; `None` for an empty batch.
pub fn first_key(batch: &Batch) -> Option<&Key> {
    batch
        .guards
        .first()
        .map(Guard::key)
        .or_else(|| batch.ops.first().map(Op::key))
        .or(batch.call.as_ref().map(|(_, key)| key))
}

/// Groups items by the slot of their key. Returns the indexes of the items in each group.
pub fn by_slot<T>(items: &[T], key: impl Fn(&T) -> Option<&Key>) -> Vec<Vec<usize>> {
    let mut slots: Vec<(Option<&Key>, Vec<usize>)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item);
        // A key outside the partitions shares its slot with no other key.
        let is_in_slot_of = |known: Option<&Key>| match (known, key) {
            (Some(known), Some(key)) => known.place == key.place && (key.place != Place::Alone || known == key),
            (known, key) => known.is_none() && key.is_none(),
        };
        match slots.iter_mut().find(|(known, _)| is_in_slot_of(*known)) {
            Some((_, indexes)) => indexes.push(index),
            None => slots.push((key, vec![index])),
        }
    }
    slots.into_iter().map(|(_, indexes)| indexes).collect()
}

/// Returns the answers of all slots in the order of the `count` requests. `slots` has the indexes of the requests of
/// each slot, in the order of its answers.
pub fn in_order<T>(count: usize, slots: &[Vec<usize>], answers: Vec<Vec<T>>) -> Vec<T> {
    let mut ordered: Vec<Option<T>> = (0..count).map(|_| None).collect();
    for (index, answer) in slots.iter().flatten().zip(answers.into_iter().flatten()) {
        ordered[*index] = Some(answer);
    }
    ordered.into_iter().flatten().collect()
}
