//! A node that is made to hold more and more, and the requests that are sent to it.

use std::time::Duration;

use sakshi_authority::intent::IntentKey;
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::extent::Extent;
use super::pace::{self, Requests, Turn};
use crate::Failure;
use crate::completion::Wallet;
use crate::load;
use crate::node::Service;
use crate::requests::{self, CLAIMS};
use crate::scale::Scale;

/// Long enough that nothing expires while it is measured.
const WINDOW: Duration = Duration::from_secs(4 * 3_600);
/// Ids of transactions that are polled in turn.
const SAMPLE: usize = 2_000;

/// A node in a child process, the identity app of its residents, and how long it is measured.
pub(super) struct Grown {
    pub(super) service: Service,
    wallet: Wallet,
    extent: Extent,
    /// What it said of itself last.
    standing: Value,
    _key: tempfile::TempDir,
}

impl Grown {
    /// A fresh node. Intents are signed with ES256, which takes less time than anything that could grow.
    pub(super) fn start(extent: Extent) -> Result<Self, Failure> {
        Self::with_window(WINDOW, extent)
    }

    /// A fresh node whose transactions can be completed for so long.
    pub(super) fn with_window(window: Duration, extent: Extent) -> Result<Self, Failure> {
        let files = tempfile::tempdir()?;
        let key = files.path().join("es256.pem");
        std::fs::write(&key, IntentKey::generate_es256()?.1)?;
        let service = Service::set(Some(&key), &[("ovse.window_s", &window.as_secs().to_string())])?;
        let wallet = Wallet::new(&service)?;
        let mut grown = Self { service, wallet, extent, standing: Value::Null, _key: files };
        grown.tell(&json!({ "fill": "nothing" }))?;
        Ok(grown)
    }

    fn tell(&mut self, order: &Value) -> Result<(), Failure> {
        self.standing = self.service.server.tell(order)?;
        Ok(())
    }

    /// A number that the node says of itself now.
    pub(super) fn now(&mut self, field: &str) -> Result<f64, Failure> {
        self.tell(&json!({ "fill": "nothing" }))?;
        self.standing[field].as_f64().ok_or_else(|| format!("the node did not say its {field}").into())
    }

    /// Opens so many more transactions, and returns polls of some of them.
    pub(super) fn open(&mut self, count: usize) -> Result<Vec<Vec<u8>>, Failure> {
        self.tell(&json!({ "fill": "live", "count": count, "sample": SAMPLE.min(count) }))?;
        let ids = self.standing["ids"].as_array().cloned().unwrap_or_default();
        ids.iter().map(|id| requests::poll(&self.service.server, id.as_str().unwrap_or_default())).collect()
    }

    /// Registers so many more guests of an event.
    pub(super) fn register(&mut self, event: &str, count: usize) -> Result<(), Failure> {
        self.tell(&json!({ "fill": "guests", "event": event, "count": count }))
    }

    /// Ends so many more transactions whose webhooks go to one URL.
    pub(super) fn queue(&mut self, url: &str, count: usize) -> Result<(), Failure> {
        self.tell(&json!({ "fill": "backlog", "url": url, "count": count }))
    }

    /// Creates events that take as many guests as there may be.
    pub(super) fn create(&self, count: usize) -> Result<Vec<String>, Failure> {
        let create = self.creation()?;
        self.each_once(vec![create; count])?.iter().map(|body| event_id(body)).collect()
    }

    /// The request that creates an event.
    pub(super) fn creation(&self) -> Result<Vec<u8>, Failure> {
        let end = (SystemClock.now() + WINDOW).to_string();
        let terms = json!({ "name": "Open day", "claims": CLAIMS, "max_guests": 1_000_000, "expires_at": end });
        requests::signed(&self.service.server, "POST", "/events", Some(&terms))
    }

    /// Callbacks with fresh credentials for what was opened, by the bodies of the answers: those of
    /// inits, or intents.
    pub(super) fn callbacks(&self, opened: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Failure> {
        self.wallet.answers(opened)
    }

    /// Sends each request once, without measuring.
    pub(super) fn each_once(&self, requests: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure> {
        let scale = Scale { connections: 16, ..Scale::QUICK };
        Ok(load::each_once(&self.service.server, requests.into(), scale, true)?.1)
    }

    /// Sends requests over and over.
    pub(super) fn cycle(&self, bytes: &[Vec<u8>], status: u16) -> Result<Vec<Turn>, Failure> {
        pace::turns(&self.service.server, Requests { bytes, once: false, status }, self.extent)
    }

    /// Sends requests that are good for one time.
    pub(super) fn once(&self, bytes: &[Vec<u8>]) -> Result<Vec<Turn>, Failure> {
        pace::turns(&self.service.server, Requests { bytes, once: true, status: 200 }, self.extent)
    }

    /// The processor time that the node uses while nobody asks anything, as a share of one core.
    pub(super) fn idle(&self) -> Result<f64, Failure> {
        let before = pace::processor_nanos(&self.service.server)?;
        load::pause(self.extent.span);
        let used = pace::processor_nanos_since(&self.service.server, &before)?;
        Ok(used as f64 / self.extent.span.as_nanos() as f64 * 100.0)
    }
}

/// The id in the answer to a creation.
fn event_id(body: &[u8]) -> Result<String, Failure> {
    let created: Value = serde_json::from_slice(body)?;
    Ok(created["event_id"].as_str().ok_or("no event_id")?.to_owned())
}
