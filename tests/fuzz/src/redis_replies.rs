//! Replies of Redis to every kind of call. The first byte chooses the call; a line is a reply or a part of one:
//! `-` nil, `:1` a number, `$x` and `+x` texts, `(` and `)` around a list, `{` and `}` around a map, `!` for OK,
//! `&1` for the id of a record, `~1x` for `x` sealed for that record.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::Value;
use sakshi_domain::clock::ManualClock;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::event::EventPatch;
use sakshi_domain::ids::OperatorId;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{AppPatch, ClientPatch, KeyDigest};
use sakshi_store::redis::{
    FakeReplies, NodeId, RedisOptions, RedisServers, RedisStore, RedisTopology, parse_masters, parse_notice,
};
use sakshi_store::{
    IdempotencyScope, Ownership, PageRequest, Retention, Rows, SCHEMA, SessionDigest, StoreError, Vault,
};
use tokio::runtime::{Builder, Runtime};

use crate::CANARY;
use crate::rows::{Ids, START, vault};

/// A Redis store that reads scripted replies.
struct ScriptedStore {
    store: RedisStore,
    fake: Arc<FakeReplies>,
    vault: Arc<Vault>,
    ids: Ids,
    runtime: Runtime,
}

fn scripted_store() -> &'static ScriptedStore {
    static STORE: OnceLock<ScriptedStore> = OnceLock::new();
    STORE.get_or_init(|| {
        let (vault, fake) = (vault(), Arc::<FakeReplies>::default());
        let options = RedisOptions {
            servers: RedisServers::new(&["redis://127.0.0.1:1"], RedisTopology::Standalone).unwrap(),
            wait_replicas: 0,
            node: NodeId::generate(),
            vault: Arc::clone(&vault),
            retention: Retention {
                expired: Duration::from_secs(600),
                events: Duration::from_secs(86_400),
                consents: Duration::from_secs(86_400),
            },
            max_waiting: 64,
            must_persist: false,
            waits_at_start: false,
            ownership: Ownership::new(Profile::Sandbox, "https://issuer.test"),
            schema: &SCHEMA,
            clock: Some(Arc::new(ManualClock::starting_at(START))),
        };
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        ScriptedStore { store: RedisStore::with_fake_replies(options, &fake), fake, vault, ids: Ids::new(), runtime }
    })
}

/// Reads the values in the lines until the line `end`; an open list or map ends with the input.
fn read_values(scripted: &ScriptedStore, lines: &mut dyn Iterator<Item = &[u8]>, depth: usize, end: u8) -> Vec<Value> {
    let mut values = Vec::new();
    while let Some(line) = lines.next() {
        let Some((&kind, rest)) = line.split_first() else { continue };
        let owner = |rest: &[u8]| {
            let owners = scripted.ids.owners();
            owners[rest.first().map_or(0, |byte| usize::from(*byte)) % owners.len()].clone()
        };
        values.push(match kind {
            _ if kind == end && depth > 0 => break,
            b'-' => Value::Nil,
            b':' => Value::Int(String::from_utf8_lossy(rest).trim().parse().unwrap_or(i64::MAX)),
            b'$' => Value::BulkString(rest.to_vec()),
            b'+' => Value::SimpleString(String::from_utf8_lossy(rest).into_owned()),
            b'!' => Value::Okay,
            b'(' if depth < 6 => Value::Array(read_values(scripted, lines, depth + 1, b')')),
            b'{' if depth < 6 => {
                let members = read_values(scripted, lines, depth + 1, b'}');
                Value::Map(members.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
            b'&' => Value::BulkString(owner(rest)),
            b'~' => Value::BulkString(
                scripted.vault.seal(&owner(rest), rest.get(1..).unwrap_or_default()).as_bytes().to_vec(),
            ),
            _ => Value::Boolean(true),
        });
    }
    values
}

/// Target: replies of Redis to a call, or a notice and an answer about masters.
pub(crate) fn replies(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let scripted = scripted_store();
    let replies = read_values(scripted, &mut rest.split(|byte| *byte == b'\n'), 0, 0);
    if kind == b'~' {
        let _ = parse_notice(rest);
        for topology in [RedisTopology::Cluster, RedisTopology::Sentinel { service: "s".to_owned() }] {
            let read = replies.first().and_then(|answer| parse_masters(&topology, answer));
            assert!(read.is_none_or(|read| !read.is_empty() && read.windows(2).all(|pair| pair[0].0 <= pair[1].0)));
        }
        return;
    }
    scripted.fake.set(replies);
    if let Err(error) = scripted.runtime.block_on(call(scripted, kind)) {
        assert!(!format!("{error} {error:?}").contains(CANARY), "an error echoes nothing");
    }
}

/// Makes the call that the letter chooses; `A` is the first.
async fn call(scripted: &ScriptedStore, kind: u8) -> Result<(), StoreError> {
    let ScriptedStore { store, ids, .. } = scripted;
    let (client, app) = (ids.client.clone(), ids.app.clone());
    let page = PageRequest { page: 1, page_size: 20 };
    match kind.wrapping_sub(b'A') % 32 {
        0 => store.load_transaction(ids.txn).await.map(drop),
        1 => store.load_transaction_with_app(ids.txn, app).await.map(drop),
        2 => store.load_client(client).await.map(drop),
        3 => store.list_clients(page).await.map(drop),
        4 => store.load_app(app).await.map(drop),
        5 => store.list_apps(client).await.map(drop),
        6 => store.list_keys(client).await.map(drop),
        7 => store.find_key(KeyDigest([9; 32]), app).await.map(drop),
        8 => store.load_event(ids.event).await.map(drop),
        9 => store.list_events(app, page).await.map(drop),
        10 => store.list_registrations(ids.event, Rows { offset: 0, limit: 10, max_bytes: 10_000 }).await.map(drop),
        11 => store.due_deliveries(None, None, 10).await.map(drop),
        12 => store.load_delivery(ids.txn.into()).await.map(drop),
        13 => store.backlog().await.map(drop),
        14 => store.balance(client).await.map(drop),
        15 => store.statement(client, page).await.map(drop),
        16 => store.audit().await.map(drop),
        17 => store.load_flow(ids.flow, app).await.map(drop),
        18 => store.flow_deliveries(ids.flow).await.map(drop),
        19 => store.lapsed_flows(10).await.map(drop),
        20 => store.load_session(SessionDigest([5; 32])).await.map(drop),
        21 => store.operators().await.map(drop),
        22 => store.audit_log(0, 10).await.map(drop),
        23 => store.refusals(app).await.map(drop),
        24 => store.webhook_urls(app).await.map(drop),
        25 => store.export_client(client).await.map(drop),
        26 => store
            .load_idempotent_answer(IdempotencyScope { partition: client.partition(), digest: [1; 32] })
            .await
            .map(drop),
        27 => store
            .move_credits(client, CreditMove { kind: EntryKind::Grant, amount: 1, reference: "r".into() })
            .await
            .map(drop),
        28 => store
            .patch_event(ids.event, app, EventPatch { is_active: Some(false), ..EventPatch::default() })
            .await
            .map(drop),
        29 => store
            .patch_client(client, ClientPatch { suspended: Some(true), ..ClientPatch::default() }, START)
            .await
            .map(drop),
        30 => store.patch_app(app, AppPatch::default()).await.map(drop),
        _ => {
            let operator: OperatorId = "op_4a5f0c1d2e3b49788695a4b3c2d1e0f9".parse().unwrap();
            store.revoke_operator(operator, START).await?;
            store.chosen_intent_key().await.map(drop)
        }
    }
}
