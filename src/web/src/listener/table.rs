//! The connections of one worker. Near its limit the worker evicts connections of the addresses with the most. So
//! nobody can lock others out with open connections.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::counter;
use sakshi_trace::invariant::{Part, holds};
use tokio::sync::Notify;

use super::config::TableBounds;
use super::state::{ConnectionState, Phase};

/// Each eviction closes one in this many connections, which amortises its scan.
const CLOSED_ONE_IN: usize = 64;

/// The connections of one worker.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    listener: &'static str,
    bounds: TableBounds,
    /// Counts the activity of all connections, to order connections by their last activity.
    tick: Cell<u64>,
    next_key: Cell<u64>,
    open: RefCell<HashMap<u64, Rc<ConnectionState>>>,
}

/// A connection's entry; dropping it removes the connection.
#[derive(Debug)]
pub(super) struct Entry {
    table: Rc<ConnectionTable>,
    key: u64,
    pub(super) state: Rc<ConnectionState>,
    _slot: ConnectionSlot,
}

/// Counts one open connection of a worker for the accept loop, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    count: Arc<AtomicUsize>,
    /// Notified when the connection is closed, so that the accept loop can continue.
    slot_freed: Arc<Notify>,
}

impl ConnectionSlot {
    pub(super) fn new(count: &Arc<AtomicUsize>, slot_freed: &Arc<Notify>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self { count: Arc::clone(count), slot_freed: Arc::clone(slot_freed) }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let before = self.count.fetch_sub(1, Ordering::Release);
        holds(Part::Bounds, "an open connection is counted until it is closed", before > 0);
        self.slot_freed.notify_one();
    }
}

impl ConnectionTable {
    pub(super) fn new(listener: &'static str, bounds: TableBounds) -> Rc<Self> {
        for reason in ["quiet", "share", "memory", "unread"] {
            counter!("sakshi_connections_closed_total", "listener" => listener, "reason" => reason).increment(0);
        }
        Rc::new(Self { listener, bounds, tick: Cell::new(0), next_key: Cell::new(0), open: RefCell::default() })
    }

    /// Adds a connection of a subscriber, and evicts others if there are too many.
    pub(super) fn enter(self: &Rc<Self>, slot: ConnectionSlot, owner: IpAddr) -> Entry {
        let state = Rc::<ConnectionState>::default();
        let key = self.next_key.replace(self.next_key.get() + 1);
        state.set_peer(owner);
        state.touch(self.tick());
        let mut remaining = self.open.borrow().len();
        if remaining >= self.bounds.eviction_threshold {
            remaining = self.close_surplus();
        }
        if remaining >= self.bounds.probes_only_from {
            state.restrict_to_probes();
        }
        self.open.borrow_mut().insert(key, Rc::clone(&state));
        Entry { table: Rc::clone(self), key, state, _slot: slot }
    }

    /// Evicts connections of the subscribers with the most connections. The connections of a subscriber are evicted in
    /// the order of [`Phase`], then the longest quiet first. Idle connections of a proxy come last, because the proxy
    /// may be sending a request. A connection whose response is being computed stays. Returns the number of remaining
    /// connections.
    fn close_surplus(&self) -> usize {
        let open = self.open.borrow();
        let mut by_owner: HashMap<_, Vec<_>> = HashMap::new();
        for state in open.values().filter(|state| !state.is_closing()) {
            by_owner.entry(state.owner()).or_default().push((state.phase(), state.active_at(), state));
        }
        let remaining: usize = by_owner.values().map(Vec::len).sum();
        if remaining < self.bounds.eviction_threshold {
            return remaining;
        }
        let to_close = remaining + 1 + remaining / CLOSED_ONE_IN - self.bounds.eviction_threshold;
        let mut surplus = Vec::with_capacity(remaining);
        for (owner, mut connections) in by_owner {
            connections.sort_unstable_by_key(|(phase, active_at, _)| (*phase, *active_at));
            let total = connections.len();
            let closable = connections.into_iter().enumerate().filter(|(_, (phase, ..))| *phase != Phase::Computing);
            // Each eviction leaves the owner one connection less.
            surplus.extend(closable.map(|(before, (phase, active_at, state))| {
                ((owner.is_none(), Reverse(total - before), phase, active_at), state)
            }));
        }
        surplus.sort_unstable_by_key(|(order, _)| *order);
        let closed = surplus.len().min(to_close);
        for ((.., phase, _), state) in surplus.into_iter().take(closed) {
            state.close();
            let reason = if phase <= Phase::Idle { "quiet" } else { "share" };
            counter!("sakshi_connections_closed_total", "listener" => self.listener, "reason" => reason).increment(1);
        }
        remaining - closed
    }

    /// Wakes the tasks of all connections.
    pub(super) fn wake_all(&self) {
        self.open.borrow().values().for_each(|state| state.wake());
    }

    /// Returns the next number of an activity.
    fn tick(&self) -> u64 {
        self.tick.replace(self.tick.get() + 1)
    }
}

impl Entry {
    /// Marks the connection as active now.
    pub(super) fn touch(&self) {
        self.state.touch(self.table.tick());
    }

    /// Counts a connection that the service closes.
    pub(super) fn count_closed(&self, reason: &'static str) {
        counter!("sakshi_connections_closed_total", "listener" => self.table.listener, "reason" => reason).increment(1);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.table.open.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::listener::state::ActiveRequest;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    /// Builds a table that never restricts connections to probes.
    fn evicting_table(eviction_threshold: usize) -> Rc<ConnectionTable> {
        ConnectionTable::new("test", TableBounds { eviction_threshold, probes_only_from: usize::MAX })
    }

    fn enter(table: &Rc<ConnectionTable>, owner: IpAddr) -> Entry {
        table.enter(ConnectionSlot::new(&Arc::default(), &Arc::default()), owner)
    }

    fn closing_indexes(entries: &[Entry]) -> Vec<usize> {
        entries.iter().enumerate().filter(|(_, entry)| entry.state.is_closing()).map(|(index, _)| index).collect()
    }

    /// Begins a request without a body, and sends part of its response.
    fn begin_answering(entry: &Entry) -> ActiveRequest {
        let active = ActiveRequest::begin(Rc::clone(&entry.state), Some(0));
        entry.state.note_answered();
        active
    }

    #[test]
    fn the_longest_idle_connection_is_closed_and_a_computing_one_stays() {
        let table = evicting_table(3);
        let entries: Vec<_> = (0..3).map(|_| enter(&table, A)).collect();
        let in_flight = ActiveRequest::begin(Rc::clone(&entries[0].state), Some(0));
        entries[1].touch();
        let newcomer = enter(&table, A);
        assert_eq!((closing_indexes(&entries), newcomer.state.is_closing()), (vec![2], false));
        let _another = enter(&table, A);
        assert_eq!(closing_indexes(&entries), [1, 2]);
        drop((in_flight, entries, newcomer));
        assert_eq!(table.open.borrow().len(), 1);
    }

    #[test]
    fn unused_connections_are_closed_before_idle_ones() {
        let table = evicting_table(3);
        let entries: Vec<_> = (0..3).map(|_| enter(&table, A)).collect();
        drop(begin_answering(&entries[0]));
        let newcomers = [enter(&table, A), enter(&table, A)];
        assert_eq!((closing_indexes(&entries), closing_indexes(&newcomers)), (vec![1, 2], vec![]));
    }

    #[test]
    fn the_largest_owner_loses_idle_then_answering_then_arriving_connections() {
        let table = evicting_table(6);
        let entries: Vec<_> = [A, B, A, A, A, B].into_iter().map(|owner| enter(&table, owner)).collect();
        let _unread = begin_answering(&entries[2]);
        let _arrives = ActiveRequest::begin(Rc::clone(&entries[0].state), Some(9));
        let _computed = ActiveRequest::begin(Rc::clone(&entries[3].state), Some(0));
        let mut closed = Vec::new();
        let mut newcomers = Vec::new();
        for last in 1..=4 {
            newcomers.push(enter(&table, IpAddr::V4(Ipv4Addr::new(198, 51, 100, last))));
            // Removes the closed connections.
            closed.extend(
                closing_indexes(&entries).into_iter().filter(|index| !closed.contains(index)).collect::<Vec<_>>(),
            );
            table.open.borrow_mut().retain(|_, state| !state.is_closing());
        }
        assert_eq!(
            closed,
            [4, 2, 1, 0],
            "A has four of six, then three; then both have two, and idle connections come first"
        );
        assert_eq!(table.open.borrow().len(), 6);
    }

    #[test]
    fn idle_connections_of_a_proxy_have_no_owner_and_are_closed_last() {
        let table = evicting_table(4);
        let entries: Vec<_> = [A, A, A, B].into_iter().map(|owner| enter(&table, owner)).collect();
        for entry in &entries[..2] {
            let request = begin_answering(entry);
            entry.state.set_owner(B);
            drop(request);
            assert_eq!(entry.state.owner(), None);
        }
        let in_flight = begin_answering(&entries[2]);
        entries[2].state.set_owner(B);
        let mut newcomers = vec![enter(&table, A)];
        assert_eq!(closing_indexes(&entries), [3], "B has most, through the proxy and without it");
        newcomers.push(enter(&table, A));
        assert_eq!(closing_indexes(&entries).len() + closing_indexes(&newcomers).len(), 2);
        assert!(closing_indexes(&entries).iter().all(|index| *index >= 2), "the connections of the proxy stay");
        drop((in_flight, newcomers));
    }

    #[test]
    fn the_longest_quiet_connection_is_closed_among_owners_of_one_each() {
        let table = evicting_table(4);
        let mut owners = (1..).map(|last| IpAddr::V4(Ipv4Addr::new(198, 51, 100, last)));
        let entries: Vec<_> = owners.by_ref().take(4).map(|owner| enter(&table, owner)).collect();
        entries[0].touch();
        let _unread = begin_answering(&entries[1]);
        let _newcomer = enter(&table, owners.next().unwrap());
        assert_eq!(closing_indexes(&entries), [2], "an unread response alone is no reason");
    }

    #[test]
    fn connections_beyond_the_limit_serve_probes_only() {
        let table = ConnectionTable::new("test", TableBounds { eviction_threshold: 1, probes_only_from: 2 });
        let mut computed = Vec::new();
        let mut are_for_probes = Vec::new();
        for owner in [A, B, A] {
            let entry = enter(&table, owner);
            are_for_probes.push(entry.state.refusal().is_some());
            computed.push((ActiveRequest::begin(Rc::clone(&entry.state), Some(0)), entry));
        }
        assert_eq!(are_for_probes, [false, false, true]);
    }
}
