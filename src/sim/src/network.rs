//! Receivers of webhooks: those that answer, refuse, hang, break off after they have read, or cannot be reached.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_outbound::client::SendWebhook;
use serde_json::Value;
use tokio::time::sleep;

use crate::world::{Incarnation, World, lock};

/// How long an attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// What receivers were told, by transaction.
pub(crate) type Inbox = Arc<Mutex<BTreeMap<String, Vec<Value>>>>;

/// The network as one start of a node sees it.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) inbox: Inbox,
}

impl SendWebhook for Network {
    fn attempt<'a>(&'a self, _url: &'a WebhookUrl, body: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>> {
        Box::pin(async move {
            let (way, back) = (self.world.pause(20), self.world.pause(20));
            let fate = if self.world.goes_wrong("bad-receivers", 330) { self.world.below(4) } else { 4 };
            sleep(way).await;
            if self.incarnation.is_dead() {
                return pending().await;
            }
            if fate == 0 {
                return ended(way, DeliveryOutcome::Unreachable, None);
            }
            let told: Value = serde_json::from_slice(&body).expect("JSON");
            let id = told["data"]["txn_id"].as_str().or(told["data"]["txnId"].as_str()).unwrap_or_default().to_owned();
            let number = self.incarnation.number;
            self.world.say(|line| _ = write!(line, "{id}: its receiver is told by node {number}"));
            lock(&self.inbox).entry(id).or_default().push(told);
            let (time, outcome, status) = match fate {
                1 => (ATTEMPT_TIMEOUT, DeliveryOutcome::TimedOut, None),
                2 => (back, DeliveryOutcome::Broken, None),
                3 => (back, DeliveryOutcome::Rejected, Some(500)),
                _ => (back, DeliveryOutcome::Delivered, Some(200)),
            };
            sleep(time).await;
            if self.incarnation.is_dead() {
                return pending().await;
            }
            ended(time, outcome, status)
        })
    }
}

fn ended(time: Duration, outcome: DeliveryOutcome, status: Option<u16>) -> Attempt {
    Attempt { outcome, status, duration_ms: u32::try_from(time.as_millis()).unwrap_or(u32::MAX) }
}
