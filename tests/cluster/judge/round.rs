//! A round of the judge: the shared state of its clients, who know only addresses and keys, and their histories.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::RequestBuilder;
use reqwest::header::LOCATION;
use sakshi_client::{Call, Client, Credentials};
use sakshi_kit::backend::Backend;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::Addresses;
use sakshi_kit::operator::ADMIN_TOKEN;
use sakshi_kit::random::Random;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::WebhookReceiver;
use serde_json::Value;
use tokio::time::sleep;

use super::bank::Reading;
use super::models::{
    BankOp, BankResponse, InitOp, InitResponse, PlacesOp, PlacesResponse, TransactionOp, TransactionResponse,
};
use super::order::Fact;

/// Time for which a client retries an unanswered request.
const RETRY_TIME_MAX: Duration = Duration::from_secs(40);
/// Longest pause before a retry, in milliseconds.
const PAUSE_MS_MAX: u64 = 150;

/// Facts by the record that they are about, such as a transaction.
pub(crate) type Records<Op, Ret> = BTreeMap<String, Vec<Fact<Op, Ret>>>;

/// A log of the facts about records of one kind, for concurrent clients.
pub(crate) struct FactLog<Op, Ret>(Mutex<Records<Op, Ret>>);

impl<Op, Ret> Default for FactLog<Op, Ret> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Op: Clone, Ret: Clone> FactLog<Op, Ret> {
    pub(crate) fn add(&self, record: &str, fact: Fact<Op, Ret>) {
        self.0.lock().unwrap().entry(record.to_owned()).or_default().push(fact);
    }

    pub(crate) fn has(&self, record: &str) -> bool {
        self.0.lock().unwrap().contains_key(record)
    }

    pub(crate) fn all(&self) -> Records<Op, Ret> {
        self.0.lock().unwrap().clone()
    }
}

/// The histories of a round.
#[derive(Default)]
pub(crate) struct Histories {
    pub(crate) transactions: FactLog<TransactionOp, TransactionResponse>,
    pub(crate) keys: FactLog<InitOp, InitResponse>,
    pub(crate) banks: FactLog<BankOp, BankResponse>,
    pub(crate) events: FactLog<PlacesOp, PlacesResponse>,
    /// The last body of the result of each transaction.
    pub(crate) results: Mutex<BTreeMap<String, Value>>,
    /// Readings of the ledger.
    pub(crate) ledgers: Mutex<Vec<Reading>>,
    /// Responses that should never occur.
    pub(crate) problems: Mutex<Vec<String>>,
}

/// The public listeners behind the balancer and of each node.
#[derive(Clone)]
pub(crate) struct Listeners {
    pub(crate) balancer: Addresses,
    pub(crate) nodes: Vec<Addresses>,
}

impl Listeners {
    /// Returns the balancer or a random node, each for half of the requests.
    fn pick(&self, random: &mut Random) -> &Addresses {
        if random.below(2) == 0 { &self.balancer } else { self.pick_node(random) }
    }

    fn pick_node(&self, random: &mut Random) -> &Addresses {
        &self.nodes[random.below(self.nodes.len() as u64) as usize]
    }
}

/// A response of the service.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) text: String,
    pub(crate) location: Option<String>,
}

/// The response to a request that was perhaps retried, with the times of the attempts.
#[derive(Clone)]
pub(crate) struct TimedAnswer {
    /// The time of the first attempt, if there were several.
    pub(crate) first: Option<Duration>,
    /// The time of the last attempt.
    pub(crate) invoked: Duration,
    /// The time of the response, and the response; `None` if no attempt was answered.
    pub(crate) reply: Option<(Duration, Reply)>,
}

/// The state that all processes (concurrent clients) of a round share.
pub(crate) struct Round {
    pub(crate) origin: Instant,
    pub(crate) http: reqwest::Client,
    pub(crate) listeners: Listeners,
    pub(crate) identity_app: IdentityApp,
    /// A client with enough credits for all.
    pub(crate) rich_client: Backend,
    /// A client with few credits.
    pub(crate) poor_client: Backend,
    pub(crate) receiver: WebhookReceiver,
    pub(crate) histories: Histories,
    /// True at the end of the round: no process starts another operation.
    pub(crate) is_over: AtomicBool,
    /// True if a replica may take over: unconfirmed readings may then include writes that get lost (docs/promises.md).
    pub(crate) may_fail_over: AtomicBool,
    /// True if a node has a wrong clock: it may refuse credentials and end windows early.
    pub(crate) is_clock_wrong: AtomicBool,
    answers: AtomicUsize,
    unanswered: AtomicUsize,
    processes: AtomicU32,
}

impl Round {
    pub(crate) fn new(
        origin: Instant,
        listeners: Listeners,
        identity_app: IdentityApp,
        [rich_client, poor_client]: [Backend; 2],
        receiver: WebhookReceiver,
    ) -> Arc<Self> {
        let http = sakshi_client::http(Duration::from_secs(3), false).expect("an HTTP client");
        Arc::new(Self {
            origin,
            http,
            listeners,
            identity_app,
            rich_client,
            poor_client,
            receiver,
            histories: Histories::default(),
            is_over: AtomicBool::new(false),
            may_fail_over: AtomicBool::new(false),
            is_clock_wrong: AtomicBool::new(false),
            answers: AtomicUsize::new(0),
            unanswered: AtomicUsize::new(0),
            processes: AtomicU32::new(0),
        })
    }

    pub(crate) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    /// Returns the number of a new process.
    pub(crate) fn next_process(&self) -> u32 {
        self.processes.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of answers so far.
    pub(crate) fn answers(&self) -> usize {
        self.answers.load(Ordering::SeqCst)
    }

    /// Returns the number of requests without an answer so far.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.load(Ordering::SeqCst)
    }

    /// Waits until `count` more requests are answered.
    pub(crate) async fn await_answers(&self, count: usize) {
        let goal = self.answers() + count;
        eventually("the clients get answers", 5 * TIMEOUT, || async { (self.answers() >= goal).then_some(()) }).await;
    }

    /// Returns true while the service promises that readings are current.
    pub(crate) fn are_readings_current(&self) -> bool {
        !self.may_fail_over.load(Ordering::SeqCst)
    }

    /// Records a response that should never occur, in a sentence.
    pub(crate) fn add_problem(&self, sentence: String) {
        self.histories.problems.lock().unwrap().push(sentence);
    }

    /// Returns the API of a client's backend at an address.
    pub(crate) fn api(&self, backend: &Backend, address: &Addresses) -> Client {
        let credentials = Credentials::Client { key: backend.key.clone().into(), app: backend.app.clone() };
        Client::new(self.http.clone(), address.public_base(), credentials)
    }

    /// Calls an operation with a client's credentials, and retries it until it is answered.
    pub(crate) async fn call<T>(
        &self,
        backend: &Backend,
        random: &mut Random,
        call: impl Fn() -> Call<T>,
    ) -> TimedAnswer {
        self.retry(random, |address| self.api(backend, address).request(call()).expect("a body")).await
    }

    /// Calls an operator's operation at a random node, and retries it until it is answered.
    pub(crate) async fn call_operator<T>(&self, random: &mut Random, call: impl Fn() -> Call<T>) -> TimedAnswer {
        // The balancer does not forward operators' requests, so a node stands in for it.
        let nodes = Listeners { balancer: self.listeners.pick_node(random).clone(), ..self.listeners.clone() };
        let admin = |node: &Addresses| {
            Client::new(self.http.clone(), node.internal_base(), Credentials::Bearer(ADMIN_TOKEN.to_owned().into()))
        };
        self.retry_at(&nodes, random, |node| admin(node).request(call()).expect("a body")).await
    }

    /// Retries a request until it is answered, as `docs/guides/errors.md` says.
    pub(crate) async fn retry(
        &self,
        random: &mut Random,
        request: impl Fn(&Addresses) -> RequestBuilder,
    ) -> TimedAnswer {
        self.retry_at(&self.listeners, random, request).await
    }

    async fn retry_at(
        &self,
        listeners: &Listeners,
        random: &mut Random,
        request: impl Fn(&Addresses) -> RequestBuilder,
    ) -> TimedAnswer {
        let (started_at, mut first) = (self.now(), None);
        loop {
            let (address, invoked) = (listeners.pick(random).clone(), self.now());
            let reply = self.send(request(&address)).await.map(|reply| (self.now(), reply));
            if reply.is_some() || self.now() - started_at > RETRY_TIME_MAX {
                return TimedAnswer { first, invoked, reply };
            }
            first = Some(started_at);
            sleep(Duration::from_millis(random.below(PAUSE_MS_MAX))).await;
        }
    }

    /// Retries a request as [`Scene::retry`] does. In a quarter of the calls, gives up after one attempt.
    pub(crate) async fn retry_or_give_up(
        &self,
        random: &mut Random,
        request: impl Fn(&Addresses) -> RequestBuilder,
    ) -> TimedAnswer {
        if random.below(4) == 0 { self.send_once(random, request).await } else { self.retry(random, request).await }
    }

    /// Sends a request once, through the balancer or a random node.
    pub(crate) async fn send_once(
        &self,
        random: &mut Random,
        request: impl Fn(&Addresses) -> RequestBuilder,
    ) -> TimedAnswer {
        let (invoked, address) = (self.now(), self.listeners.pick(random).clone());
        let reply = self.send(request(&address)).await;
        TimedAnswer { first: None, invoked, reply: reply.map(|reply| (self.now(), reply)) }
    }

    /// Sends a request. Returns the response; `None` if it has none, or one that asks for a retry.
    async fn send(&self, request: RequestBuilder) -> Option<Reply> {
        let reply = receive(request).await.filter(|reply| reply.status < 500 && !matches!(reply.status, 408 | 429));
        let count = if reply.is_some() { &self.answers } else { &self.unanswered };
        count.fetch_add(1, Ordering::SeqCst);
        reply
    }

    /// Records an operation of a process on a record, with the response that `read` returns. Attempts without a
    /// response become operations of their own, which may take effect at any time.
    pub(crate) fn record<Op: Clone + Debug, Ret: Clone>(
        &self,
        (log, record): (&FactLog<Op, Ret>, &str),
        (process, op): (u32, Op),
        answer: TimedAnswer,
        read: impl Fn(&Reply) -> Option<Ret>,
    ) {
        let TimedAnswer { first, invoked, reply } = answer;
        let unanswered_since = first.or(reply.is_none().then_some(invoked));
        if let Some(invoked) = unanswered_since {
            log.add(record, Fact { process: self.next_process(), op: op.clone(), invoked, ended: None });
        }
        let Some((ended, reply)) = reply else { return };
        match read(&reply) {
            Some(ret) => log.add(record, Fact { process, op, invoked, ended: Some((ended, ret)) }),
            None => self.record_unexpected(&format!("{op:?} of {record}"), &reply),
        }
    }

    /// Records a reading as [`Round::record`] does. Its attempts without a response change nothing, and are left out.
    pub(crate) fn record_reading<Op: Clone + Debug, Ret: Clone>(
        &self,
        log_and_record: (&FactLog<Op, Ret>, &str),
        operation: (u32, Op),
        answer: TimedAnswer,
        read: impl Fn(&Reply) -> Option<Ret>,
    ) {
        if answer.reply.is_some() {
            self.record(log_and_record, operation, TimedAnswer { first: None, ..answer }, read);
        }
    }

    /// Records a response that the model does not have, unless a wrong clock explains it.
    pub(crate) fn record_unexpected(&self, operation: &str, reply: &Reply) {
        let is_clock_error = self.is_clock_wrong.load(Ordering::SeqCst) && matches!(reply.status, 400 | 410);
        if !is_clock_error {
            self.add_problem(format!("{operation}: {} {}", reply.status, reply.text));
        }
    }
}

/// Pauses for at most `ms_max` milliseconds.
pub(crate) async fn pause(random: &mut Random, ms_max: u64) {
    sleep(Duration::from_millis(random.below(ms_max))).await;
}

/// Sends a request and reads the whole response; `None` if the connection fails.
async fn receive(request: RequestBuilder) -> Option<Reply> {
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok()).map(str::to_owned);
    let text = response.text().await.ok()?;
    Some(Reply { status, body: serde_json::from_str(&text).unwrap_or(Value::Null), text, location })
}
