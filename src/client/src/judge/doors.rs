//! The rules on check-ins. The doors' answers are compared with the registrations, the event's count, and each door's
//! list at the end.

use std::collections::{HashMap, HashSet};

use sakshi_domain::time::Timestamp;
use sakshi_wire::events::EventResponse;

use super::guests::RegisteredGuest;
use super::journal::{CheckInAnswer, Scan};
use super::rules::{finding, outside};
use super::{Evidence, Finding};

/// Largest difference between the clocks of nodes, in milliseconds. The service replaces the time of a scan that is
/// ahead of its clock.
const CLOCK_SLACK_MS: i64 = 1_000;

/// A door and its list of guests at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoorView {
    /// The gate.
    pub gate: String,
    /// Number of registered guests.
    pub registered: u64,
    /// Number of guests who are checked in.
    pub inside: u64,
    /// Every guest.
    pub guests: Vec<DoorGuest>,
}

/// A guest in the list of a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorGuest {
    /// The registration code.
    pub code: String,
    /// The name.
    pub name: String,
    /// True if the guest is checked in.
    pub is_inside: bool,
}

/// Groups scans by the guest's code.
fn by_code(evidence: &Evidence) -> HashMap<&str, Vec<&Scan>> {
    let mut scans: HashMap<&str, Vec<&Scan>> = HashMap::new();
    for scan in &evidence.journal.scans {
        scans.entry(&scan.code).or_default().push(scan);
    }
    scans
}

fn line(scan: &Scan) -> String {
    let kept = if scan.kept { ", sent later" } else { "" };
    format!("{} at {}, {}{kept}: {:?}", scan.code, Timestamp::from_millis(scan.at), scan.gate, scan.answer)
}

/// Checks that each door lists the registered guests, that each guest was tried at a door, and that no check-in was
/// refused.
pub(super) fn tried(evidence: &Evidence, guests: &[RegisteredGuest]) -> Finding {
    let scans = by_code(evidence);
    let registered: HashSet<&str> = guests.iter().map(|guest| guest.code.as_str()).collect();
    let distinct = outside("distinct codes", registered.len() as u64, guests.len() as u64, guests.len() as u64);
    let untried = guests.iter().filter(|guest| !scans.contains_key(guest.code.as_str()));
    let untried = untried.map(|guest| format!("not listed at a door: {}", evidence.journal.line(&guest.txn)));
    let strange =
        scans.keys().filter(|code| !registered.contains(**code)).map(|code| format!("{code} is nobody's code"));
    let refused =
        evidence.journal.scans.iter().filter(|scan| matches!(scan.answer, CheckInAnswer::Refused(_))).map(line);
    let listed = evidence.doors.iter().filter_map(|door| {
        let same =
            |(listed, guest): (&DoorGuest, &RegisteredGuest)| listed.code == guest.code && listed.name == guest.name;
        let is_same = door.guests.len() == guests.len() && door.guests.iter().zip(guests).all(same);
        (!is_same).then(|| {
            format!("{} lists {} guests, other than the {} registered", door.gate, door.guests.len(), guests.len())
        })
    });
    let figures =
        format!("{} doors, {} guests tried, {} scans", evidence.doors.len(), scans.len(), evidence.journal.scans.len());
    let wrong = distinct.into_iter().chain(untried).chain(strange).chain(refused).chain(listed);
    finding("each door lists the registered guests and takes their codes", figures, wrong)
}

/// Checks that one scan of each guest checks in. The answer to that one may be lost.
pub(super) fn once(evidence: &Evidence, guests: &[RegisteredGuest]) -> Finding {
    let scans = by_code(evidence);
    let (mut wrong, mut twice) = (Vec::new(), 0_u64);
    for guest in guests {
        let of_guest = scans.get(guest.code.as_str()).map_or(&[][..], Vec::as_slice);
        twice += u64::from(of_guest.len() > 1);
        let with = |is: fn(&CheckInAnswer) -> bool| of_guest.iter().filter(move |scan| is(&scan.answer));
        let inside = with(|answer| matches!(answer, CheckInAnswer::In { .. })).count();
        let lost = with(|answer| matches!(answer, CheckInAnswer::Lost)).any(|scan| is_check_in(guest, scan));
        let is_right = inside == usize::from(!lost) && guest.checked_in_at.is_some();
        if !is_right && !of_guest.is_empty() {
            let scans = of_guest.iter().map(|scan| line(scan)).collect::<Vec<_>>().join("; ");
            let state =
                if guest.checked_in_at.is_some() { "registered as checked in" } else { "not registered as checked in" };
            wrong.push(format!("checked in {inside} times, {state}: {scans}"));
        }
    }
    let untried =
        guests.iter().filter(|guest| guest.checked_in_at.is_some() && !scans.contains_key(guest.code.as_str()));
    let untried = untried.map(|guest| format!("checked in without a scan: {}", evidence.journal.line(&guest.txn)));
    let kept = evidence.journal.scans.iter().filter(|scan| scan.kept).count();
    let figures = format!("{} guests, {twice} of them at two doors, {kept} scans sent later", guests.len());
    finding("each guest is checked in exactly once", figures, wrong.into_iter().chain(untried))
}

/// Returns true if the check-in in the list of registrations is that of this scan.
fn is_check_in(guest: &RegisteredGuest, scan: &Scan) -> bool {
    let ahead = |at: Timestamp| (0..=CLOCK_SLACK_MS).contains(&(scan.at - at.millis()));
    guest.gate.as_deref() == Some(&scan.gate) && guest.checked_in_at.is_some_and(ahead)
}

/// Checks that doors and registrations show the same time and gate.
pub(super) fn agree(evidence: &Evidence, event: &EventResponse, guests: &[RegisteredGuest]) -> Finding {
    let by_code: HashMap<&str, &RegisteredGuest> = guests.iter().map(|guest| (guest.code.as_str(), guest)).collect();
    let mut already = 0_u64;
    let wrong: Vec<String> = evidence
        .journal
        .scans
        .iter()
        .filter(|scan| {
            let Some(guest) = by_code.get(scan.code.as_str()) else { return false };
            let shown = guest.checked_in_at.map(|at| {
                let time = event.time_zone.local(at).time;
                guest.gate.as_ref().map_or_else(|| time.clone(), |gate| format!("{time}, {gate}"))
            });
            match &scan.answer {
                CheckInAnswer::In { when } => shown.as_ref() != Some(when) || !is_check_in(guest, scan),
                CheckInAnswer::Already { when } => {
                    already += 1;
                    shown.as_ref() != Some(when)
                }
                CheckInAnswer::Refused(_) | CheckInAnswer::Lost => false,
            }
        })
        .map(line)
        .collect();
    let figures = format!("{} scans, {already} of them of guests who were in already", evidence.journal.scans.len());
    finding("doors and registrations agree on the time and gate of each check-in", figures, wrong)
}

/// Checks that the event's count, each door's and the tester's own match the registrations that are checked in.
pub(super) fn counts(evidence: &Evidence, event: &EventResponse, guests: &[RegisteredGuest]) -> Finding {
    let inside: HashSet<&str> =
        guests.iter().filter(|guest| guest.checked_in_at.is_some()).map(|guest| guest.code.as_str()).collect();
    let (count, registered) = (inside.len() as u64, guests.len() as u64);
    let told = |scan: &&Scan| matches!(scan.answer, CheckInAnswer::In { .. } | CheckInAnswer::Already { .. });
    let own: HashSet<&str> = evidence.journal.scans.iter().filter(told).map(|scan| scan.code.as_str()).collect();
    let lost: HashSet<&str> = evidence
        .journal
        .scans
        .iter()
        .filter(|scan| scan.answer == CheckInAnswer::Lost)
        .map(|scan| scan.code.as_str())
        .collect();
    let own_most = own.union(&lost).count() as u64;
    let mut wrong: Vec<String> =
        outside("checked in, by the event", event.checked_in_count.into(), count, count).into_iter().collect();
    wrong.extend(outside("checked in, by the registrations", count, own.len() as u64, own_most));
    for door in &evidence.doors {
        wrong.extend(outside(&format!("checked in, by {}", door.gate), door.inside, count, count));
        wrong.extend(outside(&format!("registered, by {}", door.gate), door.registered, registered, registered));
        let marked = door.guests.iter().filter(|guest| guest.is_inside != inside.contains(guest.code.as_str()));
        wrong.extend(marked.map(|guest| {
            format!("{} shows {} as {}", door.gate, guest.code, if guest.is_inside { "in" } else { "not in" })
        }));
    }
    let by_door: Vec<String> = evidence.doors.iter().map(|door| door.inside.to_string()).collect();
    let figures = format!(
        "{} by the event, {} by the doors, {} by the tester",
        event.checked_in_count,
        by_door.join(" and "),
        own.len()
    );
    finding("the counts of check-ins agree", figures, wrong)
}
