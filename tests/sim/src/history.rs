//! Linearisability of an event's history: an order in which each step sees the effects of those before it, and lies
//! between its request and its answer.

use std::collections::HashSet;
use std::time::Duration;

/// An event as observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventView {
    pub(crate) is_active: bool,
    pub(crate) max_guests: u64,
    pub(crate) registrations: u64,
    pub(crate) scans: u64,
    /// True if nobody may register twice.
    pub(crate) is_strict: bool,
}

/// The reason for refusing a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NoPlace {
    Full,
    Closed,
    /// The person has a place.
    Twice,
}

/// A step and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The organiser's change, and the event shown in the answer; `None` if unknown.
    Change { is_active: Option<bool>, max_guests: Option<u64>, shown: Option<EventView> },
    /// A change refused because there are more guests.
    RefusedChange { max_guests: u64 },
    /// A view of the event.
    Look(EventView),
    /// A guest scanned.
    Scan,
    /// A guest who scanned was refused.
    RefusedScan(NoPlace),
    /// A guest was registered.
    Register,
    /// A guest who was verified was not registered.
    RefusedGuest(NoPlace),
}

/// A step and its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventFact {
    pub(crate) asked: Duration,
    /// `None` if it may happen at any time, or never.
    pub(crate) answered: Option<Duration>,
    /// True for a change that may have been made several times before its answer, because its actor was restarted.
    pub(crate) is_repeatable: bool,
    pub(crate) step: Step,
}

/// Positions examined before the search gives up.
const POSITIONS_MAX: usize = 200_000;

/// The result of a search for an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ordered,
    /// No order exists; this is the largest number of steps that fit.
    Unordered {
        most: usize,
    },
    /// The search took too long.
    Undecided,
}

fn refusal(state: EventView) -> Option<NoPlace> {
    match state {
        EventView { is_active: false, .. } => Some(NoPlace::Closed),
        EventView { registrations, max_guests, .. } if registrations >= max_guests => Some(NoPlace::Full),
        _ => None,
    }
}

/// Returns the refusal of a guest who has answered. All guests of a run are one person.
fn refusal_of_guest(state: EventView) -> Option<NoPlace> {
    refusal(state).or_else(|| (state.is_strict && state.registrations > 0).then_some(NoPlace::Twice))
}

/// Returns the state after a step; `None` if the step cannot have this outcome.
fn after(state: EventView, step: Step) -> Option<EventView> {
    match step {
        Step::Change { is_active, max_guests, shown } => {
            let changed = EventView {
                is_active: is_active.unwrap_or(state.is_active),
                max_guests: max_guests.unwrap_or(state.max_guests),
                ..state
            };
            if shown.is_none() && changed.max_guests < changed.registrations {
                return Some(state);
            }
            (changed.max_guests >= changed.registrations && shown.is_none_or(|shown| shown == changed))
                .then_some(changed)
        }
        Step::RefusedChange { max_guests } => (max_guests < state.registrations).then_some(state),
        Step::Look(shown) => (shown == state).then_some(state),
        Step::Scan => refusal(state).is_none().then_some(EventView { scans: state.scans + 1, ..state }),
        Step::Register => {
            refusal_of_guest(state).is_none().then_some(EventView { registrations: state.registrations + 1, ..state })
        }
        Step::RefusedScan(why) => (refusal(state) == Some(why)).then_some(state),
        Step::RefusedGuest(why) => (refusal_of_guest(state) == Some(why)).then_some(state),
    }
}

/// Searches for an order.
pub(crate) fn order(begin: EventView, facts: &[EventFact]) -> Verdict {
    let mut facts = facts.to_vec();
    facts.sort_by_key(|fact| fact.asked);
    let mut search = Search { facts: &facts, seen: HashSet::new(), most: 0 };
    match search.goes_on(begin, &mut vec![false; facts.len()], 0) {
        Some(true) => Verdict::Ordered,
        Some(false) => Verdict::Unordered { most: search.most },
        None => Verdict::Undecided,
    }
}

struct Search<'a> {
    facts: &'a [EventFact],
    /// Dead ends of the search.
    seen: HashSet<(Vec<bool>, EventView)>,
    most: usize,
}

impl Search<'_> {
    /// Returns true if the remaining steps can be ordered; `None` if the search takes too long.
    fn goes_on(&mut self, state: EventView, done: &mut Vec<bool>, count: usize) -> Option<bool> {
        self.most = self.most.max(count);
        let left = || self.facts.iter().enumerate().filter(|(at, _)| !done[*at]);
        // Steps that may never happen can be left out.
        if left().all(|(_, fact)| fact.answered.is_none()) {
            return Some(true);
        }
        if self.seen.len() > POSITIONS_MAX {
            return None;
        }
        if !self.seen.insert((done.clone(), state)) {
            return Some(false);
        }
        // A step can be next if no other was answered before its request.
        let first_answer = left().filter_map(|(_, fact)| fact.answered).min().unwrap_or(Duration::MAX);
        let next: Vec<usize> = left().filter(|(_, fact)| fact.asked <= first_answer).map(|(at, _)| at).collect();
        for at in next {
            if let EventFact { step: Step::Change { is_active, max_guests, .. }, is_repeatable: true, .. } =
                self.facts[at]
                && let Some(state) = after(state, Step::Change { is_active, max_guests, shown: None })
            {
                // It happens once more.
                let ended = self.goes_on(state, done, count);
                if ended != Some(false) {
                    return ended;
                }
            }
            let Some(state) = after(state, self.facts[at].step) else { continue };
            done[at] = true;
            let ended = self.goes_on(state, done, count + 1);
            done[at] = false;
            if ended != Some(false) {
                return ended;
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: EventView = EventView { is_active: true, max_guests: 1, registrations: 0, scans: 0, is_strict: false };

    fn fact(asked: u64, answered: u64, step: Step) -> EventFact {
        EventFact {
            asked: Duration::from_millis(asked),
            answered: Some(Duration::from_millis(answered)),
            step,
            is_repeatable: false,
        }
    }

    #[test]
    fn what_overlaps_may_have_come_in_any_order_and_what_does_not_may_not() {
        let seen = Step::Look(EventView { registrations: 1, ..EMPTY });
        assert_eq!(order(EMPTY, &[fact(0, 10, seen), fact(5, 6, Step::Register)]), Verdict::Ordered);
        assert_eq!(order(EMPTY, &[fact(0, 4, seen), fact(5, 6, Step::Register)]), Verdict::Unordered { most: 0 });
    }

    #[test]
    fn the_last_place_is_taken_once() {
        let two = [fact(0, 1, Step::Register), fact(2, 3, Step::Register)];
        assert_eq!(order(EMPTY, &two), Verdict::Unordered { most: 1 });
        let refused = [fact(0, 1, Step::Register), fact(2, 3, Step::RefusedGuest(NoPlace::Full))];
        assert_eq!(order(EMPTY, &refused), Verdict::Ordered);
        let disabled = [fact(2, 3, Step::RefusedGuest(NoPlace::Closed))];
        assert_eq!(order(EMPTY, &disabled), Verdict::Unordered { most: 0 });
    }

    #[test]
    fn where_nobody_registers_twice_the_second_guest_is_refused() {
        let strict = EventView { max_guests: 5, is_strict: true, ..EMPTY };
        let (first, second) = (fact(0, 1, Step::Register), fact(2, 3, Step::RefusedGuest(NoPlace::Twice)));
        assert_eq!(order(strict, &[first, second]), Verdict::Ordered);
        assert_eq!(order(strict, &[second]), Verdict::Unordered { most: 0 });
        assert_eq!(order(strict, &[first, fact(2, 3, Step::Register)]), Verdict::Unordered { most: 1 });
        assert_eq!(order(EventView { is_strict: false, ..strict }, &[first, second]), Verdict::Unordered { most: 1 });
    }

    #[test]
    fn a_change_without_an_answer_may_come_late_or_never() {
        let change = EventFact {
            asked: Duration::ZERO,
            answered: None,
            step: Step::Change { is_active: Some(false), max_guests: None, shown: None },
            is_repeatable: false,
        };
        for seen in [true, false] {
            let look = fact(100, 101, Step::Look(EventView { is_active: seen, ..EMPTY }));
            assert_eq!(order(EMPTY, &[change, look]), Verdict::Ordered);
        }
        let back = [fact(1, 2, Step::Look(EventView { is_active: false, ..EMPTY })), fact(3, 4, Step::Look(EMPTY))];
        assert!(matches!(order(EMPTY, &[change, back[0], back[1]]), Verdict::Unordered { .. }));
    }

    #[test]
    fn a_change_of_a_restarted_actor_may_precede_the_answered_one() {
        let closed = EventView { is_active: false, ..EMPTY };
        let opened =
            Step::Change { is_active: Some(true), max_guests: None, shown: Some(EventView { scans: 1, ..EMPTY }) };
        let scan = fact(4, 5, Step::Scan);
        assert!(matches!(order(closed, &[fact(0, 10, opened), scan]), Verdict::Unordered { .. }));
        let repeatable = EventFact { is_repeatable: true, ..fact(0, 10, opened) };
        assert_eq!(order(closed, &[repeatable, scan]), Verdict::Ordered);
        // Not after its answer.
        let disabled =
            Step::Change { is_active: Some(false), max_guests: None, shown: Some(EventView { scans: 1, ..closed }) };
        let later = [repeatable, scan, fact(11, 12, disabled), fact(13, 14, Step::Scan)];
        assert!(matches!(order(closed, &later), Verdict::Unordered { .. }));
    }
}
