//! Processes that spend, grant and read the few credits of one client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::Method;
use sakshi_client::{Call, internal, public};
use sakshi_kit::random::Random;
use serde_json::{Value, json};

use super::models::{BankOp, BankResponse};
use super::order::Fact;
use super::round::{Reply, Round, pause};

/// Maximum entries of a ledger, so that one page has them all.
const MOVEMENTS_MAX: u32 = 80;
/// Operations of one process.
const OPERATIONS: u64 = 25;

/// The reference of the first grant.
pub(crate) const OPENING: &str = "opening balance";

/// The client's movements of credits (debits and grants), numbered from 1; the opening grant is 0.
#[derive(Default)]
pub(crate) struct Movements {
    count: AtomicU32,
    /// Numbers by the reference in the ledger; for a debit, the transaction.
    numbers: Mutex<BTreeMap<String, u32>>,
    /// Numbers of debits that may have been made although the last answer was a refusal.
    uncertain_debits: Mutex<BTreeSet<u32>>,
}

/// Runs one process that moves and reads the client's credits.
pub(crate) async fn run_account(round: Arc<Round>, movements: Arc<Movements>, mut random: Random) {
    let process = round.next_process();
    for _ in 0..OPERATIONS {
        if !round.is_running() {
            return;
        }
        pause(&mut random, 120).await;
        match random.below(10) {
            0..5 => debit(&round, &movements, process, &mut random).await,
            5 | 6 => grant(&round, &movements, process, &mut random).await,
            7 | 8 => statement(&round, process, &mut random).await,
            _ => balance(&round, process, &mut random).await,
        }
    }
}

impl Movements {
    /// Returns the number of a new movement; `None` if the ledger would become too long for a page.
    fn next_number(&self) -> Option<u32> {
        let number = 1 + self.count.fetch_add(1, Ordering::Relaxed);
        (number < MOVEMENTS_MAX).then_some(number)
    }

    /// Records the ledger reference of a movement.
    fn set_reference(&self, reference: &str, number: u32) {
        self.numbers.lock().unwrap().insert(reference.to_owned(), number);
    }
}

/// Opens a transaction, which debits a credit.
async fn debit(round: &Round, movements: &Movements, process: u32, random: &mut Random) {
    let Some(number) = movements.next_number() else { return };
    debit_with_number(round, movements, number, process, random).await;
}

/// Opens the transaction of a numbered debit under an idempotency key, and records the debit.
async fn debit_with_number(round: &Round, movements: &Movements, number: u32, process: u32, random: &mut Random) {
    let (key, body) = (format!("debit-{number}"), json!({"claims": ["name"], "channel": "qr"}));
    let answer = round.call(&round.poor_client, random, || public::init(&body).once(&*key)).await;
    let is_refused = answer.reply.as_ref().is_none_or(|(_, reply)| reply.status == 402);
    if is_refused && answer.first.is_some() {
        movements.uncertain_debits.lock().unwrap().insert(number);
    }
    round.record(
        (&round.histories.banks, &round.poor_client.client),
        (process, BankOp::Debit(number)),
        answer,
        |reply| match reply.status {
            200 => {
                movements.set_reference(reply.body["txnId"].as_str()?, number);
                Some(BankResponse::Debited)
            }
            402 => Some(BankResponse::Refused),
            _ => None,
        },
    );
}

/// Retries the uncertain debits until their outcome is known.
pub(crate) async fn resolve_debits(round: &Round, movements: &Movements, random: &mut Random) {
    let uncertain_debits = std::mem::take(&mut *movements.uncertain_debits.lock().unwrap());
    for number in uncertain_debits {
        debit_with_number(round, movements, number, round.next_process(), random).await;
    }
}

/// Grants some credits as an operator.
async fn grant(round: &Round, movements: &Movements, process: u32, random: &mut Random) {
    let Some(number) = movements.next_number() else { return };
    let (reference, amount) = (format!("grant {number}"), 1 + random.below(3));
    movements.set_reference(&reference, number);
    let (was_current, body) = (round.are_readings_current(), json!({"amount": amount, "reference": reference}));
    let answer = round.call_operator(random, || internal::move_credits(&round.poor_client.client, &body)).await;
    let (log_and_record, is_retried) = ((&round.histories.banks, &*round.poor_client.client), answer.first.is_some());
    // Besides the entry, the response has the current balance, which counts as a reading.
    if was_current && round.are_readings_current() {
        let balance = |reply: &Reply| reply.body["balance"].as_u64().map(BankResponse::Balance);
        round.record_reading(log_and_record, (process, BankOp::Balance), answer.clone(), balance);
    }
    round.record(log_and_record, (process, BankOp::Grant(number, amount)), answer, |reply| {
        let balance = reply.body["entry"]["balance_after"].as_u64()?;
        Some(BankResponse::Granted((!is_retried).then_some(balance)))
    });
}

/// Reads the balance, and records it if the service promises that it is current.
pub(crate) async fn balance(round: &Round, process: u32, random: &mut Random) {
    let was_current = round.are_readings_current();
    let answer = round.call(&round.poor_client, random, || Call::<Value>::new(Method::GET, "/api/v1/credits")).await;
    if was_current && round.are_readings_current() {
        let balance = |reply: &Reply| reply.body["balance"].as_u64().map(BankResponse::Balance);
        round.record_reading(
            (&round.histories.banks, &round.poor_client.client),
            (process, BankOp::Balance),
            answer,
            balance,
        );
    }
}

/// Reads the ledger, and records it if the service promises that it is current. Under any fault, the balance of each
/// entry must follow from the entry before it.
pub(crate) async fn statement(round: &Round, process: u32, random: &mut Random) {
    let was_current = round.are_readings_current();
    let path = "/api/v1/credits/statement?page=1&page_size=100";
    let answer = round.call(&round.poor_client, random, || Call::<Value>::new(Method::GET, path)).await;
    let Some((_, reply)) = &answer.reply else { return };
    let Some(entries) = reply.body["entries"].as_array() else { return round.record_unexpected("statement", reply) };
    let mut sum = 0;
    for (seq, entry) in (1..).zip(entries) {
        let amount = entry["amount"].as_i64().unwrap_or_default();
        sum += if entry["kind"] == "debit" { -amount } else { amount };
        if entry["seq"] != seq || entry["balance_after"] != sum || sum < 0 {
            round.add_problem(format!("the ledger does not add up at entry {seq}: {}", reply.text));
        }
    }
    let is_promised = was_current && round.are_readings_current();
    if !is_promised {
        return;
    }
    let references: Vec<String> =
        entries.iter().map(|entry| entry["reference"].as_str().unwrap_or_default().to_owned()).collect();
    let ended = answer.reply.map(|(ended, _)| (ended, references));
    round.histories.ledgers.lock().unwrap().push(Fact {
        process,
        op: BankOp::Statement,
        invoked: answer.invoked,
        ended,
    });
}

/// A ledger reading: the references of its entries. Debits are known once their responses have arrived.
pub(crate) type Reading = Fact<BankOp, Vec<String>>;

/// Returns the readings of the ledger as facts about movements, once all movements are known. Also returns sentences
/// about errors in them.
pub(crate) fn readings(round: &Round, movements: &Movements) -> (Vec<Fact<BankOp, BankResponse>>, Vec<String>) {
    let (readings, numbers) = (round.histories.ledgers.lock().unwrap(), movements.numbers.lock().unwrap());
    let (mut facts, mut errors, mut longest) = (Vec::new(), Vec::new(), &Vec::new());
    for Fact { process, op, invoked, ended } in readings.iter() {
        let Some((ended, references)) = ended else { continue };
        let (shorter, longer) =
            if references.len() < longest.len() { (references, longest) } else { (longest, references) };
        if !longer.starts_with(shorter) {
            errors.push(format!("a ledger was rewritten: {shorter:?}, {longer:?}"));
        }
        longest = longer;
        let number_of =
            |reference: &String| if reference == OPENING { Some(0) } else { numbers.get(reference).copied() };
        let movement_numbers: BTreeSet<u32> = references.iter().filter_map(number_of).collect();
        if movement_numbers.len() < references.len() {
            errors.push(format!("an unknown or repeated entry: {references:?}"));
        }
        facts.push(Fact {
            process: *process,
            op: op.clone(),
            invoked: *invoked,
            ended: Some((*ended, BankResponse::Statement(movement_numbers))),
        });
    }
    (facts, errors)
}
