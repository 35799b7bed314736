//! The orders in memory, with limits on their number and bytes. Beyond a limit the oldest order is
//! dropped, and its id is remembered for a while so that its page can say so.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::flow::flow_id::FlowId;

use super::entry::{OrderEntry, Upstream};
use super::error::FlowError;

/// Orders that are kept.
const ORDERS_MAX: usize = 500;
/// Bytes of documents and waiting reports that are kept.
const BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Ids of dropped orders that are remembered.
const GIVEN_UP_MAX: usize = 1_000;

/// All orders.
#[derive(Default)]
pub(super) struct OrderStore(Mutex<Orders>);

#[derive(Default)]
struct Orders {
    entries: HashMap<FlowId, Arc<OrderEntry>>,
    /// Their ids, oldest first.
    order: VecDeque<FlowId>,
    given_up: VecDeque<FlowId>,
}

impl OrderStore {
    /// Stores an order. For a repeated order, returns the stored one.
    pub(super) fn take(&self, entry: OrderEntry) -> Result<Arc<OrderEntry>, FlowError> {
        let mut orders = self.orders();
        let id = entry.order.id;
        if let Some(held) = orders.entries.get(&id) {
            let same = held.upstream == entry.upstream && held.digest == entry.digest;
            return if same { Ok(Arc::clone(held)) } else { Err(FlowError::OrderedOtherwise) };
        }
        let entry = Arc::new(entry);
        orders.entries.insert(id, Arc::clone(&entry));
        orders.order.push_back(id);
        orders.make_room();
        Ok(entry)
    }

    /// Finds an order.
    pub(super) fn find(&self, upstream: Upstream, id: &str) -> Result<Arc<OrderEntry>, FlowError> {
        let id: FlowId = id.parse().map_err(|_| FlowError::NoSuchFlow)?;
        let orders = self.orders();
        match orders.entries.get(&id).filter(|entry| entry.upstream == upstream) {
            Some(entry) => Ok(Arc::clone(entry)),
            None if orders.given_up.contains(&id) => Err(FlowError::GivenUp),
            None => Err(FlowError::NoSuchFlow),
        }
    }

    /// Returns the orders of an upstream, newest first.
    pub(super) fn newest(&self, upstream: Upstream) -> Vec<Arc<OrderEntry>> {
        let orders = self.orders();
        let entries = orders.order.iter().rev().filter_map(|id| orders.entries.get(id));
        entries.filter(|entry| entry.upstream == upstream).cloned().collect()
    }

    /// No critical section can leave inconsistent data, so poisoning is ignored.
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orders {
    fn make_room(&mut self) {
        while self.order.len() > ORDERS_MAX {
            self.give_up(0);
        }
        while self.entries.values().map(|entry| entry.held()).sum::<usize>() > BYTES_MAX {
            // Never the newest, for which room is made.
            let older = self.order.iter().take(self.order.len().saturating_sub(1));
            let holds = |id: &FlowId| self.entries.get(id).is_some_and(|entry| entry.held() > 0);
            let Some(oldest) = older.enumerate().find(|(_, id)| holds(id)).map(|(index, _)| index) else { return };
            self.give_up(oldest);
        }
    }

    fn give_up(&mut self, index: usize) {
        let Some(id) = self.order.remove(index) else { return };
        self.entries.remove(&id);
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up.push_back(id);
    }
}
