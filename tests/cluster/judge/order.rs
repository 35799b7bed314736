//! The check of a history: `stateright` searches for an order in which every operation happens once, between its
//! request and its response, with the model's response (linearisability).

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use stateright::semantics::{ConsistencyTester as _, LinearizabilityTester, SequentialSpec};

/// Positions of a search after which it ends without a verdict.
const POSITIONS_MAX: usize = 200_000;
/// Id of the first thread for operations without a response. Each has a thread of its own; the search tries them last.
const FIRST_UNANSWERED_THREAD: usize = 1_000_000;

/// An operation and its response. Times count from the start of the run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fact<Op, Ret> {
    pub(crate) process: u32,
    pub(crate) op: Op,
    pub(crate) invoked: Duration,
    /// The time of the response, and the response. `None` without a response: the operation may have happened at any
    /// later time, or never.
    pub(crate) ended: Option<(Duration, Ret)>,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// An order explains all responses.
    Ordered,
    /// No order explains the responses up to this time.
    Impossible(Duration),
    /// The search was too long.
    Undecided,
}

/// A model that rejects positions which the search has already visited: equal states after the same answered
/// operations.
///
/// An unanswered operation may take effect at any time or never. The search places it only before the last response,
/// and only where it changes the state. The model's state records which of them took effect, so `done` needs bits only
/// for the answered ones.
#[derive(Clone)]
struct Memo<M> {
    model: M,
    /// The answered operations that are done, as bits.
    done: Vec<u64>,
    /// Number of answered operations that are not done.
    remaining: usize,
    visited: Rc<RefCell<HashSet<Position<M>>>>,
}

/// The answered operations that are done, as bits, and the state after them.
type Position<M> = (Vec<u64>, M);

impl<M: SequentialSpec + Clone + Eq + Hash> Memo<M> {
    /// Returns true on the first visit of this position.
    fn is_new(&self) -> bool {
        let mut visited = self.visited.borrow_mut();
        visited.len() <= POSITIONS_MAX && visited.insert((self.done.clone(), self.model.clone()))
    }
}

impl<M: SequentialSpec + Clone + Eq + Hash> SequentialSpec for Memo<M> {
    type Op = (usize, M::Op);
    type Ret = Option<M::Ret>;

    fn invoke(&mut self, (_, op): &Self::Op) -> Self::Ret {
        self.model.invoke(op);
        None
    }

    fn is_valid_step(&mut self, (index, op): &Self::Op, ret: &Self::Ret) -> bool {
        if let Some(ret) = ret {
            self.remaining -= 1;
            self.done[index / 64] |= 1 << (index % 64);
            return self.model.is_valid_step(op, ret) && self.is_new();
        }
        let before = self.model.clone();
        self.model.invoke(op);
        self.remaining == 0 || (self.model != before && self.is_new())
    }
}

/// Searches for an order that explains a history, beginning with the state `initial`.
pub(crate) fn find_order<M>(initial: &M, facts: &[Fact<M::Op, M::Ret>]) -> Verdict
where
    M: SequentialSpec + Clone + Eq + Hash,
    M::Op: Clone + Debug,
    M::Ret: Clone + Debug,
{
    match is_ordered(initial, facts, Duration::MAX) {
        None => Verdict::Undecided,
        Some(true) => Verdict::Ordered,
        Some(false) => {
            let mut ends: Vec<Duration> = facts.iter().filter_map(|fact| Some(fact.ended.as_ref()?.0)).collect();
            ends.sort_unstable();
            let first = ends.partition_point(|end| is_ordered(initial, facts, *end) != Some(false));
            Verdict::Impossible(ends.get(first).copied().unwrap_or(Duration::MAX))
        }
    }
}

/// Returns true if the responses up to a time have an order; `None` if the search is too long.
fn is_ordered<M>(initial: &M, facts: &[Fact<M::Op, M::Ret>], until: Duration) -> Option<bool>
where
    M: SequentialSpec + Clone + Eq + Hash,
    M::Op: Clone + Debug,
    M::Ret: Clone + Debug,
{
    let response = |index: usize| facts[index].ended.as_ref().filter(|(end, _)| *end <= until);
    let invoked: Vec<usize> = (0..facts.len()).filter(|index| facts[*index].invoked <= until).collect();
    // Sorted with `false` before `true`, so that operations overlap if one begins when another ends.
    let requests = invoked.iter().map(|&index| (facts[index].invoked, false, index));
    let end_of = |index| response(index).map_or(Duration::MAX, |(end, _)| *end);
    let responses = invoked.iter().map(|&index| (end_of(index), true, index));
    let mut moments: Vec<_> = requests.chain(responses).collect();
    moments.sort_unstable();

    let visited = Rc::new(RefCell::new(HashSet::new()));
    let remaining = invoked.iter().filter(|index| response(**index).is_some()).count();
    let done = vec![0; facts.len().div_ceil(64)];
    let memo = Memo { model: initial.clone(), done, remaining, visited: Rc::clone(&visited) };
    let (mut tester, mut threads, mut idle) = (LinearizabilityTester::new(memo), vec![0; facts.len()], Vec::new());
    // A thread of the tester has one operation at a time, so ended operations free theirs.
    let mut thread_count = 0;
    for (_, is_response, index) in moments {
        let answer = response(index);
        let recorded = if is_response {
            idle.extend(answer.map(|_| threads[index]));
            tester.on_return(threads[index], answer.map(|(_, ret)| ret.clone())).map(drop)
        } else {
            let mut new_thread = || {
                thread_count += 1;
                thread_count
            };
            threads[index] = match answer {
                None => FIRST_UNANSWERED_THREAD + index,
                Some(_) => idle.pop().unwrap_or_else(&mut new_thread),
            };
            tester.on_invoke(threads[index], (index, facts[index].op.clone())).map(drop)
        };
        recorded.expect("each thread has one operation at a time");
    }
    let is_ordered = tester.is_consistent();
    let is_complete = visited.borrow().len() <= POSITIONS_MAX;
    (is_ordered || is_complete).then_some(is_ordered)
}
