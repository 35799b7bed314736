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
/// Number of the first thread for an operation without a response. The search tries such threads last.
const UNANSWERED_THREADS: usize = 1_000_000;

/// An operation and its response. Times count from the start of the run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fact<Op, Ret> {
    pub(crate) process: u32,
    pub(crate) op: Op,
    pub(crate) invoked: Duration,
    /// `None` for an operation that may have happened at any later time, or never.
    pub(crate) ended: Option<(Duration, Ret)>,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ordered,
    /// No order explains the responses up to this time.
    Impossible(Duration),
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
    done: Vec<u64>,
    /// Number of answered operations that are not done.
    left: usize,
    seen: Rc<RefCell<HashSet<Position<M>>>>,
}

/// The answered operations that are done, as bits, and the state after them.
type Position<M> = (Vec<u64>, M);

impl<M: SequentialSpec + Clone + Eq + Hash> Memo<M> {
    /// Returns true on the first visit of this position.
    fn is_new(&self) -> bool {
        let mut seen = self.seen.borrow_mut();
        seen.len() <= POSITIONS_MAX && seen.insert((self.done.clone(), self.model.clone()))
    }
}

impl<M: SequentialSpec + Clone + Eq + Hash> SequentialSpec for Memo<M> {
    type Op = (usize, M::Op);
    type Ret = Option<M::Ret>;

    fn invoke(&mut self, (_, op): &Self::Op) -> Self::Ret {
        self.model.invoke(op);
        None
    }

    fn is_valid_step(&mut self, (at, op): &Self::Op, ret: &Self::Ret) -> bool {
        if let Some(ret) = ret {
            self.left -= 1;
            self.done[at / 64] |= 1 << (at % 64);
            return self.model.is_valid_step(op, ret) && self.is_new();
        }
        let before = self.model.clone();
        self.model.invoke(op);
        self.left == 0 || (self.model != before && self.is_new())
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
    let response = |at: usize| facts[at].ended.as_ref().filter(|(end, _)| *end <= until);
    let invoked: Vec<usize> = (0..facts.len()).filter(|at| facts[*at].invoked <= until).collect();
    // At equal times a request comes before a response: such operations overlap.
    let requests = invoked.iter().map(|&at| (facts[at].invoked, false, at));
    let responses = invoked.iter().map(|&at| (response(at).map_or(Duration::MAX, |(end, _)| *end), true, at));
    let mut moments: Vec<_> = requests.chain(responses).collect();
    moments.sort_unstable();

    let seen = Rc::new(RefCell::new(HashSet::new()));
    let left = invoked.iter().filter(|at| response(**at).is_some()).count();
    let memo = Memo { model: initial.clone(), done: vec![0; facts.len().div_ceil(64)], left, seen: Rc::clone(&seen) };
    let (mut tester, mut threads, mut idle) = (LinearizabilityTester::new(memo), vec![0; facts.len()], Vec::new());
    let mut count = 0;
    for (_, is_response, at) in moments {
        let answer = response(at);
        let recorded = if is_response {
            idle.extend(answer.map(|_| threads[at]));
            tester.on_return(threads[at], answer.map(|(_, ret)| ret.clone())).map(drop)
        } else {
            let mut next = || {
                count += 1;
                count
            };
            threads[at] = if answer.is_none() { UNANSWERED_THREADS + at } else { idle.pop().unwrap_or_else(&mut next) };
            tester.on_invoke(threads[at], (at, facts[at].op.clone())).map(drop)
        };
        recorded.expect("each thread has one operation at a time");
    }
    let is_ordered = tester.is_consistent();
    let is_complete = seen.borrow().len() <= POSITIONS_MAX;
    (is_ordered || is_complete).then_some(is_ordered)
}
