//! Storms: clients and identity apps that work while nodes are killed, a journal of what they were told, and
//! the check of every invariant afterwards.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::Method;
use sakshi_client::{internal, public};
use sakshi_judge::journal::{Answered, Entry, Journal, Polled, Posted, REJECTED, Reply, Visit};
use sakshi_judge::webhooks::Arrivals;
use sakshi_judge::{Deliveries, Evidence, judge};
use sakshi_sandbox::receiver::WebhookReceiver;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::answer::Answer;
use super::backend::{Backend, Opened};
use super::event::TestEvent;
use super::identity_app::{CallbackFormat, IdentityApp};
use super::operator::Operator;
use super::random::Random;

/// Pause of a worker after a request without an answer.
const PAUSE: Duration = Duration::from_millis(20);

/// What the identity app posts.
#[derive(Clone, Debug)]
pub enum Callback {
    Credential(String),
    Rejection,
}

/// What has no answer yet and must be repeated, as any client would.
#[derive(Debug, Default)]
struct InDoubt {
    /// Callbacks and when they were first sent, by transaction.
    callbacks: BTreeMap<String, (Opened, Callback, Duration)>,
    /// Idempotency keys of inits.
    keys: Vec<String>,
}

/// What everybody was told during a storm.
#[derive(Debug)]
pub struct Notes {
    pub journal: Journal,
    in_doubt: Mutex<InDoubt>,
    origin: Instant,
    /// There are other nodes: work goes on after a request without an answer, and a 5xx counts as none.
    goes_on: bool,
}

impl Notes {
    pub fn begin(goes_on: bool) -> Arc<Self> {
        Arc::new(Self { journal: Journal::default(), in_doubt: Mutex::default(), origin: Instant::now(), goes_on })
    }

    /// Transactions with a callback that was accepted.
    pub fn accepted(&self) -> usize {
        let is_accepted = |entry: &&Entry| entry.answered.is_some_and(|answered| answered.reply == Reply::Accepted);
        self.journal.with(|pages| pages.entries.values().filter(is_accepted).count())
    }

    /// Callbacks that were accepted, and requests without an answer that can be repeated.
    pub fn sent(&self) -> usize {
        let in_doubt = self.in_doubt.lock().unwrap();
        self.accepted() + in_doubt.callbacks.len() + in_doubt.keys.len()
    }

    pub fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    pub fn opened(&self, txn: &str, asked: Duration) {
        self.journal.opened(txn, Entry { guest: 0, asked, opened: self.now(), expires: None, answered: None, polled: None });
    }

    /// Posts a callback and writes down what came back.
    pub async fn post(&self, identity_app: &IdentityApp, opened: &Opened, callback: &Callback) -> Result<Answer, reqwest::Error> {
        let (posted, body) = match callback {
            Callback::Credential(credential) => (Posted::Consent, CallbackFormat::Json.success(&opened.txn, credential)),
            Callback::Rejection => (Posted::Refusal, CallbackFormat::Json.failure(&opened.txn, REJECTED, "User Reject")),
        };
        let first = || (opened.clone(), callback.clone(), self.now());
        let (.., sent) = *self.in_doubt.lock().unwrap().callbacks.entry(opened.txn.clone()).or_insert_with(first);
        let request = identity_app.request(&opened.callback_path(), CallbackFormat::Json.content_type(), body);
        let answer = Answer::attempt(request).await?;
        if answer.status < 500 || !self.goes_on {
            let reply = match answer.status {
                200 => Reply::Accepted,
                409 => Reply::Full,
                status => Reply::Refused(status),
            };
            self.journal.answered(&opened.txn, Answered { posted, sent, replied: self.now(), reply });
            self.in_doubt.lock().unwrap().callbacks.remove(&opened.txn);
        }
        Ok(answer)
    }

    /// Repeats the callbacks without an answer.
    pub async fn repeat_callbacks(&self, identity_app: &IdentityApp) {
        let callbacks = self.in_doubt.lock().unwrap().callbacks.clone();
        for (opened, callback, _) in callbacks.values() {
            self.post(identity_app, opened, callback).await.expect("an answer");
        }
        assert!(self.in_doubt.lock().unwrap().callbacks.is_empty(), "a callback has no answer");
    }
}

/// A client and its identity app.
pub struct Worker {
    pub backend: Backend,
    pub identity_app: Arc<IdentityApp>,
    pub notes: Arc<Notes>,
    pub webhook: String,
    pub random: Random,
}

/// Workers at work.
pub struct Load {
    over: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    pub fn start(workers: impl IntoIterator<Item = Worker>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let workers = workers.into_iter().map(|worker| tokio::spawn(worker.run(Arc::clone(&over)))).collect();
        Self { over, workers }
    }

    /// Lets every worker finish what it does.
    pub async fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.expect("a worker ends");
        }
    }
}

impl Worker {
    /// Opens and answers transactions until it is over; on a single node, until a request is not answered.
    async fn run(mut self, over: Arc<AtomicBool>) {
        while !over.load(Ordering::Relaxed) {
            let was_answered = self.visit().await;
            self.notes.journal.ended(if was_answered { Visit::Done } else { Visit::Failed });
            match (was_answered, self.notes.goes_on) {
                (true, _) => {}
                (false, true) => sleep(PAUSE).await,
                (false, false) => break,
            }
        }
    }

    /// One transaction, as far as this worker takes it; whether all of it was answered.
    async fn visit(&mut self) -> bool {
        let Some(opened) = self.open().await else { return false };
        let callback = match self.random.below(8) {
            0 => return true,
            1 => {
                let poll = Answer::attempt(self.backend.request(Method::GET, &public::result_path(&opened.txn))).await;
                return matches!(self.answered("poll", poll), Ok(Some(_)));
            }
            2 => Callback::Rejection,
            _ => Callback::Credential(self.identity_app.credential(&opened, "asha")),
        };
        let answer = self.notes.post(&self.identity_app, &opened, &callback).await;
        matches!(self.answered("callback", answer), Ok(Some(_)))
    }

    async fn open(&mut self) -> Option<Opened> {
        let key = (self.random.below(2) == 0).then(|| format!("key-{:016x}", self.random.next()));
        let asked = self.notes.now();
        let answer = init(&self.backend, key.as_deref(), &self.webhook).await;
        match self.answered("init", answer) {
            Ok(Some(answer)) => {
                let opened = Opened::read(&answer.json());
                self.notes.opened(&opened.txn, asked);
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

    /// The answer, unless it is one that should never be given, which is noted.
    fn answered(&self, what: &str, answer: Result<Answer, reqwest::Error>) -> Result<Option<Answer>, NoAnswer> {
        match answer {
            Ok(answer) if answer.status == 200 => Ok(Some(answer)),
            Ok(answer) if answer.status >= 500 && self.notes.goes_on => Err(NoAnswer),
            Ok(answer) => {
                self.notes.journal.trouble(format!("{what}: {} {}", answer.status, answer.text));
                Ok(None)
            }
            Err(_) => Err(NoAnswer),
        }
    }
}

struct NoAnswer;

async fn init(backend: &Backend, key: Option<&str>, webhook: &str) -> Result<Answer, reqwest::Error> {
    let call = public::init(&json!({"claims": ["name", "dob"], "channel": "qr", "webhook_url": webhook}));
    let call = if let Some(key) = key { call.once(key) } else { call };
    Answer::attempt(backend.api().request(call).expect("a body")).await
}

/// Who is asked after a storm.
pub struct Witnesses<'a> {
    pub backend: &'a Backend,
    pub identity_app: &'a IdentityApp,
    pub operator: Operator,
    pub receiver: &'a WebhookReceiver,
    pub notes: &'a Notes,
}

impl Witnesses<'_> {
    /// Repeats what has no answer, until everything has one.
    pub async fn resolve(&self) {
        let keys = std::mem::take(&mut self.notes.in_doubt.lock().unwrap().keys);
        for key in keys {
            let asked = self.notes.now();
            let answer = init(self.backend, Some(&key), &self.receiver.url("/hook")).await.expect("an answer");
            self.notes.opened(&Opened::read(&answer.ok()).txn, asked);
        }
        self.notes.repeat_callbacks(self.identity_app).await;
    }

    /// Reads the result of every transaction.
    pub async fn poll(&self) {
        let txns: Vec<String> = self.notes.journal.with(|pages| pages.entries.keys().cloned().collect());
        for txn in txns {
            let result = self.backend.result(&txn).await;
            let polled = if result.status == 200 { Polled::read(&result.json()) } else { Polled::Refused(result.status) };
            self.notes.journal.polled(&txn, polled);
        }
    }

    /// The webhooks so far.
    pub fn arrivals(&self) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for request in self.receiver.received() {
            arrivals.add(&request.body, self.notes.now());
        }
        arrivals
    }

    /// What the service says at the end beside what everybody was told. The client was granted `credits`; of
    /// the webhooks, at most `unknown_max` were being sent when a node was killed.
    pub async fn evidence(&self, credits: u64, unknown_max: u64, event: Option<&TestEvent>) -> Evidence {
        let (api, admin, client) = (self.backend.api(), self.operator.api(), &self.backend.client);
        self.poll().await;
        let mut outcomes = HashMap::new();
        for (txn, entry) in self.notes.journal.with(|pages| pages.entries.clone()) {
            let Some(answered) = entry.answered else { continue };
            let is_reported = answered.reply == Reply::Accepted && (event.is_none() || answered.posted == Posted::Consent);
            if is_reported || admin.send(internal::delivery(&txn)).await.is_ok() {
                outcomes.insert(txn.clone(), self.operator.outcome(&txn).await);
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
            let_in: journal.visits,
            journal,
            webhooks,
            deliveries: Some(Deliveries { outcomes, unknown_max }),
            granted: i64::try_from(credits).expect("a number of credits"),
            polled: true,
            ledger: admin.ledger(client).await.expect("the ledger"),
            balance: admin.send(internal::balance(client)).await.expect("the balance").balance,
            event,
            ..Evidence::default()
        }
    }
}

/// Fails when an invariant does not hold, or when anybody got an answer that should never be given.
pub fn assert_held(evidence: &Evidence) {
    let broken: Vec<_> = judge(evidence).into_iter().filter(|finding| !finding.held).collect();
    assert!(broken.is_empty() && evidence.journal.troubles.is_empty(), "{broken:#?} {:#?}", evidence.journal.troubles);
}

/// The figures of a storm, in words.
pub fn summary(evidence: &Evidence) -> String {
    let journal = &evidence.journal;
    let accepted = [Posted::Consent, Posted::Refusal].map(|posted| journal.replied(posted, Reply::Accepted).count());
    let outcomes = evidence.deliveries.iter().flat_map(|deliveries| &deliveries.outcomes);
    let unknown: Vec<_> = outcomes.filter(|(_, outcome)| *outcome == "unknown").collect();
    let lost = unknown.iter().filter(|(txn, _)| !evidence.webhooks.by_txn.contains_key(*txn)).count();
    format!(
        "{} opened, {} completed, {} inits in doubt, {} deliveries unknown, {lost} of them never came",
        journal.entries.len(),
        accepted.iter().sum::<usize>(),
        journal.unknown_openings,
        unknown.len()
    )
}
