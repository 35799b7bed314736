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
    open: Mutex<BTreeSet<u32>>,
}

/// Runs one of several processes.
pub(crate) async fn account(scene: Arc<Scene>, movements: Arc<Movements>, mut random: Random) {
    let process = scene.process();
    for _ in 0..OPERATIONS {
        if !scene.goes_on() {
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

    fn know(&self, reference: &str, number: u32) {
        self.numbers.lock().unwrap().insert(reference.to_owned(), number);
    }
}

async fn debit(scene: &Scene, movements: &Movements, process: u32, random: &mut Random) {
    let Some(number) = movements.number() else { return };
    charge(scene, movements, (number, process), random).await;
}

async fn charge(scene: &Scene, movements: &Movements, (number, process): (u32, u32), random: &mut Random) {
    let (key, body) = (format!("debit-{number}"), json!({"claims": ["name"], "channel": "qr"}));
    let answered = scene.call(&scene.poor, random, || public::init(&body).once(&*key)).await;
    let is_refused = answered.reply.as_ref().is_none_or(|(_, reply)| reply.status == 402);
    if is_refused && answered.first.is_some() {
        movements.open.lock().unwrap().insert(number);
    }
    scene.record((&scene.histories.banks, &scene.poor.client), (process, BankOp::Debit(number)), answered, |reply| {
        match reply.status {
            200 => {
                movements.know(reply.body["txnId"].as_str()?, number);
                Some(BankRet::Debited)
            }
            402 => Some(BankRet::Refused),
            _ => None,
        }
    });
}

/// Retries the uncertain debits until their outcome is known.
pub(crate) async fn conclude(scene: &Scene, movements: &Movements, random: &mut Random) {
    let open = std::mem::take(&mut *movements.open.lock().unwrap());
    for number in open {
        charge(scene, movements, (number, scene.process()), random).await;
    }
}

async fn grant(scene: &Scene, movements: &Movements, process: u32, random: &mut Random) {
    let Some(number) = movements.number() else { return };
    let (reference, amount) = (format!("grant {number}"), 1 + random.below(3));
    movements.know(&reference, number);
    let (before, body) = (scene.promises_readings(), json!({"amount": amount, "reference": reference}));
    let answered = scene.operate(random, || internal::move_credits(&scene.poor.client, &body)).await;
    let (place, is_repeated) = ((&scene.histories.banks, &*scene.poor.client), answered.first.is_some());
    // The response has the balance at that time besides the entry, which is a reading.
    if before && scene.promises_readings() {
        let balance = |reply: &Reply| reply.body["balance"].as_u64().map(BankRet::Balance);
        scene.record_reading(place, (process, BankOp::Balance), answered.clone(), balance);
    }
    scene.record(place, (process, BankOp::Grant(number, amount)), answered, |reply| {
        let balance = reply.body["entry"]["balance_after"].as_u64()?;
        Some(BankRet::Granted((!is_repeated).then_some(balance)))
    });
}

/// Reads the balance, and records it where readings are promised to be current.
pub(crate) async fn balance(scene: &Scene, process: u32, random: &mut Random) {
    let before = scene.promises_readings();
    let answered = scene.call(&scene.poor, random, || Call::<Value>::new(Method::GET, "/api/v1/credits")).await;
    if before && scene.promises_readings() {
        let balance = |reply: &Reply| reply.body["balance"].as_u64().map(BankRet::Balance);
        scene.record_reading(
            (&scene.histories.banks, &scene.poor.client),
            (process, BankOp::Balance),
            answered,
            balance,
        );
    }
}

/// Reads the ledger. Each entry must add up with the one before, under any fault.
pub(crate) async fn statement(scene: &Scene, process: u32, random: &mut Random) {
    let before = scene.promises_readings();
    let path = "/api/v1/credits/statement?page=1&page_size=100";
    let answered = scene.call(&scene.poor, random, || Call::<Value>::new(Method::GET, path)).await;
    let Some((_, reply)) = &answered.reply else { return };
    let Some(entries) = reply.body["entries"].as_array() else { return scene.unexpected("statement", reply) };
    let mut sum = 0;
    for (place, entry) in (1..).zip(entries) {
        let amount = entry["amount"].as_i64().unwrap_or_default();
        sum += if entry["kind"] == "debit" { -amount } else { amount };
        if entry["seq"] != place || entry["balance_after"] != sum || sum < 0 {
            scene.problem(format!("the ledger does not add up at entry {place}: {}", reply.text));
        }
    }
    let is_promised = before && scene.promises_readings();
    if !is_promised {
        return;
    }
    let references: Vec<String> =
        entries.iter().map(|entry| entry["reference"].as_str().unwrap_or_default().to_owned()).collect();
    let ended = answered.reply.map(|(ended, _)| (ended, references));
    scene.histories.ledgers.lock().unwrap().push(Fact {
        process,
        op: BankOp::Statement,
        invoked: answered.invoked,
        ended,
    });
}

/// A ledger reading: the references of its entries. Debits are known once their responses have arrived.
pub(crate) type Reading = Fact<BankOp, Vec<String>>;

/// Returns the facts of the ledger readings once all movements are known, and the errors in them.
pub(crate) fn readings(scene: &Scene, movements: &Movements) -> (Vec<Fact<BankOp, BankRet>>, Vec<String>) {
    let (readings, numbers) = (scene.histories.ledgers.lock().unwrap(), movements.numbers.lock().unwrap());
    let (mut facts, mut wrong, mut longest) = (Vec::new(), Vec::new(), &Vec::new());
    for Fact { process, op, invoked, ended } in readings.iter() {
        let Some((ended, references)) = ended else { continue };
        let (shorter, longer) =
            if references.len() < longest.len() { (references, longest) } else { (longest, references) };
        if !longer.starts_with(shorter) {
            wrong.push(format!("a ledger was rewritten: {shorter:?}, {longer:?}"));
        }
        longest = longer;
        let number = |reference: &String| if reference == OPENING { Some(0) } else { numbers.get(reference).copied() };
        let named: BTreeSet<u32> = references.iter().filter_map(number).collect();
        if named.len() < references.len() {
            wrong.push(format!("an entry of nobody, or twice: {references:?}"));
        }
        facts.push(Fact {
            process: *process,
            op: op.clone(),
            invoked: *invoked,
            ended: Some((*ended, BankRet::Statement(named))),
        });
    }
    (facts, wrong)
}
