//! The known part of a record that was read, with all or some of its fields, or that a batch writes.

use super::rule::{Companions, CompiledRules};
use crate::engine::{ColumnKind, Operand, Record, Table, Value};

/// Maximum number of fields of a kind.
pub(super) const WIDTH: usize = 40;

/// The known part of a record. A field that is neither present nor absent is unknown.
#[derive(Debug)]
pub(super) struct View<'a> {
    /// The known values, by the positions of the fields.
    values: [Option<&'a Value>; WIDTH],
    /// The fields that have a value, as bits by their positions.
    present: u64,
    /// The fields that have no value, as bits by their positions.
    absent: u64,
}

/// A named condition on a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub(super) name: &'static str,
    /// The fields that the condition uses, as bits. It is checked only if all of them are known.
    pub(super) fields: u64,
    pub(super) test: Test,
}

/// A condition on fields by their positions, as the [`Rule`](super::rule::Rule) of the same name declares it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// The value has this type.
    Kind(usize, ColumnKind),
    Needed(usize),
    With(usize, usize),
    Without(usize, usize),
    Excludes(usize, i64, usize),
    Within(usize, i64, i64),
    Sized(usize, usize, usize),
    Word(usize, fn(&str) -> bool),
    NotAbove(usize, usize),
    Less(usize, usize),
    SumNotAbove(usize, usize, usize),
}

/// A group of conditions that are checked together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// On the presence of fields; one look at all of them tells whether one fails.
    Presence,
    /// On the types of values. A batch that sets a field has been checked before.
    Kind,
    /// On values.
    Value,
}

/// Returns the bit of a position; 0 for a field that the kind does not have.
pub(super) const fn bit(position: usize) -> u64 {
    if position < WIDTH { 1 << position } else { 0 }
}

impl Test {
    /// Returns the group of the condition.
    pub(super) const fn group(self) -> Group {
        match self {
            Self::Needed(_) | Self::With(..) | Self::Without(..) => Group::Presence,
            Self::Kind(..) => Group::Kind,
            _ => Group::Value,
        }
    }

    /// Returns the fields that the condition uses, as bits.
    pub(super) const fn fields(self) -> u64 {
        match self {
            Self::Kind(position, _)
            | Self::Needed(position)
            | Self::Within(position, ..)
            | Self::Sized(position, ..)
            | Self::Word(position, _) => bit(position),
            Self::With(position, other)
            | Self::Without(position, other)
            | Self::Excludes(position, _, other)
            | Self::NotAbove(position, other)
            | Self::Less(position, other) => bit(position) | bit(other),
            Self::SumNotAbove(position, other, most) => bit(position) | bit(other) | bit(most),
        }
    }
}

impl<'a> View<'a> {
    /// Returns the view of a record without known fields.
    pub(super) const fn unknown() -> Self {
        Self { values: [None; WIDTH], present: 0, absent: 0 }
    }

    /// Returns the view of a record that was read with the requested fields, or with all; `None` if it has others.
    pub(super) fn from_record(
        compiled_rules: &CompiledRules,
        table: &Table,
        record: &'a Record,
        requested: Option<&[&str]>,
    ) -> Option<Self> {
        let mut view = Self::unknown();
        for (field, value) in &record.fields {
            match compiled_rules.position(field) {
                Some(position) => view.set(position, value),
                None if requested.is_some() => return None,
                None => {}
            }
        }
        let read_fields = match requested {
            None => table.fields.len().checked_sub(1).map_or(0, |last| u64::MAX >> (63 - last.min(63))),
            Some(requested) => requested
                .iter()
                .filter_map(|field| compiled_rules.position(field))
                .fold(0, |all, position| all | bit(position)),
        };
        view.absent = read_fields & !view.present;
        (view.present & !read_fields == 0).then_some(view)
    }

    /// Returns the view of a list entry with the values of its fields.
    pub(super) fn from_entry(entry: &'a [Value]) -> Self {
        let mut view = Self::unknown();
        entry.iter().enumerate().for_each(|(position, value)| view.set(position, value));
        view
    }

    /// Returns the view of an entry that a batch writes.
    pub(super) fn from_operands(entry: &'a [Operand]) -> Self {
        let mut view = Self::unknown();
        entry.iter().enumerate().for_each(|(position, operand)| view.note(position, operand));
        view
    }

    /// Notes the new value of a field.
    pub(super) fn note(&mut self, position: usize, operand: &'a Operand) {
        match operand {
            Operand::Value(value) => self.set(position, value),
            Operand::Nothing => self.absent |= bit(position),
            Operand::Now(_) | Operand::Latest(..) | Operand::Result(_) => self.present |= bit(position),
            Operand::Field(_) => {}
        }
    }

    /// Notes that fields have values, unless the batch clears them.
    pub(super) fn note_present(&mut self, fields: u64) {
        self.present |= fields & !self.absent;
    }

    /// Notes that a field has no value, unless the batch sets it.
    pub(super) fn note_absent(&mut self, position: usize) {
        self.absent |= bit(position) & !self.present;
    }

    /// Notes that every field without a new value has none, because the batch writes the whole record.
    pub(super) fn note_rest_absent(&mut self) {
        self.absent = !self.present;
    }

    /// Notes that a field has a value, unless the batch clears it.
    pub(super) fn note_known(&mut self, position: usize) {
        self.note_present(bit(position));
    }

    /// Notes the value of a field.
    fn set(&mut self, position: usize, value: &'a Value) {
        if let Some(known) = self.values.get_mut(position) {
            *known = Some(value);
        }
        self.present |= bit(position);
    }

    /// Returns the name of the first condition that fails, whatever the unknown values are.
    pub(super) fn broken(&self, rules: &CompiledRules) -> Option<&'static str> {
        self.broken_presence(rules).or_else(|| self.failed_among(&rules.conditions[rules.types_from..]).next())
    }

    /// Returns the name of the first condition that fails, of a record whose values have their types.
    pub(super) fn broken_but_types(&self, rules: &CompiledRules) -> Option<&'static str> {
        self.broken_presence(rules).or_else(|| self.failed_among(&rules.conditions[rules.values_from..]).next())
    }

    /// Returns the name of the first condition on the presence of fields that fails.
    fn broken_presence(&self, rules: &CompiledRules) -> Option<&'static str> {
        let is_whole = rules.needed & self.absent == 0
            && rules.companions.iter().all(|Companions { field, with, without }| {
                self.present & field == 0 || (self.absent & with | self.present & without) == 0
            });
        if is_whole { None } else { self.failed_among(&rules.conditions[..rules.types_from]).next() }
    }

    /// Returns the names of all conditions that fail, whatever the unknown values are.
    #[cfg(test)]
    pub(super) fn all_broken(&self, rules: &CompiledRules) -> Vec<&'static str> {
        self.failed_among(&rules.conditions).collect()
    }

    /// Returns the names of those of these conditions that fail, whatever the unknown values are.
    fn failed_among(&self, conditions: &[Condition]) -> impl Iterator<Item = &'static str> {
        let known = self.present | self.absent;
        let is_known = move |condition: &&Condition| condition.fields & !known == 0;
        conditions
            .iter()
            .filter(is_known)
            .filter(|condition| !self.passes(condition.test))
            .map(|condition| condition.name)
    }

    /// Returns false if the condition fails, whatever the unknown values are.
    fn passes(&self, test: Test) -> bool {
        let (is_present, is_absent) =
            (|position| self.present & bit(position) != 0, |position| self.absent & bit(position) != 0);
        let integer = |position: usize| match self.values.get(position) {
            Some(Some(Value::Integer(number))) => Some(*number),
            _ => None,
        };
        let both = |first, second| integer(first).zip(integer(second));
        match test {
            Test::Kind(position, kind) => self.values[position].is_none_or(|value| is_of_kind(value, kind)),
            Test::Needed(position) => !is_absent(position),
            Test::With(position, other) => !(is_present(position) && is_absent(other)),
            Test::Without(position, other) => !(is_present(position) && is_present(other)),
            Test::Excludes(position, value, other) => !(integer(position) == Some(value) && is_present(other)),
            Test::Within(position, least, most) => {
                integer(position).is_none_or(|number| (least..=most).contains(&number))
            }
            Test::Sized(position, least, most) => {
                self.values.get(position).copied().flatten().is_none_or(|value| (least..=most).contains(&value.size()))
            }
            Test::Word(position, is_word) => match self.values.get(position) {
                Some(Some(Value::Text(text))) => is_word(text),
                _ => true,
            },
            Test::NotAbove(position, other) => both(position, other).is_none_or(|(one, other)| one <= other),
            Test::Less(position, other) => both(position, other).is_none_or(|(one, other)| one < other),
            Test::SumNotAbove(position, other, most) => both(position, other)
                .zip(integer(most))
                .is_none_or(|((one, other), most)| one.saturating_add(other) <= most),
        }
    }
}

/// Returns true if a value is of the type of a field.
pub(super) const fn is_of_kind(value: &Value, kind: ColumnKind) -> bool {
    matches!(
        (value, kind),
        (Value::Integer(_), ColumnKind::Integer)
            | (Value::Text(_), ColumnKind::Text)
            | (Value::Bytes(_), ColumnKind::Bytes | ColumnKind::Sealed(_))
    )
}
