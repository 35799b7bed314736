//! Compile options of the bundled SQLite, from the flags in `.cargo/config.toml`.

use rusqlite::Connection;

#[test]
fn sqlite_has_no_memory_statistics_and_no_unused_features() {
    let connection = Connection::open_in_memory().unwrap();
    let mut options = connection.prepare("PRAGMA compile_options").unwrap();
    let options: Vec<String> = options.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(options.iter().any(|option| option == "DEFAULT_MEMSTATUS=0"), "{options:?}");
    for unused in ["ENABLE_FTS3", "ENABLE_FTS5", "ENABLE_RTREE", "SOUNDEX"] {
        assert!(!options.iter().any(|option| option == unused), "{options:?}");
    }
}
