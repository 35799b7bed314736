//! Processes that open, answer, poll and erase verifications, and race for idempotency keys.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use sakshi_client::judge::journal::REJECTED;
use sakshi_client::{Call, public};
use sakshi_domain::time::Timestamp;
use sakshi_kit::backend::Opened;
use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::node::Addresses;
use sakshi_kit::random::Random;
use sakshi_sandbox::residents::Resident;
use serde_json::{Value, json};

use super::models::{InitOp, InitRet, TransactionOp, TransactionRet};
use super::order::Fact;
use super::scene::{Scene, pause};

/// The people who answer. The number of an answer is the index of its person, or [`DECLINED`].
pub(crate) const PEOPLE: [&str; 5] = ["asha", "vikram", "meena", "kabir", "rohan"];
/// Number of the answer of a person who declines.
const DECLINED: u8 = PEOPLE.len() as u8;
/// Polls of one process for one transaction.
const POLLS: u64 = 4;
/// Requests with one idempotency key.
const RIVALS: u64 = 3;

/// Opens transactions one after another. Several concurrent processes answer and poll each transaction.
pub(crate) async fn run_verifications(scene: Arc<Scene>, mut random: Random) {
    while scene.is_running() {
        let key = format!("{:016x}", random.next());
        let body = json!({"claims": ["name"], "channel": "qr", "webhook_url": scene.receiver.url("/hook")});
        let init = scene.call(&scene.client, &mut random, || public::init(&body).once(&*key)).await;
        let Some((_, reply)) = init.reply else { continue };
        if reply.status != 200 {
            scene.record_unexpected("init", &reply);
            continue;
        }
        let opened = Opened::read(&reply.body);
        let first = random.below(PEOPLE.len() as u64) as u8;
        let second = if random.below(3) == 0 { DECLINED } else { (first + 1) % DECLINED };
        let mut own_random = || Random::from_seed(random.next());
        let (answers, polls) = ([own_random(), own_random()], [own_random(), own_random()]);
        let erases = random.below(6) == 0;
        tokio::join!(
            join_all(
                [first, second]
                    .into_iter()
                    .zip(answers)
                    .map(|(number, random)| post_answer(&scene, &opened, number, random))
            ),
            join_all(polls.into_iter().map(|random| poll(&scene, &opened.txn, POLLS, random))),
            async {
                if erases {
                    erase(&scene, &opened.txn, &mut random).await;
                }
            },
        );
    }
}

async fn post_answer(scene: &Scene, opened: &Opened, number: u8, mut random: Random) {
    pause(&mut random, 60).await;
    let process = scene.next_process();
    let body = match PEOPLE.get(usize::from(number)) {
        Some(person) => CallbackFormat::Json.success(&opened.txn, &scene.identity_app.credential(opened, person)),
        None => CallbackFormat::Json.failure(&opened.txn, REJECTED, "User Reject"),
    };
    let post = |address: &Addresses| {
        let request = scene.http.post(address.public(&opened.callback_path()));
        request.header(CONTENT_TYPE, CallbackFormat::Json.content_type()).body(body.clone())
    };
    for _ in 0..1 + random.below(2) {
        let answer = scene.retry_or_give_up(&mut random, post).await;
        scene.record(
            (&scene.histories.transactions, &opened.txn),
            (process, TransactionOp::Answer(number)),
            answer,
            |reply| match reply.status {
                200 => Some(TransactionRet::Accepted),
                409 => Some(TransactionRet::Conflict),
                404 => Some(TransactionRet::Missing),
                _ => None,
            },
        );
    }
}

/// Polls a transaction `times` times.
pub(crate) async fn poll(scene: &Scene, txn: &str, times: u64, mut random: Random) {
    let process = scene.next_process();
    for _ in 0..times {
        pause(&mut random, 60).await;
        let waits = random.below(3) == 0;
        let path = public::result_path(txn) + if waits { "?wait=1" } else { "" };
        let answer = scene.call(&scene.client, &mut random, || Call::<Value>::new(Method::GET, &*path)).await;
        scene.record_reading((&scene.histories.transactions, txn), (process, TransactionOp::Poll), answer, |reply| {
            match reply.status {
                200 => {
                    let outcome = outcome(&reply.body)?;
                    if outcome != TransactionRet::Pending {
                        scene.histories.results.lock().unwrap().insert(txn.to_owned(), reply.body.clone());
                    }
                    Some(outcome)
                }
                404 => Some(TransactionRet::Missing),
                _ => None,
            }
        });
    }
}

/// Returns the outcome in the body of a result or a webhook.
pub(crate) fn outcome(body: &Value) -> Option<TransactionRet> {
    let data = &body["data"];
    if data["pending"] == true {
        return Some(TransactionRet::Pending);
    }
    if data["error_code"] == REJECTED {
        return Some(TransactionRet::Outcome(DECLINED));
    }
    let name = data["verified_claims"]["residentName"].as_str()?;
    let number =
        PEOPLE.iter().position(|person| Resident::find(person).is_some_and(|resident| resident.name == name))?;
    Some(TransactionRet::Outcome(u8::try_from(number).ok()?))
}

async fn erase(scene: &Scene, txn: &str, random: &mut Random) {
    pause(random, 200).await;
    let process = scene.next_process();
    let body = json!({"kind": "transaction", "id": txn});
    let answer = scene.call_operator(random, || Call::<Value>::post("/admin/v1/erasures", &body)).await;
    scene.record((&scene.histories.transactions, txn), (process, TransactionOp::Erase), answer, |reply| {
        (reply.status == 200).then_some(TransactionRet::Erased)
    });
}

/// Races for one idempotency key after another.
pub(crate) async fn run_key_races(scene: Arc<Scene>, mut random: Random) {
    while scene.is_running() {
        let key = format!("{:016x}", random.next());
        let rivals: Vec<_> =
            (0..RIVALS).map(|_| (u8::from(random.below(4) == 0), Random::from_seed(random.next()))).collect();
        join_all(rivals.into_iter().map(|(body, random)| init_with_key(&scene, &key, body, random))).await;
    }
}

async fn init_with_key(scene: &Scene, key: &str, body: u8, mut random: Random) {
    let process = scene.next_process();
    for _ in 0..2 {
        pause(&mut random, 40).await;
        let terms = json!({"claims": [if body == 0 { "name" } else { "dob" }], "channel": "qr"});
        let request = |address: &Addresses| {
            scene.api(&scene.client, address).request(public::init(&terms).once(key)).expect("a body")
        };
        let answer = scene.retry_or_give_up(&mut random, request).await;
        scene.record((&scene.histories.keys, key), (process, InitOp(body)), answer, |reply| match reply.status {
            200 => {
                let txn: uuid::Uuid = reply.body["txnId"].as_str()?.parse().ok()?;
                Some(InitRet::Opened(txn.as_fields().0))
            }
            422 => Some(InitRet::Reused),
            _ => None,
        });
    }
}

/// Records the webhooks as facts about their transactions; returns their bodies by transaction.
pub(crate) fn record_webhooks(scene: &Scene, began: (Timestamp, Duration)) -> Vec<(String, Value)> {
    let process = scene.next_process();
    let mut bodies = Vec::new();
    for request in scene.receiver.received() {
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        let txn = body["data"]["txn_id"].as_str().expect("a transaction").to_owned();
        // The receiver's times are whole milliseconds.
        let arrived = began.1 + request.at.since(began.0) + Duration::from_millis(2);
        match outcome(&body) {
            Some(ret) => {
                let fact = Fact { process, op: TransactionOp::Webhook, invoked: began.1, ended: Some((arrived, ret)) };
                // The transactions of guests have no history.
                if scene.histories.transactions.has(&txn) {
                    scene.histories.transactions.add(&txn, fact);
                }
            }
            None => scene.add_problem(format!("a webhook without an outcome: {body}")),
        }
        bodies.push((txn, body));
    }
    bodies
}
