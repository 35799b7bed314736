//! Compile options of the bundled SQLite, from the flags in `.cargo/config.toml`.

use rusqlite::Connection;

#[test]
fn sqlite_keeps_no_count_of_its_memory_and_has_nothing_that_nobody_uses() {
    let connection = Connection::open_in_memory().unwrap();
    let mut options = connection.prepare("PRAGMA compile_options").unwrap();
    let options: Vec<String> = options.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(options.iter().any(|option| option == "DEFAULT_MEMSTATUS=0"), "{options:?}");
    for unused in ["ENABLE_FTS3", "ENABLE_FTS5", "ENABLE_RTREE", "SOUNDEX"] {
        assert!(!options.iter().any(|option| option == unused), "{options:?}");
    }
}
