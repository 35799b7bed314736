//! Moves from a file to Redis: a moved store gives the same answers, even after an interrupted move.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::cmd;
use sakshi_domain::clock::{Clock, ManualClock, SystemClock};
use sakshi_domain::delivery::{Attempt, DeliveryOutcome, Subject};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::Event;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::profile::Profile;
use sakshi_domain::time::Timestamp;
use tempfile::TempDir;
use tokio::sync::Notify;

use super::equality::assert_equal;
use super::inventory::use_every_operation;
use super::server::{RedisServer, TIMEOUT};
use super::{key_names, options, standalone};
use crate::conformance::fixture::{
    RETENTION, build_event, client_with, open_and_complete, open_guest_scan, open_pending, register_guest, store_event,
};
use crate::conformance::{TestStore, run};
use crate::embedded::tests::open_when_free;
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::engine::Form;
use crate::engine::redis::{name, parse_name, parse_name_in};
use crate::installation::test_ownership;
use crate::records::delivery::key_of_delivery;
use crate::records::{ALL as KINDS, client, idempotency, installation, node, transaction};
use crate::redis::{NodeId, RedisOptions, RedisStore};
use crate::vault::test_vault;
use crate::{Moved, Ownership, PageRequest, Store, StoreError, Swept, Upgrading, move_to_redis};

/// Ends a move: nodes may then use the target.
const FINISH: bool = true;
/// Copies the records, and leaves the target closed for nodes until another run.
const COPY_ONLY: bool = false;
/// A page with every row.
pub(super) const ALL: PageRequest = PageRequest { page: 1, page_size: 100 };

/// Returns the pending deliveries, in order.
pub(super) async fn pending_deliveries(store: &Store) -> Vec<Subject> {
    let mut pending = Vec::new();
    for due in store.first_due_deliveries(100).await.unwrap() {
        let record = store.load_delivery(due.subject).await.unwrap().unwrap();
        pending.extend(record.claimed_at.is_none().then_some(due.subject));
    }
    pending
}

/// The source and the target of a move: an embedded store and an empty server, on one clock.
struct MoveTest {
    store: EmbeddedStore,
    clock: Arc<ManualClock>,
    directory: TempDir,
    server: Arc<RedisServer>,
}

impl TestStore for MoveTest {
    fn store(&self) -> &Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

/// Opens the store of a directory.
pub(super) fn open_embedded(directory: &Path, clock: &Arc<ManualClock>) -> EmbeddedStore {
    let options = EmbeddedOptions {
        directory: directory.to_owned(),
        clock: Arc::<ManualClock>::clone(clock),
        vault: Arc::new(test_vault(&[7, 6])),
        retention: RETENTION,
        max_waiting: 64,
        ownership: test_ownership(),
        upgrading: Upgrading::default(),
    };
    open_when_free(&options).unwrap()
}

/// Moves a closed store, once no other process has its files.
async fn move_closed(
    path: &Path,
    options: impl Fn() -> RedisOptions,
    finish: bool,
    progress: impl Fn(&str, u64) + Clone + Send + Sync + 'static,
) -> Result<Moved, StoreError> {
    let started = Instant::now();
    loop {
        match move_to_redis(path, options(), finish, progress.clone()).await {
            Err(StoreError::InUse(_)) if started.elapsed() < TIMEOUT => tokio::task::yield_now().await,
            outcome => return outcome,
        }
    }
}

impl MoveTest {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Whole seconds from a time that the server has not reached, so the server expires nothing.
        let start = Timestamp::from_millis((SystemClock.now().seconds() + 3_600) * 1_000);
        let clock = Arc::new(ManualClock::starting_at(start));
        Self {
            store: open_embedded(&directory.path().join("store"), &clock),
            clock,
            directory,
            server: Arc::new(RedisServer::start(&[])),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn options(&self) -> RedisOptions {
        options(standalone(&self.server.url()), Arc::clone(&self.clock), RETENTION)
    }

    /// Closes the store, moves it, and opens it again.
    async fn run_move(&mut self, finish: bool) -> Result<Moved, StoreError> {
        // Redis drops expired data by itself.
        while self.store().sweep(self.clock.now(), 100).await.unwrap() != Swept::default() {}
        self.store.close();
        let moved = move_closed(&self.path(), || self.options(), finish, |_, _| {}).await;
        self.store = open_embedded(&self.path(), &self.clock);
        moved
    }

    /// Opens the store on the servers, as a node does after the move.
    async fn open_target(&self) -> RedisStore {
        RedisStore::open(self.options()).await.unwrap()
    }
}

/// Creates events of one app at one time. They are listed in the order of their creation.
pub(super) async fn create_events_in_one_millisecond(test: &impl TestStore, client: &ClientId) -> AppId {
    let app = AppId::generate();
    for _ in 0..6 {
        store_event(test, Event { app: app.clone(), ..build_event(test, client, 10) }).await;
    }
    assert_eq!(test.store().list_events(app.clone(), ALL).await.unwrap().total, 6);
    app
}

/// Returns the canary and the installation.
fn marks(server: &RedisServer) -> [Option<String>; 2] {
    ["canary", "installation"].map(|mark| Some(format!("{:?}", server.answer(&["GET", mark]))))
}

/// Returns the reply of a command on a key, whose name may be any bytes.
pub(super) async fn reply_to(store: &RedisStore, command: &str, key: &[u8]) -> String {
    store.shared.read("an answer", cmd(command).arg(key)).await.unwrap().parsed().unwrap()
}

/// Returns the number of records that a move has written.
fn count_written(moved: &Moved) -> u64 {
    moved.kinds.values().map(|kind| kind.written).sum()
}

/// Checks that every kind of record has been moved with its type, and that no other keys exist but the marks.
async fn assert_kinds_moved(store: &RedisStore, keys: &[Vec<u8>], moved: &Moved) {
    // Leases, the time of the last sweep, nodes and the health check belong to running nodes. So do the marks of a
    // store that may lose data.
    let not_moved = [idempotency::ORDER_LEASE.name, installation::SWEPT.name, node::WATCH.name, node::SNAPSHOT.name];
    for kind in KINDS.iter().filter(|kind| !not_moved.contains(&kind.name)) {
        let found: Vec<_> = keys.iter().filter(|key| parse_name(kind, key).is_some()).collect();
        assert_eq!(found.len() as u64, moved.kinds.get(kind.name).map_or(0, |counts| counts.keys), "{kind:?}");
        assert!(!found.is_empty(), "{kind:?} was not moved");
        let redis_type = match kind.form {
            Form::Record => "hash",
            Form::List => "list",
            Form::Index => "zset",
        };
        for key in found {
            assert_eq!(reply_to(store, "TYPE", key).await, redis_type, "{}", String::from_utf8_lossy(key));
        }
    }
    let others = keys
        .iter()
        .filter(|key| parse_name_in(KINDS, key).is_none())
        .map(|key| String::from_utf8_lossy(key).into_owned());
    assert_eq!(others.collect::<BTreeSet<_>>(), ["canary", "installation", "{canary}schema"].map(str::to_owned).into());
}

#[test]
fn a_moved_store_has_every_kind_of_key_and_gives_the_same_answers() {
    run(async {
        let mut test = MoveTest::new();
        let flows = use_every_operation(&test).await;
        let client = client_with(&test, 50).await;
        let app = create_events_in_one_millisecond(&test, &client).await;
        let unanswered = open_pending(&test, &client).await;
        let waiting = pending_deliveries(test.store()).await;
        assert!(waiting.len() > 2);
        let moved = test.run_move(FINISH).await.unwrap();
        assert!(moved.is_finished && moved.removed == 0, "{moved:?}");

        let (keys, store) = (key_names(&test.server), test.open_target().await);
        assert_kinds_moved(&store, &keys, &moved).await;

        let target: &Store = &store;
        // As at the start of a node: attempts with an unknown outcome are not repeated. The node of the file does not
        // run here.
        test.store().abandon_attempts().await.unwrap();
        store.abandon(NodeId::ALONE).await.unwrap();
        assert_equal(test.store(), target, &flows).await;
        assert_eq!(target.list_events(app.clone(), ALL).await, test.store().list_events(app, ALL).await);
        let scope = crate::conformance::fixture::build_idempotent_answer(
            &test,
            &test.store().list_clients(ALL).await.unwrap().items[0].client_id,
            1,
            1,
        )
        .scope;
        assert_eq!(target.load_idempotent_answer(scope).await, test.store().load_idempotent_answer(scope).await);
        store.take_over(NodeId::ALONE).await.unwrap();
        let due = target.first_due_deliveries(100).await.unwrap();
        assert_eq!(due.iter().map(|due| due.subject).collect::<BTreeSet<_>>(), waiting.into_iter().collect());
        for delivery in &due {
            let key = name(&key_of_delivery(&delivery.subject));
            assert_eq!(
                reply_to(&store, "PTTL", &key).await,
                "-1",
                "a pending delivery does not expire: {:?}",
                delivery.subject
            );
        }
        let mut ends = 0;
        for key in keys.iter().filter(|key| parse_name(&transaction::TRANSACTION, key).is_some()) {
            ends += u64::from(reply_to(&store, "PTTL", key).await != "-1");
        }
        assert!(ends > 0, "an ended transaction expires");
        let kept_until = reply_to(&store, "PEXPIRETIME", &name(&key_of_delivery(&unanswered.id.into()))).await;
        let retained = i64::try_from(RETENTION.expired.as_millis()).unwrap();
        assert_eq!(kept_until, (retained + unanswered.expires_at.millis()).to_string());
        let attempt = Attempt::from_status(200, 1);
        for delivery in due {
            assert_eq!(target.claim_delivery(delivery.id, delivery.subject).await, Ok(true));
            target.settle_delivery(delivery.id, delivery.subject, attempt).await.unwrap();
        }
        assert_eq!(target.backlog().await.unwrap().deliveries, 0);
    });
}

#[test]
fn a_later_run_copies_only_changed_records() {
    run(async {
        let mut test = MoveTest::new();
        let client = client_with(&test, 50).await;
        let event = store_event(&test, build_event(&test, &client, 10)).await;
        let guest = register_guest(&test, &event).await;
        let (erased, _) = open_and_complete(&test, &client).await;
        let pending = open_pending(&test, &client).await;
        let first = test.run_move(COPY_ONLY).await.unwrap();
        assert!(count_written(&first) > 10 && first.kinds.values().all(|kind| kind.keys > 0), "{first:?}");
        let unfinished = RedisStore::open(test.options()).await.unwrap_err();
        assert!(unfinished.to_string().contains("--finish"), "{unfinished}");
        assert_eq!(count_written(&test.run_move(COPY_ONLY).await.unwrap()), 0, "nothing has changed");
        let marks_before = marks(&test.server);

        test.store().erase(ErasureSubject::Transaction(erased.id)).await.unwrap();
        test.store().erase(ErasureSubject::Transaction(guest)).await.unwrap();
        open_guest_scan(&test, &event).await;
        register_guest(&test, &event).await;
        let (_, _) = open_and_complete(&test, &client).await;
        let moved = test.run_move(FINISH).await.unwrap();
        assert!(
            moved.removed >= 2 && moved.kinds["guests"].written == 1 && moved.kinds["client"].written == 1,
            "{moved:?}"
        );
        assert_eq!(marks(&test.server), marks_before);
        let target = test.open_target().await;
        assert_equal(test.store(), &target, &[]).await;
        assert!(target.load_transaction(pending.id).await.unwrap().is_some());
        assert_eq!(target.load_transaction(erased.id).await, Ok(None));
    });
}

#[test]
fn a_target_that_changes_during_a_move_is_not_finished() {
    run(async {
        let test = MoveTest::new();
        client_with(&test, 5).await;
        test.store.close();
        // Makes a change to the server during one pass of the move.
        let change_during = |pass_to_disturb: &'static str, change: fn(&RedisServer)| {
            let server = Arc::clone(&test.server);
            move |pass: &str, seen: u64| {
                assert!(seen > 0);
                if pass == pass_to_disturb {
                    change(&server);
                }
            }
        };
        let lost = change_during("copied", |server| {
            // Keys come in batches. The client may be in any batch.
            if let Some(client) = key_names(server).iter().find(|key| parse_name(&client::CLIENT, key).is_some()) {
                server.answer(&["DEL", std::str::from_utf8(client).unwrap()]);
            }
        });
        let added = change_during("compared", |server| drop(server.answer(&["SET", "stranger", "1"])));
        let refused = move_closed(&test.path(), || test.options(), FINISH, lost).await.unwrap_err().to_string();
        assert!(refused.ends_with("the target differs from the source: client: 1"), "{refused}");
        let refused = move_closed(&test.path(), || test.options(), FINISH, added).await.unwrap_err().to_string();
        assert!(refused.ends_with("the target differs from the source: keys too many: 1"), "{refused}");
        assert!(move_closed(&test.path(), || test.options(), FINISH, |_, _| {}).await.unwrap().is_finished);
    });
}

#[test]
fn an_interrupted_move_can_be_restarted() {
    run(async {
        let mut test = MoveTest::new();
        let flows = use_every_operation(&test).await;
        let client = client_with(&test, 2_000).await;
        for _ in 0..600 {
            open_pending(&test, &client).await;
        }
        test.store.close();
        let has_started = Arc::new(Notify::new());
        let notify = Arc::clone(&has_started);
        let path = test.path();
        tokio::select! {
            () = has_started.notified() => {}
            ended = move_closed(&path, || test.options(), FINISH, move |_,
                _| notify.notify_one()) => panic!("the move was not interrupted: {ended:?}"),
        }
        assert!(RedisStore::open(test.options()).await.is_err(), "the move is not finished");
        test.store = open_embedded(&test.path(), &test.clock);
        test.run_move(FINISH).await.unwrap();
        let target = test.open_target().await;
        test.store().abandon_attempts().await.unwrap();
        target.abandon(NodeId::ALONE).await.unwrap();
        assert_equal(test.store(), &target, &flows).await;
    });
}

#[test]
fn foreign_targets_and_foreign_sources_are_refused() {
    run(async {
        let mut test = MoveTest::new();
        client_with(&test, 5).await;
        let path = test.path();
        let busy = move_to_redis(&path, test.options(), FINISH, |_, _| {}).await.unwrap_err();
        assert!(matches!(busy, StoreError::InUse(_)), "{busy}");
        test.store.close();
        let wrong = || RedisOptions { vault: Arc::new(test_vault(&[9])), ..test.options() };
        assert_eq!(move_closed(&path, wrong, FINISH, |_, _| {}).await, Err(StoreError::WrongKey));
        let nothing = move_to_redis(test.directory.path(), test.options(), FINISH, |_, _| {}).await.unwrap_err();
        assert!(nothing.to_string().contains("there is no store"), "{nothing}");
        test.server.answer(&["SET", "stranger", "1"]);
        let full = move_closed(&path, || test.options(), FINISH, |_, _| {}).await.unwrap_err();
        assert!(full.to_string().contains("not empty"), "{full}");
        test.server.answer(&["FLUSHALL"]);
        test.store = open_embedded(&test.path(), &test.clock);
        test.run_move(COPY_ONLY).await.unwrap();
        let other = MoveTest::new();
        client_with(&other, 5).await;
        other.store.close();
        let second = move_closed(&other.path(), || test.options(), FINISH, |_, _| {}).await.unwrap_err();
        assert!(second.to_string().contains("another store"), "{second}");
        test.run_move(FINISH).await.unwrap();
        let finished = test.run_move(FINISH).await.unwrap_err();
        assert!(finished.to_string().contains("not empty"), "nodes may use the target by now: {finished}");
    });
}

#[test]
fn a_moved_store_opens_only_with_its_keys_and_installation() {
    run(async {
        let mut test = MoveTest::new();
        client_with(&test, 5).await;
        test.run_move(FINISH).await.unwrap();
        let wrong = RedisOptions { vault: Arc::new(test_vault(&[9])), ..test.options() };
        assert_eq!(RedisStore::open(wrong).await.unwrap_err(), StoreError::WrongKey);
        let other = RedisOptions { ownership: Ownership::new(Profile::Stage, "https://issuer.test"), ..test.options() };
        assert!(matches!(RedisStore::open(other).await, Err(StoreError::OtherInstallation { .. })));
        test.open_target().await;
    });
}

#[test]
fn a_node_sends_pending_webhooks_once_and_no_claimed_ones() {
    run(async {
        let mut test = MoveTest::new();
        let client = client_with(&test, 50).await;
        let (claimed, id) = open_and_complete(&test, &client).await;
        assert!(test.store().claim_delivery(id, claimed.id.into()).await.unwrap());
        let mut waiting = BTreeSet::new();
        for _ in 0..3 {
            waiting.insert(Subject::from(open_and_complete(&test, &client).await.0.id));
        }
        test.run_move(FINISH).await.unwrap();
        let beat = Duration::from_millis(20);
        let [first, second] = [
            RedisStore::open_with_heartbeats(test.options(), beat).await,
            RedisStore::open_with_heartbeats(test.options(), beat).await,
        ];
        let nodes = [first.unwrap(), second.unwrap()];
        let (mut sent_subjects, started) = (Vec::new(), Instant::now());
        let attempt = Attempt::from_status(200, 1);
        while sent_subjects.len() < waiting.len()
            || nodes[0].load_delivery(claimed.id.into()).await.unwrap().unwrap().attempt.is_none()
        {
            assert!(started.elapsed() < TIMEOUT, "{sent_subjects:?}");
            for node in &nodes {
                for due in node.first_due_deliveries(10).await.unwrap() {
                    if node.claim_delivery(due.id, due.subject).await.unwrap() {
                        node.settle_delivery(due.id, due.subject, attempt).await.unwrap();
                        sent_subjects.push(due.subject);
                    }
                }
            }
            tokio::time::sleep(beat).await;
        }
        assert_eq!(sent_subjects.len(), waiting.len());
        assert_eq!(sent_subjects.into_iter().collect::<BTreeSet<_>>(), waiting);
        let unknown = nodes[1].load_delivery(claimed.id.into()).await.unwrap().unwrap();
        assert_eq!(unknown.attempt.map(|attempt| attempt.outcome), Some(DeliveryOutcome::Unknown));
        assert_eq!(nodes[0].backlog().await.unwrap().deliveries, 0);
    });
}

#[test]
fn moving_a_backup_does_not_change_it() {
    run(async {
        let mut test = MoveTest::new();
        let client = client_with(&test, 50).await;
        open_and_complete(&test, &client).await;
        let file = test.directory.path().join("backup.db");
        let copied =
            crate::embedded::backup(&test.path(), &file, Arc::<ManualClock>::clone(&test.clock), &test_vault(&[7, 6]));
        assert_eq!(copied.unwrap().clients, 1);
        let before = std::fs::read(&file).unwrap();
        assert!(
            count_written(&move_closed(&file, || test.options(), COPY_ONLY, |_, _| {}).await.unwrap()) > 0,
            "while the store is open"
        );
        let other =
            || RedisOptions { ownership: Ownership::new(Profile::Stage, "https://issuer.test"), ..test.options() };
        assert!(matches!(
            move_closed(&file, other, COPY_ONLY, |_, _| {}).await,
            Err(StoreError::OtherInstallation { .. })
        ));
        assert_eq!(std::fs::read(&file).unwrap(), before);
        let file_names = std::fs::read_dir(test.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(
            file_names.collect::<BTreeSet<_>>(),
            ["backup.db", "backup.db.sha256", "store"].map(str::to_owned).into()
        );
        open_and_complete(&test, &client).await;
        let second = test.run_move(FINISH).await.unwrap();
        assert_eq!((second.kinds["client"].written, second.kinds["clients"].written), (1, 0));
        let target = test.open_target().await;
        assert_eq!(target.statement(client.clone(), ALL).await, test.store().statement(client, ALL).await);
    });
}
