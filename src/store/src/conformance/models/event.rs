//! A model of one event: scans, answers, patches, grants and sweeps, with advancing time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use sakshi_domain::delivery::Subject;
use sakshi_domain::event::{Event, EventCounts, EventPatch, EventRefusal};
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;

use super::{AnswerFuture, Behaviour, call_all};
use crate::conformance::TestStore;
use crate::conformance::fixture::{
    EVENT_DURATION, RESULT_TTL, RETENTION, WINDOW, audited_balance, build_completion, build_declined_completion,
    build_event, build_guest_scan, client_with, grant, max_guests, store_event,
};
use crate::conformance::guests::ALL;
use crate::{CompleteOutcome, CreditOutcome, OpenOutcome, PatchEventOutcome, Retention};

/// Number of transaction ids that the steps use; a `slot` is the index of one.
const SLOTS: usize = 24;
/// Retention with which the event outlives every sequence of steps.
pub(crate) const EVENT_RETENTION: Retention =
    Retention { events: Duration::from_secs(10 * 366 * 24 * 3_600), ..RETENTION };

/// A step of a test.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Scan {
        slot: usize,
    },
    Answer {
        slot: usize,
        passes: bool,
    },
    /// Sets the limit of guests.
    Cap {
        places: u32,
    },
    Enable {
        active: bool,
    },
    /// Moves the end of the event to this many minutes from now.
    Extend {
        minutes: u64,
    },
    Grant {
        credits: u8,
    },
    Sweep,
    Advance {
        seconds: u64,
    },
}

/// Generates steps.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..SLOTS).prop_map(|slot| Step::Scan { slot }),
        8 => (0..SLOTS, prop::bool::weighted(0.8)).prop_map(|(slot, passes)| Step::Answer { slot, passes }),
        1 => (1..6_u32).prop_map(|places| Step::Cap { places }),
        1 => prop::bool::weighted(0.7).prop_map(|active| Step::Enable { active }),
        1 => prop_oneof![Just(0_u64), Just(5), Just(48 * 60)].prop_map(|minutes| Step::Extend { minutes }),
        2 => (1..6_u8).prop_map(|credits| Step::Grant { credits }),
        1 => Just(Step::Sweep),
        2 => prop_oneof![4 => Just(7_u64), 4 => Just(450), 4 => Just(900), 1 => Just(4 * 3_600), 1 => Just(25 * 3_600)]
            .prop_map(|seconds| Step::Advance { seconds }),
    ]
}

/// A guest's scan.
struct Scan {
    window_end: Timestamp,
    answer: Option<Answer>,
}

/// The answer to a scan.
struct Answer {
    has_passed: bool,
    is_registered: bool,
    result_expires_at: Timestamp,
}

/// The expected state of a store.
struct Model {
    credits: u64,
    spent: u64,
    granted: u64,
    is_active: bool,
    expires_at: Timestamp,
    max_guests: u32,
    /// The scans by slot.
    scans: BTreeMap<usize, Scan>,
    /// Abandoned scans that were removed.
    removed_abandoned: u64,
    /// Slots of the registered guests, in order.
    registered: Vec<usize>,
}

impl Model {
    /// Returns the reason for which the event takes no guest now.
    fn refusal(&self, now: Timestamp) -> Option<EventRefusal> {
        match (self.is_active, now < self.expires_at, self.registered.len() < self.max_guests as usize) {
            (false, ..) => Some(EventRefusal::Disabled),
            (_, false, _) => Some(EventRefusal::Expired),
            (.., false) => Some(EventRefusal::Full),
            _ => None,
        }
    }

    /// Applies a step. Returns the expected answer.
    fn expect(&mut self, step: &Step, now: Timestamp) -> String {
        self.remove_expired(now);
        let refusal = self.refusal(now);
        match *step {
            Step::Scan { slot } if self.scans.contains_key(&slot) => return format!("opened {}", self.credits),
            Step::Scan { slot } => match refusal {
                Some(refusal) => return format!("refused {refusal:?}"),
                None if self.credits == 0 => return "no credits".into(),
                None => {
                    (self.credits, self.spent) = (self.credits - 1, self.spent + 1);
                    self.scans.insert(slot, Scan { window_end: now + WINDOW, answer: None });
                    return format!("opened {}", self.credits);
                }
            },
            Step::Answer { slot, passes } => match self.scans.get_mut(&slot) {
                None => return "unknown".into(),
                Some(Scan { answer: Some(answer), .. }) if now >= answer.result_expires_at => return "unknown".into(),
                Some(Scan { answer: Some(answer), .. }) => {
                    return (if answer.has_passed == passes { "repeated" } else { "answered before" }).into();
                }
                Some(Scan { window_end, answer: None }) if now >= *window_end => return "late".into(),
                Some(Scan { answer, .. }) => {
                    let is_registered = passes && refusal.is_none();
                    let result_expires_at = now + RESULT_TTL;
                    *answer = Some(Answer { has_passed: passes, is_registered, result_expires_at });
                    self.registered.extend(is_registered.then_some(slot));
                    let refusal = refusal.filter(|_| passes);
                    return format!("passed {is_registered}, {refusal:?}, webhook {is_registered}");
                }
            },
            Step::Cap { places } if (places as usize) < self.registered.len() => return "contradicts".into(),
            // Setting the current end again is allowed.
            Step::Extend { minutes: 0 } if self.expires_at != now => return "contradicts".into(),
            Step::Cap { places } => self.max_guests = places,
            Step::Enable { active } => self.is_active = active,
            Step::Extend { minutes } => self.expires_at = now + Duration::from_secs(minutes * 60),
            Step::Grant { credits } => {
                (self.credits, self.granted) = (self.credits + u64::from(credits), self.granted + 1);
            }
            Step::Sweep | Step::Advance { .. } => {}
        }
        "done".into()
    }

    /// Removes expired scans.
    fn remove_expired(&mut self, now: Timestamp) {
        self.scans.retain(|_, scan| match &scan.answer {
            // This test attempts no deliveries, so a transaction with a webhook does not expire.
            Some(answer) => answer.is_registered || now < answer.result_expires_at,
            None => {
                let is_expired = now >= scan.window_end + EVENT_RETENTION.expired;
                self.removed_abandoned += u64::from(is_expired);
                !is_expired
            }
        });
    }

    /// Returns the counts that the event must report.
    fn counts(&self, now: Timestamp) -> EventCounts {
        let unanswered = self.scans.values().filter(|scan| scan.answer.is_none());
        let (overdue, pending): (Vec<_>, Vec<_>) = unanswered.partition(|scan| now >= scan.window_end);
        EventCounts {
            registrations: u32::try_from(self.registered.len()).unwrap(),
            scans: self.spent,
            abandoned: self.removed_abandoned + overdue.len() as u64,
            pending: pending.len() as u64,
            ..EventCounts::default()
        }
    }
}

/// Executes a step on the store. Returns the answer in the words of the model.
fn execute(test: &impl TestStore, event: &Event, ids: &[TxnId], number: usize, step: &Step) -> AnswerFuture {
    let store = test.store();
    let patch_event = |patch| -> AnswerFuture {
        let outcome = store.patch_event(event.id, event.app.clone(), patch);
        Box::pin(async move {
            match outcome.await.unwrap() {
                PatchEventOutcome::Patched(_) => "done".into(),
                PatchEventOutcome::Refused(_) => "contradicts".into(),
                PatchEventOutcome::PreconditionFailed => "changed".into(),
                PatchEventOutcome::NotFound => "no event".into(),
            }
        })
    };
    match *step {
        Step::Scan { slot } => {
            let mut open = build_guest_scan(test, event);
            Arc::make_mut(&mut open.pending).id = ids[slot];
            let outcome = store.open_transaction(open);
            Box::pin(async move { describe_scan(&outcome.await.unwrap()) })
        }
        Step::Answer { slot, passes } => {
            let complete =
                if passes { build_completion(ids[slot], 1) } else { build_declined_completion(ids[slot], 2) };
            let outcome = store.complete_transaction(complete);
            Box::pin(async move { describe_answer(&outcome.await.unwrap()) })
        }
        Step::Cap { places: count } => {
            patch_event(EventPatch { max_guests: Some(max_guests(count.into())), ..EventPatch::default() })
        }
        Step::Enable { active } => patch_event(EventPatch { is_active: Some(active), ..EventPatch::default() }),
        Step::Extend { minutes } => {
            let end = test.now() + Duration::from_secs(minutes * 60);
            patch_event(EventPatch { expires_at: Some(end), ..EventPatch::default() })
        }
        Step::Grant { credits } => {
            let outcome = store.move_credits(event.client.clone(), grant(credits.into(), &number.to_string()));
            Box::pin(async move {
                if matches!(outcome.await, Ok(CreditOutcome::Moved(_))) { "done".into() } else { "not moved".into() }
            })
        }
        Step::Sweep => {
            let swept = store.sweep(test.now(), 1_000);
            Box::pin(async move { swept.await.map(|_| "done".into()).unwrap() })
        }
        Step::Advance { .. } => Box::pin(async { "done".into() }),
    }
}

/// Returns the answer to a scan in the words of the model.
fn describe_scan(outcome: &OpenOutcome) -> String {
    match outcome {
        OpenOutcome::Opened { balance } => format!("opened {balance}"),
        OpenOutcome::EventRefused(refusal) => format!("refused {refusal:?}"),
        OpenOutcome::InsufficientCredits => "no credits".into(),
        OpenOutcome::BudgetSpent => "no budget".into(),
        OpenOutcome::ScansPending => "too many".into(),
        OpenOutcome::EventNotFound => "no event".into(),
        OpenOutcome::Replayed(_) | OpenOutcome::KeyReused => "idempotency".into(),
    }
}

/// Returns the answer to a completion in the words of the model.
fn describe_answer(outcome: &CompleteOutcome) -> String {
    match outcome {
        CompleteOutcome::Completed { repeated: true, .. } => "repeated".into(),
        CompleteOutcome::Completed { record, queued, .. } => {
            format!("passed {}, {:?}, webhook {}", record.passed, record.refused, queued.is_some())
        }
        CompleteOutcome::AlreadyCompleted(_) => "answered before".into(),
        CompleteOutcome::Expired => "late".into(),
        CompleteOutcome::CredentialReplayed => "replayed".into(),
        CompleteOutcome::NotFound => "unknown".into(),
    }
}

/// Asserts that the store has the state of the model.
async fn assert_agreement(test: &impl TestStore, event: &Event, ids: &[TxnId], model: &Model) {
    let current = test.store().load_event(event.id).await.unwrap().unwrap();
    assert_eq!(current.counts, model.counts(test.now()));
    assert!(current.counts.registrations <= current.terms.max_guests.get());
    let listed = test.store().list_registrations(event.id, ALL.into()).await.unwrap();
    let expected: Vec<TxnId> = model.registered.iter().map(|slot| ids[*slot]).collect();
    assert_eq!(listed.items.iter().map(|row| row.guest.txn).collect::<Vec<_>>(), expected);
    let subjects: Vec<Subject> = expected.into_iter().map(Into::into).collect();
    let due = test.store().first_due_deliveries(10_000).await.unwrap();
    assert_eq!(
        due.into_iter().map(|delivery| delivery.subject).collect::<Vec<_>>(),
        subjects,
        "one webhook for each registration"
    );
    assert_eq!(audited_balance(test, &event.client).await, model.credits);
    let audit = test.store().audit().await.unwrap().remove(0);
    assert_eq!(audit.entries, model.spent + model.granted, "one credit for each scan");
}

/// Executes the steps on a fresh store with the retention [`EVENT_RETENTION`]. Compares each answer with the model's.
pub(crate) async fn compare(test: &impl TestStore, behaviour: Behaviour, steps: Vec<Step>) {
    let client = client_with(test, 6).await;
    let event = store_event(test, build_event(test, &client, 3)).await;
    let ids: Vec<TxnId> = (0..SLOTS).map(|_| TxnId::generate(client.partition(), 7)).collect();
    let mut model = Model {
        credits: 6,
        spent: 0,
        granted: 1,
        is_active: true,
        expires_at: test.now() + EVENT_DURATION,
        max_guests: 3,
        scans: BTreeMap::new(),
        removed_abandoned: 0,
        registered: Vec::new(),
    };
    let mut number = 0;
    for group in steps.split_inclusive(|step| matches!(step, Step::Advance { .. })) {
        let expected: Vec<String> = group.iter().map(|step| model.expect(step, test.now())).collect();
        let calls = group.iter().zip(number..).map(|(step, at)| execute(test, &event, &ids, at, step));
        assert_eq!(call_all(behaviour, calls).await, expected, "{group:?}");
        assert_agreement(test, &event, &ids, &model).await;
        number += group.len();
        if let Some(Step::Advance { seconds }) = group.last() {
            test.advance(Duration::from_secs(*seconds));
            assert_agreement(test, &event, &ids, &model).await;
        }
    }
}
