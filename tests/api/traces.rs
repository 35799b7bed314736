//! Traces at an OpenTelemetry collector: one for each request, with its steps, and no personal data.

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{Backend, INIT, Opened};
use sakshi_kit::collector::Collector;
use sakshi_kit::flow::Flow;
use sakshi_kit::node::TestNode;
use sakshi_kit::upstream::Upstream;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;

/// The trace and the span of the caller, in the header `traceparent`.
const CALLERS_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLERS_SPAN: &str = "00f067aa0ba902b7";
const CALLBACK: &str = "POST /cb/{txnId}/{capability}";

/// Returns the caller's header; flags `01` ask for the trace to be recorded, `00` not.
fn traceparent(flags: &str) -> String {
    format!("00-{CALLERS_TRACE}-{CALLERS_SPAN}-{flags}")
}

/// Opens a transaction with the headers of a caller's trace.
async fn open_traced(backend: &Backend, traceparent: &str, webhook: &str) -> Opened {
    let body = json!({"claims": ["name"], "channel": "qr", "webhook_url": webhook});
    let request = backend
        .request(reqwest::Method::POST, INIT)
        .header("traceparent", traceparent)
        .header("tracestate", "vendor=1");
    Opened::read(&Answer::receive(request.json(&body)).await.ok())
}

#[tokio::test]
async fn callback_and_webhook_traces_link_to_the_callers_trace() {
    let collector = Collector::start().await;
    let node = TestNode::start_with(&[("TELEMETRY__OTLP_ENDPOINT", &collector.url)]).await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    let opened = open_traced(&backend, &traceparent("01"), &receiver.url("/hook/secret-path")).await;
    identity_app.approve(&opened, "asha").await;

    let init = collector.span(&format!("POST {INIT}"), |span| span.attribute("txn.id") == opened.txn).await;
    assert_eq!((&*init.trace, &*init.parent), (CALLERS_TRACE, CALLERS_SPAN));
    assert_eq!((init.attribute("http.request.method"), init.attribute("http.response.status_code")), ("POST", "200"));
    assert_eq!((init.attribute("client.id"), init.attribute("app.id")), (&*backend.client, &*backend.app));
    assert_eq!(init.resource["service.name"], "sakshi");
    let store_call = collector.span("open_transaction", |span| span.trace == CALLERS_TRACE).await;
    assert!(matches!(store_call.attribute("db.system.name"), "sqlite" | "redis"), "{store_call:?}");
    let message = collector.parent(&store_call);
    assert_eq!((&*message.name, message.attribute("actor.name")), ("ask Open", "CreditLedger"));
    assert_eq!(collector.parent(&message).id, init.id);
    assert!(
        init.start <= message.start
            && message.start <= store_call.start
            && store_call.end <= message.end
            && message.end <= init.end
    );

    let callback = collector.span(CALLBACK, |span| span.attribute("txn.id") == opened.txn).await;
    assert_eq!((callback.links.as_slice(), &*callback.parent), (&[CALLERS_TRACE.to_owned()][..], ""));
    let commit = collector.span("complete_transaction", |span| span.trace == callback.trace).await;
    assert_eq!(collector.parent(&commit).name, "ask Complete");

    let attempt = collector.span("webhook attempt", |span| span.attribute("txn.id") == opened.txn).await;
    assert_eq!((attempt.links.as_slice(), &*attempt.parent), (&[CALLERS_TRACE.to_owned()][..], ""));
    assert_eq!(
        (attempt.attribute("http.response.status_code"), attempt.attribute("server.address")),
        ("200", receiver.url("").trim_end_matches('/'))
    );
    for name in ["claim_delivery", "settle_delivery"] {
        collector.span(name, |span| span.trace == attempt.trace && span.parent == attempt.id).await;
    }
    // Specification: a webhook has no custom headers.
    let webhooks = receiver.wait_for(1, TIMEOUT).await;
    assert!(
        !webhooks[0].headers.iter().any(|(name, _)| name.as_str().starts_with("trace")),
        "{:?}",
        webhooks[0].headers
    );

    let trace_field = format!("trace_id=\"{CALLERS_TRACE}\"");
    let line = eventually("a line of the trace", TIMEOUT, || async {
        node.log().into_iter().find(|line| line.contains(&trace_field))
    })
    .await;
    assert!(line.contains(&opened.txn), "the log names the trace: {line}");

    for span in collector.spans() {
        let text = format!("{span:?}");
        for secret in ["Asha", "secret-path", &*backend.key] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

#[tokio::test]
async fn an_order_carries_its_trace_to_the_upstream() {
    let (collector, upstream) = (Collector::start().await, Upstream::start().await);
    let node = TestNode::ordering_from(&upstream, &[("TELEMETRY__OTLP_ENDPOINT", &collector.url)]).await;
    let backend = node.backend_with_credits(1).await;
    let flow = Flow::EStamp;
    backend.open_flow_once("order-7", flow, &flow.body()).await.ok();
    let order = collector.span("upstream order", |_| true).await;
    let traceparent = upstream.last_order().headers["traceparent"].to_str().expect("ASCII").to_owned();
    assert_eq!(traceparent, format!("00-{}-{}-01", order.trace, order.id));
    assert!(!order.attribute("server.address").contains("orders"), "only the origin is recorded: {order:?}");
}

// Stopping a node blocks its thread; the collector keeps working.
#[tokio::test(flavor = "multi_thread")]
async fn sampling_depends_on_the_trace_id_and_not_on_the_callers_flag() {
    let collector = Collector::start().await;
    let mut node =
        TestNode::start_with(&[("TELEMETRY__OTLP_ENDPOINT", &collector.url), ("TELEMETRY__TRACES_PER_THOUSAND", "0")])
            .await;
    let backend = node.backend_with_credits(3).await;
    open_traced(&backend, &traceparent("01"), "https://example.com/hook").await;
    node.stop();
    assert!(collector.spans().is_empty(), "{:?}", collector.spans());

    let collector = Collector::start().await;
    let mut node = TestNode::start_with(&[("TELEMETRY__OTLP_ENDPOINT", &collector.url)]).await;
    let backend = node.backend_with_credits(3).await;
    open_traced(&backend, &traceparent("00"), "https://example.com/hook").await;
    open_traced(&backend, "no traceparent", "https://example.com/hook").await;
    // Pending spans are sent before the process ends.
    node.stop();
    let inits: Vec<_> = collector.spans().into_iter().filter(|span| span.name == format!("POST {INIT}")).collect();
    assert_eq!(inits.len(), 2);
    assert!(inits.iter().any(|span| span.trace == CALLERS_TRACE) && inits.iter().any(|span| span.parent.is_empty()));
}

#[tokio::test]
async fn an_unavailable_collector_loses_spans_and_nothing_else() {
    let mut node = TestNode::start_with(&[("TELEMETRY__OTLP_ENDPOINT", "http://127.0.0.1:9")]).await;
    let (backend, identity_app) = (node.backend_with_credits(3).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    identity_app.approve(&opened, "asha").await;
    assert_eq!(backend.result(&opened.txn).await.status, 200);
    let are_lost =
        |page: &str| page.lines().any(|line| line.starts_with("sakshi_spans_lost_total ") && !line.ends_with(" 0"));
    eventually("lost spans", TIMEOUT, || async {
        are_lost(&node.operator().probe("/metrics").await.text).then_some(())
    })
    .await;
    let output = node.stop();
    assert!(output.err.contains("WARN") || output.err.contains("ERROR"), "the log reports lost spans: {}", output.err);
}
