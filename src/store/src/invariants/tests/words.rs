//! The invariants of the form of batches and of answers. Each is broken by its own case.

use std::collections::BTreeSet;

use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use crate::engine::{Answer, Answers, Applied, Batch, Fields, Guard, Key, Op, Operand, Place, Query, Record, Value};
use crate::invariants::answers::{self, Expected, ExpectedAnswer};
use crate::invariants::{form, invariants};
use crate::records::audit::key_of_audit_log;
use crate::records::client::{key_of_client, key_of_clients, key_of_ledger, key_of_reference};
use crate::records::credential::CREDENTIAL;
use crate::records::delivery::key_of_last_numbers;
use crate::records::event::{GUESTS, WAITING};
use crate::records::user::USER_EMAIL;
use sakshi_domain::credits::EntryKind;

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// Returns a client.
fn owner() -> ClientId {
    "cl_1".parse().unwrap()
}

#[test]
fn each_form_invariant_of_a_batch_can_be_broken() {
    let (account, list, index) = (key_of_client(&owner()), key_of_ledger(&owner()), key_of_clients());
    let alone = Key { table: &USER_EMAIL, place: Place::Alone, id: vec![0; 32] };
    let email = |fields| Op::Set(alone.clone(), fields);
    let batch_of = |ops: Vec<Op>| Batch::new(vec![], ops);
    let user_id = || Operand::from("usr_1");
    let cases: Vec<(&str, Batch)> = vec![
        (
            "all keys of a batch are in one place",
            batch_of(vec![Op::Remove(account.clone()), Op::Remove(alone.clone())]),
        ),
        (
            "a call is stored in a record that its batch changes",
            batch_of(vec![]).with_call_id([1; 16], account.clone()),
        ),
        ("a guard fits the form of its kind", Batch::new(vec![Guard::Length(account.clone(), 1)], vec![])),
        ("a field belongs to its kind of record", Batch::new(vec![Guard::Unset(account.clone(), "colour")], vec![])),
        (
            "a value has the type of its field",
            Batch::new(vec![Guard::Equal(account.clone(), "name", 1.into())], vec![]),
        ),
        ("an operation fits the form of its kind", batch_of(vec![Op::Append(account.clone(), vec![])])),
        (
            "a result operand names an earlier operation",
            batch_of(vec![Op::Add(account.clone(), "balance", Operand::Result(0))]),
        ),
        ("only engines set the version", batch_of(vec![email(vec![("version", 1.into())])])),
        ("a field belongs to its kind of record", batch_of(vec![email(vec![("colour", 1.into())])])),
        ("a value has the type of its field", batch_of(vec![email(vec![("user", 1.into())])])),
        ("a value has the type of its field", batch_of(vec![email(vec![("user", Operand::NOW)])])),
        ("an operation sets a field once", batch_of(vec![email(vec![("user", user_id()), ("user", user_id())])])),
        ("an entry has a value for each field", batch_of(vec![Op::Append(list.clone(), vec!["grant".into()])])),
        (
            "an entry has a value for each field",
            batch_of(vec![Op::Append(list, (0..5).map(|_| Operand::Nothing).collect())]),
        ),
        ("a score has at most 53 bits", batch_of(vec![Op::Index(index.clone(), vec![1], ((1_i64 << 53) + 1).into())])),
        ("a score has at most 53 bits", batch_of(vec![Op::Index(index, vec![1], Operand::Nothing)])),
        ("a record that ends is written with its end, or waits for its delivery", {
            let credential = Key { table: &CREDENTIAL, place: Place::Alone, id: vec![0; 32] };
            let bytes = || Operand::from(vec![0; 16]);
            batch_of(vec![Op::Put(
                credential,
                vec![("txn", bytes()), ("call", bytes()), ("under", 0.into()), ("until", 5.into())],
            )])
        }),
    ];
    assert_all_named(form::NAMES, &cases, |batch| form::broken(batch, false));
    let two_places = batch_of(vec![Op::Add(account, "balance", 0.into()), Op::Remove(alone)]);
    assert_eq!(form::broken(&two_places, true), None, "where a batch may have several places");
}

/// Checks that each case breaks the invariant that it names, and that each name has a case.
fn assert_all_named<C: std::fmt::Debug>(
    names: &[&'static str],
    cases: &[(&str, C)],
    broken: impl Fn(&C) -> Option<&'static str>,
) {
    for (name, case) in cases {
        assert_eq!(broken(case), Some(*name), "{case:?}");
    }
    let expected: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(expected, cases.iter().map(|(name, _)| *name).collect());
}

/// Returns the answer to an applied batch.
fn done(results: Vec<i64>) -> Vec<Applied> {
    vec![Applied::Done { results, now: NOW }]
}

/// Returns the answer to a refused batch.
fn refused(guard: usize, record: Option<Record>) -> Vec<Applied> {
    vec![Applied::Refused { guard, record, now: NOW }]
}

/// Returns the answers of an engine.
fn answers_of(answers: Vec<Answer>) -> Answers {
    Answers { now: NOW, found: answers.into() }
}

/// Returns an entry of a ledger with the balance `after` it.
fn ledger_entry(kind: &str, amount: i64, after: i64) -> Vec<Value> {
    vec![kind.into(), amount.into(), after.into(), vec![1].into(), 5.into()]
}

/// Returns the record that finds a grant by its reference, as read with this version and these fields.
fn reference_answer(version: i64, fields: &[(&'static str, i64)]) -> Answer {
    let usual = [("number", 1), ("amount", 5), ("balance_after", 5), ("at", 5)];
    let fields: Fields = usual.iter().chain(fields).map(|(name, value)| (*name, Value::Integer(*value))).collect();
    Answer::Record(Some(Record { version, fields }))
}

#[test]
fn each_invariant_of_batch_answers_can_be_broken() {
    let account = key_of_client(&owner());
    let waiting = Key { table: &WAITING, place: account.place, id: vec![0; 12] };
    let guests = Key { table: &GUESTS, ..waiting.clone() };
    let with = |op: Op, result: i64| (Batch::new(vec![Guard::Absent(account.clone())], vec![op]), done(vec![result]));
    let remove = || Op::Remove(account.clone());
    let cases: Vec<(&str, (Batch, Vec<Applied>))> = vec![
        ("a batch or a query has one answer", (Batch::default(), vec![])),
        ("an operation has one result", (Batch::default(), done(vec![0]))),
        ("a refusal names a guard of its batch", (Batch::default(), refused(0, None))),
        ("a failed guard does not hold for the record that it saw", (with(remove(), 0).0, refused(0, None))),
        ("a sum is within the range of its field", with(Op::Add(account.clone(), "balance", 1.into()), -1)),
        ("an appended entry has a number", with(Op::Append(key_of_ledger(&owner()), vec![]), 0)),
        ("a member was removed or was missing", with(Op::Unindex(waiting.clone(), vec![]), 1)),
        ("members were swept or were missing", with(Op::Sweep(waiting, 0, 1.into()), -1)),
        ("members were swept or were missing", with(Op::Append(guests, vec![]), -1)),
        ("a drawn number is positive", with(Op::DrawNumber(key_of_last_numbers(owner().partition()), "last"), 0)),
        ("an operation that yields no value returns no result", with(remove(), 1)),
    ];
    for (name, (batch, applied)) in &cases {
        assert_eq!(answers::check_batches(&[Expected::new(batch)], applied), Some(*name), "{batch:?} {applied:?}");
    }
    let absent = Expected::new(&with(remove(), 0).0);
    let whole = Record {
        version: 1,
        fields: Fields::from([("name", "A".into()), ("created_at", 5.into()), ("balance", 1.into())]),
    };
    assert_eq!(answers::check_batches(&[absent], &refused(0, Some(whole.clone()))), None);
    let damaged = Record { fields: Fields::from([("balance", (-1).into())]), ..whole };
    let absent = Expected::new(&with(remove(), 0).0);
    assert!(
        answers::check_batches(&[absent], &refused(0, Some(damaged))).is_some(),
        "the record that a guard saw is checked"
    );
    let queries = query_cases();
    let tested = cases.iter().map(|(name, _)| *name).chain(queries.iter().map(|(name, _)| *name));
    assert_eq!(answers::NAMES.iter().copied().collect::<BTreeSet<_>>(), tested.collect(), "a case for each");
}

/// The name of an invariant, and a query with an answer that breaks it.
type AnswerCase = (&'static str, (Query, Answer));

/// Returns a case for each invariant of the answers to queries.
fn query_cases() -> Vec<AnswerCase> {
    let key = key_of_reference(&owner(), EntryKind::Grant, "r");
    let list = |list: Key, first, entries: Vec<Vec<Value>>| (Query::entries(list, first, 3), Answer::Entries(entries));
    let audit = |number: i64, previous: u8, hash: u8| -> Vec<Value> {
        vec![number.into(), vec![previous; 32].into(), vec![hash; 32].into(), vec![0; 44].into()]
    };
    let page = |members: &[(u8, i64)]| {
        let query = Query::Members { index: key_of_clients(), above: 10, until: 20.into(), offset: 0, limit: 2 };
        (query, Answer::Members(members.iter().map(|(member, score)| (vec![*member], *score)).collect()))
    };
    let last = |members: &[(u8, i64)]| (Query::Last(key_of_clients()), page(members).1);
    vec![
        ("an answer has the form of its query", (Query::Record(key.clone()), Answer::Number(1))),
        ("a record has only the requested fields", (Query::Fields(key.clone(), &["number"]), reference_answer(1, &[]))),
        ("the version of a read record is at least 1", (Query::Record(key.clone()), reference_answer(0, &[]))),
        (
            "an entry that is read has a value for each field",
            list(key_of_ledger(&owner()), 1, vec![vec!["grant".into()]]),
        ),
        (
            "no more entries are returned than requested",
            list(key_of_ledger(&owner()), 1, vec![ledger_entry("grant", 1, 1); 4]),
        ),
        ("no more members are returned than requested", page(&[(1, 11), (2, 12), (3, 13)])),
        ("members are in the order of their scores", page(&[(1, 12), (2, 11)])),
        ("members are in the order of their scores", page(&[(1, 12), (1, 12)])),
        ("members have scores within the requested range", page(&[(1, 10)])),
        ("members have scores within the requested range", page(&[(1, 21)])),
        ("scores that are read have at most 53 bits", last(&[(1, i64::MAX)])),
        ("an index has one last member", last(&[(1, 1), (2, 2)])),
        (
            "a balance is the previous balance plus the amount of its entry",
            list(key_of_ledger(&owner()), 1, vec![ledger_entry("grant", 5, 4)]),
        ),
        (
            "a balance is the previous balance plus the amount of its entry",
            list(key_of_ledger(&owner()), 7, vec![ledger_entry("grant", 5, 9), ledger_entry("debit", 1, 9)]),
        ),
        ("entries of the audit log have consecutive numbers", list(key_of_audit_log(), 2, vec![audit(3, 0, 1)])),
        (
            "an entry of the audit log has the hash of the previous entry",
            list(key_of_audit_log(), 2, vec![audit(2, 0, 1), audit(3, 2, 3)]),
        ),
    ]
}

/// Returns the first invariant that the answers to queries break.
fn check_queries(queries: &[Query], found: Vec<Answer>) -> Option<&'static str> {
    let expected: Vec<_> = queries.iter().map(ExpectedAnswer::new).collect();
    answers::check_queries(&expected, &answers_of(found))
}

#[test]
fn each_invariant_of_query_answers_can_be_broken() {
    for (name, (query, answer)) in query_cases() {
        let broken = check_queries(std::slice::from_ref(&query), vec![answer.clone()]);
        assert_eq!(broken, Some(name), "{query:?} {answer:?}");
    }
    assert!(check_queries(&[Query::count(key_of_clients())], vec![]).is_some());
    let key = key_of_reference(&owner(), EntryKind::Grant, "r");
    let read = |key: Key, answer: Answer| check_queries(&[Query::Record(key)], vec![answer]);
    assert_eq!(read(key.clone(), reference_answer(1, &[])), None);
    assert_eq!(
        read(key.clone(), reference_answer(1, &[("number", 0)])),
        Some("credit_reference: number is within its range")
    );
    assert_eq!(
        read(Key { place: Place::Alone, ..key }, reference_answer(1, &[])),
        Some("credit_reference: a record is in its place")
    );
    let entries = [ledger_entry("grant", 5, 9), ledger_entry("debit", 1, 8), ledger_entry("adjust", -3, 5)];
    let right = check_queries(&[Query::entries(key_of_ledger(&owner()), 7, 3)], vec![Answer::Entries(entries.into())]);
    assert_eq!(right, None);
}

#[test]
fn invariant_names_are_many_and_unique() {
    let names: Vec<_> = invariants().collect();
    let distinct: BTreeSet<_> = names.iter().map(|(_, name)| *name).collect();
    let enough_names = names.len() > 700;
    assert!(enough_names && names.len() == distinct.len(), "{} {}", names.len(), distinct.len());
}
