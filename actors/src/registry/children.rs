//! Which actors are live on a shard.
//!
//! The table is split into 256 small maps: one map that grows past a million entries moves them
//! all at once and stalls its arbiter for a third of a second.

use std::collections::HashMap;

use actix::{Actor, Addr};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{EventId, TxnId};

/// An id by which an actor is known, a registry routes, and the small maps are told apart.
pub(crate) trait Key: Copy + Eq + std::hash::Hash + std::fmt::Debug + std::fmt::Display + Send + Unpin + 'static {
    /// A random byte of the id.
    fn slot(&self) -> u8;
    /// The shard byte: a node with N shards serves the id on shard `shard_byte % N`.
    fn shard_byte(&self) -> u8;
}

impl Key for TxnId {
    fn slot(&self) -> u8 {
        self.as_bytes()[15]
    }

    fn shard_byte(&self) -> u8 {
        Self::shard_byte(self)
    }
}

impl Key for FlowId {
    fn slot(&self) -> u8 {
        self.as_bytes()[15]
    }

    fn shard_byte(&self) -> u8 {
        Self::shard_byte(self)
    }
}

impl Key for EventId {
    fn slot(&self) -> u8 {
        self.as_bytes()[11]
    }

    fn shard_byte(&self) -> u8 {
        Self::shard_byte(self)
    }
}

/// Live actors by id.
#[derive(Debug)]
pub(super) struct Children<K, A: Actor> {
    maps: Vec<HashMap<K, Addr<A>>>,
    len: usize,
}

impl<K, A: Actor> Default for Children<K, A> {
    fn default() -> Self {
        Self { maps: (0..256).map(|_| HashMap::new()).collect(), len: 0 }
    }
}

impl<K: Key, A: Actor> Children<K, A> {
    /// The address of a live actor.
    pub(super) fn get(&self, id: &K) -> Option<&Addr<A>> {
        self.maps[slot(id)].get(id).filter(|child| child.connected())
    }

    /// Remembers an actor.
    pub(super) fn insert(&mut self, id: K, child: Addr<A>) {
        if self.maps[slot(&id)].insert(id, child).is_none() {
            self.len += 1;
        }
    }

    /// Forgets an actor that has ended, unless another one has taken its place.
    pub(super) fn forget_ended(&mut self, id: &K) {
        let map = &mut self.maps[slot(id)];
        if map.get(id).is_some_and(|child| !child.connected()) {
            map.remove(id);
            self.len -= 1;
        }
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }
}

fn slot<K: Key>(id: &K) -> usize {
    usize::from(id.slot())
}
