//! A moved store answers as before, also after an interrupted move.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::cmd;
use sakshi_domain::brand::LogoId;
use sakshi_domain::clock::{Clock, ManualClock, SystemClock};
use sakshi_domain::delivery::{Attempt, DeliveryOutcome, DeliveryRecord, Subject};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::Event;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::Client;
use sakshi_domain::time::Timestamp;
use tempfile::TempDir;
use tokio::sync::Notify;

use super::inventory::use_every_operation;
use super::server::{RedisServer, TIMEOUT};
use super::{key_names, options, standalone};
use crate::conformance::fixture::{RETENTION, client_with, completed, created, event, opened, registered, scanned};
use crate::conformance::{TestStore, run};
use crate::embedded::tests::open_when_free;
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::engine::Form;
use crate::engine::redis::{name, parse_name, parse_name_in};
use crate::installation::test_ownership;
use crate::records::delivery::of_subject;
use crate::records::{ALL as KINDS, client, idempotency, installation, node, transaction};
use crate::redis::{NodeId, RedisOptions, RedisStore};
use crate::vault::test_vault;
use crate::{
    AskedConsents, AskedLog, ConsentPlace, Moved, Ownership, PageRequest, SessionDigest, Store, StoreError, Swept,
    Upgrading, move_to_redis,
};

pub(super) const ALL: PageRequest = PageRequest { page: 1, page_size: 100 };

/// Returns the waiting deliveries, in order.
pub(super) async fn waiting(store: &Store) -> Vec<Subject> {
    let mut waiting = Vec::new();
    for due in store.due_deliveries(None, None, 100).await.unwrap() {
        let kept = store.load_delivery(due.subject).await.unwrap().unwrap();
        waiting.extend(kept.claimed_at.is_none().then_some(due.subject));
    }
    waiting
}

/// An embedded store and an empty server, on one clock.
struct Move {
    store: EmbeddedStore,
    clock: Arc<ManualClock>,
    directory: TempDir,
    server: Arc<RedisServer>,
}

impl TestStore for Move {
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

/// Returns the store of a directory.
pub(super) fn embedded(directory: &Path, clock: &Arc<ManualClock>) -> EmbeddedStore {
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
async fn moved(
    path: &Path,
    options: impl Fn() -> RedisOptions,
    finish: bool,
    progress: impl Fn(&str, u64) + Clone + Send + Sync + 'static,
) -> Result<Moved, StoreError> {
    let begun = Instant::now();
    loop {
        match move_to_redis(path, options(), finish, progress.clone()).await {
            Err(StoreError::InUse(_)) if begun.elapsed() < TIMEOUT => tokio::task::yield_now().await,
            ended => return ended,
        }
    }
}

impl Move {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Whole seconds from a time that the server has not reached, so the server expires nothing.
        let start = Timestamp::from_millis((SystemClock.now().seconds() + 3_600) * 1_000);
        let clock = Arc::new(ManualClock::starting_at(start));
        Self {
            store: embedded(&directory.path().join("store"), &clock),
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

    /// Moves the store, which is closed before and opened again afterwards.
    async fn run(&mut self, finish: bool) -> Result<Moved, StoreError> {
        // Redis drops expired data by itself.
        while self.store().sweep(self.clock.now(), 100).await.unwrap() != Swept::default() {}
        self.store.close();
        let moved = moved(&self.path(), || self.options(), finish, |_, _| {}).await;
        self.store = embedded(&self.path(), &self.clock);
        moved
    }

    async fn target(&self) -> RedisStore {
        RedisStore::open(self.options()).await.unwrap()
    }
}

/// Creates some events of one app. Their order is that of their creation.
pub(super) async fn events_of_one_millisecond(test: &impl TestStore, client: &ClientId) -> AppId {
    let app = AppId::generate();
    for _ in 0..6 {
        created(test, Event { app: app.clone(), ..event(test, client, 10) }).await;
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

fn written(moved: &Moved) -> u64 {
    moved.kinds.values().map(|kind| kind.written).sum()
}

/// Returns a delivery without its id, which is specific to the store.
fn without_id(delivery: Option<DeliveryRecord>) -> Option<impl PartialEq + std::fmt::Debug> {
    delivery.map(|delivery| (delivery.origin, delivery.queued_at, delivery.claimed_at, delivery.attempt))
}

/// Checks that every read gives the same on both stores.
pub(super) async fn assert_equal(from: &Store, to: &Store, flows: &[(FlowId, AppId)]) {
    macro_rules! same {
        ($store:ident => $read:expr) => {{
            let one = {
                let $store = from;
                $read
            };
            let other = {
                let $store = to;
                $read
            };
            assert_eq!(one, other, "{}", stringify!($read));
            one
        }};
    }
    let mut read = 0;
    let by_id = |mut page: crate::Page<Client>| {
        page.items.sort_by(|one, other| one.client_id.cmp(&other.client_id));
        page
    };
    for client in same!(store => by_id(store.list_clients(ALL).await.unwrap())).items {
        let id = client.client_id;
        same!(store => store.balance(id.clone()).await.unwrap());
        same!(store => store.list_keys(id.clone()).await.unwrap());
        same!(store => {
            let (from, to) = (Timestamp::from_millis(0), SystemClock.now() + Duration::from_secs(30 * 24 * 3_600));
            let asked = AskedConsents { client: id.clone(), from, to, after: ConsentPlace::default(), limit: 100 };
            store.consents(asked).await.unwrap()
        });
        same!(store => store.client_log(AskedLog::newest(id.clone(), SystemClock.now())).await.unwrap());
        same!(store => store.list_users(id.clone()).await.unwrap());
        same!(store => store.key_uses(id.clone()).await.unwrap());
        same!(store => store.imported_at(id.clone()).await.unwrap());
        let mut apps: BTreeSet<AppId> =
            same!(store => store.list_apps(id.clone()).await.unwrap()).into_iter().map(|app| app.app_id).collect();
        for entry in same!(store => store.statement(id.clone(), ALL).await.unwrap()).items {
            let Ok(txn) = entry.reference.parse::<TxnId>() else { continue };
            read += 1;
            same!(store => without_id(store.load_delivery(txn.into()).await.unwrap()));
            same!(store => store.load_evidence(txn).await.unwrap().is_some());
            apps.extend(
                same!(store => store.load_transaction(txn).await.unwrap()).map(|record| record.opened().app.clone()),
            );
        }
        for app in apps {
            same!(store => store.webhook_urls(app.clone()).await.unwrap());
            same!(store => store.refusals(app.clone()).await.unwrap());
            for event in same!(store => store.list_events(app.clone(), ALL).await.unwrap()).items {
                same!(store => store.load_event(event.id).await.unwrap());
                same!(store => store.list_registrations(event.id, ALL.into()).await.unwrap());
            }
        }
    }
    assert!(read > 5);
    for (flow, app) in flows {
        same!(store => store.load_flow(*flow, app.clone()).await.unwrap().is_some());
        same!(store => {
            let found = store.flow_deliveries(*flow).await.unwrap().unwrap();
            let deliveries = found.deliveries.into_iter();
            let mut deliveries: Vec<_> = deliveries.map(|one| (one.webhook, one.tells,
                without_id(Some(one.delivery)))).collect();
            deliveries.sort_by_key(|(webhook, ..)| webhook.0);
            (found.state, found.kept_until, deliveries)
        });
    }
    same!(store => store.find_signing_in("planted-one@example.com".parse().unwrap()).await.unwrap());
    same!(store => store.load_session(SessionDigest([1; 32])).await.unwrap());
    same!(store => store.load_logo(LogoId([1; 16])).await.unwrap());
    same!(store => store.operators().await.unwrap());
    same!(store => store.audit_log(0, 100).await.unwrap());
    same!(store => store.audit_head().await.unwrap());
    same!(store => store.chosen_intent_key().await.unwrap());
    assert!(to.audit().await.unwrap().iter().all(crate::Audit::is_clean));
}

#[test]
fn a_moved_store_has_every_kind_of_key_and_gives_the_same_answers() {
    run(async {
        let mut test = Move::new();
        let flows = use_every_operation(&test).await;
        let client = client_with(&test, 50).await;
        let app = events_of_one_millisecond(&test, &client).await;
        let unanswered = opened(&test, &client).await;
        let waiting = waiting(test.store()).await;
        assert!(waiting.len() > 2);
        let moved = test.run(true).await.unwrap();
        assert!(moved.is_finished && moved.removed == 0, "{moved:?}");

        // Leases, the time of the last sweep, nodes and the health check belong to running nodes; so do the marks of a
        // store that may lose data.
        let not_moved =
            [idempotency::ORDER_LEASE.name, installation::SWEPT.name, node::WATCH.name, node::SNAPSHOT.name];
        let kinds = KINDS.iter().filter(|kind| !not_moved.contains(&kind.name));
        let (keys, store) = (key_names(&test.server), test.target().await);
        for kind in kinds {
            let found: Vec<_> = keys.iter().filter(|key| parse_name(kind, key).is_some()).collect();
            assert_eq!(found.len() as u64, moved.kinds.get(kind.name).map_or(0, |counts| counts.keys), "{kind:?}");
            assert!(!found.is_empty(), "{kind:?} was not moved");
            let of_type = match kind.form {
                Form::Record => "hash",
                Form::List => "list",
                Form::Index => "zset",
            };
            for key in found {
                assert_eq!(reply_to(&store, "TYPE", key).await, of_type, "{}", String::from_utf8_lossy(key));
            }
        }
        let others = keys
            .iter()
            .filter(|key| parse_name_in(KINDS, key).is_none())
            .map(|key| String::from_utf8_lossy(key).into_owned());
        assert_eq!(
            others.collect::<BTreeSet<_>>(),
            ["canary", "installation", "{canary}schema"].map(str::to_owned).into()
        );

        let target: &Store = &store;
        // As at the start of a node: attempts with an unknown outcome are not repeated. The node of the file does not
        // run here.
        test.store().abandon_attempts().await.unwrap();
        store.abandon(NodeId::ALONE).await.unwrap();
        assert_equal(test.store(), target, &flows).await;
        assert_eq!(target.list_events(app.clone(), ALL).await, test.store().list_events(app, ALL).await);
        let scope = crate::conformance::fixture::kept(
            &test,
            &test.store().list_clients(ALL).await.unwrap().items[0].client_id,
            1,
            1,
        )
        .scope;
        assert_eq!(target.load_idempotent_answer(scope).await, test.store().load_idempotent_answer(scope).await);
        store.take_over(NodeId::ALONE).await.unwrap();
        let due = target.due_deliveries(None, None, 100).await.unwrap();
        assert_eq!(due.iter().map(|due| due.subject).collect::<BTreeSet<_>>(), waiting.into_iter().collect());
        for delivery in &due {
            let key = name(&of_subject(&delivery.subject));
            assert_eq!(reply_to(&store, "PTTL", &key).await, "-1", "what waits is kept: {:?}", delivery.subject);
        }
        let mut ends = 0;
        for key in keys.iter().filter(|key| parse_name(&transaction::TRANSACTION, key).is_some()) {
            ends += u64::from(reply_to(&store, "PTTL", key).await != "-1");
        }
        assert!(ends > 0, "what has ended is not");
        let kept_until = reply_to(&store, "PEXPIRETIME", &name(&of_subject(&unanswered.id.into()))).await;
        let retained = i64::try_from(RETENTION.expired.as_millis()).unwrap();
        assert_eq!(kept_until, (retained + unanswered.expires_at.millis()).to_string());
        let attempt = Attempt::answered(200, 1);
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
        let mut test = Move::new();
        let client = client_with(&test, 50).await;
        let event = created(&test, event(&test, &client, 10)).await;
        let guest = registered(&test, &event).await;
        let (gone, _) = completed(&test, &client).await;
        let waits = opened(&test, &client).await;
        let first = test.run(false).await.unwrap();
        assert!(written(&first) > 10 && first.kinds.values().all(|kind| kind.keys > 0), "{first:?}");
        let half = RedisStore::open(test.options()).await.unwrap_err();
        assert!(half.to_string().contains("--finish"), "{half}");
        assert_eq!(written(&test.run(false).await.unwrap()), 0, "nothing has changed");
        let kept = marks(&test.server);

        test.store().erase(ErasureSubject::Transaction(gone.id)).await.unwrap();
        test.store().erase(ErasureSubject::Transaction(guest)).await.unwrap();
        scanned(&test, &event).await;
        registered(&test, &event).await;
        let (_, _) = completed(&test, &client).await;
        let moved = test.run(true).await.unwrap();
        assert!(
            moved.removed >= 2 && moved.kinds["guests"].written == 1 && moved.kinds["client"].written == 1,
            "{moved:?}"
        );
        assert_eq!(marks(&test.server), kept);
        let target = test.target().await;
        assert_equal(test.store(), &target, &[]).await;
        assert!(target.load_transaction(waits.id).await.unwrap().is_some());
        assert_eq!(target.load_transaction(gone.id).await, Ok(None));
    });
}

#[test]
fn a_target_that_changes_during_a_move_is_not_finished() {
    run(async {
        let test = Move::new();
        client_with(&test, 5).await;
        test.store.close();
        let meddle = |when: &'static str, change: fn(&RedisServer)| {
            let server = Arc::clone(&test.server);
            move |what: &str, seen: u64| {
                assert!(seen > 0);
                if what == when {
                    change(&server);
                }
            }
        };
        let lost = meddle("copied", |server| {
            // Keys come in batches, and it may be in any of them.
            if let Some(client) = key_names(server).iter().find(|key| parse_name(&client::CLIENT, key).is_some()) {
                server.answer(&["DEL", std::str::from_utf8(client).unwrap()]);
            }
        });
        let added = meddle("compared", |server| drop(server.answer(&["SET", "stranger", "1"])));
        let refused = moved(&test.path(), || test.options(), true, lost).await.unwrap_err().to_string();
        assert!(refused.ends_with("the target differs from the source: client: 1"), "{refused}");
        let refused = moved(&test.path(), || test.options(), true, added).await.unwrap_err().to_string();
        assert!(refused.ends_with("the target differs from the source: keys too many: 1"), "{refused}");
        assert!(moved(&test.path(), || test.options(), true, |_, _| {}).await.unwrap().is_finished);
    });
}

#[test]
fn an_interrupted_move_can_be_restarted() {
    run(async {
        let mut test = Move::new();
        let flows = use_every_operation(&test).await;
        let client = client_with(&test, 2_000).await;
        for _ in 0..600 {
            opened(&test, &client).await;
        }
        test.store.close();
        let begun = Arc::new(Notify::new());
        let told = Arc::clone(&begun);
        let path = test.path();
        tokio::select! {
            () = begun.notified() => {}
            ended = moved(&path, || test.options(), true, move |_,
                _| told.notify_one()) => panic!("it was not interrupted: {ended:?}"),
        }
        assert!(RedisStore::open(test.options()).await.is_err(), "it is half moved");
        test.store = embedded(&test.path(), &test.clock);
        test.run(true).await.unwrap();
        let target = test.target().await;
        test.store().abandon_attempts().await.unwrap();
        target.abandon(NodeId::ALONE).await.unwrap();
        assert_equal(test.store(), &target, &flows).await;
    });
}

#[test]
fn foreign_targets_and_foreign_sources_are_refused() {
    run(async {
        let mut test = Move::new();
        client_with(&test, 5).await;
        let path = test.path();
        let busy = move_to_redis(&path, test.options(), true, |_, _| {}).await.unwrap_err();
        assert!(matches!(busy, StoreError::InUse(_)), "{busy}");
        test.store.close();
        let wrong = || RedisOptions { vault: Arc::new(test_vault(&[9])), ..test.options() };
        assert_eq!(moved(&path, wrong, true, |_, _| {}).await, Err(StoreError::WrongKey));
        let nothing = move_to_redis(test.directory.path(), test.options(), true, |_, _| {}).await.unwrap_err();
        assert!(nothing.to_string().contains("there is no store"), "{nothing}");
        test.server.answer(&["SET", "stranger", "1"]);
        let full = moved(&path, || test.options(), true, |_, _| {}).await.unwrap_err();
        assert!(full.to_string().contains("not empty"), "{full}");
        test.server.answer(&["FLUSHALL"]);
        test.store = embedded(&test.path(), &test.clock);
        test.run(false).await.unwrap();
        let other = Move::new();
        client_with(&other, 5).await;
        other.store.close();
        let second = moved(&other.path(), || test.options(), true, |_, _| {}).await.unwrap_err();
        assert!(second.to_string().contains("another store"), "{second}");
        test.run(true).await.unwrap();
        let finished = test.run(true).await.unwrap_err();
        assert!(finished.to_string().contains("not empty"), "nodes may work on it by now: {finished}");
    });
}

#[test]
fn a_moved_store_opens_only_with_its_keys_and_installation() {
    run(async {
        let mut test = Move::new();
        client_with(&test, 5).await;
        test.run(true).await.unwrap();
        let wrong = RedisOptions { vault: Arc::new(test_vault(&[9])), ..test.options() };
        assert_eq!(RedisStore::open(wrong).await.unwrap_err(), StoreError::WrongKey);
        let other = RedisOptions { ownership: Ownership::of(Profile::Stage, "https://issuer.test"), ..test.options() };
        assert!(matches!(RedisStore::open(other).await, Err(StoreError::OtherInstallation { .. })));
        test.target().await;
    });
}

#[test]
fn a_node_sends_pending_webhooks_once_and_no_claimed_ones() {
    run(async {
        let mut test = Move::new();
        let client = client_with(&test, 50).await;
        let (begun, id) = completed(&test, &client).await;
        assert!(test.store().claim_delivery(id, begun.id.into()).await.unwrap());
        let mut waiting = BTreeSet::new();
        for _ in 0..3 {
            waiting.insert(Subject::from(completed(&test, &client).await.0.id));
        }
        test.run(true).await.unwrap();
        let beat = Duration::from_millis(20);
        let [one, other] = [
            RedisStore::open_with_heartbeats(test.options(), beat).await,
            RedisStore::open_with_heartbeats(test.options(), beat).await,
        ];
        let nodes = [one.unwrap(), other.unwrap()];
        let (mut sent, since) = (Vec::new(), Instant::now());
        let attempt = Attempt::answered(200, 1);
        while sent.len() < waiting.len()
            || nodes[0].load_delivery(begun.id.into()).await.unwrap().unwrap().attempt.is_none()
        {
            assert!(since.elapsed() < TIMEOUT, "{sent:?}");
            for node in &nodes {
                for due in node.due_deliveries(None, None, 10).await.unwrap() {
                    if node.claim_delivery(due.id, due.subject).await.unwrap() {
                        node.settle_delivery(due.id, due.subject, attempt).await.unwrap();
                        sent.push(due.subject);
                    }
                }
            }
            tokio::time::sleep(beat).await;
        }
        assert_eq!(sent.len(), waiting.len());
        assert_eq!(sent.into_iter().collect::<BTreeSet<_>>(), waiting);
        let unknown = nodes[1].load_delivery(begun.id.into()).await.unwrap().unwrap();
        assert_eq!(unknown.attempt.map(|attempt| attempt.outcome), Some(DeliveryOutcome::Unknown));
        assert_eq!(nodes[0].backlog().await.unwrap().deliveries, 0);
    });
}

#[test]
fn moving_a_backup_does_not_change_it() {
    run(async {
        let mut test = Move::new();
        let client = client_with(&test, 50).await;
        completed(&test, &client).await;
        let file = test.directory.path().join("backup.db");
        let copied =
            crate::embedded::backup(&test.path(), &file, Arc::<ManualClock>::clone(&test.clock), &test_vault(&[7, 6]));
        assert_eq!(copied.unwrap().clients, 1);
        let before = std::fs::read(&file).unwrap();
        assert!(
            written(&moved(&file, || test.options(), false, |_, _| {}).await.unwrap()) > 0,
            "while the store is open"
        );
        let other =
            || RedisOptions { ownership: Ownership::of(Profile::Stage, "https://issuer.test"), ..test.options() };
        assert!(matches!(moved(&file, other, false, |_, _| {}).await, Err(StoreError::OtherInstallation { .. })));
        assert_eq!(std::fs::read(&file).unwrap(), before);
        let beside = std::fs::read_dir(test.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(
            beside.collect::<BTreeSet<_>>(),
            ["backup.db", "backup.db.sha256", "store"].map(str::to_owned).into()
        );
        completed(&test, &client).await;
        let second = test.run(true).await.unwrap();
        assert_eq!((second.kinds["client"].written, second.kinds["clients"].written), (1, 0));
        let target = test.target().await;
        assert_eq!(target.statement(client.clone(), ALL).await, test.store().statement(client, ALL).await);
    });
}
