//! Invariants of batches on people, keys and logs: permission to sign in, requested consents, and append-only logs.

use super::rule::Need;
use super::step::{BatchRule, OpInBatch, OpKind, bytes, integer};
use crate::engine::{Guard, Key, Op, Operand, Table, Value};
use crate::records::audit::{AUDIT_LOG, AUDIT_PUSH};
use crate::records::client_log::{CLIENT_LOG, CLIENT_LOG_MONTH};
use crate::records::consent::{CONSENT_WEEK, CONSENTS};
use crate::records::console::{CONSOLE_SESSION, GRANT_REQUEST, GRANT_REQUESTS};
use crate::records::credential::CREDENTIAL;
use crate::records::day::DAY;
use crate::records::flow::WEBHOOK_NAME;
use crate::records::operator::{OPERATOR, OPERATOR_TOKEN, OPERATORS};
use crate::records::refusal::{REFUSAL, REFUSALS};
use crate::records::session::SESSION;
use crate::records::tenancy::API_KEY;
use crate::records::user::{USER, USER_EMAIL};

const fn rule(name: &'static str, table: &'static Table, kind: OpKind, holds: fn(OpInBatch<'_>) -> bool) -> BatchRule {
    BatchRule { name, table, kind, holds }
}

/// The rules of these batches.
pub(super) static RULES: &[BatchRule] = &[
    rule("an entry of the audit log follows the newest", &AUDIT_LOG, OpKind::Append, audit_follows),
    rule("the place of the log's receiver changes as it was read", &AUDIT_PUSH, OpKind::Put, push_is_as_read),
    rule("the place of the log's receiver does not fall while a node sends", &AUDIT_PUSH, OpKind::Put, push_rises),
    rule("a consent is kept in a week that has begun", &CONSENTS, OpKind::Append, week_has_begun),
    rule("an entry of a client's log is kept in a month that has begun", &CLIENT_LOG, OpKind::Append, month_has_begun),
    rule("a remembered credential replaces only what was read", &CREDENTIAL, OpKind::Put, credential_is_as_read),
    rule("a webhook's name is taken once, or again by its own flow", &WEBHOOK_NAME, OpKind::Put, name_is_own),
    rule("a session is prolonged, not cut", &SESSION, OpKind::Set("idle_until"), is_prolonged),
    rule("a session of the console is prolonged, not cut", &CONSOLE_SESSION, OpKind::Set("idle_until"), is_prolonged),
    rule("a one-time code is used once", &USER, OpKind::Set("step"), code_is_fresh),
    rule(
        "a link is accepted by a user who has it and is not disabled",
        &USER,
        OpKind::Set("accepted_at"),
        link_is_open,
    ),
    rule("a user's address is taken once, or as it was read", &USER_EMAIL, OpKind::Put, address_is_free),
    rule(
        "a grant request is decided as it was read and before its end",
        &GRANT_REQUEST,
        OpKind::Set("state"),
        request_is_open,
    ),
    rule("a grant request is listed", &GRANT_REQUEST, OpKind::Put, request_is_listed),
    rule("a key's last use does not fall", &API_KEY, OpKind::Set("used_at"), use_is_later),
    rule("refused requests are counted one by one", &REFUSALS, OpKind::Set("kept"), refusals_count),
    rule("a counted refusal is stored in its place", &REFUSALS, OpKind::Set("kept"), refusal_is_stored),
    rule("figures of a day are added to a day that has some", &DAY, OpKind::Add("opened"), day_exists),
    rule("an operator is listed and has a token", &OPERATOR, OpKind::Put, operator_is_listed),
];

/// Requires that an entry of the audit log follows the newest.
fn audit_follows(step: OpInBatch<'_>) -> bool {
    let number = step.entry().first().and_then(integer).and_then(|number| u64::try_from(number).ok());
    let is_last = |guard: &Guard| {
        matches!(guard, Guard::Length(list,
        length) if list == step.key() && Some(length + 1) == number)
    };
    step.batch.guards.iter().any(is_last)
}

/// Requires that the record of the audit log's receiver changes only if it is as it was read.
fn push_is_as_read(step: OpInBatch<'_>) -> bool {
    let is_extended = step.meets(Need::Equal("node")) && step.meets(Need::Equal("number"));
    is_extended || step.meets(Need::Version) || step.has_guard(|guard| matches!(guard, Guard::Absent(_)))
}

/// Requires that the number of entries that the audit log's receiver has does not fall while a node sends.
fn push_rises(step: OpInBatch<'_>) -> bool {
    let number = step.operand("number").and_then(integer);
    let falls = |guard: &Guard| {
        matches!(guard, Guard::Equal(_, "number",
        Value::Integer(known)) if number.is_none_or(|to| to < *known))
    };
    !step.has_guard(falls)
}

/// Returns true if the batch requires that the record exists which owns the list of the operation.
fn requires_parent(step: OpInBatch<'_>, parent: &'static Table) -> bool {
    let key: Key = step.key().in_table(parent);
    step.batch.guards.iter().any(|guard| matches!(guard, Guard::Present(record) if *record == key))
}

/// Requires that a consent is kept in a week that has begun.
fn week_has_begun(step: OpInBatch<'_>) -> bool {
    requires_parent(step, &CONSENT_WEEK)
}

/// Requires that an entry of a client's log is kept in a month that has begun.
fn month_has_begun(step: OpInBatch<'_>) -> bool {
    requires_parent(step, &CLIENT_LOG_MONTH)
}

/// Requires that a use of a credential replaces only the record that was read.
fn credential_is_as_read(step: OpInBatch<'_>) -> bool {
    step.meets(Need::Equal("call")) || step.has_guard(|guard| matches!(guard, Guard::Absent(_)))
}

/// Requires that a webhook's name is taken once, or again by its own flow.
fn name_is_own(step: OpInBatch<'_>) -> bool {
    let is_own = |value: &Value| step.operand("flow") == Some(&Operand::Value(value.clone()));
    step.has_guard(|guard| match guard {
        Guard::Absent(_) => true,
        Guard::Equal(_, "flow", value) => is_own(value),
        _ => false,
    })
}

/// Requires that a session is prolonged, not cut.
fn is_prolonged(step: OpInBatch<'_>) -> bool {
    let until = step.operand("idle_until").and_then(integer);
    step.has_guard(
        |guard| matches!(guard, Guard::AtMost(_, "idle_until", most) if until.is_some_and(|until| *most <= until)),
    )
}

/// Requires that a one-time code is used once.
fn code_is_fresh(step: OpInBatch<'_>) -> bool {
    let time_step = step.operand("step").and_then(integer);
    // A new credential begins with the code that has accepted it.
    let is_first = time_step.is_some() && step.operand("credential").is_some();
    let is_later = |guard: &Guard| match guard {
        Guard::AtMost(_, "step", most) => time_step.is_some_and(|time_step| *most < time_step),
        _ => false,
    };
    is_first || step.has_guard(is_later) && step.meets(Need::Equal("epoch")) && step.meets(Need::Unset("disabled_at"))
}

/// Requires that a link is accepted by a user who has it and is not disabled.
fn link_is_open(step: OpInBatch<'_>) -> bool {
    [Need::Equal("invite"), Need::Before("invited_until"), Need::Unset("disabled_at")]
        .into_iter()
        .all(|need| step.meets(need))
}

/// Requires that an email address is reserved only if it is free.
fn address_is_free(step: OpInBatch<'_>) -> bool {
    step.has_guard(|guard| matches!(guard, Guard::Absent(_)))
}

/// Requires that a grant request is decided only before its end and if it is as it was read.
fn request_is_open(step: OpInBatch<'_>) -> bool {
    step.meets(Need::Version) && step.meets(Need::Before("ends_at"))
}

/// Requires that a grant request is listed.
fn request_is_listed(step: OpInBatch<'_>) -> bool {
    step.indexes(&GRANT_REQUESTS, |_, member, _| member == &step.key().id[..])
}

/// Requires that a key's last use does not fall.
fn use_is_later(step: OpInBatch<'_>) -> bool {
    let at = step.operand("used_at").and_then(integer);
    let is_later = |guard: &Guard| match guard {
        Guard::AtMost(_, "used_at", most) => at.is_some_and(|at| *most <= at),
        Guard::Unset(_, "used_at") => true,
        _ => false,
    };
    step.has_guard(is_later)
}

/// Requires that refused requests are counted one by one.
fn refusals_count(step: OpInBatch<'_>) -> bool {
    let kept = step.operand("kept").and_then(integer);
    step.has_guard(
        |guard| matches!(guard, Guard::Equal(_, "kept", Value::Integer(before)) if kept == before.checked_add(1)),
    )
}

/// Requires that a counted refusal is stored in a slot of the app's ring.
fn refusal_is_stored(step: OpInBatch<'_>) -> bool {
    step.ops_on(&REFUSAL).any(|(_, op)| matches!(op, Op::Put(key, _) if key.id.starts_with(&step.key().id)))
}

/// Requires that figures of a day are added to a day that has some.
fn day_exists(step: OpInBatch<'_>) -> bool {
    step.has_guard(|guard| matches!(guard, Guard::Present(_)))
}

/// Requires that an operator is listed and has a token.
fn operator_is_listed(step: OpInBatch<'_>) -> bool {
    let id = &step.key().id;
    let names = |op: &Op| {
        matches!(op, Op::Put(_, fields) if super::step::operand_for(fields,
        "operator").and_then(bytes) == Some(id))
    };
    step.indexes(&OPERATORS, |_, member, _| member == &id[..]) && step.ops_on(&OPERATOR_TOKEN).any(|(_, op)| names(op))
}
