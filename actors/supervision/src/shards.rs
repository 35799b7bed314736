//! The shards of a node for one kind of actor: one per worker, addressed by number.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use actix::Addr;

use crate::gate::Permit;
use crate::node::Node;
use crate::root::Root;
use crate::shard::Shard;
use crate::shard_actor::ShardActor;

/// Limits of the shards of a node.
#[derive(Clone, Copy, Debug)]
pub struct ShardBounds {
    /// Number of shards.
    pub shards: usize,
    /// Live actors of all shards.
    pub live: usize,
    /// Requests in flight to one shard.
    pub requests: usize,
}

/// Shards by number.
pub struct Shards<A: ShardActor> {
    /// One place per shard number; empty until a worker starts its shard there.
    places: Vec<RwLock<Option<Addr<Shard<A>>>>>,
    /// Visible states of the shards, by number.
    nodes: Vec<Arc<Node>>,
    root: Root,
    shared: A::Shared,
    /// Maximum live actors of one shard.
    live_max: usize,
}

impl<A: ShardActor> Shards<A> {
    /// Prepares shards named `{name}-{number}`. Each worker starts its shard with [`Self::start_here`].
    #[must_use]
    pub fn new(root: &Root, name: &str, kind: &'static str, shared: A::Shared, bounds: ShardBounds) -> Arc<Self> {
        let count = bounds.shards;
        let nodes: Vec<_> =
            (0..count).map(|index| Node::group(format!("{name}-{index}"), kind, bounds.requests)).collect();
        nodes.iter().for_each(|node| root.add_child(Arc::clone(node)));
        let places = (0..count).map(|_| RwLock::new(None)).collect();
        Arc::new(Self { places, nodes, root: root.clone(), shared, live_max: bounds.live.div_ceil(count) })
    }

    /// Starts a shard on the current arbiter with the first free number, and returns the number. A number is free at
    /// the start, or when its worker has died. `None` if all are taken.
    pub fn start_here(&self) -> Option<usize> {
        for (index, place) in self.places.iter().enumerate() {
            let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
            if place.as_ref().is_none_or(|shard| !shard.connected()) {
                let node = Arc::clone(&self.nodes[index]);
                *place = Some(Shard::start(node, self.shared.clone(), self.root.clone(), self.live_max));
                return Some(index);
            }
        }
        None
    }

    /// Returns the shard with this number, if it has started.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Addr<Shard<A>>> {
        self.places.get(index)?.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of the shard that serves an id.
    #[must_use]
    pub fn index_of(&self, id: &A::Id) -> usize {
        usize::from(A::shard_byte(id)) % self.places.len()
    }

    /// Returns the shard that serves an id, if it has started.
    #[must_use]
    pub fn shard_of(&self, id: &A::Id) -> Option<Addr<Shard<A>>> {
        self.get(self.index_of(id))
    }

    /// Takes a permit for one request to the shard with this number, unless too many are in flight.
    #[must_use]
    pub fn admit(&self, index: usize) -> Option<Permit> {
        self.nodes[index].requests().enter()
    }

    /// Returns true if the shard with this number has the maximum of live actors.
    #[must_use]
    pub fn is_full(&self, index: usize) -> bool {
        self.nodes[index].live() >= i64::try_from(self.live_max).unwrap_or(i64::MAX)
    }

    /// Returns a shard byte that this shard serves; `pick` selects one of them.
    #[must_use]
    pub fn shard_byte(&self, index: usize, pick: u64) -> u8 {
        let count = self.places.len();
        let choices = 256_usize.saturating_sub(index).div_ceil(count).max(1);
        let pick = usize::try_from(pick % choices as u64).unwrap_or(0);
        u8::try_from(index + pick * count).unwrap_or(0)
    }

    /// Returns the number of live actors of all shards.
    #[must_use]
    pub fn live(&self) -> i64 {
        self.nodes.iter().map(|node| node.live()).sum()
    }

    /// Returns true if every shard has started.
    #[must_use]
    pub fn all_started(&self) -> bool {
        (0..self.places.len()).all(|index| self.get(index).is_some_and(|shard| shard.connected()))
    }
}

impl<A: ShardActor> fmt::Debug for Shards<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shards({})", self.places.len())
    }
}
