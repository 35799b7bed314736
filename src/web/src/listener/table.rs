//! The connections of one worker. When they use up its share, those that have been quiet longest
//! make room: nobody waits to be let in because somebody else keeps connections open.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use metrics::counter;

use super::state::ConnectionState;

/// Of so many connections one is closed at a time, so that looking for the quietest costs little for each.
const SLICE: usize = 64;

/// The connections of one worker.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    listener: &'static str,
    /// Connections above which room is made.
    share: usize,
    moment: Cell<u64>,
    next: Cell<u64>,
    open: RefCell<HashMap<u64, Rc<ConnectionState>>>,
}

/// A connection's entry, until this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    table: Rc<ConnectionTable>,
    key: u64,
    pub(super) state: Rc<ConnectionState>,
}

impl ConnectionTable {
    pub(super) fn new(listener: &'static str, share: usize) -> Rc<Self> {
        Rc::new(Self { listener, share, moment: Cell::new(0), next: Cell::new(0), open: RefCell::default() })
    }

    /// Enters a connection, and makes room if it is one too many.
    pub(super) fn enter(self: &Rc<Self>) -> Entry {
        let state = Rc::new(ConnectionState::new());
        let key = self.next.replace(self.next.get() + 1);
        state.touch(self.moment());
        if self.open.borrow().len() >= self.share {
            self.make_room();
        }
        self.open.borrow_mut().insert(key, Rc::clone(&state));
        Entry { table: Rc::clone(self), key, state }
    }

    /// Closes the idle connections that have been quiet longest. Those with a request under way stay.
    fn make_room(&self) {
        let open = self.open.borrow();
        let idle = open.values().filter(|state| state.is_idle() && !state.is_condemned());
        let mut idle: Vec<_> = idle.map(|state| (state.active_at(), state)).collect();
        let leaving = open.len() - open.values().filter(|state| !state.is_condemned()).count();
        let wanted = (1 + open.len() / SLICE).saturating_sub(leaving).min(idle.len());
        if wanted == 0 {
            return;
        }
        idle.select_nth_unstable_by_key(wanted - 1, |(active_at, _)| *active_at);
        idle[..wanted].iter().for_each(|(_, state)| state.condemn());
        counter!("sakshi_connections_closed_total", "listener" => self.listener, "reason" => "quiet").increment(wanted as u64);
    }

    fn moment(&self) -> u64 {
        self.moment.replace(self.moment.get() + 1)
    }
}

impl Entry {
    /// The connection is active.
    pub(super) fn touch(&self) {
        self.state.touch(self.table.moment());
    }

    /// Counts that it is closed for a reason of ours.
    pub(super) fn closed(&self, reason: &'static str) {
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
    use crate::listener::state::Exchange;

    #[test]
    fn the_quietest_makes_room_and_who_is_being_answered_stays() {
        let table = ConnectionTable::new("test", 3);
        let entries: Vec<_> = (0..3).map(|_| table.enter()).collect();
        let answered = Exchange::begin(Rc::clone(&entries[0].state), Some(0));
        entries[1].touch();
        let newcomer = table.enter();
        let condemned = |entries: &[Entry]| entries.iter().map(|entry| entry.state.is_condemned()).collect::<Vec<_>>();
        assert_eq!((condemned(&entries), newcomer.state.is_condemned()), (vec![false, false, true], false));
        let _another = table.enter();
        assert_eq!(condemned(&entries), [false, false, true], "the one that leaves already makes room for this one");
        drop((answered, entries, newcomer));
        assert_eq!(table.open.borrow().len(), 1);
    }
}
