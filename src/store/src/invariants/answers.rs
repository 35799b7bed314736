//! Invariants of engine answers: possible results, real refusals, and records, entries and members as they were
//! written.

use sakshi_domain::credits::EntryKind;

use super::form::SCORE_BITS;
use super::rule::{Rule, compiled_rules};
use super::view::View;
use crate::engine::{
    Answer, Answers, Applied, Batch, Guard, Key, Op, Operand, Query, Record, ScoredMember, Table, Value, no_field,
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
    SCORES_ASKED,
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
const SCORES_ASKED: &str = "members have scores within the requested range";
const SCORES_FIT: &str = "scores that are read have at most 53 bits";
const ONE_LAST: &str = "an index has one last member";
const LEDGER_CHAIN: &str = "a balance is the previous balance plus the amount of its entry";
const AUDIT_NUMBERS: &str = "entries of the audit log have consecutive numbers";
const AUDIT_CHAIN: &str = "an entry of the audit log has the hash of the previous entry";

type Broken = Option<&'static str>;

const fn unless(holds: bool, name: &'static str) -> Broken {
    if holds { None } else { Some(name) }
}

/// The possible answers to a batch.
#[derive(Debug)]
pub(super) struct Expected {
    guards: Vec<Guard>,
    results: Vec<Outcome>,
    /// True if the batch has a call, whose retry gets the results of the first application.
    has_call: bool,
}

/// The possible results of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Nothing,
    Sum(i64, i64),
    Entry,
    Removed,
    Swept,
    Number,
}

impl Expected {
    /// Returns the possible answers to a batch. Guards are stored without the ids of their records.
    pub(super) fn new(batch: &Batch) -> Self {
        Self {
            guards: batch.guards.iter().map(without_id).collect(),
            results: batch.ops.iter().map(possible_outcome).collect(),
            has_call: batch.call.is_some(),
        }
    }

    /// Returns the first invariant that an answer breaks.
    pub(super) fn broken(&self, applied: &Applied) -> Broken {
        match applied {
            Applied::Done { results, .. } if self.has_call && results.len() != self.results.len() => None,
            Applied::Done { results, .. } => unless(results.len() == self.results.len(), ONE_RESULT)
                .or_else(|| self.results.iter().zip(results).find_map(|(outcome, result)| outcome.broken(*result))),
            Applied::Refused { guard, record, now } => {
                let Some(refused) = self.guards.get(*guard) else { return Some(KNOWN_GUARD) };
                let is_on_record = refused.compares() || matches!(refused, Guard::Absent(_) | Guard::Present(_));
                unless(!is_on_record || !refused.holds(record.as_ref(), *now), FAILED_GUARD)
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

fn possible_outcome(op: &Op) -> Outcome {
    match op {
        Op::Add(key, field, _) => {
            let (least, most) = range(key.table, field);
            Outcome::Sum(least, most)
        }
        Op::Append(key, _) if key.parent().is_none() => Outcome::Entry,
        // Nothing is stored while the owning record is missing.
        Op::Append(..) | Op::Sweep(..) => Outcome::Swept,
        Op::Unindex(..) => Outcome::Removed,
        Op::DrawNumber(..) => Outcome::Number,
        _ => Outcome::Nothing,
    }
}

/// Returns the range that a rule declares for a field.
fn range(table: &'static Table, field: &str) -> (i64, i64) {
    let declared = table.rules.iter().find_map(|rule| match rule {
        Rule::Within(name, least, most) if *name == field => Some((*least, *most)),
        _ => None,
    });
    declared.unwrap_or((i64::MIN, i64::MAX))
}

impl Outcome {
    fn broken(self, result: i64) -> Broken {
        match self {
            Self::Nothing => unless(result == 0, NO_RESULT),
            Self::Sum(least, most) => unless((least..=most).contains(&result), SUM_FITS),
            Self::Entry => unless(result >= 1, ENTRY_NUMBER),
            Self::Removed => unless(result == 0 || result == -1, REMOVED_MEMBER),
            Self::Swept => unless(result >= 0, SWEPT_MEMBERS),
            Self::Number => unless(result > 0, DRAWN_NUMBER),
        }
    }
}

/// Returns the first invariant that the answers to batches break.
pub(super) fn check_batches(expected: &[Expected], applied: &[Applied]) -> Broken {
    unless(expected.len() == applied.len(), ONE_ANSWER)
        .or_else(|| expected.iter().zip(applied).find_map(|(expected, applied)| expected.broken(applied)))
}

/// Returns the first invariant that the answers to queries break.
pub(super) fn check_queries(queries: &[Query], answers: &Answers) -> Broken {
    let each = || queries.iter().zip(&answers.found).find_map(|(query, answer)| check_query(query, answer, answers));
    unless(queries.len() == answers.found.len(), ONE_ANSWER).or_else(each)
}

fn check_query(query: &Query, answer: &Answer, answers: &Answers) -> Broken {
    match (query, answer) {
        (Query::Record(key), Answer::Record(found)) => found.as_ref().and_then(|found| check_found(key, found, None)),
        (Query::Fields(key, fields), Answer::Record(found)) => {
            found.as_ref().and_then(|found| check_found(key, found, Some(fields)))
        }
        (Query::Entries { list, first, limit, .. }, Answer::Entries(found)) => {
            unless(found.len() as u64 <= *limit, FEW_ENTRIES).or_else(|| check_entries(list, *first, found))
        }
        (Query::Members { above, until, limit, .. }, Answer::Members(found)) => {
            let most = until.integer(answers.now, &[], &no_field);
            check_members(found).or_else(|| unless(found.len() as u64 <= *limit, FEW_MEMBERS)).or_else(|| {
                let is_asked = |(_, score): &ScoredMember| (*above == i64::MIN || score > above) && *score <= most;
                // On another server, the time of an operand may be later.
                unless(!matches!(until, Operand::Value(_)) || found.iter().all(is_asked), SCORES_ASKED)
            })
        }
        (Query::Last(_), Answer::Members(found)) => unless(found.len() <= 1, ONE_LAST).or_else(|| check_members(found)),
        (Query::End(_) | Query::Length(_) | Query::Count(..), Answer::Number(_)) => None,
        _ => Some(ANSWER_MATCHES_QUERY),
    }
}

/// Checks a record found under its key.
fn check_found(key: &Key, found: &Record, requested: Option<&[&'static str]>) -> Broken {
    let has_only = requested.is_none_or(|requested| found.fields.keys().all(|field| requested.contains(field)));
    let home = || {
        compiled_rules(key.table).and_then(|rules| rules.home).and_then(|(name, home)| unless(home.contains(key), name))
    };
    unless(has_only, OWN_FIELDS).or_else(|| check_record(key.table, found, requested)).or_else(home)
}

fn check_record(table: &Table, found: &Record, requested: Option<&[&str]>) -> Broken {
    let rules = compiled_rules(table)?;
    unless(found.version >= 1, VERSION_FROM_ONE)
        .or_else(|| View::from_record(rules, table, found, requested).broken(rules))
}

fn check_entries(list: &Key, first: u64, found: &[Vec<Value>]) -> Broken {
    let table = list.table;
    let rules = compiled_rules(table)?;
    let each = |entry: &Vec<Value>| {
        unless(entry.len() == table.fields.len(), WHOLE_ENTRY).or_else(|| View::from_entry(entry).broken(rules))
    };
    found.iter().find_map(each).or_else(|| match () {
        () if std::ptr::eq(table, &LEDGER) => check_ledger(first, found),
        () if std::ptr::eq(table, &AUDIT_LOG) => check_audit(first, found),
        () => None,
    })
}

/// Checks the entries of a ledger from a number on.
fn check_ledger(first: u64, found: &[Vec<Value>]) -> Broken {
    let parts = |entry: &Vec<Value>| match &entry[..] {
        [Value::Text(kind), Value::Integer(amount), Value::Integer(after), ..] => {
            kind.parse::<EntryKind>().ok().map(|kind| (kind.signed(*amount), *after))
        }
        _ => None,
    };
    // The balance before the first entry of a ledger is zero.
    let mut before = (first <= 1).then_some(0_i64);
    for entry in found {
        let Some((effect, after)) = parts(entry) else { return Some(LEDGER_CHAIN) };
        if before.is_some_and(|before| before.checked_add(effect) != Some(after)) {
            return Some(LEDGER_CHAIN);
        }
        before = Some(after);
    }
    None
}

/// Checks the entries of the audit log from a number on.
fn check_audit(first: u64, found: &[Vec<Value>]) -> Broken {
    let number =
        |entry: &Vec<Value>| if let Some(Value::Integer(number)) = entry.first() { number.unsigned_abs() } else { 0 };
    let follows = |pair: &[Vec<Value>]| pair[0].get(2) == pair[1].get(1);
    unless((first.max(1)..).zip(found).all(|(expected, entry)| number(entry) == expected), AUDIT_NUMBERS)
        .or_else(|| unless(found.windows(2).all(follows), AUDIT_CHAIN))
}

fn check_members(found: &[ScoredMember]) -> Broken {
    let fits = |(_, score): &ScoredMember| score.unsigned_abs() <= 1 << SCORE_BITS;
    let follows = |pair: &[ScoredMember]| (pair[0].1, &pair[0].0) < (pair[1].1, &pair[1].0);
    unless(found.windows(2).all(follows), SORTED_MEMBERS).or_else(|| unless(found.iter().all(fits), SCORES_FIT))
}
