//! The connections of one worker. Near its limit it evicts connections of the addresses that have most. So nobody can
//! lock others out with open connections.

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

/// Share of connections closed per eviction; amortises the scan.
const CLOSED_ONE_IN: usize = 64;

/// The connections of one worker.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    listener: &'static str,
    bounds: TableBounds,
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
    freed: Arc<Notify>,
}

impl ConnectionSlot {
    pub(super) fn of(count: &Arc<AtomicUsize>, freed: &Arc<Notify>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self { count: Arc::clone(count), freed: Arc::clone(freed) }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let before = self.count.fetch_sub(1, Ordering::Release);
        holds(Part::Bounds, "an open connection is counted until it is closed", before > 0);
        self.freed.notify_one();
    }
}

impl ConnectionTable {
    pub(super) fn new(listener: &'static str, bounds: TableBounds) -> Rc<Self> {
        for reason in ["quiet", "share", "memory", "unread"] {
            counter!("sakshi_connections_closed_total", "listener" => listener, "reason" => reason).increment(0);
        }
        Rc::new(Self { listener, bounds, tick: Cell::new(0), next_key: Cell::new(0), open: RefCell::default() })
    }

    /// Adds a connection of a subscriber, and closes others if there are too many.
    pub(super) fn enter(self: &Rc<Self>, slot: ConnectionSlot, owner: IpAddr) -> Entry {
        let state = Rc::<ConnectionState>::default();
        let key = self.next_key.replace(self.next_key.get() + 1);
        state.set_peer(owner);
        state.touch(self.tick());
        let mut staying = self.open.borrow().len();
        if staying >= self.bounds.eviction_threshold {
            staying = self.close_surplus();
        }
        if staying >= self.bounds.probes_only_from {
            state.keep_for_probes();
        }
        self.open.borrow_mut().insert(key, Rc::clone(&state));
        Entry { table: Rc::clone(self), key, state, _slot: slot }
    }

    /// Evicts connections of the subscribers with the most, each in the order of [`Phase`], the longest quiet first.
    /// Idle proxy connections come last: a proxy may be sending a request on one. A connection whose response is being
    /// computed stays. Returns the number of remaining connections.
    fn close_surplus(&self) -> usize {
        let open = self.open.borrow();
        let mut by_owner: HashMap<_, Vec<_>> = HashMap::new();
        for state in open.values().filter(|state| !state.is_closing()) {
            by_owner.entry(state.owner()).or_default().push((state.phase(), state.active_at(), state));
        }
        let staying: usize = by_owner.values().map(Vec::len).sum();
        if staying < self.bounds.eviction_threshold {
            return staying;
        }
        let wanted = staying + 1 + staying / CLOSED_ONE_IN - self.bounds.eviction_threshold;
        let mut surplus = Vec::with_capacity(staying);
        for (owner, mut held) in by_owner {
            held.sort_unstable_by_key(|(phase, active_at, _)| (*phase, *active_at));
            let all = held.len();
            let closable = held.into_iter().enumerate().filter(|(_, (phase, ..))| *phase != Phase::Computing);
            // Each eviction leaves its owner one less.
            surplus.extend(closable.map(|(before, (phase, active_at, state))| {
                ((owner.is_none(), Reverse(all - before), phase, active_at), state)
            }));
        }
        surplus.sort_unstable_by_key(|(order, _)| *order);
        let closed = surplus.len().min(wanted);
        for ((.., phase, _), state) in surplus.into_iter().take(closed) {
            state.close();
            let reason = if phase <= Phase::Idle { "quiet" } else { "share" };
            counter!("sakshi_connections_closed_total", "listener" => self.listener, "reason" => reason).increment(1);
        }
        staying - closed
    }

    fn tick(&self) -> u64 {
        self.tick.replace(self.tick.get() + 1)
    }
}

impl Entry {
    /// Notes that the connection is active.
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

    fn table(eviction_threshold: usize, probes_only_from: usize) -> Rc<ConnectionTable> {
        ConnectionTable::new("test", TableBounds { eviction_threshold, probes_only_from })
    }

    fn enter(table: &Rc<ConnectionTable>, owner: IpAddr) -> Entry {
        table.enter(ConnectionSlot::of(&Arc::default(), &Arc::default()), owner)
    }

    fn closing(entries: &[Entry]) -> Vec<usize> {
        entries.iter().enumerate().filter(|(_, entry)| entry.state.is_closing()).map(|(place, _)| place).collect()
    }

    /// Begins a request without a body, with part of its response sent.
    fn answering(entry: &Entry) -> ActiveRequest {
        let active = ActiveRequest::begin(Rc::clone(&entry.state), Some(0));
        entry.state.note_answered();
        active
    }

    #[test]
    fn the_longest_idle_connection_is_closed_and_one_whose_answer_is_computed_stays() {
        let table = table(3, 9);
        let entries: Vec<_> = (0..3).map(|_| enter(&table, A)).collect();
        let answered = ActiveRequest::begin(Rc::clone(&entries[0].state), Some(0));
        entries[1].touch();
        let newcomer = enter(&table, A);
        assert_eq!((closing(&entries), newcomer.state.is_closing()), (vec![2], false));
        let _another = enter(&table, A);
        assert_eq!(closing(&entries), [1, 2]);
        drop((answered, entries, newcomer));
        assert_eq!(table.open.borrow().len(), 1);
    }

    #[test]
    fn of_idle_connections_those_that_were_never_used_come_first() {
        let table = table(3, 9);
        let entries: Vec<_> = (0..3).map(|_| enter(&table, A)).collect();
        drop(answering(&entries[0]));
        let newcomers = [enter(&table, A), enter(&table, A)];
        assert_eq!((closing(&entries), closing(&newcomers)), (vec![1, 2], vec![]));
    }

    #[test]
    fn the_largest_holder_gives_way_with_idle_then_unread_answers_then_bodies() {
        let table = table(6, 9);
        let entries: Vec<_> = [A, B, A, A, A, B].into_iter().map(|owner| enter(&table, owner)).collect();
        let _unread = answering(&entries[2]);
        let _arrives = ActiveRequest::begin(Rc::clone(&entries[0].state), Some(9));
        let _computed = ActiveRequest::begin(Rc::clone(&entries[3].state), Some(0));
        let mut gone = Vec::new();
        let mut newcomers = Vec::new();
        for last in 1..=4 {
            newcomers.push(enter(&table, IpAddr::V4(Ipv4Addr::new(198, 51, 100, last))));
            // Closing connections have left.
            gone.extend(closing(&entries).into_iter().filter(|place| !gone.contains(place)).collect::<Vec<_>>());
            table.open.borrow_mut().retain(|_, state| !state.is_closing());
        }
        assert_eq!(
            gone,
            [4, 2, 1, 0],
            "A has four of six, then three; then both have two, and what is idle comes first"
        );
        assert_eq!(table.open.borrow().len(), 6);
    }

    #[test]
    fn a_proxys_idle_connections_are_nobodys_and_come_last() {
        let table = table(4, 9);
        let entries: Vec<_> = [A, A, A, B].into_iter().map(|owner| enter(&table, owner)).collect();
        for entry in &entries[..2] {
            let request = answering(entry);
            entry.state.set_owner(B);
            drop(request);
            assert_eq!(entry.state.owner(), None);
        }
        let under_way = answering(&entries[2]);
        entries[2].state.set_owner(B);
        let mut newcomers = vec![enter(&table, A)];
        assert_eq!(closing(&entries), [3], "B has most, through the proxy and without it");
        newcomers.push(enter(&table, A));
        assert_eq!(closing(&entries).len() + closing(&newcomers).len(), 2);
        assert!(closing(&entries).iter().all(|place| *place >= 2), "those of the proxy stay");
        drop((under_way, newcomers));
    }

    #[test]
    fn of_many_with_one_each_it_is_the_one_that_is_quiet_longest() {
        let table = table(4, 9);
        let mut owners = (1..).map(|last| IpAddr::V4(Ipv4Addr::new(198, 51, 100, last)));
        let entries: Vec<_> = owners.by_ref().take(4).map(|owner| enter(&table, owner)).collect();
        entries[0].touch();
        let _unread = answering(&entries[1]);
        let _newcomer = enter(&table, owners.next().unwrap());
        assert_eq!(closing(&entries), [2], "an unread answer is no reason by itself");
    }

    #[test]
    fn beyond_the_limit_there_are_connections_for_probes_alone() {
        let table = table(1, 2);
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
