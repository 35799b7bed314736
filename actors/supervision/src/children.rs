//! Live actors of a shard.
//!
//! The table is split into 256 small maps. One map that grows past a million entries moves them all at once and stalls
//! its arbiter for a third of a second.

use std::collections::HashMap;

use actix::Addr;

use crate::shard_actor::ShardActor;

/// Number of maps: one for each value of the random byte of an id.
const MAPS: usize = 256;

/// Live actors by id.
#[derive(Debug)]
pub(crate) struct Children<A: ShardActor> {
    maps: Vec<HashMap<A::Id, Addr<A>>>,
    len: usize,
}

impl<A: ShardActor> Default for Children<A> {
    fn default() -> Self {
        Self { maps: (0..MAPS).map(|_| HashMap::new()).collect(), len: 0 }
    }
}

impl<A: ShardActor> Children<A> {
    /// Returns the address of a live actor.
    pub(crate) fn get(&self, id: &A::Id) -> Option<&Addr<A>> {
        self.maps[map_index::<A>(id)].get(id).filter(|child| child.connected())
    }

    /// Adds an actor.
    pub(crate) fn insert(&mut self, id: A::Id, child: Addr<A>) {
        if self.maps[map_index::<A>(&id)].insert(id, child).is_none() {
            self.len += 1;
        }
    }

    /// Removes an actor that has ended, unless another one has replaced it.
    pub(crate) fn remove_ended(&mut self, id: &A::Id) {
        let map = &mut self.maps[map_index::<A>(id)];
        if map.get(id).is_some_and(|child| !child.connected()) {
            map.remove(id);
            self.len -= 1;
        }
    }

    /// Returns the number of actors.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

fn map_index<A: ShardActor>(id: &A::Id) -> usize {
    usize::from(A::random_byte(id))
}
