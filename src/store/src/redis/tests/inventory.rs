//! Server content after every operation: every key is in the key table and has its expiry, and no personal data is
//! readable.

use std::collections::BTreeSet;
use std::sync::Arc;

use sakshi_domain::brand::LogoId;
use sakshi_domain::client_log::Action;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::day_figures::{Day, DayFigures};
use sakshi_domain::delivery::Attempt;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::{EventPatch, EventText};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::icon::Icon;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::network::Networks;
use sakshi_domain::tenancy::{ApiKeyRecord, AppPatch, ClientPatch, KeyDigest};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{CredentialIdentity, Outcome};
use sakshi_domain::user::User;
use uuid::Uuid;

use super::{RedisTestStore, key_names, options, standalone, test_store, test_store_with_config};
use crate::LapseFlowOutcome;
use crate::conformance::client_log::build_log_entry;
use crate::conformance::console;
use crate::conformance::fixture::{
    RESULT_TTL, RETENTION, WINDOW, build_app, build_completion, build_event, build_idempotent_answer, build_opening,
    client_with, open_and_complete, open_guest_scan, open_pending, patch_event, register_guest, store_event, url,
};
use crate::conformance::flow_fixture::{
    self, ShortReport, accept_report, create_client_app, load_flow, locker_flow, wealth_flow,
};
use crate::conformance::operators::build_operator;
use crate::conformance::refusals::build_refused_request;
use crate::conformance::reseal::reseal_store;
use crate::conformance::sessions::build_session;
use crate::conformance::users::{build_user, join_user};
use crate::conformance::{TestStore, run};
use crate::engine::redis::{RedisEngine, name, parse_name};
use crate::engine::{Column, ColumnKind, Engine as _, Fields, Form, Query, ScanFrom, Scanned, Table, Value};
use crate::moving::MOVED_AWAY;
use crate::records;
use crate::redis::key_table::{self, Expiry, KeyKind};
use crate::redis::nodes::heartbeats::DeadNode;
use crate::redis::reply::Reply;
use crate::redis::script::{self, Script};
use crate::redis::{NodeId, RedisServers, RedisStore};
use crate::vault::test_vault;
use crate::{
    ChosenIntentKey, CompleteOutcome, CompleteTransaction, CreditOutcome, ExpireOutcome, OpenOutcome, OrderLease,
    PageRequest, PresentedCredential,
};
use crate::{ConsentPosition, ConsentQuery, InviteDigest, SessionDigest, SessionHolder, SessionRecord};

/// A page with every row.
const ALL: PageRequest = PageRequest { page: 1, page_size: 100 };

/// Adds a credential, identified by a number, to a completion.
fn with_credential(complete: CompleteTransaction, credential: u8) -> CompleteTransaction {
    let credential = PresentedCredential { digest: CredentialIdentity([credential; 32]), holder_bound: false };
    CompleteTransaction { credential: Some(credential), ..complete }
}

/// Calls every operation of a store, so that every kind of key exists in every state. Returns the flows that it opens.
pub(super) async fn use_every_operation(test: &impl TestStore) -> Vec<(FlowId, AppId)> {
    let store = test.store();
    let client = use_tenancy(test).await;
    use_operators_and_logs(test, &client).await;
    use_transactions(test, &client).await;
    let flows = use_flows_in_every_state(test).await;
    use_events(test, &client).await;
    store.publish_snapshot(b"planted-snapshot".to_vec()).await.unwrap();
    store.audit().await.unwrap();
    store.check().await.unwrap();
    flows
}

/// Creates a client with credits, an app, keys, users, sessions and a refused request.
async fn use_tenancy(test: &impl TestStore) -> ClientId {
    let store = test.store();
    let client = client_with(test, 50).await;
    let less = CreditMove { kind: EntryKind::Adjust, amount: -1, reference: "less".into() };
    store.move_credits(client.clone(), less).await.unwrap();
    let app = build_app(test, &client);
    assert!(store.create_app(app.clone()).await.unwrap());
    let patch = AppPatch {
        consent_webhook_url: Some(Some(url("https://consent.example/planted-path"))),
        ..AppPatch::default()
    };
    store.patch_app(app.app_id.clone(), patch).await.unwrap().unwrap();
    let key = ApiKeyRecord {
        key_id: KeyId::generate(),
        client_id: client.clone(),
        label: "kiosk".into(),
        environments: vec![],
        networks: Networks::default(),
        created_at: test.now(),
        expires_at: None,
        revoked_at: None,
    };
    assert!(store.create_key(key.clone(), KeyDigest([5; 32])).await.unwrap());
    store.retire_key(key.key_id, crate::KeyEnd::Revoked(test.now())).await.unwrap().unwrap();
    assert_eq!(store.has_moved(client.clone(), EntryKind::Adjust, "less".to_owned()).await, Ok(true));
    let mut transfer = store.export_client(client.clone()).await.unwrap().unwrap();
    transfer.keys[0].key.label = "counter".into();
    store.import_client(transfer, test.now()).await.unwrap().unwrap();
    store.keep_logo(LogoId([1; 16]), Icon::from_icon_file(b"<svg/>".to_vec()).unwrap()).await.unwrap();
    let person = join_user(test, &client, "planted-one@example.com", 1).await;
    let invited = build_user(test, &client, "planted-two@example.com");
    store.invite_user(invited, InviteDigest([2; 32]), test.now() + WINDOW).await.unwrap();
    use_sessions_in_every_state(test, &app.app_id, &person).await;
    store.keep_refusal(app.app_id.clone(), build_refused_request(test, 1)).await.unwrap();
    assert_eq!(store.refusals(app.app_id.clone()).await.unwrap().len(), 1);
    let figures = DayFigures { opened: 1, ..DayFigures::default() };
    store.add_day_figures(app.app_id.clone(), Day::containing(test.now()), figures, [1; 16]).await.unwrap();
    client
}

/// Adds and revokes an operator, chooses an intent key, and appends to the logs.
async fn use_operators_and_logs(test: &impl TestStore, client: &ClientId) {
    let store = test.store();
    let operator = build_operator(test, "Planted Operator");
    store.add_operator(operator.clone(), KeyDigest([6; 32])).await.unwrap();
    store.revoke_operator(operator.operator_id, test.now()).await.unwrap().unwrap();
    store.choose_intent_key(Some(ChosenIntentKey { kid: "next".into(), since: test.now() })).await.unwrap();
    assert!(store.chosen_intent_key().await.unwrap().is_some());
    store.append_client_log(client.clone(), build_log_entry(test, Action::SignedIn)).await.unwrap();
    store.append_audit("planted-entry".into()).await.unwrap();
    assert_eq!(store.audit_log(0, 10).await.unwrap().len(), 1);
    assert_eq!(store.take_audit_push(WINDOW, 10).await.unwrap().waiting, 1);
}

/// Opens transactions of a client, and brings them and their deliveries into every state.
async fn use_transactions(test: &impl TestStore, client: &ClientId) {
    let store = test.store();
    let mut open = build_opening(test, client);
    open.idempotency = Some(build_idempotent_answer(test, client, 1, 1));
    let pending = open.pending.clone();
    assert!(matches!(store.open_transaction(open).await, Ok(OpenOutcome::Opened { .. })));
    assert!(store.load_idempotent_answer(build_idempotent_answer(test, client, 1, 1).scope).await.unwrap().is_some());
    let resealed = open_pending(test, client).await.id;
    let outcome = test_vault(&[6]).seal(resealed.as_bytes(), b"{}");
    store.complete_transaction(CompleteTransaction { outcome, ..build_completion(resealed, 1) }).await.unwrap();
    assert_eq!(reseal_store(store).await.resealed, 1);
    // Deliveries: queued, in flight, ended, abandoned.
    let evidence = Some(test_vault(&[7]).seal(pending.id.as_bytes(), b"planted-proof"));
    store
        .complete_transaction(CompleteTransaction { evidence, ..with_credential(build_completion(pending.id, 1), 1) })
        .await
        .unwrap();
    assert!(store.load_evidence(pending.id).await.unwrap().is_some());
    let (from, to, after) = (Timestamp::from_millis(0), test.now() + WINDOW, ConsentPosition::default());
    let query = ConsentQuery { client: client.clone(), from, to, after, limit: 10 };
    assert!(!store.consents(query).await.unwrap().entries.is_empty());
    let (in_flight, id) = open_and_complete(test, client).await;
    assert!(store.claim_delivery(id, in_flight.id.into()).await.unwrap());
    assert_eq!(store.abandon_attempts().await, Ok(1));
    let (ended, id) = open_and_complete(test, client).await;
    assert!(store.claim_delivery(id, ended.id.into()).await.unwrap());
    let attempt = Attempt::from_status(200, 1);
    store.settle_delivery(id, ended.id.into(), attempt).await.unwrap();
    let (claimed, id) = open_and_complete(test, client).await;
    assert!(store.claim_delivery(id, claimed.id.into()).await.unwrap());
    open_pending(test, client).await;
    // One credential is released, the other remembered.
    let late = open_pending(test, client).await;
    assert!(store.watch_transaction(late.id).await.unwrap().is_some());
    store.note_page(late.id).await.unwrap();
    store.note_poll(ended.id).await.unwrap();
    let cut_short = open_pending(test, client).await;
    assert!(matches!(store.expire_transaction(cut_short.id).await, Ok(ExpireOutcome::Expired(_))));
    test.advance(WINDOW);
    assert_eq!(
        store.complete_transaction(with_credential(build_completion(late.id, 1), 2)).await,
        Ok(CompleteOutcome::Expired)
    );
}

/// Creates an event of a client, with guests and a scan.
async fn use_events(test: &impl TestStore, client: &ClientId) {
    let store = test.store();
    let event = store_event(test, build_event(test, client, 10)).await;
    register_guest(test, &event).await;
    open_guest_scan(test, &event).await;
    let name = EventText::parse("Planted name of a party").unwrap();
    patch_event(test, &event, EventPatch { name: Some(name), ..EventPatch::default() }).await;
    assert_eq!(store.list_events(event.app.clone(), ALL).await.unwrap().total, 1);
    assert_eq!(store.list_registrations(event.id, ALL.into()).await.unwrap().total, 1);
    let guest = open_guest_scan(test, &event).await;
    assert!(matches!(
        store.complete_transaction(build_completion(guest, 1)).await,
        Ok(CompleteOutcome::Completed { .. })
    ));
    assert!(store.load_delivery(guest.into()).await.unwrap().is_some());
    assert!(!store.first_due_deliveries(10).await.unwrap().is_empty());
}

/// Takes leases on orders and sets a watcher's mark, which only nodes of a shared store need.
pub(super) async fn use_leases(test: &impl TestStore) {
    let (store, client) = (test.store(), client_with(test, 0).await);
    store.watch_nodes().await.unwrap();
    assert_eq!(store.is_watched().await, Ok(true));
    for holder in [1, 2] {
        let scope = build_idempotent_answer(test, &client, holder, 1).scope;
        let lease = OrderLease { scope, holder: Uuid::from_u128(holder.into()) };
        assert_eq!(store.take_order_lease(lease, WINDOW).await, Ok(true));
        let other = OrderLease { holder: Uuid::nil(), ..lease };
        assert_eq!(
            (store.take_order_lease(lease, WINDOW).await, store.take_order_lease(other, WINDOW).await),
            (Ok(true), Ok(false))
        );
        store.end_order_lease(other).await.unwrap();
        assert_eq!(store.take_order_lease(other, WINDOW).await, Ok(false), "only the holder ends a lease");
        if holder == 2 {
            store.end_order_lease(lease).await.unwrap();
            assert_eq!(store.take_order_lease(other, WINDOW).await, Ok(true));
        }
    }
}

/// Opens sessions of the portal and of the console, and ends one of each.
async fn use_sessions_in_every_state(test: &impl TestStore, app: &AppId, person: &User) {
    let store = test.store();
    let (idle_until, ends_at) = (test.now() + WINDOW, test.now() + WINDOW * 10);
    for number in [1, 2] {
        let digest = SessionDigest([number; 32]);
        let holder = SessionHolder::User { id: person.user_id.clone(), epoch: 0 };
        let session =
            SessionRecord { digest, holder, app: app.clone(), idle_until, ends_at, ..build_session(test, number) };
        store.open_session(session).await.unwrap();
    }
    assert!(store.load_session(SessionDigest([1; 32])).await.unwrap().is_some());
    assert_eq!(store.prolong_session(SessionDigest([1; 32]), idle_until + WINDOW).await, Ok(true));
    store.end_session(SessionDigest([2; 32])).await.unwrap();
    console::use_console(test).await;
    assert!(store.load_console_session(SessionDigest([1; 32])).await.unwrap().is_some());
    assert_eq!(store.prolong_console_session(SessionDigest([1; 32]), idle_until).await, Ok(true));
    store.end_console_session(SessionDigest([2; 32])).await.unwrap();
    assert_eq!(store.grant_requests().await.unwrap().len(), 1);
    assert!(store.provider_sessions_ended("https://login.example".into(), "asha".into()).await.unwrap().is_some());
}

/// Opens flows whose reports and deliveries are pending, queued, in flight and ended, and a document that can lapse.
async fn use_flows_in_every_state(test: &impl TestStore) -> Vec<(FlowId, AppId)> {
    let store = test.store();
    let client_app = create_client_app(test).await;
    flow_fixture::register_webhooks(test, &client_app).await;
    flow_fixture::open_flow(
        test,
        flow_fixture::document_flow(test, &client_app, Some("https://own.example/planted-path")),
    )
    .await;
    let (pending, ended) = (locker_flow(test, &client_app), locker_flow(test, &client_app));
    let (pending, ended) = (flow_fixture::open_flow(test, pending).await, flow_fixture::open_flow(test, ended).await);
    accept_report(test, &pending, ShortReport::Locker { status: "Pending", content: 1 }).await;
    let delivery = accept_report(test, &ended, ShortReport::Locker { status: "Fetched", content: 1 }).await.unwrap();
    assert!(store.claim_delivery(delivery.id, delivery.subject).await.unwrap());
    let attempt = Attempt::from_status(200, 1);
    store.settle_delivery(delivery.id, delivery.subject, attempt).await.unwrap();
    let consent = flow_fixture::open_flow(test, wealth_flow(test, &client_app)).await;
    accept_report(test, &consent, ShortReport::Consent { status: "Accepted", content: 1 }).await.unwrap();
    let in_flight =
        accept_report(test, &consent, ShortReport::Data { fetch: 1, form: "RAW", content: 1 }).await.unwrap();
    assert!(store.claim_delivery(in_flight.id, in_flight.subject).await.unwrap());
    assert!(load_flow(test, &ended).await.unwrap().latest.is_some());
    assert_eq!(store.flow_deliveries(consent.id).await.unwrap().unwrap().deliveries.len(), 2);
    store.lapsed_flows(10).await.unwrap();
    let gone = locker_flow(test, &client_app);
    assert_eq!(store.lapse_flow(gone.id, RESULT_TTL).await, Ok(LapseFlowOutcome::NotFound));
    [pending, ended, consent].map(|flow| (flow.id, flow.app)).into()
}

/// Deletes the count of steps, as a loss of data would, and accepts the loss.
async fn lose_data_and_accept(test: &RedisTestStore) {
    test.server.answer(&["DEL", "{canary}steps"]);
    assert!(matches!(test.store().check().await, Err(crate::StoreError::DataLost(_))));
    assert!(test.store().accept_loss().await.unwrap().is_some());
    test.store.shared.count_start().await.unwrap();
}

/// Sets the marks of an unaccepted loss and of a move.
async fn set_loss_and_move_marks(test: &RedisTestStore) {
    test.server.answer(&["SET", "moving", MOVED_AWAY]);
    test.server.answer(&["SET", "{canary}lost", "1"]);
}

fn engine(test: &RedisTestStore) -> RedisEngine {
    RedisEngine::new(Arc::clone(&test.store.shared))
}

/// Sends a command, and returns the reply as text.
async fn reply_to(test: &RedisTestStore, command: &redis::Cmd) -> String {
    let answers = test.store.shared.send_always(vec![command.clone()]).await.unwrap();
    Reply::new("an answer", answers[0].clone()).text().unwrap().unwrap()
}

/// Checks the type, the slot and the expiry of a key against its kind.
async fn assert_matches_kind(test: &RedisTestStore, kind: KeyKind, key: &[u8]) {
    let context = String::from_utf8_lossy(key);
    assert_eq!(reply_to(test, redis::cmd("TYPE").arg(key)).await, kind.redis_type, "{context}");
    if kind.table.is_some() {
        assert_eq!(key.starts_with(b"{p"), !kind.has_own_slot(), "{context}");
    }
    let end: i64 = reply_to(test, redis::cmd("PEXPIRETIME").arg(key)).await.parse().unwrap();
    let must_expire = match kind.expiry {
        Expiry::Never => false,
        Expiry::Always => true,
        Expiry::AfterDelivery => {
            let [has_delivery, has_attempt] = [
                reply_to(test, redis::cmd("HEXISTS").arg(key).arg("delivery")).await,
                reply_to(test, redis::cmd("HEXISTS").arg(key).arg("attempt")).await,
            ];
            has_delivery == "0" || has_attempt == "1"
        }
        Expiry::WithRecord(record) => {
            let record = name(&parse_name(kind.table.unwrap(), key).unwrap().in_table(record));
            assert_eq!(reply_to(test, redis::cmd("PEXPIRETIME").arg(&record)).await, end.to_string(), "{context}");
            true
        }
    };
    assert_eq!(end >= 0, must_expire, "{context} ends at {end}");
}

#[test]
fn every_key_matches_its_kind_in_the_key_table() {
    let test = test_store();
    let mut found_kinds = BTreeSet::new();
    run(async {
        use_every_operation(&test).await;
        use_leases(&test).await;
        lose_data_and_accept(&test).await;
        set_loss_and_move_marks(&test).await;
        for key in key_names(&test.server) {
            let kinds: Vec<_> = key_table::kinds().filter(|kind| kind.includes(&key)).collect();
            let [kind] = kinds[..] else { panic!("{} is of the kinds {kinds:?}", String::from_utf8_lossy(&key)) };
            found_kinds.insert(kind.name);
            assert_matches_kind(&test, kind, &key).await;
        }
    });
    // A row without a key would not be checked.
    let all: BTreeSet<_> = key_table::kinds().map(|kind| kind.name).collect();
    assert_eq!(found_kinds, all, "{:?}", all.symmetric_difference(&found_kinds).collect::<Vec<_>>());
}

/// Calls every operation of a store and of its nodes, on this node and on another one with these servers.
async fn use_with_two_nodes(test: &RedisTestStore, servers: RedisServers) {
    use_every_operation(test).await;
    use_leases(test).await;
    let (store, other) =
        (test.store(), RedisStore::open(options(servers, Arc::clone(&test.clock), RETENTION)).await.unwrap());
    assert!(!store.list_clients(ALL).await.unwrap().items.is_empty());
    let client = client_with(test, 5).await;
    let patch = ClientPatch { suspended: Some(false), events_per_app: Some(Some(1)), ..ClientPatch::default() };
    store.patch_client(client.clone(), patch, test.now()).await.unwrap();
    let event = store_event(test, build_event(test, &client, 2)).await;
    let guest = register_guest(test, &event).await;
    // The other node is notified of the end of a transaction, and takes over from this one.
    let pending = open_pending(test, &client).await;
    assert!(other.watch_transaction(pending.id).await.unwrap().is_some());
    assert!(matches!(
        store.complete_transaction(build_completion(pending.id, 1)).await,
        Ok(CompleteOutcome::Completed { .. })
    ));
    assert!(store.backlog().await.unwrap().deliveries > 0);
    let nobody = DeadNode { node: NodeId::generate(), heartbeat: Some("1".into()) };
    test.store.shared.take_over_from(&test.store, &nobody).await.unwrap();
    let dead = DeadNode { node: test.store.shared.node, heartbeat: Some("0".into()) };
    store.leave().await.unwrap();
    other.shared.take_over_from(&other, &dead).await.unwrap();
    assert!(other.holders().await.unwrap().iter().all(|(_, node)| *node == other.shared.node));
    other.erase(ErasureSubject::Transaction(guest)).await.unwrap();
    other.erase(ErasureSubject::Event(event.id)).await.unwrap();
    other.leave().await.unwrap();
    lose_data_and_accept(test).await;
}

#[test]
fn the_deployed_redis_user_may_run_every_operation() {
    let users = include_str!("../../../../../deploy/redis/users.acl");
    let user = users.lines().find(|line| line.starts_with("user sakshi ")).unwrap();
    let digest = user.split(' ').find(|word| word.starts_with('#')).unwrap();
    let server = super::server::RedisServer::start(&[&user.replace(digest, ">known-here")]);
    let servers = standalone(&format!("redis://sakshi:known-here@{}/", server.address()));
    let test = super::connect_store(server, servers.clone(), RETENTION);
    run(use_with_two_nodes(&test, servers));
}

/// Returns the names of the commands that scripts call. Other words in capitals in their source are options.
fn commands_of_scripts() -> BTreeSet<String> {
    let is_command = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let commands_in = |script: &&'static Script| script.source.split('\'').filter(is_command).map(str::to_lowercase);
    // Those of notices and steps are arguments.
    let others = ["publish", "get", "set", "incr", "pexpire", "zscore"].map(str::to_owned);
    let words = script::ALL.iter().flat_map(commands_in).chain(others);
    words.filter(|word| !["withscores", "byscore", "limit"].contains(&&**word)).collect()
}

#[test]
fn the_operations_run_every_script_and_every_command() {
    let test = test_store();
    run(use_with_two_nodes(&test, standalone(&test.server.url())));
    let called_scripts = test.store.shared.faults.called_scripts.lock().unwrap().clone();
    let all: BTreeSet<_> = script::ALL.iter().map(|script| script.name).collect();
    assert!(called_scripts.is_superset(&all), "{:?}", all.difference(&called_scripts).collect::<Vec<_>>());
    let is_run = |command: &String| test.server.info(&format!("cmdstat_{command}")).is_some();
    let (run, unrun): (Vec<_>, Vec<_>) = commands_of_scripts().into_iter().partition(is_run);
    assert!(run.len() >= 30 && unrun.is_empty(), "{unrun:?}");
}

/// Returns the sealed fields that have values in records of a kind. Checks that each value begins with the id of a key.
async fn sealed_fields(test: &RedisTestStore, table: &'static Table) -> BTreeSet<(&'static str, &'static str)> {
    // The last id is that of values which fixtures build.
    let keys = [7, 6].map(|key| test_vault(&[key]).sealing_key().0).into_iter().chain([[1; 4]]).collect::<Vec<_>>();
    let (engine, mut from, mut seen) = (engine(test), Some(ScanFrom::default()), BTreeSet::new());
    while let Some(at) = from {
        let Scanned { keys: found, next, .. } = engine.scan(table, at, 100).await.unwrap();
        from = next;
        for key in found {
            let is_list = table.form == Form::List;
            let query = if is_list { Query::entries(key.clone(), 1, u64::MAX) } else { Query::Record(key.clone()) };
            let mut answers = engine.read(vec![query]).await.unwrap();
            let columns = || table.fields.iter().map(|column| column.name);
            let records: Vec<Fields> = if is_list {
                answers.entries().unwrap().into_iter().map(|entry| columns().zip(entry).collect()).collect()
            } else {
                answers.record().unwrap().into_iter().map(|record| record.fields).collect()
            };
            for column in table.fields.iter().filter(|column| matches!(column.kind, ColumnKind::Sealed(_))) {
                for value in records.iter().filter_map(|fields| fields.get(column.name)) {
                    let Value::Bytes(sealed) = value else { panic!("{key:?} {value:?}") };
                    assert!(keys.iter().any(|id| sealed.starts_with(id)), "{key:?} {}", column.name);
                    seen.insert((table.name, column.name));
                }
            }
        }
    }
    seen
}

#[test]
fn every_field_declared_as_sealed_is_sealed() {
    let test = test_store();
    run(async {
        use_every_operation(&test).await;
        let is_sealed = |column: &&Column| matches!(column.kind, ColumnKind::Sealed(_));
        for table in records::ALL.iter().filter(|table| table.form != Form::Index) {
            let all = table.fields.iter().filter(is_sealed).map(|column| (table.name, column.name)).collect();
            assert_eq!(sealed_fields(&test, table).await, all);
        }
    });
}

#[test]
fn personal_and_secret_data_is_not_readable_in_redis() {
    // An uncompressed disk file equals the memory content.
    let test = test_store_with_config(&["rdbcompression no"], RETENTION);
    let vault = Arc::clone(&test.store.shared.vault);
    run(async {
        use_every_operation(&test).await;
        let client = client_with(&test, 1).await;
        let pending = open_pending(&test, &client).await;
        let claims = serde_json::json!({"residentName": "Planted Resident"});
        let outcome: Outcome = serde_json::from_value(serde_json::json!({"verified": claims})).unwrap();
        let sealed = vault.seal(pending.id.as_bytes(), &serde_json::to_vec(&outcome).unwrap());
        let complete = CompleteTransaction { outcome: sealed, ..build_completion(pending.id, 1) };
        assert!(matches!(test.store().complete_transaction(complete).await, Ok(CompleteOutcome::Completed { .. })));
        let moved =
            test.store().move_credits(client, crate::conformance::fixture::grant(1, "a reference in the clear")).await;
        assert!(matches!(moved, Ok(CreditOutcome::Moved(_))));
    });
    test.server.answer(&["SAVE"]);
    let directory = test.server.answer(&["CONFIG", "GET", "dir"]).field("dir").unwrap();
    let file = std::fs::read(std::path::Path::new(&directory).join("dump.rdb")).unwrap();
    let has = |planted: &str| file.windows(planted.len()).any(|window| window == planted.as_bytes());
    // These texts are stored readably and found, so a text that is not found is not stored.
    for clear in ["a reference in the clear", "https://hooks.example"] {
        assert!(has(clear), "{clear}");
    }
    // A claim, a name hint, the name of an event, and the paths of every webhook.
    for planted in [
        "Planted Resident",
        "Asha",
        "Planted name",
        "secret-path",
        "guest-list",
        "planted-path",
        "planted-entry",
        "Planted Operator",
        "Planted Person",
        "planted-one",
        "planted-network",
        "planted-browser",
        "key=1",
    ] {
        assert!(!has(planted), "{planted}");
    }
}
