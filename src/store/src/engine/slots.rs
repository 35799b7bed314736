//! Batches and queries by slot: a server applies those of one slot together, and those of each slot separately.

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

/// Returns the places of those with the same slot, in their order.
pub fn by_slot<T>(all: &[T], key: impl Fn(&T) -> Option<&Key>) -> Vec<Vec<usize>> {
    let mut slots: Vec<(Option<&Key>, Vec<usize>)> = Vec::new();
    for (place, one) in all.iter().enumerate() {
        let key = key(one);
        let is_same = |known: Option<&Key>| match (known, key) {
            (Some(known), Some(key)) => known.place == key.place && (key.place != Place::Alone || known == key),
            (known, key) => known.is_none() && key.is_none(),
        };
        match slots.iter_mut().find(|(known, _)| is_same(*known)) {
            Some((_, places)) => places.push(place),
            None => slots.push((key, vec![place])),
        }
    }
    slots.into_iter().map(|(_, places)| places).collect()
}

/// Returns the answers of slots in the order of the requests.
pub fn in_order<T>(number: usize, slots: &[Vec<usize>], answers: Vec<Vec<T>>) -> Vec<T> {
    let mut ordered: Vec<Option<T>> = (0..number).map(|_| None).collect();
    for (place, answer) in slots.iter().flatten().zip(answers.into_iter().flatten()) {
        ordered[*place] = Some(answer);
    }
    ordered.into_iter().flatten().collect()
}
