//! A run without faults, and runs with one planted fault each.

use std::time::Duration;

use sakshi_domain::credits::LedgerEntry;
use sakshi_domain::event::MaxGuests;
use sakshi_domain::time::Timestamp;
use serde_json::json;

use super::journal::{Entry, Journal, PollResult, PostedCallback, REJECTED, Visit};
use super::webhooks::Arrival;
use super::*;

mod doors;
mod guests;

/// Number of rules that are checked for a run with an event.
const EVENT_RULES: usize = 14;
/// Number of further rules if the registered guests are checked for duplicates.
const DUPLICATE_RULES: usize = 2;
/// Number of further rules if there are doors.
const DOOR_RULES: usize = 4;

/// Returns a time since the start of the run.
fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn ledger_entry(seq: u64, kind: EntryKind, amount: i64, balance_after: u64, reference: &str) -> StatementEntry {
    LedgerEntry { seq, kind, amount, balance_after, reference: reference.to_owned(), at: Timestamp::from_millis(0) }
        .into()
}

/// A run of eleven guests at an event with eight places. Eight are registered, one of them without a reply; one
/// declines, one leaves, and the last is refused because the event is full.
fn faultless() -> Evidence {
    let journal = Journal::default();
    let mut list = Vec::new();
    let mut webhooks = Arrivals::default();
    let mut ledger = vec![ledger_entry(1, EntryKind::Grant, 100, 100, "start")];
    for guest in 0..11_u64 {
        let (txn, requested_at) = (format!("txn-{guest:02}"), at(guest * 100));
        journal.opened(
            &txn,
            Entry {
                guest,
                requested_at,
                opened_at: requested_at + at(1),
                intent_expires_at: Some(900),
                callback: None,
                poll_result: None,
            },
        );
        ledger.push(ledger_entry(2 + guest, EntryKind::Debit, 1, 99 - guest, &txn));
        let (kind, reply) = match guest {
            0 => (CallbackKind::Refusal, Reply::Accepted),
            1 => (CallbackKind::Consent, Reply::Unknown),
            10 => (CallbackKind::Consent, Reply::Full),
            _ => (CallbackKind::Consent, Reply::Accepted),
        };
        if guest != 2 {
            let (sent_at, replied_at) = (requested_at + at(10), requested_at + at(12));
            journal.record_callback(&txn, PostedCallback { kind, sent_at, replied_at, reply });
        }
        // The guest without a reply was registered.
        if guest == 1 || (guest > 2 && guest < 10) {
            list.push(txn.clone());
            webhooks.by_txn.insert(txn, Arrival { count: 1, first: requested_at + at(15), passed: true });
        }
        journal.ended(Visit::Done);
    }
    let view = json!({"event_id": "0fZbQ0000000000aB", "name": "Fair", "status": "at_capacity", "is_active": true,
        "claims": ["name"],
        "language": "english", "max_guests": 8, "registration_count": 8, "remaining": 0, "scan_count": 11,
        "abandoned_count": 0,
        "pending_count": 0, "entry": "open", "webhook_url": null,
        "qr_url": "https://verify.example/e/0fZbQ0000000000aB",
        "kiosk_url": "https://verify.example/e/0fZbQ0000000000aB/kiosk", "poster_url": "https://verify.example/poster",
        "created_at": "2026-01-01T00:00:00.000Z",
        "expires_at": "2026-01-02T00:00:00.000Z", "time_zone": "Asia/Kolkata", "organiser": null, "purpose": null});
    let view = serde_json::from_value(view).unwrap();
    Evidence {
        journal: journal.with(Clone::clone),
        started: 11,
        webhooks,
        ledger,
        balance: 89,
        event: Some((view, list)),
        guests: None,
        doors: Vec::new(),
        deliveries: None,
        granted: 100,
        has_poll_results: false,
        max_guests: Some(8),
        read_at: 500,
        all_expired: false,
        late_after: at(1_000),
    }
}

/// Returns the rules that a change of the faultless run breaks.
fn broken_rules(plant: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    broken_rules_in(faultless(), plant)
}

/// Returns the rules that a change of this run breaks.
fn broken_rules_in(mut evidence: Evidence, plant: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    plant(&mut evidence);
    judge(&evidence).into_iter().filter(|finding| !finding.held).map(|finding| finding.rule).collect()
}

/// Returns the event, and the transaction ids of its registered guests.
fn event(evidence: &mut Evidence) -> &mut (EventResponse, Vec<String>) {
    evidence.event.as_mut().unwrap()
}

#[test]
fn a_faultless_run_breaks_no_rule() {
    let findings = judge(&faultless());
    assert_eq!(findings.iter().filter(|finding| !finding.held).collect::<Vec<_>>(), Vec::<&Finding>::new());
    assert_eq!((findings.len(), Verdict::from_findings(&findings)), (EVENT_RULES, Verdict::Held));
    let counts = count_webhooks(&faultless());
    assert_eq!(counts, WebhookCounts { expected: 8, on_time: 8, ..WebhookCounts::default() });
}

#[test]
fn a_lost_webhook_is_detected() {
    let rules = broken_rules(|evidence| {
        evidence.webhooks.by_txn.remove("txn-05");
    });
    assert_eq!(rules, ["each outcome is reported by a webhook"]);
}

#[test]
fn a_repeated_webhook_is_detected() {
    assert_eq!(
        broken_rules(|evidence| evidence.webhooks.by_txn.get_mut("txn-05").unwrap().count = 2),
        ["no webhook is sent twice"]
    );
}

#[test]
fn a_webhook_for_an_unregistered_guest_is_detected() {
    for txn in ["txn-00", "txn-02", "txn-10", "a-stranger"] {
        let arrival = Arrival { count: 1, first: at(5_000), passed: true };
        let rules = broken_rules(|evidence| {
            evidence.webhooks.by_txn.insert(txn.to_owned(), arrival);
        });
        assert_eq!(rules[0], "no webhook is sent without an outcome", "{txn}");
    }
}

#[test]
fn a_webhook_with_another_outcome_than_the_callback_is_detected() {
    assert_eq!(
        broken_rules(|evidence| evidence.webhooks.by_txn.get_mut("txn-05").unwrap().passed = false),
        ["each webhook reports the outcome of the callback"]
    );
}

#[test]
fn missing_and_superfluous_debits_are_detected() {
    let twice = broken_rules(|evidence| {
        let again = ledger_entry(13, EntryKind::Debit, 1, 88, &evidence.ledger[5].reference);
        evidence.ledger.push(again);
        evidence.balance = 88;
    });
    assert_eq!(twice, ["each transaction opened costs one credit", "each scan is counted"]);
    let free = broken_rules(|evidence| {
        evidence.ledger.pop();
        evidence.balance = 90;
    });
    assert_eq!(free, ["each transaction opened costs one credit", "each scan is counted"]);
    assert_eq!(broken_rules(|evidence| evidence.balance -= 1), ["the ledger adds up to the balance"]);
    assert_eq!(broken_rules(|evidence| evidence.granted += 1), ["the ledger adds up to the balance"]);
}

#[test]
fn an_opening_without_a_response_may_have_cost_a_credit() {
    assert_eq!(broken_rules(|evidence| evidence.journal.unknown_openings = 1), Vec::<&str>::new());
    let charged = broken_rules(|evidence| {
        evidence.journal.unknown_openings = 1;
        evidence.ledger.push(ledger_entry(13, EntryKind::Debit, 1, 88, "unheard of"));
        evidence.balance = 88;
        event(evidence).0.scan_count += 1;
    });
    assert_eq!(charged, Vec::<&str>::new());
}

#[test]
fn an_overfull_event_is_detected() {
    let rules = broken_rules(|evidence| {
        event(evidence).1.push("txn-10".to_owned());
        event(evidence).0.registration_count = 9;
    });
    assert!(
        rules.contains(&"never more guests than places")
            && rules.contains(&"the registered guests are those with an accepted credential"),
        "{rules:?}"
    );
}

#[test]
fn an_accepted_guest_who_is_not_registered_is_detected() {
    let rules = broken_rules(|evidence| {
        let (view, list) = event(evidence);
        list.retain(|txn| txn != "txn-05");
        view.registration_count = 7;
    });
    assert!(rules.contains(&"the registered guests are those with an accepted credential"), "{rules:?}");
}

#[test]
fn a_409_before_the_event_is_full_is_detected() {
    let turned_away = |millis| broken_rules(|evidence| evidence.journal.turned_away.push(at(millis)));
    // The eighth credential, which fills the event, is sent after 910 ms.
    assert_eq!(turned_away(950), Vec::<&str>::new());
    assert_eq!(turned_away(300), ["nobody is turned away before the event is full"]);
    let with_free_place = broken_rules(|evidence| {
        evidence.max_guests = Some(9);
        event(evidence).0.max_guests = MaxGuests::new(9).unwrap();
    });
    assert_eq!(with_free_place, ["nobody is turned away before the event is full"]);
}

#[test]
fn wrong_counts_of_scans_and_abandoned_scans_are_detected() {
    assert_eq!(broken_rules(|evidence| event(evidence).0.scan_count = 12), ["each scan is counted"]);
    assert_eq!(
        broken_rules(|evidence| event(evidence).0.abandoned_count = 3),
        ["guests who left are counted once expired"]
    );
    // txn-02 left, and the callback of txn-01 may have been accepted or not.
    assert_eq!(broken_rules(|evidence| evidence.read_at = 2_000), ["guests who left are counted once expired"]);
    let counted = broken_rules(|evidence| {
        evidence.read_at = 2_000;
        event(evidence).0.abandoned_count = 1;
    });
    assert_eq!(counted, Vec::<&str>::new());
}

#[test]
fn a_refused_valid_callback_is_detected() {
    let rules = broken_rules(|evidence| {
        let entry = evidence.journal.entries.get_mut("txn-00").unwrap();
        entry.callback.as_mut().unwrap().reply = Reply::Refused(400);
    });
    assert_eq!(rules, ["valid answers of the identity app are not refused"]);
}

#[test]
fn a_tester_that_contradicts_itself_blames_itself() {
    for plant in [(|evidence: &mut Evidence| evidence.started = 12) as fn(&mut Evidence), |evidence| {
        evidence.journal.entries.get_mut("txn-05").unwrap().requested_at = at(60_000);
    }] {
        let mut evidence = faultless();
        plant(&mut evidence);
        evidence.webhooks.by_txn.remove("txn-05");
        assert_eq!(
            Verdict::from_findings(&judge(&evidence)),
            Verdict::Tester,
            "findings about the service prove nothing then"
        );
    }
}

#[test]
fn a_run_in_which_every_visit_failed_proves_nothing() {
    let mut evidence = faultless();
    evidence.journal.failed = evidence.journal.visits;
    assert_eq!(Verdict::from_findings(&judge(&evidence)), Verdict::Tester);
}

#[test]
fn late_webhooks_are_counted_and_break_no_rule() {
    let mut evidence = faultless();
    evidence.webhooks.by_txn.get_mut("txn-05").unwrap().first = at(60_000);
    assert_eq!(
        count_webhooks(&evidence),
        WebhookCounts { expected: 8, on_time: 7, late: 1, ..WebhookCounts::default() }
    );
    assert_eq!(Verdict::from_findings(&judge(&evidence)), Verdict::Held);
}

#[test]
fn without_an_event_every_outcome_is_sent_and_polled() {
    let run_without_event = || {
        let mut evidence = faultless();
        (evidence.event, evidence.has_poll_results) = (None, true);
        for (txn, entry) in &mut evidence.journal.entries {
            match entry.callback.as_mut() {
                Some(callback) if matches!(callback.reply, Reply::Full) => callback.reply = Reply::Accepted,
                _ => {}
            }
            if let Some(callback) = entry.callback.filter(|callback| callback.reply == Reply::Accepted) {
                let passed = callback.kind == CallbackKind::Consent;
                entry.poll_result = Some(PollResult::Finished { passed, code: (!passed).then(|| REJECTED.to_owned()) });
                evidence.webhooks.by_txn.insert(txn.clone(), Arrival { count: 1, first: at(5_000), passed });
            }
        }
        evidence
    };
    let rules = |evidence: &Evidence| {
        let broken = judge(evidence).into_iter().filter(|finding| !finding.held);
        broken.map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(&run_without_event()), Vec::<&str>::new());
    let mut evidence = run_without_event();
    for wrong in [PollResult::Pending, PollResult::Refused(404), PollResult::Finished { passed: true, code: None }] {
        evidence.journal.entries.get_mut("txn-00").unwrap().poll_result = Some(wrong);
        assert_eq!(rules(&evidence), ["polling returns the outcome of the callback"]);
    }
    evidence = run_without_event();
    evidence.webhooks.by_txn.remove("txn-00");
    assert_eq!(rules(&evidence), ["each outcome is reported by a webhook"]);
}

#[test]
fn records_of_deliveries_must_agree_with_the_webhooks_that_arrived() {
    let broken_with_records = |plant: fn(&mut Evidence, &mut Deliveries)| {
        broken_rules(|evidence| {
            let delivered = evidence.webhooks.by_txn.keys().map(|txn| (txn.clone(), "delivered".to_owned()));
            let mut deliveries = Deliveries { outcomes: delivered.collect(), unknown_max: 1 };
            plant(evidence, &mut deliveries);
            evidence.deliveries = Some(deliveries);
        })
    };
    const RULE: &str = "the records of webhooks agree with what arrived";
    assert_eq!(broken_with_records(|_, _| ()), Vec::<&str>::new());
    let killed = broken_with_records(|evidence, deliveries| {
        evidence.webhooks.by_txn.remove("txn-05");
        deliveries.outcomes.insert("txn-05".to_owned(), "unknown".to_owned());
    });
    assert_eq!(killed, Vec::<&str>::new(), "an attempt in flight at a kill may be lost");
    let wrong: [fn(&mut Evidence, &mut Deliveries); 5] = [
        |_, deliveries| drop(deliveries.outcomes.remove("txn-05")),
        |_, deliveries| drop(deliveries.outcomes.insert("txn-00".to_owned(), "delivered".to_owned())),
        |_, deliveries| drop(deliveries.outcomes.insert("txn-05".to_owned(), "failed".to_owned())),
        |_, deliveries| {
            for txn in ["txn-05", "txn-06"] {
                deliveries.outcomes.insert(txn.to_owned(), "unknown".to_owned());
            }
        },
        |_, deliveries| {
            (deliveries.unknown_max, _) = (0, deliveries.outcomes.insert("txn-05".to_owned(), "unknown".to_owned()));
        },
    ];
    for (number, plant) in wrong.into_iter().enumerate() {
        assert_eq!(broken_with_records(plant), [RULE], "{number}");
    }
    let lost = broken_with_records(|evidence, _| {
        evidence.webhooks.by_txn.remove("txn-05");
    });
    assert_eq!(lost, [RULE, "each outcome is reported by a webhook"]);
}

/// A change that plants a fault in the evidence.
type Plant = fn(&mut Evidence);

/// Each plant (a change of the evidence) violates one part of one rule, while every sum is right.
#[test]
fn each_part_of_a_rule_detects_its_fault() {
    const DEBITS: &str = "each transaction opened costs one credit";
    const LEDGER: &str = "the ledger adds up to the balance";
    const PLACES: &str = "never more guests than places";
    const GUESTS: &str = "the registered guests are those with an accepted credential";
    let plants: [(&str, Plant); 12] = [
        ("every guest has a transaction of their own", |evidence| evidence.journal.shared.push("txn-05".to_owned())),
        (DEBITS, |evidence| evidence.ledger[5].reference = evidence.ledger[6].reference.clone()),
        (DEBITS, |evidence| {
            evidence.ledger[5].reference = ledger_entry(1, EntryKind::Debit, 1, 0, "unheard of").reference;
        }),
        (LEDGER, |evidence| evidence.ledger[5].balance_after += 1),
        (LEDGER, |evidence| evidence.ledger[5].seq = evidence.ledger[6].seq),
        (PLACES, |evidence| event(evidence).0.max_guests = MaxGuests::new(9).unwrap()),
        (GUESTS, |evidence| event(evidence).0.registration_count = 7),
        (GUESTS, |evidence| event(evidence).1[3] = "txn-04".to_owned()),
        ("guests who left are counted once expired", |evidence| evidence.all_expired = true),
        ("no webhook is sent without an outcome", |evidence| evidence.webhooks.unreadable = 1),
        ("valid answers of the identity app are not refused", |evidence| {
            evidence.journal.entries.get_mut("txn-00").unwrap().callback.as_mut().unwrap().reply = Reply::Full;
        }),
        ("the tester's own records agree", |evidence| {
            evidence.journal.entries.get_mut("txn-05").unwrap().callback.as_mut().unwrap().replied_at = at(1);
        }),
    ];
    for (number, (rule, plant)) in plants.into_iter().enumerate() {
        assert!(broken_rules(plant).contains(&rule), "{number}: {rule} instead of {:?}", broken_rules(plant));
    }
}
