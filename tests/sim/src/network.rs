//! The simulated network: webhooks to [`crate::receivers`], and orders to upstreams, which answer, refuse, hang, or
//! respond with garbage.

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
use sakshi_outbound::client::SendWebhook;
use sakshi_outbound::upstream::{AnswerBody, SendOrder, UpstreamError};
use sakshi_trace::TraceState;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use url::Url;

use crate::checks::answer_of_source;
use crate::model::history::Event;
use crate::receivers::{self, Planned};
use crate::world::{Incarnation, World, lock};

/// A webhook that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The URL it was sent to.
    pub(crate) url: String,
    pub(crate) body: Bytes,
}

/// Webhooks that arrived, by deduplication key.
pub(crate) type Inbox = Arc<Mutex<BTreeMap<String, Vec<Arrival>>>>;

/// The network as one start of a node sees it.
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
    async fn is_reached(&self, way: Duration) -> bool {
        sleep(way).await;
        if self.incarnation.is_dead() {
            return pending().await;
        }
        true
    }
}

impl SendWebhook for Network {
    fn wait_for_resolution(&self, _: &str, _: Instant) -> BoxFuture<'static, bool> {
        if !self.world.goes_wrong("bad-receivers", 500) {
            return ready(true).boxed();
        }
        let (time, resolves) = (self.world.pause(1_500), self.world.below(2) == 0);
        self.world.reach(if resolves { "receiver's name resolved late" } else { "receiver's name not resolved" });
        async move {
            sleep(time).await;
            resolves
        }
        .boxed()
    }

    fn attempt<'a>(&'a self, url: &'a WebhookUrl, body: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>> {
        Box::pin(async move {
            let (way, back) = (self.world.pause(20), self.world.pause(20));
            let Planned { arrives, attempt, time } = receivers::plan(&self.world, way, back);
            self.is_reached(way).await;
            let told: Value = serde_json::from_slice(&body).expect("JSON");
            let (key, number) = (deduplication_key(&told), self.incarnation.number);
            lock(&self.world.attempts).entry(key.clone()).or_default().push(attempt);
            if arrives {
                self.world.say(|line| _ = write!(line, "{key}: its receiver is told by node {number}"));
                let ids = ["/txnId", "/data/txn_id", "/data/txnId"]
                    .iter()
                    .filter_map(|pointer| told.pointer(pointer)?.as_str()?.parse().ok());
                lock(&self.world.outbox).extend(ids.map(|txn| Event::Sent(txn, self.incarnation.id)));
                lock(&self.inbox).entry(key).or_default().push(Arrival { url: url.as_str().to_owned(), body });
            }
            self.world.reach(format!("webhook {}", attempt.outcome.as_str()));
            self.is_reached(time).await;
            attempt
        })
    }
}

impl SendOrder for Network {
    fn send<'a>(&'a self, url: &'a Url, order: Vec<u8>, _: Option<TraceState>) -> AnswerBody<'a> {
        Box::pin(async move {
            let (way, back) = (self.world.pause(20), self.world.pause(20));
            let fate = if self.world.goes_wrong("bad-upstreams", 2_000) { self.world.below(4) } else { 4 };
            self.is_reached(way).await;
            match fate {
                0 => return Err(UpstreamError::Unreachable),
                1 => return Err(UpstreamError::Refused(500)),
                2 => pending().await,
                _ => {}
            }
            self.is_reached(back).await;
            if fate == 3 {
                return Ok(b"not the answer to this order".to_vec());
            }
            if let Some(answer) = answer_of_source(url.path(), self.world.index(3)) {
                return Ok(answer.to_string().into_bytes());
            }
            Ok(answer_to(&serde_json::from_slice(&order).expect("JSON")).to_string().into_bytes())
        })
    }
}

/// Returns the answer of a working upstream.
fn answer_to(order: &Value) -> Value {
    let signer =
        |signer: &Value| json!({"signerId": signer["signerId"], "signingUrl": "https://upstream.example/sign"});
    let signers: Vec<Value> = order["signerInfo"].as_array().into_iter().flatten().map(signer).collect();
    if !signers.is_empty() {
        return json!({"signerInfo": signers});
    }
    let handle = order["uniqueIdentifier"].as_str().unwrap_or_default();
    json!({"requestUrl": "https://upstream.example/consent", "consentHandle": format!("handle-{handle}")})
}
