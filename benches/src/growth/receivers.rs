//! Two webhook receivers on their own runtime: one that never answers, and a healthy one that records the arrival time
//! of each webhook.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sakshi_sandbox::receiver::{Arrival, Behaviour, WebhookReceiver, listen};
use serde_json::Value;

use crate::Failure;

type Arrivals = Arc<(Mutex<HashMap<String, Instant>>, Condvar)>;

/// Both receivers; they run until this is dropped.
pub(super) struct Receivers {
    pub(super) silent: String,
    pub(super) healthy: String,
    arrivals: Arrivals,
    _end: tokio::sync::oneshot::Sender<()>,
}

impl Receivers {
    pub(super) fn start() -> Result<Self, Failure> {
        let arrivals = Arrivals::default();
        let noted = Arc::clone(&arrivals);
        let (end, ended) = tokio::sync::oneshot::channel();
        let (tell_addresses, addresses) = mpsc::channel();
        std::thread::spawn(move || {
            actix_rt::System::new().block_on(async {
                // On failure the channel closes, which ends the wait for the addresses.
                let Ok(silent) = WebhookReceiver::start(Behaviour::Hang).await else { return };
                let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
                let Ok((healthy, mut arrived)) = listen(anywhere).await else { return };
                let _ = tell_addresses.send((silent.url("/hook"), healthy.url("/hook")));
                let taking = async {
                    while let Some(arrival) = arrived.recv().await {
                        take(arrival, &noted);
                    }
                };
                tokio::select! { () = taking => {}, _ = ended => {} }
            });
        });
        let (silent, healthy) = addresses.recv()?;
        Ok(Self { silent, healthy, arrivals, _end: end })
    }

    /// Waits for the webhooks of these transactions, and returns their arrival times.
    ///
    /// # Errors
    /// Some have not arrived in time.
    pub(super) fn arrivals(&self, txns: &[String], timeout: Duration) -> Result<Vec<Instant>, Failure> {
        let (arrivals, more) = &*self.arrivals;
        let missing = |arrivals: &mut HashMap<String, Instant>| !txns.iter().all(|txn| arrivals.contains_key(txn));
        let guard = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let (arrived, _) = more.wait_timeout_while(guard, timeout, missing).unwrap_or_else(PoisonError::into_inner);
        let found: Option<Vec<Instant>> = txns.iter().map(|txn| arrived.get(txn).copied()).collect();
        found.ok_or_else(|| "a webhook to the healthy receiver did not arrive".into())
    }
}

fn take(arrival: Arrival, noted: &Arrivals) {
    let now = Instant::now();
    let body: Value = serde_json::from_slice(&arrival.request.body).unwrap_or_default();
    arrival.respond(Behaviour::Answer(200));
    if let Some(txn) = body["data"]["txn_id"].as_str().or_else(|| body["data"]["txnId"].as_str()) {
        let (arrivals, more) = &**noted;
        arrivals.lock().unwrap_or_else(PoisonError::into_inner).entry(txn.to_owned()).or_insert(now);
        more.notify_all();
    }
}
