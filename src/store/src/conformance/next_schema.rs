//! A simulated next release: new fields, a new kind of record, and rewrites of records with and without a partition.

use std::sync::OnceLock;

use sakshi_domain::ids::ClientId;

use crate::engine::{Column, ColumnKind, Engine, Form, Key, Life, Op, Query, Record, ScanFrom, Table, Value};
use crate::error::StoreError;
use crate::records::{client, tenancy};
use crate::schema::{Change, Rewrite, SCHEMA, Schema, Step};
use crate::vault::Vault;

/// The kinds of records that the next release changes or adds.
pub(crate) struct NextTables {
    pub(crate) client: &'static Table,
    pub(crate) motto: &'static Table,
    pub(crate) app: &'static Table,
}

/// Returns a kind of record with an additional field.
fn with_field(table: &'static Table, name: &'static str) -> &'static Table {
    let since = SCHEMA.number() + 1;
    let fields =
        table.fields.iter().copied().chain([Column { name, kind: ColumnKind::Text, since }]).collect::<Vec<_>>().leak();
    Box::leak(Box::new(Table { fields, ..*table }))
}

/// Returns the kinds of records of the next release that differ from this release's.
pub(crate) fn next_tables() -> &'static NextTables {
    static TABLES: OnceLock<NextTables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let since = SCHEMA.number() + 1;
        let fields = vec![Column { name: "words", kind: ColumnKind::Text, since }].leak();
        let motto = Box::leak(Box::new(Table {
            name: "motto",
            form: Form::Record,
            life: Life::Stays,
            since,
            numbered: false,
            large: &[],
            fields,
            rules: &[],
        }));
        NextTables { client: with_field(&client::CLIENT, "tier"), motto, app: with_field(&tenancy::APP, "mark") }
    })
}

/// Returns the key with the same place and id in another kind.
pub(crate) fn with_table(key: &Key, table: &'static Table) -> Key {
    Key { table, ..key.clone() }
}

/// Gives a client a tier and a motto, and capitalises its name.
fn change_client(_: &Vault, key: &Key, record: &Record) -> Result<Vec<Op>, StoreError> {
    if record.has("tier") {
        return Ok(vec![]);
    }
    let name = record.text("name").to_uppercase();
    let set = Op::Set(key.clone(), vec![("tier", "first".into()), ("name", name.into())]);
    Ok(vec![set, Op::Put(with_table(key, next_tables().motto), vec![("words", "ever onward".into())])])
}

/// Gives an app a mark.
fn change_app(_: &Vault, key: &Key, record: &Record) -> Result<Vec<Op>, StoreError> {
    Ok(if record.has("mark") { vec![] } else { vec![Op::Set(key.clone(), vec![("mark", "seen".into())])] })
}

/// Fails a migration step.
fn fail(_: &Vault, _: &Key, _: &Record) -> Result<Vec<Op>, StoreError> {
    Err(StoreError::unreadable("a client"))
}

/// Returns the schema of a next release that makes these changes, to clients and then to apps.
fn schema_with(changes: &[Change]) -> &'static Schema {
    let NextTables { client, motto, app } = next_tables();
    let next_table = |table: &&'static Table| {
        [client, app].into_iter().find(|other| other.name == table.name).map_or(*table, |table| *table)
    };
    let tables = SCHEMA.tables.iter().map(next_table).chain([*motto]).collect::<Vec<_>>().leak();
    let rewrites = changes
        .iter()
        .zip([client, app])
        .map(|(change, table)| Rewrite { table, change: *change })
        .collect::<Vec<_>>()
        .leak();
    let step =
        Step { release: "of the tests", sentence: "Clients have a tier and a motto, and apps a mark.", rewrites };
    let steps = SCHEMA.steps.iter().copied().chain([step]).collect::<Vec<_>>().leak();
    Box::leak(Box::new(Schema { tables, steps }))
}

/// Returns the schema of the next release.
pub(crate) fn next() -> &'static Schema {
    static NEXT: OnceLock<&Schema> = OnceLock::new();
    NEXT.get_or_init(|| schema_with(&[change_client, change_app]))
}

/// Returns the schema of the release after that.
pub(crate) fn after_next() -> &'static Schema {
    let step = Step { release: "after the next", sentence: "Nothing changes.", rewrites: &[] };
    let steps = next().steps.iter().copied().chain([step]).collect::<Vec<_>>().leak();
    Box::leak(Box::new(Schema { tables: next().tables, steps }))
}

/// Returns a schema of the next release whose migration step fails at the first client.
pub(crate) fn failing() -> &'static Schema {
    static FAILING: OnceLock<&Schema> = OnceLock::new();
    FAILING.get_or_init(|| schema_with(&[fail]))
}

/// Returns all records of a kind.
pub(crate) async fn records(engine: &dyn Engine, table: &'static Table) -> Vec<(Key, Record)> {
    let (mut next, mut records) = (Some(ScanFrom::default()), Vec::new());
    while let Some(from) = next {
        let scanned = engine.scan(table, from, 100).await.unwrap();
        next = scanned.next;
        for key in scanned.keys {
            let record = engine.read(vec![Query::Record(key.clone())]).await.unwrap().record().unwrap();
            records.extend(record.map(|record| (key, record)));
        }
    }
    records
}

/// Asserts that the migration changed every record exactly once.
pub(crate) async fn assert_migrated(engine: &dyn Engine, known_client: &ClientId) {
    let clients = records(engine, next_tables().client).await;
    assert!(clients.iter().any(|(key, _)| key.id == known_client.as_str().as_bytes()));
    for (key, record) in clients {
        assert_eq!(
            (record.text("tier"), record.text("name")),
            ("first", &*record.text("name").to_uppercase()),
            "{key:?}"
        );
        let motto = engine
            .read(vec![Query::Record(with_table(&key, next_tables().motto))])
            .await
            .unwrap()
            .record()
            .unwrap()
            .unwrap();
        assert_eq!((motto.version, motto.fields.get("words")), (1, Some(&Value::from("ever onward"))), "{key:?}");
    }
    for (key, record) in records(engine, next_tables().app).await {
        assert_eq!(record.text("mark"), "seen", "{key:?}");
    }
}
