//! Invariants of batches that end something and queue its webhook: a registration takes a place, a delivery is queued
//! with its record, claimed before its attempt, and settled after it.

use super::rule::Need;
use super::step::{BatchRule, OpInBatch, OpKind, bytes, integer, operand_for};
use crate::engine::{Guard, Op, Operand, Value};
use crate::records::delivery::{HOLDERS, NUMBERS, OUTBOX, decode_member};
use crate::records::event::{EVENT, GUESTS, SHARED, WAITING};
use crate::records::evidence::EVIDENCE;
use crate::records::flow::{FLOW, REPORT, WEBHOOKS};
use crate::records::transaction::TRANSACTION;
use sakshi_domain::delivery::DeliveryId;

const fn rule(
    name: &'static str,
    table: &'static crate::engine::Table,
    kind: OpKind,
    holds: fn(OpInBatch<'_>) -> bool,
) -> BatchRule {
    BatchRule { name, table, kind, holds }
}

/// Positions of fields in an entry of [`GUESTS`].
const GUEST_TXN: usize = 0;
const GUEST_VERIFIED_AT: usize = 1;
const GUEST_CHECK_IN: usize = 2;
const GUEST_CHECKED_IN_AT: usize = 3;
const GUEST_GATE: usize = 4;
const GUEST_DUPLICATE_OF: usize = 5;

/// The rules of these batches.
pub(super) static RULES: &[BatchRule] = &[
    rule("an outcome notifies the watching nodes", &TRANSACTION, OpKind::Set("verified_at"), notifies_watchers),
    rule(
        "a completed transaction has its end, or stays for its delivery",
        &TRANSACTION,
        OpKind::Set("verified_at"),
        stays_for_delivery,
    ),
    rule(
        "a registration is the number of the guest",
        &TRANSACTION,
        OpKind::Set("registration"),
        registration_is_number,
    ),
    rule("a registration takes a place of its event", &TRANSACTION, OpKind::Set("registration"), takes_event_place),
    rule("a registered scan no longer waits", &TRANSACTION, OpKind::Set("registration"), leaves_waiting_scans),
    rule("a place is taken for a guest on both lists", &EVENT, OpKind::Increase("registrations"), place_has_guest),
    rule("a place is taken from an event as it was read", &EVENT, OpKind::Increase("registrations"), place_is_free),
    rule("a guest takes a place", &GUESTS, OpKind::Append, guest_has_place),
    rule("a guest's claims are listed beside the guest", &GUESTS, OpKind::Append, claims_are_beside_guest),
    rule("a guest is not inside when registered", &GUESTS, OpKind::Append, guest_is_not_checked_in),
    rule("a marked guest is counted as a duplicate", &GUESTS, OpKind::Append, mark_is_counted),
    rule("a guest is changed as it was read", &GUESTS, OpKind::Rewrite, guest_is_as_read),
    rule("a guest stays the same person", &GUESTS, OpKind::Rewrite, guest_is_same_person),
    rule("a check-in stays", &GUESTS, OpKind::Rewrite, check_in_stays),
    rule("a check-in is counted", &GUESTS, OpKind::Rewrite, check_in_is_counted),
    rule("a removed mark is counted", &GUESTS, OpKind::Rewrite, unmark_is_counted),
    rule("a check-in belongs to a guest", &EVENT, OpKind::Increase("checked_in"), check_in_has_guest),
    rule("a guest's claims are changed with the guest as read", &SHARED, OpKind::Rewrite, claims_are_as_read),
    rule("a delivery of a transaction has a fresh number", &TRANSACTION, OpKind::Assigns("delivery"), number_is_fresh),
    rule("a delivery of a transaction is in the outbox", &TRANSACTION, OpKind::Assigns("delivery"), is_in_outbox),
    rule("a delivery of a transaction names its holder", &TRANSACTION, OpKind::Assigns("delivery"), has_holder),
    rule("a delivery of a transaction is queued unclaimed", &TRANSACTION, OpKind::Assigns("delivery"), is_unclaimed),
    rule("a delivery of a report has a fresh number", &REPORT, OpKind::Assigns("delivery"), number_is_fresh),
    rule("a delivery of a report is in the outbox", &REPORT, OpKind::Assigns("delivery"), is_in_outbox),
    rule("a delivery of a report names its holder", &REPORT, OpKind::Assigns("delivery"), has_holder),
    rule("a delivery of a report is queued unclaimed", &REPORT, OpKind::Assigns("delivery"), is_unclaimed),
    rule("a delivery of a report is on the list of its flow", &REPORT, OpKind::Assigns("delivery"), is_listed_in_flow),
    rule("a listed webhook has a delivery", &WEBHOOKS, OpKind::Append, listed_report_is_queued),
    rule("a report comes with its flow as read or new", &REPORT, OpKind::Put, report_has_flow),
    rule("a flow changes as it was read", &FLOW, OpKind::Set("state"), flow_is_as_read),
    rule("a number is drawn for one delivery", &NUMBERS, OpKind::Number("last"), number_is_used),
    rule("a delivery in the outbox can be read and is in its partition", &OUTBOX, OpKind::Index, member_is_readable),
    rule(
        "a claim of a transaction's webhook names a known delivery",
        &TRANSACTION,
        OpKind::Set("claimed_at"),
        claim_names_delivery,
    ),
    rule(
        "a claim of a transaction's webhook does nothing else",
        &TRANSACTION,
        OpKind::Set("claimed_at"),
        claim_is_alone,
    ),
    rule(
        "a claim of a report's webhook names a known delivery",
        &REPORT,
        OpKind::Set("claimed_at"),
        claim_names_delivery,
    ),
    rule("a claim of a report's webhook does nothing else", &REPORT, OpKind::Set("claimed_at"), claim_is_alone),
    rule(
        "an attempt of a transaction's webhook names a known delivery",
        &TRANSACTION,
        OpKind::Set("attempt"),
        attempt_names_delivery,
    ),
    rule(
        "an attempt of a transaction's webhook replaces only an unknown one",
        &TRANSACTION,
        OpKind::Set("attempt"),
        attempt_is_first,
    ),
    rule("a settled webhook of a transaction leaves the outbox", &TRANSACTION, OpKind::Set("attempt"), leaves_outbox),
    rule(
        "an attempt of a report's webhook names a known delivery",
        &REPORT,
        OpKind::Set("attempt"),
        attempt_names_delivery,
    ),
    rule(
        "an attempt of a report's webhook replaces only an unknown one",
        &REPORT,
        OpKind::Set("attempt"),
        attempt_is_first,
    ),
    rule("a settled webhook of a report leaves the outbox", &REPORT, OpKind::Set("attempt"), leaves_outbox),
    rule("a webhook of a transaction is taken over unclaimed", &TRANSACTION, OpKind::Set("holder"), is_taken_over),
    rule("a webhook of a report is taken over unclaimed", &REPORT, OpKind::Set("holder"), is_taken_over),
    rule("a transaction is removed as it was read", &TRANSACTION, OpKind::Remove, is_as_read),
    rule("a transaction is removed with its evidence", &TRANSACTION, OpKind::Remove, removes_evidence),
    rule("a flow is removed as it was read", &FLOW, OpKind::Remove, is_as_read),
];

/// Requires that an outcome notifies the watching nodes.
fn notifies_watchers(step: OpInBatch<'_>) -> bool {
    step.ops_on(&TRANSACTION).any(|(_, op)| matches!(op, Op::Notify(key, "watchers") if key == step.key()))
}

/// Requires that a completed transaction expires at `until`, or does not expire while it has a queued delivery.
fn stays_for_delivery(step: OpInBatch<'_>) -> bool {
    let has_delivery = step.operand("delivery").is_some();
    step.ops_on(&TRANSACTION).any(|(_, op)| match op {
        Op::ClearExpiry(key) => has_delivery && key == step.key(),
        Op::ExpireAt(key, end) => !has_delivery && key == step.key() && Some(end) == step.operand("until"),
        _ => false,
    })
}

/// Requires that `registration` is the number that appending to the list of guests returned.
fn registration_is_number(step: OpInBatch<'_>) -> bool {
    let is_of_guest = |op: &Op| match op {
        Op::Append(list, values) => {
            std::ptr::eq(list.table, &GUESTS) && values.first().and_then(bytes) == Some(&step.key().id)
        }
        _ => false,
    };
    step.is_result(step.operand("registration"), is_of_guest)
}

/// Requires that a registration takes a place of its event.
fn takes_event_place(step: OpInBatch<'_>) -> bool {
    step.adds(&EVENT, "registrations", 1)
}

/// Requires that a registered scan no longer waits.
fn leaves_waiting_scans(step: OpInBatch<'_>) -> bool {
    step.ops_on(&WAITING).any(|(_, op)| matches!(op, Op::Unindex(_, member) if *member == step.key().id))
}

/// Requires that a place is taken for a guest on both lists.
fn place_has_guest(step: OpInBatch<'_>) -> bool {
    let is_appended = |table| step.appended(table).is_some_and(|(_, op)| op.key().id == step.key().id);
    is_appended(&GUESTS) && is_appended(&SHARED)
}

/// Requires that a place is taken only from an active event that is as it was read and has not expired.
fn place_is_free(step: OpInBatch<'_>) -> bool {
    [Need::Version, Need::Equal("is_active"), Need::Before("expires_at")].into_iter().all(|need| step.meets(need))
}

/// Requires that a guest takes a place.
fn guest_has_place(step: OpInBatch<'_>) -> bool {
    step.adds(&EVENT, "registrations", 1)
}

/// Requires that a guest's claims are listed beside the guest.
fn claims_are_beside_guest(step: OpInBatch<'_>) -> bool {
    step.appended(&SHARED)
        .is_some_and(|(_, op)| matches!(op, Op::Append(_, values) if values.first() == step.entry().first()))
}

/// Requires that a guest is registered without a check-in.
fn guest_is_not_checked_in(step: OpInBatch<'_>) -> bool {
    let is_zero = |position: usize| step.entry().get(position).and_then(integer) == Some(0);
    is_zero(GUEST_CHECK_IN) && is_zero(GUEST_CHECKED_IN_AT) && step.entry().get(GUEST_GATE).and_then(bytes) == Some(&[])
}

/// Requires that a guest marked as a duplicate is counted as one.
fn mark_is_counted(step: OpInBatch<'_>) -> bool {
    let is_marked = step.entry().get(GUEST_DUPLICATE_OF).and_then(bytes).is_some_and(|earlier| !earlier.is_empty());
    is_marked == step.adds(&EVENT, "duplicates", 1)
}

/// Returns the entry that a rewrite replaces, which its guard states.
fn entry_before(step: OpInBatch<'_>) -> Option<&[Value]> {
    let Op::Rewrite(list, number, _) = step.op else { return None };
    step.batch.guards.iter().find_map(|guard| match guard {
        Guard::Entry(guarded, known, values) if guarded == list && known == number => Some(&values[..]),
        _ => None,
    })
}

/// Requires that a guest's entry is changed only if it is as it was read.
fn guest_is_as_read(step: OpInBatch<'_>) -> bool {
    entry_before(step).is_some()
}

/// Returns true if a rewritten entry has the same values as before at these positions.
fn keeps_fields(step: OpInBatch<'_>, positions: &[usize]) -> bool {
    let is_same = |before: &[Value], position: usize| match (before.get(position), step.entry().get(position)) {
        (Some(value), Some(Operand::Value(after))) => value == after,
        _ => false,
    };
    entry_before(step).is_some_and(|before| positions.iter().all(|position| is_same(before, *position)))
}

/// Requires that a guest stays the same person.
fn guest_is_same_person(step: OpInBatch<'_>) -> bool {
    keeps_fields(step, &[GUEST_TXN, GUEST_VERIFIED_AT])
}

/// Returns true if the guest was checked in before the rewrite.
fn was_checked_in(step: OpInBatch<'_>) -> bool {
    entry_before(step)
        .is_some_and(|before| matches!(before.get(GUEST_CHECKED_IN_AT), Some(Value::Integer(at)) if *at != 0))
}

/// Requires that a check-in is not undone.
fn check_in_stays(step: OpInBatch<'_>) -> bool {
    !was_checked_in(step) || keeps_fields(step, &[GUEST_CHECK_IN, GUEST_CHECKED_IN_AT, GUEST_GATE])
}

/// Requires that a check-in is counted.
fn check_in_is_counted(step: OpInBatch<'_>) -> bool {
    let is_checked_in = step.entry().get(GUEST_CHECKED_IN_AT).and_then(integer) != Some(0);
    (is_checked_in && !was_checked_in(step)) == step.adds(&EVENT, "checked_in", 1)
}

/// Requires that removing the mark of a duplicate lowers the count of duplicates.
fn unmark_is_counted(step: OpInBatch<'_>) -> bool {
    let was_marked = entry_before(step).is_some_and(
        |before| matches!(before.get(GUEST_DUPLICATE_OF), Some(Value::Bytes(earlier)) if !earlier.is_empty()),
    );
    let is_marked = step.entry().get(GUEST_DUPLICATE_OF).and_then(bytes).is_some_and(|earlier| !earlier.is_empty());
    (!is_marked || was_marked) && (was_marked && !is_marked) == step.adds(&EVENT, "duplicates", -1)
}

/// Requires that a check-in belongs to a guest.
fn check_in_has_guest(step: OpInBatch<'_>) -> bool {
    step.ops_on(&GUESTS).any(|(_, op)| matches!(op, Op::Rewrite(list, ..) if list.id == step.key().id))
}

/// Requires that a guest's claims are changed only if the guest's entry is as it was read.
fn claims_are_as_read(step: OpInBatch<'_>) -> bool {
    let Op::Rewrite(list, number, _) = step.op else { return false };
    step.batch.guards.iter().any(|guard| match guard {
        Guard::Entry(guarded, known, values) => {
            let is_same =
                matches!((values.first(), step.entry().first()), (Some(txn), Some(Operand::Value(own))) if txn == own);
            guarded.id == list.id && known == number && is_same
        }
        _ => false,
    })
}

/// Requires that a queued delivery has a fresh number.
fn number_is_fresh(step: OpInBatch<'_>) -> bool {
    step.is_result(
        step.operand("delivery"),
        |op| matches!(op, Op::DrawNumber(key, "last") if key.place == step.key().place),
    )
}

/// Requires that a queued delivery is in the outbox.
fn is_in_outbox(step: OpInBatch<'_>) -> bool {
    let (number, holder) = (step.operand("delivery"), step.operand("holder").and_then(bytes));
    step.indexes(&OUTBOX, |index, _, score| Some(score) == number && Some(&index.id[..]) == holder)
}

/// Requires that a queued delivery names its holder.
fn has_holder(step: OpInBatch<'_>) -> bool {
    let holder = step.operand("holder").and_then(bytes);
    step.indexes(&HOLDERS, |_, member, _| Some(member) == holder)
}

/// Requires that a delivery is queued unclaimed.
fn is_unclaimed(step: OpInBatch<'_>) -> bool {
    ["claimed_at", "claim", "attempt"].iter().all(|field| step.operand(field).is_none())
}

/// Requires that a delivery of a report is on the list of its flow.
fn is_listed_in_flow(step: OpInBatch<'_>) -> bool {
    let name = step.key().id.get(16..);
    step.ops_on(&WEBHOOKS).any(|(_, op)| matches!(op, Op::Append(_, values) if values.first().and_then(bytes) == name))
}

/// Requires that a listed webhook has a delivery.
fn listed_report_is_queued(step: OpInBatch<'_>) -> bool {
    let name = step.entry().first().and_then(bytes);
    step.ops_on(&REPORT).any(|(_, op)| match op {
        Op::Put(key, fields) => key.id.get(16..) == name && operand_for(fields, "delivery").is_some(),
        _ => false,
    })
}

/// Requires that a report is stored only if its flow is new or as it was read.
fn report_has_flow(step: OpInBatch<'_>) -> bool {
    let flow = step.key().id.get(..16);
    step.batch.guards.iter().any(|guard| match guard {
        Guard::Version(key, _) | Guard::Absent(key) => std::ptr::eq(key.table, &FLOW) && Some(&key.id[..]) == flow,
        _ => false,
    })
}

/// Requires that a flow changes only if it is as it was read.
fn flow_is_as_read(step: OpInBatch<'_>) -> bool {
    step.meets(Need::Version) || step.meets(Need::Equal("state"))
}

/// Requires that a number is drawn for one delivery.
fn number_is_used(step: OpInBatch<'_>) -> bool {
    let number = Operand::Result(step.index);
    let uses = |op: &Op| match op {
        Op::Put(_, fields) | Op::Set(_, fields) => operand_for(fields, "delivery") == Some(&number),
        _ => false,
    };
    step.batch.ops.iter().filter(|op| uses(op)).count() == 1
}

/// Requires that a delivery in the outbox can be read and is in its partition.
fn member_is_readable(step: OpInBatch<'_>) -> bool {
    let Op::Index(index, member, _) = step.op else { return false };
    let delivery = decode_member(DeliveryId(0), member);
    delivery.is_some_and(|delivery| index.place == crate::engine::Place::Partition(delivery.subject.partition()))
}

/// Requires that a claim of a webhook names a known delivery.
fn claim_names_delivery(step: OpInBatch<'_>) -> bool {
    step.meets(Need::Equal("delivery")) && step.meets(Need::Equal("holder"))
}

/// Requires that a claim of a webhook does nothing else.
const fn claim_is_alone(step: OpInBatch<'_>) -> bool {
    step.batch.ops.len() == 1
}

/// Requires that an attempt of a webhook names a known delivery.
fn attempt_names_delivery(step: OpInBatch<'_>) -> bool {
    step.meets(Need::Equal("delivery"))
}

/// Requires that an attempt of a webhook replaces only an unknown one.
fn attempt_is_first(step: OpInBatch<'_>) -> bool {
    let unknown = Value::from("unknown");
    step.meets(Need::Unset("attempt"))
        || step.has_guard(|guard| matches!(guard, Guard::Equal(_, "attempt", known) if *known == unknown))
}

/// Requires that a settled webhook leaves the outbox.
fn leaves_outbox(step: OpInBatch<'_>) -> bool {
    let delivery = |guard: &Guard, number: i64| {
        matches!(guard, Guard::Equal(_, "delivery",
        Value::Integer(known)) if *known == number)
    };
    step.ops_on(&OUTBOX).any(|(_, op)| match op {
        Op::Sweep(_, above, until) => {
            integer(until).is_some_and(|number| *above == number - 1 && step.has_guard(|guard| delivery(guard, number)))
        }
        _ => false,
    })
}

/// Requires that a webhook is taken over unclaimed.
fn is_taken_over(step: OpInBatch<'_>) -> bool {
    if step.operand("delivery").is_some() {
        return true;
    }
    let holder = step.operand("holder").and_then(bytes);
    let is_listed = step.indexes(&OUTBOX, |index, _, score| {
        let is_same = |guard: &Guard| {
            matches!(guard, Guard::Equal(_, "delivery",
            known) if *score == Operand::Value(known.clone()))
        };
        Some(&index.id[..]) == holder && step.has_guard(is_same)
    });
    is_listed && step.meets(Need::Unset("claimed_at")) && step.meets(Need::Equal("holder"))
}

/// Requires that a record is removed only if it is as it was read.
fn is_as_read(step: OpInBatch<'_>) -> bool {
    step.meets(Need::Version)
}

/// Requires that a transaction is removed with its evidence.
fn removes_evidence(step: OpInBatch<'_>) -> bool {
    step.ops_on(&EVIDENCE).any(|(_, op)| matches!(op, Op::Remove(key) if key.id == step.key().id))
}
