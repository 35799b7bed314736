//! Servers with another schema number: opening them, writes of a next-release node before the upgrade is finished, and
//! nodes that are frozen meanwhile.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::ids::ClientId;

use super::server::groups::RedisCluster;
use super::{RedisTestStore, connected, options, standalone, test_store};
use crate::conformance::fixture::{RETENTION, app, client_with, completed, grant};
use crate::conformance::next_schema::{self, is_walked_up, kinds, of, records};
use crate::conformance::{TestStore, run};
use crate::engine::redis::{RedisEngine, name};
use crate::engine::{Applied, Batch, Engine as _, Guard, Op, Query, Value};
use crate::records::client;
use crate::redis::nodes::membership::HEARTBEAT_INTERVAL;
use crate::redis::shared::Shared;
use crate::redis::{FinishState, RedisOptions, RedisServers, RedisStore, RedisTopology, without_tasks};
use crate::{FIRST, OpenError, SCHEMA, Schema, StoreError};

fn as_node<S>(test: &RedisTestStore<S>, servers: RedisServers, schema: &'static Schema) -> RedisOptions {
    RedisOptions { schema, ..options(servers, Arc::clone(&test.clock), RETENTION) }
}

fn on(test: &RedisTestStore, schema: &'static Schema) -> RedisOptions {
    as_node(test, standalone(&test.server.url()), schema)
}

fn engine(store: &RedisStore) -> RedisEngine {
    RedisEngine::new(Arc::clone(&store.shared))
}

/// Starts a node of this release, and one of the next, that both know the number and then send no heartbeat.
async fn frozen(servers: impl Fn(&'static Schema) -> RedisOptions, forget: impl Fn(&[&str])) -> [Arc<Shared>; 2] {
    let mut nodes = Vec::new();
    for schema in [&SCHEMA, next_schema::next()] {
        let node = without_tasks(servers(schema));
        node.join().await.unwrap();
        forget(&["ZREM", "{nodes}beats", &node.node.to_string()]);
        nodes.push(node);
    }
    nodes.try_into().unwrap_or_else(|_| panic!("two nodes"))
}

/// Returns a batch as written by a node of the next release: a new field, and a record of a new kind.
fn newer(client: &ClientId, words: &str) -> Batch {
    let key = of(&client::client(client), kinds().client);
    let put = Op::Put(of(&key, kinds().motto), vec![("words", words.into())]);
    Batch::new(
        vec![Guard::Present(key.clone())],
        vec![put, Op::Set(key, vec![("tier", words.into()), ("name", words.into())])],
    )
}

/// Returns the fields that the next release adds, as it reads them.
async fn seen(store: &RedisStore, client: &ClientId) -> [Option<Value>; 3] {
    let key = of(&client::client(client), kinds().client);
    let mut found =
        engine(store).read(vec![Query::Record(key.clone()), Query::Record(of(&key, kinds().motto))]).await.unwrap();
    let (record, motto) = (found.record().unwrap().unwrap(), found.record().unwrap());
    let field = |name| record.fields.get(name).cloned();
    [field("tier"), field("name"), motto.and_then(|motto| motto.fields.get("words").cloned())]
}

async fn refusal(test: &RedisTestStore, schema: &'static Schema) -> String {
    let before = test.server.answer(&["DBSIZE"]).text();
    let refused = RedisStore::open(on(test, schema)).await.err().unwrap();
    assert!(matches!(refused, StoreError::OtherSchema(_)), "{refused}");
    assert_eq!(crate::redis::may_open(on(test, schema)).await, Err(OpenError::Refused(refused.clone())));
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
        for (found, sentence) in [
            (&next, "of a newer release"),
            (&walking, "of a newer release"),
            (&(FIRST - 1).to_string(), "before the first"),
        ] {
            test.server.answer(&["SET", "{canary}schema", found]);
            let refused = refusal(&test, &SCHEMA).await;
            assert!(refused.contains(sentence), "{refused}");
        }
        test.server.answer(&["DEL", "{canary}schema"]);
        assert!(refusal(&test, &SCHEMA).await.contains("before the first release"));
        test.server.answer(&["SET", "{canary}schema", &number]);
        RedisStore::open(on(&test, &SCHEMA)).await.unwrap();
        // A release does not skip the one between.
        assert!(refusal(&test, next_schema::after_next()).await.contains("upgrade to that one first"));
        test.server.answer(&["SET", "{canary}schema", &walking]);
        assert!(refusal(&test, next_schema::after_next()).await.contains("finish-upgrade"));
    });
}

#[test]
fn two_releases_work_side_by_side_until_the_upgrade_is_finished() {
    let test = test_store();
    run(async {
        let client = client_with(&test, 9).await;
        assert!(test.store().create_app(app(&test, &client)).await.unwrap());
        let next = RedisStore::open(on(&test, next_schema::next())).await.unwrap();
        engine(&next).commit(vec![newer(&client, "early")]).await.unwrap();
        assert_eq!(seen(&next, &client).await, [None, Some("early".into()), None], "what is newer is left out");
        next.move_credits(client.clone(), grant(1, "by the next release")).await.unwrap();
        completed(&test, &client).await;
        assert_eq!(
            (test.store().balance(client.clone()).await, next.balance(client.clone()).await),
            (Ok(Some(9)), Ok(Some(9)))
        );

        let this = test.store.shared.node;
        assert_eq!(next.finish_upgrade().await.unwrap().state, FinishState::Behind(vec![this]));
        let mine = test.store().finish_upgrade().await.unwrap();
        assert_eq!((mine.state, mine.schema), (FinishState::Nothing, SCHEMA.number()));
        // A rollback means starting this release again.
        next.leave().await.unwrap();
        let back = RedisStore::open(on(&test, &SCHEMA)).await.unwrap();
        let next = RedisStore::open(on(&test, next_schema::next())).await.unwrap();
        back.leave().await.unwrap();
        test.store().leave().await.unwrap();

        let finished = next.finish_upgrade().await.unwrap();
        assert_eq!((finished.state, finished.changed), (FinishState::Finished, 2));
        is_walked_up(&engine(&next), &client).await;
        assert_eq!(next.finish_upgrade().await.unwrap().state, FinishState::Nothing);
        engine(&next).commit(vec![newer(&client, "late")]).await.unwrap();
        assert_eq!(seen(&next, &client).await, ["late"; 3].map(|text| Some(text.into())));
        assert!(refusal(&test, &SCHEMA).await.contains("of a newer release"));
        assert_eq!(next.balance(client).await, Ok(Some(9)));
    });
}

/// Checks the race on these servers: nodes that were frozen while the upgrade was finished resume and write.
async fn wake_up<S>(test: &RedisTestStore<S>, servers: impl Fn() -> RedisServers, forget: impl Fn(&[&str])) {
    let client = client_with(test, 9).await;
    let nodes = |schema| as_node(test, servers(), schema);
    let [this, next] = frozen(nodes, &forget).await;
    test.store().leave().await.unwrap();
    let finisher = RedisStore::open(nodes(next_schema::next())).await.unwrap();
    assert_eq!(finisher.finish_upgrade().await.unwrap().state, FinishState::Finished);

    let rename = |node: &Arc<Shared>| {
        let key = client::client(&client);
        RedisEngine::new(Arc::clone(node))
            .commit(vec![Batch::new(vec![], vec![Op::Set(key, vec![("name", "an old name".into())])])])
    };
    let refused = rename(&this).await;
    assert!(matches!(&refused, Err(StoreError::OtherSchema(why)) if why.contains("newer release")), "{refused:?}");
    is_walked_up(&engine(&finisher), &client).await;
    // From then on it sends nothing, not even a heartbeat.
    let asked = RedisEngine::new(Arc::clone(&this)).read(vec![Query::Record(client::client(&client))]).await;
    assert!(matches!(asked, Err(StoreError::OtherSchema(_))));
    assert!(matches!(this.check().await, Err(StoreError::OtherSchema(_))));
    assert!(this.heartbeat(false).await.is_err());

    let applied = RedisEngine::new(next).commit(vec![newer(&client, "awake")]).await.unwrap();
    assert!(matches!(applied[..], [Applied::Done { .. }]));
    assert_eq!(seen(&finisher, &client).await, ["awake"; 3].map(|text| Some(text.into())));
}

#[test]
fn a_node_frozen_during_the_upgrade_writes_no_old_record() {
    let test = test_store();
    run(wake_up(&test, || standalone(&test.server.url()), |command| drop(test.server.answer(command))));
}

#[test]
fn a_node_frozen_during_the_upgrade_of_a_cluster_writes_no_old_record() {
    let cluster = RedisCluster::start(0, &[]);
    let servers = || RedisServers::new(&cluster.urls(), RedisTopology::Cluster).unwrap();
    let test = connected((), servers(), RETENTION);
    // The others answer that it is not theirs.
    let forget = |command: &[&str]| cluster.nodes().iter().for_each(|node| drop(node.ask(command)));
    run(wake_up(&test, servers, forget));
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
        let next = RedisStore::open(on(&test, next_schema::next())).await.unwrap();
        let step = next_schema::next().steps_from(number)[0].rewrites[0];
        for (key, record) in records(&engine(&next), kinds().client).await.into_iter().take(10) {
            let ops = (step.change)(&next.shared.vault, &key, &record).unwrap();
            engine(&next).commit(vec![Batch::new(vec![], ops)]).await.unwrap();
        }
        let finished = next.finish_upgrade().await.unwrap();
        assert_eq!((finished.state, finished.changed), (FinishState::Finished, 10));
        for client in clients {
            is_walked_up(&engine(&next), &client).await;
        }
    });
}

#[test]
fn a_record_that_changes_during_the_upgrade_is_rewritten_too() {
    let test = test_store();
    run(async {
        let client = client_with(&test, 500).await;
        test.store().leave().await.unwrap();
        let [one, other] = [(); 2].map(|()| RedisStore::open(on(&test, next_schema::next())));
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        let moves = async {
            for number in 0..50 {
                other.move_credits(client.clone(), grant(1, &format!("grant {number}"))).await.unwrap();
                engine(&other).commit(vec![newer(&client, "busy")]).await.unwrap();
            }
        };
        let (finished, ()) = tokio::join!(one.finish_upgrade(), moves);
        assert_eq!(finished.unwrap().state, FinishState::Finished);
        assert!(seen(&one, &client).await[0].is_some());
        assert_eq!(one.balance(client).await, Ok(Some(550)));
        assert!(one.audit().await.unwrap().iter().all(crate::Audit::is_clean));
    });
}

#[test]
fn unknown_fields_are_ignored_and_preserved() {
    let test = test_store();
    run(async {
        let client = client_with(&test, 5).await;
        let hash = String::from_utf8(name(&client::client(&client))).unwrap();
        test.server.answer(&["HSET", &hash, "tier", "first"]);
        completed(&test, &client).await;
        test.store().move_credits(client.clone(), grant(3, "more")).await.unwrap();
        assert_eq!(test.store().balance(client.clone()).await, Ok(Some(7)));
        assert_eq!(test.server.answer(&["HGET", &hash, "tier"]).text().as_deref(), Some("first"));
        // An entry with a value more.
        let ledger = String::from_utf8(name(&client::client(&client).of(&client::LEDGER))).unwrap();
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
        let other = RedisStore::open(on(&test, next_schema::next())).await.unwrap();
        let number = SCHEMA.number();
        test.server.answer(&["SET", "{canary}schema", &(number + 1).to_string()]);
        let begun = std::time::Instant::now();
        while other.shared.level().number() == number || test.store.shared.level().check().is_ok() {
            assert!(begun.elapsed() < HEARTBEAT_INTERVAL * 10);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        test.server.answer(&["SET", "{canary}schema", &number.to_string()]);
        // The store was restored, and this release continues.
        test.store().check().await.unwrap();
    });
}

/// Servers that lost everything get the number with the acceptance.
#[test]
fn accepting_a_loss_restores_the_schema_number() {
    let test = test_store();
    run(async {
        test.server.answer(&["FLUSHALL"]);
        assert!(matches!(test.store().check().await, Err(StoreError::DataLost(_))));
        test.store().accept_loss().await.unwrap();
        assert_eq!(test.server.answer(&["GET", "{canary}schema"]).text(), Some(SCHEMA.number().to_string()));
        RedisStore::open(on(&test, &SCHEMA)).await.unwrap();
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
        for found in [number.to_string(), format!("{} from {number}", number + 1)] {
            test.server.answer(&["SET", "{canary}schema", &found]);
            let moved =
                crate::move_to_directory(on(&test, next_schema::next()), &to.path().join("store"), |_, _| ()).await;
            assert!(matches!(&moved, Err(StoreError::OtherSchema(why)) if why.contains("finish-upgrade")), "{moved:?}");
        }
    });
}
