//! Query plans of SQLite: every statement uses an index and none scans a table.

use rusqlite::Connection;

use super::test_store;
use crate::engine::embedded::statements::{Condition, EndChange, Statement, can_end, sql_for};
use crate::engine::{Column, ColumnKind, Form, Table};
use crate::records::ALL;

/// Returns the statements that operations may execute for a kind.
fn statements(table: &'static Table) -> Vec<Statement> {
    let names = || table.fields.iter().map(|column| column.name);
    let mut statements = match table.form {
        Form::Record => {
            let integers = || {
                table.fields.iter().filter(|Column { kind, .. }| *kind == ColumnKind::Integer).map(|column| column.name)
            };
            let mut statements =
                vec![Statement::Read, Statement::Exists, Statement::Put, Statement::Fields(names().collect())];
            statements.extend([vec![]].into_iter().chain(names().map(|name| vec![name])).map(Statement::Fields));
            let ends = if can_end(table) {
                vec![EndChange::Unchanged, EndChange::Parameter, EndChange::Cleared]
            } else {
                vec![EndChange::Unchanged]
            };
            statements.extend(
                names()
                    .filter(|name| !table.large.contains(name))
                    .flat_map(|name| ends.iter().map(move |end| Statement::Set(vec![name], *end, vec![])))
                    .collect::<Vec<_>>(),
            );
            statements.extend(table.large.iter().map(|name| Statement::SetLarge(vec![name])));
            statements.extend(integers().flat_map(|name| [Statement::Add(name, vec![]), Statement::DrawNumber(name)]));
            for name in integers() {
                let conditions = vec![
                    Condition::Below(name, name),
                    Condition::Before(name),
                    Condition::AtLeast(name),
                    Condition::AtMost(name),
                    Condition::Is(name),
                    Condition::Version,
                ];
                statements.extend([
                    Statement::Set(vec![name], EndChange::Unchanged, conditions.clone()),
                    Statement::Add(name, conditions),
                ]);
            }
            if can_end(table) {
                let expiry = [
                    Statement::End,
                    Statement::Purge,
                    Statement::ExpireAt,
                    Statement::ExpireLater,
                    Statement::ClearExpiry,
                ];
                statements.extend(expiry.into_iter().chain([Statement::Ended]));
            }
            statements
        }
        Form::List => {
            vec![Statement::Append, Statement::Rewrite, Statement::Entries, Statement::Length, Statement::Shorten]
        }
        Form::Index => vec![
            Statement::Index,
            Statement::Unindex,
            Statement::Sweep,
            Statement::Members,
            Statement::Last,
            Statement::Count,
            Statement::Fewer,
            Statement::Scored,
            Statement::Shorten,
        ],
    };
    statements.extend([Statement::Remove, Statement::Scan]);
    statements
}

/// Returns the steps of a statement's query plan.
fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let unbound = vec![rusqlite::types::Null; statement.parameter_count()];
    let rows = statement.query_map(rusqlite::params_from_iter(unbound), |row| row.get(3)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Returns true if a step of a statement may scan. A scan of keys reads an index as a whole, because an index has no
/// row numbers to continue from. A count up to a limit scans the results of a search.
fn may_scan(table: &Table, statement: &Statement, step: &str) -> bool {
    let is_by_key = table.numbered || step.contains(" USING ");
    let scans_keys = table.form == Form::Index && *statement == Statement::Scan && is_by_key;
    scans_keys || (*statement == Statement::Fewer && step == "SCAN (subquery-1)")
}

#[test]
fn no_statement_scans_a_table_or_sorts_its_results() {
    let test = test_store();
    test.store.close();
    let connection = Connection::open(test.directory.path().join("store/sakshi.db")).unwrap();
    let mut wrong = Vec::new();
    for table in ALL {
        for statement in statements(table) {
            let scans = |step: &String| step.starts_with("SCAN ") && !may_scan(table, &statement, step);
            let steps = plan(&connection, &sql_for(table, statement.clone()));
            if steps.iter().any(|step| scans(step) || step.contains("TEMP B-TREE")) {
                wrong.push(format!("{table:?} {statement:?}: {steps:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
