//! Processes that spend, grant and read the few credits of one client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::Method;
use sakshi_client::{Call, internal, public};
use sakshi_kit::random::Random;
use serde_json::{Value, json};

use super::models::{BankOp, BankRet};
use super::order::Fact;
use super::scene::{Reply, Scene, pause};

/// Maximum entries of a ledger, so that one page has them all.
const MOVEMENTS_MAX: u32 = 80;
/// Operations of one process.
const OPERATIONS: u64 = 25;

/// The reference of the first grant.
pub(crate) const OPENING: &str = "opening balance";

/// The client's movements, numbered from 1; the opening grant is 0.
#[derive(Default)]
pub(crate) struct Movements {
    count: AtomicU32,
    /// Numbers by the reference in the ledger; for a debit, the transaction.
    numbers: Mutex<BTreeMap<String, u32>>,
    /// Debits that may have been made although the last answer was a refusal.
    uncertain: Mutex<BTreeSet<u32>>,
}

/// Runs one process that moves and reads the client's credits.
pub(crate) async fn run_account(scene: Arc<Scene>, movements: Arc<Movements>, mut random: Random) {
    let process = scene.next_process();
    for _ in 0..OPERATIONS {
        if !scene.is_running() {
            return;
        }
        pause(&mut random, 120).await;
        match random.below(10) {
            0..5 => debit(&scene, &movements, process, &mut random).await,
            5 | 6 => grant(&scene, &movements, process, &mut random).await,
            7 | 8 => statement(&scene, process, &mut random).await,
            _ => balance(&scene, process, &mut random).await,
        }
    }
}

impl Movements {
    /// Returns the number of a new movement.
    fn number(&self) -> Option<u32> {
        let number = 1 + self.count.fetch_add(1, Ordering::Relaxed);
        (number < MOVEMENTS_MAX).then_some(number)
    }

    fn remember(&self, reference: &str, number: u32) {
        self.numbers.lock().unwrap().insert(reference.to_owned(), number);
    }
}

async fn debit(scene: &Scene, movements: &Movements, process: u32, random: &mut Random) {
    let Some(number) = movements.number() else { return };
    charge(scene, movements, (number, process), random).await;
}

async fn charge(scene: &Scene, movements: &Movements, (number, process): (u32, u32), random: &mut Random) {
    let (key, body) = (format!("debit-{number}"), json!({"claims": ["name"], "channel": "qr"}));
    let answer = scene.call(&scene.poor, random, || public::init(&body).once(&*key)).await;
    let is_refused = answer.reply.as_ref().is_none_or(|(_, reply)| reply.status == 402);
    if is_refused && answer.first.is_some() {
        movements.uncertain.lock().unwrap().insert(number);
    }
    scene.record((&scene.histories.banks, &scene.poor.client), (process, BankOp::Debit(number)), answer, |reply| {
        match reply.status {
            200 => {
                movements.remember(reply.body["txnId"].as_str()?, number);
                Some(BankRet::Debited)
            }
            402 => Some(BankRet::Refused),
            _ => None,
        }
    });
}

/// Retries the uncertain debits until their outcome is known.
pub(crate) async fn resolve_debits(scene: &Scene, movements: &Movements, random: &mut Random) {
    let uncertain = std::mem::take(&mut *movements.uncertain.lock().unwrap());
    for number in uncertain {
        charge(scene, movements, (number, scene.next_process()), random).await;
    }
}

async fn grant(scene: &Scene, movements: &Movements, process: u32, random: &mut Random) {
    let Some(number) = movements.number() else { return };
    let (reference, amount) = (format!("grant {number}"), 1 + random.below(3));
    movements.remember(&reference, number);
    let (was_current, body) = (scene.are_readings_current(), json!({"amount": amount, "reference": reference}));
    let answer = scene.call_operator(random, || internal::move_credits(&scene.poor.client, &body)).await;
    let (place, is_repeated) = ((&scene.histories.banks, &*scene.poor.client), answer.first.is_some());
    // Besides the entry, the response has the current balance, which counts as a reading.
    if was_current && scene.are_readings_current() {
        let balance = |reply: &Reply| reply.body["balance"].as_u64().map(BankRet::Balance);
        scene.record_reading(place, (process, BankOp::Balance), answer.clone(), balance);
    }
    scene.record(place, (process, BankOp::Grant(number, amount)), answer, |reply| {
        let balance = reply.body["entry"]["balance_after"].as_u64()?;
        Some(BankRet::Granted((!is_repeated).then_some(balance)))
    });
}

/// Reads the balance, and records it where readings are promised to be current.
pub(crate) async fn balance(scene: &Scene, process: u32, random: &mut Random) {
    let was_current = scene.are_readings_current();
    let answer = scene.call(&scene.poor, random, || Call::<Value>::new(Method::GET, "/api/v1/credits")).await;
    if was_current && scene.are_readings_current() {
        let balance = |reply: &Reply| reply.body["balance"].as_u64().map(BankRet::Balance);
        scene.record_reading((&scene.histories.banks, &scene.poor.client), (process, BankOp::Balance), answer, balance);
    }
}

/// Reads the ledger. Under any fault, the balance of each entry must follow from the entry before it.
pub(crate) async fn statement(scene: &Scene, process: u32, random: &mut Random) {
    let was_current = scene.are_readings_current();
    let path = "/api/v1/credits/statement?page=1&page_size=100";
    let answer = scene.call(&scene.poor, random, || Call::<Value>::new(Method::GET, path)).await;
    let Some((_, reply)) = &answer.reply else { return };
    let Some(entries) = reply.body["entries"].as_array() else { return scene.record_unexpected("statement", reply) };
    let mut sum = 0;
    for (seq, entry) in (1..).zip(entries) {
        let amount = entry["amount"].as_i64().unwrap_or_default();
        sum += if entry["kind"] == "debit" { -amount } else { amount };
        if entry["seq"] != seq || entry["balance_after"] != sum || sum < 0 {
            scene.add_problem(format!("the ledger does not add up at entry {seq}: {}", reply.text));
        }
    }
    let is_promised = was_current && scene.are_readings_current();
    if !is_promised {
        return;
    }
    let references: Vec<String> =
        entries.iter().map(|entry| entry["reference"].as_str().unwrap_or_default().to_owned()).collect();
    let ended = answer.reply.map(|(ended, _)| (ended, references));
    scene.histories.ledgers.lock().unwrap().push(Fact {
        process,
        op: BankOp::Statement,
        invoked: answer.invoked,
        ended,
    });
}

/// A ledger reading: the references of its entries. Debits are known once their responses have arrived.
pub(crate) type Reading = Fact<BankOp, Vec<String>>;

/// Returns the facts of the ledger readings once all movements are known, and the errors in them.
pub(crate) fn readings(scene: &Scene, movements: &Movements) -> (Vec<Fact<BankOp, BankRet>>, Vec<String>) {
    let (readings, numbers) = (scene.histories.ledgers.lock().unwrap(), movements.numbers.lock().unwrap());
    let (mut facts, mut errors, mut longest) = (Vec::new(), Vec::new(), &Vec::new());
    for Fact { process, op, invoked, ended } in readings.iter() {
        let Some((ended, references)) = ended else { continue };
        let (shorter, longer) =
            if references.len() < longest.len() { (references, longest) } else { (longest, references) };
        if !longer.starts_with(shorter) {
            errors.push(format!("a ledger was rewritten: {shorter:?}, {longer:?}"));
        }
        longest = longer;
        let number = |reference: &String| if reference == OPENING { Some(0) } else { numbers.get(reference).copied() };
        let known: BTreeSet<u32> = references.iter().filter_map(number).collect();
        if known.len() < references.len() {
            errors.push(format!("an unknown or repeated entry: {references:?}"));
        }
        facts.push(Fact {
            process: *process,
            op: op.clone(),
            invoked: *invoked,
            ended: Some((*ended, BankRet::Statement(known))),
        });
    }
    (facts, errors)
}
