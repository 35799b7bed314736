//! Runs in which people register twice, and runs with one planted fault each.

use sakshi_domain::event::OnDuplicate;

use super::*;
use crate::judge::guests::RegisteredGuest;

const MARKED: &str = "if the event flags duplicates, every duplicate is marked, and nobody else is";
const REFUSED: &str = "if the event refuses duplicates, every duplicate is refused, and nobody else is";

/// Returns the registered guests of the faultless run, without marks.
pub(super) fn registered(evidence: &Evidence) -> Vec<RegisteredGuest> {
    let guest = |txn: &String| RegisteredGuest {
        txn: txn.clone(),
        code: format!("CODE{}", &txn[4..]),
        name: format!("Guest {}", &txn[4..]),
        possible_duplicate_of: None,
        checked_in_at: None,
        gate: None,
    };
    evidence.event.as_ref().unwrap().1.iter().map(guest).collect()
}

fn guest<'a>(evidence: &'a mut Evidence, txn: &str) -> &'a mut RegisteredGuest {
    evidence.guests.as_mut().unwrap().iter_mut().find(|guest| guest.txn == txn).unwrap()
}

/// Marks a guest as a possible duplicate of the original, or removes the mark.
fn mark(evidence: &mut Evidence, txn: &str, original: Option<&str>) {
    guest(evidence, txn).possible_duplicate_of = original.map(str::to_owned);
}

/// A run with `flag`: guests 5 and 7 are the same person as guest 3, 8 as 6, and 9 as 2, who left.
fn flagged() -> Evidence {
    let mut evidence = faultless();
    evidence.guests = Some(registered(&evidence));
    evidence.journal.repeat_guests = [(5, 3), (7, 3), (8, 6), (9, 2)].into();
    for (txn, original) in [("txn-05", "txn-03"), ("txn-07", "txn-05"), ("txn-08", "txn-06")] {
        mark(&mut evidence, txn, Some(original));
    }
    event(&mut evidence).0.duplicate_count = 3;
    evidence
}

/// A run with `refuse`: guest 10 is the same person as guest 3, and is refused.
fn refusing() -> Evidence {
    let mut evidence = faultless();
    evidence.guests = Some(registered(&evidence));
    evidence.journal.repeat_guests = [(10, 3)].into();
    event(&mut evidence).0.on_duplicate = OnDuplicate::Refuse;
    let entry = evidence.journal.entries.get_mut("txn-10").unwrap();
    entry.callback.as_mut().unwrap().reply = Reply::Duplicate;
    entry.poll_result = Some(PollResult::Finished { passed: false, code: Some("already_registered".to_owned()) });
    evidence
}

#[test]
fn faultless_runs_with_duplicates_break_no_rule() {
    for evidence in [flagged(), refusing()] {
        let findings = judge(&evidence);
        assert_eq!(findings.iter().filter(|finding| !finding.held).collect::<Vec<_>>(), Vec::<&Finding>::new());
        assert_eq!(findings.len(), EVENT_RULES + DUPLICATE_RULES);
    }
    let allowing = broken_rules_in(flagged(), |evidence| {
        (event(evidence).0.on_duplicate, event(evidence).0.duplicate_count) = (OnDuplicate::Allow, 0);
        evidence.guests = Some(registered(evidence));
    });
    assert_eq!(allowing, Vec::<&str>::new());
}

#[test]
fn the_order_of_the_list_decides_which_guest_is_the_duplicate() {
    let race = |marks: [(&str, Option<&str>); 2]| {
        broken_rules_in(flagged(), |evidence| {
            // Guest 8 was faster than guest 6.
            let guests = evidence.guests.as_mut().unwrap();
            let indexes = ["txn-06", "txn-08"].map(|txn| guests.iter().position(|guest| guest.txn == txn).unwrap());
            guests.swap(indexes[0], indexes[1]);
            for (txn, original) in marks {
                mark(evidence, txn, original);
            }
        })
    };
    assert_eq!(race([("txn-08", None), ("txn-06", Some("txn-08"))]), Vec::<&str>::new());
    assert_eq!(race([("txn-08", Some("txn-06")), ("txn-06", None)]), [MARKED]);
}

#[test]
fn wrong_marks_and_counts_of_duplicates_are_detected() {
    let plants: [Plant; 8] = [
        |evidence| mark(evidence, "txn-08", None),
        |evidence| mark(evidence, "txn-08", Some("txn-03")),
        |evidence| mark(evidence, "txn-08", Some("txn-08")),
        |evidence| mark(evidence, "txn-05", Some("txn-07")),
        |evidence| mark(evidence, "txn-09", Some("txn-02")),
        |evidence| {
            mark(evidence, "txn-04", Some("txn-03"));
            event(evidence).0.duplicate_count = 4;
        },
        |evidence| event(evidence).0.duplicate_count = 2,
        |evidence| event(evidence).0.on_duplicate = OnDuplicate::Allow,
    ];
    for (number, plant) in plants.into_iter().enumerate() {
        assert_eq!(broken_rules_in(flagged(), plant), [MARKED], "{number}");
    }
}

#[test]
fn a_person_registered_twice_or_refused_without_reason_is_detected() {
    let plants: [Plant; 5] = [
        // Guest 5 is the same person as guest 3, and is registered nevertheless.
        |evidence| evidence.journal.repeat_guests.extend([(5, 3)]),
        // Guest 10 is refused, although it is a new person.
        |evidence| evidence.journal.repeat_guests.clear(),
        // Guest 10 is refused, although guest 2, the same person, has left.
        |evidence| evidence.journal.repeat_guests.extend([(10, 2)]),
        // The result of the refused guest was not read.
        |evidence| evidence.journal.entries.get_mut("txn-10").unwrap().poll_result = None,
        // The result has another reason.
        |evidence| {
            evidence.journal.entries.get_mut("txn-10").unwrap().poll_result =
                Some(PollResult::Finished { passed: false, code: Some("event_full".to_owned()) });
        },
    ];
    for (number, plant) in plants.into_iter().enumerate() {
        assert_eq!(broken_rules_in(refusing(), plant), [REFUSED], "{number}");
    }
    let flagging = broken_rules_in(refusing(), |evidence| event(evidence).0.on_duplicate = OnDuplicate::Flag);
    assert_eq!(flagging, [REFUSED]);
}

#[test]
fn a_refusal_before_the_first_registration_is_detected() {
    let rules = broken_rules_in(refusing(), |evidence| {
        // The first guest who is the same person as the refused guest.
        let first = evidence.journal.entries.get_mut("txn-03").unwrap().callback.as_mut().unwrap();
        (first.sent_at, first.replied_at) = (at(60_000), at(60_001));
    });
    assert!(rules.contains(&REFUSED), "{rules:?}");
}
