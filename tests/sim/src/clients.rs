//! Clients' backends: they open verifications with and without idempotency keys, request QR codes, poll, and try to
//! read other clients' transactions.

use std::rc::Rc;
use std::time::Duration;

use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::diary::{Knowledge, Unpaid};
use crate::node::WINDOW;
use crate::residents::Intent;
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

impl Sim {
    /// Runs a verification from opening to end, with its resident and its pollers.
    pub(crate) async fn verification(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.below(60_000))).await;
        let Some(intent) = self.opens(&tenant).await.map(Rc::new) else { return };
        for _ in 0..self.world.below(4) {
            let (sim, tenant, intent) = (Rc::clone(&self), Rc::clone(&tenant), Rc::clone(&intent));
            let (after, wait) =
                (Duration::from_millis(self.world.below(30_000)), self.world.below(2) * self.world.below(25));
            actix_rt::spawn(async move {
                sleep(after).await;
                sim.look(&tenant, intent.txn, wait).await;
            });
        }
        if self.world.goes_wrong("erasures", 600) {
            actix_rt::spawn(Rc::clone(&self).erases(intent.txn));
        }
        if self.world.chance(200) {
            self.asks_for_a_code(&tenant, &intent).await;
        }
        if self.world.chance(300) {
            self.watches_page(intent.txn).await;
        }
        if self.world.chance(200) {
            self.is_nosy(&tenant, &intent).await;
        }
        self.answers(&intent, tenant.resident, WINDOW).await;
        self.look(&tenant, intent.txn, 0).await;
        if self.world.chance(300) {
            sleep(Duration::from_millis(self.world.below(40_000))).await;
            self.watches_page(intent.txn).await;
        }
    }

    /// Chooses the body of an init. Returns true with it if it asks for evidence.
    fn choose_terms(&self, tenant: &Tenant) -> (Value, bool) {
        let channel = ["web", "qr", "app"][self.world.index(3)];
        let mut body = json!({"claims": ["name", "age_above_18"], "channel": channel});
        if self.world.chance(800) {
            body["webhook_url"] = json!(format!(
                "https://receiver-{}.example/hook/{}",
                self.world.receiver(self.world.below(4)),
                tenant.number
            ));
        }
        let has_evidence = self.world.chance(200);
        if has_evidence {
            body["evidence"] = json!(true);
        }
        (body, has_evidence)
    }

    /// Sends a request. With a key, some are sent twice at once, and the client uses the second answer.
    async fn ask_perhaps_twice(&self, request: &Request, has_key: bool) -> Exchange {
        if !has_key || !self.world.chance(200) {
            return self.ask(request).await;
        }
        let (one, other) = tokio::join!(self.ask(request), self.ask(request));
        let both = one.outcome().zip(other.outcome()).filter(|(one, other)| (one.status, other.status) == (200, 200));
        if both.is_some_and(|(one, other)| one.body != other.body) {
            self.diary.record_fault("two requests under one idempotency key are answered differently".to_owned());
        }
        Exchange { asked: one.asked, ..other }
    }

    /// Opens a verification, with retries until an answer arrives.
    async fn opens(&self, tenant: &Tenant) -> Option<Intent> {
        let (body, has_evidence) = self.choose_terms(tenant);
        let init = Request::post("/api/v1/nationalid-ovse/init").json(&body);
        let key = self.world.chance(500).then(|| self.name("order"));
        let keyed = |request: Request| match &key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        };
        // The API key may be replaced meanwhile.
        let mut first = None;
        for _ in 0..TRIES {
            let request = keyed(init.clone()).with_key_of(tenant);
            let mut asked = self.ask_perhaps_twice(&request, key.is_some()).await;
            let begun = *first.get_or_insert(asked.asked);
            let Some(answer) = asked.outcome() else {
                sleep(self.world.pause(500)).await;
                continue;
            };
            let answered = answer.json();
            match answer.status {
                200 => {
                    let expires_at: Timestamp = Timestamp::parse_iso8601(answered["expiresAt"].as_str()?)?;
                    let intent = Intent::read(answered["intentJwt"].as_str()?)?;
                    let is_repeated = key.is_some() && self.world.chance(300);
                    let body = answer.body.clone();
                    // Without a key, each lost try may have opened a verification.
                    if key.is_some() {
                        asked.asked = begun;
                    }
                    self.learn(intent.txn, &asked, Knowledge::Opened { expires_at: Some(expires_at) });
                    if has_evidence {
                        self.diary.evidence_askers.borrow_mut().insert(intent.txn, tenant.number);
                    }
                    if is_repeated {
                        self.repeats(&keyed(init.clone()), tenant, &body).await;
                    }
                    return Some(intent);
                }
                402 => {
                    self.is_unpaid(tenant, &asked);
                    return None;
                }
                401 if tenant.may_be_suspended.get() => return None,
                // Another request under the key is in flight.
                409 if key.is_some() => sleep(self.world.pause(500)).await,
                _ => {
                    self.diary.record_fault(format!("init is answered with {} {answered}", answer.status));
                    return None;
                }
            }
        }
        None
    }

    pub(crate) fn is_unpaid(&self, tenant: &Tenant, asked: &Exchange) {
        self.world.reach("refused without credits");
        self.diary.unpaid.borrow_mut().push(Unpaid {
            tenant: tenant.number,
            asked: asked.asked,
            answered: asked.answered,
        });
    }

    /// Repeats a request that was answered, and expects the same answer.
    async fn repeats(&self, request: &Request, tenant: &Tenant, answered: &[u8]) {
        sleep(self.world.pause(2_000)).await;
        let asked = self.ask(&request.clone().with_key_of(tenant)).await;
        match asked.outcome() {
            Some(answer) if answer.status == 200 && answer.body == *answered => self.world.reach("answer replayed"),
            Some(answer) if answer.status == 401 && tenant.may_be_suspended.get() => {}
            None => {}
            Some(answer) => {
                self.diary.record_fault(format!(
                    "a repeated request is answered with {} {}",
                    answer.status,
                    answer.text()
                ));
            }
        }
    }

    async fn asks_for_a_code(&self, tenant: &Tenant, intent: &Intent) {
        let request =
            Request::post("/api/v1/nationalid-ovse/qr-intent").json(&json!({"txnId": intent.txn})).with_key_of(tenant);
        let asked = self.ask(&request).await;
        let learned = match asked.outcome().map(|answer| answer.status) {
            Some(200) => Knowledge::Pending,
            Some(410) => Knowledge::Expired,
            Some(404) => Knowledge::Unknown,
            // Not before the resident answers.
            Some(status) if status != 401 => {
                return self.diary.record_fault(format!("{}: a code is answered with {status}", intent.txn));
            }
            _ => return,
        };
        self.learn(intent.txn, &asked, learned);
    }

    /// Requests the verification as another client.
    async fn is_nosy(&self, tenant: &Tenant, intent: &Intent) {
        let Some(other) = self.tenants.iter().find(|other| other.number != tenant.number) else { return };
        let path = format!("/api/v1/nationalid-ovse/result/{}", intent.txn);
        let asked = self.ask(&Request::get(path).with_key_of(other)).await;
        if let Some(answer) = asked.outcome().filter(|answer| answer.status != 404 && answer.status != 401) {
            self.diary.record_fault(format!("{}: another client is answered with {}", intent.txn, answer.status));
        }
    }
}
