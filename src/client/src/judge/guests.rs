//! Registered guests, and the rules on people who register twice.
//!
//! The list of registrations decides which of two guests was first, because both may answer at the same time.

use std::collections::{HashMap, HashSet};

use sakshi_domain::event::OnDuplicate;
use sakshi_domain::time::Timestamp;
use sakshi_wire::events::EventResponse;
use sakshi_wire::guests::RegistrationRow;

use super::journal::{CallbackKind, Reply};
use super::rules::{expected_result, finding, mismatch};
use super::{Evidence, Finding};

/// The claim with the person's name, by its name in credentials.
const NAME_CLAIM: &str = "residentName";

/// A registered guest in the service's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredGuest {
    /// The id of the transaction.
    pub txn: String,
    /// The registration code.
    pub code: String,
    /// The shared name; empty if it was not shared.
    pub name: String,
    /// The transaction id of an earlier guest who may be the same person.
    pub possible_duplicate_of: Option<String>,
    /// The time of the check-in.
    pub checked_in_at: Option<Timestamp>,
    /// The gate of the check-in.
    pub gate: Option<String>,
}

impl From<RegistrationRow> for RegisteredGuest {
    fn from(row: RegistrationRow) -> Self {
        let name = row.verified_claims.as_map().get(NAME_CLAIM).and_then(serde_json::Value::as_str);
        Self {
            txn: row.txn_id.to_string(),
            code: row.registration_code,
            name: name.unwrap_or_default().to_owned(),
            possible_duplicate_of: row.possible_duplicate_of.map(|txn| txn.to_string()),
            checked_in_at: row.checked_in_at,
            gate: row.gate,
        }
    }
}

/// Checks the marks of duplicates. With `flag`, a guest whose person was registered before is marked with an earlier
/// registration of that person. No other guest has a mark.
pub(super) fn check_marks(evidence: &Evidence, event: &EventResponse, guests: &[RegisteredGuest]) -> Finding {
    let journal = &evidence.journal;
    let is_flagging = event.on_duplicate == OnDuplicate::Flag;
    let mut earlier_txns: HashMap<u64, HashSet<&str>> = HashMap::new();
    let (mut violations, mut repeat_count) = (Vec::new(), 0_u64);
    for guest in guests {
        let earlier = journal.person(&guest.txn).map(|person| earlier_txns.entry(person).or_default());
        let is_repeated = earlier.as_ref().is_some_and(|txns| !txns.is_empty());
        repeat_count += u64::from(is_repeated);
        let is_right = match &guest.possible_duplicate_of {
            None => !(is_flagging && is_repeated),
            Some(original) => is_flagging && earlier.as_ref().is_some_and(|txns| txns.contains(original.as_str())),
        };
        if !is_right {
            let mark = guest
                .possible_duplicate_of
                .as_ref()
                .map_or_else(|| "not marked".to_owned(), |original| format!("marked with {original}"));
            violations.push(format!("{mark}: {}", journal.line(&guest.txn)));
        }
        earlier.map(|txns| txns.insert(&guest.txn));
    }
    let marked = guests.iter().filter(|guest| guest.possible_duplicate_of.is_some()).count() as u64;
    let miscounted = mismatch("duplicates counted", event.duplicate_count.into(), marked);
    let figures = format!(
        "{repeat_count} came again, {marked} marked, {} counted, with {}",
        event.duplicate_count, event.on_duplicate
    );
    finding(
        "if the event flags duplicates, every duplicate is marked, and nobody else is",
        figures,
        miscounted.into_iter().chain(violations),
    )
}

/// Checks the refusals of duplicates. With `refuse`, a person has one registration, and all other guests of that person
/// are refused. Without `refuse`, no guest is refused as a duplicate.
pub(super) fn check_refusals(evidence: &Evidence, event: &EventResponse, guests: &[RegisteredGuest]) -> Finding {
    let journal = &evidence.journal;
    let mut registered: HashMap<u64, Vec<&str>> = HashMap::new();
    for guest in guests {
        if let Some(person) = journal.person(&guest.txn) {
            registered.entry(person).or_default().push(&guest.txn);
        }
    }
    let is_refusing = event.on_duplicate == OnDuplicate::Refuse;
    let registered_twice = registered.values().filter(|txns| is_refusing && txns.len() > 1);
    let registered_twice = registered_twice.map(|txns| format!("one person is registered as {}", txns.join(" and ")));
    let refused_txns = || journal.txns_with_reply(CallbackKind::Consent, Reply::Duplicate);
    let earlier_registration = |txn: &str| {
        let entry = journal.entries.get(txn)?;
        let refused_at = entry.callback?.replied_at;
        let mut txns_of_person = registered.get(&journal.person(txn)?)?.iter();
        txns_of_person.find(|first| callback_sent_at(evidence, first).is_some_and(|sent| sent <= refused_at)).copied()
    };
    let unfounded = refused_txns().filter(|txn| !is_refusing || earlier_registration(txn).is_none());
    let unfounded = unfounded.map(|txn| format!("refused, and the person was not registered: {}", journal.line(txn)));
    let wrong_results = refused_txns()
        .filter(|txn| journal.entries.get(*txn).is_none_or(|entry| entry.poll_result != expected_result(entry)));
    let wrong_results = wrong_results.map(|txn| {
        let result = journal.entries.get(txn).and_then(|entry| entry.poll_result.as_ref());
        format!("its result is {result:?}: {}", journal.line(txn))
    });
    let figures = format!(
        "{} people registered, {} refused, with {}",
        registered.len(),
        refused_txns().count(),
        event.on_duplicate
    );
    finding(
        "if the event refuses duplicates, every duplicate is refused, and nobody else is",
        figures,
        registered_twice.chain(unfounded).chain(wrong_results),
    )
}

/// Returns the time at which the callback of a transaction was first sent.
fn callback_sent_at(evidence: &Evidence, txn: &str) -> Option<std::time::Duration> {
    evidence.journal.entries.get(txn)?.callback.map(|callback| callback.sent_at)
}
