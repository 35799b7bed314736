//! A model of the ledger and the transactions of one client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;

use super::{AnswerFuture, Behaviour, call_all};
use crate::conformance::TestStore;
use crate::conformance::fixture::{
    RESULT_TTL, RETENTION, WINDOW, audited_balance, build_completion, build_opening_with_hook, client_with,
};
use crate::{CompleteOutcome, CreditOutcome, OpenOutcome};

/// A step of a test. A `slot` is the index of a transaction id.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Move { kind: EntryKind, amount: i64, reference: u8 },
    Open { slot: usize },
    Complete { slot: usize, answer: u8 },
    Advance { minutes: u64 },
    Sweep,
}

/// Generates steps.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (1..6_i64, 0..8_u8).prop_map(|(amount, reference)| Step::Move { kind: EntryKind::Grant, amount,
            reference }),
        1 => (-4..4_i64, 0..8_u8).prop_map(|(amount, reference)| Step::Move { kind: EntryKind::Adjust, amount,
            reference }),
        6 => (0..12_usize).prop_map(|slot| Step::Open { slot }),
        4 => (0..12_usize, 1..3_u8).prop_map(|(slot, answer)| Step::Complete { slot, answer }),
        1 => prop_oneof![Just(1), Just(14), Just(20), Just(24 * 60)].prop_map(|minutes| Step::Advance { minutes }),
        1 => Just(Step::Sweep),
    ]
}

/// A transaction that was opened.
struct Transaction {
    window_end: Timestamp,
    answer: Option<Answer>,
}

/// The first answer to a transaction.
struct Answer {
    number: u8,
    result_expires_at: Timestamp,
}

/// The expected state of a store.
#[derive(Default)]
struct Model {
    balance: i64,
    /// Amounts by reference; `true` stands for a grant.
    movements: BTreeMap<(bool, u8), i64>,
    /// The transactions by slot.
    transactions: BTreeMap<usize, Transaction>,
    debits: u64,
    queued: u64,
    /// Expired transactions that were neither swept nor replaced.
    unswept: BTreeSet<usize>,
}

impl Model {
    /// Applies a step. Returns the expected answer.
    fn expect(&mut self, behaviour: Behaviour, step: &Step, now: Timestamp) -> String {
        self.remove_expired(now);
        match *step {
            Step::Move { kind, amount, reference } => {
                match self.movements.get(&(kind == EntryKind::Grant, reference)) {
                    Some(known) if *known == amount => "moved".into(),
                    Some(_) => "reused".into(),
                    None if self.balance + amount < 0 => "out of range".into(),
                    None => {
                        self.balance += amount;
                        self.movements.insert((kind == EntryKind::Grant, reference), amount);
                        "moved".into()
                    }
                }
            }
            Step::Open { slot } if self.transactions.contains_key(&slot) => format!("opened {}", self.balance),
            Step::Open { .. } if self.balance == 0 => "no credits".into(),
            Step::Open { slot } => {
                (self.balance, self.debits) = (self.balance - 1, self.debits + 1);
                self.transactions.insert(slot, Transaction { window_end: now + WINDOW, answer: None });
                self.unswept.remove(&slot);
                format!("opened {}", self.balance)
            }
            Step::Complete { slot, answer } => match self.transactions.get_mut(&slot) {
                None => "not found".into(),
                Some(Transaction { answer: Some(first), .. }) if now >= first.result_expires_at => "not found".into(),
                Some(Transaction { answer: Some(first), .. }) => {
                    (if first.number == answer { "repeated" } else { "already completed" }).into()
                }
                Some(Transaction { window_end, answer: None }) if now >= *window_end => "expired".into(),
                Some(transaction) => {
                    let result_expires_at = now + RESULT_TTL;
                    transaction.answer = Some(Answer { number: answer, result_expires_at });
                    self.queued += u64::from(has_hook(slot));
                    format!("completed, queued {}", has_hook(slot))
                }
            },
            Step::Sweep if behaviour.removes_expired => "swept 0".into(),
            Step::Sweep => format!("swept {}", std::mem::take(&mut self.unswept).len()),
            Step::Advance { .. } => String::new(),
        }
    }

    /// Removes expired transactions.
    fn remove_expired(&mut self, now: Timestamp) {
        let is_expired = |slot: &usize, transaction: &mut Transaction| match &transaction.answer {
            None => now >= transaction.window_end + RETENTION.expired,
            Some(answer) => now >= answer.result_expires_at && !has_hook(*slot),
        };
        self.unswept.extend(self.transactions.extract_if(.., is_expired).map(|(slot, _)| slot));
    }
}

/// Returns true for the half of the transactions that have a webhook. This test attempts no deliveries.
const fn has_hook(slot: usize) -> bool {
    slot.is_multiple_of(2)
}

/// Executes a step on the store. Returns the answer in the words of the model.
fn execute(test: &impl TestStore, client: &ClientId, ids: &[TxnId], step: &Step) -> AnswerFuture {
    let store = test.store();
    match *step {
        Step::Move { kind, amount, reference } => {
            let outcome =
                store.move_credits(client.clone(), CreditMove { kind, amount, reference: reference.to_string() });
            Box::pin(async move { describe_move(&outcome.await.unwrap()) })
        }
        Step::Open { slot } => {
            let mut open = build_opening_with_hook(test, client, has_hook(slot).then_some("https://a.example/"));
            Arc::make_mut(&mut open.pending).id = ids[slot];
            let outcome = store.open_transaction(open);
            Box::pin(async move { describe_open(&outcome.await.unwrap()) })
        }
        Step::Complete { slot, answer } => {
            let outcome = store.complete_transaction(build_completion(ids[slot], answer));
            Box::pin(async move { describe_completion(&outcome.await.unwrap()) })
        }
        Step::Sweep => {
            let swept = store.sweep(test.now(), 1_000);
            Box::pin(async move { format!("swept {}", swept.await.unwrap().transactions) })
        }
        Step::Advance { .. } => Box::pin(async { String::new() }),
    }
}

/// Returns the answer to a movement of credits in the words of the model.
fn describe_move(outcome: &CreditOutcome) -> String {
    let words = match outcome {
        CreditOutcome::Moved(_) => "moved",
        CreditOutcome::ReferenceReused => "reused",
        CreditOutcome::OutOfRange => "out of range",
        CreditOutcome::NotFound => "no client",
    };
    words.into()
}

/// Returns the answer to an opening in the words of the model.
fn describe_open(outcome: &OpenOutcome) -> String {
    match outcome {
        OpenOutcome::Opened { balance } => format!("opened {balance}"),
        OpenOutcome::InsufficientCredits => "no credits".into(),
        OpenOutcome::Replayed(_) | OpenOutcome::KeyReused => "idempotency".into(),
        OpenOutcome::EventNotFound
        | OpenOutcome::EventRefused(_)
        | OpenOutcome::BudgetSpent
        | OpenOutcome::ScansPending => "event".into(),
    }
}

/// Returns the answer to a completion in the words of the model.
fn describe_completion(outcome: &CompleteOutcome) -> String {
    match outcome {
        CompleteOutcome::Completed { repeated: true, .. } => "repeated".into(),
        CompleteOutcome::Completed { queued, .. } => format!("completed, queued {}", queued.is_some()),
        CompleteOutcome::AlreadyCompleted(_) => "already completed".into(),
        CompleteOutcome::Expired => "expired".into(),
        CompleteOutcome::CredentialReplayed => "replayed".into(),
        CompleteOutcome::NotFound => "not found".into(),
    }
}

/// Executes the steps on a fresh store and compares each answer with the model's.
pub(crate) async fn compare(test: &impl TestStore, behaviour: Behaviour, steps: Vec<Step>) {
    let client = client_with(test, 0).await;
    let ids: Vec<TxnId> = (0..12).map(|lane| TxnId::generate(client.partition(), lane)).collect();
    let mut model = Model::default();
    for group in steps.split_inclusive(|step| matches!(step, Step::Advance { .. })) {
        let expected: Vec<String> = group.iter().map(|step| model.expect(behaviour, step, test.now())).collect();
        let answers = call_all(behaviour, group.iter().map(|step| execute(test, &client, &ids, step))).await;
        assert_eq!(answers, expected, "{group:?}");
        assert_eq!(audited_balance(test, &client).await, u64::try_from(model.balance).unwrap());
        if let Some(Step::Advance { minutes }) = group.last() {
            test.advance(Duration::from_secs(minutes * 60));
        }
    }
    let audit = test.store().audit().await.unwrap().remove(0);
    assert_eq!(audit.entries, model.debits + model.movements.len() as u64);
    let due = test.store().first_due_deliveries(10_000).await.unwrap();
    assert_eq!(due.len() as u64, model.queued);
}
