//! Rules: the invariants of a kind of record, declared beside its fields, and their compiled form for fast checks.

use std::ptr;
use std::sync::LazyLock;

use sakshi_domain::ids::{Partition, TxnId};

use super::step::BatchRule;
use super::view::{Condition, Group, Test, bit};
use super::{money, outbox, people};
use crate::engine::{ColumnKind, Key, Place, Table};
use crate::records::ALL;
use crate::vault::SEALED_MIN;

/// An invariant of a kind of record. A list of fields makes one invariant of each field.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Every record has these fields.
    Needed(&'static [&'static str]),
    /// The integer is within this range, even after an addition.
    Within(&'static str, i64, i64),
    /// The text or the bytes have a length within this range.
    Sized(&'static str, usize, usize),
    /// The text is valid for the field's own type.
    Word(&'static str, fn(&str) -> bool),
    /// A record with the first field also has these fields.
    With(&'static str, &'static [&'static str]),
    /// A record with the first field has none of these fields.
    Without(&'static str, &'static [&'static str]),
    /// A record whose first field has this value has none of these fields.
    Excludes(&'static str, i64, &'static [&'static str]),
    /// The first integer is at most the second.
    NotAbove(&'static str, &'static str),
    /// The first integer is less than the second.
    Less(&'static str, &'static str),
    /// The sum of the first two integers is at most the third.
    SumNotAbove(&'static str, &'static str, &'static str),
    /// These fields get their values when the record is written, and never change.
    Fixed(&'static [&'static str]),
    /// These fields never change once they have a value.
    Once(&'static [&'static str]),
    /// These integers never fall.
    Rises(&'static [&'static str]),
    /// The field gets a value only in a batch with this guard.
    Guarded(&'static str, Need),
    /// A record is written only where none exists.
    New,
    /// The keys of its records: their partition and the form of their ids.
    Key(KeyRule),
}

/// A guard that a change of a record needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// This field has no value.
    Unset(&'static str),
    /// The engine's time is before the time in this field.
    Before(&'static str),
    /// This field has a known value.
    Equal(&'static str),
    /// This field has a lower bound.
    AtLeast(&'static str),
    /// This field has an upper bound.
    AtMost(&'static str),
    /// The first field is below the second.
    Below(&'static str, &'static str),
    /// The record has the version that was read.
    Version,
}

/// The keys that records of a kind may have: their partition, and the form of their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRule {
    /// Outside the partitions, with an id of fixed length.
    Alone {
        /// Length of the id.
        id_bytes: usize,
    },
    /// Outside the partitions, with an id of a client, an app, a key or a user.
    AloneNamed,
    /// In the first partition, which has the records of the installation.
    Installation,
    /// In the partition that the id names.
    OfId {
        /// Length of the id.
        id_bytes: usize,
    },
    /// In the partition of the client whose id this is.
    OfClient,
    /// In the partition of the client whose id begins this id, up to a space or a colon.
    OfClientFirst,
    /// In the partition of the app whose id begins this id, up to a space or a colon.
    OfAppFirst,
    /// In any partition.
    Partition {
        /// Length of the id.
        id_bytes: usize,
    },
    /// In any partition, with the id of a node, in 32 characters.
    OfNode,
    /// In any partition, with the id of an app.
    OfPartitionApp,
}

/// The invariants of a kind, ready to be checked.
#[derive(Debug, Default)]
pub(super) struct CompiledRules {
    /// The names of the fields by their positions.
    names: Vec<&'static str>,
    /// The positions of the fields by the hashes of their names. A taken slot passes its field on to the next.
    slots: Vec<Option<u8>>,
    /// Conditions on a record alone, in the order of their groups.
    pub(super) conditions: Vec<Condition>,
    /// Index of the first condition on a type; those on the presence of fields are before it.
    pub(super) types_from: usize,
    /// Index of the first condition on a value.
    pub(super) values_from: usize,
    /// The fields that every record has, as bits by their positions.
    pub(super) needed: u64,
    /// The conditions of the form With and Without, by their first fields.
    pub(super) companions: Vec<Companions>,
    /// Conditions on changes of the field at each position, with their names.
    pub(super) changes: Vec<Vec<(&'static str, Change)>>,
    /// Conditions on operations on the records, and on the other operations of their batch, with the field that such an
    /// operation sets, as a bit.
    pub(super) steps: Vec<(&'static BatchRule, u64)>,
    /// Name of the rule that a record replaces none, if the kind has it.
    pub(super) new: Option<&'static str>,
    /// The rule for keys, after its name.
    pub(super) key_rule: Option<(&'static str, KeyRule)>,
}

/// The fields that come with a field, and those that it excludes, as bits by their positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Companions {
    pub(super) field: u64,
    pub(super) with: u64,
    pub(super) without: u64,
}

/// A condition on a change of a field, as the [`Rule`] of the same name declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Fixed,
    Once,
    Rises,
    Guarded(Need),
}

/// Every kind with its invariants, by its address in memory.
static COMPILED: LazyLock<Vec<(usize, CompiledRules)>> = LazyLock::new(|| {
    let mut all: Vec<_> = ALL.iter().map(|table| (address(table), CompiledRules::new(table))).collect();
    all.sort_unstable_by_key(|(address, _)| *address);
    all
});

/// Returns the address of a kind, by which it is found faster than by its name.
fn address(table: &Table) -> usize {
    ptr::from_ref(table).addr()
}

/// Returns the invariants of a kind; `None` for a kind of another release.
pub(super) fn compiled_rules(table: &Table) -> Option<&'static CompiledRules> {
    let all = &*COMPILED;
    all.binary_search_by_key(&address(table), |(address, _)| *address).ok().map(|found| &all[found].1)
}

/// Returns the name of each kind with the name of each of its invariants, in the order of the kinds.
pub(super) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().flat_map(|table| {
        compiled_rules(table).into_iter().flat_map(CompiledRules::names).map(|name| (table.name, name))
    })
}

/// Number of slots for the fields of a kind: many more than fields, so that most names are found at once.
const SLOTS: usize = 128;

/// Returns the likeliest slot of a field.
fn first_slot(field: &str) -> usize {
    let (bytes, end) = (field.as_bytes(), |byte: Option<&u8>| byte.copied().map_or(0, usize::from));
    (end(bytes.first()) * 31 + end(bytes.last()) * 7 + bytes.len()) % SLOTS
}

/// Position of a field that the kind does not have.
const NO_POSITION: usize = usize::MAX;

impl CompiledRules {
    /// Compiles the rules of a kind.
    fn new(table: &'static Table) -> Self {
        let names: Vec<_> = table.fields.iter().map(|column| column.name).collect();
        let mut slots = vec![None; SLOTS];
        for (position, name) in (0..).zip(&names) {
            let mut slot = first_slot(name);
            while slots[slot].is_some() {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = Some(position);
        }
        let steps = [money::RULES, outbox::RULES, people::RULES].into_iter().flatten();
        let mut compiled_rules = Self { names, slots, changes: vec![vec![]; table.fields.len()], ..Self::default() };
        let field =
            |rule: &BatchRule| rule.kind.field().and_then(|field| compiled_rules.position(field)).map_or(0, bit);
        compiled_rules.steps =
            steps.filter(|rule| ptr::eq(rule.table, table)).map(|rule| (rule, field(rule))).collect();
        for (position, column) in table.fields.iter().enumerate() {
            compiled_rules.add_condition(
                table,
                &format!("{} has its type", column.name),
                Test::Kind(position, column.kind),
            );
            if matches!(column.kind, ColumnKind::Sealed(_)) {
                compiled_rules.add_condition(
                    table,
                    &format!("{} is sealed", column.name),
                    Test::Sized(position, SEALED_MIN, usize::MAX),
                );
            }
        }
        table.rules.iter().copied().flatten().for_each(|rule| compiled_rules.declare(table, rule));
        compiled_rules.group();
        compiled_rules
    }

    /// Sorts the conditions by their groups, and summarises those on the presence of fields.
    fn group(&mut self) {
        self.conditions.sort_by_key(|condition| condition.test.group());
        let first = |group| self.conditions.partition_point(|condition| condition.test.group() < group);
        (self.types_from, self.values_from) = (first(Group::Kind), first(Group::Value));
        for condition in &self.conditions {
            let (field, with, without) = match condition.test {
                Test::With(field, other) => (bit(field), bit(other), 0),
                Test::Without(field, other) => (bit(field), 0, bit(other)),
                _ => continue,
            };
            match self.companions.iter_mut().find(|known| known.field == field) {
                Some(known) => (known.with, known.without) = (known.with | with, known.without | without),
                None => self.companions.push(Companions { field, with, without }),
            }
        }
    }

    /// Returns the position of a field in its kind. A test finds rules that name a missing field, because they are
    /// never checked.
    pub(super) fn position(&self, field: &str) -> Option<usize> {
        let mut slot = first_slot(field);
        while let Some(position) = self.slots[slot] {
            let name = self.names[usize::from(position)];
            // Most names are those of the kind itself.
            if ptr::eq(name, field) || name == field {
                return Some(usize::from(position));
            }
            slot = (slot + 1) % SLOTS;
        }
        None
    }

    /// Adds a condition on a record, under a name made of the kind and these words.
    fn add_condition(&mut self, table: &Table, words: &str, test: Test) {
        self.conditions.push(Condition { name: constant_name(table, words), fields: test.fields(), test });
    }

    /// Adds the conditions of a declared rule.
    fn declare(&mut self, table: &'static Table, rule: &Rule) {
        let at = |compiled_rules: &Self, field| compiled_rules.position(field).unwrap_or(NO_POSITION);
        match *rule {
            Rule::Needed(fields) => {
                for field in fields {
                    let position = at(self, field);
                    self.needed |= bit(position);
                    self.add_condition(table, &format!("{field} is present"), Test::Needed(position));
                }
            }
            Rule::With(field, others) => others.iter().for_each(|other| {
                self.add_condition(
                    table,
                    &format!("{field} comes with {other}"),
                    Test::With(at(self, field), at(self, other)),
                );
            }),
            Rule::Without(field, others) => others.iter().for_each(|other| {
                self.add_condition(
                    table,
                    &format!("{field} excludes {other}"),
                    Test::Without(at(self, field), at(self, other)),
                );
            }),
            Rule::Excludes(field, value, others) => others.iter().for_each(|other| {
                let words = format!("{field} of {value} excludes {other}");
                self.add_condition(table, &words, Test::Excludes(at(self, field), value, at(self, other)));
            }),
            Rule::Within(field, least, most) => {
                self.add_condition(
                    table,
                    &format!("{field} is within its range"),
                    Test::Within(at(self, field), least, most),
                );
            }
            Rule::Sized(field, least, most) => {
                self.add_condition(
                    table,
                    &format!("{field} has its length"),
                    Test::Sized(at(self, field), least, most),
                );
            }
            Rule::Word(field, is_word) => {
                self.add_condition(table, &format!("{field} is a known word"), Test::Word(at(self, field), is_word));
            }
            Rule::NotAbove(field, other) => {
                self.add_condition(
                    table,
                    &format!("{field} is at most {other}"),
                    Test::NotAbove(at(self, field), at(self, other)),
                );
            }
            Rule::Less(field, other) => {
                self.add_condition(
                    table,
                    &format!("{field} is below {other}"),
                    Test::Less(at(self, field), at(self, other)),
                );
            }
            Rule::SumNotAbove(field, other, most) => {
                let test = Test::SumNotAbove(at(self, field), at(self, other), at(self, most));
                self.add_condition(table, &format!("{field} and {other} are at most {most}"), test);
            }
            Rule::Fixed(_) | Rule::Once(_) | Rule::Rises(_) | Rule::Guarded(..) => self.declare_change(table, rule),
            Rule::New => self.new = Some(constant_name(table, "a record replaces none")),
            Rule::Key(key_rule) => self.key_rule = Some((constant_name(table, "a record is in its place"), key_rule)),
        }
    }

    /// Adds the conditions of a rule on changes of fields.
    fn declare_change(&mut self, table: &'static Table, rule: &Rule) {
        let mut add_each = |fields: &[&'static str], words: &str, change| {
            for field in fields {
                let name = constant_name(table, &format!("{field} {words}"));
                self.position(field).into_iter().for_each(|position| self.changes[position].push((name, change)));
            }
        };
        match *rule {
            Rule::Fixed(fields) => add_each(fields, "stays as it was written", Change::Fixed),
            Rule::Once(fields) => add_each(fields, "gets a value once", Change::Once),
            Rule::Rises(fields) => add_each(fields, "never falls", Change::Rises),
            Rule::Guarded(field, need) => {
                add_each(&[field], &format!("changes under a guard: {need}"), Change::Guarded(need));
            }
            _ => {}
        }
    }

    /// Returns the names of the invariants.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let record_rules = self.conditions.iter().map(|condition| condition.name);
        let change_rules = self.changes.iter().flatten().map(|(name, _)| *name);
        record_rules.chain(change_rules).chain(self.new).chain(self.key_rule.map(|(name, _)| name))
    }
}

/// Returns true for the id of a client, an app, a key, an operator or a user.
pub(crate) fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Returns the name of an invariant of a kind. It is never freed; a process creates each name once.
fn constant_name(table: &Table, words: &str) -> &'static str {
    Box::leak(format!("{}: {words}", table.name).into_boxed_str())
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unset(field) => write!(f, "{field} has no value"),
            Self::Before(field) => write!(f, "before {field}"),
            Self::Equal(field) => write!(f, "{field} is known"),
            Self::AtLeast(field) => write!(f, "{field} has a least value"),
            Self::AtMost(field) => write!(f, "{field} has a greatest value"),
            Self::Below(field, limit) => write!(f, "{field} is below {limit}"),
            Self::Version => f.write_str("as it was read"),
        }
    }
}

impl KeyRule {
    /// Returns true if a record may have this key.
    pub(super) fn contains(self, key: &Key) -> bool {
        let id = &key.id[..];
        let text = || std::str::from_utf8(id).unwrap_or_default();
        let first = || text().split([' ', ':']).next().unwrap_or_default();
        let client = |text: &str| is_id(text).then(|| Place::Partition(Partition::of_name(text)));
        match self {
            Self::Alone { id_bytes } => key.place == Place::Alone && id.len() == id_bytes,
            Self::AloneNamed => key.place == Place::Alone && is_id(text()),
            Self::Installation => key.place == Partition::all().next().map_or(Place::Alone, Place::Partition),
            Self::OfId { id_bytes } => {
                let beginning = |id: &[u8]| {
                    let mut bytes = [0; 16];
                    bytes.iter_mut().zip(id).for_each(|(to, from)| *to = *from);
                    TxnId::from_bytes(bytes)
                };
                id.len() == id_bytes && key.place == Place::Partition(beginning(id).partition())
            }
            Self::OfClient => client(text()) == Some(key.place),
            Self::OfClientFirst => client(first()) == Some(key.place),
            Self::OfAppFirst => is_id(first()) && key.place == Place::Partition(Partition::of_name(first())),
            Self::Partition { id_bytes } => key.place != Place::Alone && id.len() == id_bytes,
            Self::OfNode => key.place != Place::Alone && crate::redis::NodeId::from_bytes(id).is_some(),
            Self::OfPartitionApp => key.place != Place::Alone && is_id(text()),
        }
    }
}
