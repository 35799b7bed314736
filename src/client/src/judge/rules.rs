//! The rules, one function each. If an answer was lost, the tester cannot know what the service did. Then both
//! possibilities are right, and the figures count them.

use std::collections::HashSet;

use sakshi_domain::credits::EntryKind;
use sakshi_domain::event::EventRefusal;
use sakshi_wire::events::EventResponse;

use super::journal::{Entry, Polled, Posted, REJECTED, Reply};
use super::{Blame, Deliveries, EXAMPLES, Evidence, Expected, Finding, debited};

/// Largest difference of the service's clock from ours, and of an intent's end from its transaction's, in seconds.
const EXPIRY_SLACK: i64 = 15;

pub(super) fn finding(rule: &'static str, figures: String, wrong: impl IntoIterator<Item = String>) -> Finding {
    let mut wrong = wrong.into_iter().peekable();
    let held = wrong.peek().is_none();
    Finding { rule, blame: Blame::Service, held, figures, examples: wrong.take(EXAMPLES).collect() }
}

/// Describes a number that is out of range.
pub(super) fn outside(what: &str, found: u64, least: u64, most: u64) -> Option<String> {
    (!(least..=most).contains(&found)).then(|| format!("{what}: {found} instead of {}", range(least, most)))
}

fn range(least: u64, most: u64) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

fn lines<'a>(evidence: &'a Evidence, txns: impl Iterator<Item = &'a str> + 'a) -> impl Iterator<Item = String> + 'a {
    txns.map(|txn| evidence.journal.line(txn))
}

/// Returns the least and the most transactions that can have been opened.
fn opened(evidence: &Evidence) -> (u64, u64) {
    let known = evidence.journal.entries.len() as u64;
    (known, known + evidence.journal.unknown_openings)
}

pub(super) fn own_records(evidence: &Evidence) -> Finding {
    let journal = &evidence.journal;
    let figures = format!("{} guests started, {} visits ended", evidence.started, journal.visits);
    let uneven = outside("visits that ended", journal.visits, evidence.started, evidence.started);
    let backwards = journal.entries.iter().filter(|(_, entry)| {
        entry.opened < entry.asked || entry.answered.is_some_and(|it| it.sent < entry.opened || it.replied < it.sent)
    });
    let in_vain = (journal.visits > 0 && journal.failed == journal.visits)
        .then(|| "every visit failed, so nothing is proved".to_owned());
    let wrong = uneven.into_iter().chain(in_vain).chain(backwards.map(|(txn, _)| journal.line(txn)));
    Finding { blame: Blame::Tester, ..finding("the tester's own records agree", figures, wrong) }
}

pub(super) fn own_transactions(evidence: &Evidence) -> Finding {
    let journal = &evidence.journal;
    let figures = format!("{} transactions, {} handed out twice", journal.entries.len(), journal.shared.len());
    finding(
        "every guest has a transaction of their own",
        figures,
        lines(evidence, journal.shared.iter().map(String::as_str)),
    )
}

pub(super) fn debits(evidence: &Evidence) -> Finding {
    let (least, most) = opened(evidence);
    let spent: i64 = super::debits(&evidence.ledger).map(|line| line.amount).sum();
    let spent = u64::try_from(spent).unwrap_or_default();
    let debited = debited(&evidence.ledger);
    let journal = &evidence.journal;
    let free = journal.entries.keys().filter(|txn| !debited.contains_key(txn.as_str()));
    let dear = debited.iter().filter(|(_, count)| **count > 1).map(|(txn, _)| *txn);
    let odd = super::debits(&evidence.ledger).filter(|line| line.amount != 1);
    let stray = debited.keys().filter(|txn| !journal.entries.contains_key(**txn)).count() as u64;
    let wrong = outside("credits debited", spent, least, most)
        .into_iter()
        .chain(outside("debits for transactions that no guest knows of", stray, 0, journal.unknown_openings))
        .chain(free.map(|txn| format!("not debited: {}", journal.line(txn))))
        .chain(dear.map(|txn| format!("debited twice: {}", journal.line(txn))))
        .chain(odd.map(|line| format!("{} credits debited at once for {}", line.amount, line.reference)));
    let figures = format!("{} opened, {spent} credits spent", range(least, most));
    finding("each transaction opened costs one credit", figures, wrong)
}

pub(super) fn ledger(evidence: &Evidence) -> Finding {
    let (mut sum, mut granted) = (0, 0);
    let mut wrong = Vec::new();
    for (line, number) in evidence.ledger.iter().zip(1..) {
        let kind = line.kind;
        sum += kind.signed(line.amount);
        granted += if kind == EntryKind::Debit { 0 } else { line.amount };
        if i64::try_from(line.balance_after) != Ok(sum) || line.seq.get() != number {
            wrong.push(format!(
                "entry {}: {} {} leaves {}, by the entries {sum}",
                line.seq,
                kind.as_str(),
                line.amount,
                line.balance_after
            ));
        }
    }
    if i64::try_from(evidence.balance) != Ok(sum) {
        wrong.push(format!("balance {} instead of {sum}", evidence.balance));
    }
    if evidence.granted != granted {
        wrong.push(format!("{granted} credits granted instead of {}", evidence.granted));
    }
    let figures = format!("{} entries, balance {}", evidence.ledger.len(), evidence.balance);
    finding("the ledger adds up to the balance", figures, wrong)
}

pub(super) fn places(evidence: &Evidence, event: &EventResponse, list: &[String]) -> Finding {
    let registered = u64::from(event.registration_count).max(list.len() as u64);
    let told = event.max_guests.get().into();
    let places = evidence.max_guests.unwrap_or(told);
    let wrong = outside("registered", registered, 0, places).into_iter().chain(outside("places", told, places, places));
    finding("never more guests than places", format!("{registered} registered, {places} places"), wrong)
}

pub(super) fn registered(
    evidence: &Evidence,
    expected: &Expected<'_>,
    event: &EventResponse,
    list: &[String],
) -> Finding {
    let distinct: HashSet<&str> = list.iter().map(String::as_str).collect();
    let (length, journal) = (list.len() as u64, &evidence.journal);
    let missing = expected
        .accepted
        .iter()
        .filter(|txn| !distinct.contains(**txn))
        .map(|txn| format!("accepted and not registered: {}", journal.line(txn)));
    let known = |txn: &&&str| !expected.accepted.contains(**txn) && !expected.unknown.contains(**txn);
    let strange =
        distinct.iter().filter(known).map(|txn| format!("registered and never accepted: {}", journal.line(txn)));
    let wrong = outside("registrations counted", event.registration_count.into(), length, length)
        .into_iter()
        .chain(outside("distinct registrations", distinct.len() as u64, length, length))
        .chain(missing)
        .chain(strange);
    let figures = format!(
        "{} accepted, {length} registered, {} without an answer",
        expected.accepted.len(),
        expected.unknown.len()
    );
    finding("the registered guests are those who were told so", figures, wrong)
}

pub(super) fn scans(evidence: &Evidence, event: &EventResponse) -> Finding {
    let (least, most) = opened(evidence);
    let (scans, debits) = (event.scan_count, super::debits(&evidence.ledger).count() as u64);
    let figures = format!("{} opened, {scans} scans counted", range(least, most));
    let wrong =
        outside("scans", scans, least, most).into_iter().chain(outside("scans by the debits", debits, scans, scans));
    finding("each scan is counted", figures, wrong)
}

pub(super) fn abandoned(evidence: &Evidence, event: &EventResponse) -> Finding {
    let unanswered = || evidence.journal.entries.values().filter(|entry| entry.answered.is_none_or(pending));
    let over = |entry: &&Entry| entry.expires.is_some_and(|expires| expires + EXPIRY_SLACK <= evidence.read_at);
    let certain = |entry: &&Entry| entry.answered.is_none();
    let (expired, all) = (unanswered().filter(certain).filter(over).count() as u64, unanswered().count() as u64);
    let sure = unanswered().filter(certain).count() as u64;
    let least = if evidence.all_expired { sure } else { expired };
    let most = all + evidence.journal.unknown_openings;
    let figures =
        format!("{} counted, {sure} left, {least} of them long enough ago to be expired", event.abandoned_count);
    finding(
        "guests who left are counted once expired",
        figures,
        outside("abandoned", event.abandoned_count, least, most),
    )
}

/// Returns true if a transaction may still be pending after this answer to it.
const fn pending(answered: super::journal::PostedAnswer) -> bool {
    matches!(answered.reply, Reply::Unknown | Reply::Refused(_))
}

pub(super) fn full(evidence: &Evidence, places: u64) -> Finding {
    let entries = &evidence.journal.entries;
    let consents = entries.values().filter_map(|entry| entry.answered.filter(|it| it.posted == Posted::Consent));
    let taking = consents.filter(|it| matches!(it.reply, Reply::Accepted | Reply::Unknown));
    let mut sent: Vec<_> = taking.map(|it| it.sent).collect();
    sent.sort_unstable();
    // The event can have been full only when as many credentials as places had been sent.
    let earliest = usize::try_from(places).ok().and_then(|places| sent.get(places.checked_sub(1)?)).copied();
    let early = |told: std::time::Duration| earliest.is_none_or(|earliest| told < earliest);
    let turned_away = &evidence.journal.turned_away;
    let at_start = turned_away.iter().filter(|told| early(**told));
    let at_start = at_start.map(|told| format!("turned away {:.3} s after the beginning", told.as_secs_f64()));
    let refused = entries.iter().filter(|(_, entry)| entry.answered.is_some_and(|it| it.reply == Reply::Full));
    let too_early = refused.clone().filter(|(_, entry)| entry.answered.is_some_and(|it| early(it.replied)));
    let wrong = at_start.chain(too_early.map(|(txn, _)| evidence.journal.line(txn)));
    let figures = format!("{} turned away at the start, {} with a credential", turned_away.len(), refused.count());
    finding("nobody is turned away before the event is full", figures, wrong)
}

pub(super) fn results(evidence: &Evidence) -> Finding {
    let entries = &evidence.journal.entries;
    let read = entries.values().filter(|entry| entry.polled.is_some()).count();
    let wrong = entries.iter().filter(|(_, entry)| match (&entry.polled, expected_result(entry)) {
        (Some(polled), Some(expected)) => *polled != expected,
        (None, _) => entry.answered.is_some_and(|it| it.reply == Reply::Accepted),
        (Some(_), None) => false,
    });
    let wrong = wrong.map(|(txn, entry)| format!("{}, polled {:?}", evidence.journal.line(txn), entry.polled));
    finding("polling says what was answered", format!("{read} results read"), wrong)
}

/// Returns the result of a transaction, if its answer determines it.
pub(super) fn expected_result(entry: &Entry) -> Option<Polled> {
    let failed = |code: &str| Polled::Finished { passed: false, code: Some(code.to_owned()) };
    match entry.answered.map(|it| (it.posted, it.reply)) {
        None => Some(Polled::Pending),
        Some((Posted::Consent, Reply::Accepted)) => Some(Polled::Finished { passed: true, code: None }),
        Some((Posted::Refusal, Reply::Accepted)) => Some(failed(REJECTED)),
        Some((Posted::Consent, Reply::Full)) => Some(failed(EventRefusal::Full.code())),
        Some((Posted::Consent, Reply::Duplicate)) => Some(failed(EventRefusal::Duplicate.code())),
        Some(_) => None,
    }
}

/// Checks that each owed webhook has a record, that no other has, and that those recorded as delivered arrived.
pub(super) fn deliveries(evidence: &Evidence, deliveries: &Deliveries, expected: &Expected<'_>) -> Finding {
    let (owed, arrived) = (expected.owed(), &evidence.webhooks.by_txn);
    let unknown = deliveries.outcomes.values().filter(|outcome| *outcome == "unknown").count() as u64;
    let unrecorded =
        owed.iter().filter(|txn| !deliveries.outcomes.contains_key(**txn)).map(|txn| format!("{txn} has no record"));
    let wrong = deliveries.outcomes.iter().filter_map(|(txn, outcome)| match outcome.as_str() {
        _ if !owed.contains(txn.as_str()) => {
            Some(format!("{txn} has no outcome to report and is recorded as {outcome}"))
        }
        "delivered" if arrived.contains_key(txn) => None,
        "delivered" => Some(format!("{txn} is recorded as delivered and never came")),
        "unknown" => None,
        _ => Some(format!("{txn} ended as {outcome}")),
    });
    let figures = format!("{} recorded, {unknown} of them as unknown", deliveries.outcomes.len());
    let wrong =
        outside("recorded as unknown", unknown, 0, deliveries.unknown_max).into_iter().chain(unrecorded).chain(wrong);
    finding("the records of webhooks agree with what arrived", figures, wrong)
}

pub(super) fn reported(evidence: &Evidence, expected: &Expected<'_>) -> Finding {
    let (owed, arrived) = (expected.owed(), &evidence.webhooks.by_txn);
    let excused = |txn: &str| {
        evidence.deliveries.as_ref().and_then(|it| it.outcomes.get(txn)).is_some_and(|outcome| outcome == "unknown")
    };
    let lost = owed.iter().copied().filter(|txn| !arrived.contains_key(*txn) && !excused(txn));
    let figures =
        format!("{} had to come, {} did", owed.len(), owed.iter().filter(|txn| arrived.contains_key(**txn)).count());
    finding("each outcome is reported by a webhook", figures, lines(evidence, lost))
}

pub(super) fn once(evidence: &Evidence) -> Finding {
    let arrived = &evidence.webhooks.by_txn;
    let twice = arrived.iter().filter(|(_, arrival)| arrival.count > 1);
    let figures = format!("{} distinct, {} more than once", arrived.len(), twice.clone().count());
    let wrong = twice.map(|(txn, arrival)| format!("{} times: {}", arrival.count, evidence.journal.line(txn)));
    finding("no webhook is sent twice", figures, wrong)
}

pub(super) fn only_expected(evidence: &Evidence, expected: &Expected<'_>) -> Finding {
    let allowed = expected.allowed();
    let unexpected = evidence.webhooks.by_txn.keys().map(String::as_str).filter(|txn| !allowed.contains(txn));
    let unreadable = outside("webhooks that name no transaction", evidence.webhooks.unreadable, 0, 0);
    let figures = format!("{} unexpected", unexpected.clone().count());
    finding("no webhook is sent without an outcome", figures, unreadable.into_iter().chain(lines(evidence, unexpected)))
}

pub(super) fn correct(evidence: &Evidence, expected: &Expected<'_>) -> Finding {
    let wrong = evidence.webhooks.by_txn.iter().filter(|(txn, arrival)| {
        let txn = txn.as_str();
        (expected.accepted.contains(txn) && !arrival.passed) || (expected.declined.contains(txn) && arrival.passed)
    });
    let figures = format!("{} say otherwise than the callback did", wrong.clone().count());
    finding("each webhook says what was answered", figures, wrong.map(|(txn, _)| evidence.journal.line(txn)))
}

pub(super) fn answers(evidence: &Evidence) -> Finding {
    let refused = evidence.journal.entries.iter().filter(|(_, entry)| {
        entry.answered.is_some_and(|it| {
            matches!(it.reply, Reply::Refused(_))
                || (it.posted == Posted::Refusal && matches!(it.reply, Reply::Full | Reply::Duplicate))
        })
    });
    let figures = format!("{} refused", refused.clone().count());
    // The rehearsal has shown that credentials of this issuer, made in this way, are accepted.
    finding(
        "valid answers of the identity app are not refused",
        figures,
        refused.map(|(txn, _)| evidence.journal.line(txn)),
    )
}
