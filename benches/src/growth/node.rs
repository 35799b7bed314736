//! A node with growing content, and the requests sent to it.

use std::time::Duration;

use sakshi_authority::intent::IntentKey;
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::open_loop::{self, Requests, Turn};
use super::scale::GrowthScale;
use crate::Failure;
use crate::completion::IdentityApp;
use crate::load::{self, BodyMode};
use crate::node::Service;
use crate::requests::{self, CLAIMS};
use crate::scale::Scale;

/// The window of transactions: long enough that nothing expires during the measurement.
const WINDOW: Duration = Duration::from_secs(4 * 3_600);
/// Number of transactions that are polled.
const SAMPLE: usize = 2_000;

/// A node in a child process, an identity app, and the scale of the measurement.
pub(super) struct GrowthNode {
    pub(super) service: Service,
    identity_app: IdentityApp,
    scale: GrowthScale,
    /// The last status of the node.
    status: Value,
    _key: tempfile::TempDir,
}

impl GrowthNode {
    /// Starts a node that signs intents with ES256, which is fast, so that the growth of other costs shows.
    pub(super) fn start(scale: GrowthScale) -> Result<Self, Failure> {
        Self::with_window(WINDOW, scale)
    }

    /// Starts a node whose transactions have the given window.
    pub(super) fn with_window(window: Duration, scale: GrowthScale) -> Result<Self, Failure> {
        let files = tempfile::tempdir()?;
        let key = files.path().join("es256.pem");
        std::fs::write(&key, IntentKey::generate_es256()?.1)?;
        let service = Service::with_settings(Some(&key), &[("ovse.window_s", &window.as_secs().to_string())])?;
        let identity_app = IdentityApp::new(&service)?;
        let mut node = Self { service, identity_app, scale, status: Value::Null, _key: files };
        node.command(&json!({ "fill": "nothing" }))?;
        Ok(node)
    }

    /// Sends a command to the node, and keeps the status that it answers.
    fn command(&mut self, command: &Value) -> Result<(), Failure> {
        self.status = self.service.server.command(command)?;
        Ok(())
    }

    /// Returns a number in the node's current status.
    pub(super) fn status_number(&mut self, field: &str) -> Result<f64, Failure> {
        self.command(&json!({ "fill": "nothing" }))?;
        self.status[field].as_f64().ok_or_else(|| format!("the node's status has no {field}").into())
    }

    /// Opens more transactions and returns polls of some of them.
    pub(super) fn open(&mut self, count: usize) -> Result<Vec<Vec<u8>>, Failure> {
        self.command(&json!({ "fill": "live", "count": count, "sample": SAMPLE.min(count) }))?;
        let ids = self.status["ids"].as_array().cloned().unwrap_or_default();
        ids.iter().map(|id| requests::poll(&self.service.server, id.as_str().unwrap_or_default())).collect()
    }

    /// Registers more guests of an event.
    pub(super) fn register(&mut self, event: &str, count: usize) -> Result<(), Failure> {
        self.command(&json!({ "fill": "guests", "event": event, "count": count }))
    }

    /// Completes more transactions, with webhooks to a URL.
    pub(super) fn queue(&mut self, url: &str, count: usize) -> Result<(), Failure> {
        self.command(&json!({ "fill": "backlog", "url": url, "count": count }))
    }

    /// Creates events with the largest number of places.
    pub(super) fn create_events(&self, count: usize) -> Result<Vec<String>, Failure> {
        let create = self.create_event_request()?;
        self.each_once(vec![create; count])?.iter().map(|body| event_id(body)).collect()
    }

    /// Builds the request that creates an event.
    pub(super) fn create_event_request(&self) -> Result<Vec<u8>, Failure> {
        let end = (SystemClock.now() + WINDOW).to_string();
        let terms = json!({ "name": "Open day", "claims": CLAIMS, "max_guests": 1_000_000, "expires_at": end });
        requests::client_request(&self.service.server, "POST", "/events", Some(&terms))
    }

    /// Builds callbacks with new credentials for opened transactions, given as bodies of inits' answers or intents.
    pub(super) fn callbacks(&self, opened: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Failure> {
        self.identity_app.callbacks_for(opened)
    }

    /// Sends each request once, without measuring.
    pub(super) fn each_once(&self, requests: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure> {
        let scale = Scale { connections: 16, ..Scale::QUICK };
        Ok(load::each_once(&self.service.server, requests.into(), scale, BodyMode::Keep)?.1)
    }

    /// Repeats requests in each turn and measures.
    pub(super) fn measure_cycle(&self, bytes: &[Vec<u8>], status: u16) -> Result<Vec<Turn>, Failure> {
        open_loop::turns(&self.service.server, Requests { bytes, each_once: false, status }, self.scale)
    }

    /// Sends each request once and measures.
    pub(super) fn measure_once(&self, bytes: &[Vec<u8>]) -> Result<Vec<Turn>, Failure> {
        open_loop::turns(&self.service.server, Requests { bytes, each_once: true, status: 200 }, self.scale)
    }

    /// Returns the processor time of the idle node in percent of a core.
    pub(super) fn idle_percent(&self) -> Result<f64, Failure> {
        let before = open_loop::processor_nanos(&self.service.server)?;
        load::pause(self.scale.span);
        let nanos = open_loop::processor_nanos_since(&self.service.server, &before)?;
        Ok(nanos as f64 / self.scale.span.as_nanos() as f64 * 100.0)
    }
}

/// Returns the id of a created event from the body of the answer.
fn event_id(body: &[u8]) -> Result<String, Failure> {
    let created: Value = serde_json::from_slice(body)?;
    Ok(created["event_id"].as_str().ok_or("no event_id")?.to_owned())
}
