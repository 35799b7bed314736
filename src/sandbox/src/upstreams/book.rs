//! The orders that are held, newest last, within a bound of count and one of bytes.
//!
//! Where either is passed, the oldest is given up, and for a while its page says so.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::flow::flow_id::FlowId;

use super::case::{Case, Upstream};
use super::error::FlowError;

/// Orders that are held.
const CASES_MAX: usize = 500;
/// Bytes of documents and waiting reports that are held.
const BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Orders that were given up and are remembered as such.
const GIVEN_UP_MAX: usize = 1_000;

/// All orders.
#[derive(Default)]
pub(super) struct Book(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    cases: HashMap<FlowId, Arc<Case>>,
    /// Their ids, oldest first.
    order: VecDeque<FlowId>,
    given_up: VecDeque<FlowId>,
}

impl Book {
    /// Takes an order; the same order again is the one that is held already.
    ///
    /// # Errors
    /// [`FlowError::OrderedOtherwise`].
    pub(super) fn take(&self, case: Case) -> Result<Arc<Case>, FlowError> {
        let mut pages = self.pages();
        let id = case.order.id;
        if let Some(held) = pages.cases.get(&id) {
            let same = held.upstream == case.upstream && held.digest == case.digest;
            return if same { Ok(Arc::clone(held)) } else { Err(FlowError::OrderedOtherwise) };
        }
        let case = Arc::new(case);
        pages.cases.insert(id, Arc::clone(&case));
        pages.order.push_back(id);
        pages.make_room();
        Ok(case)
    }

    /// An order that was taken.
    ///
    /// # Errors
    /// [`FlowError::NoSuchFlow`]; [`FlowError::GivenUp`].
    pub(super) fn find(&self, upstream: Upstream, id: &str) -> Result<Arc<Case>, FlowError> {
        let id: FlowId = id.parse().map_err(|_| FlowError::NoSuchFlow)?;
        let pages = self.pages();
        match pages.cases.get(&id).filter(|case| case.upstream == upstream) {
            Some(case) => Ok(Arc::clone(case)),
            None if pages.given_up.contains(&id) => Err(FlowError::GivenUp),
            None => Err(FlowError::NoSuchFlow),
        }
    }

    /// The orders of an upstream, newest first.
    pub(super) fn newest(&self, upstream: Upstream) -> Vec<Arc<Case>> {
        let pages = self.pages();
        let cases = pages.order.iter().rev().filter_map(|id| pages.cases.get(id));
        cases.filter(|case| case.upstream == upstream).cloned().collect()
    }

    /// Each critical section leaves its data whole, so a panic elsewhere does not spoil it.
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn make_room(&mut self) {
        while self.order.len() > CASES_MAX {
            self.give_up(0);
        }
        while self.cases.values().map(|case| case.held()).sum::<usize>() > BYTES_MAX {
            // The newest is the one for which room is made.
            let older = self.order.iter().take(self.order.len().saturating_sub(1));
            let holds = |id: &FlowId| self.cases.get(id).is_some_and(|case| case.held() > 0);
            let Some(oldest) = older.enumerate().find(|(_, id)| holds(id)).map(|(index, _)| index) else { return };
            self.give_up(oldest);
        }
    }

    fn give_up(&mut self, index: usize) {
        let Some(id) = self.order.remove(index) else { return };
        self.cases.remove(&id);
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up.push_back(id);
    }
}
