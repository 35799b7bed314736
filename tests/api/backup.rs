//! `sakshi backup` of a serving node, and `sakshi restore`. Only the embedded store has these commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sakshi_kit::backend::Backend;
use sakshi_kit::node::TestNode;
use sakshi_kit::operator::ADMIN_TOKEN;
use sakshi_kit::process::Process;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use tokio::task::JoinHandle;

/// Returns the files of a directory, sorted.
fn files_of(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the backups of a directory, the oldest first, without their checksums.
fn backups_in(directory: &Path) -> Vec<PathBuf> {
    files_of(directory).into_iter().filter(|path| path.extension().is_some_and(|end| end == "db")).collect()
}

/// Opens transactions from four tasks while `is_loading` is true. Each task returns the number that it opened.
fn start_load(backend: &Backend, is_loading: &Arc<AtomicBool>) -> Vec<JoinHandle<usize>> {
    let open_all = |_| {
        let (backend, is_loading) = (backend.clone(), Arc::clone(is_loading));
        tokio::spawn(async move {
            let mut opened = 0;
            while is_loading.load(Ordering::Relaxed) {
                backend.open(&["name"]).await;
                opened += 1;
            }
            opened
        })
    };
    (0..4).map(open_all).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_holds_every_earlier_answer_and_consistent_ledgers() {
    let mut node = TestNode::start().await;
    if node.redis.is_some() {
        // Only the embedded store has this command.
        return;
    }
    let (backend, identity_app) = (node.backend_with_credits(100_000).await, node.identity_app());
    let before = backend.open(&["name"]).await;
    identity_app.approve(&before, "asha").await;
    let result = backend.result(&before.txn).await.text;
    let is_loading = Arc::new(AtomicBool::new(true));
    let load = start_load(&backend, &is_loading);
    let target = node.directory.path().join("backups");
    std::fs::create_dir(&target).unwrap();
    // A command blocks its thread, and the load must go on.
    let back_up = |keep: &str| {
        let arguments = ["backup", target.to_str().unwrap(), "--keep", keep];
        tokio::task::block_in_place(|| node.run(&arguments))
    };
    for _ in 0..4 {
        let output = back_up("3");
        assert!(
            output.status.success() && output.out.contains("ledger entries that add up"),
            "{}{}",
            output.out,
            output.err
        );
    }
    let last_txn = backend.open(&["name"]).await.txn;
    let output = back_up("3");
    assert!(output.status.success(), "{}", output.err);
    is_loading.store(false, Ordering::Relaxed);
    let mut opened = 0;
    for task in load {
        opened += task.await.unwrap();
    }
    assert!(opened > 0);
    let page = node.operator().probe("/metrics").await.text;
    assert!(
        page.contains("\nsakshi_store_backup_timestamp_seconds 1"),
        "the metrics show the time of the backup: {page}"
    );
    let backups = backups_in(&target);
    assert_eq!((backups.len(), files_of(&target).len()), (3, 6), "each with its checksum: {backups:?}");
    let future_backup = target.join("sakshi-20990101T000000.000Z.db");
    std::fs::write(&future_backup, "").unwrap();
    let output = back_up("1");
    // Three backups, the new one and the future one; only the last has no checksum.
    assert!(
        output.out.contains("No older backup was removed") && files_of(&target).len() == 9,
        "{}{}",
        output.out,
        output.err
    );
    std::fs::remove_file(future_backup).unwrap();

    node.kill().await;
    let restored = node.run(&["restore", backups[2].to_str().unwrap()]);
    assert_eq!(restored.status.code(), Some(2), "a store already exists: {}", restored.out);
    let restored = node.run(&["restore", backups[2].to_str().unwrap(), "--replace"]);
    assert!(
        restored.status.success() && restored.out.contains("The store that was there is"),
        "{}{}",
        restored.out,
        restored.err
    );
    node.launch().await;
    assert_eq!(backend.through(&node.addresses).result(&before.txn).await.text, result);
    assert!(backend.through(&node.addresses).is_pending(&last_txn).await, "the backup contains every earlier answer");
    let spent = 100_000 - node.operator().balance(&backend.client).await;
    assert!(spent >= 2 && spent <= opened as u64 + 2, "{spent} of {opened}");
}

#[tokio::test]
async fn webhooks_pending_in_a_backup_are_not_sent_after_a_restore() {
    let mut node =
        TestNode::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT", "1"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    if node.redis.is_some() {
        // Only the embedded store has this command.
        return;
    }
    let (backend, identity_app) = (node.backend_with_credits(10).await, node.identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Hang).await.unwrap();
    let (first, waiting) = (
        backend.open_reported(&["name"], &receiver.url("/first")).await,
        backend.open_reported(&["name"], &receiver.url("/waiting")).await,
    );
    identity_app.approve(&first, "asha").await;
    eventually("the first webhook", TIMEOUT, || async { (receiver.received().len() == 1).then_some(()) }).await;
    identity_app.approve(&waiting, "asha").await;
    let target = node.directory.path().display().to_string();
    let output = node.run(&["backup", &target]);
    assert!(output.status.success(), "{}", output.err);
    let file = output.out.split(": ").next().unwrap().to_owned();
    let while_serving = node.run(&["restore", &file, "--replace"]);
    assert!(while_serving.status.code() == Some(2) && while_serving.err.contains("in use"), "{}", while_serving.err);

    node.kill().await;
    let output = node.run(&["restore", &file, "--replace"]);
    assert!(output.out.contains("1 webhooks that waited are not sent again"), "{}{}", output.out, output.err);
    node.launch().await;
    let operator = node.operator();
    assert_eq!(
        (operator.outcome(&first.txn).await, operator.outcome(&waiting.txn).await),
        ("unknown".to_owned(), "unknown".to_owned())
    );
    assert_eq!(receiver.received().len(), 1);
    assert_eq!(backend.through(&node.addresses).result(&waiting.txn).await.ok()["data"]["verification_passed"], true);
}

#[tokio::test]
async fn a_damaged_or_foreign_backup_is_refused_and_the_store_is_unchanged() {
    let mut node = TestNode::start().await;
    if node.redis.is_some() {
        // Only the embedded store has this command.
        return;
    }
    let backend = node.backend_with_credits(5).await;
    let txn = backend.open(&["name"]).await.txn;
    let target = node.directory.path().display().to_string();
    let output = node.run(&["backup", &target]);
    let file = output.out.split(": ").next().unwrap().to_owned();
    let nested = node.run(&["backup", &format!("{target}/new/deeper")]);
    assert!(nested.status.code() == Some(0) && nested.out.contains("/new/deeper/sakshi-"), "{}", nested.err);
    let below_file = node.run(&["backup", &format!("{file}/below")]);
    assert!(
        below_file.status.code() == Some(2) && below_file.err.contains("cannot make the directory"),
        "{}",
        below_file.err
    );
    let from_directory = node.run(&["restore", &target, "--replace"]);
    assert!(
        from_directory.status.code() == Some(2)
            && from_directory.err.contains("is a directory; give the file of one backup"),
        "{}",
        from_directory.err
    );
    node.kill().await;

    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 2_048].fill(7);
    let damaged = node.directory.path().join("damaged.db");
    std::fs::write(&damaged, &bytes).unwrap();
    std::fs::copy(format!("{file}.sha256"), node.directory.path().join("damaged.db.sha256")).unwrap();
    let refused = node.run(&["restore", damaged.to_str().unwrap(), "--replace"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.out);
    let mut other_key_environment = node.environment().clone();
    other_key_environment
        .insert("SAKSHI__STORE__ENCRYPTION_KEY".to_owned(), "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=".to_owned());
    let refused = Process::run(&["restore", &file, "--replace"], &other_key_environment, node.directory.path());
    assert!(refused.status.code() == Some(2) && refused.err.contains("store.encryption_key"), "{}", refused.err);
    node.launch().await;
    assert!(backend.through(&node.addresses).is_pending(&txn).await);
}

/// A fixed encryption key of the store, so that commands get the same key as the node.
const ENCRYPTION_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

#[tokio::test]
async fn commands_require_only_the_settings_they_use() {
    let mut node = TestNode::start_with(&[("STORE__ENCRYPTION_KEY", ENCRYPTION_KEY)]).await;
    if node.redis.is_some() {
        // Only the embedded store has this command.
        return;
    }
    let (backend, target) = (node.backend_with_credits(5).await, node.directory.path().display().to_string());
    let mut settings = BTreeMap::from([
        ("SAKSHI__PROFILE".to_owned(), "production".to_owned()),
        ("SAKSHI__STORE__PATH".to_owned(), node.store().display().to_string()),
        ("SAKSHI__STORE__ENCRYPTION_KEY".to_owned(), ENCRYPTION_KEY.to_owned()),
    ]);
    let run = |arguments: &[&str], settings: &BTreeMap<String, String>| {
        let output = Process::run(arguments, settings, node.directory.path());
        assert!(output.status.success() && output.err.is_empty(), "{arguments:?}: {}{}", output.out, output.err);
        output.out
    };
    let file = run(&["backup", &target], &settings).split(": ").next().unwrap().to_owned();
    let internal = node.addresses.internal("");
    let internal = internal.trim_start_matches("http://").trim_end_matches('/');
    settings.insert("SAKSHI__SERVER__INTERNAL_ADDR".to_owned(), internal.to_owned());
    settings.insert("SAKSHI__ADMIN__TOKEN".to_owned(), ADMIN_TOKEN.to_owned());
    assert_eq!(run(&["healthcheck"], &settings), "ready");
    assert!(run(&["admin", "clients", "list"], &settings).contains(&backend.client));
    assert!(run(&["admin", "--json", "tree"], &settings).contains("root"));

    node.kill().await;
    let run = |arguments: &[&str]| Process::run(arguments, &settings, node.directory.path());
    let output = run(&["restore", &file, "--replace"]);
    assert!(output.status.success() && output.err.is_empty(), "{}{}", output.out, output.err);
    let serve_output = run(&["serve"]);
    assert!(
        serve_output.status.code() == Some(2) && serve_output.err.contains("authority.jwks_path"),
        "serving needs more settings: {}",
        serve_output.err
    );
    node.launch().await;
    assert_eq!(node.operator().balance(&backend.client).await, 5);
}

#[tokio::test]
async fn a_backup_onto_a_full_disk_leaves_no_files() {
    let mut node = TestNode::start().await;
    if node.redis.is_some() {
        // Only the embedded store has this command.
        return;
    }
    node.stop();
    // More than the page cache of SQLite, so that the backup writes to the disk.
    let store = rusqlite::Connection::open(node.store().join("sakshi.db")).unwrap();
    store.execute_batch("CREATE TABLE filler (bytes BLOB)").unwrap();
    (0..16).for_each(|_| _ = store.execute("INSERT INTO filler VALUES (zeroblob(524288))", []).unwrap());
    drop(store);
    let target = tempfile::tempdir().unwrap();
    // A limit of 1 MiB per file simulates a full disk.
    let mut backup = Command::new("/bin/sh");
    backup
        .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_sakshi"), "backup"])
        .arg(target.path());
    let output = backup.env_clear().envs(node.environment()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files_of(target.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_backup_of_a_newer_schema_is_refused_with_the_message_of_serve() {
    let mut node = TestNode::start().await;
    if node.redis.is_some() {
        // Only the embedded store has this command.
        return;
    }
    let (backend, target) = (node.backend_with_credits(5).await, node.directory.path().display().to_string());
    let file = node.run(&["backup", &target]).out.split(": ").next().unwrap().to_owned();
    node.stop();
    let set_version = |file: &Path, version: i64| {
        rusqlite::Connection::open(file).unwrap().pragma_update(None, "user_version", version).unwrap();
    };
    let store = node.store().join("sakshi.db");
    let own_version: i64 =
        rusqlite::Connection::open(&store).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    set_version(&store, own_version + 1);
    set_version(Path::new(&file), own_version + 1);
    std::fs::remove_file(format!("{file}.sha256")).unwrap();
    let serve_output = node.run(&["serve"]);
    let sentence = serve_output.err.lines().find(|line| line.starts_with("error: ")).unwrap().to_owned();
    assert!(sentence.contains(&format!("schema {}", own_version + 1)), "{sentence}");
    for command in [&["restore", &*file, "--replace"][..], &["backup", &*target]] {
        let refused = node.run(command);
        assert!(
            refused.status.code() == Some(2) && refused.err.contains(&sentence),
            "{command:?}: {}{}",
            refused.out,
            refused.err
        );
    }
    let checked = node.run(&["check-config"]);
    let problem = sentence.replace("error: ", "problem: ");
    assert!(checked.status.code() == Some(1) && checked.out.contains(&problem), "{}", checked.out);
    set_version(&store, own_version);
    node.launch().await;
    assert_eq!(node.operator().balance(&backend.client).await, 5);
}

#[tokio::test]
async fn every_command_refuses_a_store_of_a_newer_release_and_leaves_it_unchanged() {
    let mut node = TestNode::start().await;
    if node.redis.is_some() {
        // Only the embedded store has this command.
        return;
    }
    let backup = node.directory.path().join("backups");
    assert!(node.run(&["backup", backup.to_str().unwrap()]).status.success());
    node.kill().await;
    let migrated = node.run(&["migrate"]);
    assert!(
        migrated.status.success() && migrated.out.contains("has the schema of this release"),
        "{}{}",
        migrated.out,
        migrated.err
    );
    let set_newer_version =
        |file: &Path| rusqlite::Connection::open(file).unwrap().pragma_update(None, "user_version", 1_000).unwrap();
    let (store, copy) = (node.store().join("sakshi.db"), files_of(&backup).remove(0));
    [&store, &copy].into_iter().for_each(|file| set_newer_version(file));
    std::fs::remove_file(copy.with_added_extension("sha256")).unwrap();
    let before = std::fs::read(&store).unwrap();
    let (other_directory, copy) = (node.directory.path().join("other"), copy.to_str().unwrap().to_owned());
    let directory = node.store().to_str().unwrap().to_owned();
    for (arguments, code) in [
        (vec!["serve"], 1),
        (vec!["check-config"], 1),
        (vec!["migrate"], 2),
        (vec!["backup", other_directory.to_str().unwrap()], 2),
        (vec!["restore", &copy, "--replace"], 2),
        (vec!["move", "--from", &directory, "--to", "redis://127.0.0.1:1"], 2),
    ] {
        let output = node.run(&arguments);
        let text = format!("{}{}", output.out, output.err);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains("schema 1000 of a newer release"), "{arguments:?}: {text}");
    }
    assert!(std::fs::read(&store).unwrap() == before);
}
