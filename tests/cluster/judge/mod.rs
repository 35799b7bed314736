//! The judge: clients that use only HTTP and record the times of every request and response; faults of nodes, networks,
//! clocks and Redis; and a checker. It looks for one order that explains every response, for each transaction,
//! idempotency key, account and event.
//!
//! `SAKSHI_JUDGE_MINUTES` sets the duration of the long form, and `SAKSHI_JUDGE_FAULTS` restricts its faults. The
//! histories are written as lines of JSON.

mod bank;
mod court;
mod guests;
mod models;
mod order;
mod scene;
#[cfg(test)]
mod tests;
mod verifications;
mod ways;

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
use self::court::{Court, Fault};
use self::guests::Event;
use self::models::{Bank, BankOp, BankRet, IdempotencyKey, Places, Transaction};
use self::order::{Fact, Verdict, order};
use self::scene::{Doors, Records, Scene};

/// Initial credits of the poor client.
const CREDITS: u64 = 4;
/// Initial places of the event.
const PLACES: u64 = 3;
/// Duration of a webhook, so that faults can interrupt one.
const TAKES: Duration = Duration::from_millis(50);
/// Answers before the first fault of a round, and after the last.
const CALM: usize = 60;

/// The figures of a run.
#[derive(Debug, Default)]
struct Totals {
    rounds: u64,
    histories: u64,
    operations: u64,
    /// Operations without a response.
    unknown: u64,
    webhooks: u64,
}

/// A run of rounds against the same machines.
struct Trial {
    court: Court,
    origin: Instant,
    random: Random,
    rich: Backend,
    /// The receivers of all rounds: a webhook may be repeated after its round.
    receivers: Vec<Arc<Scene>>,
    totals: Totals,
    file: File,
    path: PathBuf,
}

impl Trial {
    async fn begin() -> Self {
        let (seed, random) = Random::of_this_run();
        let court = Court::start().await;
        let rich = court.nodes[0].backend(1_000_000).await;
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("history-{seed}.jsonl"));
        let file = File::create(&path).expect("a file");
        Self {
            court,
            origin: Instant::now(),
            random,
            rich,
            receivers: Vec::new(),
            totals: Totals::default(),
            file,
            path,
        }
    }

    /// Runs one round: fresh records, the load, the faults, the last readings and the verdict.
    async fn round(&mut self, faults: &[Fault]) {
        let node = &self.court.nodes[0];
        let poor = node.backend(CREDITS).await;
        let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(TAKES)).await.expect("a port");
        let mut terms = event::terms(PLACES);
        terms["max_pending"] = json!(100_000);
        terms["on_duplicate"] = json!("refuse");
        terms["webhook_url"] = json!(receiver.url("/hook"));
        let id = self.rich.api().send(public::create_event(&terms)).await.expect("an event").event_id.to_string();
        let event = Arc::new(Event { id, guests: Default::default(), count: AtomicU32::new(0) });
        let doors = Doors {
            balancer: self.court.balancer.addresses.clone(),
            nodes: self.court.nodes.iter().map(|node| node.addresses.clone()).collect(),
        };
        let scene = Scene::new(self.origin, doors, node.identity_app(), [self.rich.clone(), poor], receiver);
        let (movements, began) = (Arc::new(Movements::default()), (SystemClock.now(), scene.now()));

        let load = self.load(&scene, &movements, &event);
        scene.grown(CALM).await;
        for fault in faults {
            self.court.suffer(*fault, &scene, &mut self.random).await;
        }
        scene.grown(CALM).await;
        scene.over.store(true, Ordering::SeqCst);
        for process in load {
            process.await.expect("a process ends");
        }
        bank::conclude(&scene, &movements, &mut self.random).await;
        self.last_readings(&scene, &event).await;
        let webhooks = verifications::webhooks(&scene, began);
        self.receivers.push(Arc::clone(&scene));
        self.judge(faults, &scene, &movements, &event, &webhooks);
    }

    fn load(
        &mut self,
        scene: &Arc<Scene>,
        movements: &Arc<Movements>,
        event: &Arc<Event>,
    ) -> Vec<tokio::task::JoinHandle<()>> {
        let mut load = Vec::new();
        let random = &mut self.random;
        let mut of_its_own = || Random::from_seed(random.next());
        for _ in 0..4 {
            load.push(tokio::spawn(verifications::verify(Arc::clone(scene), of_its_own())));
            load.push(tokio::spawn(bank::account(Arc::clone(scene), Arc::clone(movements), of_its_own())));
        }
        for _ in 0..3 {
            load.push(tokio::spawn(guests::visit(Arc::clone(scene), Arc::clone(event), of_its_own())));
        }
        load.push(tokio::spawn(guests::organise(Arc::clone(scene), Arc::clone(event), of_its_own())));
        load.push(tokio::spawn(verifications::race(Arc::clone(scene), of_its_own())));
        load
    }

    /// Reads every record once more, after all faults are repaired.
    async fn last_readings(&mut self, scene: &Scene, event: &Event) {
        let random = &mut self.random;
        let process = scene.process();
        let txns: Vec<_> = scene.histories.transactions.all().into_keys().collect();
        join_all(txns.iter().map(|txn| verifications::poll(scene, txn, 1, Random::from_seed(random.next())))).await;
        bank::balance(scene, process, random).await;
        bank::statement(scene, process, random).await;
        guests::look(scene, event, process, random).await;
        guests::list(scene, event, process, random).await;
    }

    fn judge(
        &mut self,
        faults: &[Fault],
        scene: &Scene,
        movements: &Movements,
        event: &Event,
        webhooks: &[(String, Value)],
    ) {
        let histories = &scene.histories;
        let mut wrong = histories.problems.lock().unwrap().clone();
        let (statements, rewritten) = bank::readings(scene, movements);
        wrong.extend(rewritten);
        let opening = Fact {
            process: scene.process(),
            op: BankOp::Grant(0, CREDITS),
            invoked: Duration::ZERO,
            ended: Some((Duration::ZERO, BankRet::Granted(Some(CREDITS)))),
        };
        let mut banks = histories.banks.all();
        banks.entry(scene.poor.client.clone()).or_default().extend(statements.into_iter().chain([opening]));
        self.hold("transaction", &Transaction::default(), histories.transactions.all(), &mut wrong);
        self.hold("idempotency key", &IdempotencyKey::default(), histories.keys.all(), &mut wrong);
        self.hold("account", &Bank::default(), banks, &mut wrong);
        self.hold("event", &Places::of(PLACES), histories.events.all(), &mut wrong);
        let registered = event.guests.lock().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        wrong.extend(differences(webhooks, &histories.results.lock().unwrap(), &registered));
        self.totals.rounds += 1;
        self.totals.webhooks += webhooks.len() as u64;
        assert!(wrong.is_empty(), "after {faults:?}; all of it is in {}:\n{}", self.path.display(), wrong.join("\n"));
    }

    /// Checks histories against their model.
    fn hold<M>(&mut self, kind: &str, begin: &M, histories: Records<M::Op, M::Ret>, wrong: &mut Vec<String>)
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
            self.totals.unknown += facts.iter().filter(|fact| fact.ended.is_none()).count() as u64;
            let verdict = order(begin, &facts);
            if verdict != Verdict::Ordered {
                let mut facts = facts;
                facts.sort_by_key(|fact| fact.invoked);
                let lines: Vec<_> = facts.iter().map(|fact| format!("  {fact:?}")).collect();
                wrong.push(format!("{kind} {record}: {verdict:?}\n{}", lines.join("\n")));
            }
        }
    }

    /// Stops everything, and checks the webhooks of all rounds.
    fn end(self) {
        let Self { court, receivers, totals, path, origin, .. } = self;
        drop(court);
        for scene in &receivers {
            let mut seen = BTreeSet::new();
            for request in scene.receiver.received() {
                let body: Value = serde_json::from_slice(&request.body).expect("JSON");
                assert!(seen.insert(body["data"]["txn_id"].to_string()), "a webhook came twice: {body}");
            }
        }
        eprintln!("{totals:?} in {:.0} s, nothing wrong: {}", origin.elapsed().as_secs_f64(), path.display());
    }
}

/// Returns webhooks that are duplicates, differ from the result, or belong to nobody.
fn differences(
    webhooks: &[(String, Value)],
    results: &BTreeMap<String, Value>,
    guests: &BTreeSet<String>,
) -> Vec<String> {
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for (txn, body) in webhooks {
        if !seen.insert(txn) {
            wrong.push(format!("a webhook came twice: {body}"));
        }
        match results.get(txn) {
            Some(result) if result != body => {
                wrong.push(format!("a webhook differs from the result: {body}, {result}"));
            }
            None if guests.contains(txn) && body["success"] != true => {
                wrong.push(format!("a webhook for a guest without a place: {body}"));
            }
            _ => {}
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_history_has_an_order_through_kills_a_failover_and_a_cut() {
    let mut trial = Trial::begin().await;
    let choice = [Fault::Kill, Fault::Pause, Fault::Cut, Fault::Mute];
    let first = choice[trial.random.below(choice.len() as u64) as usize];
    for faults in [[first], [Fault::Failover]] {
        trial.round(&faults).await;
    }
    trial.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_history_has_an_order_through_all_faults_for_as_long_as_asked() {
    let Some(minutes) = std::env::var("SAKSHI_JUDGE_MINUTES").ok().and_then(|minutes| minutes.parse::<f64>().ok())
    else {
        return;
    };
    let asked = std::env::var("SAKSHI_JUDGE_FAULTS").unwrap_or_default();
    let named = |fault: &Fault| asked.split(',').any(|name| name == format!("{fault:?}"));
    let choice: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| asked.is_empty() || named(fault)).collect();
    let mut trial = Trial::begin().await;
    while trial.origin.elapsed().as_secs_f64() < 60.0 * minutes {
        let mut any = || choice[trial.random.below(choice.len() as u64) as usize];
        let faults = [any(), any()];
        trial.round(&faults).await;
        eprintln!("{:.0} s, {faults:?}: {:?}", trial.origin.elapsed().as_secs_f64(), trial.totals);
    }
    trial.end();
}
