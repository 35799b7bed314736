//! A run as people see it: nodes behind a load balancer, clients with their keys, and the journal of all observations.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::http::header::{CONTENT_TYPE, HeaderName};
use actix_web::test::TestRequest;
use bytes::Bytes;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_sandbox::residents::Resident;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::coverage::route_name;
use crate::journal::Journal;
use crate::network::Inbox;
use crate::node::{Answer, Edge, Node};
use crate::operators::CACHE_TIME_MAX;
use crate::world::{World, lock};

/// Longest time until an answer: two requests to actors, an order to an upstream, and the pauses between them.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// Time after which the sender of a lost request gives up.
const GIVE_UP_TIME: Duration = Duration::from_secs(8);
/// Number of tries of a request without an answer.
pub(crate) const TRIES: usize = 4;

/// A client of the service, with its app and its event.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) number: usize,
    pub(crate) client: ClientId,
    pub(crate) app: AppId,
    /// The current key, which operators replace.
    pub(crate) key: RefCell<String>,
    /// The end user of all its verifications, so that their data is recognisably this client's.
    pub(crate) resident: &'static Resident,
    pub(crate) credits: Cell<u64>,
    /// Ledger entries in the answers to operators' grants.
    pub(crate) grants: RefCell<Vec<Value>>,
    /// Its event, once it is created.
    pub(crate) event: RefCell<Option<String>>,
    /// True once it has registered URLs for the webhooks of flows.
    pub(crate) has_flow_urls: Cell<bool>,
    /// True if an operator has suspended it, or may have.
    pub(crate) may_be_suspended: Cell<bool>,
}

/// The shared state of all simulated people: the nodes that they call, the webhooks that arrive, and the journal.
pub(crate) struct Sim {
    pub(crate) world: Arc<World>,
    /// The running nodes, by number.
    nodes: RefCell<Vec<Option<Node>>>,
    pub(crate) inbox: Inbox,
    pub(crate) journal: Journal,
    pub(crate) tenants: Vec<Rc<Tenant>>,
    /// Number of unique names so far.
    names: Cell<u64>,
}

/// A request to one of a node's edges.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: Method,
    path: String,
    headers: Vec<(HeaderName, String)>,
    body: Bytes,
    is_internal: bool,
    /// Time for which the service may hold back the answer on purpose, in a long poll.
    long_poll_time: Duration,
    /// Number of the client that the request is for; the answer must not contain another client's data.
    tenant: Option<usize>,
}

impl Request {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        let (headers, body) = (Vec::new(), Bytes::new());
        Self {
            method,
            path: path.into(),
            headers,
            body,
            is_internal: false,
            long_poll_time: Duration::ZERO,
            tenant: None,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((HeaderName::from_static(name), value.into()));
        self
    }

    pub(crate) fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.headers.push((CONTENT_TYPE, content_type.to_owned()));
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// Adds a client's current API key and app id.
    pub(crate) fn with_key_of(mut self, tenant: &Tenant) -> Self {
        self.tenant = Some(tenant.number);
        let key = tenant.key.borrow().clone();
        self.header("x-api-key", key).header("x-api-app-id", tenant.app.as_str())
    }

    /// Marks a request without an API key as one for a client.
    pub(crate) const fn for_tenant(mut self, tenant: &Tenant) -> Self {
        self.tenant = Some(tenant.number);
        self
    }

    /// Directs the request to the internal listener, with this token.
    pub(crate) fn internal(mut self, token: &str) -> Self {
        self.is_internal = true;
        self.header("authorization", format!("Bearer {token}"))
    }

    pub(crate) fn with_long_poll_time(mut self, long_poll_time: Duration) -> Self {
        self.long_poll_time = long_poll_time;
        self
    }

    fn build(&self) -> actix_http::Request {
        let address = "203.0.113.7:4444".parse().expect("an address");
        let mut request = TestRequest::default().method(self.method.clone()).uri(&self.path).peer_addr(address);
        for header in &self.headers {
            request = request.insert_header((header.0.clone(), header.1.as_str()));
        }
        request.set_payload(self.body.clone()).to_request()
    }
}

/// A request's times and its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) sent_at: Duration,
    /// Time of the answer, or of giving up.
    pub(crate) answered_at: Duration,
    /// `None` if no answer came.
    pub(crate) answer: Option<Answer>,
}

impl Exchange {
    /// Returns the answer if it reports an outcome; an answer with status 5xx asks for a retry instead.
    pub(crate) fn outcome(&self) -> Option<&Answer> {
        self.answer.as_ref().filter(|answer| answer.status < 500)
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Sim {
    pub(crate) fn new(world: Arc<World>, tenants: Vec<Rc<Tenant>>) -> Rc<Self> {
        let nodes = RefCell::new(vec![None; world.node_count()]);
        Rc::new(Self {
            world,
            nodes,
            inbox: Inbox::default(),
            journal: Journal::default(),
            tenants,
            names: Cell::new(0),
        })
    }

    /// Returns a node, if it runs.
    pub(crate) fn node(&self, number: usize) -> Option<Node> {
        self.nodes.borrow()[number].clone()
    }

    pub(crate) fn set_node(&self, number: usize, node: Option<Node>) {
        self.nodes.borrow_mut()[number] = node;
    }

    /// Returns a name that is unique in the run.
    pub(crate) fn unique_name(&self, prefix: &str) -> String {
        self.names.set(self.names.get() + 1);
        format!("{prefix}-{}", self.names.get())
    }

    /// Sends a request to a random running node, as a load balancer does.
    pub(crate) async fn send(&self, request: &Request) -> Exchange {
        let running: Vec<Node> = self.nodes.borrow().iter().flatten().cloned().collect();
        let index = self.world.random_index(running.len());
        self.send_to_node(running.into_iter().nth(index), request).await
    }

    /// Sends a request at most `tries` times, until an answer reports an outcome. The exchange begins with the first
    /// try.
    pub(crate) async fn send_with_retries(&self, request: &Request, tries: usize) -> Exchange {
        let mut exchange = self.send(request).await;
        let first_sent_at = exchange.sent_at;
        for _ in 1..tries {
            if exchange.outcome().is_some() {
                break;
            }
            sleep(self.world.random_pause(500)).await;
            exchange = self.send(request).await;
        }
        Exchange { sent_at: first_sent_at, ..exchange }
    }

    /// Returns true if the answering node may have used stale state of a former primary, read or cached.
    pub(crate) fn may_be_superseded(&self, exchange: &Exchange) -> bool {
        self.world.servers.may_be_superseded(exchange.sent_at.saturating_sub(CACHE_TIME_MAX), exchange.answered_at)
    }

    /// Sends a request to a node; without a node, nothing answers.
    pub(crate) async fn send_to_node(&self, node: Option<Node>, request: &Request) -> Exchange {
        let world = &self.world;
        let sent_at = world.started_at.elapsed();
        let unanswered = || Exchange { sent_at, answered_at: world.started_at.elapsed(), answer: None };
        let Some(node) = node else {
            sleep(world.random_pause(300)).await;
            return unanswered();
        };
        let (request_delay, response_delay) = (world.random_pause(3), world.random_pause(3));
        let (is_request_lost, is_answer_lost) =
            (world.injects_in_10_000("lost-requests", 100), world.injects_in_10_000("lost-requests", 100));
        if is_request_lost {
            sleep(GIVE_UP_TIME).await;
            return unanswered();
        }
        let edge: Edge = if request.is_internal {
            node.internal.clone()
        } else {
            node.public[self.world.random_index(node.public.len())].clone()
        };
        let (incarnation, http_request) = (Arc::clone(&node.incarnation), request.build());
        let serving = async {
            sleep(request_delay).await;
            self.wait_while_hung(&edge).await;
            let answer = edge.call(http_request).await;
            self.wait_while_hung(&edge).await;
            sleep(response_delay).await;
            answer
        };
        // A caller cut off by a dying process, or whose answer is lost, does not know the outcome.
        let answer = tokio::select! {
            answer = timeout(REQUEST_TIME_MAX + request.long_poll_time, serving) => Some(answer),
            () = incarnation.death() => None,
        };
        if is_answer_lost {
            sleep(GIVE_UP_TIME).await;
            return unanswered();
        }
        match answer {
            None => unanswered(),
            Some(Err(_)) => {
                self.journal.record_violation(format!("{} {} is not answered in time", request.method, request.path));
                unanswered()
            }
            Some(Ok(answer)) => {
                self.check_answer(request, &answer);
                Exchange { sent_at, answered_at: world.started_at.elapsed(), answer: Some(answer) }
            }
        }
    }

    /// Waits while the worker that serves an edge hangs.
    async fn wait_while_hung(&self, edge: &Edge) {
        if let Some(time) = self.world.remaining_hang(edge.arbiter) {
            sleep(time).await;
        }
    }

    /// Checks the rules that every answer must follow, and counts the answer.
    fn check_answer(&self, request: &Request, answer: &Answer) {
        let Request { method, path, .. } = request;
        self.world.count_occurrence(format!("{} {method} {}", answer.status, route_name(path)));
        let description = format!("{} to {method} {path}", answer.status);
        // Panics are injected into callers of the store.
        if answer.status == 500 && !lock(&self.world.faults).contains_key("panics") {
            self.journal.record_violation(format!("{description}: {}", answer.text()));
        }
        let is_error = answer.status >= 400 && !path.starts_with("/cb/");
        if is_error && answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            let body = answer.json();
            if body["success"] != false
                || !body["code"].is_string()
                || body["statusCode"] != answer.status
                || !body["errorId"].is_string()
            {
                self.journal.record_violation(format!("{description} is not the body of an error: {body}"));
            }
        }
        if answer.status == 503 && self.world.is_undisturbed() {
            self.journal.record_violation(format!("{description} although nothing is in its way: {}", answer.text()));
        }
        if matches!(answer.status, 429 | 503) && answer.header("retry-after").is_none() {
            self.journal.record_violation(format!("{description} does not say when to try again"));
        }
        if request.tenant.is_some_and(|tenant| self.has_foreign_data(tenant, &answer.body)) {
            self.journal.record_violation(format!("{description} holds what is of another client"));
        }
    }

    /// Returns true if bytes for a client contain data of another client.
    pub(crate) fn has_foreign_data(&self, tenant: usize, body: &[u8]) -> bool {
        let others = self.tenants.iter().filter(|other| other.number != tenant);
        let mut marks = others.flat_map(|other| [other.app.as_str(), other.client.as_str(), &*other.resident.name]);
        marks.any(|mark| body.windows(mark.len()).any(|part| part == mark.as_bytes()))
    }
}
