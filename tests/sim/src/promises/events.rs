//! Promises about events and their guests.

use std::time::Duration;

use sakshi_domain::event::{EventRefusal, OnDuplicate};
use sakshi_domain::ids::TxnId;
use sakshi_store::Registration;
use serde_json::Value;

use super::{Found, completed};
use crate::diary::DoorCheckIn;
use crate::evidence::{Evidence, KeptEvent, StoredTransaction, since_start};
use crate::guests::PLACES;
use crate::history::{EventFact, EventView, NoPlace, Step, Verdict, order};

const fn no_place(refusal: EventRefusal) -> NoPlace {
    match refusal {
        EventRefusal::Full => NoPlace::Full,
        EventRefusal::Disabled | EventRefusal::Expired => NoPlace::Closed,
        EventRefusal::Duplicate => NoPlace::Twice,
    }
}

fn guests<'a>(evidence: &'a Evidence<'_>, event: &'a KeptEvent) -> impl Iterator<Item = &'a StoredTransaction> {
    let is_guest = move |kept: &&StoredTransaction| {
        kept.record.as_ref().is_some_and(|record| record.opened().event == Some(event.event.id))
    };
    evidence.transactions.values().filter(is_guest)
}

pub(super) fn no_more_guests_than_places(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for event in &evidence.events {
        let KeptEvent { event: of, listed, .. } = event;
        let passed = guests(evidence, event).filter(|kept| completed(kept).is_some_and(|record| record.passed)).count();
        let (counted, most) = (of.counts.registrations as usize, of.terms.max_guests.get() as usize);
        if counted > most || listed.len() != counted || passed != counted {
            let listed = listed.len();
            found.push(format!(
                "an event for {most} has {counted} guests, {listed} on its list, and {passed} have a place"
            ));
        }
        let (ended, abandoned): (Vec<_>, Vec<_>) = guests(evidence, event).partition(|kept| completed(kept).is_some());
        let (scans, abandoned) = ((ended.len() + abandoned.len()) as u64, abandoned.len() as u64);
        if (of.counts.scans, of.counts.abandoned) != (scans, abandoned) {
            let (counted, given_up) = (of.counts.scans, of.counts.abandoned);
            found.push(format!(
                "{scans} guests have scanned and {abandoned} have given up, and the event counts \
                {counted} and {given_up}"
            ));
        }
    }
    found
}

/// All guests of a run are one person, with the same device.
pub(super) fn people_are_known(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for KeptEvent { event, listed, .. } in &evidence.events {
        let marked = listed.iter().filter(|one| one.guest.duplicate_of.is_some()).count();
        let first = listed.first().map(|one| one.guest.txn);
        let are_right = match event.terms.on_duplicate {
            OnDuplicate::Allow => marked == 0,
            OnDuplicate::Flag => {
                let is_of_first = |one: &Registration| one.guest.duplicate_of == first;
                marked == listed.len().saturating_sub(1) && listed.iter().skip(1).all(is_of_first)
            }
            OnDuplicate::Refuse => listed.len() <= 1 && marked == 0,
        };
        if !are_right || event.counts.duplicates as usize != marked {
            let (guests, counted, how) = (listed.len(), event.counts.duplicates, event.terms.on_duplicate);
            found.push(format!(
                "one person is {guests} guests of an event that should {how} that: {marked} are \
                marked, {counted} counted"
            ));
        }
    }
    found
}

pub(super) fn guests_are_checked_in_once(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let told = evidence.sim.diary.check_ins.borrow();
    for KeptEvent { tenant, event, listed } in &evidence.events {
        let inside = listed.iter().filter(|one| one.guest.check_in.is_some()).count();
        if inside != event.counts.checked_in as usize {
            found.push(format!("{inside} guests are checked in, and {} are counted", event.counts.checked_in));
        }
        for Registration { guest, .. } in listed {
            let answers: Vec<&Value> = told
                .iter()
                .filter(|(of, answer)| of == tenant && answer["txn_id"] == guest.txn.to_string())
                .map(|(_, answer)| answer)
                .collect();
            let at_doors = door_check_ins(evidence, *tenant, guest.txn);
            let first = answers.iter().filter(|answer| answer["already"] == false).count()
                + at_doors.iter().filter(|check_in| check_in.is_new).count();
            let known = guest.check_in.as_ref().map(|check_in| (check_in.at.to_string(), check_in.gate.as_str()));
            let is_known = |answer: &&Value| {
                known
                    .as_ref()
                    .is_some_and(|(at, gate)| answer["checked_in_at"] == at.as_str() && answer["gate"] == *gate)
            };
            let is_at_gate = |check_in: &DoorCheckIn| {
                known.as_ref().is_some_and(|(_, gate)| !check_in.is_new || *gate == check_in.gate)
            };
            if first > 1 || !answers.iter().all(is_known) || !at_doors.iter().all(is_at_gate) {
                found.push(format!(
                    "{}: it was checked in as {known:?}, and the answers were {answers:?} {at_doors:?}",
                    guest.txn
                ));
            }
        }
    }
    found
}

/// Returns the check-ins of a guest at doors.
fn door_check_ins(evidence: &Evidence<'_>, tenant: usize, txn: TxnId) -> Vec<DoorCheckIn> {
    let codes = evidence.sim.diary.codes.borrow();
    let check_ins = evidence.sim.diary.door_check_ins.borrow();
    let is_own = |check_in: &&DoorCheckIn| check_in.tenant == tenant && codes.get(&check_in.code) == Some(&txn);
    check_ins.iter().filter(is_own).cloned().collect()
}

pub(super) fn events_have_one_order(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for event in &evidence.events {
        let seen = evidence.sim.diary.events.borrow();
        // Views of an event do not wait for a replica.
        let is_kept = |fact: &EventFact| {
            let is_unconfirmed = fact
                .answered
                .is_some_and(|answered| evidence.sim.world.servers.may_be_unconfirmed(fact.asked, answered));
            !(is_unconfirmed && matches!(fact.step, Step::Look(_) | Step::RefusedScan(_)))
        };
        let mut facts: Vec<EventFact> = seen
            .iter()
            .filter(|(tenant, fact)| *tenant == event.tenant && is_kept(fact))
            .map(|(_, fact)| *fact)
            .collect();
        // The store records when a guest scanned, and when one was registered or refused.
        let at = |at, step| {
            let (at, tolerance) = (since_start(at), evidence.sim.world.tolerance());
            EventFact {
                asked: (at + Duration::from_millis(1)).saturating_sub(tolerance),
                answered: Some(at + tolerance),
                step,
                is_repeatable: false,
            }
        };
        for kept in guests(evidence, event) {
            facts.extend(kept.paid_at.map(|paid| at(paid, Step::Scan)));
            let Some(record) = completed(kept) else { continue };
            match record.refused {
                Some(refusal) => facts.push(at(record.verified_at, Step::RefusedGuest(no_place(refusal)))),
                None if record.passed => facts.push(at(record.verified_at, Step::Register)),
                None => {}
            }
        }
        let is_strict = event.event.terms.on_duplicate == OnDuplicate::Refuse;
        let begin = EventView { is_active: true, max_guests: PLACES, registrations: 0, scans: 0, is_strict };
        match order(begin, &facts) {
            Verdict::Ordered => evidence.sim.world.reach("event put in order"),
            Verdict::Undecided => evidence.sim.world.reach("event not put in order, because it takes too long"),
            Verdict::Unordered { most } => {
                facts.sort_by_key(|fact| fact.asked);
                let told: Vec<String> = facts.iter().map(|fact| format!("{fact:?}")).collect();
                let all = facts.len();
                found.push(format!(
                    "of {all} things that happened to the event of client {}, {most} are in order:\n  {}",
                    event.tenant,
                    told.join("\n  ")
                ));
            }
        }
    }
    found
}
