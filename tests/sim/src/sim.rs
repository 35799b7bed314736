//! The run as people see it: nodes behind a load balancer, clients with their keys, and everybody's observations.

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

use crate::coverage::route;
use crate::diary::Diary;
use crate::network::Inbox;
use crate::node::{Answer, Edge, Node};
use crate::operators::EFFECTIVE;
use crate::world::{World, lock};

/// Longest duration of a request: two requests to actors, an order to an upstream, and the pauses between them.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Time after which the sender of a lost request gives up.
const GIVEN_UP: Duration = Duration::from_secs(8);
/// Number of tries of a request without an answer.
pub(crate) const TRIES: usize = 4;

/// A client of the service.
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
    /// True once it has registered URLs for webhooks of flows.
    pub(crate) has_urls: Cell<bool>,
    /// True if an operator has suspended it, or may have.
    pub(crate) may_be_suspended: Cell<bool>,
}

/// Everything that people use.
pub(crate) struct Sim {
    pub(crate) world: Arc<World>,
    nodes: RefCell<Vec<Option<Node>>>,
    pub(crate) inbox: Inbox,
    pub(crate) diary: Diary,
    pub(crate) tenants: Vec<Rc<Tenant>>,
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
    /// Time for which the answer may be held back on purpose.
    delay: Duration,
    /// The client it concerns; the answer must not contain another client's data.
    tenant: Option<usize>,
}

impl Request {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        let (headers, body) = (Vec::new(), Bytes::new());
        Self { method, path: path.into(), headers, body, is_internal: false, delay: Duration::ZERO, tenant: None }
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

    /// Adds the client's credentials.
    pub(crate) fn with_key_of(mut self, tenant: &Tenant) -> Self {
        self.tenant = Some(tenant.number);
        let key = tenant.key.borrow().clone();
        self.header("x-api-key", key).header("x-api-app-id", tenant.app.as_str())
    }

    /// Marks it as sent without credentials by somebody of the client.
    pub(crate) const fn seen_by(mut self, tenant: &Tenant) -> Self {
        self.tenant = Some(tenant.number);
        self
    }

    /// Sends it to the internal listener, with this token.
    pub(crate) fn internal(mut self, token: &str) -> Self {
        self.is_internal = true;
        self.header("authorization", format!("Bearer {token}"))
    }

    pub(crate) fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
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

/// The outcome of a request.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Times of the request, and of its answer or of giving up.
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
    /// `None` if no answer came.
    pub(crate) answer: Option<Answer>,
}

impl Exchange {
    /// Returns the answer if it reports an outcome; "try again" does not.
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
        let nodes = RefCell::new(vec![None; world.nodes()]);
        Rc::new(Self { world, nodes, inbox: Inbox::default(), diary: Diary::default(), tenants, names: Cell::new(0) })
    }

    pub(crate) fn node(&self, number: usize) -> Option<Node> {
        self.nodes.borrow()[number].clone()
    }

    pub(crate) fn set_node(&self, number: usize, node: Option<Node>) {
        self.nodes.borrow_mut()[number] = node;
    }

    /// Returns a name that is unique in the run.
    pub(crate) fn name(&self, what: &str) -> String {
        self.names.set(self.names.get() + 1);
        format!("{what}-{}", self.names.get())
    }

    /// Sends a request to a running node, picked as a load balancer does.
    pub(crate) async fn ask(&self, request: &Request) -> Exchange {
        let running: Vec<Node> = self.nodes.borrow().iter().flatten().cloned().collect();
        let pick = self.world.index(running.len());
        self.ask_node(running.into_iter().nth(pick), request).await
    }

    /// Retries a request for some time until an answer reports an outcome. Includes the time of the first try.
    pub(crate) async fn ask_again(&self, request: &Request, tries: usize) -> Exchange {
        let mut asked = self.ask(request).await;
        let first = asked.asked;
        for _ in 1..tries {
            if asked.outcome().is_some() {
                break;
            }
            sleep(self.world.pause(500)).await;
            asked = self.ask(request).await;
        }
        Exchange { asked: first, ..asked }
    }

    /// Returns true if the answering node may have read from a former primary, or cached what it read there.
    pub(crate) fn may_be_superseded(&self, asked: &Exchange) -> bool {
        self.world.servers.may_be_superseded(asked.asked.saturating_sub(EFFECTIVE), asked.answered)
    }

    /// Sends a request to a node.
    pub(crate) async fn ask_node(&self, node: Option<Node>, request: &Request) -> Exchange {
        let world = &self.world;
        let asked = world.begun.elapsed();
        let unanswered = || Exchange { asked, answered: world.begun.elapsed(), answer: None };
        let Some(node) = node else {
            sleep(world.pause(300)).await;
            return unanswered();
        };
        let (way, back) = (world.pause(3), world.pause(3));
        let (is_lost, answer_is_lost) =
            (world.goes_wrong("lost-requests", 100), world.goes_wrong("lost-requests", 100));
        if is_lost {
            sleep(GIVEN_UP).await;
            return unanswered();
        }
        let edge: Edge = if request.is_internal {
            node.internal.clone()
        } else {
            node.public[self.world.index(node.public.len())].clone()
        };
        let (incarnation, built) = (Arc::clone(&node.incarnation), request.build());
        let serving = async {
            sleep(way).await;
            self.hangs(&edge).await;
            let answer = edge.call(built).await;
            self.hangs(&edge).await;
            sleep(back).await;
            answer
        };
        // A caller cut off by a dying process, or whose answer is lost, does not know the outcome.
        let answer = tokio::select! {
            answer = timeout(WAIT_MAX + request.delay, serving) => Some(answer),
            () = incarnation.death() => None,
        };
        if answer_is_lost {
            sleep(GIVEN_UP).await;
            return unanswered();
        }
        match answer {
            None => unanswered(),
            Some(Err(_)) => {
                self.diary.record_fault(format!("{} {} is not answered in time", request.method, request.path));
                unanswered()
            }
            Some(Ok(answer)) => {
                self.judge(request, &answer);
                Exchange { asked, answered: world.begun.elapsed(), answer: Some(answer) }
            }
        }
    }

    /// Waits while the worker that serves an edge hangs.
    async fn hangs(&self, edge: &Edge) {
        if let Some(time) = self.world.hangs_for(edge.arbiter) {
            sleep(time).await;
        }
    }

    /// Checks what holds for every answer.
    fn judge(&self, request: &Request, answer: &Answer) {
        let Request { method, path, .. } = request;
        self.world.reach(format!("{} {method} {}", answer.status, route(path)));
        let said = format!("{} to {method} {path}", answer.status);
        // Panics are injected into callers of the store.
        if answer.status == 500 && !lock(&self.world.faults).contains_key("panics") {
            self.diary.record_fault(format!("{said}: {}", answer.text()));
        }
        let is_error = answer.status >= 400 && !path.starts_with("/cb/");
        if is_error && answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            let body = answer.json();
            if body["success"] != false
                || !body["code"].is_string()
                || body["statusCode"] != answer.status
                || !body["errorId"].is_string()
            {
                self.diary.record_fault(format!("{said} is not the body of an error: {body}"));
            }
        }
        if answer.status == 503 && self.world.is_undisturbed() {
            self.diary.record_fault(format!("{said} although nothing is in its way: {}", answer.text()));
        }
        if matches!(answer.status, 429 | 503) && answer.header("retry-after").is_none() {
            self.diary.record_fault(format!("{said} does not say when to try again"));
        }
        if request.tenant.is_some_and(|tenant| self.has_foreign(tenant, &answer.body)) {
            self.diary.record_fault(format!("{said} holds what is of another client"));
        }
    }

    /// Returns true if a client's bytes contain data of another one.
    pub(crate) fn has_foreign(&self, tenant: usize, body: &[u8]) -> bool {
        let others = self.tenants.iter().filter(|other| other.number != tenant);
        let mut marks = others.flat_map(|other| [other.app.as_str(), other.client.as_str(), &*other.resident.name]);
        marks.any(|mark| body.windows(mark.len()).any(|part| part == mark.as_bytes()))
    }
}
