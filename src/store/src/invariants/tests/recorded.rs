//! The invariants of batches: all batches that the conformance tests make keep them, and a small change of a batch
//! breaks each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sakshi_domain::clock::ManualClock;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::time::Timestamp;

use crate::conformance::ClockedStore;
use crate::conformance::fixture::RETENTION;
use crate::engine::memory::MemoryEngine;
use crate::engine::{
    Answers, Applied, Batch, ColumnKind, Engine, Guard, Op, Operand, Query, ScanFrom, Scanned, Table, Value,
};
use crate::error::StoreFuture;
use crate::invariants::step::{self, BatchRule};
use crate::invariants::{money, outbox, people};
use crate::operations::tests::VAULT_KEYS;
use crate::redis::NodeId;
use crate::vault::test_vault;
use crate::{Store, conformance};

/// Batches by form; one of each is enough.
type RecordedBatches = Arc<Mutex<BTreeMap<String, Batch>>>;

/// A memory engine that remembers batches, one of each form.
struct Recorder {
    engine: MemoryEngine,
    recorded: RecordedBatches,
}

/// Returns the recorded batches.
fn lock(recorded: &RecordedBatches) -> MutexGuard<'_, BTreeMap<String, Batch>> {
    recorded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the form of a batch: the variants of its guards and operations, with the kinds and fields of the operations.
fn batch_form(batch: &Batch) -> String {
    let op_form = |op: &Op| {
        let fields = match op {
            Op::Put(_, fields) | Op::Set(_, fields) => {
                fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",")
            }
            Op::Add(_, field, _) | Op::DrawNumber(_, field) => (*field).to_owned(),
            Op::Rewrite(_, _, values) => values
                .iter()
                .map(|value| if matches!(value, Operand::Value(Value::Integer(0))) { '0' } else { '1' })
                .collect(),
            _ => String::new(),
        };
        format!("{} {} {fields}", op.key().table.name, format!("{op:?}").split('(').next().unwrap_or_default())
    };
    let guards =
        batch.guards.iter().map(|guard| format!("{:?}", guard).split('(').next().unwrap_or_default().to_owned());
    guards.chain(batch.ops.iter().map(op_form)).collect::<Vec<_>>().join("; ")
}

impl Engine for Recorder {
    fn system(&self) -> &'static str {
        "recorder"
    }

    fn read(&self, queries: Vec<Query>) -> StoreFuture<Answers> {
        self.engine.read(queries)
    }

    fn commit(&self, batches: Vec<Batch>) -> StoreFuture<Vec<Applied>> {
        batches
            .iter()
            .for_each(|batch| _ = lock(&self.recorded).entry(batch_form(batch)).or_insert_with(|| batch.clone()));
        self.engine.commit(batches)
    }

    fn scan(&self, table: &'static Table, from: ScanFrom, limit: usize) -> StoreFuture<Scanned> {
        self.engine.scan(table, from, limit)
    }

    fn sweep(&self, now: Timestamp, limit: usize, batch: Batch) -> StoreFuture<Vec<(&'static Table, u64)>> {
        self.engine.sweep(now, limit, batch)
    }

    /// Returns true: everything is committed as on a cluster, in batches on one place.
    fn is_shared(&self) -> bool {
        true
    }

    fn works_at_once(&self) -> bool {
        true
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

thread_local! {
    /// The batches of all stores of this thread.
    static RECORDED: RecordedBatches = RecordedBatches::default();
}

/// Returns an empty store that records its batches.
fn test_store() -> ClockedStore<Box<Store>> {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
    let engine = Recorder { engine: MemoryEngine::new(clock.clone()), recorded: RECORDED.with(Arc::clone) };
    ClockedStore {
        store: Box::new(Store::new(
            Box::new(engine),
            Arc::new(test_vault(&VAULT_KEYS)),
            RETENTION,
            NodeId::generate(),
            None,
        )),
        clock,
    }
}

/// Returns one batch of each form that the operations of a store make.
fn recorded_batches() -> Vec<Batch> {
    conformance::run(async {
        use conformance::{
            audit_log, client_log, completion, consents, console, credits, erasure, events, flows, guests, lists,
            operators, outbox, people, refusals, sessions, tenancy, transactions, users,
        };
        credits::grants_and_adjustments_move_the_balance_and_are_repeatable(&test_store()).await;
        transactions::opening_debits_the_balance_and_stores_the_transaction(&test_store()).await;
        transactions::an_idempotency_key_replays_its_first_answer_and_refuses_another_body(&test_store()).await;
        completion::completing_stores_the_result_and_queues_one_webhook(&test_store()).await;
        completion::evidence_is_stored_and_removed_with_the_result(&test_store()).await;
        completion::a_credential_is_refused_under_another_transaction_in_the_replay_window(&test_store()).await;
        outbox::the_first_outcome_of_an_attempt_stands(&test_store()).await;
        outbox::an_abandoned_attempt_can_still_get_its_real_outcome(&test_store()).await;
        lists::a_summary_has_the_first_time_of_each_step_of_a_transaction(&test_store()).await;
        lists::the_figures_of_a_day_add_up_and_a_repeated_call_counts_once(&test_store()).await;
        tenancy::the_use_of_a_key_is_recorded_once_in_an_interval(&test_store()).await;
        refusals::the_newest_refused_requests_of_an_app_are_stored_newest_first(&test_store()).await;
        audit_log::the_receiver_of_the_audit_log_gets_every_entry_in_order(&test_store()).await;
        client_log::the_log_of_a_client_is_read_in_pages_newest_entry_first(&test_store()).await;
        consents::an_answered_verification_is_in_the_register_once(&test_store()).await;
        operators::an_operator_is_found_by_its_token_and_listed_by_creation(&test_store()).await;
        console::use_extends_a_console_session_up_to_its_end(&test_store()).await;
        console::a_grant_request_is_decided_once_by_a_second_operator(&test_store()).await;
        sessions::use_extends_a_session_up_to_its_end(&test_store()).await;
        users::an_invitation_link_works_once_until_it_expires(&test_store()).await;
        users::each_code_works_once_in_a_race(&test_store()).await;
        events::a_patch_of_an_event_changes_only_the_named_fields(&test_store()).await;
        guests::a_guest_who_passes_is_registered_and_reported_to_the_current_url(&test_store()).await;
        people::a_person_with_a_known_trait_is_marked_as_a_duplicate(&test_store()).await;
        people::a_guest_is_checked_in_once_by_concurrent_gates(&test_store()).await;
        people::an_erased_guest_has_no_name_and_no_traits_but_stays_checked_in(&test_store()).await;
        people::erasing_a_guest_removes_the_duplicate_marks_that_name_the_guest(&test_store()).await;
        erasure::erasing_a_transaction_removes_its_webhook_and_response_but_no_ledger_entry(&test_store()).await;
        erasure::erasing_a_client_erases_the_data_of_all_its_apps(&test_store()).await;
        flows::an_idempotency_key_opens_one_flow_and_an_unknown_client_none(&test_store()).await;
        flows::raw_then_analysed_then_raw_again_queues_two(&test_store()).await;
        flows::the_outcome_of_an_attempt_for_a_flow_is_recorded(&test_store()).await;
        flows::a_document_lapses_by_the_clock_of_the_store_and_is_reported_once(&test_store()).await;
        take_over_webhooks().await;
    });
    RECORDED.with(|recorded| lock(recorded).values().cloned().collect())
}

/// Queues webhooks of a transaction and of a report, and lets another node take them over.
async fn take_over_webhooks() {
    use conformance::{fixture, flow_fixture};
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
    let engine = MemoryEngine::new(clock.clone());
    let node = |id| {
        let recorder = Recorder { engine: engine.clone(), recorded: RECORDED.with(Arc::clone) };
        ClockedStore {
            store: Box::new(Store::new(Box::new(recorder), Arc::new(test_vault(&VAULT_KEYS)), RETENTION, id, None)),
            clock: clock.clone(),
        }
    };
    let (dead, other) = (NodeId::generate(), NodeId::generate());
    let test = node(dead);
    let client = fixture::client_with(&test, 5).await;
    fixture::open_and_complete(&test, &client).await;
    let flow =
        flow_fixture::open_flow(&test, flow_fixture::wealth_flow(&test, &flow_fixture::create_client_app(&test).await))
            .await;
    flow_fixture::accept_report(&test, &flow, flow_fixture::ShortReport::Data { fetch: 1, form: "RAW", content: 1 })
        .await
        .unwrap();
    node(other).store.take_over(dead).await.unwrap();
    node(other).store.erase(ErasureSubject::Flow(flow.id)).await.unwrap();
}

/// Returns variants of an operand with small changes.
fn changed_operands(operand: &Operand) -> Vec<Operand> {
    match operand {
        Operand::Value(Value::Integer(number)) => [number.wrapping_add(1), number.wrapping_sub(1), 0, 1, -1]
            .into_iter()
            .filter(|other| other != number)
            .map(Operand::from)
            .collect(),
        Operand::Value(Value::Text(text)) => {
            vec![format!("{text}0").into(), "".into(), "debit".into(), "adjust".into()]
        }
        Operand::Value(Value::Bytes(bytes)) => {
            vec![[&bytes[..], &[0]].concat().into(), vec![].into(), vec![1; 16].into()]
        }
        Operand::Result(number) => vec![Operand::Result(number + 1), 0.into()],
        Operand::Now(_) | Operand::Latest(..) => vec![0.into()],
        Operand::Field(_) | Operand::Nothing => vec![vec![1; 16].into(), 1.into()],
    }
}

/// Returns variants of the operation, each with one value changed.
fn changed_values(op: &Op) -> Vec<Op> {
    let each = |values: &[Operand]| -> Vec<Vec<Operand>> {
        let at = |position: usize| {
            let with = move |other| {
                values
                    .iter()
                    .enumerate()
                    .map(|(at, known)| if at == position { other } else { known }.clone())
                    .collect()
            };
            changed_operands(&values[position]).iter().map(with).collect::<Vec<_>>()
        };
        (0..values.len()).flat_map(at).collect()
    };
    let fields = |fields: &[(&'static str, Operand)], of: &dyn Fn(Vec<(&'static str, Operand)>) -> Op| -> Vec<Op> {
        let values: Vec<Operand> = fields.iter().map(|(_, value)| value.clone()).collect();
        let names = || fields.iter().map(|(name, _)| *name);
        let changed = each(&values).into_iter().map(|values| of(names().zip(values).collect()));
        let fewer = (0..fields.len()).map(|position| {
            of(fields.iter().enumerate().filter(|(at, _)| *at != position).map(|(_, field)| field.clone()).collect())
        });
        let missing = op.key().table.fields.iter().filter(|column| names().all(|name| name != column.name));
        let more = missing.map(|column| {
            let value = if column.kind == ColumnKind::Integer { Operand::from(5) } else { Operand::from(vec![5; 16]) };
            of(fields.iter().cloned().chain([(column.name, value)]).collect())
        });
        changed.chain(fewer).chain(more).collect()
    };
    let key = op.key().clone();
    match op {
        Op::Put(_, operand_for) => fields(operand_for, &|fields| Op::Put(key.clone(), fields)),
        Op::Set(_, operand_for) => fields(operand_for, &|fields| Op::Set(key.clone(), fields)),
        Op::Append(_, values) => each(values).into_iter().map(|values| Op::Append(key.clone(), values)).collect(),
        Op::Rewrite(_, number, values) => {
            each(values).into_iter().map(|values| Op::Rewrite(key.clone(), *number, values)).collect()
        }
        Op::Add(_, field, more) => {
            changed_operands(more).into_iter().map(|more| Op::Add(key.clone(), field, more)).collect()
        }
        Op::Index(_, member, score) => {
            let scores = changed_operands(score).into_iter().map(|score| Op::Index(key.clone(), member.clone(), score));
            scores.chain([Op::Index(key.clone(), vec![1], score.clone())]).collect()
        }
        _ => vec![],
    }
}

/// Returns guards that are slightly weaker or different.
fn changed_guard(guard: &Guard) -> Vec<Guard> {
    match guard {
        Guard::Length(key, length) => vec![Guard::Length(key.clone(), length + 1)],
        Guard::AtMost(key, field, most) => {
            vec![Guard::AtMost(key.clone(), field, most.saturating_add(1_000_000_000_000))]
        }
        Guard::Equal(key, field, Value::Integer(number)) => vec![Guard::Equal(key.clone(), field, (number + 1).into())],
        Guard::Equal(key, field, Value::Text(_)) => vec![Guard::Equal(key.clone(), field, "other".into())],
        Guard::Equal(key, field, Value::Bytes(_)) => vec![Guard::Equal(key.clone(), field, vec![1].into())],
        Guard::Entry(key, number, _) => vec![Guard::Entry(key.clone(), number + 1, vec![])],
        _ => vec![],
    }
}

/// Returns batches that differ from this one in one guard or operation.
fn changed_batches(batch: &Batch) -> Vec<Batch> {
    let mut all = Vec::new();
    for position in 0..batch.guards.len() {
        let mut fewer = batch.clone();
        let guard = fewer.guards.remove(position);
        all.extend(changed_guard(&guard).into_iter().map(|other| {
            let mut changed = batch.clone();
            changed.guards[position] = other;
            changed
        }));
        all.push(fewer);
    }
    for position in 0..batch.ops.len() {
        let with = |op: Op| {
            let mut other = batch.clone();
            other.ops[position] = op;
            other
        };
        all.extend(changed_values(&batch.ops[position]).into_iter().map(with));
        // The other operations keep their numbers.
        let no_op = Op::Notify(batch.ops[position].key().clone(), "");
        let mut twice = batch.clone();
        twice.ops.push(batch.ops[position].clone());
        all.extend([with(no_op), twice]);
    }
    all
}

/// Returns the rules for operations that need others in their batch.
fn all_rules() -> impl Iterator<Item = &'static BatchRule> {
    [money::RULES, outbox::RULES, people::RULES].into_iter().flatten()
}

#[test]
fn each_batch_invariant_holds_for_recorded_batches_and_breaks_after_a_change() {
    let batches = recorded_batches();
    for batch in &batches {
        assert_eq!(step::broken(batch), None, "{batch:?}");
    }
    let mut broken = BTreeSet::new();
    for changed in batches.iter().flat_map(changed_batches) {
        broken.extend(step::all_broken(&changed));
    }
    let never_broken: Vec<&str> = all_rules().map(|rule| rule.name).filter(|name| !broken.contains(name)).collect();
    assert!(never_broken.is_empty(), "no change of {} batches breaks: {never_broken:#?}", batches.len());
}
