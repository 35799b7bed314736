//! Operators: they grant credits, replace keys, and suspend a client for a while, on any node's internal listener.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use sakshi_domain::ids::TxnId;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::diary::RevokedKey;
use crate::node::ADMIN_TOKEN;
use crate::sim::{Request, Sim, Tenant};
use crate::world::START;

/// Time for which a node may still use the state before an operator's change.
pub(crate) const EFFECTIVE: Duration = Duration::from_secs(1);

/// Time for which a rotated key still works, and the largest error of a node's clock meanwhile.
const OVERLAP: Duration = Duration::from_secs(60);
const JUMP: Duration = Duration::from_secs(51);

impl Sim {
    /// Retries until the answer reports the outcome.
    async fn operates_on(&self, what: &str, request: &Request) -> Option<Value> {
        self.diary.waits_for(what);
        loop {
            let asked = self.ask(request).await;
            match asked.outcome() {
                Some(answer) if answer.status == 200 => {
                    self.diary.was_answered(what);
                    self.world.say(|line| line.push_str(what));
                    self.world.reach(format!("operator: {}", kind_of(what)));
                    return Some(answer.json());
                }
                // The change was made and its answer lost.
                Some(answer) if answer.status == 404 || answer.status == 409 => {
                    self.diary.was_answered(what);
                    return None;
                }
                Some(answer) => {
                    self.diary.record_fault(format!("{what} is answered with {} {}", answer.status, answer.text()));
                    return None;
                }
                None => sleep(self.world.pause(500)).await,
            }
        }
    }

    /// Grants credits now and then.
    pub(crate) async fn grants(self: Rc<Self>, tenant: Rc<Tenant>) {
        for number in 0.. {
            sleep(Duration::from_millis(self.world.below(30_000))).await;
            if !self.world.is_rough() {
                return;
            }
            let reference = format!("grant-{number}-of-{}", tenant.number);
            let path = format!("/admin/v1/clients/{}/credits", tenant.client);
            let request = Request::post(path).internal(ADMIN_TOKEN).json(&json!({"amount": 3, "reference": reference}));
            if let Some(mut answer) = self.operates_on(&format!("{reference} is made"), &request).await {
                tenant.credits.set(tenant.credits.get() + 3);
                tenant.grants.borrow_mut().push(answer["entry"].take());
            }
        }
    }

    /// Issues a new key now and then, and revokes the old one after the client has switched.
    pub(crate) async fn replaces_keys(self: Rc<Self>, tenant: Rc<Tenant>, mut key_id: String) {
        for number in 0.. {
            sleep(Duration::from_millis(self.world.below(40_000))).await;
            if !self.world.is_rough() {
                return;
            }
            if !self.world.goes_wrong("key-changes", 5_000) {
                continue;
            }
            if self.world.chance(300) {
                self.rotates_key(&tenant, number, &mut key_id).await;
                continue;
            }
            let path = format!("/admin/v1/clients/{}/keys", tenant.client);
            let issue = Request::post(path).internal(ADMIN_TOKEN).json(&json!({"label": format!("key {number}")}));
            let what = format!("key {number} of client {} is issued", tenant.number);
            let Some(issued) = self.operates_on(&what, &issue).await else { continue };
            let (Some(next), Some(id)) = (issued["api_key"].as_str(), issued["key_id"].as_str()) else { continue };
            let old = tenant.key.replace(next.to_owned());
            // Requests with the old key finish.
            sleep(Duration::from_secs(40)).await;
            let revoke = Request::new(Method::DELETE, format!("/admin/v1/keys/{key_id}")).internal(ADMIN_TOKEN);
            let what = format!("a key of client {} is revoked", tenant.number);
            self.diary.revoking.borrow_mut().push((old.clone(), self.world.begun.elapsed()));
            if self.operates_on(&what, &revoke).await.is_some() {
                let from = self.world.begun.elapsed() + EFFECTIVE;
                let revoked = RevokedKey { tenant: tenant.number, key: old, from, is_revoked: true };
                self.diary.revoked.borrow_mut().push(revoked);
            }
            id.clone_into(&mut key_id);
        }
    }

    /// Replaces a key by a successor; the old key works until the overlap ends.
    async fn rotates_key(&self, tenant: &Tenant, number: usize, key_id: &mut String) {
        let rotate = Request::post(format!("/admin/v1/keys/{key_id}/rotate"));
        let rotate = rotate.internal(ADMIN_TOKEN).json(&json!({"overlap_s": OVERLAP.as_secs()}));
        let what = format!("key {number} of client {} is rotated", tenant.number);
        let Some(issued) = self.operates_on(&what, &rotate).await else { return };
        let (Some(next), Some(id)) = (issued["api_key"].as_str(), issued["key_id"].as_str()) else { return };
        if issued["previous"]["key_id"] != *key_id || issued["previous"]["expires_at"].is_null() {
            self.diary.record_fault(format!("{what}, and the old key is {}", issued["previous"]));
        }
        let key = tenant.key.replace(next.to_owned());
        // Requests with the old key finish.
        self.diary.revoking.borrow_mut().push((key.clone(), self.world.begun.elapsed() + OVERLAP.saturating_sub(JUMP)));
        // The clock of a node may be behind.
        let from = self.world.begun.elapsed() + OVERLAP + JUMP + EFFECTIVE;
        self.diary.revoked.borrow_mut().push(RevokedKey { tenant: tenant.number, key, from, is_revoked: false });
        id.clone_into(key_id);
    }

    /// Tries revoked keys, as somebody who has copied them.
    pub(crate) async fn tries_revoked_keys(self: Rc<Self>) {
        for _ in 0..25 {
            sleep(Duration::from_millis(self.world.below(10_000))).await;
            let revoked = self.diary.revoked.borrow().clone();
            let Some(RevokedKey { tenant, key, from, .. }) = revoked.last().cloned() else { continue };
            self.tries_key(&self.tenants[tenant], &key, from).await;
        }
    }

    /// Tries every key that is revoked or has expired, after the last fault.
    pub(crate) async fn tries_all_revoked_keys(&self) {
        let revoked = self.diary.revoked.borrow().clone();
        for RevokedKey { tenant, key, from, .. } in revoked {
            self.tries_key(&self.tenants[tenant], &key, from).await;
        }
    }

    /// Tries a key that must be refused from a moment on.
    async fn tries_key(&self, tenant: &Tenant, key: &str, from: Duration) {
        let request = Request::get("/api/v1/credits").header("x-api-key", key);
        let asked = self.ask(&request.header("x-api-app-id", tenant.app.as_str())).await;
        let is_due = asked.asked > from && !self.may_be_superseded(&asked);
        if let Some(answer) = asked.outcome().filter(|answer| answer.status != 401 && is_due) {
            self.diary.record_fault(format!(
                "a revoked key is answered with {} at {:?}",
                answer.status,
                START + asked.asked
            ));
        }
    }

    /// Erases a verification, pending or ended.
    pub(crate) async fn erases(self: Rc<Self>, txn: TxnId) {
        sleep(Duration::from_millis(self.world.below(80_000))).await;
        let request =
            Request::post("/admin/v1/erasures").internal(ADMIN_TOKEN).json(&json!({"kind": "transaction", "id": txn}));
        self.diary.erased.borrow_mut().insert(txn, None);
        if self.operates_on(&format!("{txn} is erased"), &request).await.is_some() {
            self.diary.erased.borrow_mut().insert(txn, Some(self.world.begun.elapsed()));
        }
    }

    /// Suspends a client for a while.
    pub(crate) async fn suspends(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.below(80_000))).await;
        if !self.world.goes_wrong("suspensions", 3_000) {
            return;
        }
        let path = format!("/admin/v1/clients/{}", tenant.client);
        let set = |suspended| {
            Request::new(Method::PATCH, path.clone()).internal(ADMIN_TOKEN).json(&json!({"suspended": suspended}))
        };
        tenant.may_be_suspended.set(true);
        if self.operates_on(&format!("client {} is suspended", tenant.number), &set(true)).await.is_some() {
            let from = self.world.begun.elapsed() + EFFECTIVE;
            for _ in 0..3 {
                sleep(Duration::from_millis(self.world.below(4_000))).await;
                let asked = self.ask(&Request::get("/api/v1/credits").with_key_of(&tenant)).await;
                if let Some(answer) = asked
                    .outcome()
                    .filter(|answer| answer.status != 401 && asked.asked > from && !self.may_be_superseded(&asked))
                {
                    self.diary.record_fault(format!("a suspended client is answered with {}", answer.status));
                }
            }
        }
        self.operates_on(&format!("client {} is resumed", tenant.number), &set(false)).await;
        sleep(EFFECTIVE * 2).await;
        // Earlier requests may still be in flight, so the mark stays.
    }
}

/// Returns the name of an operation without its numbers.
fn kind_of(what: &str) -> String {
    if what.ends_with("is erased") {
        return "a transaction is erased".to_owned();
    }
    what.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}
