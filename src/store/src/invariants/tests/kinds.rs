//! The invariants of each kind of record. A sample record that keeps all rules is made from the rules, and then changed
//! to break one rule.

use std::collections::BTreeSet;

use sakshi_domain::ids::{ClientId, Partition, TxnId};

use crate::engine::{Batch, ColumnKind, Fields, Guard, Key, Op, Operand, Place, Record, Table, Value};
use crate::invariants::form;
use crate::invariants::rule::{Change, CompiledRules, KeyRule, Need, Rule, compiled_rules};
use crate::invariants::step::{self, OpKind};
use crate::invariants::view::{Condition, Test, View, WIDTH};
use crate::records::ALL;
use crate::vault::SEALED_MIN;

/// Lower bound of the number of conditions on records. A lower number means that rules were not tested.
const CONDITIONS_MIN: usize = 480;
/// Lower bound of the number of rules on changes.
const CHANGE_RULES_MIN: usize = 70;

/// Texts of which one is valid for each text field of a kind.
const WORDS: &[&str] = &["cl_1", "grant", "pending", "delivered", "dns", "name", "view", "stage", "production", ""];

/// Returns the places of all fields that a record with these fields must have.
fn required_positions(table: &Table, rules: &CompiledRules, fields: &[usize]) -> BTreeSet<usize> {
    let mut positions: BTreeSet<usize> = fields
        .iter()
        .copied()
        .chain((0..table.fields.len()).filter(|position| rules.needed >> position & 1 == 1))
        .collect();
    loop {
        let with = |condition: &Condition| match condition.test {
            Test::With(field, other) if positions.contains(&field) => Some(other),
            _ => None,
        };
        let further: Vec<usize> =
            rules.conditions.iter().filter_map(with).filter(|other| !positions.contains(other)).collect();
        if further.is_empty() {
            return positions;
        }
        positions.extend(further);
    }
}

/// Returns a value that the rules on this single field allow.
fn sample_value(rules: &CompiledRules, position: usize, kind: ColumnKind) -> Value {
    let tests = || rules.conditions.iter().map(|condition| condition.test);
    let length = tests().find_map(|test| match test {
        Test::Sized(field, least, _) if field == position => Some(least),
        _ => None,
    });
    match kind {
        ColumnKind::Integer => Value::Integer(
            tests()
                .find_map(|test| {
                    if let Test::Within(field, least, _) = test { (field == position).then_some(least) } else { None }
                })
                .unwrap_or(5),
        ),
        ColumnKind::Text => {
            let is_word = |text: &str| {
                tests().all(|test| !matches!(test, Test::Word(field, is_word) if field == position && !is_word(text)))
            };
            let text = WORDS.iter().find(|word| is_word(word)).unwrap_or_else(|| panic!("a word for {position}"));
            Value::Text(length.map_or_else(|| (*text).to_owned(), |length| "0".repeat(length)))
        }
        ColumnKind::Bytes => Value::Bytes(vec![0; length.unwrap_or(1)]),
        ColumnKind::Sealed(_) => Value::Bytes(vec![0; SEALED_MIN]),
    }
}

/// Returns a record with these fields and the fields that they require, which keeps every rule.
fn sample_record(table: &Table, rules: &CompiledRules, fields: &[usize]) -> Record {
    let positions = required_positions(table, rules, fields);
    let mut values: Vec<Option<Value>> = (0..table.fields.len())
        .map(|position| {
            positions.contains(&position).then(|| sample_value(rules, position, table.fields[position].kind))
        })
        .collect();
    let number = |values: &[Option<Value>], position: usize| {
        if let Some(Value::Integer(number)) = &values[position] { Some(*number) } else { None }
    };
    for condition in rules.conditions.iter().chain(&rules.conditions) {
        let changed_field = match condition.test {
            Test::Excludes(field, excluding, other)
                if values[other].is_some() && number(&values, field) == Some(excluding) =>
            {
                Some((field, 1 - excluding))
            }
            Test::NotAbove(field, other) => {
                number(&values, field).zip(number(&values, other)).map(|(one, least)| (other, least.max(one)))
            }
            Test::Less(field, other) => {
                number(&values, field).zip(number(&values, other)).map(|(one, least)| (other, least.max(one + 1)))
            }
            _ => None,
        };
        if let Some((position, number)) = changed_field {
            values[position] = Some(Value::Integer(number));
        }
    }
    record(table, &values)
}

/// Builds a record from the values of its fields, by their positions.
fn record(table: &Table, values: &[Option<Value>]) -> Record {
    let fields: Fields =
        table.fields.iter().zip(values).filter_map(|(column, value)| Some((column.name, value.clone()?))).collect();
    Record { version: 1, fields }
}

/// Returns the names of the conditions that a record breaks.
fn broken_conditions(table: &Table, rules: &CompiledRules, record: &Record) -> Vec<&'static str> {
    let view = View::from_record(rules, table, record, None).unwrap();
    let broken = view.all_broken(rules);
    assert_eq!(view.broken(rules), broken.first().copied());
    // A batch that sets fields has been checked for their types.
    let is_of_type = |name: &&&str| name.ends_with(" has its type");
    assert_eq!(view.broken_but_types(rules), broken.iter().find(|name| !is_of_type(name)).copied());
    broken
}

/// Fields by their positions, with their new values; `None` removes the field.
type FieldChanges = Vec<(usize, Option<Value>)>;

/// Returns the fields of a condition, and records that break it: each is a sample record with some fields changed.
fn broken_records(table: &'static Table, rules: &CompiledRules, test: Test) -> (Vec<usize>, Vec<Record>) {
    let name = |position: usize| table.fields[position].name;
    let (fields, changes): (Vec<usize>, Vec<FieldChanges>) = match test {
        Test::Kind(position, ColumnKind::Integer) => (vec![position], vec![vec![(position, Some("5".into()))]]),
        Test::Kind(position, _) => (vec![position], vec![vec![(position, Some(5.into()))]]),
        Test::Needed(position) => (vec![position], vec![vec![(position, None)]]),
        Test::With(position, other) => (vec![position], vec![vec![(other, None)]]),
        Test::Without(position, other) => {
            (vec![position], vec![vec![(other, Some(sample_value(rules, other, table.fields[other].kind)))]])
        }
        Test::Excludes(position, number, other) => (
            vec![position],
            vec![vec![
                (position, Some(number.into())),
                (other, Some(sample_value(rules, other, table.fields[other].kind))),
            ]],
        ),
        Test::Within(position, least, most) => {
            let beyond = [least.checked_sub(1), most.checked_add(1)].into_iter().flatten();
            (vec![position], beyond.map(|number| vec![(position, Some(number.into()))]).collect())
        }
        Test::Sized(position, least, most) => {
            let value_of_length = |length: usize| match table.fields[position].kind {
                ColumnKind::Text => Value::Text("0".repeat(length)),
                _ => Value::Bytes(vec![0; length]),
            };
            let beyond = [least.checked_sub(1), Some(most).filter(|most| *most < 1_000).map(|most| most + 1)]
                .into_iter()
                .flatten();
            (vec![position], beyond.map(|length| vec![(position, Some(value_of_length(length)))]).collect())
        }
        Test::Word(position, _) => (vec![position], vec![vec![(position, Some("?".into()))]]),
        Test::NotAbove(position, other) => {
            (vec![position, other], vec![vec![(position, Some(8.into())), (other, Some(7.into()))]])
        }
        Test::Less(position, other) => {
            (vec![position, other], vec![vec![(position, Some(7.into())), (other, Some(7.into()))]])
        }
        Test::SumNotAbove(position, other, most) => (
            vec![position, other, most],
            vec![vec![(position, Some(3.into())), (other, Some(3.into())), (most, Some(5.into()))]],
        ),
    };
    let base = sample_record(table, rules, &fields);
    let changed = |change: FieldChanges| {
        let mut record = base.clone();
        for (position, value) in change {
            match value {
                Some(value) => record.fields.insert(name(position), value),
                None => record.fields.remove(name(position)),
            };
        }
        record
    };
    (fields, changes.into_iter().map(changed).collect())
}

#[test]
fn each_record_condition_holds_for_a_sample_and_breaks_after_one_change() {
    let mut conditions = 0_usize;
    for table in ALL {
        let rules = compiled_rules(table).unwrap();
        assert_eq!(broken_conditions(table, rules, &sample_record(table, rules, &[])), Vec::<&str>::new(), "{table:?}");
        for Condition { name, test, .. } in &rules.conditions {
            let (fields, records) = broken_records(table, rules, *test);
            assert_eq!(
                broken_conditions(table, rules, &sample_record(table, rules, &fields)),
                Vec::<&str>::new(),
                "{name}"
            );
            assert!(!records.is_empty(), "{name} cannot be broken");
            for record in records {
                let found = broken_conditions(table, rules, &record);
                assert!(found.contains(name), "{name}: {record:?} breaks {found:?}");
            }
            conditions += 1;
        }
    }
    assert!(conditions > CONDITIONS_MIN, "{conditions}");
}

#[test]
fn a_rule_on_a_field_that_gets_a_value_applies_to_new_and_to_changed_records() {
    let mut rules_broken = 0;
    for table in ALL {
        let rules = compiled_rules(table).unwrap();
        let key = Key { table, place: Place::Alone, id: vec![0; 16] };
        for (rule, _) in &rules.steps {
            let OpKind::Assigns(field) = rule.kind else { continue };
            let fields = vec![(field, Operand::from(5))];
            let is_broken = [Op::Put(key.clone(), fields.clone()), Op::Set(key.clone(), fields)]
                .map(|op| step::all_broken(&Batch::new(vec![], vec![op])).any(|name| name == rule.name));
            assert_eq!(is_broken[0], is_broken[1], "{}", rule.name);
            rules_broken += usize::from(is_broken[0]);
        }
    }
    assert!(rules_broken >= 5, "{rules_broken}");
}

#[test]
fn only_requested_fields_are_checked() {
    let (table, rules) =
        (&crate::records::transaction::TRANSACTION, compiled_rules(&crate::records::transaction::TRANSACTION).unwrap());
    let record = Record { version: 1, fields: Fields::from([("verified_at", Value::Integer(5))]) };
    let broken =
        |requested: &[&str]| View::from_record(rules, table, &record, Some(requested)).unwrap().all_broken(rules);
    assert_eq!(broken(&["verified_at"]), Vec::<&str>::new());
    assert_eq!(broken(&["verified_at", "until"]), ["txn: verified_at comes with until"]);
}

#[test]
fn rules_name_fields_of_their_kind() {
    for table in ALL {
        assert!(table.fields.len() <= WIDTH, "{table:?} has more fields than a view");
        for rule in table.rules.iter().copied().flatten() {
            let fields: Vec<&str> = match rule {
                Rule::Needed(fields) | Rule::Fixed(fields) | Rule::Once(fields) | Rule::Rises(fields) => {
                    fields.to_vec()
                }
                Rule::With(field, others) | Rule::Without(field, others) | Rule::Excludes(field, _, others) => {
                    [&[*field], *others].concat()
                }
                Rule::Within(field, ..) | Rule::Sized(field, ..) | Rule::Word(field, _) | Rule::Guarded(field, _) => {
                    vec![field]
                }
                Rule::NotAbove(field, other) | Rule::Less(field, other) => vec![field, other],
                Rule::SumNotAbove(field, other, most) => vec![field, other, most],
                Rule::New | Rule::Key(_) => vec![],
            };
            assert!(fields.iter().all(|field| table.column(field).is_some()), "{table:?}: {rule:?}");
        }
    }
}

/// Returns a guard that a rule on a change requires. Its numbers are arbitrary.
fn required_guard(key: &Key, field: &'static str, change: Change) -> Guard {
    let key = key.clone();
    let need = match change {
        Change::Fixed | Change::Rises => Need::Version,
        Change::Once => Need::Unset(field),
        Change::Guarded(need) => need,
    };
    match need {
        Need::Unset(field) => Guard::Unset(key, field),
        Need::Before(field) => Guard::Before(key, field),
        Need::Equal(field) => Guard::Equal(key, field, 5.into()),
        Need::AtLeast(field) => Guard::AtLeast(key, field, 5),
        Need::AtMost(field) => Guard::AtMost(key, field, 5),
        Need::Below(field, limit) => Guard::Below(key, field, limit),
        Need::Version => Guard::Version(key, 1),
    }
}

#[test]
fn each_guarded_change_breaks_its_rule_only_without_the_guard() {
    let mut changes = 0_usize;
    for table in ALL {
        let rules = compiled_rules(table).unwrap();
        let all = table.fields.iter().zip(&rules.changes);
        for (field, field_changes, (name, change)) in
            all.flat_map(|(column, changes)| changes.iter().map(move |rule| (column.name, changes, rule)))
        {
            let key = Key { table, place: Place::Alone, id: vec![1] };
            let kind = table.column(field).unwrap().kind;
            let others: Vec<Guard> = field_changes
                .iter()
                .filter(|(other, _)| other != name)
                .map(|(_, other)| required_guard(&key, field, *other))
                .collect();
            let set =
                Op::Set(key.clone(), vec![(field, sample_value(rules, rules.position(field).unwrap(), kind).into())]);
            let with = |guards: Vec<Guard>| form::broken_changes(&Batch::new(guards, vec![set.clone()]), &set);
            let all = [&others[..], &[required_guard(&key, field, *change)]].concat();
            assert!(with(vec![]).contains(name), "{name}");
            assert!(!with(all.clone()).contains(name), "{name}");
            assert_eq!(with(all), Vec::<&str>::new(), "{name}");
            changes += 1;
        }
    }
    assert!(changes > CHANGE_RULES_MIN, "{changes}");
}

#[test]
fn a_sum_that_may_leave_its_bound_needs_a_guard() {
    let client: ClientId = "cl_1".parse().unwrap();
    let event = Key { table: &crate::records::event::EVENT, place: Place::Alone, id: vec![1] };
    let broken = |key: &Key, field: &'static str, more: i64, guards: Vec<Guard>| {
        let add = Op::Add(key.clone(), field, more.into());
        form::broken_changes(&Batch::new(guards, vec![add.clone()]), &add)
    };
    let account = crate::records::client::key_of_client(&client);
    assert_eq!(
        broken(&account, "balance", -1, vec![]),
        ["client: balance changes under a guard: balance has a least value"]
    );
    assert!(broken(&account, "balance", -1, vec![Guard::AtLeast(account.clone(), "balance", 1)]).is_empty());
    assert!(broken(&account, "balance", 1, vec![]).is_empty());
    assert_eq!(broken(&event, "scans", -1, vec![]), ["event: scans never falls"]);
    assert_eq!(broken(&event, "scans", 1, vec![]), ["event: scans changes under a guard: scans is below budget"]);
    assert!(broken(&event, "scans", 0, vec![]).is_empty());
    assert_eq!(
        broken(&event, "max_guests", 1, vec![]),
        ["event: max_guests changes under a guard: registrations has a greatest value"]
    );
    assert_eq!(
        broken(&event, "created_at", 1, vec![Guard::Version(event.clone(), 1)]),
        ["event: created_at stays as it was written"]
    );
}

#[test]
fn a_new_record_is_written_only_where_none_exists() {
    for table in ALL {
        let rules = compiled_rules(table).unwrap();
        let Some(name) = rules.new else { continue };
        let key = Key { table, place: Place::Alone, id: vec![1] };
        let put = Op::Put(
            key.clone(),
            sample_record(table, rules, &[]).fields.into_iter().map(|(field, value)| (field, value.into())).collect(),
        );
        let with = |guards| form::broken_changes(&Batch::new(guards, vec![put.clone()]), &put).contains(&name);
        assert!(with(vec![]) && with(vec![Guard::Present(key.clone())]) && !with(vec![Guard::Absent(key)]), "{name}");
    }
}

#[test]
fn a_record_with_another_key_breaks_its_key_rule() {
    let client = ClientId::generate();
    let of_client = Place::Partition(client.partition());
    let (first, second) = (Partition::all().next().unwrap(), Partition::all().nth(1).unwrap());
    let mut id = [0; 32];
    id[..16].copy_from_slice(TxnId::generate(second, 1).as_bytes());
    for table in ALL {
        let (name, key_rule) =
            compiled_rules(table).unwrap().key_rule.unwrap_or_else(|| panic!("{table:?} has no rule for keys"));
        let name_of_client = || client.as_str().as_bytes().to_vec();
        let (place, id, wrong): (Place, Vec<u8>, Vec<u8>) = match key_rule {
            KeyRule::Alone { id_bytes: length } => (Place::Alone, vec![0; length], vec![0; length + 1]),
            KeyRule::AloneNamed => (Place::Alone, b"app_1".to_vec(), b"no id".to_vec()),
            KeyRule::Installation => (Place::Partition(first), b"any".to_vec(), vec![]),
            KeyRule::OfId { id_bytes: length } => (Place::Partition(second), id[..length].to_vec(), vec![0; length]),
            KeyRule::OfClient => (of_client, name_of_client(), b"cl 1".to_vec()),
            KeyRule::OfClientFirst => (of_client, [&name_of_client()[..], b":52"].concat(), b"".to_vec()),
            KeyRule::OfAppFirst => (Place::Partition(Partition::of_name("app_1")), b"app_1 7".to_vec(), b"".to_vec()),
            KeyRule::Partition { id_bytes: length } => (Place::Partition(second), vec![0; length], vec![0; length + 1]),
            KeyRule::OfNode => (Place::Partition(second), vec![b'0'; 32], b"node".to_vec()),
            KeyRule::OfPartitionApp => (Place::Partition(second), b"app_1".to_vec(), b"no id".to_vec()),
        };
        let is_allowed = |place: Place, id: &[u8]| key_rule.contains(&Key { table, place, id: id.to_vec() });
        let elsewhere = match place {
            Place::Alone => Place::Partition(second),
            Place::Partition(_) => Place::Alone,
        };
        assert!(is_allowed(place, &id) && !is_allowed(elsewhere, &id), "{name}");
        assert!(key_rule == KeyRule::Installation || !is_allowed(place, &wrong), "{name}");
        let put = Op::Put(Key { table, place: elsewhere, id }, vec![]);
        let is_reported = match table.form {
            crate::engine::Form::Record => {
                form::broken_changes(&Batch::new(vec![], vec![put.clone()]), &put).contains(&name)
            }
            _ => true,
        };
        assert!(is_reported, "{name}");
    }
}

#[test]
fn a_result_or_a_time_counts_as_present_with_an_unknown_value() {
    let rules = compiled_rules(&crate::records::client::REFERENCE).unwrap();
    let mut view = View::unknown();
    view.note(rules.position("number").unwrap(), &Operand::Result(0));
    view.note_rest_absent();
    let broken = view.all_broken(rules);
    assert!(
        !broken.iter().any(|name| name.contains("number")) && broken.contains(&"credit_reference: amount is present"),
        "{broken:?}"
    );
}
