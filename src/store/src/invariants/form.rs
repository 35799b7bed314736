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

/// The name of an invariant that does not hold.
type Broken = Option<&'static str>;

const fn unless(holds: bool, name: &'static str) -> Broken {
    if holds { None } else { Some(name) }
}

/// Returns the first invariant that a batch breaks; `joins_places` if it may have keys of several places.
pub(super) fn broken(batch: &Batch, joins_places: bool) -> Broken {
    let keys = || batch.guards.iter().map(Guard::key).chain(batch.ops.iter().map(Op::key));
    let first = keys().next();
    let is_same = |key: &Key| {
        first.is_none_or(|first| {
            first.place == key.place && (first.place != Place::Alone || is_same_or_owner(first, key))
        })
    };
    let call_is_kept = batch.call.as_ref().is_none_or(|(_, record)| {
        batch.ops.iter().any(|op| op.key() == record || op.key().parent().as_ref() == Some(record))
    });
    unless(joins_places || keys().all(is_same), ONE_PLACE)
        .or_else(|| unless(call_is_kept, CALL_CHANGED))
        .or_else(|| batch.guards.iter().find_map(check_guard))
        .or_else(|| batch.ops.iter().enumerate().find_map(|(at, op)| check_operation(batch, at, op)))
}

/// Returns true if two keys are equal, or one owns the other.
fn is_same_or_owner(one: &Key, other: &Key) -> bool {
    one == other || one.parent().as_ref() == Some(other) || other.parent().as_ref() == Some(one)
}

fn check_guard(guard: &Guard) -> Broken {
    let table = guard.key().table;
    let form_fits = match guard {
        Guard::Length(..) | Guard::Entry(..) => table.form == Form::List,
        Guard::Fewer(..) | Guard::Free(..) => table.form == Form::Index,
        _ => table.form == Form::Record,
    };
    let is_known = |field: &str| match compiled_rules(table) {
        Some(rules) => rules.place(field).is_some(),
        None => table.column(field).is_some(),
    };
    let type_is_right = match guard {
        Guard::Equal(_, field, value) => table.column(field).is_none_or(|column| is_of_kind(value, column.kind)),
        _ => true,
    };
    unless(form_fits, LIST_GUARD)
        .or_else(|| unless(compared_fields(guard).into_iter().flatten().all(is_known), KNOWN_FIELD))
        .or_else(|| unless(type_is_right, FIELD_TYPE))
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

fn compares(guard: &Guard, field: &str) -> bool {
    compared_fields(guard).into_iter().flatten().any(|name| name == field)
}

fn check_operation(batch: &Batch, at: usize, op: &Op) -> Broken {
    let (key, table) = (op.key(), op.key().table);
    let form = match op {
        Op::Append(..) | Op::Rewrite(..) => table.form == Form::List,
        Op::Index(..) | Op::Unindex(..) | Op::Sweep(..) => table.form == Form::Index,
        Op::Remove(_) => true,
        _ => table.form == Form::Record,
    };
    let is_earlier = |operand: &Operand| !matches!(operand, Operand::Result(number) if *number >= at);
    let found = unless(form, OWN_FORM);
    match op {
        Op::Put(_, fields) | Op::Set(_, fields) => found
            .or_else(|| unless(fields.iter().all(|(_, operand)| is_earlier(operand)), EARLIER_RESULT))
            .or_else(|| check_record(batch, op, key, fields)),
        Op::Append(_, values) | Op::Rewrite(_, _, values) => {
            found.or_else(|| unless(values.iter().all(is_earlier), EARLIER_RESULT)).or_else(|| check_entry(key, values))
        }
        Op::Add(_, field, more) => found
            .or_else(|| unless(table.column(field).is_some(), KNOWN_FIELD))
            .or_else(|| unless(is_earlier(more), EARLIER_RESULT))
            .or_else(|| broken_changes(batch, op).into_iter().next()),
        Op::Index(_, _, score) => found
            .or_else(|| unless(is_earlier(score), EARLIER_RESULT))
            .or_else(|| unless(score_fits(score), SCORE_FITS)),
        Op::Sweep(_, _, until) => found.or_else(|| unless(is_earlier(until), EARLIER_RESULT)),
        Op::DrawNumber(_, field) | Op::Notify(_, field) => {
            found.or_else(|| unless(table.column(field).is_some(), KNOWN_FIELD))
        }
        _ => found,
    }
}

fn score_fits(score: &Operand) -> bool {
    match score {
        Operand::Value(Value::Integer(score)) => score.unsigned_abs() <= 1 << SCORE_BITS,
        Operand::Value(_) | Operand::Nothing => false,
        _ => true,
    }
}

/// Returns the places of the fields that an operation sets.
fn field_places(
    key: &Key,
    rules: Option<&CompiledRules>,
    fields: &[(&'static str, Operand)],
) -> Result<Vec<usize>, &'static str> {
    let (mut places, mut seen) = (Vec::with_capacity(fields.len()), 0_u64);
    for (name, operand) in fields {
        if *name == "version" {
            return Err(OWN_VERSION);
        }
        let known = match rules {
            Some(rules) => rules.place(name),
            None => key.table.fields.iter().position(|column| column.name == *name),
        };
        let place = known.ok_or(KNOWN_FIELD)?;
        let kind = key.table.fields[place].kind;
        let type_is_right = match operand {
            Operand::Value(value) => is_of_kind(value, kind),
            Operand::Now(_) | Operand::Latest(..) | Operand::Result(_) => kind == ColumnKind::Integer,
            Operand::Field(_) | Operand::Nothing => true,
        };
        if !type_is_right {
            return Err(FIELD_TYPE);
        }
        if seen >> place & 1 == 1 {
            return Err(ONE_VALUE);
        }
        seen |= 1 << place;
        places.push(place);
    }
    Ok(places)
}

/// Checks an appended or rewritten entry.
fn check_entry(key: &Key, values: &[Operand]) -> Broken {
    let is_value = |operand: &Operand| !matches!(operand, Operand::Nothing | Operand::Field(_));
    if values.len() != key.table.fields.len() || !values.iter().all(is_value) {
        return Some(WHOLE_ENTRY);
    }
    let rules = compiled_rules(key.table)?;
    View::from_operands(values).broken(rules).or_else(|| check_home(rules, key))
}

fn check_home(rules: &'static CompiledRules, key: &Key) -> Broken {
    rules.home.and_then(|(name, home)| unless(home.contains(key), name))
}

/// Checks a written or changed record.
fn check_record(batch: &Batch, op: &Op, key: &Key, fields: &[(&'static str, Operand)]) -> Broken {
    let rules = compiled_rules(key.table);
    let places = match field_places(key, rules, fields) {
        Ok(places) => places,
        Err(name) => return Some(name),
    };
    let rules = rules?;
    let mut view = View::unknown();
    places.iter().zip(fields).for_each(|(place, (_, operand))| view.note(*place, operand));
    let is_whole = matches!(op, Op::Put(..));
    if is_whole {
        view.close();
    } else {
        note_guards(&mut view, batch, key, rules);
    }
    let changes = || match is_whole {
        true => broken_put(batch, key, rules).next(),
        false => places
            .iter()
            .zip(fields)
            .find_map(|(place, field)| broken_sets(batch, key, field, &rules.changes[*place]).next()),
    };
    view.broken(rules).or_else(changes).or_else(|| unless(!is_whole || has_end(batch, key, fields), GIVEN_END))
}

/// Notes the facts that a batch's guards state about a record.
fn note_guards(view: &mut View<'_>, batch: &Batch, key: &Key, rules: &CompiledRules) {
    for guard in guards_on(batch, key) {
        match guard {
            Guard::Unset(_, field) => rules.place(field).into_iter().for_each(|place| view.note_absent(place)),
            other => compared_fields(other)
                .into_iter()
                .flatten()
                .filter_map(|field| rules.place(field))
                .for_each(|place| view.note_known(place)),
        }
    }
    view.note_present(rules.needed);
}

/// Returns the invariants that writing a record breaks.
fn broken_put(batch: &Batch, key: &Key, rules: &'static CompiledRules) -> impl Iterator<Item = &'static str> + use<> {
    let is_new = || has_guard(batch, key, |guard| matches!(guard, Guard::Absent(_)));
    rules.new.filter(|_| !is_new()).into_iter().chain(check_home(rules, key))
}

/// Returns the change invariants that setting a field breaks.
fn broken_sets<'a>(
    batch: &'a Batch,
    key: &'a Key,
    (field, operand): &'a (&'static str, Operand),
    changes: &'static [(&'static str, Change)],
) -> impl Iterator<Item = &'static str> + use<'a> {
    changes.iter().filter_map(move |(name, change)| unless(may_set(batch, key, field, operand, *change), name))
}

/// Returns the change invariants that an operation on a record breaks.
pub(super) fn broken_changes(batch: &Batch, op: &Op) -> Vec<&'static str> {
    let key = op.key();
    let Some(rules) = compiled_rules(key.table) else { return vec![] };
    let changes_of = |field: &str| rules.place(field).map_or(&[][..], |place| &rules.changes[place][..]);
    match op {
        Op::Put(..) => broken_put(batch, key, rules).collect(),
        Op::Set(_, fields) => {
            fields.iter().flat_map(|field| broken_sets(batch, key, field, changes_of(field.0))).collect()
        }
        Op::Add(_, field, more) => changes_of(field)
            .iter()
            .filter_map(|(name, change)| unless(may_add(batch, key, more, *change), name))
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

fn may_add(batch: &Batch, key: &Key, more: &Operand, change: Change) -> bool {
    let number = if let Operand::Value(Value::Integer(number)) = more { *number } else { 0 };
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
