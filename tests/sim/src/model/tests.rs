//! Visits every state of the models within bounds, with the protocols as they are and with each planted fault.

use std::fmt::Debug;
use std::hash::Hash;

use sakshi_domain::ids::TxnId;
use sakshi_kit::model::history::{DeliveryView, Event, forbidden_steps};
use sakshi_kit::model::outbox::{self, Attempt, Outbox};
use sakshi_store::redis::NodeId;
use stateright::{Checker as _, Model, Property};

use super::ledger::{self, Ledger, Outcome};

/// The model of the outbox, for the checker.
struct VisitedOutbox(Outbox);

impl Model for VisitedOutbox {
    type State = outbox::State;
    type Action = outbox::Step;

    fn init_states(&self) -> Vec<Self::State> {
        vec![outbox::State::new(self.0.bounds)]
    }

    fn actions(&self, state: &Self::State, steps: &mut Vec<Self::Action>) {
        steps.extend(self.0.steps(state));
    }

    fn next_state(&self, state: &Self::State, step: Self::Action) -> Option<Self::State> {
        self.0.state_after(state, step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a webhook leaves at most once", |_, state: &outbox::State| state.sent <= 1),
            Property::always("what ends was claimed", |_, state: &outbox::State| {
                state.store.attempt.is_none() || state.store.claim.is_some()
            }),
            Property::always("what waits is in the outbox of its node", |_, state: &outbox::State| {
                state.store.attempt.is_some() || state.store.listed == state.store.holder
            }),
            Property::always("a known end stays", |_, state: &outbox::State| state.keeps_ends()),
            Property::eventually("nothing starves", |_, state: &outbox::State| state.is_settled()),
            Property::sometimes("what was given up becomes known", |_, state: &outbox::State| {
                state.sent == 1 && state.store.attempt == Some(Attempt::Known)
            }),
        ]
    }
}

impl Model for Ledger {
    type State = ledger::State;
    type Action = ledger::Step;

    fn init_states(&self) -> Vec<Self::State> {
        vec![ledger::State::new(self.bounds)]
    }

    fn actions(&self, state: &Self::State, steps: &mut Vec<Self::Action>) {
        steps.extend(self.steps(state));
    }

    fn next_state(&self, state: &Self::State, step: Self::Action) -> Option<Self::State> {
        self.state_after(state, step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the balance is the sum of its entries", |model: &Self, state: &ledger::State| {
                let spent = i8::try_from(state.stored.debits.len()).unwrap_or(i8::MAX);
                state.stored.balance >= 0 && state.stored.balance + spent == model.bounds.credits
            }),
            Property::always("a caller pays once", |_, state: &ledger::State| {
                let debits = |caller| state.stored.debits.iter().filter(|debit| debit.caller == caller).count();
                (0..state.stored.keys.len()).all(|caller| debits(caller) <= 1)
            }),
            Property::always("what was answered is kept", |_, state: &ledger::State| {
                let is_debited = |attempt| state.stored.debits.contains(&attempt);
                state.answers().all(|(_, outcome)| !matches!(outcome, Outcome::Opened(attempt) if !is_debited(attempt)))
            }),
            Property::always("nobody is refused who could pay", |_, state: &ledger::State| {
                state.stored.balance == 0 || state.answers().all(|(_, outcome)| outcome != Outcome::Unpaid)
            }),
            Property::eventually("everybody is answered", |_, state: &ledger::State| state.is_settled()),
        ]
    }
}

/// Returns true if the environment asks for the long form of the tests.
fn is_long() -> bool {
    std::env::var("SAKSHI_TESTS").is_ok_and(|form| form == "long")
}

/// Searches all states of a model. Returns the names of its properties that fail, and of expected states that never
/// occur.
fn failed_properties<M>(model: M) -> Vec<&'static str>
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{} states, {} deep", checker.unique_state_count(), checker.max_depth());
    let sometimes: Vec<&str> = checker
        .model()
        .properties()
        .iter()
        .filter(|property| property.expectation == stateright::Expectation::Sometimes)
        .map(|property| property.name)
        .collect();
    let discoveries = checker.discoveries();
    let mut failed: Vec<&str> = discoveries.keys().copied().filter(|name| !sometimes.contains(name)).collect();
    failed.extend(sometimes.iter().filter(|name| !discoveries.contains_key(*name)));
    for (name, path) in &discoveries {
        if failed.contains(name) {
            println!("{name}: {:?}", path.clone().into_actions());
        }
    }
    failed
}

/// Bounds of the short search of the outbox.
const OUTBOX: outbox::Bounds =
    outbox::Bounds { nodes: 2, tasks: 2, deaths: 1, pauses: 1, mistakes: 1, lags: 1, panics: 0 };
/// Bounds of the long search of the ledger.
const LEDGER: ledger::Bounds =
    ledger::Bounds { callers: 3, tries: 2, nodes: 2, credits: 2, group_max: 2, deaths: 1, failures: 1, lags: 1 };

#[test]
fn in_every_state_of_an_outbox_a_webhook_leaves_at_most_once_and_none_starves() {
    assert_eq!(failed_properties(VisitedOutbox(Outbox { bounds: OUTBOX, fault: outbox::Fault::None })), [""; 0]);
    if is_long() {
        assert_eq!(
            failed_properties(VisitedOutbox(Outbox {
                bounds: outbox::Bounds { lags: 2, panics: 1, ..OUTBOX },
                fault: outbox::Fault::None
            })),
            [""; 0]
        );
        let three = outbox::Bounds { nodes: 3, tasks: 1, deaths: 2, ..OUTBOX };
        assert_eq!(failed_properties(VisitedOutbox(Outbox { bounds: three, fault: outbox::Fault::None })), [""; 0]);
    }
}

#[test]
fn every_fault_of_the_outbox_is_found_in_its_model() {
    use outbox::Fault::{ClaimsTwice, ClearsFirst, GivesAwayClaimed, GivesUpEnded, SendsUnconfirmed};
    // Each planted fault shows with few other faults.
    let two_tasks = outbox::Bounds { deaths: 0, pauses: 0, mistakes: 0, ..OUTBOX };
    let mistake = outbox::Bounds { tasks: 1, mistakes: 1, lags: 0, ..two_tasks };
    for (fault, bounds, property) in [
        (ClaimsTwice, two_tasks, "a webhook leaves at most once"),
        (GivesAwayClaimed, mistake, "a webhook leaves at most once"),
        (SendsUnconfirmed, two_tasks, "a webhook leaves at most once"),
        (ClearsFirst, mistake, "what waits is in the outbox of its node"),
        (GivesUpEnded, mistake, "a known end stays"),
    ] {
        let failed = failed_properties(VisitedOutbox(Outbox { bounds, fault }));
        assert!(failed.contains(&property), "{fault:?}: {failed:?}");
    }
}

#[test]
fn in_every_state_of_a_ledger_a_caller_pays_once_and_is_answered() {
    let bounds = if is_long() { LEDGER } else { ledger::Bounds { callers: 2, credits: 1, ..LEDGER } };
    assert_eq!(failed_properties(Ledger { bounds, fault: ledger::Fault::None }), [""; 0]);
}

#[test]
fn every_fault_of_the_ledger_is_found_in_its_model() {
    use ledger::Fault::{AnswersUnconfirmed, DebitsAgain, KeepsKeysLater, LooksOnce};
    let bounds = ledger::Bounds { callers: 2, credits: 1, ..LEDGER };
    for (fault, property) in [
        (DebitsAgain, "a caller pays once"),
        (LooksOnce, "the balance is the sum of its entries"),
        (KeepsKeysLater, "a caller pays once"),
        (AnswersUnconfirmed, "what was answered is kept"),
    ] {
        // A caller can pay twice only with two credits.
        let failed = failed_properties(Ledger {
            bounds: ledger::Bounds { credits: if fault == LooksOnce { 1 } else { 2 }, ..bounds },
            fault,
        });
        assert!(failed.contains(&property), "{fault:?}: {failed:?}");
    }
}

fn delivery_view(holder: NodeId, is_claimed: bool, attempt: Option<Attempt>) -> DeliveryView {
    DeliveryView { holder: Some(holder.to_string()), is_claimed, attempt }
}

#[test]
fn a_history_that_the_model_allows_is_accepted_and_another_is_refused() {
    let (txn, one, other) = (TxnId::from_bytes([1; 16]), NodeId::generate(), NodeId::generate());
    let commit = |node: NodeId, view: DeliveryView| Event::Committed(txn, node, view);
    let [unclaimed, claimed] = [false, true];
    let queue = commit(one, delivery_view(one, unclaimed, None));
    let claim = commit(one, delivery_view(one, claimed, None));
    let record = commit(one, delivery_view(one, claimed, Some(Attempt::Known)));
    let give_up = commit(other, delivery_view(one, claimed, Some(Attempt::Unknown)));
    let take_over = commit(other, delivery_view(other, unclaimed, None));
    let send = |node| Event::Sent(txn, node);
    for history in [
        vec![queue.clone(), claim.clone(), send(one), record.clone()],
        vec![queue.clone(), claim.clone(), give_up.clone(), send(one), record.clone()],
        vec![queue.clone(), take_over.clone(), commit(other, delivery_view(other, claimed, None)), send(other)],
        // The claim was lost with the old master, and nobody had heard of it.
        vec![queue.clone(), Event::Lags(()), claim.clone(), Event::FailedOver(()), take_over.clone()],
    ] {
        assert_eq!(forbidden_steps(&history, |_, ()| true), [""; 0]);
    }
    for history in [
        vec![queue.clone(), send(one)],
        vec![queue.clone(), claim.clone(), send(one), send(one)],
        vec![queue.clone(), claim.clone(), send(other)],
        vec![queue.clone(), Event::Lags(()), claim.clone(), send(one)],
        vec![queue.clone(), claim.clone(), take_over],
        vec![queue.clone(), record.clone()],
        vec![queue, claim, send(one), record, give_up],
    ] {
        assert_eq!(forbidden_steps(&history, |_, ()| true).len(), 1, "{history:?}");
    }
}
