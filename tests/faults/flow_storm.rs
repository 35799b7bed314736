//! The storm over reported flows: connectors report on all of them while the process is killed. An accepted report is
//! kept, and its webhook is sent once or `unknown`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sakshi_sandbox::receiver::Behaviour;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::connector::Connector;
use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::flow_fixture::{FlowFixture, body_of};
use sakshi_kit::goldens::*;
use sakshi_kit::random::Random;
use sakshi_kit::storm::{Load, rounds};
use sakshi_kit::waiting::{TIMEOUT, eventually};

const ROUNDS: u64 = 10;
const CONNECTORS: u64 = 10;
const IN_FLIGHT: u64 = 8;
/// Maximum reports of a round before its kill.
const REPORTS_MAX: u64 = 200;

/// One report about a flow.
#[derive(Clone, Debug)]
struct Step {
    kind: &'static str,
    report: Value,
    /// The body of its webhook; `None` if the step does not end the flow.
    webhook: Option<String>,
}

/// Returns an upstream's reports about a flow, in order.
fn reports_about(opened: &OpenedFlow, random: &mut Random) -> Vec<Step> {
    let own = |name: &str| json!(format!("{name}-of-{}", opened.id));
    let step = |kind, golden: &str, changes: &[(&str, Option<Value>)]| {
        let report = opened.report_with(golden, changes);
        let mut webhook = opened.expected_body(golden);
        for (pointer, value) in changes {
            let was: Value = serde_json::from_str(golden).expect("JSON");
            let was = was.pointer(pointer).expect("a member").as_str().expect("a text");
            let now = value.as_ref().and_then(Value::as_str).expect("a text");
            webhook = webhook.replace(&format!("\"{was}\""), &format!("\"{now}\""));
        }
        Step { kind, report, webhook: Some(webhook) }
    };
    match opened.flow {
        Flow::Esign => {
            let half = Step { kind: "esign", report: half_signed(opened), webhook: None };
            let end = if random.below(3) == 0 { ESIGN_REJECTED } else { ESIGN_COMPLETED };
            vec![half, step("esign", end, &[])]
        }
        Flow::DocLocker => vec![step("doclocker", DOCLOCKER_FAILED, &[])],
        Flow::EStamp => {
            vec![step("estamp", if random.below(3) == 0 { ESTAMP_REJECTED } else { ESTAMP_COMPLETED }, &[])]
        }
        Flow::Wealth => {
            let consent = ("/consentId", Some(own("consent")));
            let fetch = ("/txnId", Some(own("fetch")));
            vec![
                step("wealth-consent", CONSENT_ACCEPTED, std::slice::from_ref(&consent)),
                step("wealth-data", DATA_RAW, &[consent.clone(), fetch.clone()]),
                step("wealth-data", DATA_ANALYSED, &[consent.clone(), fetch]),
                step("wealth-historical", HISTORICAL, &[consent]),
            ]
        }
    }
}

/// The answers to clients and connectors.
#[derive(Debug, Default)]
struct ClientAnswers {
    opened: BTreeMap<String, OpenedFlow>,
    /// Keys and bodies of requests without an answer.
    openings_in_doubt: Vec<(String, Flow, Value)>,
    /// Steps answered with 200, by flow.
    accepted: BTreeMap<String, Vec<Step>>,
    /// Steps without an answer.
    in_doubt: Vec<(String, Step)>,
    /// Answers that should never occur.
    unexpected: Vec<String>,
}

#[derive(Clone)]
struct Worker {
    backend: Backend,
    connector: Connector,
    told: Arc<Mutex<ClientAnswers>>,
    over: Arc<AtomicBool>,
    random: Random,
}

impl Worker {
    fn note<T>(&self, write: impl FnOnce(&mut ClientAnswers) -> T) -> T {
        write(&mut self.told.lock().unwrap())
    }

    /// Runs one flow after another, until a request is not answered.
    async fn work(mut self) {
        while !self.over.load(Ordering::Relaxed) && self.flow().await.is_ok() {}
    }

    async fn flow(&mut self) -> Result<(), reqwest::Error> {
        let flow = Flow::ALL[usize::try_from(self.random.below(4)).expect("a small number")];
        let (key, body) = (format!("key-{:016x}", self.random.next()), flow.body());
        let Some(opened) = self.open(&key, flow, &body).await? else { return Ok(()) };
        for step in reports_about(&opened, &mut self.random) {
            if self.random.below(6) == 0 {
                // Some flows never end.
                return Ok(());
            }
            self.report(&opened.id, &step).await?;
            if self.random.below(4) == 0 {
                self.report(&opened.id, &step).await?;
            }
        }
        Ok(())
    }

    async fn open(&self, key: &str, flow: Flow, body: &Value) -> Result<Option<OpenedFlow>, reqwest::Error> {
        let answer = Answer::attempt(self.backend.flow_request(flow, body).header("Idempotency-Key", key)).await;
        let answer = answer
            .inspect_err(|_| self.note(|told| told.openings_in_doubt.push((key.to_owned(), flow, body.clone()))))?;
        if answer.status != 200 {
            self.note(|told| told.unexpected.push(format!("opening: {} {}", answer.status, answer.text)));
            return Ok(None);
        }
        let opened = OpenedFlow::read(flow, &self.backend.app, body, &answer.json());
        self.note(|told| told.opened.insert(opened.id.clone(), opened.clone()));
        Ok(Some(opened))
    }

    async fn report(&self, id: &str, step: &Step) -> Result<(), reqwest::Error> {
        let answer = self.connector.attempt(step.kind, &step.report).await;
        let answer = answer.inspect_err(|_| self.note(|told| told.in_doubt.push((id.to_owned(), step.clone()))))?;
        self.note(|told| {
            let accepted = told.accepted.entry(id.to_owned()).or_default();
            let known = accepted.iter().any(|known| known.report == step.report);
            match (answer.status, answer.text.contains("accepted")) {
                (200, new) => {
                    if new && known {
                        told.unexpected.push(format!("{id}: the same report was accepted twice"));
                    } else if !known {
                        accepted.push(step.clone());
                    }
                }
                (status, _) => told.unexpected.push(format!("{}: {status} {}", step.kind, answer.text)),
            }
        });
        Ok(())
    }
}

struct Storm {
    fixture: FlowFixture,
    worker: Worker,
    random: Random,
    kills: u64,
}

impl Storm {
    async fn begin(mut random: Random) -> Self {
        let in_flight = IN_FLIGHT.to_string();
        let fixture = FlowFixture::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", &in_flight)]).await;
        fixture.register_all(&fixture.backend).await;
        fixture.receiver.set_behaviour(Behaviour::SlowAnswer(Duration::from_millis(10)));
        let worker = Worker {
            backend: fixture.backend.clone(),
            connector: fixture.connector.clone(),
            told: Arc::default(),
            over: Arc::default(),
            random: Random::from_seed(random.next()),
        };
        Self { fixture, worker, random, kills: 0 }
    }

    fn accepted(&self) -> u64 {
        self.worker.note(|told| told.accepted.values().map(|steps| steps.len() as u64).sum())
    }

    /// Puts load on the node until the kill, and restarts it.
    async fn round(&mut self) {
        let load = Load::start(CONNECTORS, |over| {
            let random = Random::from_seed(self.random.next());
            Worker { over, random, ..self.worker.clone() }.work()
        });
        let enough = self.accepted() + 1 + self.random.below(REPORTS_MAX);
        eventually("the load of a round", TIMEOUT, || async { (self.accepted() >= enough).then_some(()) }).await;
        self.kills += load.kill(&mut self.fixture.node, &mut self.random).await;
    }

    /// Retries unanswered requests, as clients and connectors do, until every outcome is known.
    async fn resolve(&self) {
        let (openings, reports) =
            self.worker.note(|told| (std::mem::take(&mut told.openings_in_doubt), std::mem::take(&mut told.in_doubt)));
        for (key, flow, body) in openings {
            self.worker.open(&key, flow, &body).await.expect("an answer");
        }
        for (id, step) in reports {
            self.worker.report(&id, &step).await.expect("an answer");
        }
    }

    /// Checks that polls show the accepted reports.
    async fn check_polls(&self, told: &ClientAnswers) {
        for (id, opened) in &told.opened {
            let steps = told.accepted.get(id).map(Vec::as_slice).unwrap_or_default();
            if !matches!(opened.flow, Flow::Esign | Flow::DocLocker) {
                continue;
            }
            let poll = self.fixture.backend.poll(opened).await;
            match steps.last() {
                Some(Step { webhook: Some(body), .. }) => assert_eq!(&poll.text, body, "{id} has ended"),
                Some(Step { webhook: None, .. }) => {
                    assert_eq!(poll.text, opened.expected_body(ESIGN_PENDING), "{id} is half signed");
                }
                None => assert_eq!(poll.ok()["pending"], true, "{id} was reported by nobody"),
            }
        }
    }

    /// Returns the number of due webhooks, and of those that ended as `unknown`.
    async fn check_webhooks(&self, told: &ClientAnswers) -> (u64, u64) {
        let mut due: BTreeMap<&str, &str> = BTreeMap::new();
        let (mut all, mut unknown) = (0, 0);
        for (id, steps) in &told.accepted {
            let bodies: Vec<&str> = steps.iter().filter_map(|step| step.webhook.as_deref()).collect();
            due.extend(bodies.iter().map(|body| (*body, id.as_str())));
            let outcomes = self.fixture.node.operator().outcomes(id).await;
            assert_eq!(
                outcomes.len(),
                bodies.len(),
                "{id}: one webhook for each report that ends something: {outcomes:?}"
            );
            assert!(
                outcomes.iter().all(|outcome| outcome == "delivered" || outcome == "unknown"),
                "{id}: {outcomes:?}"
            );
            all += outcomes.len() as u64;
            unknown += outcomes.iter().filter(|outcome| *outcome == "unknown").count() as u64;
        }
        let received = self.fixture.receiver.received();
        let mut arrived = BTreeSet::new();
        for request in &received {
            let body = body_of(request);
            assert!(arrived.insert(body), "a webhook came more than once: {body}");
            assert!(due.contains_key(body), "a webhook of something that was never reported: {body}");
        }
        let missing = due.len() - arrived.len();
        assert!(missing as u64 <= unknown, "{missing} webhooks never came, and {unknown} are recorded as unknown");
        (all, unknown)
    }
}

#[tokio::test]
async fn no_kill_loses_a_report_or_sends_its_webhook_twice() {
    let (seed, random) = Random::of_this_run();
    let mut storm = Storm::begin(random).await;
    let rounds = rounds(ROUNDS);
    for _ in 0..rounds {
        storm.round().await;
    }
    storm.resolve().await;
    let told = storm.worker.note(std::mem::take);
    assert!(told.unexpected.is_empty() && told.in_doubt.is_empty(), "seed {seed}: {:#?}", told.unexpected);
    assert!(told.accepted.len() as u64 > 3 * rounds, "seed {seed}: there was hardly any load");
    storm.check_polls(&told).await;
    let (all, unknown) = storm.check_webhooks(&told).await;
    let kills = storm.kills;
    assert!(
        unknown <= kills * IN_FLIGHT,
        "{unknown} deliveries of unknown end are more than were under way at {kills} kills"
    );
    eprintln!(
        "{kills} kills: {} flows opened, {} reported on, {all} webhooks due, {unknown} of them unknown",
        told.opened.len(),
        told.accepted.len()
    );
}
