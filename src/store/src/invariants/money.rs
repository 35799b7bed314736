//! Invariants of batches that move credits or open something: a debit has its entry, an entry its movement, and a
//! transaction its debit.

use super::form::has_needed_guard;
use super::rule::Need;
use super::step::{BatchRule, OpInBatch, OpKind, bytes, integer, operand_for};
use crate::engine::{Guard, Op, Operand, Value};
use crate::records::client::{CLIENT, LEDGER, REFERENCE};
use crate::records::event::{EVENT, EVENT_ENDS, EVENTS, WAITING};
use crate::records::flow::{FLOW, FLOWS};
use crate::records::idempotency::IDEMPOTENCY;
use crate::records::transaction::TRANSACTION;
use sakshi_domain::credits::EntryKind;

const fn rule(
    name: &'static str,
    table: &'static crate::engine::Table,
    kind: OpKind,
    holds: fn(OpInBatch<'_>) -> bool,
) -> BatchRule {
    BatchRule { name, table, kind, holds }
}

/// Positions of fields in an entry of [`LEDGER`].
const LEDGER_KIND: usize = 0;
const LEDGER_AMOUNT: usize = 1;
const LEDGER_BALANCE_AFTER: usize = 2;
const LEDGER_REFERENCE: usize = 3;

/// The rules of these batches.
pub(super) static RULES: &[BatchRule] = &[
    rule("a balance moves with an entry of its ledger", &CLIENT, OpKind::Add("balance"), moves_with_entry),
    rule("a balance moves once in a batch", &CLIENT, OpKind::Add("balance"), moves_once),
    rule("an entry of a ledger has the balance after it", &LEDGER, OpKind::Append, has_balance),
    rule("an entry of a ledger has the amount of its movement", &LEDGER, OpKind::Append, has_amount),
    rule("a debit belongs to a transaction that opens", &LEDGER, OpKind::Append, debit_opens),
    rule("a debit is not negative and a grant positive", &LEDGER, OpKind::Append, has_sign),
    rule("a grant or an adjustment is found by its reference", &LEDGER, OpKind::Append, grant_is_named),
    rule("a reference belongs to an entry of its batch", &REFERENCE, OpKind::Put, reference_has_entry),
    rule("a transaction is debited when it opens", &TRANSACTION, OpKind::Put, is_debited),
    rule("a transaction of an event counts as a scan", &TRANSACTION, OpKind::Put, is_counted),
    rule("a scan waits until its window ends", &TRANSACTION, OpKind::Put, scan_waits),
    rule("a scan has the client and the app of its event", &TRANSACTION, OpKind::Put, scan_is_own),
    rule("a scan is admitted by its event", &TRANSACTION, OpKind::Put, scan_is_admitted),
    rule("a transaction waits for its answer when it opens", &TRANSACTION, OpKind::Put, is_pending),
    rule("a scan is counted for a transaction that opens", &EVENT, OpKind::Increase("scans"), scan_opens),
    rule("an event is listed when it is created", &EVENT, OpKind::Put, event_is_listed),
    rule("an event is empty when it is created", &EVENT, OpKind::Put, event_is_empty),
    rule("the end of an event is listed when it changes", &EVENT, OpKind::Set("expires_at"), end_is_listed),
    rule("a flow is listed when it opens", &FLOW, OpKind::Put, flow_is_listed),
    rule("a flow is listed when it changes", &FLOW, OpKind::Set("until"), flow_is_listed),
    rule("a response is stored with the record that it created", &IDEMPOTENCY, OpKind::Put, answer_has_subject),
    rule("a stored response expires at its time", &IDEMPOTENCY, OpKind::Put, answer_ends),
];

/// Returns the amount by which the batch moves the balance, if the operand is the balance after that movement.
fn moved_amount<'a>(step: OpInBatch<'a>, operand: Option<&Operand>) -> Option<i64> {
    let Some(Operand::Result(number)) = operand else { return None };
    match step.batch.ops.get(*number) {
        Some(Op::Add(key, "balance", more)) if key.id == step.key().id => integer(more),
        _ => None,
    }
}

/// Requires that a balance moves with an entry of its ledger.
fn moves_with_entry(step: OpInBatch<'_>) -> bool {
    let is_entry_of_step = |op: &Op| {
        matches!(op, Op::Append(list,
        values) if list.id == step.key().id && values.get(LEDGER_BALANCE_AFTER) == Some(&Operand::Result(step.index)))
    };
    step.ops_on(&LEDGER).filter(|(_, op)| is_entry_of_step(op)).count() == 1
}

/// Requires that a balance moves once in a batch.
fn moves_once(step: OpInBatch<'_>) -> bool {
    step.ops_on(&CLIENT).filter(|(_, op)| matches!(op, Op::Add(key, "balance", _) if key == step.key())).count() == 1
}

/// Requires that an entry of a ledger has the balance after it.
fn has_balance(step: OpInBatch<'_>) -> bool {
    moved_amount(step, step.entry().get(LEDGER_BALANCE_AFTER)).is_some()
}

/// Returns the kind of an appended ledger entry.
fn entry_kind(step: OpInBatch<'_>) -> Option<EntryKind> {
    std::str::from_utf8(bytes(step.entry().get(LEDGER_KIND)?)?).ok()?.parse().ok()
}

/// Requires that an entry of a ledger has the amount of its movement.
fn has_amount(step: OpInBatch<'_>) -> bool {
    let amount = step.entry().get(LEDGER_AMOUNT).and_then(integer);
    let effect = moved_amount(step, step.entry().get(LEDGER_BALANCE_AFTER));
    match entry_kind(step) {
        // A cost of more than 63 bits becomes `i64::MAX`.
        Some(EntryKind::Debit) => effect.is_some() && effect.map(i64::saturating_neg) == amount,
        Some(EntryKind::Grant | EntryKind::Adjust) => effect.is_some() && effect == amount,
        None => false,
    }
}

/// Requires that a debit is not negative and a grant positive.
fn has_sign(step: OpInBatch<'_>) -> bool {
    let amount = step.entry().get(LEDGER_AMOUNT).and_then(integer).unwrap_or_default();
    match entry_kind(step) {
        Some(EntryKind::Debit) => amount >= 0,
        Some(EntryKind::Grant) => amount > 0,
        Some(EntryKind::Adjust) | None => true,
    }
}

/// Requires that a debit belongs to a transaction that opens.
fn debit_opens(step: OpInBatch<'_>) -> bool {
    let reference = step.entry().get(LEDGER_REFERENCE).and_then(bytes);
    let opens = |op: &Op| matches!(op, Op::Put(key, _) if Some(&key.id[..]) == reference);
    entry_kind(step) != Some(EntryKind::Debit) || step.ops_on(&TRANSACTION).any(|(_, op)| opens(op))
}

/// Requires that a grant or an adjustment is found by its reference.
fn grant_is_named(step: OpInBatch<'_>) -> bool {
    let names = |op: &Op| match op {
        Op::Put(_, fields) => {
            operand_for(fields, "number") == Some(&Operand::Result(step.index))
                && operand_for(fields, "amount") == step.entry().get(LEDGER_AMOUNT)
        }
        _ => false,
    };
    entry_kind(step) == Some(EntryKind::Debit) || step.ops_on(&REFERENCE).any(|(_, op)| names(op))
}

/// Requires that a reference belongs to an entry of its batch.
fn reference_has_entry(step: OpInBatch<'_>) -> bool {
    let is_entry = |op: &Op| match op {
        Op::Append(_, values) => {
            std::ptr::eq(op.key().table, &LEDGER) && values.get(LEDGER_BALANCE_AFTER) == step.operand("balance_after")
        }
        _ => false,
    };
    step.is_result(step.operand("number"), is_entry)
}

/// Requires that a transaction is debited when it opens.
fn is_debited(step: OpInBatch<'_>) -> bool {
    let is_for_step = |op: &Op| match op {
        Op::Append(_, values) => values.get(LEDGER_REFERENCE).and_then(bytes) == Some(&step.key().id),
        _ => false,
    };
    step.ops_on(&LEDGER).any(|(_, op)| is_for_step(op))
}

/// Returns the id of the event of a transaction that opens, if it is a guest's.
fn event_of(step: OpInBatch<'_>) -> Option<&[u8]> {
    step.operand("event").and_then(bytes)
}

/// Requires that a transaction of an event counts as a scan.
fn is_counted(step: OpInBatch<'_>) -> bool {
    let counts = |op: &Op, event: &[u8]| {
        matches!(op, Op::Add(key, "scans",
        more) if key.id == event && integer(more) == Some(1))
    };
    event_of(step).is_none_or(|event| step.ops_on(&EVENT).filter(|(_, op)| counts(op, event)).count() == 1)
}

/// Requires that a scan waits until its window ends.
fn scan_waits(step: OpInBatch<'_>) -> bool {
    let (id, end) = (&step.key().id, step.operand("expires_at"));
    event_of(step).is_none_or(|event| {
        step.indexes(&WAITING, |index, member, score| index.id == event && member == &id[..] && Some(score) == end)
    })
}

/// Requires that a scan has the client and the app of its event.
fn scan_is_own(step: OpInBatch<'_>) -> bool {
    let is_same = |guard: &Guard, event: &[u8], field: &'static str| match guard {
        Guard::Equal(key, name, Value::Text(text)) => {
            key.id == event && *name == field && step.operand(field).and_then(bytes) == Some(text.as_bytes())
        }
        _ => false,
    };
    event_of(step).is_none_or(|event| {
        ["client", "app"].iter().all(|field| step.batch.guards.iter().any(|guard| is_same(guard, event, field)))
    })
}

/// Requires that a scan is admitted by its event.
fn scan_is_admitted(step: OpInBatch<'_>) -> bool {
    let needs = [
        Need::Equal("is_active"),
        Need::Before("expires_at"),
        Need::Below("registrations", "max_guests"),
        Need::Below("scans", "budget"),
    ];
    let key_of_event = |event: &[u8]| step.ops_on(&EVENT).map(|(_, op)| op.key()).find(|key| key.id == event);
    event_of(step).is_none_or(|event| {
        key_of_event(event).is_some_and(|key| needs.into_iter().all(|need| has_needed_guard(step.batch, key, need)))
    })
}

/// Requires that a transaction waits for its answer when it opens.
fn is_pending(step: OpInBatch<'_>) -> bool {
    ["verified_at", "outcome", "answer", "delivery", "registration"].iter().all(|field| step.operand(field).is_none())
}

/// Requires that a scan is counted for a transaction that opens.
fn scan_opens(step: OpInBatch<'_>) -> bool {
    let opens = |op: &Op| match op {
        Op::Put(_, fields) => operand_for(fields, "event").and_then(bytes) == Some(&step.key().id),
        _ => false,
    };
    step.ops_on(&TRANSACTION).filter(|(_, op)| opens(op)).count() == 1
}

/// Requires that an event is listed when it is created.
fn event_is_listed(step: OpInBatch<'_>) -> bool {
    let id = &step.key().id;
    step.indexes(&EVENTS, |_, member, _| member == &id[..]) && end_is_listed(step)
}

/// Requires that an event is empty when it is created.
fn event_is_empty(step: OpInBatch<'_>) -> bool {
    let counts = ["registrations", "duplicates", "checked_in", "scans", "abandoned"];
    counts.iter().all(|count| step.operand(count).and_then(integer) == Some(0))
}

/// Requires that the end of an event is listed when it changes.
fn end_is_listed(step: OpInBatch<'_>) -> bool {
    step.indexes(&EVENT_ENDS, |_, member, _| member == &step.key().id[..])
}

/// Requires that a flow is listed when it opens, and when it changes.
fn flow_is_listed(step: OpInBatch<'_>) -> bool {
    step.indexes(&FLOWS, |_, member, score| member == &step.key().id[..] && Some(score) == step.operand("until"))
}

/// Requires that a response is stored with the record that it created.
fn answer_has_subject(step: OpInBatch<'_>) -> bool {
    let subject = step.operand("subject").and_then(bytes);
    let creates = |op: &Op| matches!(op, Op::Put(key, _) if Some(&key.id[..]) == subject);
    step.batch.ops.iter().any(creates)
}

/// Requires that a stored response expires at its time.
fn answer_ends(step: OpInBatch<'_>) -> bool {
    step.ops_on(&IDEMPOTENCY)
        .any(|(_, op)| matches!(op, Op::ExpireAt(key, end) if key == step.key() && Some(end) == step.operand("until")))
}
