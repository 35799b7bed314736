//! The rules on check-ins: the doors' responses are compared with the registrations, the event's count, and each door's
//! list at the end of the run.

use std::collections::{HashMap, HashSet};

use sakshi_domain::time::Timestamp;
use sakshi_wire::events::EventResponse;

use super::guests::RegisteredGuest;
use super::journal::{CheckInAnswer, Scan};
use super::rules::{finding, mismatch, out_of_range};
use super::{Evidence, Finding};

/// Largest difference between the clocks of nodes, in milliseconds. A node replaces the time of a scan that is ahead of
/// its clock.
const CLOCK_SLACK_MS: i64 = 1_000;

/// A door (a check-in page at an entrance of the event) and its list of guests, at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoorView {
    /// The name of the gate.
    pub gate: String,
    /// Number of registered guests.
    pub registered: u64,
    /// Number of guests who are checked in.
    pub inside: u64,
    /// All guests in the list.
    pub guests: Vec<DoorGuest>,
}

/// A guest in the list of a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorGuest {
    /// The registration code.
    pub code: String,
    /// The name of the guest.
    pub name: String,
    /// True if the guest is checked in.
    pub is_inside: bool,
}

/// Groups scans by the guest's code.
fn scans_by_code(evidence: &Evidence) -> HashMap<&str, Vec<&Scan>> {
    let mut scans: HashMap<&str, Vec<&Scan>> = HashMap::new();
    for scan in &evidence.journal.scans {
        scans.entry(&scan.code).or_default().push(scan);
    }
    scans
}

/// Formats a scan as one line.
fn describe_scan(scan: &Scan) -> String {
    let note = if scan.was_sent_later { ", sent later" } else { "" };
    format!("{} at {}, {}{note}: {:?}", scan.code, Timestamp::from_millis(scan.at), scan.gate, scan.answer)
}

/// Checks that each door lists the registered guests, that each guest was scanned at a door, and that no check-in was
/// refused.
pub(super) fn check_lists(evidence: &Evidence, guests: &[RegisteredGuest]) -> Finding {
    let scans = scans_by_code(evidence);
    let registered: HashSet<&str> = guests.iter().map(|guest| guest.code.as_str()).collect();
    let repeated_codes = mismatch("distinct codes", registered.len() as u64, guests.len() as u64);
    let unscanned = guests.iter().filter(|guest| !scans.contains_key(guest.code.as_str()));
    let unscanned = unscanned.map(|guest| format!("not listed at a door: {}", evidence.journal.line(&guest.txn)));
    let unknown_codes =
        scans.keys().filter(|code| !registered.contains(**code)).map(|code| format!("{code} is nobody's code"));
    let refused_scans = evidence
        .journal
        .scans
        .iter()
        .filter(|scan| matches!(scan.answer, CheckInAnswer::Refused(_)))
        .map(describe_scan);
    let wrong_lists = evidence.doors.iter().filter_map(|door| {
        let matches =
            |(entry, guest): (&DoorGuest, &RegisteredGuest)| entry.code == guest.code && entry.name == guest.name;
        let is_same = door.guests.len() == guests.len() && door.guests.iter().zip(guests).all(matches);
        (!is_same).then(|| {
            format!("{} lists {} guests, other than the {} registered", door.gate, door.guests.len(), guests.len())
        })
    });
    let figures =
        format!("{} doors, {} guests tried, {} scans", evidence.doors.len(), scans.len(), evidence.journal.scans.len());
    let violations =
        repeated_codes.into_iter().chain(unscanned).chain(unknown_codes).chain(refused_scans).chain(wrong_lists);
    finding("each door lists the registered guests and takes their codes", figures, violations)
}

/// Checks that exactly one scan of each guest checks the guest in. The response to that scan may be lost.
pub(super) fn check_single_check_in(evidence: &Evidence, guests: &[RegisteredGuest]) -> Finding {
    let scans = scans_by_code(evidence);
    let (mut violations, mut scanned_twice) = (Vec::new(), 0_u64);
    for guest in guests {
        let scans_of_guest = scans.get(guest.code.as_str()).map_or(&[][..], Vec::as_slice);
        scanned_twice += u64::from(scans_of_guest.len() > 1);
        let checked_in = scans_of_guest.iter().filter(|scan| matches!(scan.answer, CheckInAnswer::In { .. })).count();
        let mut lost_responses = scans_of_guest.iter().filter(|scan| matches!(scan.answer, CheckInAnswer::Lost));
        let is_check_in_lost = lost_responses.any(|scan| is_check_in(guest, scan));
        let is_right = checked_in == usize::from(!is_check_in_lost) && guest.checked_in_at.is_some();
        if !is_right && !scans_of_guest.is_empty() {
            let scans = scans_of_guest.iter().map(|scan| describe_scan(scan)).collect::<Vec<_>>().join("; ");
            let state =
                if guest.checked_in_at.is_some() { "registered as checked in" } else { "not registered as checked in" };
            violations.push(format!("checked in {checked_in} times, {state}: {scans}"));
        }
    }
    let unscanned =
        guests.iter().filter(|guest| guest.checked_in_at.is_some() && !scans.contains_key(guest.code.as_str()));
    let unscanned = unscanned.map(|guest| format!("checked in without a scan: {}", evidence.journal.line(&guest.txn)));
    let sent_later = evidence.journal.scans.iter().filter(|scan| scan.was_sent_later).count();
    let figures =
        format!("{} guests, {scanned_twice} of them at two doors, {sent_later} scans sent later", guests.len());
    finding("each guest is checked in exactly once", figures, violations.into_iter().chain(unscanned))
}

/// Returns true if the registration shows the check-in of this scan.
fn is_check_in(guest: &RegisteredGuest, scan: &Scan) -> bool {
    let matches_time = |at: Timestamp| (0..=CLOCK_SLACK_MS).contains(&(scan.at - at.millis()));
    guest.gate.as_deref() == Some(&scan.gate) && guest.checked_in_at.is_some_and(matches_time)
}

/// Checks that doors and registrations show the same time and gate.
pub(super) fn check_times_and_gates(evidence: &Evidence, event: &EventResponse, guests: &[RegisteredGuest]) -> Finding {
    let by_code: HashMap<&str, &RegisteredGuest> = guests.iter().map(|guest| (guest.code.as_str(), guest)).collect();
    let mut repeat_scans = 0_u64;
    let violations: Vec<String> = evidence
        .journal
        .scans
        .iter()
        .filter(|scan| {
            let Some(guest) = by_code.get(scan.code.as_str()) else { return false };
            let expected_text = guest.checked_in_at.map(|at| {
                let time = event.time_zone.local(at).time;
                guest.gate.as_ref().map_or_else(|| time.clone(), |gate| format!("{time}, {gate}"))
            });
            match &scan.answer {
                CheckInAnswer::In { when } => expected_text.as_ref() != Some(when) || !is_check_in(guest, scan),
                CheckInAnswer::Already { when } => {
                    repeat_scans += 1;
                    expected_text.as_ref() != Some(when)
                }
                CheckInAnswer::Refused(_) | CheckInAnswer::Lost => false,
            }
        })
        .map(describe_scan)
        .collect();
    let figures =
        format!("{} scans, {repeat_scans} of them of guests who were in already", evidence.journal.scans.len());
    finding("doors and registrations agree on the time and gate of each check-in", figures, violations)
}

/// Checks that the counts of the event, of each door and of the tester match the registrations that are checked in.
pub(super) fn check_counts(evidence: &Evidence, event: &EventResponse, guests: &[RegisteredGuest]) -> Finding {
    let inside: HashSet<&str> =
        guests.iter().filter(|guest| guest.checked_in_at.is_some()).map(|guest| guest.code.as_str()).collect();
    let (count, registered) = (inside.len() as u64, guests.len() as u64);
    let is_checked_in = |scan: &&Scan| matches!(scan.answer, CheckInAnswer::In { .. } | CheckInAnswer::Already { .. });
    let known_inside: HashSet<&str> =
        evidence.journal.scans.iter().filter(is_checked_in).map(|scan| scan.code.as_str()).collect();
    let maybe_inside: HashSet<&str> = evidence
        .journal
        .scans
        .iter()
        .filter(|scan| scan.answer == CheckInAnswer::Lost)
        .map(|scan| scan.code.as_str())
        .collect();
    let mut violations: Vec<String> =
        mismatch("checked in, by the event", event.checked_in_count.into(), count).into_iter().collect();
    let (least, most) = (known_inside.len() as u64, known_inside.union(&maybe_inside).count() as u64);
    violations.extend(out_of_range("checked in, by the registrations", count, least, most));
    for door in &evidence.doors {
        violations.extend(mismatch(&format!("checked in, by {}", door.gate), door.inside, count));
        violations.extend(mismatch(&format!("registered, by {}", door.gate), door.registered, registered));
        let wrong_marks = door.guests.iter().filter(|guest| guest.is_inside != inside.contains(guest.code.as_str()));
        violations.extend(wrong_marks.map(|guest| {
            format!("{} shows {} as {}", door.gate, guest.code, if guest.is_inside { "in" } else { "not in" })
        }));
    }
    let by_door: Vec<String> = evidence.doors.iter().map(|door| door.inside.to_string()).collect();
    let figures = format!(
        "{} by the event, {} by the doors, {} by the tester",
        event.checked_in_count,
        by_door.join(" and "),
        known_inside.len()
    );
    finding("the counts of check-ins agree", figures, violations)
}
