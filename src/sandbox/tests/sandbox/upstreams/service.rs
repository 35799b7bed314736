//! A test double of the service's internal listener. It gives a configured reply, or else checks a report against its
//! flow.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::{FetchState, FlowState, NextState};
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::transition::{ReportDigest, Transition};
use sakshi_domain::time::Timestamp;
use sakshi_wire::reports::FlowReport;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// A received report and its answer.
#[derive(Clone, Debug)]
pub(crate) struct ArrivedReport {
    pub(crate) kind: ReportKind,
    pub(crate) authorization: String,
    pub(crate) body: Value,
    pub(crate) status: u16,
}

/// A configured reply, without a check of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    Status(u16),
    /// 503 with `Retry-After: 0`.
    Overloaded,
    /// Closes the connection.
    HangUp,
}

/// The state of the listener.
#[derive(Default)]
struct State {
    /// The open flows, with their fetches of wealth data by key.
    flows: HashMap<FlowId, (FlowState, HashMap<String, FetchState>)>,
    reports: Vec<ArrivedReport>,
    /// Replies to the next reports, before any report is checked.
    replies: VecDeque<Reply>,
}

/// A running listener.
pub(crate) struct Service {
    pub(crate) base: String,
    state: Arc<Mutex<State>>,
    server: AbortHandle,
}

impl Service {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { base, state, server: server.abort_handle() }
    }

    /// Adds a flow, as if a client had opened it.
    pub(crate) fn add_flow(&self, flow: FlowState) {
        self.state.lock().unwrap().flows.insert(flow.header().id, (flow, HashMap::new()));
    }

    /// Configures the replies to the next reports.
    pub(crate) fn queue_replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.lock().unwrap().replies.extend(replies);
    }

    /// Returns the reports that have arrived, in order.
    pub(crate) fn reports(&self) -> Vec<ArrivedReport> {
        self.state.lock().unwrap().reports.clone()
    }

    pub(crate) fn flow_state(&self, id: FlowId) -> FlowState {
        let state = self.state.lock().unwrap();
        let (flow, _fetches) = &state.flows[&id];
        flow.clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(request: Request<Incoming>, state: Arc<Mutex<State>>) -> Result<Response<Full<Bytes>>, HungUp> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let kind: ReportKind = head.uri.path().strip_prefix("/internal/v1/flows/").unwrap().parse().unwrap();
    let mut state = state.lock().unwrap();
    let (status, answer) = match state.replies.pop_front() {
        None => check_report(&mut state, kind, &body),
        Some(Reply::Status(status)) => (status, json!({"success": false, "message": "as configured"})),
        Some(Reply::Overloaded) => (503, json!({"success": false, "message": "overloaded"})),
        Some(Reply::HangUp) => return Err(HungUp),
    };
    let authorization = head.headers.get(AUTHORIZATION).unwrap().to_str().unwrap().to_owned();
    state.reports.push(ArrivedReport { kind, authorization, body: serde_json::from_slice(&body).unwrap(), status });
    let response = Response::builder().status(status).header(RETRY_AFTER, "0");
    Ok(response.body(Full::from(answer.to_string())).unwrap())
}

#[derive(Debug, thiserror::Error)]
#[error("the listener hangs up")]
struct HungUp;

impl From<Infallible> for HungUp {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Checks a report against its flow and changes the flow. Returns the status and the JSON of the answer.
fn check_report(state: &mut State, kind: ReportKind, body: &[u8]) -> (u16, Value) {
    let report = match FlowReport::parse(kind, body) {
        Ok(report) => report,
        Err(invalid) => return (400, json!({"success": false, "message": invalid.to_string()})),
    };
    let now = Timestamp::from_millis(0);
    let Some((flow, fetches)) = state.flows.get_mut(&report.flow()) else {
        return (404, json!({"message": "no such flow"}));
    };
    let fetch = report.fetch_key();
    let transition = report.admit(flow).and_then(|admitted| {
        let payload = serde_json::to_vec(&admitted).unwrap();
        let digest = ReportDigest(digest(&SHA256, &payload).as_ref().try_into().unwrap());
        admitted.transition(flow, fetch.as_ref().and_then(|fetch| fetches.get(fetch).copied()), digest, now)
    });
    match transition {
        Err(refusal) => (409, json!({"success": false, "code": "report_refused", "message": refusal.to_string()})),
        Ok(Transition::Repeated) => (200, json!({"success": true, "result": "repeated"})),
        Ok(Transition::Progressed { next } | Transition::WebhookDue { next, .. }) => {
            match next {
                NextState::Flow(next) => *flow = next,
                NextState::Fetch(next) => drop(fetches.insert(fetch.unwrap(), next)),
            }
            (200, json!({"success": true, "result": "accepted"}))
        }
    }
}
