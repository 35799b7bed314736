//! How SQLite executes the frequent statements: by an index each time, never by reading a table.

use rusqlite::Connection;

use super::test_store;
use crate::conformance::fixture::client_with;
use crate::embedded::{audit_log, events, flows, guests, operators, outbox, refusals, reseal, sessions, upkeep};

/// The steps of the plan of a statement.
fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let unbound = vec![rusqlite::types::Null; statement.parameter_count()];
    let rows = statement.query_map(rusqlite::params_from_iter(unbound), |row| row.get(3)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn no_statement_about_events_reads_a_whole_table() {
    let test = test_store();
    client_with(&test, 1).await;
    test.store.close();
    let connection = Connection::open(test.directory.path().join("store/sakshi.db")).unwrap();
    let statements = [
        events::LOAD,
        events::LIST,
        events::BLOCKS,
        events::CREATE,
        guests::PAGE,
        guests::SETTLE,
        guests::SCAN,
        upkeep::CLOSE,
        upkeep::CLOSE_EARLY,
        upkeep::REGISTRATIONS,
        upkeep::EVENTS,
    ];
    for sql in statements {
        let steps = plan(&connection, sql);
        assert!(!steps.is_empty());
        for step in steps {
            let table = step.strip_prefix("SCAN ").map(|rest| rest.split(' ').next().unwrap_or_default());
            // `p` is the page that LIST has selected; the others scan only the index of events that are being removed.
            let bounded = table.is_none_or(|table| table == "p" || step.contains("USING COVERING INDEX events_closing"));
            assert!(bounded, "{step} in {sql}");
            assert!(!step.contains("TEMP B-TREE") || sql == events::LIST, "{step} in {sql}");
        }
    }
    let counted = plan(&connection, events::LOAD);
    let by_index = "SEARCH t USING COVERING INDEX transactions_of_event (event=? AND completed=? AND expires_at>? AND expires_at<?)";
    assert!(counted.iter().any(|step| step == by_index), "{counted:?}");
}

#[tokio::test]
async fn no_statement_about_sessions_refusals_operators_or_the_audit_log_reads_a_whole_table() {
    let test = test_store();
    test.store.close();
    let connection = Connection::open(test.directory.path().join("store/sakshi.db")).unwrap();
    for sql in [
        sessions::LOAD,
        sessions::PROLONG,
        upkeep::SESSIONS,
        refusals::CUT,
        refusals::LOAD,
        upkeep::REFUSALS,
        audit_log::READ,
        operators::BY_TOKEN,
    ] {
        let steps = plan(&connection, sql);
        assert!(!steps.is_empty());
        assert!(steps.iter().all(|step| !step.starts_with("SCAN ") && !step.contains("TEMP B-TREE")), "{steps:?} in {sql}");
    }
}

#[tokio::test]
async fn no_statement_about_flows_reads_a_whole_table_and_what_waits_is_found_without_payloads() {
    let test = test_store();
    client_with(&test, 1).await;
    test.store.close();
    let connection = Connection::open(test.directory.path().join("store/sakshi.db")).unwrap();
    let reads = [flows::FIND, flows::PAYLOAD, flows::LAPSED, flows::OWNER, outbox::OF_FLOW];
    let sweeps = [upkeep::FETCHES, upkeep::FLOWS, upkeep::REPORTS, upkeep::NAMES];
    for sql in reads.into_iter().chain(sweeps).chain([outbox::DUE, outbox::DUE_OF_ORIGIN]) {
        let steps = plan(&connection, sql);
        assert!(!steps.is_empty());
        for step in steps {
            let by_index = !step.starts_with("SCAN ") || step.contains("USING INDEX deliveries_queued");
            assert!(by_index && !step.contains("TEMP B-TREE"), "{step} in {sql}");
        }
    }
    for sql in [outbox::DUE, outbox::DUE_OF_ORIGIN, outbox::OF_FLOW] {
        // SQLite reads the length of a blob from the header of its row, not from the blob.
        assert!(!sql.replace("length(p.payload)", "").contains("payload"), "{sql}");
    }
}

#[test]
fn what_is_sealed_anew_is_found_by_the_key_of_its_table() {
    let test = test_store();
    test.store.close();
    let connection = Connection::open(test.directory.path().join("store/sakshi.db")).unwrap();
    for sql in reseal::COLUMNS.iter().flat_map(|column| [column.select(), column.replace()]) {
        let steps = plan(&connection, &sql);
        assert!(!steps.is_empty());
        assert!(steps.iter().all(|step| !step.starts_with("SCAN ") && !step.contains("TEMP B-TREE")), "{steps:?} in {sql}");
    }
}
