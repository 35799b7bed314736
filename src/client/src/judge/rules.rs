//! The rules, one function each. After a lost response the tester cannot know what the service did. Then both
//! possibilities are accepted, and the figures count them.

use std::collections::HashSet;

use sakshi_domain::credits::EntryKind;
use sakshi_domain::event::EventRefusal;
use sakshi_wire::events::EventResponse;

use super::journal::{CallbackKind, Entry, PollResult, REJECTED, Reply};
use super::{Blame, Deliveries, EXAMPLES_MAX, Evidence, Expected, Finding, debits_by_txn};

/// Largest difference between the clocks of service and tester, and between the expiry of intent and transaction, in
/// seconds.
const EXPIRY_SLACK_SECONDS: i64 = 15;

/// Builds the finding of a rule. The rule is broken if there is any violation.
pub(super) fn finding(rule: &'static str, figures: String, violations: impl IntoIterator<Item = String>) -> Finding {
    let mut violations = violations.into_iter().peekable();
    let held = violations.peek().is_none();
    Finding { rule, blame: Blame::Service, held, figures, examples: violations.take(EXAMPLES_MAX).collect() }
}

/// Describes a number that is out of range; `None` if it is in range.
pub(super) fn out_of_range(label: &str, number: u64, least: u64, most: u64) -> Option<String> {
    (!(least..=most).contains(&number)).then(|| format!("{label}: {number} instead of {}", range(least, most)))
}

/// Describes a number that differs from the expected one; `None` if they are equal.
pub(super) fn mismatch(label: &str, number: u64, expected: u64) -> Option<String> {
    out_of_range(label, number, expected, expected)
}

fn range(least: u64, most: u64) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// Formats the records of these transactions.
fn lines<'a>(evidence: &'a Evidence, txns: impl Iterator<Item = &'a str> + 'a) -> impl Iterator<Item = String> + 'a {
    txns.map(|txn| evidence.journal.line(txn))
}

/// Returns the smallest and the largest possible number of opened transactions: openings without a response may have
/// succeeded.
fn opened_range(evidence: &Evidence) -> (u64, u64) {
    let known = evidence.journal.entries.len() as u64;
    (known, known + evidence.journal.unknown_openings)
}

/// Checks that the tester's own records agree with each other.
pub(super) fn check_own_records(evidence: &Evidence) -> Finding {
    let journal = &evidence.journal;
    let figures = format!("{} guests started, {} visits ended", evidence.started, journal.visits);
    let unended = mismatch("visits that ended", journal.visits, evidence.started);
    let disordered = journal.entries.iter().filter(|(_, entry)| {
        entry.opened_at < entry.requested_at
            || entry
                .callback
                .is_some_and(|callback| callback.sent_at < entry.opened_at || callback.replied_at < callback.sent_at)
    });
    let all_failed = (journal.visits > 0 && journal.failed == journal.visits)
        .then(|| "every visit failed, so nothing is proved".to_owned());
    let violations = unended.into_iter().chain(all_failed).chain(disordered.map(|(txn, _)| journal.line(txn)));
    Finding { blame: Blame::Tester, ..finding("the tester's own records agree", figures, violations) }
}

/// Checks that no transaction was given to two guests.
pub(super) fn check_own_transactions(evidence: &Evidence) -> Finding {
    let journal = &evidence.journal;
    let figures = format!("{} transactions, {} handed out twice", journal.entries.len(), journal.shared.len());
    finding(
        "every guest has a transaction of their own",
        figures,
        lines(evidence, journal.shared.iter().map(String::as_str)),
    )
}

/// Checks that each opened transaction was debited once.
pub(super) fn check_debits(evidence: &Evidence) -> Finding {
    let (least, most) = opened_range(evidence);
    let spent: i64 = super::debits(&evidence.ledger).map(|line| line.amount).sum();
    let spent = u64::try_from(spent).unwrap_or_default();
    let debits = debits_by_txn(&evidence.ledger);
    let journal = &evidence.journal;
    let undebited = journal.entries.keys().filter(|txn| !debits.contains_key(txn.as_str()));
    let repeated = debits.iter().filter(|(_, count)| **count > 1).map(|(txn, _)| *txn);
    let multiple = super::debits(&evidence.ledger).filter(|line| line.amount != 1);
    let unknown_txns = debits.keys().filter(|txn| !journal.entries.contains_key(**txn)).count() as u64;
    let violations = out_of_range("credits debited", spent, least, most)
        .into_iter()
        .chain(out_of_range(
            "debits for transactions that no guest knows of",
            unknown_txns,
            0,
            journal.unknown_openings,
        ))
        .chain(undebited.map(|txn| format!("not debited: {}", journal.line(txn))))
        .chain(repeated.map(|txn| format!("debited twice: {}", journal.line(txn))))
        .chain(multiple.map(|line| format!("{} credits debited at once for {}", line.amount, line.reference)));
    let figures = format!("{} opened, {spent} credits spent", range(least, most));
    finding("each transaction opened costs one credit", figures, violations)
}

/// Checks that the entries of the ledger add up to its balances.
pub(super) fn check_ledger(evidence: &Evidence) -> Finding {
    let (mut sum_of_entries, mut granted) = (0, 0);
    let mut violations = Vec::new();
    for (line, number) in evidence.ledger.iter().zip(1..) {
        let kind = line.kind;
        sum_of_entries += kind.signed(line.amount);
        granted += if kind == EntryKind::Debit { 0 } else { line.amount };
        if i64::try_from(line.balance_after) != Ok(sum_of_entries) || line.seq.get() != number {
            violations.push(format!(
                "entry {}: {} {} leaves {}, by the entries {sum_of_entries}",
                line.seq,
                kind.as_str(),
                line.amount,
                line.balance_after
            ));
        }
    }
    if i64::try_from(evidence.balance) != Ok(sum_of_entries) {
        violations.push(format!("balance {} instead of {sum_of_entries}", evidence.balance));
    }
    if evidence.granted != granted {
        violations.push(format!("{granted} credits granted instead of {}", evidence.granted));
    }
    let figures = format!("{} entries, balance {}", evidence.ledger.len(), evidence.balance);
    finding("the ledger adds up to the balance", figures, violations)
}

/// Checks that the event never has more guests than places.
pub(super) fn check_places(evidence: &Evidence, event: &EventResponse, registered_txns: &[String]) -> Finding {
    let registered = u64::from(event.registration_count).max(registered_txns.len() as u64);
    let event_places = event.max_guests.get().into();
    let places = evidence.max_guests.unwrap_or(event_places);
    let violations =
        out_of_range("registered", registered, 0, places).into_iter().chain(mismatch("places", event_places, places));
    finding("never more guests than places", format!("{registered} registered, {places} places"), violations)
}

/// Checks that exactly the accepted guests are registered.
pub(super) fn check_registrations(
    evidence: &Evidence,
    expected: &Expected<'_>,
    event: &EventResponse,
    registered_txns: &[String],
) -> Finding {
    let distinct: HashSet<&str> = registered_txns.iter().map(String::as_str).collect();
    let (length, journal) = (registered_txns.len() as u64, &evidence.journal);
    let missing = expected
        .accepted
        .iter()
        .filter(|txn| !distinct.contains(**txn))
        .map(|txn| format!("accepted and not registered: {}", journal.line(txn)));
    let is_unaccepted = |txn: &&&str| !expected.accepted.contains(**txn) && !expected.unknown.contains(**txn);
    let unaccepted = distinct
        .iter()
        .filter(is_unaccepted)
        .map(|txn| format!("registered and never accepted: {}", journal.line(txn)));
    let violations = mismatch("registrations counted", event.registration_count.into(), length)
        .into_iter()
        .chain(mismatch("distinct registrations", distinct.len() as u64, length))
        .chain(missing)
        .chain(unaccepted);
    let figures = format!(
        "{} accepted, {length} registered, {} without an answer",
        expected.accepted.len(),
        expected.unknown.len()
    );
    finding("the registered guests are those with an accepted credential", figures, violations)
}

/// Checks that the event counts every opened transaction as a scan.
pub(super) fn check_scan_count(evidence: &Evidence, event: &EventResponse) -> Finding {
    let (least, most) = opened_range(evidence);
    let (scans, debits) = (event.scan_count, super::debits(&evidence.ledger).count() as u64);
    let figures = format!("{} opened, {scans} scans counted", range(least, most));
    let violations =
        out_of_range("scans", scans, least, most).into_iter().chain(mismatch("scans by the debits", debits, scans));
    finding("each scan is counted", figures, violations)
}

/// Checks that the event counts guests who left, once their transactions have expired.
pub(super) fn check_abandoned_count(evidence: &Evidence, event: &EventResponse) -> Finding {
    let unanswered = || evidence.journal.entries.values().filter(|entry| entry.callback.is_none_or(may_be_pending));
    let has_expired = |entry: &&Entry| {
        entry.intent_expires_at.is_some_and(|expires| expires + EXPIRY_SLACK_SECONDS <= evidence.read_at)
    };
    let has_left = |entry: &&Entry| entry.callback.is_none();
    let expired = unanswered().filter(has_left).filter(has_expired).count() as u64;
    let (left, unanswered) = (unanswered().filter(has_left).count() as u64, unanswered().count() as u64);
    let least = if evidence.all_expired { left } else { expired };
    let most = unanswered + evidence.journal.unknown_openings;
    let figures =
        format!("{} counted, {left} left, {least} of them long enough ago to be expired", event.abandoned_count);
    finding(
        "guests who left are counted once expired",
        figures,
        out_of_range("abandoned", event.abandoned_count, least, most),
    )
}

/// Returns true if a transaction may still be pending after this callback.
const fn may_be_pending(callback: super::journal::PostedCallback) -> bool {
    matches!(callback.reply, Reply::Unknown | Reply::Refused(_))
}

/// Checks that no guest was turned away before the event was full.
pub(super) fn check_turned_away(evidence: &Evidence, places: u64) -> Finding {
    let entries = &evidence.journal.entries;
    let consents =
        entries.values().filter_map(|entry| entry.callback.filter(|callback| callback.kind == CallbackKind::Consent));
    let accepted = consents.filter(|callback| matches!(callback.reply, Reply::Accepted | Reply::Unknown));
    let mut sending_times: Vec<_> = accepted.map(|callback| callback.sent_at).collect();
    sending_times.sort_unstable();
    // The event cannot be full before as many credentials as places were sent.
    let earliest = usize::try_from(places).ok().and_then(|places| sending_times.get(places.checked_sub(1)?)).copied();
    let is_early = |at: std::time::Duration| earliest.is_none_or(|earliest| at < earliest);
    let turned_away = &evidence.journal.turned_away;
    let at_start = turned_away.iter().filter(|at| is_early(**at));
    let at_start = at_start.map(|at| format!("turned away {:.3} s after the beginning", at.as_secs_f64()));
    let refused =
        entries.iter().filter(|(_, entry)| entry.callback.is_some_and(|callback| callback.reply == Reply::Full));
    let too_early =
        refused.clone().filter(|(_, entry)| entry.callback.is_some_and(|callback| is_early(callback.replied_at)));
    let violations = at_start.chain(too_early.map(|(txn, _)| evidence.journal.line(txn)));
    let figures = format!("{} turned away at the start, {} with a credential", turned_away.len(), refused.count());
    finding("nobody is turned away before the event is full", figures, violations)
}

/// Checks that polling returned the outcome of each transaction.
pub(super) fn check_results(evidence: &Evidence) -> Finding {
    let entries = &evidence.journal.entries;
    let results_read = entries.values().filter(|entry| entry.poll_result.is_some()).count();
    let violations = entries.iter().filter(|(_, entry)| match (&entry.poll_result, expected_result(entry)) {
        (Some(result), Some(expected)) => *result != expected,
        (None, _) => entry.callback.is_some_and(|callback| callback.reply == Reply::Accepted),
        (Some(_), None) => false,
    });
    let violations =
        violations.map(|(txn, entry)| format!("{}, polled {:?}", evidence.journal.line(txn), entry.poll_result));
    finding("polling returns the outcome of the callback", format!("{results_read} results read"), violations)
}

/// Returns the result of a transaction, if its callback determines it.
pub(super) fn expected_result(entry: &Entry) -> Option<PollResult> {
    let failed = |code: &str| PollResult::Finished { passed: false, code: Some(code.to_owned()) };
    match entry.callback.map(|callback| (callback.kind, callback.reply)) {
        None => Some(PollResult::Pending),
        Some((CallbackKind::Consent, Reply::Accepted)) => Some(PollResult::Finished { passed: true, code: None }),
        Some((CallbackKind::Refusal, Reply::Accepted)) => Some(failed(REJECTED)),
        Some((CallbackKind::Consent, Reply::Full)) => Some(failed(EventRefusal::Full.code())),
        Some((CallbackKind::Consent, Reply::Duplicate)) => Some(failed(EventRefusal::Duplicate.code())),
        Some(_) => None,
    }
}

/// Checks that exactly the required webhooks have records, and that webhooks recorded as delivered have arrived.
pub(super) fn check_deliveries(evidence: &Evidence, deliveries: &Deliveries, expected: &Expected<'_>) -> Finding {
    let (required, arrived) = (expected.required_webhooks(), &evidence.webhooks.by_txn);
    let unknown = deliveries.outcomes.values().filter(|outcome| *outcome == "unknown").count() as u64;
    let unrecorded = required
        .iter()
        .filter(|txn| !deliveries.outcomes.contains_key(**txn))
        .map(|txn| format!("{txn} has no record"));
    let violations = deliveries.outcomes.iter().filter_map(|(txn, outcome)| match outcome.as_str() {
        _ if !required.contains(txn.as_str()) => {
            Some(format!("{txn} has no outcome to report and is recorded as {outcome}"))
        }
        "delivered" if arrived.contains_key(txn) => None,
        "delivered" => Some(format!("{txn} is recorded as delivered and never arrived")),
        "unknown" => None,
        _ => Some(format!("{txn} ended as {outcome}")),
    });
    let figures = format!("{} recorded, {unknown} of them as unknown", deliveries.outcomes.len());
    let violations = out_of_range("recorded as unknown", unknown, 0, deliveries.unknown_max)
        .into_iter()
        .chain(unrecorded)
        .chain(violations);
    finding("the records of webhooks agree with what arrived", figures, violations)
}

/// Checks that each required webhook has arrived, or is recorded as `unknown`.
pub(super) fn check_required_webhooks(evidence: &Evidence, expected: &Expected<'_>) -> Finding {
    let (required, arrived) = (expected.required_webhooks(), &evidence.webhooks.by_txn);
    let is_recorded_as_unknown = |txn: &str| {
        evidence
            .deliveries
            .as_ref()
            .and_then(|deliveries| deliveries.outcomes.get(txn))
            .is_some_and(|outcome| outcome == "unknown")
    };
    let lost = required.iter().copied().filter(|txn| !arrived.contains_key(*txn) && !is_recorded_as_unknown(txn));
    let figures = format!(
        "{} had to arrive, {} did",
        required.len(),
        required.iter().filter(|txn| arrived.contains_key(**txn)).count()
    );
    finding("each outcome is reported by a webhook", figures, lines(evidence, lost))
}

/// Checks that no webhook arrived twice.
pub(super) fn check_repeated_webhooks(evidence: &Evidence) -> Finding {
    let arrived = &evidence.webhooks.by_txn;
    let twice = arrived.iter().filter(|(_, arrival)| arrival.count > 1);
    let figures = format!("{} distinct, {} more than once", arrived.len(), twice.clone().count());
    let violations = twice.map(|(txn, arrival)| format!("{} times: {}", arrival.count, evidence.journal.line(txn)));
    finding("no webhook is sent twice", figures, violations)
}

/// Checks that no webhook arrived for a transaction without an outcome.
pub(super) fn check_unexpected_webhooks(evidence: &Evidence, expected: &Expected<'_>) -> Finding {
    let allowed = expected.allowed_webhooks();
    let unexpected = evidence.webhooks.by_txn.keys().map(String::as_str).filter(|txn| !allowed.contains(txn));
    let unreadable = mismatch("webhooks that name no transaction", evidence.webhooks.unreadable, 0);
    let figures = format!("{} unexpected", unexpected.clone().count());
    finding("no webhook is sent without an outcome", figures, unreadable.into_iter().chain(lines(evidence, unexpected)))
}

/// Checks that each webhook has the outcome that the callback had.
pub(super) fn check_webhook_outcomes(evidence: &Evidence, expected: &Expected<'_>) -> Finding {
    let violations = evidence.webhooks.by_txn.iter().filter(|(txn, arrival)| {
        let txn = txn.as_str();
        (expected.accepted.contains(txn) && !arrival.passed) || (expected.declined.contains(txn) && arrival.passed)
    });
    let figures = format!("{} differ from the callback", violations.clone().count());
    finding(
        "each webhook reports the outcome of the callback",
        figures,
        violations.map(|(txn, _)| evidence.journal.line(txn)),
    )
}

/// Checks that no valid callback was refused.
pub(super) fn check_refused_callbacks(evidence: &Evidence) -> Finding {
    let refused = evidence.journal.entries.iter().filter(|(_, entry)| {
        entry.callback.is_some_and(|callback| {
            matches!(callback.reply, Reply::Refused(_))
                || (callback.kind == CallbackKind::Refusal && matches!(callback.reply, Reply::Full | Reply::Duplicate))
        })
    });
    let figures = format!("{} refused", refused.clone().count());
    // The rehearsal before the run has shown that credentials of this issuer are accepted.
    finding(
        "valid answers of the identity app are not refused",
        figures,
        refused.map(|(txn, _)| evidence.journal.line(txn)),
    )
}
