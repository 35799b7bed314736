//! Operations that need others in their batch: a debit its entry, a claim its guard, a delivery its place in the
//! outbox.

use std::ptr;

use super::form::{has, has_guard};
use super::rule::{Need, compiled};
use crate::engine::{Batch, Guard, Key, Op, Operand, Table, Value};

/// An operation within its batch.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) batch: &'a Batch,
    pub(super) at: usize,
    pub(super) op: &'a Op,
}

/// The operations that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Set(&'static str),
    /// A new or changed record in which the field gets a value.
    Gives(&'static str),
    /// A positive addition.
    Add(&'static str),
    /// Any addition.
    Move(&'static str),
    Number(&'static str),
    Append,
    Rewrite,
    Index,
    Remove,
}

/// An invariant of a batch.
#[derive(Debug)]
pub(super) struct StepRule {
    pub(super) name: &'static str,
    pub(super) table: &'static Table,
    pub(super) kind: Kind,
    pub(super) holds: fn(Step<'_>) -> bool,
}

/// Returns the first rule that a batch breaks.
pub(super) fn broken(batch: &Batch) -> Option<&'static str> {
    all_broken(batch).next()
}

/// Returns all rules that a batch breaks.
pub(super) fn all_broken(batch: &Batch) -> impl Iterator<Item = &'static str> {
    let steps = batch.ops.iter().enumerate().map(move |(at, op)| Step { batch, at, op });
    let of = |step: Step<'_>| compiled(step.op.key().table).map_or(&[][..], |rules| &rules.steps[..]);
    steps.flat_map(move |step| of(step).iter().filter(move |rule| rule.is_broken(step)).map(|rule| rule.name))
}

impl StepRule {
    fn is_broken(&self, step: Step<'_>) -> bool {
        self.kind.is_of(step.op) && !(self.holds)(step)
    }
}

impl Kind {
    fn is_of(self, op: &Op) -> bool {
        match (self, op) {
            (Self::Put, Op::Put(..))
            | (Self::Append, Op::Append(..))
            | (Self::Rewrite, Op::Rewrite(..))
            | (Self::Index, Op::Index(..))
            | (Self::Remove, Op::Remove(_)) => true,
            (Self::Set(field), Op::Set(_, fields)) | (Self::Gives(field), Op::Set(_, fields) | Op::Put(_, fields)) => {
                given(fields, field).is_some_and(|operand| *operand != Operand::Nothing)
            }
            (Self::Add(field), Op::Add(_, of, more)) => field == *of && integer(more).is_some_and(|more| more > 0),
            (Self::Move(field), Op::Add(_, of, _)) | (Self::Number(field), Op::Number(_, of)) => field == *of,
            _ => false,
        }
    }
}

/// Returns the value that a field gets.
pub(super) fn given<'a>(fields: &'a [(&'static str, Operand)], field: &str) -> Option<&'a Operand> {
    fields.iter().find(|(name, _)| *name == field).map(|(_, operand)| operand)
}

pub(super) const fn integer(operand: &Operand) -> Option<i64> {
    match operand {
        Operand::Value(Value::Integer(number)) => Some(*number),
        _ => None,
    }
}

pub(super) fn bytes(operand: &Operand) -> Option<&[u8]> {
    match operand {
        Operand::Value(Value::Bytes(bytes)) => Some(bytes),
        Operand::Value(Value::Text(text)) => Some(text.as_bytes()),
        _ => None,
    }
}

impl<'a> Step<'a> {
    pub(super) fn key(self) -> &'a Key {
        self.op.key()
    }

    /// Returns the value that the operation gives a field.
    pub(super) fn gives(self, field: &str) -> Option<&'a Operand> {
        match self.op {
            Op::Put(_, fields) | Op::Set(_, fields) => given(fields, field),
            _ => None,
        }
    }

    /// Returns the values of the entry.
    pub(super) fn entry(self) -> &'a [Operand] {
        match self.op {
            Op::Append(_, values) | Op::Rewrite(_, _, values) => values,
            _ => &[],
        }
    }

    /// Returns true if the batch has this guard on the record itself.
    pub(super) fn needs(self, need: Need) -> bool {
        has(self.batch, self.key(), need)
    }

    /// Returns true if the batch has a matching guard on the record itself.
    pub(super) fn guarded(self, is_one: impl Fn(&Guard) -> bool) -> bool {
        has_guard(self.batch, self.key(), is_one)
    }

    /// Returns the operations of a kind of record, with their numbers.
    pub(super) fn of(self, table: &'static Table) -> impl Iterator<Item = (usize, &'a Op)> {
        self.batch.ops.iter().enumerate().filter(move |(_, op)| ptr::eq(op.key().table, table))
    }

    /// Returns the entry appended to the list of a kind, with its number.
    pub(super) fn appended(self, table: &'static Table) -> Option<(usize, &'a Op)> {
        self.of(table).find(|(_, op)| matches!(op, Op::Append(..)))
    }

    /// Returns true if the batch adds or moves a matching member of an index of the kind.
    pub(super) fn indexes(self, table: &'static Table, is_one: impl Fn(&Key, &[u8], &Operand) -> bool) -> bool {
        self.of(table).any(|(_, op)| matches!(op, Op::Index(index, member, score) if is_one(index, member, score)))
    }

    /// Returns true if the batch adds this number to a field of a record of the kind.
    pub(super) fn adds(self, table: &'static Table, field: &str, number: i64) -> bool {
        self.of(table)
            .any(|(_, op)| matches!(op, Op::Add(_, of, more) if *of == field && integer(more) == Some(number)))
    }

    /// Returns true if the operand is the result of a matching operation.
    pub(super) fn results(self, operand: Option<&Operand>, is_one: impl Fn(&'a Op) -> bool) -> bool {
        matches!(operand, Some(Operand::Result(of)) if self.batch.ops.get(*of).is_some_and(is_one))
    }
}
