//! A collector of spans: an HTTP server that reads OTLP by the messages of OpenTelemetry itself, and keeps what it gets.

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
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::waiting::{TIMEOUT, eventually};

/// One span as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub name: String,
    /// Ids in hexadecimal; the parent of a root is empty.
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub attributes: BTreeMap<String, String>,
    /// The traces to which it is linked.
    pub links: Vec<String>,
    /// Nanoseconds since 1970.
    pub start: u64,
    pub end: u64,
    /// The name of the service, and its other attributes.
    pub resource: BTreeMap<String, String>,
}

impl Received {
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// It stops when it is dropped.
pub struct Collector {
    pub url: String,
    spans: Arc<Mutex<Vec<Received>>>,
    server: AbortHandle,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let spans = Arc::new(Mutex::new(Vec::new()));
        let server = tokio::spawn(serve(listener, Arc::clone(&spans))).abort_handle();
        Self { url, spans, server }
    }

    /// What has arrived so far.
    pub fn spans(&self) -> Vec<Received> {
        self.spans.lock().unwrap().clone()
    }

    /// The first span of this name about which this holds, once it is there.
    pub async fn span(&self, name: &str, holds: impl Fn(&Received) -> bool) -> Received {
        let found = || async { self.spans().into_iter().find(|span| span.name == name && holds(span)) };
        eventually(&format!("the span {name}"), TIMEOUT, found).await
    }

    /// The span that is the parent of another one.
    pub fn parent(&self, child: &Received) -> Received {
        let found = self.spans().into_iter().find(|span| span.trace == child.trace && span.id == child.parent);
        found.unwrap_or_else(|| panic!("no parent of {child:?}"))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, spans: Arc<Mutex<Vec<Received>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let spans = Arc::clone(&spans);
        let service = service_fn(move |request| answer(request, Arc::clone(&spans)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(request: Request<Incoming>, spans: Arc<Mutex<Vec<Received>>>) -> Result<Response<Full<Bytes>>, Infallible> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let message = ExportTraceServiceRequest::decode(body).expect("a message of OTLP");
    for resource_spans in message.resource_spans {
        let resource = attributes(&resource_spans.resource.expect("a resource").attributes);
        let arrived = resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.lock().unwrap().extend(arrived.map(|span| read(&span, resource.clone())));
    }
    Ok(Response::new(Full::default()))
}

fn read(span: &Span, resource: BTreeMap<String, String>) -> Received {
    Received {
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

fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    all.iter().map(|attribute| (attribute.key.clone(), text(attribute))).collect()
}

fn text(attribute: &KeyValue) -> String {
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
