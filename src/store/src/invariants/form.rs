//! Invariants of single batches: their form, and the rules of each kind of record for its changes.

use std::ptr;

use super::rule::{Change, CompiledRules, Need, compiled_rules};
use super::view::{View, is_of_kind};
use crate::engine::{Batch, ColumnKind, Form, Guard, Key, Life, Op, Operand, Place, Value};

/// Bits of the scores of an index, sign included.
pub(super) const SCORE_BITS: u32 = 53;

/// The invariants of the form of a batch.
pub(super) const NAMES: &[&str] = &[
    ONE_PLACE,
    KNOWN_FIELD,
    FIELD_TYPE,
    OWN_FORM,
    WHOLE_ENTRY,
    EARLIER_RESULT,
    CALL_CHANGED,
    SCORE_FITS,
    GIVEN_END,
    OWN_VERSION,
    ONE_VALUE,
    LIST_GUARD,
];

const ONE_PLACE: &str = "all keys of a batch are in one place";
const KNOWN_FIELD: &str = "a field belongs to its kind of record";
const FIELD_TYPE: &str = "a value has the type of its field";
const OWN_FORM: &str = "an operation fits the form of its kind";
const WHOLE_ENTRY: &str = "an entry has a value for each field";
const EARLIER_RESULT: &str = "a result operand names an earlier operation";
const CALL_CHANGED: &str = "a call is stored in a record that its batch changes";
const SCORE_FITS: &str = "a score has at most 53 bits";
const GIVEN_END: &str = "a record that ends is written with its end, or waits for its delivery";
const OWN_VERSION: &str = "only engines set the version";
const ONE_VALUE: &str = "an operation sets a field once";
const LIST_GUARD: &str = "a guard fits the form of its kind";

/// The name of an invariant that does not hold; `None` if all hold.
type Violation = Option<&'static str>;

/// Returns the name of an invariant unless it holds.
const fn require(holds: bool, name: &'static str) -> Violation {
    if holds { None } else { Some(name) }
}

/// Returns the first invariant that a batch breaks. With `joins_places` it may have keys of several places.
pub(super) fn broken(batch: &Batch, joins_places: bool) -> Violation {
    let keys = || batch.guards.iter().map(Guard::key).chain(batch.ops.iter().map(Op::key));
    let first = keys().next();
    let is_in_first_place = |key: &Key| {
        first.is_none_or(|first| {
            first.place == key.place && (first.place != Place::Alone || is_same_or_owner(first, key))
        })
    };
    let call_is_stored = batch.call.as_ref().is_none_or(|(_, record)| {
        batch.ops.iter().any(|op| op.key() == record || op.key().parent().as_ref() == Some(record))
    });
    require(joins_places || keys().all(is_in_first_place), ONE_PLACE)
        .or_else(|| require(call_is_stored, CALL_CHANGED))
        .or_else(|| batch.guards.iter().find_map(check_guard))
        .or_else(|| batch.ops.iter().enumerate().find_map(|(index, op)| check_operation(batch, index, op)))
}

/// Returns true if two keys are equal, or one owns the other.
fn is_same_or_owner(one: &Key, other: &Key) -> bool {
    one == other || one.parent().as_ref() == Some(other) || other.parent().as_ref() == Some(one)
}

/// Checks the form of a guard.
fn check_guard(guard: &Guard) -> Violation {
    let table = guard.key().table;
    let form_fits = match guard {
        Guard::Length(..) | Guard::Entry(..) => table.form == Form::List,
        Guard::Fewer(..) | Guard::Free(..) => table.form == Form::Index,
        _ => table.form == Form::Record,
    };
    let is_known = |field: &str| match compiled_rules(table) {
        Some(rules) => rules.position(field).is_some(),
        None => table.column(field).is_some(),
    };
    let type_is_right = match guard {
        Guard::Equal(_, field, value) => table.column(field).is_none_or(|column| is_of_kind(value, column.kind)),
        _ => true,
    };
    require(form_fits, LIST_GUARD)
        .or_else(|| require(compared_fields(guard).into_iter().flatten().all(is_known), KNOWN_FIELD))
        .or_else(|| require(type_is_right, FIELD_TYPE))
}

/// Returns the fields that a guard compares, besides the version.
const fn compared_fields(guard: &Guard) -> [Option<&'static str>; 2] {
    match guard {
        Guard::Before(_, field) | Guard::AtLeast(_, field, _) | Guard::AtMost(_, field, _) => [Some(field), None],
        Guard::Equal(_, field, _) | Guard::Unset(_, field) => [Some(field), None],
        Guard::Below(_, field, limit) => [Some(field), Some(limit)],
        _ => [None, None],
    }
}

/// Returns true if a guard compares this field.
fn compares(guard: &Guard, field: &str) -> bool {
    compared_fields(guard).into_iter().flatten().any(|name| name == field)
}

fn check_operation(batch: &Batch, index: usize, op: &Op) -> Violation {
    let (key, table) = (op.key(), op.key().table);
    let form_fits = match op {
        Op::Append(..) | Op::Rewrite(..) => table.form == Form::List,
        Op::Index(..) | Op::Unindex(..) | Op::Sweep(..) => table.form == Form::Index,
        Op::Remove(_) => true,
        _ => table.form == Form::Record,
    };
    let is_earlier = |operand: &Operand| !matches!(operand, Operand::Result(number) if *number >= index);
    let form_violation = require(form_fits, OWN_FORM);
    match op {
        Op::Put(_, fields) | Op::Set(_, fields) => form_violation
            .or_else(|| require(fields.iter().all(|(_, operand)| is_earlier(operand)), EARLIER_RESULT))
            .or_else(|| check_record(batch, op, key, fields)),
        Op::Append(_, values) | Op::Rewrite(_, _, values) => form_violation
            .or_else(|| require(values.iter().all(is_earlier), EARLIER_RESULT))
            .or_else(|| check_entry(key, values)),
        Op::Add(_, field, more) => form_violation
            .or_else(|| require(table.column(field).is_some(), KNOWN_FIELD))
            .or_else(|| require(is_earlier(more), EARLIER_RESULT))
            .or_else(|| broken_changes(batch, op).into_iter().next()),
        Op::Index(_, _, score) => form_violation
            .or_else(|| require(is_earlier(score), EARLIER_RESULT))
            .or_else(|| require(score_fits(score), SCORE_FITS)),
        Op::Sweep(_, _, until) => form_violation.or_else(|| require(is_earlier(until), EARLIER_RESULT)),
        Op::DrawNumber(_, field) | Op::Notify(_, field) => {
            form_violation.or_else(|| require(table.column(field).is_some(), KNOWN_FIELD))
        }
        _ => form_violation,
    }
}

/// Returns true if a score has at most [`SCORE_BITS`] bits, or only the engine knows it.
fn score_fits(score: &Operand) -> bool {
    match score {
        Operand::Value(Value::Integer(score)) => score.unsigned_abs() <= 1 << SCORE_BITS,
        Operand::Value(_) | Operand::Nothing => false,
        _ => true,
    }
}

/// Returns the position of a field that an operation sets, or the invariant that it breaks.
fn field_position(
    key: &Key,
    rules: Option<&CompiledRules>,
    (name, operand): &(&'static str, Operand),
) -> Result<usize, &'static str> {
    if *name == "version" {
        return Err(OWN_VERSION);
    }
    let known = match rules {
        Some(rules) => rules.position(name),
        None => key.table.fields.iter().position(|column| column.name == *name),
    };
    let position = known.ok_or(KNOWN_FIELD)?;
    let kind = key.table.fields[position].kind;
    let type_is_right = match operand {
        Operand::Value(value) => is_of_kind(value, kind),
        Operand::Now(_) | Operand::Latest(..) | Operand::Result(_) => kind == ColumnKind::Integer,
        Operand::Field(_) | Operand::Nothing => true,
    };
    if type_is_right { Ok(position) } else { Err(FIELD_TYPE) }
}

/// Checks an appended or rewritten entry.
fn check_entry(key: &Key, values: &[Operand]) -> Violation {
    let is_value = |operand: &Operand| !matches!(operand, Operand::Nothing | Operand::Field(_));
    if values.len() != key.table.fields.len() || !values.iter().all(is_value) {
        return Some(WHOLE_ENTRY);
    }
    let rules = compiled_rules(key.table)?;
    View::from_operands(values).broken(rules).or_else(|| check_key(rules, key))
}

/// Checks that a record of this kind may have this key.
fn check_key(rules: &'static CompiledRules, key: &Key) -> Violation {
    rules.key_rule.and_then(|(name, key_rule)| require(key_rule.contains(key), name))
}

/// Checks a written or changed record.
fn check_record(batch: &Batch, op: &Op, key: &Key, fields: &[(&'static str, Operand)]) -> Violation {
    let rules = compiled_rules(key.table);
    let (mut view, mut set_before) = (View::unknown(), 0_u64);
    let is_whole = matches!(op, Op::Put(..));
    let mut changes = None;
    for field in fields {
        let position = match field_position(key, rules, field) {
            Ok(position) if set_before >> position & 1 == 1 => return Some(ONE_VALUE),
            Ok(position) => position,
            Err(name) => return Some(name),
        };
        set_before |= 1 << position;
        view.note(position, &field.1);
        if let (false, Some(rules)) = (is_whole, rules) {
            changes = changes.or_else(|| broken_sets(batch, key, field, &rules.changes[position]).next());
        }
    }
    let rules = rules?;
    if is_whole {
        view.note_rest_absent();
        changes = broken_put(batch, key, rules).next();
    } else {
        note_guards(&mut view, batch, key, rules);
    }
    view.broken_but_types(rules).or(changes).or_else(|| require(!is_whole || has_end(batch, key, fields), GIVEN_END))
}

/// Notes the facts that a batch's guards state about a record.
fn note_guards(view: &mut View<'_>, batch: &Batch, key: &Key, rules: &CompiledRules) {
    for guard in guards_on(batch, key) {
        match guard {
            Guard::Unset(_, field) => rules.position(field).into_iter().for_each(|position| view.note_absent(position)),
            other => compared_fields(other)
                .into_iter()
                .flatten()
                .filter_map(|field| rules.position(field))
                .for_each(|position| view.note_known(position)),
        }
    }
    view.note_present(rules.needed);
}

/// Returns the invariants that writing a record breaks.
fn broken_put(batch: &Batch, key: &Key, rules: &'static CompiledRules) -> impl Iterator<Item = &'static str> + use<> {
    let is_new = || has_guard(batch, key, |guard| matches!(guard, Guard::Absent(_)));
    rules.new.filter(|_| !is_new()).into_iter().chain(check_key(rules, key))
}

/// Returns the change invariants that setting a field breaks.
fn broken_sets<'a>(
    batch: &'a Batch,
    key: &'a Key,
    (field, operand): &'a (&'static str, Operand),
    changes: &'static [(&'static str, Change)],
) -> impl Iterator<Item = &'static str> + use<'a> {
    changes.iter().filter_map(move |(name, change)| require(may_set(batch, key, field, operand, *change), name))
}

/// Returns the change invariants that an operation on a record breaks.
pub(super) fn broken_changes(batch: &Batch, op: &Op) -> Vec<&'static str> {
    let key = op.key();
    let Some(rules) = compiled_rules(key.table) else { return vec![] };
    let changes_of = |field: &str| rules.position(field).map_or(&[][..], |position| &rules.changes[position][..]);
    match op {
        Op::Put(..) => broken_put(batch, key, rules).collect(),
        Op::Set(_, fields) => {
            fields.iter().flat_map(|field| broken_sets(batch, key, field, changes_of(field.0))).collect()
        }
        Op::Add(_, field, more) => changes_of(field)
            .iter()
            .filter_map(|(name, change)| require(may_add(batch, key, more, *change), name))
            .collect(),
        _ => vec![],
    }
}

/// Returns true if a batch gives a written record its end, or the record stays for its delivery.
fn has_end(batch: &Batch, key: &Key, fields: &[(&'static str, Operand)]) -> bool {
    let gets_end = |op: &Op| matches!(op, Op::ExpireAt(record, _) if record == key);
    !matches!(key.table.life, Life::Ends(_))
        || fields.iter().any(|(name, _)| *name == "delivery")
        || batch.ops.iter().any(gets_end)
}

/// Returns the guards of a batch on a record.
fn guards_on<'a>(batch: &'a Batch, key: &'a Key) -> impl Iterator<Item = &'a Guard> {
    batch.guards.iter().filter(move |guard| ptr::eq(guard.key().table, key.table) && guard.key() == key)
}

/// Returns true if a batch has a matching guard on a record.
pub(super) fn has_guard(batch: &Batch, key: &Key, matches_rule: impl Fn(&Guard) -> bool) -> bool {
    guards_on(batch, key).any(matches_rule)
}

/// Returns true if a batch has the guard that setting a field needs.
fn may_set(batch: &Batch, key: &Key, field: &str, operand: &Operand, change: Change) -> bool {
    let has_version_guard = || has_needed_guard(batch, key, Need::Version);
    match change {
        Change::Fixed => has_version_guard(),
        Change::Once => {
            *operand == Operand::Nothing || has_version_guard() || has_guard(batch, key, |guard| compares(guard, field))
        }
        Change::Rises => has_version_guard() || has_guard(batch, key, |guard| compares(guard, field)),
        Change::Guarded(need) => *operand == Operand::Nothing || has_needed_guard(batch, key, need),
    }
}

/// Returns true if a batch has the guard that adding to a field needs.
fn may_add(batch: &Batch, key: &Key, addend: &Operand, change: Change) -> bool {
    let number = if let Operand::Value(Value::Integer(number)) = addend { *number } else { 0 };
    match change {
        Change::Fixed | Change::Once => false,
        Change::Rises => number >= 0,
        Change::Guarded(need @ (Need::AtLeast(_) | Need::Equal(_))) => {
            number >= 0 || has_needed_guard(batch, key, need)
        }
        Change::Guarded(need) => number <= 0 || has_needed_guard(batch, key, need),
    }
}

/// Returns true if a batch has the guard that a rule needs.
pub(super) fn has_needed_guard(batch: &Batch, key: &Key, need: Need) -> bool {
    has_guard(batch, key, |guard| match (need, guard) {
        (Need::Unset(field), Guard::Unset(_, name))
        | (Need::Before(field), Guard::Before(_, name))
        | (Need::Equal(field), Guard::Equal(_, name, _))
        | (Need::AtMost(field), Guard::AtMost(_, name, _))
        | (Need::AtLeast(field), Guard::AtLeast(_, name, _)) => field == *name,
        (Need::Below(field, limit), Guard::Below(_, name, most)) => (field, limit) == (*name, *most),
        (Need::Version, Guard::Version(..)) => true,
        // No balance is below zero, so this guard never passes.
        (Need::AtLeast(field), Guard::AtMost(_, name, most)) => field == *name && *most < 0,
        _ => false,
    })
}
