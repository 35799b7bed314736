//! Batches and queries by slot: a server handles the ones of a slot in one call, with a call for each slot.

use super::{Batch, Guard, Key, Op, Place};

/// Returns a key of the batch's slot.
pub fn first_key(batch: &Batch) -> Option<&Key> {
    batch
        .guards
        .first()
        .map(Guard::key)
        .or_else(|| batch.ops.first().map(Op::key))
        .or(batch.call.as_ref().map(|(_, key)| key))
}

/// Groups items by slot. Returns the indexes of the items in each group.
pub fn by_slot<T>(items: &[T], key: impl Fn(&T) -> Option<&Key>) -> Vec<Vec<usize>> {
    let mut slots: Vec<(Option<&Key>, Vec<usize>)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item);
        let is_same = |known: Option<&Key>| match (known, key) {
            (Some(known), Some(key)) => known.place == key.place && (key.place != Place::Alone || known == key),
            (known, key) => known.is_none() && key.is_none(),
        };
        match slots.iter_mut().find(|(known, _)| is_same(*known)) {
            Some((_, indexes)) => indexes.push(index),
            None => slots.push((key, vec![index])),
        }
    }
    slots.into_iter().map(|(_, indexes)| indexes).collect()
}

/// Returns the answers of all slots, in the order of the requests.
pub fn in_order<T>(count: usize, slots: &[Vec<usize>], answers: Vec<Vec<T>>) -> Vec<T> {
    let mut ordered: Vec<Option<T>> = (0..count).map(|_| None).collect();
    for (index, answer) in slots.iter().flatten().zip(answers.into_iter().flatten()) {
        ordered[*index] = Some(answer);
    }
    ordered.into_iter().flatten().collect()
}
