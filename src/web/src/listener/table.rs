//! The connections of one worker. Near its limit it closes those that have been idle longest, so that nobody can lock others out
//! by keeping connections open.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::counter;
use tokio::sync::Notify;

use super::state::ConnectionState;

/// One in so many connections is closed at a time, so that the search is paid for by several of them.
const CLOSED_ONE_IN: usize = 64;

/// The connections of one worker.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    listener: &'static str,
    /// Connections from which on idle ones are closed.
    eviction_threshold: usize,
    tick: Cell<u64>,
    next_key: Cell<u64>,
    open: RefCell<HashMap<u64, Rc<ConnectionState>>>,
}

/// A connection's entry, until this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    table: Rc<ConnectionTable>,
    key: u64,
    pub(super) state: Rc<ConnectionState>,
    _slot: ConnectionSlot,
}

/// Counts one open connection of a worker for the accept loop, until this is dropped.
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
        self.count.fetch_sub(1, Ordering::Release);
        self.freed.notify_one();
    }
}

impl ConnectionTable {
    pub(super) fn new(listener: &'static str, eviction_threshold: usize) -> Rc<Self> {
        for reason in ["quiet", "memory", "unread"] {
            counter!("sakshi_connections_closed_total", "listener" => listener, "reason" => reason).increment(0);
        }
        Rc::new(Self { listener, eviction_threshold, tick: Cell::new(0), next_key: Cell::new(0), open: RefCell::default() })
    }

    /// Adds a connection, and closes idle ones if there are too many.
    pub(super) fn enter(self: &Rc<Self>, slot: ConnectionSlot) -> Entry {
        let state = Rc::<ConnectionState>::default();
        let key = self.next_key.replace(self.next_key.get() + 1);
        state.touch(self.tick());
        if self.open.borrow().len() >= self.eviction_threshold {
            self.close_idle();
        }
        self.open.borrow_mut().insert(key, Rc::clone(&state));
        Entry { table: Rc::clone(self), key, state, _slot: slot }
    }

    /// Closes the connections that have been idle longest. Those with a request under way stay.
    fn close_idle(&self) {
        let open = self.open.borrow();
        let idle = open.values().filter(|state| state.is_idle() && !state.is_closing());
        let mut idle: Vec<_> = idle.map(|state| (state.active_at(), state)).collect();
        let closing = open.len() - open.values().filter(|state| !state.is_closing()).count();
        let wanted = (1 + open.len() / CLOSED_ONE_IN).saturating_sub(closing).min(idle.len());
        if wanted == 0 {
            return;
        }
        idle.select_nth_unstable_by_key(wanted - 1, |(active_at, _)| *active_at);
        idle[..wanted].iter().for_each(|(_, state)| state.close());
        counter!("sakshi_connections_closed_total", "listener" => self.listener, "reason" => "quiet").increment(wanted as u64);
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
    use super::*;
    use crate::listener::state::ActiveRequest;

    #[test]
    fn the_longest_idle_connection_is_closed_and_one_with_a_request_under_way_stays() {
        let table = ConnectionTable::new("test", 3);
        let enter = || table.enter(ConnectionSlot::of(&Arc::default(), &Arc::default()));
        let entries: Vec<_> = (0..3).map(|_| enter()).collect();
        let answered = ActiveRequest::begin(Rc::clone(&entries[0].state), Some(0));
        entries[1].touch();
        let newcomer = enter();
        let closing = |entries: &[Entry]| entries.iter().map(|entry| entry.state.is_closing()).collect::<Vec<_>>();
        assert_eq!((closing(&entries), newcomer.state.is_closing()), (vec![false, false, true], false));
        let _another = enter();
        assert_eq!(closing(&entries), [false, false, true], "one that is closing already makes room for this one");
        drop((answered, entries, newcomer));
        assert_eq!(table.open.borrow().len(), 1);
    }
}
