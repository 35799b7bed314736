//! A run with two doors, and runs with one planted fault each.

use super::guests::registered;
use super::*;
use crate::judge::doors::{DoorGuest, DoorView};
use crate::judge::guests::RegisteredGuest;
use crate::judge::journal::{CheckInAnswer, Scan};

const LISTS: &str = "each door lists the registered guests and takes their codes";
const ONCE: &str = "each guest is checked in exactly once";
const AGREE: &str = "doors and registrations agree on the time and gate of each check-in";
const COUNTS: &str = "the counts of check-ins agree";
/// Index of the scan of a guest who is checked in already.
const REPEAT_SCAN: usize = 8;
/// 10:00 in India, in milliseconds since the Unix epoch.
const MORNING: i64 = 1_767_241_800_000;

/// A run in which eight guests are checked in, a minute apart, alternately at two gates. The first guest is also
/// scanned at the second gate, which sends the scan later.
fn checked_in() -> Evidence {
    let mut evidence = faultless();
    let mut guests = registered(&evidence);
    for (guest, number) in guests.iter_mut().zip(0_i64..) {
        let (at, gate) = (MORNING + number * 60_000, format!("Gate {}", 1 + number % 2));
        (guest.checked_in_at, guest.gate) = (Some(Timestamp::from_millis(at)), Some(gate.clone()));
        let answer = CheckInAnswer::In { when: format!("10:{number:02}, {gate}") };
        evidence.journal.scans.push(Scan { gate, code: guest.code.clone(), at, was_sent_later: false, answer });
    }
    let again = CheckInAnswer::Already { when: "10:00, Gate 1".to_owned() };
    let code = guests[0].code.clone();
    evidence.journal.scans.push(Scan {
        gate: "Gate 2".to_owned(),
        code,
        at: MORNING - 5_000,
        was_sent_later: true,
        answer: again,
    });
    let listed =
        |guest: &RegisteredGuest| DoorGuest { code: guest.code.clone(), name: guest.name.clone(), is_inside: true };
    let listed: Vec<DoorGuest> = guests.iter().map(listed).collect();
    let door = |gate: &str| DoorView { gate: gate.to_owned(), registered: 8, inside: 8, guests: listed.clone() };
    evidence.doors = vec![door("Gate 1"), door("Gate 2")];
    event(&mut evidence).0.checked_in_count = 8;
    evidence.guests = Some(guests);
    evidence
}

/// Returns the registered guest at this index.
fn guest(evidence: &mut Evidence, index: usize) -> &mut RegisteredGuest {
    &mut evidence.guests.as_mut().unwrap()[index]
}

/// Checks that each plant breaks the rule.
fn assert_each_breaks(rule: &str, plants: impl IntoIterator<Item = Plant>) {
    for (number, plant) in plants.into_iter().enumerate() {
        let rules = broken_rules_in(checked_in(), plant);
        assert!(rules.contains(&rule), "{number}: {rule} instead of {rules:?}");
    }
}

#[test]
fn a_faultless_run_with_doors_breaks_no_rule() {
    let findings = judge(&checked_in());
    assert_eq!(findings.iter().filter(|finding| !finding.held).collect::<Vec<_>>(), Vec::<&Finding>::new());
    assert_eq!(findings.len(), EVENT_RULES + DUPLICATE_RULES + DOOR_RULES);
}

#[test]
fn a_check_in_with_a_lost_response_may_or_may_not_count() {
    let lost = |number: usize| {
        broken_rules_in(checked_in(), |evidence| evidence.journal.scans[number].answer = CheckInAnswer::Lost)
    };
    assert_eq!(lost(0), Vec::<&str>::new(), "the registration shows the check-in");
    assert_eq!(lost(REPEAT_SCAN), Vec::<&str>::new(), "another scan is the check-in");
    let moved = broken_rules_in(checked_in(), |evidence| {
        evidence.journal.scans[3].answer = CheckInAnswer::Lost;
        guest(evidence, 3).gate = Some("Gate 1".to_owned());
    });
    assert_eq!(moved, [ONCE], "the guest was not scanned at that gate");
}

#[test]
fn a_guest_who_is_checked_in_twice_or_never_is_detected() {
    let twice = broken_rules_in(checked_in(), |evidence| {
        evidence.journal.scans[REPEAT_SCAN].answer = CheckInAnswer::In { when: "09:59, Gate 2".to_owned() };
    });
    assert_eq!(twice, [ONCE, AGREE]);
    let plants: [Plant; 4] = [
        |evidence| evidence.journal.scans[REPEAT_SCAN].answer = CheckInAnswer::In { when: "10:00, Gate 1".to_owned() },
        |evidence| evidence.journal.scans[3].answer = CheckInAnswer::Already { when: "10:03, Gate 2".to_owned() },
        |evidence| (guest(evidence, 3).checked_in_at, guest(evidence, 3).gate) = (None, None),
        |evidence| drop(evidence.journal.scans.remove(3)),
    ];
    assert_each_breaks(ONCE, plants);
}

#[test]
fn a_wrong_time_or_gate_of_a_check_in_is_detected() {
    let plants: [Plant; 6] = [
        |evidence| {
            evidence.journal.scans[REPEAT_SCAN].answer = CheckInAnswer::Already { when: "10:00, Gate 2".to_owned() }
        },
        |evidence| {
            evidence.journal.scans[REPEAT_SCAN].answer = CheckInAnswer::Already { when: "09:59, Gate 1".to_owned() }
        },
        |evidence| evidence.journal.scans[3].answer = CheckInAnswer::In { when: "10:04, Gate 2".to_owned() },
        |evidence| guest(evidence, 3).gate = None,
        |evidence| guest(evidence, 3).checked_in_at = Some(Timestamp::from_millis(MORNING + 3 * 60_000 + 1)),
        |evidence| guest(evidence, 3).checked_in_at = Some(Timestamp::from_millis(MORNING + 2 * 60_000)),
    ];
    assert_each_breaks(AGREE, plants);
}

#[test]
fn a_guest_whom_a_door_does_not_list_or_accept_is_detected() {
    let plants: [Plant; 7] = [
        |evidence| drop(evidence.doors[1].guests.pop()),
        |evidence| evidence.doors[1].guests[3].name = "Guest 99".to_owned(),
        |evidence| evidence.doors[1].guests.swap(3, 4),
        |evidence| evidence.journal.scans[REPEAT_SCAN].answer = CheckInAnswer::Refused("unknown".to_owned()),
        |evidence| evidence.journal.scans[REPEAT_SCAN].code = "CODE99".to_owned(),
        |evidence| drop(evidence.journal.scans.remove(3)),
        |evidence| guest(evidence, 3).code = guest(evidence, 4).code.clone(),
    ];
    assert_each_breaks(LISTS, plants);
}

#[test]
fn a_wrong_count_of_check_ins_is_detected() {
    let plants: [Plant; 5] = [
        |evidence| event(evidence).0.checked_in_count = 9,
        |evidence| evidence.doors[1].inside = 7,
        |evidence| evidence.doors[0].registered = 7,
        |evidence| evidence.doors[1].guests[3].is_inside = false,
        |evidence| drop(evidence.journal.scans.remove(3)),
    ];
    assert_each_breaks(COUNTS, plants);
    let alone = broken_rules_in(checked_in(), |evidence| event(evidence).0.checked_in_count = 9);
    assert_eq!(alone, [COUNTS]);
}
