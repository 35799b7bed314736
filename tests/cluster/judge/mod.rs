//! The judge: clients that use only HTTP and record the times of every request and response, while nodes, networks,
//! clocks and Redis fail. For each transaction, idempotency key, account and event, a checker then searches for one
//! order of all requests that explains every response (linearisability).
//!
//! `SAKSHI_JUDGE_MINUTES` sets the duration of the long form, and `SAKSHI_JUDGE_FAULTS` restricts its faults. The
//! histories are written as lines of JSON.

mod bank;
mod guests;
mod machines;
mod models;
mod order;
mod round;
mod routes;
#[cfg(test)]
mod tests;
mod verifications;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs::File;
use std::hash::Hash;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sakshi_client::public;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_kit::backend::Backend;
use sakshi_kit::event;
use sakshi_kit::random::Random;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde::Serialize;
use serde_json::{Value, json};
use stateright::semantics::SequentialSpec;

use self::bank::Movements;
use self::guests::Event;
use self::machines::{Fault, Machines};
use self::models::{Bank, BankOp, BankResponse, IdempotencyKey, Places, Transaction};
use self::order::{Fact, Verdict, find_order};
use self::round::{Listeners, Records, Round};

/// Initial credits of the poor client.
const CREDITS: u64 = 4;
/// Initial number of places of the event.
const PLACES: u64 = 3;
/// Time that the receiver takes for a webhook, long enough for a fault to interrupt it.
const WEBHOOK_DURATION: Duration = Duration::from_millis(50);
/// Answers before the first fault of a round, and after its last fault.
const ANSWERS_WITHOUT_FAULT: usize = 60;

/// The numbers that a run reports: how much it did and checked.
#[derive(Debug, Default)]
struct Totals {
    rounds: u64,
    /// Histories checked, each of one record.
    histories: u64,
    operations: u64,
    /// Operations without a response.
    unanswered: u64,
    webhooks: u64,
}

/// A run of the judge: many rounds against the same machines.
struct Trial {
    machines: Machines,
    /// Start of the run, from which all times count.
    origin: Instant,
    random: Random,
    /// A client with enough credits for all rounds.
    rich_client: Backend,
    /// The rounds so far. Their webhook receivers stay open, since a webhook may be repeated after its round.
    rounds: Vec<Arc<Round>>,
    totals: Totals,
    /// The file of all histories.
    file: File,
    path: PathBuf,
}

impl Trial {
    async fn begin() -> Self {
        let (seed, random) = Random::of_this_run();
        let machines = Machines::start().await;
        let rich_client = machines.nodes[0].backend_with_credits(1_000_000).await;
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("history-{seed}.jsonl"));
        let file = File::create(&path).expect("a file");
        Self {
            machines,
            origin: Instant::now(),
            random,
            rich_client,
            rounds: Vec::new(),
            totals: Totals::default(),
            file,
            path,
        }
    }

    /// Runs one round: fresh records, the load, the faults, the last readings and the verdict.
    async fn run_round(&mut self, faults: &[Fault]) {
        let node = &self.machines.nodes[0];
        let poor_client = node.backend_with_credits(CREDITS).await;
        let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(WEBHOOK_DURATION)).await.expect("a port");
        let mut terms = event::terms(PLACES);
        terms["max_pending"] = json!(100_000);
        terms["on_duplicate"] = json!("refuse");
        terms["webhook_url"] = json!(receiver.url("/hook"));
        let id =
            self.rich_client.api().send(public::create_event(&terms)).await.expect("an event").event_id.to_string();
        let event = Arc::new(Event { id, guests: Default::default(), count: AtomicU32::new(0) });
        let listeners = Listeners {
            balancer: self.machines.balancer.addresses.clone(),
            nodes: self.machines.nodes.iter().map(|node| node.addresses.clone()).collect(),
        };
        let round =
            Round::new(self.origin, listeners, node.identity_app(), [self.rich_client.clone(), poor_client], receiver);
        let (movements, began) = (Arc::new(Movements::default()), (SystemClock.now(), round.now()));

        let load = self.spawn_load(&round, &movements, &event);
        round.await_answers(ANSWERS_WITHOUT_FAULT).await;
        for fault in faults {
            self.machines.inject(*fault, &round, &mut self.random).await;
        }
        round.await_answers(ANSWERS_WITHOUT_FAULT).await;
        round.is_over.store(true, Ordering::SeqCst);
        for process in load {
            process.await.expect("a process ends");
        }
        bank::resolve_debits(&round, &movements, &mut self.random).await;
        self.read_everything_once(&round, &event).await;
        let webhooks = verifications::record_webhooks(&round, began);
        self.rounds.push(Arc::clone(&round));
        self.judge(faults, &round, &movements, &event, &webhooks);
    }

    /// Starts the processes of a round, which send requests until it is over.
    fn spawn_load(
        &mut self,
        round: &Arc<Round>,
        movements: &Arc<Movements>,
        event: &Arc<Event>,
    ) -> Vec<tokio::task::JoinHandle<()>> {
        let mut load = Vec::new();
        let random = &mut self.random;
        let mut own_random = || Random::from_seed(random.next());
        for _ in 0..4 {
            load.push(tokio::spawn(verifications::run_verifications(Arc::clone(round), own_random())));
            load.push(tokio::spawn(bank::run_account(Arc::clone(round), Arc::clone(movements), own_random())));
        }
        for _ in 0..3 {
            load.push(tokio::spawn(guests::run_guests(Arc::clone(round), Arc::clone(event), own_random())));
        }
        load.push(tokio::spawn(guests::run_organiser(Arc::clone(round), Arc::clone(event), own_random())));
        load.push(tokio::spawn(verifications::run_key_races(Arc::clone(round), own_random())));
        load
    }

    /// Reads every record once more, after all faults are repaired.
    async fn read_everything_once(&mut self, round: &Round, event: &Event) {
        const ONE_POLL: u64 = 1;
        let random = &mut self.random;
        let process = round.next_process();
        let txns: Vec<_> = round.histories.transactions.all().into_keys().collect();
        join_all(txns.iter().map(|txn| verifications::poll(round, txn, ONE_POLL, Random::from_seed(random.next()))))
            .await;
        bank::balance(round, process, random).await;
        bank::statement(round, process, random).await;
        guests::read_event(round, event, process, random).await;
        guests::read_guests(round, event, process, random).await;
    }

    /// Checks all histories of a round, and fails if one has no explanation.
    fn judge(
        &mut self,
        faults: &[Fault],
        round: &Round,
        movements: &Movements,
        event: &Event,
        webhooks: &[(String, Value)],
    ) {
        let histories = &round.histories;
        let mut errors = histories.problems.lock().unwrap().clone();
        let (statements, statement_errors) = bank::readings(round, movements);
        errors.extend(statement_errors);
        let opening_grant = Fact {
            process: round.next_process(),
            op: BankOp::Grant(0, CREDITS),
            invoked: Duration::ZERO,
            ended: Some((Duration::ZERO, BankResponse::Granted(Some(CREDITS)))),
        };
        let mut banks = histories.banks.all();
        banks
            .entry(round.poor_client.client.clone())
            .or_default()
            .extend(statements.into_iter().chain([opening_grant]));
        self.check("transaction", &Transaction::default(), histories.transactions.all(), &mut errors);
        self.check("idempotency key", &IdempotencyKey::default(), histories.keys.all(), &mut errors);
        self.check("account", &Bank::default(), banks, &mut errors);
        self.check("event", &Places::with_max(PLACES), histories.events.all(), &mut errors);
        let registered_txns = event.guests.lock().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        errors.extend(webhook_errors(webhooks, &histories.results.lock().unwrap(), &registered_txns));
        self.totals.rounds += 1;
        self.totals.webhooks += webhooks.len() as u64;
        assert!(
            errors.is_empty(),
            "after {faults:?}; the histories are in {}:\n{}",
            self.path.display(),
            errors.join("\n")
        );
    }

    /// Checks the histories of one kind of record against their model, and writes them to the file.
    fn check<M>(&mut self, kind: &str, initial: &M, histories: Records<M::Op, M::Ret>, errors: &mut Vec<String>)
    where
        M: SequentialSpec + Clone + Eq + Hash,
        M::Op: Clone + Debug + Serialize,
        M::Ret: Clone + Debug + Serialize,
    {
        for (record, facts) in histories {
            for fact in &facts {
                let line = json!({"round": self.totals.rounds, "kind": kind, "record": record, "fact": fact});
                writeln!(self.file, "{line}").expect("a file");
            }
            self.totals.histories += 1;
            self.totals.operations += facts.len() as u64;
            self.totals.unanswered += facts.iter().filter(|fact| fact.ended.is_none()).count() as u64;
            let verdict = find_order(initial, &facts);
            if verdict != Verdict::Ordered {
                let mut facts = facts;
                facts.sort_by_key(|fact| fact.invoked);
                let lines: Vec<_> = facts.iter().map(|fact| format!("  {fact:?}")).collect();
                errors.push(format!("{kind} {record}: {verdict:?}\n{}", lines.join("\n")));
            }
        }
    }

    /// Stops all machines, and checks that no webhook of any round came twice.
    fn end(self) {
        let Self { machines, rounds, totals, path, origin, .. } = self;
        drop(machines);
        for round in &rounds {
            let mut seen = BTreeSet::new();
            for request in round.receiver.received() {
                let body: Value = serde_json::from_slice(&request.body).expect("JSON");
                assert!(seen.insert(body["data"]["txn_id"].to_string()), "a webhook came twice: {body}");
            }
        }
        eprintln!("{totals:?} in {:.0} s, no errors: {}", origin.elapsed().as_secs_f64(), path.display());
    }
}

/// Returns a sentence for each webhook that is a duplicate, differs from the result, or is about a guest without a
/// place. `results` has the results by transaction, `guests` the transactions of all guests.
fn webhook_errors(
    webhooks: &[(String, Value)],
    results: &BTreeMap<String, Value>,
    guests: &BTreeSet<String>,
) -> Vec<String> {
    let (mut seen, mut errors) = (BTreeSet::new(), Vec::new());
    for (txn, body) in webhooks {
        if !seen.insert(txn) {
            errors.push(format!("a webhook came twice: {body}"));
        }
        match results.get(txn) {
            Some(result) if result != body => {
                errors.push(format!("a webhook differs from the result: {body}, {result}"));
            }
            None if guests.contains(txn) && body["success"] != true => {
                errors.push(format!("a webhook for a guest without a place: {body}"));
            }
            _ => {}
        }
    }
    errors
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_order_explains_each_history_through_node_faults_and_a_failover() {
    let mut trial = Trial::begin().await;
    let node_faults = [Fault::Kill, Fault::Pause, Fault::Cut, Fault::Mute];
    let node_fault = node_faults[trial.random.below(node_faults.len() as u64) as usize];
    for faults in [[node_fault], [Fault::Failover]] {
        trial.run_round(&faults).await;
    }
    trial.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_order_explains_each_history_through_all_faults_for_the_set_minutes() {
    let Some(minutes) = std::env::var("SAKSHI_JUDGE_MINUTES").ok().and_then(|minutes| minutes.parse::<f64>().ok())
    else {
        return;
    };
    let names = std::env::var("SAKSHI_JUDGE_FAULTS").unwrap_or_default();
    let is_named = |fault: &Fault| names.split(',').any(|name| name == format!("{fault:?}"));
    let choice: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| names.is_empty() || is_named(fault)).collect();
    let mut trial = Trial::begin().await;
    while trial.origin.elapsed().as_secs_f64() < 60.0 * minutes {
        let mut random_fault = || choice[trial.random.below(choice.len() as u64) as usize];
        let faults = [random_fault(), random_fault()];
        trial.run_round(&faults).await;
        eprintln!("{:.0} s, {faults:?}: {:?}", trial.origin.elapsed().as_secs_f64(), trial.totals);
    }
    trial.end();
}
