//! A collector of spans and log records: an HTTP server for OTLP. Spans come as OpenTelemetry messages, log
//! records as JSON.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::ports::free_address;
use super::waiting::{TIMEOUT, eventually};

/// A span as it arrived.
#[derive(Clone, Debug)]
pub struct ReceivedSpan {
    pub name: String,
    /// Ids in hexadecimal; a root has an empty parent.
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub attributes: BTreeMap<String, String>,
    /// The traces to which it is linked.
    pub links: Vec<String>,
    /// Nanoseconds since 1970.
    pub start: u64,
    pub end: u64,
    /// Attributes of the resource, including the service name.
    pub resource: BTreeMap<String, String>,
}

impl ReceivedSpan {
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// A running collector, stopped on drop.
pub struct Collector {
    pub url: String,
    arrivals: Arrivals,
    server: AbortHandle,
}

/// Everything that has arrived; two collectors may share it.
#[derive(Clone, Default)]
pub struct Arrivals {
    spans: Arc<Mutex<Vec<ReceivedSpan>>>,
    logs: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    pub async fn start() -> Self {
        Self::serve(TcpListener::bind(free_address()).await.expect("a port"), Arrivals::default())
    }

    /// Starts a new collector on the same address after this one has stopped.
    pub async fn start_again(self) -> Self {
        let (address, arrivals) = (self.url.replace("http://", ""), self.arrivals.clone());
        drop(self);
        let bind = || async { TcpListener::bind(&address).await.ok() };
        Self::serve(eventually("the port is free", TIMEOUT, bind).await, arrivals)
    }

    /// Starts a collector on this socket.
    fn serve(listener: TcpListener, arrivals: Arrivals) -> Self {
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = tokio::spawn(serve(listener, arrivals.clone())).abort_handle();
        Self { url, arrivals, server }
    }

    /// Stops accepting connections.
    pub fn stop(&self) {
        self.server.abort();
    }

    /// Returns the log records received so far.
    pub fn logs(&self) -> Vec<Value> {
        self.arrivals.logs.lock().unwrap().clone()
    }

    /// Returns the spans received so far.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.arrivals.spans.lock().unwrap().clone()
    }

    /// Waits for a span that has this name and satisfies `predicate`.
    pub async fn span(&self, name: &str, predicate: impl Fn(&ReceivedSpan) -> bool) -> ReceivedSpan {
        let find = || async { self.spans().into_iter().find(|span| span.name == name && predicate(span)) };
        eventually(&format!("the span {name}"), TIMEOUT, find).await
    }

    /// Returns the parent of a span.
    pub fn parent(&self, child: &ReceivedSpan) -> ReceivedSpan {
        let parent = self.spans().into_iter().find(|span| span.trace == child.trace && span.id == child.parent);
        parent.unwrap_or_else(|| panic!("no parent of {child:?}"))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, arrivals: Arrivals) {
    while let Ok((stream, _)) = listener.accept().await {
        let arrivals = arrivals.clone();
        let service = service_fn(move |request| answer(request, arrivals.clone()));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(request: Request<Incoming>, arrivals: Arrivals) -> Result<Response<Full<Bytes>>, Infallible> {
    let (method, path) = (request.method().as_str().to_owned(), request.uri().path().to_owned());
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    if (&*method, &*path) == ("POST", "/v1/logs") {
        arrivals.logs.lock().unwrap().extend(log_records(&body));
        return Ok(Response::new(Full::from("{}")));
    }
    assert_eq!((&*method, &*path), ("POST", "/v1/traces"));
    let message = ExportTraceServiceRequest::decode(body).expect("a message of OTLP");
    for resource_spans in message.resource_spans {
        let resource = attributes(&resource_spans.resource.expect("a resource").attributes);
        let arrived = resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
        arrivals.spans.lock().unwrap().extend(arrived.map(|span| read_span(&span, resource.clone())));
    }
    Ok(Response::new(Full::default()))
}

/// Returns the records of an `ExportLogsServiceRequest` in JSON.
fn log_records(body: &[u8]) -> Vec<Value> {
    let message: Value = serde_json::from_slice(body).expect("JSON");
    let within = |value: &Value, name: &str| value[name].as_array().expect("a list").clone();
    let scopes =
        within(&message, "resourceLogs").iter().flat_map(|resource| within(resource, "scopeLogs")).collect::<Vec<_>>();
    scopes.iter().flat_map(|scope| within(scope, "logRecords")).collect()
}

fn read_span(span: &Span, resource: BTreeMap<String, String>) -> ReceivedSpan {
    ReceivedSpan {
        name: span.name.clone(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        attributes: attributes(&span.attributes),
        links: span.links.iter().map(|link| hex(&link.trace_id)).collect(),
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        resource,
    }
}

fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    attributes.iter().map(|attribute| (attribute.key.clone(), attribute_text(attribute))).collect()
}

fn attribute_text(attribute: &KeyValue) -> String {
    match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => panic!("an attribute of another kind: {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
