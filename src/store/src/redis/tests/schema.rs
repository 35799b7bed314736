//! Servers with another schema number: opening them, writes of a next-release node before the upgrade is finished, and
//! nodes that are frozen meanwhile.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::ids::ClientId;

use super::server::groups::RedisCluster;
use super::{RedisTestStore, connect_store, options, standalone, test_store};
use crate::conformance::fixture::{RETENTION, build_app, client_with, grant, open_and_complete};
use crate::conformance::next_schema::{self, assert_migrated, next_tables, records, with_table};
use crate::conformance::{TestStore, run};
use crate::engine::redis::{RedisEngine, name};
use crate::engine::{Applied, Batch, Engine as _, Guard, Op, Query, Value};
use crate::records::client;
use crate::redis::nodes::membership::{HEARTBEAT_INTERVAL, Presence};
use crate::redis::shared::Shared;
use crate::redis::{FinishState, RedisOptions, RedisServers, RedisStore, RedisTopology, build_shared};
use crate::{FIRST, OpenError, SCHEMA, Schema, StoreError};

fn options_with_schema<S>(test: &RedisTestStore<S>, servers: RedisServers, schema: &'static Schema) -> RedisOptions {
    RedisOptions { schema, ..options(servers, Arc::clone(&test.clock), RETENTION) }
}

fn node_options(test: &RedisTestStore, schema: &'static Schema) -> RedisOptions {
    options_with_schema(test, standalone(&test.server.url()), schema)
}

fn engine(store: &RedisStore) -> RedisEngine {
    RedisEngine::new(Arc::clone(&store.shared))
}

/// Starts a node of this release and one of the next. Both have read the number, and send no heartbeat any more.
async fn start_frozen_nodes(
    servers: impl Fn(&'static Schema) -> RedisOptions,
    forget: impl Fn(&[&str]),
) -> [Arc<Shared>; 2] {
    let mut nodes = Vec::new();
    for schema in [&SCHEMA, next_schema::next()] {
        let node = build_shared(servers(schema));
        node.join().await.unwrap();
        forget(&["ZREM", "{nodes}beats", &node.node.to_string()]);
        nodes.push(node);
    }
    nodes.try_into().unwrap_or_else(|_| panic!("two nodes"))
}

/// Returns a batch as written by a node of the next release: a new field, and a record of a new kind.
fn next_release_batch(client: &ClientId, words: &str) -> Batch {
    let key = with_table(&client::key_of_client(client), next_tables().client);
    let put = Op::Put(with_table(&key, next_tables().motto), vec![("words", words.into())]);
    Batch::new(
        vec![Guard::Present(key.clone())],
        vec![put, Op::Set(key, vec![("tier", words.into()), ("name", words.into())])],
    )
}

/// Returns the fields that the next release adds, as it reads them.
async fn next_release_fields(store: &RedisStore, client: &ClientId) -> [Option<Value>; 3] {
    let key = with_table(&client::key_of_client(client), next_tables().client);
    let mut found = engine(store)
        .read(vec![Query::Record(key.clone()), Query::Record(with_table(&key, next_tables().motto))])
        .await
        .unwrap();
    let (record, motto) = (found.record().unwrap().unwrap(), found.record().unwrap());
    let field = |name| record.fields.get(name).cloned();
    [field("tier"), field("name"), motto.and_then(|motto| motto.fields.get("words").cloned())]
}

/// Asserts that a node with this schema is refused and writes nothing. Returns the message.
async fn refusal_to_open(test: &RedisTestStore, schema: &'static Schema) -> String {
    let before = test.server.answer(&["DBSIZE"]).text();
    let refused = RedisStore::open(node_options(test, schema)).await.err().unwrap();
    assert!(matches!(refused, StoreError::OtherSchema(_)), "{refused}");
    assert_eq!(crate::redis::may_open(node_options(test, schema)).await, Err(OpenError::Refused(refused.clone())));
    assert_eq!(test.server.answer(&["DBSIZE"]).text(), before, "nothing is written");
    refused.to_string()
}

#[test]
fn servers_of_unknown_or_newer_releases_are_refused_with_a_reason() {
    let test = test_store();
    run(async {
        test.store.leave().await.unwrap();
        let number = SCHEMA.number().to_string();
        assert_eq!(test.server.answer(&["GET", "{canary}schema"]).text(), Some(number.clone()));
        let next = (SCHEMA.number() + 1).to_string();
        let walking = format!("{next} from {number}");
        for (stored, sentence) in [
            (&next, "of a newer release"),
            (&walking, "of a newer release"),
            (&(FIRST - 1).to_string(), "before the first"),
        ] {
            test.server.answer(&["SET", "{canary}schema", stored]);
            let refused = refusal_to_open(&test, &SCHEMA).await;
            assert!(refused.contains(sentence), "{refused}");
        }
        test.server.answer(&["DEL", "{canary}schema"]);
        assert!(refusal_to_open(&test, &SCHEMA).await.contains("before the first release"));
        test.server.answer(&["SET", "{canary}schema", &number]);
        RedisStore::open(node_options(&test, &SCHEMA)).await.unwrap();
        // A release does not skip the one between.
        assert!(refusal_to_open(&test, next_schema::after_next()).await.contains("upgrade to that one first"));
        test.server.answer(&["SET", "{canary}schema", &walking]);
        assert!(refusal_to_open(&test, next_schema::after_next()).await.contains("finish-upgrade"));
    });
}

#[test]
fn two_releases_work_side_by_side_until_the_upgrade_is_finished() {
    let test = test_store();
    run(async {
        let client = client_with(&test, 9).await;
        assert!(test.store().create_app(build_app(&test, &client)).await.unwrap());
        let next = RedisStore::open(node_options(&test, next_schema::next())).await.unwrap();
        engine(&next).commit(vec![next_release_batch(&client, "early")]).await.unwrap();
        assert_eq!(
            next_release_fields(&next, &client).await,
            [None, Some("early".into()), None],
            "new fields and tables are left out"
        );
        next.move_credits(client.clone(), grant(1, "by the next release")).await.unwrap();
        open_and_complete(&test, &client).await;
        assert_eq!(
            (test.store().balance(client.clone()).await, next.balance(client.clone()).await),
            (Ok(Some(9)), Ok(Some(9)))
        );

        let this_node = test.store.shared.node;
        assert_eq!(next.finish_upgrade().await.unwrap().state, FinishState::Behind(vec![this_node]));
        let own = test.store().finish_upgrade().await.unwrap();
        assert_eq!((own.state, own.schema), (FinishState::Nothing, SCHEMA.number()));
        // A rollback means starting this release again.
        next.leave().await.unwrap();
        let rolled_back = RedisStore::open(node_options(&test, &SCHEMA)).await.unwrap();
        let next = RedisStore::open(node_options(&test, next_schema::next())).await.unwrap();
        rolled_back.leave().await.unwrap();
        test.store().leave().await.unwrap();

        let finished = next.finish_upgrade().await.unwrap();
        assert_eq!((finished.state, finished.changed), (FinishState::Finished, 2));
        assert_migrated(&engine(&next), &client).await;
        assert_eq!(next.finish_upgrade().await.unwrap().state, FinishState::Nothing);
        engine(&next).commit(vec![next_release_batch(&client, "late")]).await.unwrap();
        assert_eq!(next_release_fields(&next, &client).await, ["late"; 3].map(|text| Some(text.into())));
        assert!(refusal_to_open(&test, &SCHEMA).await.contains("of a newer release"));
        assert_eq!(next.balance(client).await, Ok(Some(9)));
    });
}

/// Checks the race on these servers: nodes that were frozen during the upgrade resume and write.
async fn check_frozen_nodes<S>(test: &RedisTestStore<S>, servers: impl Fn() -> RedisServers, forget: impl Fn(&[&str])) {
    let client = client_with(test, 9).await;
    let nodes = |schema| options_with_schema(test, servers(), schema);
    let [this, next] = start_frozen_nodes(nodes, &forget).await;
    test.store().leave().await.unwrap();
    let finisher = RedisStore::open(nodes(next_schema::next())).await.unwrap();
    assert_eq!(finisher.finish_upgrade().await.unwrap().state, FinishState::Finished);

    let rename = |node: &Arc<Shared>| {
        let key = client::key_of_client(&client);
        RedisEngine::new(Arc::clone(node))
            .commit(vec![Batch::new(vec![], vec![Op::Set(key, vec![("name", "an old name".into())])])])
    };
    let refused = rename(&this).await;
    assert!(
        matches!(&refused, Err(StoreError::OtherSchema(reason)) if reason.contains("newer release")),
        "{refused:?}"
    );
    assert_migrated(&engine(&finisher), &client).await;
    // From then on the node sends nothing, not even a heartbeat.
    let read = RedisEngine::new(Arc::clone(&this)).read(vec![Query::Record(client::key_of_client(&client))]).await;
    assert!(matches!(read, Err(StoreError::OtherSchema(_))));
    assert!(matches!(this.check().await, Err(StoreError::OtherSchema(_))));
    assert!(this.heartbeat(Presence::Alive).await.is_err());

    let applied = RedisEngine::new(next).commit(vec![next_release_batch(&client, "awake")]).await.unwrap();
    assert!(matches!(applied[..], [Applied::Done { .. }]));
    assert_eq!(next_release_fields(&finisher, &client).await, ["awake"; 3].map(|text| Some(text.into())));
}

#[test]
fn a_node_frozen_during_the_upgrade_writes_no_old_record() {
    let test = test_store();
    run(check_frozen_nodes(&test, || standalone(&test.server.url()), |command| drop(test.server.answer(command))));
}

#[test]
fn a_node_frozen_during_the_upgrade_of_a_cluster_writes_no_old_record() {
    let cluster = RedisCluster::start(0, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let test = connect_store((), servers(), RETENTION);
    // The other nodes answer that the slot is not theirs.
    let forget = |command: &[&str]| cluster.nodes().iter().for_each(|node| drop(node.ask(command)));
    run(check_frozen_nodes(&test, servers, forget));
}

#[test]
fn another_node_finishes_an_interrupted_upgrade() {
    let test = test_store();
    run(async {
        let mut clients = Vec::new();
        for _ in 0..20 {
            clients.push(client_with(&test, 1).await);
        }
        test.store().leave().await.unwrap();
        // A node has raised the number, has changed half of the clients, and was killed.
        let number = SCHEMA.number();
        test.server.answer(&["SET", "{canary}schema", &format!("{} from {number}", number + 1)]);
        let next = RedisStore::open(node_options(&test, next_schema::next())).await.unwrap();
        let step = next_schema::next().steps_from(number)[0].rewrites[0];
        for (key, record) in records(&engine(&next), next_tables().client).await.into_iter().take(10) {
            let ops = (step.change)(&next.shared.vault, &key, &record).unwrap();
            engine(&next).commit(vec![Batch::new(vec![], ops)]).await.unwrap();
        }
        let finished = next.finish_upgrade().await.unwrap();
        assert_eq!((finished.state, finished.changed), (FinishState::Finished, 10));
        for client in clients {
            assert_migrated(&engine(&next), &client).await;
        }
    });
}

#[test]
fn a_record_that_changes_during_the_upgrade_is_rewritten_too() {
    let test = test_store();
    run(async {
        let client = client_with(&test, 500).await;
        test.store().leave().await.unwrap();
        let [first, second] = [(); 2].map(|()| RedisStore::open(node_options(&test, next_schema::next())));
        let (first, second) = (first.await.unwrap(), second.await.unwrap());
        let moves = async {
            for number in 0..50 {
                second.move_credits(client.clone(), grant(1, &format!("grant {number}"))).await.unwrap();
                engine(&second).commit(vec![next_release_batch(&client, "busy")]).await.unwrap();
            }
        };
        let (finished, ()) = tokio::join!(first.finish_upgrade(), moves);
        assert_eq!(finished.unwrap().state, FinishState::Finished);
        assert!(next_release_fields(&first, &client).await[0].is_some());
        assert_eq!(first.balance(client).await, Ok(Some(550)));
        assert!(first.audit().await.unwrap().iter().all(crate::Audit::is_clean));
    });
}

#[test]
fn unknown_fields_are_ignored_and_preserved() {
    let test = test_store();
    run(async {
        let client = client_with(&test, 5).await;
        let hash = String::from_utf8(name(&client::key_of_client(&client))).unwrap();
        test.server.answer(&["HSET", &hash, "tier", "first"]);
        open_and_complete(&test, &client).await;
        test.store().move_credits(client.clone(), grant(3, "more")).await.unwrap();
        assert_eq!(test.store().balance(client.clone()).await, Ok(Some(7)));
        assert_eq!(test.server.answer(&["HGET", &hash, "tier"]).text().as_deref(), Some("first"));
        // An entry with one more value.
        let ledger = String::from_utf8(name(&client::key_of_client(&client).in_table(&client::LEDGER))).unwrap();
        let add = "local e = cmsgpack.unpack(redis.call('LINDEX', KEYS[1], 0)) e[#e + 1] = 'more' redis.call('LSET', \
            KEYS[1], 0, cmsgpack.pack(e))";
        test.server.answer(&["EVAL", add, "1", &ledger]);
        let entries = test.store().ledger_entries(client, 0, 10).await.unwrap();
        assert_eq!(entries.total, 3);
        assert!(test.store().audit().await.unwrap().iter().all(crate::Audit::is_clean));
    });
}

#[test]
fn nodes_adopt_a_raised_number_with_their_heartbeats() {
    let test = test_store();
    run(async {
        let other = RedisStore::open(node_options(&test, next_schema::next())).await.unwrap();
        let number = SCHEMA.number();
        test.server.answer(&["SET", "{canary}schema", &(number + 1).to_string()]);
        let started = std::time::Instant::now();
        while other.shared.level().number() == number || test.store.shared.level().check().is_ok() {
            assert!(started.elapsed() < HEARTBEAT_INTERVAL * 10);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        test.server.answer(&["SET", "{canary}schema", &number.to_string()]);
        // The store was restored, and this release continues.
        test.store().check().await.unwrap();
    });
}

#[test]
fn accepting_a_loss_restores_the_schema_number() {
    let test = test_store();
    run(async {
        test.server.answer(&["FLUSHALL"]);
        assert!(matches!(test.store().check().await, Err(StoreError::DataLost(_))));
        test.store().accept_loss().await.unwrap();
        assert_eq!(test.server.answer(&["GET", "{canary}schema"]).text(), Some(SCHEMA.number().to_string()));
        RedisStore::open(node_options(&test, &SCHEMA)).await.unwrap();
    });
}

#[test]
fn a_store_is_not_moved_during_an_upgrade() {
    let test = test_store();
    run(async {
        client_with(&test, 1).await;
        test.store().leave().await.unwrap();
        let number = SCHEMA.number();
        let to = tempfile::tempdir().unwrap();
        for stored in [number.to_string(), format!("{} from {number}", number + 1)] {
            test.server.answer(&["SET", "{canary}schema", &stored]);
            let moved =
                crate::move_to_directory(node_options(&test, next_schema::next()), &to.path().join("store"), |_, _| ())
                    .await;
            assert!(
                matches!(&moved, Err(StoreError::OtherSchema(reason)) if reason.contains("finish-upgrade")),
                "{moved:?}"
            );
        }
    });
}
