//! Operators: they grant credits, replace keys, and suspend a client for a while, on any node's internal listener.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use sakshi_domain::ids::TxnId;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::journal::RevokedKey;
use crate::node::ADMIN_TOKEN;
use crate::sim::{Request, Sim, Tenant};
use crate::world::START;

/// Longest time for which a node may still use cached state after an operator's change.
pub(crate) const CACHE_TIME_MAX: Duration = Duration::from_secs(1);

/// Time for which a rotated key still works.
const OVERLAP: Duration = Duration::from_secs(60);
/// Largest error of a node's clock: a jump and the drift.
const CLOCK_ERROR_MAX: Duration = Duration::from_secs(51);
/// Credits of each regular grant.
const GRANTED: u64 = 3;

impl Sim {
    /// Sends an operator's request, with retries until the answer reports the outcome. `sentence` describes the change
    /// in the log. Returns the body; `None` if the change was made before or is refused.
    async fn send_operation(&self, sentence: &str, request: &Request) -> Option<Value> {
        self.journal.add_pending_operation(sentence);
        loop {
            let exchange = self.send(request).await;
            match exchange.outcome() {
                Some(answer) if answer.status == 200 => {
                    self.journal.remove_pending_operation(sentence);
                    self.world.log_line(|line| line.push_str(sentence));
                    self.world.count_occurrence(format!("operator: {}", operation_kind(sentence)));
                    return Some(answer.json());
                }
                // The change was made and its answer lost.
                Some(answer) if answer.status == 404 || answer.status == 409 => {
                    self.journal.remove_pending_operation(sentence);
                    return None;
                }
                Some(answer) => {
                    self.journal.record_violation(format!(
                        "{sentence} is answered with {} {}",
                        answer.status,
                        answer.text()
                    ));
                    return None;
                }
                None => sleep(self.world.random_pause(500)).await,
            }
        }
    }

    /// Grants credits again and again while faults are active.
    pub(crate) async fn run_grants(self: Rc<Self>, tenant: Rc<Tenant>) {
        for number in 0.. {
            sleep(Duration::from_millis(self.world.random_below(30_000))).await;
            if !self.world.has_active_faults() {
                return;
            }
            let reference = format!("grant-{number}-of-{}", tenant.number);
            let path = format!("/admin/v1/clients/{}/credits", tenant.client);
            let request =
                Request::post(path).internal(ADMIN_TOKEN).json(&json!({"amount": GRANTED, "reference": reference}));
            if let Some(mut answer) = self.send_operation(&format!("{reference} is made"), &request).await {
                tenant.credits.set(tenant.credits.get() + GRANTED);
                tenant.grants.borrow_mut().push(answer["entry"].take());
            }
        }
    }

    /// Replaces the client's key again and again while faults are active: rotates it, or issues a new one and revokes
    /// the old one after the client has switched.
    pub(crate) async fn run_key_replacement(self: Rc<Self>, tenant: Rc<Tenant>, mut key_id: String) {
        for number in 0.. {
            sleep(Duration::from_millis(self.world.random_below(40_000))).await;
            if !self.world.has_active_faults() {
                return;
            }
            if !self.world.injects_in_10_000("key-changes", 5_000) {
                continue;
            }
            if self.world.chance_in_1_000(300) {
                self.rotate_key(&tenant, number, &mut key_id).await;
                continue;
            }
            let path = format!("/admin/v1/clients/{}/keys", tenant.client);
            let issue = Request::post(path).internal(ADMIN_TOKEN).json(&json!({"label": format!("key {number}")}));
            let sentence = format!("key {number} of client {} is issued", tenant.number);
            let Some(issued) = self.send_operation(&sentence, &issue).await else { continue };
            let (Some(next), Some(id)) = (issued["api_key"].as_str(), issued["key_id"].as_str()) else { continue };
            let old = tenant.key.replace(next.to_owned());
            // Requests with the old key finish first.
            sleep(Duration::from_secs(40)).await;
            let revoke = Request::new(Method::DELETE, format!("/admin/v1/keys/{key_id}")).internal(ADMIN_TOKEN);
            let sentence = format!("a key of client {} is revoked", tenant.number);
            self.journal.keys_being_revoked.borrow_mut().push((old.clone(), self.world.started_at.elapsed()));
            if self.send_operation(&sentence, &revoke).await.is_some() {
                let refused_from = self.world.started_at.elapsed() + CACHE_TIME_MAX;
                let revoked = RevokedKey { tenant: tenant.number, key: old, refused_from, is_revoked: true };
                self.journal.revoked_keys.borrow_mut().push(revoked);
            }
            id.clone_into(&mut key_id);
        }
    }

    /// Rotates the client's key; the old key works until the overlap ends.
    async fn rotate_key(&self, tenant: &Tenant, number: usize, key_id: &mut String) {
        let rotate = Request::post(format!("/admin/v1/keys/{key_id}/rotate"));
        let rotate = rotate.internal(ADMIN_TOKEN).json(&json!({"overlap_s": OVERLAP.as_secs()}));
        let sentence = format!("key {number} of client {} is rotated", tenant.number);
        let Some(issued) = self.send_operation(&sentence, &rotate).await else { return };
        let (Some(next), Some(id)) = (issued["api_key"].as_str(), issued["key_id"].as_str()) else { return };
        if issued["previous"]["key_id"] != *key_id || issued["previous"]["expires_at"].is_null() {
            self.journal.record_violation(format!("{sentence}, and the old key is {}", issued["previous"]));
        }
        let key = tenant.key.replace(next.to_owned());
        // From here on, a node whose clock is ahead may refuse the old key.
        self.journal
            .keys_being_revoked
            .borrow_mut()
            .push((key.clone(), self.world.started_at.elapsed() + OVERLAP.saturating_sub(CLOCK_ERROR_MAX)));
        // A node whose clock is behind accepts it for longer.
        let refused_from = self.world.started_at.elapsed() + OVERLAP + CLOCK_ERROR_MAX + CACHE_TIME_MAX;
        self.journal.revoked_keys.borrow_mut().push(RevokedKey {
            tenant: tenant.number,
            key,
            refused_from,
            is_revoked: false,
        });
        id.clone_into(key_id);
    }

    /// Tries the last revoked key again and again, like somebody who has copied it.
    pub(crate) async fn try_revoked_keys(self: Rc<Self>) {
        for _ in 0..25 {
            sleep(Duration::from_millis(self.world.random_below(10_000))).await;
            let revoked = self.journal.revoked_keys.borrow().clone();
            let Some(RevokedKey { tenant, key, refused_from, .. }) = revoked.last().cloned() else { continue };
            self.try_revoked_key(&self.tenants[tenant], &key, refused_from).await;
        }
    }

    /// Tries every key that is revoked or has expired. Runs after the last fault.
    pub(crate) async fn try_all_revoked_keys(&self) {
        let revoked = self.journal.revoked_keys.borrow().clone();
        for RevokedKey { tenant, key, refused_from, .. } in revoked {
            self.try_revoked_key(&self.tenants[tenant], &key, refused_from).await;
        }
    }

    /// Sends a request with a key that must be refused from this moment on.
    async fn try_revoked_key(&self, tenant: &Tenant, key: &str, refused_from: Duration) {
        let request = Request::get("/api/v1/credits").header("x-api-key", key);
        let exchange = self.send(&request.header("x-api-app-id", tenant.app.as_str())).await;
        let must_be_refused = exchange.sent_at > refused_from && !self.may_be_superseded(&exchange);
        if let Some(answer) = exchange.outcome().filter(|answer| answer.status != 401 && must_be_refused) {
            self.journal.record_violation(format!(
                "a revoked key is answered with {} at {:?}",
                answer.status,
                START + exchange.sent_at
            ));
        }
    }

    /// Erases a verification, pending or ended.
    pub(crate) async fn erase_transaction(self: Rc<Self>, txn: TxnId) {
        sleep(Duration::from_millis(self.world.random_below(80_000))).await;
        let request =
            Request::post("/admin/v1/erasures").internal(ADMIN_TOKEN).json(&json!({"kind": "transaction", "id": txn}));
        self.journal.erased.borrow_mut().insert(txn, None);
        if self.send_operation(&format!("{txn} is erased"), &request).await.is_some() {
            self.journal.erased.borrow_mut().insert(txn, Some(self.world.started_at.elapsed()));
        }
    }

    /// Suspends a client for a while, and checks that its requests are refused meanwhile.
    pub(crate) async fn run_suspension(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.random_below(80_000))).await;
        if !self.world.injects_in_10_000("suspensions", 3_000) {
            return;
        }
        let path = format!("/admin/v1/clients/{}", tenant.client);
        let set_suspended = |suspended| {
            Request::new(Method::PATCH, path.clone()).internal(ADMIN_TOKEN).json(&json!({"suspended": suspended}))
        };
        tenant.may_be_suspended.set(true);
        if self.send_operation(&format!("client {} is suspended", tenant.number), &set_suspended(true)).await.is_some()
        {
            let refused_from = self.world.started_at.elapsed() + CACHE_TIME_MAX;
            for _ in 0..3 {
                sleep(Duration::from_millis(self.world.random_below(4_000))).await;
                let exchange = self.send(&Request::get("/api/v1/credits").with_key_of(&tenant)).await;
                if let Some(answer) = exchange.outcome().filter(|answer| {
                    answer.status != 401 && exchange.sent_at > refused_from && !self.may_be_superseded(&exchange)
                }) {
                    self.journal.record_violation(format!("a suspended client is answered with {}", answer.status));
                }
            }
        }
        self.send_operation(&format!("client {} is resumed", tenant.number), &set_suspended(false)).await;
        sleep(CACHE_TIME_MAX * 2).await;
        // `may_be_suspended` stays true, because earlier requests may still be in flight.
    }
}

/// Returns the sentence of an operation without its numbers, under which runs count it.
fn operation_kind(sentence: &str) -> String {
    if sentence.ends_with("is erased") {
        return "a transaction is erased".to_owned();
    }
    sentence.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}
