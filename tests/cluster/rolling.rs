//! A rolling restart behind the balancer: every node in turn, under load, without a failed client request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{Backend, INIT, Opened, result_path};
use sakshi_kit::identity_app::{CallbackFormat, IdentityApp};
use sakshi_kit::waiting::TIMEOUT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;

use crate::nodes::Nodes;

const WORKERS: usize = 8;
/// Webhooks that arrive before each restart.
const WEBHOOKS_BETWEEN: usize = 100;

/// The verifications of one worker.
#[derive(Default)]
pub(crate) struct Verifications {
    /// Transaction ids.
    pub(crate) completed: Vec<String>,
    pub(crate) failures: Vec<String>,
}

/// Runs verifications, one after another, until `over` is set.
pub(crate) async fn run_worker(
    backend: Backend,
    identity_app: IdentityApp,
    webhook: String,
    over: Arc<AtomicBool>,
) -> Verifications {
    let mut verifications = Verifications::default();
    while !over.load(Ordering::Relaxed) {
        match verify(&backend, &identity_app, &webhook).await {
            Ok(txn) => verifications.completed.push(txn),
            Err(failure) => verifications.failures.push(failure),
        }
    }
    verifications
}

/// Opens a transaction, waits for its answer in a long poll, answers and reads the result. Returns the transaction id.
async fn verify(backend: &Backend, identity_app: &IdentityApp, webhook: &str) -> Result<String, String> {
    let body = json!({"claims": ["name"], "channel": "qr", "webhook_url": webhook});
    let opened = Opened::read(&expect_200("init", backend.request(Method::POST, INIT).json(&body)).await?.json());
    let poll = backend.request(Method::GET, &format!("{}?wait=30", result_path(&opened.txn)));
    let waiting = tokio::spawn(async move { expect_200("long poll", poll).await });
    let consent = CallbackFormat::Json.success(&opened.txn, &identity_app.credential(&opened, "asha"));
    expect_200("callback", identity_app.request(&opened.callback_path(), CallbackFormat::Json.content_type(), consent))
        .await?;
    // A drain ends a long poll early; on "pending" the client polls again.
    waiting.await.expect("an answer")?;
    let result = expect_200("poll", backend.request(Method::GET, &result_path(&opened.txn))).await?.json();
    if result["data"]["verification_passed"] == true { Ok(opened.txn) } else { Err(format!("poll: {result}")) }
}

/// Sends a request; returns a sentence about the step if the answer is not 200.
async fn expect_200(step: &str, request: reqwest::RequestBuilder) -> Result<Answer, String> {
    match Answer::attempt(request).await {
        Ok(answer) if answer.status == 200 => Ok(answer),
        Ok(answer) => Err(format!("{step}: {} {}", answer.status, answer.text)),
        Err(error) => Err(format!("{step}: {error}")),
    }
}

/// Waits until this many more webhooks have arrived.
pub(crate) async fn wait_for_more(receiver: &WebhookReceiver, count: usize) {
    let goal = receiver.received().len() + count;
    assert!(receiver.wait_for(goal, 4 * TIMEOUT).await.len() >= goal, "the load has stopped");
}

#[tokio::test]
async fn restarting_every_node_in_turn_fails_no_request() {
    let (mut nodes, balancer) =
        Nodes::start_balanced(&[("SERVER__DRAIN_NOTICE_S", "2"), ("SERVER__DRAIN_TIMEOUT_S", "10")]).await;
    let backend = nodes.backend(1_000_000).await.through(&balancer.addresses);
    let identity_app = nodes.all[0].identity_app().through(&balancer.addresses);
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    let over = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            tokio::spawn(run_worker(backend.clone(), identity_app.clone(), receiver.url("/hook"), Arc::clone(&over)))
        })
        .collect();
    for number in 0..nodes.all.len() {
        wait_for_more(&receiver, WEBHOOKS_BETWEEN).await;
        nodes.all[number].restart().await;
        balancer.wait_for_nodes(3).await;
    }
    over.store(true, Ordering::Relaxed);
    let mut completed = Vec::new();
    for verifications in join_all(workers).await {
        let verifications = verifications.expect("a worker ends");
        assert!(verifications.failures.is_empty(), "{:#?}", verifications.failures);
        completed.extend(verifications.completed);
    }
    assert_eq!(receiver.wait_for(completed.len(), TIMEOUT).await.len(), completed.len(), "one webhook for each");
    eprintln!("{} verifications through three restarts", completed.len());
}
