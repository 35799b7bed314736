//! The ledger and the transactions against a small model, over random interleavings that reach
//! the writer in groups.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use proptest::prelude::*;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;

use super::{Universe, universe};
use crate::conformance::World;
use crate::conformance::fixture::{RESULT_TTL, RETENTION, WINDOW, audited_balance, client_with, completing, opening_with_hook};
use crate::store::Store;
use crate::transition::{CompleteOutcome, CreditOutcome, OpenOutcome};

#[derive(Clone, Debug)]
enum Step {
    Move { kind: EntryKind, amount: i64, reference: u8 },
    Open { slot: usize },
    Complete { slot: usize, answer: u8 },
    Advance { minutes: u64 },
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (1..6_i64, 0..8_u8).prop_map(|(amount, reference)| Step::Move { kind: EntryKind::Grant, amount, reference }),
        1 => (-4..4_i64, 0..8_u8).prop_map(|(amount, reference)| Step::Move { kind: EntryKind::Adjust, amount, reference }),
        6 => (0..12_usize).prop_map(|slot| Step::Open { slot }),
        4 => (0..12_usize, 1..3_u8).prop_map(|(slot, answer)| Step::Complete { slot, answer }),
        1 => prop_oneof![Just(1), Just(14), Just(20), Just(24 * 60)].prop_map(|minutes| Step::Advance { minutes }),
        1 => Just(Step::Sweep),
    ]
}

/// What a store must answer, in as few words as possible.
#[derive(Default)]
struct Model {
    balance: i64,
    moved: BTreeMap<(bool, u8), i64>,
    transactions: BTreeMap<usize, (Timestamp, Option<(u8, Timestamp)>)>,
    debits: u64,
    queued: u64,
}

impl Model {
    fn expect(&mut self, step: &Step, now: Timestamp) -> String {
        match *step {
            Step::Move { kind, amount, reference } => match self.moved.get(&(kind == EntryKind::Grant, reference)) {
                Some(known) if *known == amount => "moved".into(),
                Some(_) => "reused".into(),
                None if self.balance + amount < 0 => "out of range".into(),
                None => {
                    self.balance += amount;
                    self.moved.insert((kind == EntryKind::Grant, reference), amount);
                    "moved".into()
                }
            },
            Step::Open { slot } if self.transactions.contains_key(&slot) => format!("opened {}", self.balance),
            Step::Open { .. } if self.balance == 0 => "no credits".into(),
            Step::Open { slot } => {
                (self.balance, self.debits) = (self.balance - 1, self.debits + 1);
                self.transactions.insert(slot, (now + WINDOW, None));
                format!("opened {}", self.balance)
            }
            Step::Complete { slot, answer } => match self.transactions.get_mut(&slot) {
                None => "not found".into(),
                Some((_, Some((_, until)))) if now >= *until => "not found".into(),
                Some((_, Some((first, _)))) => (if *first == answer { "repeated" } else { "already completed" }).into(),
                Some((expires_at, None)) if now >= *expires_at => "expired".into(),
                Some((_, ended)) => {
                    *ended = Some((answer, now + RESULT_TTL));
                    self.queued += u64::from(has_hook(slot));
                    format!("completed, queued {}", has_hook(slot))
                }
            },
            Step::Sweep => {
                let before = self.transactions.len();
                self.transactions.retain(|slot, (expires_at, ended)| match ended {
                    None => now < *expires_at + RETENTION.expired,
                    Some((_, until)) => now < *until || has_hook(*slot),
                });
                format!("swept {}", before - self.transactions.len())
            }
            Step::Advance { .. } => String::new(),
        }
    }
}

/// Half of the transactions have a webhook; no delivery is ever attempted here.
const fn has_hook(slot: usize) -> bool {
    slot.is_multiple_of(2)
}

fn carry_out<'a>(universe: &'a Universe, client: &ClientId, ids: &[TxnId], step: &Step) -> impl Future<Output = String> + use<'a> {
    let store = &universe.store;
    let (mut moved, mut opened, mut completed, mut swept) = (None, None, None, None);
    match *step {
        Step::Move { kind, amount, reference } => {
            moved = Some(store.move_credits(client.clone(), CreditMove { kind, amount, reference: reference.to_string() }));
        }
        Step::Open { slot } => {
            let mut open = opening_with_hook(universe, client, has_hook(slot).then_some("https://a.example/"));
            open.pending.id = ids[slot];
            opened = Some(store.open_transaction(open));
        }
        Step::Complete { slot, answer } => completed = Some(store.complete_transaction(completing(ids[slot], answer))),
        Step::Sweep => swept = Some(store.sweep(RETENTION, 1_000)),
        Step::Advance { minutes } => universe.advance(Duration::from_secs(minutes * 60)),
    }
    async move {
        if let Some(moved) = moved {
            return words_of_move(&moved.await.unwrap());
        }
        if let Some(opened) = opened {
            return words_of_open(&opened.await.unwrap());
        }
        if let Some(completed) = completed {
            return words_of_completion(&completed.await.unwrap());
        }
        match swept {
            Some(swept) => format!("swept {}", swept.await.unwrap().transactions),
            None => String::new(),
        }
    }
}

fn words_of_move(outcome: &CreditOutcome) -> String {
    let words = match outcome {
        CreditOutcome::Moved(_) => "moved",
        CreditOutcome::ReferenceReused => "reused",
        CreditOutcome::OutOfRange => "out of range",
        CreditOutcome::NotFound => "no client",
    };
    words.into()
}

fn words_of_open(outcome: &OpenOutcome) -> String {
    match outcome {
        OpenOutcome::Opened { balance } => format!("opened {balance}"),
        OpenOutcome::InsufficientCredits => "no credits".into(),
        OpenOutcome::Replayed(_) | OpenOutcome::KeyReused => "idempotency".into(),
        OpenOutcome::EventNotFound | OpenOutcome::EventRefused(_) => "event".into(),
    }
}

fn words_of_completion(outcome: &CompleteOutcome) -> String {
    match outcome {
        CompleteOutcome::Completed { repeated: true, .. } => "repeated".into(),
        CompleteOutcome::Completed { queued, .. } => format!("completed, queued {}", queued.is_some()),
        CompleteOutcome::AlreadyCompleted(_) => "already completed".into(),
        CompleteOutcome::Expired => "expired".into(),
        CompleteOutcome::CredentialReplayed => "replayed".into(),
        CompleteOutcome::NotFound => "not found".into(),
    }
}

async fn compare(steps: Vec<Step>) {
    let universe = universe();
    let client = client_with(&universe, 0).await;
    let ids: Vec<TxnId> = (0..12).map(|lane| TxnId::generate(client.partition(), lane)).collect();
    let mut model = Model::default();
    // What lies between two moves of the clock is handed over together and carried out in order.
    for group in steps.split_inclusive(|step| matches!(step, Step::Advance { .. })) {
        let (advance, group) = match group.split_last() {
            Some((last @ Step::Advance { .. }, rest)) => (Some(last), rest),
            _ => (None, group),
        };
        let expected: Vec<String> = group.iter().map(|step| model.expect(step, universe.now())).collect();
        let answered = join_all(group.iter().map(|step| carry_out(&universe, &client, &ids, step)).collect::<Vec<_>>()).await;
        assert_eq!(answered, expected, "{group:?}");
        assert_eq!(audited_balance(&universe, &client).await, u64::try_from(model.balance).unwrap());
        if let Some(advance) = advance {
            carry_out(&universe, &client, &ids, advance).await;
        }
    }
    let audit = universe.store.audit().await.unwrap().remove(0);
    assert_eq!(audit.entries, model.debits + model.moved.len() as u64);
    let due = universe.store.due_deliveries(None, None, 10_000).await.unwrap();
    assert_eq!(due.len() as u64, model.queued);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_does_what_the_model_says(steps in prop::collection::vec(step(), 1..160)) {
        crate::conformance::run(compare(steps));
    }
}
