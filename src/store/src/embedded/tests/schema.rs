//! Files whose schema has another number, of an earlier program or of a newer one: refused in a sentence, and left as they are.

use std::fs;

use rusqlite::Connection;

use super::check::may_open;
use super::{open, test_store};
use crate::conformance::fixture::{client_with, completed};
use crate::embedded::database::schema::SCHEMA;
use crate::installation::test_ownership;
use crate::{OpenError, StoreError};

#[tokio::test]
async fn a_file_with_another_schema_is_refused_in_a_sentence_and_stays_byte_for_byte() {
    const EARLIER: &str = "a program from before the first release";
    let test = test_store();
    let client = client_with(&test, 5).await;
    completed(&test, &client).await;
    test.store.close();
    let directory = test.directory.path().join("store");
    let path = directory.join("sakshi.db");
    let number = |number: i64| Connection::open(&path).unwrap().pragma_update(None, "user_version", number).unwrap();
    for (found, by) in [(0, EARLIER), (2, EARLIER), (SCHEMA - 1, EARLIER), (SCHEMA + 1, "a newer program")] {
        number(found);
        let before = fs::read(&path).unwrap();
        let sentence = format!("{by} wrote it: schema {found}, this one knows {SCHEMA}");
        let refusal = open(test.directory.path()).unwrap_err();
        assert_eq!(refusal, StoreError::unavailable(sentence));
        assert_eq!(may_open(&directory, &test_ownership()), Err(OpenError::Refused(refusal)));
        assert!(fs::read(&path).unwrap() == before, "schema {found}");
    }
    number(SCHEMA);
    assert_eq!(open(test.directory.path()).unwrap().balance(client).await, Ok(Some(4)));
}
