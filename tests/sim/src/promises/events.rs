//! Promises about events and their guests.

use std::time::Duration;

use sakshi_domain::event::{EventRefusal, OnDuplicate};
use sakshi_domain::ids::TxnId;
use sakshi_store::Registration;
use serde_json::Value;

use super::{Violations, completed};
use crate::evidence::{Evidence, StoredEvent, StoredTransaction, time_in_run};
use crate::guests::PLACES;
use crate::history::{EventFact, EventView, RefusalReason, Step, Verdict, find_order};
use crate::journal::DoorCheckIn;

/// Returns the refusal of an event as [`crate::history`] has it.
const fn refusal_reason(refusal: EventRefusal) -> RefusalReason {
    match refusal {
        EventRefusal::Full => RefusalReason::Full,
        EventRefusal::Disabled | EventRefusal::Expired => RefusalReason::Closed,
        EventRefusal::Duplicate => RefusalReason::Twice,
    }
}

/// Returns the transactions of an event's guests.
fn guests<'a>(evidence: &'a Evidence<'_>, event: &'a StoredEvent) -> impl Iterator<Item = &'a StoredTransaction> {
    let is_guest = move |stored: &&StoredTransaction| {
        stored.record.as_ref().is_some_and(|record| record.opened().event == Some(event.event.id))
    };
    evidence.transactions.values().filter(is_guest)
}

/// Checks the counts of each event against its places, its registrations and its guests' transactions.
pub(super) fn no_more_guests_than_places(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    for stored_event in &evidence.events {
        let StoredEvent { event, registrations, .. } = stored_event;
        let passed = guests(evidence, stored_event)
            .filter(|stored| completed(stored).is_some_and(|record| record.passed))
            .count();
        let (counted, places) = (event.counts.registrations as usize, event.terms.max_guests.get() as usize);
        if counted > places || registrations.len() != counted || passed != counted {
            let registrations = registrations.len();
            violations.push(format!(
                "an event for {places} has {counted} guests, {registrations} on its list, and {passed} have a place"
            ));
        }
        let (ended, abandoned): (Vec<_>, Vec<_>) =
            guests(evidence, stored_event).partition(|stored| completed(stored).is_some());
        let (scans, abandoned) = ((ended.len() + abandoned.len()) as u64, abandoned.len() as u64);
        if (event.counts.scans, event.counts.abandoned) != (scans, abandoned) {
            let (counted, given_up) = (event.counts.scans, event.counts.abandoned);
            violations.push(format!(
                "{scans} guests have scanned and {abandoned} have given up, and the event counts \
                {counted} and {given_up}"
            ));
        }
    }
    violations
}

/// Checks the event's setting for duplicates. All guests of a run are one person, with the same device.
pub(super) fn repeated_guests_are_recognised(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    for StoredEvent { event, registrations, .. } in &evidence.events {
        let marked = registrations.iter().filter(|registration| registration.guest.duplicate_of.is_some()).count();
        let first = registrations.first().map(|registration| registration.guest.txn);
        let are_right = match event.terms.on_duplicate {
            OnDuplicate::Allow => marked == 0,
            OnDuplicate::Flag => {
                let is_of_first = |registration: &Registration| registration.guest.duplicate_of == first;
                marked == registrations.len().saturating_sub(1) && registrations.iter().skip(1).all(is_of_first)
            }
            OnDuplicate::Refuse => registrations.len() <= 1 && marked == 0,
        };
        if !are_right || event.counts.duplicates as usize != marked {
            let (guests, counted, setting) = (registrations.len(), event.counts.duplicates, event.terms.on_duplicate);
            violations.push(format!(
                "one person is {guests} guests of an event that should {setting} that: {marked} are \
                marked, {counted} counted"
            ));
        }
    }
    violations
}

/// Checks that a guest is checked in for the first time once, and that every answer has the stored time and gate.
pub(super) fn guests_are_checked_in_once(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    let check_ins = evidence.sim.journal.check_ins.borrow();
    for StoredEvent { tenant, event, registrations } in &evidence.events {
        let inside = registrations.iter().filter(|registration| registration.guest.check_in.is_some()).count();
        if inside != event.counts.checked_in as usize {
            violations.push(format!("{inside} guests are checked in, and {} are counted", event.counts.checked_in));
        }
        for Registration { guest, .. } in registrations {
            let answers: Vec<&Value> = check_ins
                .iter()
                .filter(|(client, answer)| client == tenant && answer["txn_id"] == guest.txn.to_string())
                .map(|(_, answer)| answer)
                .collect();
            let at_doors = door_check_ins(evidence, *tenant, guest.txn);
            let first_check_ins = answers.iter().filter(|answer| answer["already"] == false).count()
                + at_doors.iter().filter(|check_in| check_in.is_new).count();
            let stored = guest.check_in.as_ref().map(|check_in| (check_in.at.to_string(), check_in.gate.as_str()));
            let is_stored = |answer: &&Value| {
                stored
                    .as_ref()
                    .is_some_and(|(at, gate)| answer["checked_in_at"] == at.as_str() && answer["gate"] == *gate)
            };
            let is_at_gate = |check_in: &DoorCheckIn| {
                stored.as_ref().is_some_and(|(_, gate)| !check_in.is_new || *gate == check_in.gate)
            };
            if first_check_ins > 1 || !answers.iter().all(is_stored) || !at_doors.iter().all(is_at_gate) {
                violations.push(format!(
                    "{}: it was checked in as {stored:?}, and the answers were {answers:?} {at_doors:?}",
                    guest.txn
                ));
            }
        }
    }
    violations
}

/// Returns the check-ins of a guest at doors.
fn door_check_ins(evidence: &Evidence<'_>, tenant: usize, txn: TxnId) -> Vec<DoorCheckIn> {
    let codes = evidence.sim.journal.guest_codes.borrow();
    let check_ins = evidence.sim.journal.door_check_ins.borrow();
    let is_own = |check_in: &&DoorCheckIn| check_in.tenant == tenant && codes.get(&check_in.code) == Some(&txn);
    check_ins.iter().filter(is_own).cloned().collect()
}

/// Searches for an order of each event's steps that explains all answers about the event.
pub(super) fn events_have_one_order(evidence: &Evidence<'_>) -> Violations {
    let mut violations = Violations::new();
    for event in &evidence.events {
        let event_facts = evidence.sim.journal.event_facts.borrow();
        // Views of an event do not wait for a replica, so they may show writes that a failover lost.
        let is_confirmed = |fact: &EventFact| {
            let is_unconfirmed = fact
                .answered_at
                .is_some_and(|answered_at| evidence.sim.world.servers.may_be_unconfirmed(fact.sent_at, answered_at));
            !(is_unconfirmed && matches!(fact.step, Step::Look(_) | Step::RefusedScan(_)))
        };
        let mut facts: Vec<EventFact> = event_facts
            .iter()
            .filter(|(tenant, fact)| *tenant == event.tenant && is_confirmed(fact))
            .map(|(_, fact)| *fact)
            .collect();
        // The store records when a guest scanned, and when one was registered or refused.
        let stored_fact = |at, step| {
            let (at, tolerance) = (time_in_run(at), evidence.sim.world.tolerance());
            EventFact {
                sent_at: (at + Duration::from_millis(1)).saturating_sub(tolerance),
                answered_at: Some(at + tolerance),
                step,
                is_repeatable: false,
            }
        };
        for stored in guests(evidence, event) {
            facts.extend(stored.paid_at.map(|paid_at| stored_fact(paid_at, Step::Scan)));
            let Some(record) = completed(stored) else { continue };
            match record.refused {
                Some(refusal) => {
                    facts.push(stored_fact(record.verified_at, Step::RefusedGuest(refusal_reason(refusal))));
                }
                None if record.passed => facts.push(stored_fact(record.verified_at, Step::Register)),
                None => {}
            }
        }
        let is_strict = event.event.terms.on_duplicate == OnDuplicate::Refuse;
        let initial = EventView { is_active: true, max_guests: PLACES, registrations: 0, scans: 0, is_strict };
        match find_order(initial, &facts) {
            Verdict::Ordered => evidence.sim.world.count_occurrence("event put in order"),
            Verdict::Undecided => {
                evidence.sim.world.count_occurrence("event not put in order, because it takes too long");
            }
            Verdict::Unordered { longest } => {
                facts.sort_by_key(|fact| fact.sent_at);
                let lines: Vec<String> = facts.iter().map(|fact| format!("{fact:?}")).collect();
                let all = facts.len();
                violations.push(format!(
                    "of {all} things that happened to the event of client {}, {longest} are in order:\n  {}",
                    event.tenant,
                    lines.join("\n  ")
                ));
            }
        }
    }
    violations
}
