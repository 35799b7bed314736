//! Linearisability of an event's history: the search for an order in which each step sees the effects of the steps
//! before it, and happens between its request and its answer.

use std::collections::HashSet;
use std::time::Duration;

/// The state of an event, as answers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventView {
    pub(crate) is_active: bool,
    pub(crate) max_guests: u64,
    pub(crate) registrations: u64,
    pub(crate) scans: u64,
    /// True if a person may not register twice.
    pub(crate) is_strict: bool,
}

/// The reason for refusing a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RefusalReason {
    Full,
    Closed,
    /// The person is already registered.
    Twice,
}

/// A step of an event's history, with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The organiser's change of the activity or the number of places. `shown` is the event in the answer, if known.
    Change { is_active: Option<bool>, max_guests: Option<u64>, shown: Option<EventView> },
    /// A change of the number of places, refused because more guests are registered.
    RefusedChange { max_guests: u64 },
    /// A read of the event.
    Look(EventView),
    /// A guest scanned.
    Scan,
    /// A guest who scanned was refused.
    RefusedScan(RefusalReason),
    /// A guest was registered.
    Register,
    /// A guest who was verified was not registered.
    RefusedGuest(RefusalReason),
}

/// A step and the times of its request and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventFact {
    pub(crate) sent_at: Duration,
    /// `None` without an answer: the step may happen at any later time, or never.
    pub(crate) answered_at: Option<Duration>,
    /// True for a change that may have been made several times before its answer, because its actor was restarted.
    pub(crate) is_repeatable: bool,
    pub(crate) step: Step,
}

/// Number of positions after which a search gives up.
const POSITIONS_MAX: usize = 200_000;

/// The result of a search for an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ordered,
    /// No order exists; the longest incomplete one has this number of steps.
    Unordered {
        longest: usize,
    },
    /// The search took too long.
    Undecided,
}

/// Returns the refusal of a guest who scans; `None` if the guest may start.
fn refusal_of_scan(state: EventView) -> Option<RefusalReason> {
    match state {
        EventView { is_active: false, .. } => Some(RefusalReason::Closed),
        EventView { registrations, max_guests, .. } if registrations >= max_guests => Some(RefusalReason::Full),
        _ => None,
    }
}

/// Returns the refusal of a guest who has answered; `None` if the guest is registered. All guests are one person.
fn refusal_of_guest(state: EventView) -> Option<RefusalReason> {
    refusal_of_scan(state).or_else(|| (state.is_strict && state.registrations > 0).then_some(RefusalReason::Twice))
}

/// Returns the state after a step; `None` if the step cannot have this outcome in this state.
fn state_after(state: EventView, step: Step) -> Option<EventView> {
    match step {
        Step::Change { is_active, max_guests, shown } => {
            let changed = EventView {
                is_active: is_active.unwrap_or(state.is_active),
                max_guests: max_guests.unwrap_or(state.max_guests),
                ..state
            };
            // A change without an answer may have been refused.
            if shown.is_none() && changed.max_guests < changed.registrations {
                return Some(state);
            }
            (changed.max_guests >= changed.registrations && shown.is_none_or(|shown| shown == changed))
                .then_some(changed)
        }
        Step::RefusedChange { max_guests } => (max_guests < state.registrations).then_some(state),
        Step::Look(shown) => (shown == state).then_some(state),
        Step::Scan => refusal_of_scan(state).is_none().then_some(EventView { scans: state.scans + 1, ..state }),
        Step::Register => {
            refusal_of_guest(state).is_none().then_some(EventView { registrations: state.registrations + 1, ..state })
        }
        Step::RefusedScan(reason) => (refusal_of_scan(state) == Some(reason)).then_some(state),
        Step::RefusedGuest(reason) => (refusal_of_guest(state) == Some(reason)).then_some(state),
    }
}

/// Searches for an order of the steps that explains all answers, from this initial state.
pub(crate) fn find_order(initial: EventView, facts: &[EventFact]) -> Verdict {
    let mut facts = facts.to_vec();
    facts.sort_by_key(|fact| fact.sent_at);
    let mut search = Search { facts: &facts, visited: HashSet::new(), longest: 0 };
    match search.can_continue(initial, &mut vec![false; facts.len()], 0) {
        Some(true) => Verdict::Ordered,
        Some(false) => Verdict::Unordered { longest: search.longest },
        None => Verdict::Undecided,
    }
}

/// A search for an order of steps.
struct Search<'a> {
    facts: &'a [EventFact],
    /// Positions that need not be visited again: the steps that are done, and the state after them.
    visited: HashSet<(Vec<bool>, EventView)>,
    /// Number of steps in the longest order so far.
    longest: usize,
}

impl Search<'_> {
    /// Returns true if the steps that are not done can follow in an order; `None` if the search takes too long. `count`
    /// is the number of steps that are done.
    fn can_continue(&mut self, state: EventView, done: &mut Vec<bool>, count: usize) -> Option<bool> {
        self.longest = self.longest.max(count);
        let remaining = || self.facts.iter().enumerate().filter(|(index, _)| !done[*index]);
        // Steps without an answer may never happen.
        if remaining().all(|(_, fact)| fact.answered_at.is_none()) {
            return Some(true);
        }
        if self.visited.len() > POSITIONS_MAX {
            return None;
        }
        if !self.visited.insert((done.clone(), state)) {
            return Some(false);
        }
        // A step can be next if no other was answered before its request.
        let first_answer = remaining().filter_map(|(_, fact)| fact.answered_at).min().unwrap_or(Duration::MAX);
        let next: Vec<usize> =
            remaining().filter(|(_, fact)| fact.sent_at <= first_answer).map(|(index, _)| index).collect();
        for index in next {
            if let EventFact { step: Step::Change { is_active, max_guests, .. }, is_repeatable: true, .. } =
                self.facts[index]
                && let Some(state) = state_after(state, Step::Change { is_active, max_guests, shown: None })
            {
                // The change happens, and stays possible.
                let result = self.can_continue(state, done, count);
                if result != Some(false) {
                    return result;
                }
            }
            let Some(state) = state_after(state, self.facts[index].step) else { continue };
            done[index] = true;
            let result = self.can_continue(state, done, count + 1);
            done[index] = false;
            if result != Some(false) {
                return result;
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: EventView = EventView { is_active: true, max_guests: 1, registrations: 0, scans: 0, is_strict: false };

    /// Returns a step with the milliseconds of its request and its answer.
    fn fact(sent_at: u64, answered_at: u64, step: Step) -> EventFact {
        EventFact {
            sent_at: Duration::from_millis(sent_at),
            answered_at: Some(Duration::from_millis(answered_at)),
            step,
            is_repeatable: false,
        }
    }

    #[test]
    fn steps_that_overlap_may_come_in_either_order_and_others_may_not() {
        let look = Step::Look(EventView { registrations: 1, ..EMPTY });
        assert_eq!(find_order(EMPTY, &[fact(0, 10, look), fact(5, 6, Step::Register)]), Verdict::Ordered);
        assert_eq!(
            find_order(EMPTY, &[fact(0, 4, look), fact(5, 6, Step::Register)]),
            Verdict::Unordered { longest: 0 }
        );
    }

    #[test]
    fn the_last_place_is_taken_once() {
        let two = [fact(0, 1, Step::Register), fact(2, 3, Step::Register)];
        assert_eq!(find_order(EMPTY, &two), Verdict::Unordered { longest: 1 });
        let refused = [fact(0, 1, Step::Register), fact(2, 3, Step::RefusedGuest(RefusalReason::Full))];
        assert_eq!(find_order(EMPTY, &refused), Verdict::Ordered);
        let disabled = [fact(2, 3, Step::RefusedGuest(RefusalReason::Closed))];
        assert_eq!(find_order(EMPTY, &disabled), Verdict::Unordered { longest: 0 });
    }

    #[test]
    fn if_no_person_may_register_twice_the_second_guest_is_refused() {
        let strict = EventView { max_guests: 5, is_strict: true, ..EMPTY };
        let (first, second) = (fact(0, 1, Step::Register), fact(2, 3, Step::RefusedGuest(RefusalReason::Twice)));
        assert_eq!(find_order(strict, &[first, second]), Verdict::Ordered);
        assert_eq!(find_order(strict, &[second]), Verdict::Unordered { longest: 0 });
        assert_eq!(find_order(strict, &[first, fact(2, 3, Step::Register)]), Verdict::Unordered { longest: 1 });
        assert_eq!(
            find_order(EventView { is_strict: false, ..strict }, &[first, second]),
            Verdict::Unordered { longest: 1 }
        );
    }

    #[test]
    fn a_change_without_an_answer_may_come_late_or_never() {
        let change = EventFact {
            sent_at: Duration::ZERO,
            answered_at: None,
            step: Step::Change { is_active: Some(false), max_guests: None, shown: None },
            is_repeatable: false,
        };
        for is_active in [true, false] {
            let look = fact(100, 101, Step::Look(EventView { is_active, ..EMPTY }));
            assert_eq!(find_order(EMPTY, &[change, look]), Verdict::Ordered);
        }
        let changed_back =
            [fact(1, 2, Step::Look(EventView { is_active: false, ..EMPTY })), fact(3, 4, Step::Look(EMPTY))];
        assert!(matches!(find_order(EMPTY, &[change, changed_back[0], changed_back[1]]), Verdict::Unordered { .. }));
    }

    #[test]
    fn a_change_of_a_restarted_actor_may_precede_the_answered_one() {
        let closed = EventView { is_active: false, ..EMPTY };
        let opened =
            Step::Change { is_active: Some(true), max_guests: None, shown: Some(EventView { scans: 1, ..EMPTY }) };
        let scan = fact(4, 5, Step::Scan);
        assert!(matches!(find_order(closed, &[fact(0, 10, opened), scan]), Verdict::Unordered { .. }));
        let repeatable = EventFact { is_repeatable: true, ..fact(0, 10, opened) };
        assert_eq!(find_order(closed, &[repeatable, scan]), Verdict::Ordered);
        // Once it is answered, the change cannot happen again.
        let disabled =
            Step::Change { is_active: Some(false), max_guests: None, shown: Some(EventView { scans: 1, ..closed }) };
        let later = [repeatable, scan, fact(11, 12, disabled), fact(13, 14, Step::Scan)];
        assert!(matches!(find_order(closed, &later), Verdict::Unordered { .. }));
    }
}
