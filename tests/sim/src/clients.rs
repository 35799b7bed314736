//! Clients' backends: they open verifications with and without idempotency keys, request QR codes, poll, and try to
//! read other clients' transactions.

use std::rc::Rc;
use std::time::Duration;

use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::journal::{Observation, Unpaid};
use crate::node::WINDOW;
use crate::residents::{Intent, NO_WAIT};
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

impl Sim {
    /// Runs a verification from opening to end, with its resident and its pollers.
    pub(crate) async fn run_verification(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.random_below(60_000))).await;
        let Some(intent) = self.open_verification(&tenant).await.map(Rc::new) else { return };
        for _ in 0..self.world.random_below(4) {
            let (sim, tenant, intent) = (Rc::clone(&self), Rc::clone(&tenant), Rc::clone(&intent));
            let delay = Duration::from_millis(self.world.random_below(30_000));
            // Half of the polls are long polls.
            let wait_seconds = self.world.random_below(2) * self.world.random_below(25);
            actix_rt::spawn(async move {
                sleep(delay).await;
                sim.poll(&tenant, intent.txn, wait_seconds).await;
            });
        }
        if self.world.injects_in_10_000("erasures", 600) {
            actix_rt::spawn(Rc::clone(&self).erase_transaction(intent.txn));
        }
        if self.world.chance_in_1_000(200) {
            self.request_qr_code(&tenant, &intent).await;
        }
        if self.world.chance_in_1_000(300) {
            self.read_page_state(intent.txn).await;
        }
        if self.world.chance_in_1_000(200) {
            self.poll_as_another_client(&tenant, &intent).await;
        }
        self.play_resident(&intent, tenant.resident, WINDOW).await;
        self.poll(&tenant, intent.txn, NO_WAIT).await;
        if self.world.chance_in_1_000(300) {
            sleep(Duration::from_millis(self.world.random_below(40_000))).await;
            self.read_page_state(intent.txn).await;
        }
    }

    /// Chooses the body of an init. Also returns true if the body asks for evidence.
    fn choose_terms(&self, tenant: &Tenant) -> (Value, bool) {
        let channel = ["web", "qr", "app"][self.world.random_index(3)];
        let mut body = json!({"claims": ["name", "age_above_18"], "channel": channel});
        if self.world.chance_in_1_000(800) {
            body["webhook_url"] = json!(format!(
                "https://receiver-{}.example/hook/{}",
                self.world.receiver_number(self.world.random_below(4)),
                tenant.number
            ));
        }
        let has_evidence = self.world.chance_in_1_000(200);
        if has_evidence {
            body["evidence"] = json!(true);
        }
        (body, has_evidence)
    }

    /// Sends a request. A fifth of those with an idempotency key is sent twice at once; the second answer is returned.
    async fn send_perhaps_twice(&self, request: &Request, has_key: bool) -> Exchange {
        if !has_key || !self.world.chance_in_1_000(200) {
            return self.send(request).await;
        }
        let (one, other) = tokio::join!(self.send(request), self.send(request));
        let both = one.outcome().zip(other.outcome()).filter(|(one, other)| (one.status, other.status) == (200, 200));
        if both.is_some_and(|(one, other)| one.body != other.body) {
            self.journal.record_violation("two requests under one idempotency key are answered differently".to_owned());
        }
        Exchange { sent_at: one.sent_at, ..other }
    }

    /// Opens a verification, with retries until an answer arrives.
    async fn open_verification(&self, tenant: &Tenant) -> Option<Intent> {
        let (body, has_evidence) = self.choose_terms(tenant);
        let init = Request::post("/api/v1/nationalid-ovse/init").json(&body);
        let key = self.world.chance_in_1_000(500).then(|| self.unique_name("order"));
        let with_idempotency_key = |request: Request| match &key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        };
        let mut first_sent_at = None;
        for _ in 0..TRIES {
            // The API key may have been replaced since the last try.
            let request = with_idempotency_key(init.clone()).with_key_of(tenant);
            let mut exchange = self.send_perhaps_twice(&request, key.is_some()).await;
            let opening_sent_at = *first_sent_at.get_or_insert(exchange.sent_at);
            let Some(answer) = exchange.outcome() else {
                sleep(self.world.random_pause(500)).await;
                continue;
            };
            let response = answer.json();
            match answer.status {
                200 => {
                    let expires_at: Timestamp = Timestamp::parse_iso8601(response["expiresAt"].as_str()?)?;
                    let intent = Intent::read(response["intentJwt"].as_str()?)?;
                    let is_repeated = key.is_some() && self.world.chance_in_1_000(300);
                    let body = answer.body.clone();
                    // Without a key, each lost try may have opened a verification.
                    if key.is_some() {
                        exchange.sent_at = opening_sent_at;
                    }
                    self.record_fact(intent.txn, &exchange, Observation::Opened { expires_at: Some(expires_at) });
                    if has_evidence {
                        self.journal.evidence_owners.borrow_mut().insert(intent.txn, tenant.number);
                    }
                    if is_repeated {
                        self.repeat_init(&with_idempotency_key(init.clone()), tenant, &body).await;
                    }
                    return Some(intent);
                }
                402 => {
                    self.record_unpaid(tenant, &exchange);
                    return None;
                }
                401 if tenant.may_be_suspended.get() => return None,
                // Another request under the key is in flight.
                409 if key.is_some() => sleep(self.world.random_pause(500)).await,
                _ => {
                    self.journal.record_violation(format!("init is answered with {} {response}", answer.status));
                    return None;
                }
            }
        }
        None
    }

    /// Records that a request was refused for lack of credits.
    pub(crate) fn record_unpaid(&self, tenant: &Tenant, exchange: &Exchange) {
        self.world.count_occurrence("refused without credits");
        self.journal.unpaid.borrow_mut().push(Unpaid {
            tenant: tenant.number,
            sent_at: exchange.sent_at,
            answered_at: exchange.answered_at,
        });
    }

    /// Repeats an init that was answered, under its idempotency key, and expects the same answer.
    async fn repeat_init(&self, request: &Request, tenant: &Tenant, expected_body: &[u8]) {
        sleep(self.world.random_pause(2_000)).await;
        let exchange = self.send(&request.clone().with_key_of(tenant)).await;
        match exchange.outcome() {
            Some(answer) if answer.status == 200 && answer.body == *expected_body => {
                self.world.count_occurrence("answer replayed");
            }
            Some(answer) if answer.status == 401 && tenant.may_be_suspended.get() => {}
            None => {}
            Some(answer) => {
                self.journal.record_violation(format!(
                    "a repeated request is answered with {} {}",
                    answer.status,
                    answer.text()
                ));
            }
        }
    }

    /// Requests the QR code of a verification, before its resident answers.
    async fn request_qr_code(&self, tenant: &Tenant, intent: &Intent) {
        let request =
            Request::post("/api/v1/nationalid-ovse/qr-intent").json(&json!({"txnId": intent.txn})).with_key_of(tenant);
        let exchange = self.send(&request).await;
        let observation = match exchange.outcome().map(|answer| answer.status) {
            Some(200) => Observation::Pending,
            Some(410) => Observation::Expired,
            Some(404) => Observation::Unknown,
            // Any other status would be right only after the resident's answer.
            Some(status) if status != 401 => {
                return self.journal.record_violation(format!("{}: a code is answered with {status}", intent.txn));
            }
            _ => return,
        };
        self.record_fact(intent.txn, &exchange, observation);
    }

    /// Polls a verification with another client's key, which must not find it.
    async fn poll_as_another_client(&self, tenant: &Tenant, intent: &Intent) {
        let Some(other) = self.tenants.iter().find(|other| other.number != tenant.number) else { return };
        let path = format!("/api/v1/nationalid-ovse/result/{}", intent.txn);
        let exchange = self.send(&Request::get(path).with_key_of(other)).await;
        if let Some(answer) = exchange.outcome().filter(|answer| answer.status != 404 && answer.status != 401) {
            self.journal.record_violation(format!("{}: another client is answered with {}", intent.txn, answer.status));
        }
    }
}
