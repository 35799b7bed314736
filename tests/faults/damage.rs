//! A damaged store: the process refuses it with a clear error, and never treats it as empty.

use std::fs;
use std::path::Path;

use sakshi_kit::node::TestNode;
use sakshi_kit::process::Process;

/// Damages the store in a directory.
type Damage = fn(&Path);

/// Damages with their names. Each is applied to a copy of a store that was closed properly.
const DAMAGES: [(&str, Damage); 4] = [
    ("the database is missing", |store| fs::remove_file(store.join("sakshi.db")).expect("a file")),
    ("the database is empty", |store| fs::write(store.join("sakshi.db"), b"").expect("a file")),
    ("the file is not a database", |store| fs::write(store.join("sakshi.db"), vec![b'x'; 20_000]).expect("a file")),
    ("the database is truncated", |store| {
        let file = fs::OpenOptions::new().write(true).open(store.join("sakshi.db")).expect("a file");
        file.set_len(file.metadata().expect("metadata").len() / 2).expect("a shorter file");
    }),
];

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

#[tokio::test]
async fn a_damaged_store_is_refused_with_an_error_that_names_it() {
    let mut node = TestNode::start().await;
    let backend = node.backend_with_credits(5).await;
    for _ in 0..5 {
        backend.open(&["name"]).await;
    }
    node.stop();
    for (number, (damage_name, damage)) in DAMAGES.into_iter().enumerate() {
        let store = node.directory.path().join(format!("damaged-{number}"));
        copy_directory(&node.store(), &store);
        damage(&store);
        let mut environment = node.environment().clone();
        environment.insert("SAKSHI__STORE__PATH".to_owned(), store.display().to_string());
        let output = Process::run(&["serve"], &environment, node.directory.path());
        assert_eq!(output.status.code(), Some(1), "{damage_name}: {}", output.err);
        assert!(output.out.is_empty(), "{damage_name}: it served {}", output.out);
        let error = output
            .err
            .lines()
            .find(|line| line.starts_with("error: "))
            .unwrap_or_else(|| panic!("{damage_name}: {}", output.err));
        assert!(
            error.contains("damaged-") || error.contains("sakshi.db") || error.contains("corrupt"),
            "{damage_name}: {error}"
        );
    }
}

#[tokio::test]
async fn an_error_names_a_store_directory_that_cannot_be_written() {
    let node = TestNode::start().await;
    let file = node.directory.path().join("a-file");
    fs::write(&file, b"").expect("a file");
    let mut environment = node.environment().clone();
    let store_path = file.join("store").display().to_string();
    environment.insert("SAKSHI__STORE__PATH".to_owned(), store_path.clone());
    let output = Process::run(&["serve"], &environment, node.directory.path());
    assert_eq!(output.status.code(), Some(1), "{}", output.err);
    assert!(output.err.contains(&store_path) || output.err.contains("a-file"), "{}", output.err);
}
