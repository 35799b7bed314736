//! Rules for operations that need others in their batch. For example, a debit needs its entry in the ledger, and a
//! delivery its place in the outbox.

use std::ptr;

use super::form::{has_guard, has_needed_guard};
use super::rule::{CompiledRules, Need, compiled_rules};
use super::view::bit;
use crate::engine::{Batch, Guard, Key, Op, Operand, Table, Value};

/// An operation within its batch.
#[derive(Clone, Copy)]
pub(super) struct OpInBatch<'a> {
    pub(super) batch: &'a Batch,
    /// Index of the operation.
    pub(super) index: usize,
    pub(super) op: &'a Op,
}

/// The operations on a kind of record to which a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpKind {
    Put,
    /// A changed record in which the field gets a value.
    Set(&'static str),
    /// A new or changed record in which the field gets a value.
    Assigns(&'static str),
    /// A positive addition to the field.
    Increase(&'static str),
    /// Any addition to the field.
    Add(&'static str),
    /// A number drawn from the sequence in the field.
    Number(&'static str),
    Append,
    Rewrite,
    Index,
    Remove,
}

/// An invariant of a batch: each operation of a kind on a record of `table` needs `holds`.
#[derive(Debug)]
pub(super) struct BatchRule {
    pub(super) name: &'static str,
    pub(super) table: &'static Table,
    pub(super) kind: OpKind,
    pub(super) holds: fn(OpInBatch<'_>) -> bool,
}

/// Returns the first rule that a batch breaks.
pub(super) fn broken(batch: &Batch) -> Option<&'static str> {
    all_broken(batch).next()
}

/// Returns all rules that a batch breaks.
pub(super) fn all_broken(batch: &Batch) -> impl Iterator<Item = &'static str> {
    let steps = batch.ops.iter().enumerate().map(move |(index, op)| OpInBatch { batch, index, op });
    steps.flat_map(|step| {
        let rules = compiled_rules(step.key().table);
        let set = rules.map_or(0, |rules| set_fields(rules, step.op));
        let rules = rules.map_or(&[][..], |rules| &rules.steps[..]);
        let is_broken =
            move |(rule, field): &(&BatchRule, u64)| rule.kind.covers(step.op, set & field != 0) && !(rule.holds)(step);
        rules.iter().filter(move |step| is_broken(step)).map(|(rule, _)| rule.name)
    })
}

/// Returns the fields that get a value, as bits by their positions, if the kind has rules on such fields.
fn set_fields(rules: &CompiledRules, op: &Op) -> u64 {
    match op {
        Op::Put(_, fields) | Op::Set(_, fields) if rules.steps.iter().any(|(_, field)| *field != 0) => fields
            .iter()
            .filter(|(_, operand)| *operand != Operand::Nothing)
            .filter_map(|(field, _)| rules.position(field))
            .fold(0, |all, position| all | bit(position)),
        _ => 0,
    }
}

impl OpKind {
    /// Returns the field that an operation of this kind sets.
    pub(super) const fn field(self) -> Option<&'static str> {
        match self {
            Self::Set(field) | Self::Assigns(field) => Some(field),
            _ => None,
        }
    }

    /// Returns true if the rule applies to an operation. `sets_field` is true if the operation gives the rule's field a
    /// value.
    fn covers(self, op: &Op, sets_field: bool) -> bool {
        match (self, op) {
            (Self::Put, Op::Put(..))
            | (Self::Append, Op::Append(..))
            | (Self::Rewrite, Op::Rewrite(..))
            | (Self::Index, Op::Index(..))
            | (Self::Remove, Op::Remove(_)) => true,
            (Self::Set(_), Op::Set(..)) | (Self::Assigns(_), Op::Set(..) | Op::Put(..)) => sets_field,
            (Self::Increase(field), Op::Add(_, name, more)) => {
                field == *name && integer(more).is_some_and(|more| more > 0)
            }
            (Self::Add(field), Op::Add(_, name, _)) | (Self::Number(field), Op::DrawNumber(_, name)) => field == *name,
            _ => false,
        }
    }
}

/// Returns the operand that is assigned to a field.
pub(super) fn operand_for<'a>(fields: &'a [(&'static str, Operand)], field: &str) -> Option<&'a Operand> {
    fields.iter().find(|(name, _)| *name == field).map(|(_, operand)| operand)
}

/// Returns an operand's integer value, if it is known.
pub(super) const fn integer(operand: &Operand) -> Option<i64> {
    match operand {
        Operand::Value(Value::Integer(number)) => Some(*number),
        _ => None,
    }
}

/// Returns the bytes of an operand's value, if they are known.
pub(super) fn bytes(operand: &Operand) -> Option<&[u8]> {
    match operand {
        Operand::Value(Value::Bytes(bytes)) => Some(bytes),
        Operand::Value(Value::Text(text)) => Some(text.as_bytes()),
        _ => None,
    }
}

impl<'a> OpInBatch<'a> {
    /// Returns the key of the operation.
    pub(super) fn key(self) -> &'a Key {
        self.op.key()
    }

    /// Returns the operand that the operation assigns to a field.
    pub(super) fn operand(self, field: &str) -> Option<&'a Operand> {
        match self.op {
            Op::Put(_, fields) | Op::Set(_, fields) => operand_for(fields, field),
            _ => None,
        }
    }

    /// Returns the values of the appended or rewritten entry.
    pub(super) fn entry(self) -> &'a [Operand] {
        match self.op {
            Op::Append(_, values) | Op::Rewrite(_, _, values) => values,
            _ => &[],
        }
    }

    /// Returns true if the batch has the needed guard on the record of the operation.
    pub(super) fn meets(self, need: Need) -> bool {
        has_needed_guard(self.batch, self.key(), need)
    }

    /// Returns true if the batch has a matching guard on the record of the operation.
    pub(super) fn has_guard(self, matches_rule: impl Fn(&Guard) -> bool) -> bool {
        has_guard(self.batch, self.key(), matches_rule)
    }

    /// Returns the operations of the batch on a kind of record, with their indexes.
    pub(super) fn ops_on(self, table: &'static Table) -> impl Iterator<Item = (usize, &'a Op)> {
        self.batch.ops.iter().enumerate().filter(move |(_, op)| ptr::eq(op.key().table, table))
    }

    /// Returns the operation that appends to a list of the kind, with its index.
    pub(super) fn appended(self, table: &'static Table) -> Option<(usize, &'a Op)> {
        self.ops_on(table).find(|(_, op)| matches!(op, Op::Append(..)))
    }

    /// Returns true if the batch adds or moves a matching member of an index of the kind.
    pub(super) fn indexes(self, table: &'static Table, matches_rule: impl Fn(&Key, &[u8], &Operand) -> bool) -> bool {
        self.ops_on(table)
            .any(|(_, op)| matches!(op, Op::Index(index, member, score) if matches_rule(index, member, score)))
    }

    /// Returns true if the batch adds this number to a field of a record of the kind.
    pub(super) fn adds(self, table: &'static Table, field: &str, number: i64) -> bool {
        self.ops_on(table)
            .any(|(_, op)| matches!(op, Op::Add(_, name, more) if *name == field && integer(more) == Some(number)))
    }

    /// Returns true if the operand is the result of a matching operation.
    pub(super) fn is_result(self, operand: Option<&Operand>, matches_rule: impl Fn(&'a Op) -> bool) -> bool {
        matches!(operand, Some(Operand::Result(number)) if self.batch.ops.get(*number).is_some_and(matches_rule))
    }
}
