//! The known part of a record that was read, with all or some of its fields, or that a batch writes.

use super::rule::CompiledRules;
use crate::engine::{ColumnKind, Operand, Record, Table, Value};

/// Maximum number of fields of a kind.
pub(super) const WIDTH: usize = 40;

/// The known values, and the known presence of each field. A field in neither set is unknown.
#[derive(Debug)]
pub(super) struct View<'a> {
    values: [Option<&'a Value>; WIDTH],
    present: u64,
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

/// A condition on fields by their places.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
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

const fn bit(place: usize) -> u64 {
    if place < WIDTH { 1 << place } else { 0 }
}

impl Test {
    /// Returns the fields that the condition uses, as bits.
    pub(super) const fn fields(self) -> u64 {
        match self {
            Self::Kind(place, _)
            | Self::Needed(place)
            | Self::Within(place, ..)
            | Self::Sized(place, ..)
            | Self::Word(place, _) => bit(place),
            Self::With(place, other)
            | Self::Without(place, other)
            | Self::Excludes(place, _, other)
            | Self::NotAbove(place, other)
            | Self::Less(place, other) => bit(place) | bit(other),
            Self::SumNotAbove(place, other, most) => bit(place) | bit(other) | bit(most),
        }
    }
}

impl<'a> View<'a> {
    /// Returns the view of a record without known fields.
    pub(super) const fn unknown() -> Self {
        Self { values: [None; WIDTH], present: 0, absent: 0 }
    }

    /// Returns the view of a record that was read with the requested fields, or with all.
    pub(super) fn from_record(
        compiled_rules: &CompiledRules,
        table: &Table,
        record: &'a Record,
        requested: Option<&[&str]>,
    ) -> Self {
        let mut view = Self::unknown();
        let mut places = compiled_rules.places.iter().peekable();
        // Both are in the order of their names.
        for (field, value) in &record.fields {
            while places.next_if(|(name, _)| name < field).is_some() {}
            if let Some((_, place)) = places.next_if(|(name, _)| name == field) {
                view.set(*place, value);
            }
        }
        let all = match requested {
            None => table.fields.len().checked_sub(1).map_or(0, |last| u64::MAX >> (63 - last.min(63))),
            Some(requested) => {
                requested.iter().filter_map(|field| compiled_rules.place(field)).fold(0, |all, place| all | bit(place))
            }
        };
        view.absent = all & !view.present;
        view
    }

    /// Returns the view of a list entry with the values of its fields.
    pub(super) fn from_entry(entry: &'a [Value]) -> Self {
        let mut view = Self::unknown();
        entry.iter().enumerate().for_each(|(place, value)| view.set(place, value));
        view
    }

    /// Returns the view of an entry that a batch writes.
    pub(super) fn from_operands(entry: &'a [Operand]) -> Self {
        let mut view = Self::unknown();
        entry.iter().enumerate().for_each(|(place, operand)| view.note(place, operand));
        view
    }

    /// Notes the new value of a field.
    pub(super) fn note(&mut self, place: usize, operand: &'a Operand) {
        match operand {
            Operand::Value(value) => self.set(place, value),
            Operand::Nothing => self.absent |= bit(place),
            Operand::Now(_) | Operand::Latest(..) | Operand::Result(_) => self.present |= bit(place),
            Operand::Field(_) => {}
        }
    }

    /// Notes that fields have values, unless the batch clears them.
    pub(super) fn note_present(&mut self, fields: u64) {
        self.present |= fields & !self.absent;
    }

    /// Notes that a field has no value, unless the batch sets it.
    pub(super) fn note_absent(&mut self, place: usize) {
        self.absent |= bit(place) & !self.present;
    }

    /// Notes that every field without a new value has none.
    pub(super) fn close(&mut self) {
        self.absent = !self.present;
    }

    /// Notes that a field has a value, unless the batch clears it.
    pub(super) fn note_known(&mut self, place: usize) {
        self.note_present(bit(place));
    }

    fn set(&mut self, place: usize, value: &'a Value) {
        if let Some(known) = self.values.get_mut(place) {
            *known = Some(value);
        }
        self.present |= bit(place);
    }

    /// Returns the name of the first condition that fails for all unknown values.
    pub(super) fn broken(&self, compiled_rules: &CompiledRules) -> Option<&'static str> {
        self.all_broken(compiled_rules).next()
    }

    /// Returns the names of all conditions that fail for all unknown values.
    pub(super) fn all_broken(&self, compiled_rules: &CompiledRules) -> impl Iterator<Item = &'static str> {
        let known = self.present | self.absent;
        let is_known = move |condition: &&Condition| condition.fields & !known == 0;
        compiled_rules
            .conditions
            .iter()
            .filter(is_known)
            .filter(|condition| !self.passes(condition.test))
            .map(|condition| condition.name)
    }

    fn passes(&self, test: Test) -> bool {
        let (is_present, is_absent) = (|place| self.present & bit(place) != 0, |place| self.absent & bit(place) != 0);
        let integer = |place: usize| match self.values.get(place) {
            Some(Some(Value::Integer(number))) => Some(*number),
            _ => None,
        };
        let both = |first, second| integer(first).zip(integer(second));
        match test {
            Test::Kind(place, kind) => self.values[place].is_none_or(|value| is_of_kind(value, kind)),
            Test::Needed(place) => !is_absent(place),
            Test::With(place, other) => !(is_present(place) && is_absent(other)),
            Test::Without(place, other) => !(is_present(place) && is_present(other)),
            Test::Excludes(place, value, other) => !(integer(place) == Some(value) && is_present(other)),
            Test::Within(place, least, most) => integer(place).is_none_or(|number| (least..=most).contains(&number)),
            Test::Sized(place, least, most) => {
                self.values.get(place).copied().flatten().is_none_or(|value| (least..=most).contains(&value.size()))
            }
            Test::Word(place, is_word) => match self.values.get(place) {
                Some(Some(Value::Text(text))) => is_word(text),
                _ => true,
            },
            Test::NotAbove(place, other) => both(place, other).is_none_or(|(one, other)| one <= other),
            Test::Less(place, other) => both(place, other).is_none_or(|(one, other)| one < other),
            Test::SumNotAbove(place, other, most) => both(place, other)
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
