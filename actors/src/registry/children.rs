//! Which transactions are live on a shard.
//!
//! The table is split into 256 small maps: one map that grows past a million entries moves them
//! all at once and stalls its arbiter for a third of a second.

use std::collections::HashMap;

use actix::Addr;
use sakshi_domain::ids::TxnId;

use crate::transaction::TransactionActor;

/// Live transactions by id.
#[derive(Debug)]
pub(super) struct Children {
    maps: Vec<HashMap<TxnId, Addr<TransactionActor>>>,
    len: usize,
}

impl Default for Children {
    fn default() -> Self {
        Self { maps: (0..256).map(|_| HashMap::new()).collect(), len: 0 }
    }
}

impl Children {
    /// The address of a live actor.
    pub(super) fn get(&self, id: &TxnId) -> Option<&Addr<TransactionActor>> {
        self.maps[slot(id)].get(id).filter(|child| child.connected())
    }

    /// Remembers an actor.
    pub(super) fn insert(&mut self, id: TxnId, child: Addr<TransactionActor>) {
        if self.maps[slot(&id)].insert(id, child).is_none() {
            self.len += 1;
        }
    }

    /// Forgets an actor that has ended, unless another one has taken its place.
    pub(super) fn forget_ended(&mut self, id: &TxnId) {
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

/// The last byte of the id is random.
fn slot(id: &TxnId) -> usize {
    usize::from(id.as_bytes()[15])
}
