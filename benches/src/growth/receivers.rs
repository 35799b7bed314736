//! Two webhook receivers on their own runtime: a silent one that never answers, and a healthy one that records the
//! arrival time of each webhook.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sakshi_sandbox::receiver::{Arrival, Behaviour, WebhookReceiver, listen};
use serde_json::Value;

use crate::Failure;

type Arrivals = Arc<(Mutex<HashMap<String, Instant>>, Condvar)>;

/// Both receivers, which run until they are dropped.
pub(super) struct Receivers {
    /// URL of the silent receiver.
    pub(super) silent: String,
    /// URL of the healthy receiver.
    pub(super) healthy: String,
    arrivals: Arrivals,
    _end: tokio::sync::oneshot::Sender<()>,
}

impl Receivers {
    pub(super) fn start() -> Result<Self, Failure> {
        let arrivals = Arrivals::default();
        let recorded = Arc::clone(&arrivals);
        let (end, ended) = tokio::sync::oneshot::channel();
        let (address_sender, addresses) = mpsc::channel();
        std::thread::spawn(move || {
            actix_rt::System::new().block_on(async {
                // On failure the channel closes, which ends the wait for the addresses.
                let Ok(silent) = WebhookReceiver::start(Behaviour::Hang).await else { return };
                let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
                let Ok((healthy, mut arrived)) = listen(any_port).await else { return };
                let _ = address_sender.send((silent.url("/hook"), healthy.url("/hook")));
                let recording = async {
                    while let Some(arrival) = arrived.recv().await {
                        record(arrival, &recorded);
                    }
                };
                tokio::select! { () = recording => {}, _ = ended => {} }
            });
        });
        let (silent, healthy) = addresses.recv()?;
        Ok(Self { silent, healthy, arrivals, _end: end })
    }

    /// Waits for the webhooks of some transactions and returns their arrival times.
    ///
    /// # Errors
    /// Fails if a webhook has not arrived in time.
    pub(super) fn arrivals(&self, txns: &[String], timeout: Duration) -> Result<Vec<Instant>, Failure> {
        let (arrivals, changed) = &*self.arrivals;
        let is_incomplete =
            |arrivals: &mut HashMap<String, Instant>| !txns.iter().all(|txn| arrivals.contains_key(txn));
        let guard = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let (arrived, _) =
            changed.wait_timeout_while(guard, timeout, is_incomplete).unwrap_or_else(PoisonError::into_inner);
        let times: Option<Vec<Instant>> = txns.iter().map(|txn| arrived.get(txn).copied()).collect();
        times.ok_or_else(|| "a webhook to the healthy receiver did not arrive".into())
    }
}

/// Answers a webhook and records its arrival.
fn record(arrival: Arrival, recorded: &Arrivals) {
    let now = Instant::now();
    let body: Value = serde_json::from_slice(&arrival.request.body).unwrap_or_default();
    arrival.respond(Behaviour::Answer(200));
    if let Some(txn) = body["data"]["txn_id"].as_str().or_else(|| body["data"]["txnId"].as_str()) {
        let (arrivals, changed) = &**recorded;
        arrivals.lock().unwrap_or_else(PoisonError::into_inner).entry(txn.to_owned()).or_insert(now);
        changed.notify_all();
    }
}
