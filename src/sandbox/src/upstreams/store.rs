//! The orders in memory, with limits on their number and bytes. Beyond a limit the oldest order is evicted. Its id is
//! remembered for a while, so that its page can say so.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::flow::flow_id::FlowId;

use super::entry::{OrderEntry, Upstream};
use super::error::FlowError;

/// Maximum orders in memory.
const ORDERS_MAX: usize = 500;
/// Maximum bytes of documents and waiting reports in memory.
const BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Maximum ids of evicted orders that are remembered.
const EVICTED_IDS_MAX: usize = 1_000;

/// All orders.
#[derive(Default)]
pub(super) struct OrderStore(Mutex<Orders>);

#[derive(Default)]
struct Orders {
    entries: HashMap<FlowId, Arc<OrderEntry>>,
    /// Ids of the entries, oldest first.
    by_age: VecDeque<FlowId>,
    /// Ids of evicted orders, oldest first.
    evicted: VecDeque<FlowId>,
}

impl OrderStore {
    /// Stores an order. Returns the stored entry for a repeated order.
    pub(super) fn insert(&self, entry: OrderEntry) -> Result<Arc<OrderEntry>, FlowError> {
        let mut orders = self.lock();
        let id = entry.order.id;
        if let Some(stored) = orders.entries.get(&id) {
            let is_same = stored.upstream == entry.upstream && stored.digest == entry.digest;
            return if is_same { Ok(Arc::clone(stored)) } else { Err(FlowError::ConflictingOrder) };
        }
        let entry = Arc::new(entry);
        orders.entries.insert(id, Arc::clone(&entry));
        orders.by_age.push_back(id);
        orders.evict_beyond_limits();
        Ok(entry)
    }

    /// Finds an order.
    pub(super) fn find(&self, upstream: Upstream, id: &str) -> Result<Arc<OrderEntry>, FlowError> {
        let id: FlowId = id.parse().map_err(|_| FlowError::NoSuchOrder)?;
        let orders = self.lock();
        match orders.entries.get(&id).filter(|entry| entry.upstream == upstream) {
            Some(entry) => Ok(Arc::clone(entry)),
            None if orders.evicted.contains(&id) => Err(FlowError::Evicted),
            None => Err(FlowError::NoSuchOrder),
        }
    }

    /// Returns the orders of an upstream, newest first.
    pub(super) fn newest_first(&self, upstream: Upstream) -> Vec<Arc<OrderEntry>> {
        let orders = self.lock();
        let entries = orders.by_age.iter().rev().filter_map(|id| orders.entries.get(id));
        entries.filter(|entry| entry.upstream == upstream).cloned().collect()
    }

    /// Locks the orders. No critical section can leave inconsistent data, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orders {
    /// Evicts the oldest orders until the limits are met: any order beyond the number, orders with documents beyond the
    /// bytes.
    fn evict_beyond_limits(&mut self) {
        while self.by_age.len() > ORDERS_MAX {
            self.evict(0);
        }
        while self.entries.values().map(|entry| entry.bytes_in_memory()).sum::<usize>() > BYTES_MAX {
            // The newest order is never evicted.
            let older = self.by_age.iter().take(self.by_age.len().saturating_sub(1));
            let has_bytes = |id: &FlowId| self.entries.get(id).is_some_and(|entry| entry.bytes_in_memory() > 0);
            let Some(oldest) = older.enumerate().find(|(_, id)| has_bytes(id)).map(|(index, _)| index) else { return };
            self.evict(oldest);
        }
    }

    /// Evicts the order at an index of `by_age`.
    fn evict(&mut self, index: usize) {
        let Some(id) = self.by_age.remove(index) else { return };
        self.entries.remove(&id);
        if self.evicted.len() == EVICTED_IDS_MAX {
            self.evicted.pop_front();
        }
        self.evicted.push_back(id);
    }
}
