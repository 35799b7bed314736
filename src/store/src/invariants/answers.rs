//! Invariants of engine answers: possible results, real refusals, and records, entries and members as they were
//! written.

use sakshi_domain::credits::EntryKind;

use super::form::SCORE_BITS;
use super::rule::{Rule, compiled_rules};
use super::view::View;
use crate::engine::{
    Answer, Answers, Applied, Batch, Guard, Key, NO_LOWER_BOUND, Op, Operand, Query, Record, ScoredMember, Table,
    Value, no_field,
};
use crate::records::audit::AUDIT_LOG;
use crate::records::client::LEDGER;

/// The invariants of answers.
pub(super) const NAMES: &[&str] = &[
    ONE_ANSWER,
    ONE_RESULT,
    KNOWN_GUARD,
    FAILED_GUARD,
    SUM_FITS,
    ENTRY_NUMBER,
    REMOVED_MEMBER,
    SWEPT_MEMBERS,
    DRAWN_NUMBER,
    NO_RESULT,
    ANSWER_MATCHES_QUERY,
    OWN_FIELDS,
    VERSION_FROM_ONE,
    WHOLE_ENTRY,
    FEW_ENTRIES,
    FEW_MEMBERS,
    SORTED_MEMBERS,
    SCORES_REQUESTED,
    SCORES_FIT,
    ONE_LAST,
    LEDGER_CHAIN,
    AUDIT_NUMBERS,
    AUDIT_CHAIN,
];

const ONE_ANSWER: &str = "a batch or a query has one answer";
const ONE_RESULT: &str = "an operation has one result";
const KNOWN_GUARD: &str = "a refusal names a guard of its batch";
const FAILED_GUARD: &str = "a failed guard does not hold for the record that it saw";
const SUM_FITS: &str = "a sum is within the range of its field";
const ENTRY_NUMBER: &str = "an appended entry has a number";
const REMOVED_MEMBER: &str = "a member was removed or was missing";
const SWEPT_MEMBERS: &str = "members were swept or were missing";
const DRAWN_NUMBER: &str = "a drawn number is positive";
const NO_RESULT: &str = "an operation that yields no value returns no result";
const ANSWER_MATCHES_QUERY: &str = "an answer has the form of its query";
const OWN_FIELDS: &str = "a record has only the requested fields";
const VERSION_FROM_ONE: &str = "the version of a read record is at least 1";
const WHOLE_ENTRY: &str = "an entry that is read has a value for each field";
const FEW_ENTRIES: &str = "no more entries are returned than requested";
const FEW_MEMBERS: &str = "no more members are returned than requested";
const SORTED_MEMBERS: &str = "members are in the order of their scores";
const SCORES_REQUESTED: &str = "members have scores within the requested range";
const SCORES_FIT: &str = "scores that are read have at most 53 bits";
const ONE_LAST: &str = "an index has one last member";
const LEDGER_CHAIN: &str = "a balance is the previous balance plus the amount of its entry";
const AUDIT_NUMBERS: &str = "entries of the audit log have consecutive numbers";
const AUDIT_CHAIN: &str = "an entry of the audit log has the hash of the previous entry";

/// The name of an invariant that does not hold; `None` if all hold.
type Violation = Option<&'static str>;

/// Returns the name of an invariant unless it holds.
const fn require(holds: bool, name: &'static str) -> Violation {
    if holds { None } else { Some(name) }
}

/// The possible answers to a batch, to check the answer of an engine.
#[derive(Debug)]
pub(super) struct Expected {
    /// The guards, without the ids of their records.
    guards: Vec<Guard>,
    /// The possible results of each operation.
    results: Vec<PossibleResult>,
    /// True if the batch has a call, whose retry gets the results of the first application.
    has_call: bool,
}

/// The possible results of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PossibleResult {
    /// 0, of an operation that yields no value.
    Zero,
    /// A sum from the first to the second number.
    Sum(i64, i64),
    /// The number of an appended entry, from 1.
    EntryNumber,
    /// 0 for a removed member, -1 for a missing one.
    ZeroOrMinusOne,
    /// A number from 0.
    Count,
    /// A drawn number, from 1.
    DrawnNumber,
}

impl Expected {
    /// Returns the possible answers to a batch. Guards are stored without the ids of their records.
    pub(super) fn new(batch: &Batch) -> Self {
        Self {
            guards: batch.guards.iter().map(without_id).collect(),
            results: batch.ops.iter().map(possible_result).collect(),
            has_call: batch.call.is_some(),
        }
    }

    /// Returns the first invariant that an answer breaks.
    pub(super) fn broken(&self, applied: &Applied) -> Violation {
        match applied {
            Applied::Done { results, .. } if self.has_call && results.len() != self.results.len() => None,
            Applied::Done { results, .. } => require(results.len() == self.results.len(), ONE_RESULT)
                .or_else(|| self.results.iter().zip(results).find_map(|(outcome, result)| outcome.broken(*result))),
            Applied::Refused { guard, record, now } => {
                let Some(refused) = self.guards.get(*guard) else { return Some(KNOWN_GUARD) };
                let is_on_record = refused.compares() || matches!(refused, Guard::Absent(_) | Guard::Present(_));
                require(!is_on_record || !refused.holds(record.as_ref(), *now), FAILED_GUARD)
                    .or_else(|| record.as_ref().and_then(|record| check_record(refused.key().table, record, None)))
            }
        }
    }
}

/// Copies a guard with its compared integers, but without the record id and other long values.
fn without_id(guard: &Guard) -> Guard {
    let key = Key { table: guard.key().table, place: guard.key().place, id: vec![] };
    match guard {
        Guard::Absent(_) => Guard::Absent(key),
        Guard::Present(_) => Guard::Present(key),
        Guard::Version(_, version) => Guard::Version(key, *version),
        Guard::Before(_, field) => Guard::Before(key, field),
        Guard::Below(_, field, limit) => Guard::Below(key, field, limit),
        Guard::AtLeast(_, field, least) => Guard::AtLeast(key, field, *least),
        Guard::AtMost(_, field, most) => Guard::AtMost(key, field, *most),
        Guard::Equal(_, field, Value::Integer(number)) => Guard::Equal(key, field, Value::Integer(*number)),
        // Values on the heap are neither copied nor compared again.
        Guard::Equal(_, field, _) => Guard::Equal(key, field, Value::Bytes(vec![])),
        Guard::Unset(_, field) => Guard::Unset(key, field),
        Guard::Length(_, length) => Guard::Length(key, *length),
        Guard::Fewer(_, limit) => Guard::Fewer(key, *limit),
        Guard::Free(_, score) => Guard::Free(key, *score),
        Guard::Entry(_, number, _) => Guard::Entry(key, *number, vec![]),
    }
}

/// Returns the possible results of an operation.
fn possible_result(op: &Op) -> PossibleResult {
    match op {
        Op::Add(key, field, _) => {
            let (least, most) = range(key.table, field);
            PossibleResult::Sum(least, most)
        }
        Op::Append(key, _) if key.parent().is_none() => PossibleResult::EntryNumber,
        // Nothing is stored while the owning record is missing.
        Op::Append(..) | Op::Sweep(..) => PossibleResult::Count,
        Op::Unindex(..) => PossibleResult::ZeroOrMinusOne,
        Op::DrawNumber(..) => PossibleResult::DrawnNumber,
        _ => PossibleResult::Zero,
    }
}

/// Returns the range that a rule declares for a field.
fn range(table: &'static Table, field: &str) -> (i64, i64) {
    let declared = table.rules.iter().copied().flatten().find_map(|rule| match rule {
        Rule::Within(name, least, most) if *name == field => Some((*least, *most)),
        _ => None,
    });
    declared.unwrap_or((i64::MIN, i64::MAX))
}

impl PossibleResult {
    /// Returns the invariant that a result breaks.
    fn broken(self, result: i64) -> Violation {
        match self {
            Self::Zero => require(result == 0, NO_RESULT),
            Self::Sum(least, most) => require((least..=most).contains(&result), SUM_FITS),
            Self::EntryNumber => require(result >= 1, ENTRY_NUMBER),
            Self::ZeroOrMinusOne => require(result == 0 || result == -1, REMOVED_MEMBER),
            Self::Count => require(result >= 0, SWEPT_MEMBERS),
            Self::DrawnNumber => require(result > 0, DRAWN_NUMBER),
        }
    }
}

/// Returns the first invariant that the answers to batches break.
pub(super) fn check_batches(expected: &[Expected], applied: &[Applied]) -> Violation {
    require(expected.len() == applied.len(), ONE_ANSWER)
        .or_else(|| expected.iter().zip(applied).find_map(|(expected, applied)| expected.broken(applied)))
}

/// The possible answers to a query, to check the answer of an engine.
#[derive(Debug)]
pub(super) enum ExpectedAnswer {
    /// A record with the requested fields, or with all.
    Record {
        table: &'static Table,
        requested: Option<&'static [&'static str]>,
        /// The invariant that a record with this key breaks.
        misplaced: Violation,
    },
    /// Entries of a list from a number on.
    Entries { table: &'static Table, first: u64, limit: u64 },
    /// Members of an index with scores within a range.
    Members { above: i64, until: Operand, limit: u64 },
    /// The last member of an index.
    Last,
    /// A number.
    Number,
}

impl ExpectedAnswer {
    /// Returns the possible answers to a query. Nothing is stored of its key but the kind.
    pub(super) fn new(query: &Query) -> Self {
        let record = |key: &Key, requested| {
            let key_rule = compiled_rules(key.table).and_then(|rules| rules.key_rule);
            let misplaced = key_rule.and_then(|(name, key_rule)| require(key_rule.contains(key), name));
            Self::Record { table: key.table, requested, misplaced }
        };
        match query {
            Query::Record(key) => record(key, None),
            Query::Fields(key, fields) => record(key, Some(*fields)),
            Query::Entries { list, first, limit, .. } => {
                Self::Entries { table: list.table, first: *first, limit: *limit }
            }
            Query::Members { above, until, limit, .. } => {
                Self::Members { above: *above, until: until.clone(), limit: *limit }
            }
            Query::Last(_) => Self::Last,
            Query::End(_) | Query::Length(_) | Query::Count(..) => Self::Number,
        }
    }
}

/// Returns the first invariant that the answers to queries break.
pub(super) fn check_queries(expected: &[ExpectedAnswer], answers: &Answers) -> Violation {
    let each =
        || expected.iter().zip(&answers.found).find_map(|(expected, answer)| check_query(expected, answer, answers));
    require(expected.len() == answers.found.len(), ONE_ANSWER).or_else(each)
}

/// Returns the first invariant that the answer to a query breaks.
fn check_query(expected: &ExpectedAnswer, answer: &Answer, answers: &Answers) -> Violation {
    match (expected, answer) {
        (ExpectedAnswer::Record { table, requested, misplaced }, Answer::Record(record)) => {
            record.as_ref().and_then(|record| check_record(table, record, *requested).or(*misplaced))
        }
        (ExpectedAnswer::Entries { table, first, limit }, Answer::Entries(entries)) => {
            require(entries.len() as u64 <= *limit, FEW_ENTRIES).or_else(|| check_entries(table, *first, entries))
        }
        (ExpectedAnswer::Members { above, until, limit }, Answer::Members(members)) => {
            let score_max = until.integer(answers.now, &[], &no_field);
            check_members(members).or_else(|| require(members.len() as u64 <= *limit, FEW_MEMBERS)).or_else(|| {
                let is_requested =
                    |(_, score): &ScoredMember| (*above == NO_LOWER_BOUND || score > above) && *score <= score_max;
                // On another server, the time of an operand may be later.
                require(!matches!(until, Operand::Value(_)) || members.iter().all(is_requested), SCORES_REQUESTED)
            })
        }
        (ExpectedAnswer::Last, Answer::Members(members)) => {
            require(members.len() <= 1, ONE_LAST).or_else(|| check_members(members))
        }
        (ExpectedAnswer::Number, Answer::Number(_)) => None,
        _ => Some(ANSWER_MATCHES_QUERY),
    }
}

/// Checks a record that was read, with the requested fields or with all.
fn check_record(table: &Table, record: &Record, requested: Option<&[&str]>) -> Violation {
    let rules = compiled_rules(table)?;
    let view = View::from_record(rules, table, record, requested);
    require(view.is_some(), OWN_FIELDS)
        .or_else(|| require(record.version >= 1, VERSION_FROM_ONE))
        .or_else(|| view.and_then(|view| view.broken(rules)))
}

/// Checks entries of a list, from number `first` on.
fn check_entries(table: &'static Table, first: u64, entries: &[Vec<Value>]) -> Violation {
    let rules = compiled_rules(table)?;
    let each = |entry: &Vec<Value>| {
        require(entry.len() == table.fields.len(), WHOLE_ENTRY).or_else(|| View::from_entry(entry).broken(rules))
    };
    entries.iter().find_map(each).or_else(|| {
        if std::ptr::eq(table, &LEDGER) {
            check_ledger(first, entries)
        } else if std::ptr::eq(table, &AUDIT_LOG) {
            check_audit(first, entries)
        } else {
            None
        }
    })
}

/// Checks the chain of balances in entries of a ledger, from number `first` on.
fn check_ledger(first: u64, entries: &[Vec<Value>]) -> Violation {
    let effect_and_balance = |entry: &Vec<Value>| match &entry[..] {
        [Value::Text(kind), Value::Integer(amount), Value::Integer(after), ..] => {
            kind.parse::<EntryKind>().ok().map(|kind| (kind.signed(*amount), *after))
        }
        _ => None,
    };
    // The balance before the first entry of a ledger is zero.
    let mut balance_before = (first <= 1).then_some(0_i64);
    for entry in entries {
        let Some((effect, after)) = effect_and_balance(entry) else { return Some(LEDGER_CHAIN) };
        if balance_before.is_some_and(|before| before.checked_add(effect) != Some(after)) {
            return Some(LEDGER_CHAIN);
        }
        balance_before = Some(after);
    }
    None
}

/// Checks the numbers and hashes in entries of the audit log, from number `first` on.
fn check_audit(first: u64, entries: &[Vec<Value>]) -> Violation {
    let number =
        |entry: &Vec<Value>| if let Some(Value::Integer(number)) = entry.first() { number.unsigned_abs() } else { 0 };
    // The third field is the hash, and the second the hash of the previous entry.
    let follows = |pair: &[Vec<Value>]| pair[0].get(2) == pair[1].get(1);
    require((first.max(1)..).zip(entries).all(|(expected, entry)| number(entry) == expected), AUDIT_NUMBERS)
        .or_else(|| require(entries.windows(2).all(follows), AUDIT_CHAIN))
}

/// Checks the scores of members and their order.
fn check_members(members: &[ScoredMember]) -> Violation {
    let fits = |(_, score): &ScoredMember| score.unsigned_abs() <= 1 << SCORE_BITS;
    let follows = |pair: &[ScoredMember]| (pair[0].1, &pair[0].0) < (pair[1].1, &pair[1].0);
    require(members.windows(2).all(follows), SORTED_MEMBERS).or_else(|| require(members.iter().all(fits), SCORES_FIT))
}
