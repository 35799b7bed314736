//! The audit log is append-only in the file.

use rusqlite::Connection;

use super::test_store;

#[tokio::test]
async fn entries_are_sealed_and_cannot_be_changed_or_removed() {
    let test = test_store();
    test.store.append_audit("planted-entry".into()).await.unwrap();
    test.store.close();
    let path = test.directory.path().join("store/sakshi.db");
    assert!(!std::fs::read(&path).unwrap().windows(13).any(|window| window == b"planted-entry"));
    let file = Connection::open(path).unwrap();
    for sql in [
        "UPDATE audit_list SET hash = previous",
        "UPDATE audit_list SET previous = hash, entry = entry",
        "UPDATE audit_list SET _entry = 2",
        "UPDATE audit_list SET _id = x'01'",
        "DELETE FROM audit_list",
    ] {
        let refused = file.execute(sql, []).unwrap_err();
        assert!(refused.to_string().contains("append-only"), "{sql}: {refused}");
    }
    assert_eq!(file.query_row("SELECT count(*) FROM audit_list", [], |row| row.get::<_, i64>(0)), Ok(1));
}
