//! The simulated network of a node: webhooks to [`crate::receivers`], and orders to upstreams, which answer, refuse,
//! hang, or respond with garbage.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, pending, ready};
use sakshi_domain::delivery::Attempt;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_kit::model::history::Event;
use sakshi_outbound::client::SendWebhook;
use sakshi_outbound::upstream::{AnswerBody, SendOrder, UpstreamError};
use sakshi_trace::TraceState;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use url::Url;

use crate::checks::source_answer;
use crate::receivers::{self, PlannedAttempt};
use crate::world::{Incarnation, World, lock};

/// A webhook that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The URL to which it was sent.
    pub(crate) url: String,
    pub(crate) body: Bytes,
}

/// Webhooks that arrived, by deduplication key.
pub(crate) type Inbox = Arc<Mutex<BTreeMap<String, Vec<Arrival>>>>;

/// The network for one start of a node.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) inbox: Inbox,
}

/// Returns the deduplication key of a delivery (specification, "Deduplication keys").
pub(crate) fn deduplication_key(body: &Value) -> String {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let first = |pointers: &[&str]| pointers.iter().find_map(|pointer| text(pointer)).map(str::to_owned);
    if let (Some(txn), Some(kind)) = (text("/txnId"), text("/dataType")) {
        return format!("{txn} {kind}");
    }
    if let (Some(consent), Some(status)) = (text("/consentId"), text("/status")) {
        return format!("{consent} {status}");
    }
    first(&["/data/txn_id", "/data/txnId", "/documentId", "/data/transactionId", "/data/eStampId"]).unwrap_or_default()
}

impl Network {
    /// Waits for a message on its way. A dead process waits for ever, so nothing that it sends later arrives.
    async fn transmit(&self, delay: Duration) {
        sleep(delay).await;
        if self.incarnation.is_dead() {
            pending::<()>().await;
        }
    }
}

impl SendWebhook for Network {
    fn wait_for_resolution(&self, _: &str, _: Instant) -> BoxFuture<'static, bool> {
        if !self.world.injects_in_10_000("bad-receivers", 500) {
            return ready(true).boxed();
        }
        let (delay, resolves) = (self.world.random_pause(1_500), self.world.random_below(2) == 0);
        self.world.count_occurrence(if resolves {
            "receiver's name resolved late"
        } else {
            "receiver's name not resolved"
        });
        async move {
            sleep(delay).await;
            resolves
        }
        .boxed()
    }

    fn attempt<'a>(&'a self, url: &'a WebhookUrl, body: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>> {
        Box::pin(async move {
            let (there, back) = (self.world.random_pause(20), self.world.random_pause(20));
            let PlannedAttempt { arrives, attempt, duration } = receivers::plan_attempt(&self.world, there, back);
            self.transmit(there).await;
            let webhook: Value = serde_json::from_slice(&body).expect("JSON");
            let (key, number) = (deduplication_key(&webhook), self.incarnation.number);
            lock(&self.world.attempts).entry(key.clone()).or_default().push(attempt);
            if arrives {
                self.world.log_line(|line| _ = write!(line, "{key}: its receiver is told by node {number}"));
                let ids = ["/txnId", "/data/txn_id", "/data/txnId"]
                    .iter()
                    .filter_map(|pointer| webhook.pointer(pointer)?.as_str()?.parse().ok());
                lock(&self.world.outbox_events).extend(ids.map(|txn| Event::Sent(txn, self.incarnation.id)));
                lock(&self.inbox).entry(key).or_default().push(Arrival { url: url.as_str().to_owned(), body });
            }
            self.world.count_occurrence(format!("webhook {}", attempt.outcome.as_str()));
            self.transmit(duration).await;
            attempt
        })
    }
}

impl SendOrder for Network {
    fn send<'a>(&'a self, url: &'a Url, order: Vec<u8>, _: Option<TraceState>) -> AnswerBody<'a> {
        const UNREACHABLE: u64 = 0;
        const REFUSES: u64 = 1;
        const HANGS: u64 = 2;
        const GARBAGE: u64 = 3;
        const WORKS: u64 = 4;
        Box::pin(async move {
            let (there, back) = (self.world.random_pause(20), self.world.random_pause(20));
            let fate = if self.world.injects_in_10_000("bad-upstreams", 2_000) {
                self.world.random_below(GARBAGE + 1)
            } else {
                WORKS
            };
            self.transmit(there).await;
            match fate {
                UNREACHABLE => return Err(UpstreamError::Unreachable),
                REFUSES => return Err(UpstreamError::Refused(500)),
                HANGS => pending().await,
                _ => {}
            }
            self.transmit(back).await;
            if fate == GARBAGE {
                return Ok(b"not the answer to this order".to_vec());
            }
            if let Some(answer) = source_answer(url.path(), self.world.random_index(3)) {
                return Ok(answer.to_string().into_bytes());
            }
            Ok(upstream_answer(&serde_json::from_slice(&order).expect("JSON")).to_string().into_bytes())
        })
    }
}

/// Returns the answer of a working upstream to an order.
fn upstream_answer(order: &Value) -> Value {
    let signer =
        |signer: &Value| json!({"signerId": signer["signerId"], "signingUrl": "https://upstream.example/sign"});
    let signers: Vec<Value> = order["signerInfo"].as_array().into_iter().flatten().map(signer).collect();
    if !signers.is_empty() {
        return json!({"signerInfo": signers});
    }
    let handle = order["uniqueIdentifier"].as_str().unwrap_or_default();
    json!({"requestUrl": "https://upstream.example/consent", "consentHandle": format!("handle-{handle}")})
}
