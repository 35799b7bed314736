//! Storms: clients and identity apps at work while nodes are killed, a journal of their answers, and a check of every
//! invariant afterwards.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::Method;
use sakshi_client::judge::journal::{CallbackKind, Entry, Journal, PollResult, PostedCallback, REJECTED, Reply, Visit};
use sakshi_client::judge::webhooks::Arrivals;
use sakshi_client::judge::{Deliveries, Evidence, judge};
use sakshi_client::{internal, public};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::answer::Answer;
use super::backend::{Backend, Opened};
use super::event::TestEvent;
use super::identity_app::{CallbackFormat, IdentityApp};
use super::node::{Addresses, TestNode};
use super::random::Random;
use super::waiting::{TIMEOUT, eventually};

/// Initial credits of the client.
const CREDITS: u64 = 1_000_000;
/// Pause of a worker after a request without an answer.
const PAUSE: Duration = Duration::from_millis(20);

/// Returns the number of rounds: all if the environment asks for long tests, otherwise half.
pub fn rounds(all: u64) -> u64 {
    if std::env::var("SAKSHI_TESTS").is_ok_and(|form| form == "long") { all } else { all.div_ceil(2) }
}

/// The body that the identity app posts.
#[derive(Clone, Debug)]
pub enum Callback {
    Credential(String),
    Rejection,
}

/// Requests without an answer, which the test retries at the end, as any client would.
#[derive(Debug, Default)]
struct InDoubt {
    /// Callbacks and the time of their first try, by transaction.
    callbacks: BTreeMap<String, (Opened, Callback, Duration)>,
    /// Idempotency keys of inits.
    keys: Vec<String>,
}

/// The journal of all answers during a storm.
#[derive(Debug)]
pub struct Notes {
    pub journal: Journal,
    in_doubt: Mutex<InDoubt>,
    /// Start of the storm.
    origin: Instant,
    /// True if other nodes serve while one is down: work then continues after a request without an answer, and a 5xx
    /// counts as no answer.
    has_other_nodes: bool,
}

impl Notes {
    /// Starts an empty journal.
    pub fn begin(has_other_nodes: bool) -> Arc<Self> {
        Arc::new(Self {
            journal: Journal::default(),
            in_doubt: Mutex::default(),
            origin: Instant::now(),
            has_other_nodes,
        })
    }

    /// Returns the number of transactions with an accepted callback.
    pub fn accepted(&self) -> usize {
        let is_accepted = |entry: &&Entry| entry.callback.is_some_and(|callback| callback.reply == Reply::Accepted);
        self.journal.with(|records| records.entries.values().filter(is_accepted).count())
    }

    /// Returns the number of opened transactions.
    pub fn opened_so_far(&self) -> usize {
        self.journal.with(|records| records.entries.len())
    }

    /// Returns the number of accepted callbacks and of unanswered requests that can be retried.
    pub fn sent(&self) -> usize {
        let in_doubt = self.in_doubt.lock().unwrap();
        self.accepted() + in_doubt.callbacks.len() + in_doubt.keys.len()
    }

    /// Returns the time since the start of the storm.
    pub fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Records an opened transaction.
    pub fn record_opened(&self, txn: &str, requested_at: Duration) {
        self.journal.opened(
            txn,
            Entry {
                guest: 0,
                requested_at,
                opened_at: self.now(),
                intent_expires_at: None,
                callback: None,
                poll_result: None,
            },
        );
    }

    /// Posts a callback and records the answer.
    pub async fn post(
        &self,
        identity_app: &IdentityApp,
        opened: &Opened,
        callback: &Callback,
    ) -> Result<Answer, reqwest::Error> {
        let (kind, body) = match callback {
            Callback::Credential(credential) => {
                (CallbackKind::Consent, CallbackFormat::Json.success(&opened.txn, credential))
            }
            Callback::Rejection => {
                (CallbackKind::Refusal, CallbackFormat::Json.failure(&opened.txn, REJECTED, "User Reject"))
            }
        };
        let first = || (opened.clone(), callback.clone(), self.now());
        let (.., sent_at) = *self.in_doubt.lock().unwrap().callbacks.entry(opened.txn.clone()).or_insert_with(first);
        let request = identity_app.request(&opened.callback_path(), CallbackFormat::Json.content_type(), body);
        let answer = Answer::attempt(request).await?;
        if answer.status < 500 || !self.has_other_nodes {
            let reply = match answer.status {
                200 => Reply::Accepted,
                409 => Reply::Full,
                status => Reply::Refused(status),
            };
            self.journal.record_callback(&opened.txn, PostedCallback { kind, sent_at, replied_at: self.now(), reply });
            self.in_doubt.lock().unwrap().callbacks.remove(&opened.txn);
        }
        Ok(answer)
    }
}

/// One of many concurrent users of a client's backend and its identity app.
pub struct Worker {
    pub backend: Backend,
    pub identity_app: IdentityApp,
    pub notes: Arc<Notes>,
    pub webhook: String,
    pub random: Random,
}

/// Running workers.
pub struct Load {
    is_over: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts `count` workers. Each gets a flag, and must end soon after the flag is set.
    pub fn start<W: Future<Output = ()> + Send + 'static>(
        count: u64,
        mut worker: impl FnMut(Arc<AtomicBool>) -> W,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let workers = (0..count).map(|_| tokio::spawn(worker(Arc::clone(&is_over)))).collect();
        Self { is_over, workers }
    }

    /// Lets every worker finish its current task.
    pub async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.expect("a worker ends");
        }
    }

    /// Kills the node under load, and restarts it once every worker has ended. Sometimes kills it again during
    /// recovery. Returns the number of kills.
    pub async fn kill(self, node: &mut TestNode, random: &mut Random) -> u64 {
        node.kill().await;
        self.end().await;
        let while_recovering = random.below(3) == 0;
        if while_recovering {
            node.launch_and_kill(Duration::from_millis(random.below(120))).await;
        }
        node.launch().await;
        1 + u64::from(while_recovering)
    }
}

impl Worker {
    /// Opens and answers transactions until `is_over` is set. On a single node, stops at a request without an answer.
    pub async fn run(mut self, is_over: Arc<AtomicBool>) {
        while !is_over.load(Ordering::Relaxed) {
            let was_answered = self.visit().await;
            self.notes.journal.ended(if was_answered { Visit::Done } else { Visit::Failed });
            match (was_answered, self.notes.has_other_nodes) {
                (true, _) => {}
                (false, true) => sleep(PAUSE).await,
                (false, false) => break,
            }
        }
    }

    /// Runs one transaction, which may be abandoned. Returns true if all requests were answered.
    async fn visit(&mut self) -> bool {
        let Some(opened) = self.open().await else { return false };
        let callback = match self.random.below(8) {
            0 => return true,
            1 => {
                let poll = Answer::attempt(self.backend.request(Method::GET, &public::result_path(&opened.txn))).await;
                return matches!(self.expect_success("poll", poll), Ok(Some(_)));
            }
            2 => Callback::Rejection,
            _ => Callback::Credential(self.identity_app.credential(&opened, "asha")),
        };
        let answer = self.notes.post(&self.identity_app, &opened, &callback).await;
        matches!(self.expect_success("callback", answer), Ok(Some(_)))
    }

    /// Opens a transaction, perhaps under an idempotency key; `None` without a successful answer.
    async fn open(&mut self) -> Option<Opened> {
        let key = (self.random.below(2) == 0).then(|| format!("key-{:016x}", self.random.next()));
        let asked_at = self.notes.now();
        let answer = init(&self.backend, key.as_deref(), &self.webhook).await;
        match self.expect_success("init", answer) {
            Ok(Some(answer)) => {
                let opened = Opened::read(&answer.json());
                self.notes.record_opened(&opened.txn, asked_at);
                Some(opened)
            }
            Ok(None) => None,
            Err(NoAnswer) => {
                match key {
                    Some(key) => self.notes.in_doubt.lock().unwrap().keys.push(key),
                    None => self.notes.journal.opening_unknown(),
                }
                None
            }
        }
    }

    /// Returns a successful answer, and records an answer that must never occur.
    fn expect_success(
        &self,
        request: &str,
        answer: Result<Answer, reqwest::Error>,
    ) -> Result<Option<Answer>, NoAnswer> {
        match answer {
            Ok(answer) if answer.status == 200 => Ok(Some(answer)),
            Ok(answer) if answer.status >= 500 && self.notes.has_other_nodes => Err(NoAnswer),
            Ok(answer) => {
                self.notes.journal.problem(format!("{request}: {} {}", answer.status, answer.text));
                Ok(None)
            }
            Err(_) => Err(NoAnswer),
        }
    }
}

/// The error of a request without an answer.
struct NoAnswer;

/// Sends an init, perhaps under an idempotency key.
async fn init(backend: &Backend, key: Option<&str>, webhook: &str) -> Result<Answer, reqwest::Error> {
    let call = public::init(&json!({"claims": ["name", "dob"], "channel": "qr", "webhook_url": webhook}));
    let call = if let Some(key) = key { call.once(key) } else { call };
    Answer::attempt(backend.api().request(call).expect("a body")).await
}

/// The client of a storm, its identity app and its webhook receiver, with their notes.
pub struct StormClient {
    pub backend: Backend,
    pub identity_app: IdentityApp,
    pub receiver: WebhookReceiver,
    pub notes: Arc<Notes>,
}

impl StormClient {
    /// Creates a client of the node.
    pub async fn create(node: &TestNode, has_other_nodes: bool) -> Self {
        let receiver = WebhookReceiver::start(Behaviour::SlowAnswer(Duration::from_millis(10))).await.expect("a port");
        Self {
            backend: node.backend_with_credits(CREDITS).await,
            identity_app: node.identity_app(),
            receiver,
            notes: Notes::begin(has_other_nodes),
        }
    }

    /// Returns the same client, calling another address.
    pub fn through(self, addresses: &Addresses) -> Self {
        Self { backend: self.backend.through(addresses), identity_app: self.identity_app.through(addresses), ..self }
    }

    /// Returns a new worker of this client.
    pub fn worker(&self, random: &mut Random) -> Worker {
        Worker {
            backend: self.backend.clone(),
            identity_app: self.identity_app.clone(),
            notes: Arc::clone(&self.notes),
            webhook: self.receiver.url("/hook"),
            random: Random::from_seed(random.next()),
        }
    }

    /// Waits until a count in the notes has increased by `increase`.
    pub async fn wait_for_growth(&self, event: &str, count: impl Fn(&Notes) -> usize, increase: usize) {
        let goal = count(&self.notes) + increase;
        eventually(event, TIMEOUT, || async { (count(&self.notes) >= goal).then_some(()) }).await;
    }

    /// Retries the requests without an answer, all of which must now be answered.
    async fn retry_unanswered(&self) {
        let keys = std::mem::take(&mut self.notes.in_doubt.lock().unwrap().keys);
        for key in keys {
            let asked_at = self.notes.now();
            let answer = init(&self.backend, Some(&key), &self.receiver.url("/hook")).await.expect("an answer");
            self.notes.record_opened(&Opened::read(&answer.ok()).txn, asked_at);
        }
        let callbacks = self.notes.in_doubt.lock().unwrap().callbacks.clone();
        for (opened, callback, _) in callbacks.values() {
            self.notes.post(&self.identity_app, opened, callback).await.expect("an answer");
        }
        assert!(self.notes.in_doubt.lock().unwrap().callbacks.is_empty(), "a callback has no answer");
    }

    /// Reads the result of every transaction.
    pub async fn poll(&self) {
        let txns: Vec<String> = self.notes.journal.with(|records| records.entries.keys().cloned().collect());
        for txn in txns {
            let result = self.backend.result(&txn).await;
            let polled = if result.status == 200 {
                PollResult::read(&result.json())
            } else {
                PollResult::Refused(result.status)
            };
            self.notes.journal.polled(&txn, polled);
        }
    }

    /// Returns the webhooks so far.
    pub fn arrivals(&self) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for request in self.receiver.received() {
            arrivals.add(&request.body, self.notes.now());
        }
        arrivals
    }

    /// Retries unanswered requests, and checks all invariants and answers.
    ///
    /// At most `unknown_max` webhooks were in flight when a node was killed.
    pub async fn assert_invariants(&self, node: &TestNode, unknown_max: u64, event: Option<&TestEvent>) -> Evidence {
        self.retry_unanswered().await;
        let evidence = self.evidence(node, unknown_max, event).await;
        let broken: Vec<_> = judge(&evidence).into_iter().filter(|finding| !finding.held).collect();
        assert!(
            broken.is_empty() && evidence.journal.problems.is_empty(),
            "{broken:#?} {:#?}",
            evidence.journal.problems
        );
        evidence
    }

    /// Collects the service's final state and the notes.
    async fn evidence(&self, node: &TestNode, unknown_max: u64, event: Option<&TestEvent>) -> Evidence {
        let operator = node.operator();
        let (api, admin, client) = (self.backend.api(), operator.api(), &self.backend.client);
        self.poll().await;
        let mut outcomes = HashMap::new();
        for (txn, entry) in self.notes.journal.with(|records| records.entries.clone()) {
            let Some(callback) = entry.callback else { continue };
            let is_reported =
                callback.reply == Reply::Accepted && (event.is_none() || callback.kind == CallbackKind::Consent);
            if is_reported || admin.send(internal::delivery(&txn)).await.is_ok() {
                outcomes.insert(txn.clone(), operator.outcome(&txn).await);
            }
        }
        let webhooks = self.arrivals();
        let event = match event {
            Some(event) => {
                let view = api.send(public::event(&event.id)).await.expect("the event");
                Some((view, api.registered(&event.id).await.expect("the guests")))
            }
            None => None,
        };
        let journal = self.notes.journal.with(Clone::clone);
        Evidence {
            started: journal.visits,
            journal,
            webhooks,
            deliveries: Some(Deliveries { outcomes, unknown_max }),
            granted: i64::try_from(CREDITS).expect("a number of credits"),
            has_poll_results: true,
            ledger: admin.ledger(client).await.expect("the ledger"),
            balance: admin.send(internal::balance(client)).await.expect("the balance").balance,
            event,
            ..Evidence::default()
        }
    }
}

/// Summarises a storm in one line.
pub fn summary(evidence: &Evidence) -> String {
    let journal = &evidence.journal;
    let accepted = [CallbackKind::Consent, CallbackKind::Refusal]
        .map(|kind| journal.txns_with_reply(kind, Reply::Accepted).count());
    let outcomes = evidence.deliveries.iter().flat_map(|deliveries| &deliveries.outcomes);
    let unknown: Vec<_> = outcomes.filter(|(_, outcome)| *outcome == "unknown").collect();
    let lost = unknown.iter().filter(|(txn, _)| !evidence.webhooks.by_txn.contains_key(*txn)).count();
    format!(
        "{} opened, {} completed, {} inits in doubt, {} deliveries unknown, {lost} of them never arrived",
        journal.entries.len(),
        accepted.iter().sum::<usize>(),
        journal.unknown_openings,
        unknown.len()
    )
}
