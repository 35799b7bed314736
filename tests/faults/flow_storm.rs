//! The storm over reported flows: connectors report on flows while the process is killed. No accepted report is lost,
//! and each webhook is sent once or recorded as `unknown`.

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
/// Webhook attempts that may be in flight at a kill.
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

/// Returns the reports that an upstream sends about a flow, in order.
fn reports_about(opened: &OpenedFlow, random: &mut Random) -> Vec<Step> {
    let unique_text = |name: &str| json!(format!("{name}-of-{}", opened.id));
    let step = |kind, golden: &str, changes: &[(&str, Option<Value>)]| {
        let report = opened.report_with(golden, changes);
        let mut webhook = opened.expected_body(golden);
        for (pointer, value) in changes {
            let old: Value = serde_json::from_str(golden).expect("JSON");
            let old = old.pointer(pointer).expect("a member").as_str().expect("a text");
            let new = value.as_ref().and_then(Value::as_str).expect("a text");
            webhook = webhook.replace(&format!("\"{old}\""), &format!("\"{new}\""));
        }
        Step { kind, report, webhook: Some(webhook) }
    };
    match opened.flow {
        Flow::Esign => {
            let half_signed_step = Step { kind: "esign", report: half_signed(opened), webhook: None };
            let end_golden = if random.below(3) == 0 { ESIGN_REJECTED } else { ESIGN_COMPLETED };
            vec![half_signed_step, step("esign", end_golden, &[])]
        }
        Flow::DocLocker => vec![step("doclocker", DOCLOCKER_FAILED, &[])],
        Flow::EStamp => {
            vec![step("estamp", if random.below(3) == 0 { ESTAMP_REJECTED } else { ESTAMP_COMPLETED }, &[])]
        }
        Flow::Wealth => {
            let consent = ("/consentId", Some(unique_text("consent")));
            let fetch = ("/txnId", Some(unique_text("fetch")));
            vec![
                step("wealth-consent", CONSENT_ACCEPTED, std::slice::from_ref(&consent)),
                step("wealth-data", DATA_RAW, &[consent.clone(), fetch.clone()]),
                step("wealth-data", DATA_ANALYSED, &[consent.clone(), fetch]),
                step("wealth-historical", HISTORICAL, &[consent]),
            ]
        }
    }
}

/// The answers that clients and connectors have received.
#[derive(Debug, Default)]
struct ClientAnswers {
    /// Opened flows by id.
    opened: BTreeMap<String, OpenedFlow>,
    /// Idempotency keys and bodies of requests that were not answered.
    unanswered_openings: Vec<(String, Flow, Value)>,
    /// Steps answered with 200, by flow.
    accepted: BTreeMap<String, Vec<Step>>,
    /// Flow ids and steps of reports that were not answered.
    unanswered_reports: Vec<(String, Step)>,
    /// Answers that must never occur.
    unexpected: Vec<String>,
}

/// A task that opens flows as a client and reports on them as a connector.
#[derive(Clone)]
struct Worker {
    backend: Backend,
    connector: Connector,
    answers: Arc<Mutex<ClientAnswers>>,
    is_over: Arc<AtomicBool>,
    random: Random,
}

impl Worker {
    /// Reads or changes the recorded answers.
    fn with_answers<T>(&self, access: impl FnOnce(&mut ClientAnswers) -> T) -> T {
        access(&mut self.answers.lock().unwrap())
    }

    /// Runs flows, one after another, until a request is not answered.
    async fn run(mut self) {
        while !self.is_over.load(Ordering::Relaxed) && self.run_flow().await.is_ok() {}
    }

    /// Opens a flow, and sends some of the reports about it, sometimes twice.
    async fn run_flow(&mut self) -> Result<(), reqwest::Error> {
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

    /// Opens a flow, and records the answer or its absence.
    async fn open(&self, key: &str, flow: Flow, body: &Value) -> Result<Option<OpenedFlow>, reqwest::Error> {
        let answer = Answer::attempt(self.backend.flow_request(flow, body).header("Idempotency-Key", key)).await;
        let answer = answer.inspect_err(|_| {
            self.with_answers(|answers| answers.unanswered_openings.push((key.to_owned(), flow, body.clone())));
        })?;
        if answer.status != 200 {
            self.with_answers(|answers| answers.unexpected.push(format!("opening: {} {}", answer.status, answer.text)));
            return Ok(None);
        }
        let opened = OpenedFlow::read(flow, &self.backend.app, body, &answer.json());
        self.with_answers(|answers| answers.opened.insert(opened.id.clone(), opened.clone()));
        Ok(Some(opened))
    }

    /// Sends a report, and records the answer or its absence.
    async fn report(&self, id: &str, step: &Step) -> Result<(), reqwest::Error> {
        let answer = self.connector.attempt(step.kind, &step.report).await;
        let answer = answer.inspect_err(|_| {
            self.with_answers(|answers| answers.unanswered_reports.push((id.to_owned(), step.clone())));
        })?;
        self.with_answers(|answers| {
            let accepted = answers.accepted.entry(id.to_owned()).or_default();
            let was_accepted = accepted.iter().any(|earlier| earlier.report == step.report);
            match (answer.status, answer.text.contains("accepted")) {
                (200, is_new) => {
                    if is_new && was_accepted {
                        answers.unexpected.push(format!("{id}: a report was accepted twice"));
                    } else if !was_accepted {
                        accepted.push(step.clone());
                    }
                }
                (status, _) => answers.unexpected.push(format!("{}: {status} {}", step.kind, answer.text)),
            }
        });
        Ok(())
    }
}

/// A node under load, and the answers that its clients received.
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
            answers: Arc::default(),
            is_over: Arc::default(),
            random: Random::from_seed(random.next()),
        };
        Self { fixture, worker, random, kills: 0 }
    }

    /// Returns the number of accepted reports.
    fn accepted_count(&self) -> u64 {
        self.worker.with_answers(|answers| answers.accepted.values().map(|steps| steps.len() as u64).sum())
    }

    /// Puts load on the node until the kill, and restarts it.
    async fn run_round(&mut self) {
        let load = Load::start(CONNECTORS, |is_over| {
            let random = Random::from_seed(self.random.next());
            Worker { is_over, random, ..self.worker.clone() }.run()
        });
        let goal = self.accepted_count() + 1 + self.random.below(REPORTS_MAX);
        eventually("the load of a round", TIMEOUT, || async { (self.accepted_count() >= goal).then_some(()) }).await;
        self.kills += load.kill(&mut self.fixture.node, &mut self.random).await;
    }

    /// Retries unanswered requests, as clients and connectors do, so that every outcome is known.
    async fn retry_unanswered(&self) {
        let (openings, reports) = self.worker.with_answers(|answers| {
            (std::mem::take(&mut answers.unanswered_openings), std::mem::take(&mut answers.unanswered_reports))
        });
        for (key, flow, body) in openings {
            self.worker.open(&key, flow, &body).await.expect("an answer");
        }
        for (id, step) in reports {
            self.worker.report(&id, &step).await.expect("an answer");
        }
    }

    /// Checks that polls show the accepted reports.
    async fn check_polls(&self, answers: &ClientAnswers) {
        for (id, opened) in &answers.opened {
            let steps = answers.accepted.get(id).map(Vec::as_slice).unwrap_or_default();
            if !matches!(opened.flow, Flow::Esign | Flow::DocLocker) {
                continue;
            }
            let poll = self.fixture.backend.poll(opened).await;
            match steps.last() {
                Some(Step { webhook: Some(body), .. }) => assert_eq!(&poll.text, body, "{id} has ended"),
                Some(Step { webhook: None, .. }) => {
                    assert_eq!(poll.text, opened.expected_body(ESIGN_PENDING), "{id} is half signed");
                }
                None => assert_eq!(poll.ok()["pending"], true, "{id} has no report"),
            }
        }
    }

    /// Checks that each due webhook was sent at most once. Returns the number of due webhooks, and of those with the
    /// outcome `unknown`.
    async fn check_webhooks(&self, answers: &ClientAnswers) -> (u64, u64) {
        let mut due: BTreeMap<&str, &str> = BTreeMap::new();
        let (mut due_count, mut unknown) = (0, 0);
        for (id, steps) in &answers.accepted {
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
            due_count += outcomes.len() as u64;
            unknown += outcomes.iter().filter(|outcome| *outcome == "unknown").count() as u64;
        }
        let received = self.fixture.receiver.received();
        let mut arrived = BTreeSet::new();
        for request in &received {
            let body = body_of(request);
            assert!(arrived.insert(body), "a webhook arrived twice: {body}");
            assert!(due.contains_key(body), "a webhook without a report: {body}");
        }
        let missing = due.len() - arrived.len();
        assert!(missing as u64 <= unknown, "{missing} webhooks never arrived, and {unknown} are recorded as unknown");
        (due_count, unknown)
    }
}

#[tokio::test]
async fn kills_lose_no_report_and_send_no_flow_webhook_twice() {
    let (seed, random) = Random::of_this_run();
    let mut storm = Storm::begin(random).await;
    let rounds = rounds(ROUNDS);
    for _ in 0..rounds {
        storm.run_round().await;
    }
    storm.retry_unanswered().await;
    let answers = storm.worker.with_answers(std::mem::take);
    assert!(
        answers.unexpected.is_empty() && answers.unanswered_reports.is_empty(),
        "seed {seed}: {:#?}",
        answers.unexpected
    );
    assert!(answers.accepted.len() as u64 > 3 * rounds, "seed {seed}: there was hardly any load");
    storm.check_polls(&answers).await;
    let (due, unknown) = storm.check_webhooks(&answers).await;
    let kills = storm.kills;
    assert!(
        unknown <= kills * IN_FLIGHT,
        "{unknown} deliveries are unknown, more than were in flight at {kills} kills"
    );
    eprintln!(
        "{kills} kills: {} flows opened, {} reported on, {due} webhooks due, {unknown} of them unknown",
        answers.opened.len(),
        answers.accepted.len()
    );
}
