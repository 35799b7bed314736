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

use super::models::{InitOp, InitResponse, TransactionOp, TransactionResponse};
use super::order::Fact;
use super::round::{Round, pause};

/// The people who answer. The number of an answer is the index of its person, or [`DECLINED`].
pub(crate) const PEOPLE: [&str; 5] = ["asha", "vikram", "meena", "kabir", "rohan"];
/// Number of the answer of a person who declines.
const DECLINED: u8 = PEOPLE.len() as u8;
/// Polls of one process for one transaction.
const POLLS: u64 = 4;
/// Concurrent processes that use the same idempotency key.
const RIVALS: u64 = 3;

/// Opens transactions one after another. Several concurrent processes answer and poll each transaction.
pub(crate) async fn run_verifications(round: Arc<Round>, mut random: Random) {
    while round.is_running() {
        let key = format!("{:016x}", random.next());
        let body = json!({"claims": ["name"], "channel": "qr", "webhook_url": round.receiver.url("/hook")});
        let init = round.call(&round.rich_client, &mut random, || public::init(&body).once(&*key)).await;
        let Some((_, reply)) = init.reply else { continue };
        if reply.status != 200 {
            round.record_unexpected("init", &reply);
            continue;
        }
        let opened = Opened::read(&reply.body);
        let first = random.below(PEOPLE.len() as u64) as u8;
        let second = if random.below(3) == 0 { DECLINED } else { (first + 1) % DECLINED };
        let mut own_random = || Random::from_seed(random.next());
        let (answers, polls) = ([own_random(), own_random()], [own_random(), own_random()]);
        let is_erased = random.below(6) == 0;
        tokio::join!(
            join_all(
                [first, second]
                    .into_iter()
                    .zip(answers)
                    .map(|(number, random)| post_answer(&round, &opened, number, random))
            ),
            join_all(polls.into_iter().map(|random| poll(&round, &opened.txn, POLLS, random))),
            async {
                if is_erased {
                    erase(&round, &opened.txn, &mut random).await;
                }
            },
        );
    }
}

/// Posts the answer with this number to the callback, once or twice, and records the responses.
async fn post_answer(round: &Round, opened: &Opened, number: u8, mut random: Random) {
    pause(&mut random, 60).await;
    let process = round.next_process();
    let body = match PEOPLE.get(usize::from(number)) {
        Some(person) => CallbackFormat::Json.success(&opened.txn, &round.identity_app.credential(opened, person)),
        None => CallbackFormat::Json.failure(&opened.txn, REJECTED, "User Reject"),
    };
    let post = |address: &Addresses| {
        let request = round.http.post(address.public(&opened.callback_path()));
        request.header(CONTENT_TYPE, CallbackFormat::Json.content_type()).body(body.clone())
    };
    for _ in 0..1 + random.below(2) {
        let answer = round.retry_or_give_up(&mut random, post).await;
        round.record(
            (&round.histories.transactions, &opened.txn),
            (process, TransactionOp::Answer(number)),
            answer,
            |reply| match reply.status {
                200 => Some(TransactionResponse::Accepted),
                409 => Some(TransactionResponse::Conflict),
                404 => Some(TransactionResponse::Missing),
                _ => None,
            },
        );
    }
}

/// Polls a transaction `times` times, and records the responses.
pub(crate) async fn poll(round: &Round, txn: &str, times: u64, mut random: Random) {
    let process = round.next_process();
    for _ in 0..times {
        pause(&mut random, 60).await;
        let is_long_poll = random.below(3) == 0;
        let path = public::result_path(txn) + if is_long_poll { "?wait=1" } else { "" };
        let answer = round.call(&round.rich_client, &mut random, || Call::<Value>::new(Method::GET, &*path)).await;
        round.record_reading((&round.histories.transactions, txn), (process, TransactionOp::Poll), answer, |reply| {
            match reply.status {
                200 => {
                    let outcome = outcome(&reply.body)?;
                    if outcome != TransactionResponse::Pending {
                        round.histories.results.lock().unwrap().insert(txn.to_owned(), reply.body.clone());
                    }
                    Some(outcome)
                }
                404 => Some(TransactionResponse::Missing),
                _ => None,
            }
        });
    }
}

/// Returns the outcome in the body of a result or a webhook; `None` if there is none.
pub(crate) fn outcome(body: &Value) -> Option<TransactionResponse> {
    let data = &body["data"];
    if data["pending"] == true {
        return Some(TransactionResponse::Pending);
    }
    if data["error_code"] == REJECTED {
        return Some(TransactionResponse::Outcome(DECLINED));
    }
    let name = data["verified_claims"]["residentName"].as_str()?;
    let number =
        PEOPLE.iter().position(|person| Resident::find(person).is_some_and(|resident| resident.name == name))?;
    Some(TransactionResponse::Outcome(u8::try_from(number).ok()?))
}

/// Erases a transaction as an operator.
async fn erase(round: &Round, txn: &str, random: &mut Random) {
    pause(random, 200).await;
    let process = round.next_process();
    let body = json!({"kind": "transaction", "id": txn});
    let answer = round.call_operator(random, || Call::<Value>::post("/admin/v1/erasures", &body)).await;
    round.record((&round.histories.transactions, txn), (process, TransactionOp::Erase), answer, |reply| {
        (reply.status == 200).then_some(TransactionResponse::Erased)
    });
}

/// Runs races for one idempotency key after another. A quarter of the requests has another body.
pub(crate) async fn run_key_races(round: Arc<Round>, mut random: Random) {
    while round.is_running() {
        let key = format!("{:016x}", random.next());
        let rivals: Vec<_> =
            (0..RIVALS).map(|_| (u8::from(random.below(4) == 0), Random::from_seed(random.next()))).collect();
        join_all(rivals.into_iter().map(|(body, random)| init_with_key(&round, &key, body, random))).await;
    }
}

/// Sends the init with the body of this number under a key, twice.
async fn init_with_key(round: &Round, key: &str, body: u8, mut random: Random) {
    let process = round.next_process();
    for _ in 0..2 {
        pause(&mut random, 40).await;
        let terms = json!({"claims": [if body == 0 { "name" } else { "dob" }], "channel": "qr"});
        let request = |address: &Addresses| {
            round.api(&round.rich_client, address).request(public::init(&terms).once(key)).expect("a body")
        };
        let answer = round.retry_or_give_up(&mut random, request).await;
        round.record((&round.histories.keys, key), (process, InitOp(body)), answer, |reply| match reply.status {
            200 => {
                let txn: uuid::Uuid = reply.body["txnId"].as_str()?.parse().ok()?;
                Some(InitResponse::Opened(txn.as_fields().0))
            }
            422 => Some(InitResponse::Reused),
            _ => None,
        });
    }
}

/// Records the webhooks as facts about their transactions; returns their bodies by transaction. `began` is the begin of
/// the round on the receiver's clock and in the time of the run.
pub(crate) fn record_webhooks(round: &Round, began: (Timestamp, Duration)) -> Vec<(String, Value)> {
    let process = round.next_process();
    let mut bodies = Vec::new();
    for request in round.receiver.received() {
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        let txn = body["data"]["txn_id"].as_str().expect("a transaction").to_owned();
        // The receiver's times are whole milliseconds.
        let arrived = began.1 + request.at.since(began.0) + Duration::from_millis(2);
        match outcome(&body) {
            Some(ret) => {
                let fact = Fact { process, op: TransactionOp::Webhook, invoked: began.1, ended: Some((arrived, ret)) };
                // The transactions of guests have no history.
                if round.histories.transactions.has(&txn) {
                    round.histories.transactions.add(&txn, fact);
                }
            }
            None => round.add_problem(format!("a webhook without an outcome: {body}")),
        }
        bodies.push((txn, body));
    }
    bodies
}
