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

/// People who answer: an answer has the number of its person; the next number is the refusal.
pub(crate) const PEOPLE: [&str; 5] = ["asha", "vikram", "meena", "kabir", "rohan"];
/// The answer of a person who declines.
const DECLINED: u8 = PEOPLE.len() as u8;
/// Polls of one process for one transaction.
const POLLS: u64 = 4;
/// Requests with one idempotency key.
const RIVALS: u64 = 3;

/// Opens transactions one after another; several processes answer and poll each at once.
pub(crate) async fn verify(scene: Arc<Scene>, mut random: Random) {
    while scene.goes_on() {
        let key = format!("{:016x}", random.next());
        let body = json!({"claims": ["name"], "channel": "qr", "webhook_url": scene.receiver.url("/hook")});
        let init = scene.call(&scene.client, &mut random, || public::init(&body).once(&*key)).await;
        let Some((_, reply)) = init.reply else { continue };
        if reply.status != 200 {
            scene.unexpected("init", &reply);
            continue;
        }
        let opened = Opened::read(&reply.body);
        let first = random.below(PEOPLE.len() as u64) as u8;
        let second = if random.below(3) == 0 { DECLINED } else { (first + 1) % DECLINED };
        let mut of_its_own = || Random::from_seed(random.next());
        let (answers, polls) = ([of_its_own(), of_its_own()], [of_its_own(), of_its_own()]);
        let erases = random.below(6) == 0;
        tokio::join!(
            join_all(
                [first, second]
                    .into_iter()
                    .zip(answers)
                    .map(|(number, random)| answer(&scene, &opened, number, random))
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

async fn answer(scene: &Scene, opened: &Opened, number: u8, mut random: Random) {
    pause(&mut random, 60).await;
    let process = scene.process();
    let body = match PEOPLE.get(usize::from(number)) {
        Some(person) => CallbackFormat::Json.success(&opened.txn, &scene.identity_app.credential(opened, person)),
        None => CallbackFormat::Json.failure(&opened.txn, REJECTED, "User Reject"),
    };
    let post = |door: &Addresses| {
        let request = scene.http.post(door.public(&opened.callback_path()));
        request.header(CONTENT_TYPE, CallbackFormat::Json.content_type()).body(body.clone())
    };
    for _ in 0..1 + random.below(2) {
        let answered = scene.try_hard(&mut random, post).await;
        scene.record(
            (&scene.histories.transactions, &opened.txn),
            (process, TransactionOp::Answer(number)),
            answered,
            |reply| match reply.status {
                200 => Some(TransactionRet::Accepted),
                409 => Some(TransactionRet::Other),
                404 => Some(TransactionRet::Missing),
                _ => None,
            },
        );
    }
}

/// Polls `times` times.
pub(crate) async fn poll(scene: &Scene, txn: &str, times: u64, mut random: Random) {
    let process = scene.process();
    for _ in 0..times {
        pause(&mut random, 60).await;
        let waits = random.below(3) == 0;
        let path = public::result_path(txn) + if waits { "?wait=1" } else { "" };
        let answered = scene.call(&scene.client, &mut random, || Call::<Value>::new(Method::GET, &*path)).await;
        scene.record_reading((&scene.histories.transactions, txn), (process, TransactionOp::Poll), answered, |reply| {
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
    let process = scene.process();
    let body = json!({"kind": "transaction", "id": txn});
    let answered = scene.operate(random, || Call::<Value>::post("/admin/v1/erasures", &body)).await;
    scene.record((&scene.histories.transactions, txn), (process, TransactionOp::Erase), answered, |reply| {
        (reply.status == 200).then_some(TransactionRet::Erased)
    });
}

/// Races for one idempotency key after another.
pub(crate) async fn race(scene: Arc<Scene>, mut random: Random) {
    while scene.goes_on() {
        let key = format!("{:016x}", random.next());
        let rivals: Vec<_> =
            (0..RIVALS).map(|_| (u8::from(random.below(4) == 0), Random::from_seed(random.next()))).collect();
        join_all(rivals.into_iter().map(|(body, random)| init(&scene, &key, body, random))).await;
    }
}

async fn init(scene: &Scene, key: &str, body: u8, mut random: Random) {
    let process = scene.process();
    for _ in 0..2 {
        pause(&mut random, 40).await;
        let terms = json!({"claims": [if body == 0 { "name" } else { "dob" }], "channel": "qr"});
        let request =
            |door: &Addresses| scene.api(&scene.client, door).request(public::init(&terms).once(key)).expect("a body");
        let answered = scene.try_hard(&mut random, request).await;
        scene.record((&scene.histories.keys, key), (process, InitOp(body)), answered, |reply| match reply.status {
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
pub(crate) fn webhooks(scene: &Scene, began: (Timestamp, Duration)) -> Vec<(String, Value)> {
    let process = scene.process();
    let mut bodies = Vec::new();
    for request in scene.receiver.received() {
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        let txn = body["data"]["txn_id"].as_str().expect("a transaction").to_owned();
        // The receiver's times are whole milliseconds.
        let arrived = began.1 + request.at.since(began.0) + Duration::from_millis(2);
        match outcome(&body) {
            Some(ret) => {
                let fact = Fact { process, op: TransactionOp::Webhook, invoked: began.1, ended: Some((arrived, ret)) };
                // Guests' transactions have no model of their own.
                if scene.histories.transactions.has(&txn) {
                    scene.histories.transactions.add(&txn, fact);
                }
            }
            None => scene.problem(format!("a webhook without an outcome: {body}")),
        }
        bodies.push((txn, body));
    }
    bodies
}
