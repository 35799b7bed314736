//! What is in a server after every operation: every key is in the table and has its time to live, and
//! nothing personal is readable.

use std::collections::BTreeSet;

use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::{EventPatch, EventText};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, KeyId};
use sakshi_domain::tenancy::{ApiKeyRecord, AppPatch, ClientPatch, KeyDigest};
use sakshi_domain::transaction::{CredentialIdentity, Outcome};
use uuid::Uuid;

use super::{standalone, test_store, test_store_on};
use crate::LapseFlowOutcome;
use crate::conformance::fixture::{
    RESULT_TTL, RETENTION, WINDOW, app, client_with, completed, completing, created, event, kept, opened, opening, passing, patched,
    registered, scanned, url,
};
use crate::conformance::flow_fixture::{self, Told, accepted, loaded, locker, party, wealth};
use crate::conformance::operators::operator;
use crate::conformance::refusals::refused;
use crate::conformance::reseal::pass;
use crate::conformance::{TestStore, run};
use crate::redis::key_table::{KEYS, Lifetime};
use crate::redis::nodes::heartbeats::DeadNode;
use crate::redis::script;
use crate::vault::test_vault;
use crate::{
    ChosenIntentKey, CompleteOutcome, CompleteTransaction, CreditOutcome, ExpireOutcome, OpenOutcome, OrderLease, PageRequest,
    PresentedCredential,
};
use crate::{SessionDigest, SessionRecord};

const ALL: PageRequest = PageRequest { page: 1, page_size: 100 };

fn presenting(complete: CompleteTransaction, credential: u8) -> CompleteTransaction {
    let credential = PresentedCredential { digest: CredentialIdentity([credential; 32]), holder_bound: false };
    CompleteTransaction { credential: Some(credential), ..complete }
}

/// Does everything that a store can do, so that there is every kind of key in every state.
/// The flows that it opens.
pub(super) async fn used_for_everything(test: &impl TestStore) -> Vec<(FlowId, AppId)> {
    let store = test.store();
    let client = client_with(test, 50).await;
    let less = CreditMove { kind: EntryKind::Adjust, amount: -1, reference: "less".into() };
    store.move_credits(client.clone(), less).await.unwrap();
    let app = app(test, &client);
    assert!(store.create_app(app.clone()).await.unwrap());
    let patch = AppPatch { consent_webhook_url: Some(Some(url("https://consent.example/planted-path"))), ..AppPatch::default() };
    store.patch_app(app.app_id.clone(), patch).await.unwrap().unwrap();
    let key = ApiKeyRecord {
        key_id: KeyId::generate(),
        client_id: client.clone(),
        label: "kiosk".into(),
        environments: vec![],
        created_at: test.now(),
        expires_at: None,
        revoked_at: None,
    };
    assert!(store.create_key(key.clone(), KeyDigest([5; 32])).await.unwrap());
    store.retire_key(key.key_id, Some(test.now()), None).await.unwrap().unwrap();
    let mut transfer = store.export_client(client.clone()).await.unwrap().unwrap();
    transfer.keys[0].key.label = "counter".into();
    store.import_client(transfer, test.now()).await.unwrap().unwrap();
    sessions_of_every_standing(test, &app.app_id).await;
    store.keep_refusal(app.app_id.clone(), refused(test, 1)).await.unwrap();
    assert_eq!(store.refusals(app.app_id.clone()).await.unwrap().len(), 1);

    let operator = operator(test, "Planted Operator");
    store.add_operator(operator.clone(), KeyDigest([6; 32])).await.unwrap();
    store.revoke_operator(operator.operator_id, test.now()).await.unwrap().unwrap();
    store.choose_intent_key(Some(ChosenIntentKey { kid: "next".into(), since: test.now() })).await.unwrap();
    assert!(store.chosen_intent_key().await.unwrap().is_some());
    store.append_audit("planted-entry".into()).await.unwrap();
    assert_eq!(store.audit_log(0, 10).await.unwrap().len(), 1);

    let mut open = opening(test, &client);
    open.idempotency = Some(kept(test, &client, 1, 1));
    let pending = open.pending.clone();
    assert!(matches!(store.open_transaction(open).await, Ok(OpenOutcome::Opened { .. })));
    assert!(store.load_idempotent_answer(kept(test, &client, 1, 1).scope).await.unwrap().is_some());
    let resealed = opened(test, &client).await.id;
    let outcome = test_vault(&[6]).seal(resealed.as_bytes(), b"{}");
    store.complete_transaction(CompleteTransaction { outcome, ..completing(resealed, 1) }).await.unwrap();
    assert_eq!(pass(store).await.resealed, 1);
    // Queued, under way, ended, abandoned.
    store.complete_transaction(presenting(completing(pending.id, 1), 1)).await.unwrap();
    let (under_way, id) = completed(test, &client).await;
    assert!(store.claim_delivery(id, under_way.id.into()).await.unwrap());
    assert_eq!(store.abandon_attempts().await, Ok(1));
    let (ended, id) = completed(test, &client).await;
    assert!(store.claim_delivery(id, ended.id.into()).await.unwrap());
    let attempt = Attempt { outcome: DeliveryOutcome::Delivered, status: Some(200), duration_ms: 1 };
    store.settle_delivery(id, ended.id.into(), attempt).await.unwrap();
    let (claimed, id) = completed(test, &client).await;
    assert!(store.claim_delivery(id, claimed.id.into()).await.unwrap());
    opened(test, &client).await;
    // A credential that is released, and one that is not.
    let late = opened(test, &client).await;
    assert!(store.watch_transaction(late.id).await.unwrap().is_some());
    let cut_short = opened(test, &client).await;
    assert!(matches!(store.expire_transaction(cut_short.id).await, Ok(ExpireOutcome::Expired(_))));
    test.advance(WINDOW);
    assert_eq!(store.complete_transaction(presenting(completing(late.id, 1), 2)).await, Ok(CompleteOutcome::Expired));

    let flows = flows_of_every_standing(test).await;
    let event = created(test, event(test, &client, 10)).await;
    registered(test, &event).await;
    scanned(test, &event).await;
    let name = EventText::parse("Planted name of a party").unwrap();
    patched(test, &event, EventPatch { name: Some(name), ..EventPatch::default() }).await;
    assert_eq!(store.list_events(event.app.clone(), ALL).await.unwrap().total, 1);
    assert_eq!(store.list_registrations(event.id, ALL.into()).await.unwrap().total, 1);
    let guest = scanned(test, &event).await;
    assert!(matches!(store.complete_transaction(passing(guest, 1)).await, Ok(CompleteOutcome::Completed { .. })));
    assert!(store.load_delivery(guest.into()).await.unwrap().is_some());
    assert!(!store.due_deliveries(None, None, 10).await.unwrap().is_empty());
    store.audit().await.unwrap();
    store.check().await.unwrap();
    flows
}

/// Leases on orders, which only nodes that share a store need.
async fn leases(test: &impl TestStore) {
    let (store, client) = (test.store(), client_with(test, 0).await);
    for holder in [1, 2] {
        let scope = kept(test, &client, holder, 1).scope;
        let lease = OrderLease { scope, holder: Uuid::from_u128(holder.into()) };
        assert_eq!(store.take_order_lease(lease, WINDOW).await, Ok(true));
        let other = OrderLease { holder: Uuid::nil(), ..lease };
        assert_eq!((store.take_order_lease(lease, WINDOW).await, store.take_order_lease(other, WINDOW).await), (Ok(true), Ok(false)));
        store.end_order_lease(other).await.unwrap();
        assert_eq!(store.take_order_lease(other, WINDOW).await, Ok(false), "only its holder ends it");
        if holder == 2 {
            store.end_order_lease(lease).await.unwrap();
            assert_eq!(store.take_order_lease(other, WINDOW).await, Ok(true));
        }
    }
}

/// One that is used, and one that was ended.
async fn sessions_of_every_standing(test: &impl TestStore, app: &AppId) {
    let store = test.store();
    let (idle_until, ends_at) = (test.now() + WINDOW, test.now() + WINDOW * 10);
    for number in [1, 2] {
        let digest = SessionDigest([number; 32]);
        store.open_session(SessionRecord { digest, key: KeyDigest([5; 32]), app: app.clone(), idle_until, ends_at }).await.unwrap();
    }
    assert!(store.load_session(SessionDigest([1; 32])).await.unwrap().is_some());
    assert_eq!(store.prolong_session(SessionDigest([1; 32]), idle_until + WINDOW).await, Ok(true));
    store.end_session(SessionDigest([2; 32])).await.unwrap();
}

/// Flows that wait, lapse, are queued, under way and ended, and one that is gone.
async fn flows_of_every_standing(test: &impl TestStore) -> Vec<(FlowId, AppId)> {
    let store = test.store();
    let party = party(test).await;
    flow_fixture::registered(test, &party).await;
    flow_fixture::opened(test, flow_fixture::document(test, &party, Some("https://own.example/planted-path"))).await;
    let (pending, ended) = (locker(test, &party), locker(test, &party));
    let (pending, ended) = (flow_fixture::opened(test, pending).await, flow_fixture::opened(test, ended).await);
    accepted(test, &pending, Told::Locker("Pending", 1)).await;
    let delivery = accepted(test, &ended, Told::Locker("Fetched", 1)).await.unwrap();
    assert!(store.claim_delivery(delivery.id, delivery.subject).await.unwrap());
    let attempt = Attempt { outcome: DeliveryOutcome::Delivered, status: Some(200), duration_ms: 1 };
    store.settle_delivery(delivery.id, delivery.subject, attempt).await.unwrap();
    let consent = flow_fixture::opened(test, wealth(test, &party)).await;
    accepted(test, &consent, Told::Consent("Accepted", 1)).await.unwrap();
    let under_way = accepted(test, &consent, Told::Data(1, "RAW", 1)).await.unwrap();
    assert!(store.claim_delivery(under_way.id, under_way.subject).await.unwrap());
    assert!(loaded(test, &ended).await.unwrap().latest.is_some());
    assert_eq!(store.flow_deliveries(consent.id).await.unwrap().unwrap().deliveries.len(), 2);
    store.lapsed_flows(10).await.unwrap();
    let gone = locker(test, &party);
    assert_eq!(store.lapse_flow(gone.id, RESULT_TTL).await, Ok(LapseFlowOutcome::NotFound));
    [pending, ended, consent].map(|flow| (flow.id, flow.app)).into()
}

/// Whether a key's name is of a pattern.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    (1..=rest.len()).any(|end| rest.is_char_boundary(end) && !rest[..end].contains(':') && matches(after, &rest[end..]))
}

/// Loses the steps that counted starts, and accepts it.
async fn lose_and_accept(test: &super::RedisTestStore) {
    test.server.answer(&["DEL", "{canary}steps"]);
    assert!(matches!(test.store().check().await, Err(crate::StoreError::DataLost(_))));
    assert!(test.store().accept_loss().await.unwrap().is_some());
    test.store.shared.count_start().await.unwrap();
}

#[test]
fn every_key_is_of_the_table_and_goes_when_the_table_says() {
    let test = test_store();
    run(async {
        used_for_everything(&test).await;
        leases(&test).await;
        lose_and_accept(&test).await;
    });
    // A loss that nobody has accepted yet.
    test.server.answer(&["SET", "{canary}lost", "1"]);
    let text = |command: &[&str]| test.server.answer(command).text().unwrap_or_default();
    let mut seen = BTreeSet::new();
    for name in test.server.answer(&["KEYS", "*"]).members().iter().filter_map(|name| name.text()) {
        let kinds: Vec<_> = KEYS.iter().filter(|kind| matches(kind.pattern, &name)).collect();
        let [kind] = kinds[..] else { panic!("{name} is of {} patterns", kinds.len()) };
        seen.insert(kind.pattern);
        assert_eq!(text(&["TYPE", &name]), kind.of_type, "{name}");
        let lives: i64 = text(&["PTTL", &name]).parse().unwrap();
        let unended = kind.of_type == "hash"
            && test.server.answer(&["HEXISTS", &name, "i"]).integer() == Some(1)
            && test.server.answer(&["HEXISTS", &name, "w"]).integer() == Some(0);
        let goes = match kind.lifetime {
            Lifetime::Always(_) => true,
            Lifetime::Except(_) => !unended,
            Lifetime::None(_) => false,
        };
        assert_eq!(lives >= 0, goes, "{name} lives {lives} ms");
    }
    // A row without a key would not be checked.
    let used: BTreeSet<_> = KEYS.iter().map(|kind| kind.pattern).collect();
    assert_eq!(seen, used);
}

#[test]
fn the_user_that_the_deployment_gives_the_service_may_do_all_of_it() {
    let users = include_str!("../../../../../deploy/redis/users.acl");
    let user = users.lines().find(|line| line.starts_with("user sakshi ")).unwrap();
    let digest = user.split(' ').find(|word| word.starts_with('#')).unwrap();
    let server = super::server::RedisServer::start(&[&user.replace(digest, ">known-here")]);
    let servers = standalone(&format!("redis://sakshi:known-here@{}/", server.address()));
    let test = super::connected(server, servers, RETENTION);
    run(async {
        used_for_everything(&test).await;
        let gone = crate::redis::NodeId::generate();
        test.store.shared.take_over(&gone).await.unwrap();
        test.store().leave().await.unwrap();
    });
}

#[test]
fn a_used_store_has_run_every_script() {
    let test = test_store();
    run(async {
        used_for_everything(&test).await;
        leases(&test).await;
        let store = test.store();
        store.list_clients(ALL).await.unwrap();
        let nobody = crate::redis::NodeId::generate();
        let shared = &test.store.shared;
        shared.replace(&DeadNode { node: nobody, heartbeat: Some("1".into()) }).await.unwrap();
        shared.heartbeat(false).await.unwrap();
        shared.holders().await.unwrap();
        let (pending, _) = completed(&test, &client_with(&test, 1).await).await;
        store.load_transaction(pending.id).await.unwrap();
        let patch = ClientPatch { suspended: Some(true), events_per_app: Some(Some(1)), ..ClientPatch::default() };
        store.patch_client(pending.client.clone(), patch, test.now()).await.unwrap();
        let client = client_with(&test, 2).await;
        let event = created(&test, event(&test, &client, 2)).await;
        let guest = registered(&test, &event).await;
        store.erase(ErasureSubject::Transaction(guest)).await.unwrap();
        store.erase(ErasureSubject::Event(event.id)).await.unwrap();
    });
    let called = test.store.shared.faults.called.lock().unwrap().clone();
    // Heartbeats, dead nodes, moves and losses have tests of their own.
    let of_nodes = ["beat", "forget_node", "holders", "put_moved", "put_queue", "assign_queue", "load_queue", "accept_loss", "note_loss"];
    let all: BTreeSet<_> = script::ALL.iter().map(|script| script.name).filter(|name| !of_nodes.contains(name)).collect();
    assert!(called.is_superset(&all), "{:?}", all.difference(&called).collect::<Vec<_>>());
}

#[test]
fn nothing_personal_or_secret_is_readable_in_redis() {
    // What is written to the disk is what is in memory, when it is not compressed.
    let test = test_store_on(&["rdbcompression no"], RETENTION);
    let vault = std::sync::Arc::clone(&test.store.shared.vault);
    run(async {
        used_for_everything(&test).await;
        let client = client_with(&test, 1).await;
        let pending = opened(&test, &client).await;
        let claims = serde_json::json!({"residentName": "Planted Resident"});
        let outcome: Outcome = serde_json::from_value(serde_json::json!({"verified": claims})).unwrap();
        let sealed = vault.seal(pending.id.as_bytes(), &serde_json::to_vec(&outcome).unwrap());
        let complete = CompleteTransaction { outcome: sealed, ..completing(pending.id, 1) };
        assert!(matches!(test.store().complete_transaction(complete).await, Ok(CompleteOutcome::Completed { .. })));
        let moved = test.store().move_credits(client, crate::conformance::fixture::grant(1, "a reference in the clear")).await;
        assert!(matches!(moved, Ok(CreditOutcome::Moved(_))));
    });
    test.server.answer(&["SAVE"]);
    let directory = test.server.answer(&["CONFIG", "GET", "dir"]).field("dir").unwrap();
    let file = std::fs::read(std::path::Path::new(&directory).join("dump.rdb")).unwrap();
    let has = |planted: &str| file.windows(planted.len()).any(|window| window == planted.as_bytes());
    // What may be read is found, so that what is not found is not there.
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
        "key=1",
    ] {
        assert!(!has(planted), "{planted}");
    }
}
