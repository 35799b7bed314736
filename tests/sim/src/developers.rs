//! Clients' developers, who view verifications in the portal with a key of their client.

use std::rc::Rc;
use std::time::Duration;

use sakshi_kit::portal::{CSRF_FIELD, hidden_field};
use tokio::time::sleep;

use crate::journal::Observation;
use crate::sim::{Request, Sim, TRIES, Tenant};

impl Sim {
    /// Signs in, views verifications, and signs out.
    pub(crate) async fn run_portal_session(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.random_below(60_000))).await;
        let key = tenant.key.borrow().clone();
        let Some(cookie) = self.sign_in_to_portal(&tenant, &key).await else { return };
        for _ in 0..self.world.random_below(6) {
            sleep(Duration::from_millis(self.world.random_below(20_000))).await;
            self.view_in_portal(&tenant, &key, &cookie).await;
        }
        let page = Request::get("/portal/verifications").header("cookie", &cookie);
        let list = self.send_with_retries(&page, TRIES).await;
        let Some(list) = list.outcome().filter(|answer| answer.status == 200) else { return };
        let token = format!("{CSRF_FIELD}={}", hidden_field(&list.text(), CSRF_FIELD));
        let sign_out = with_form(Request::post("/portal/sign-out"), &token).header("cookie", &cookie);
        let signed_out = self.send_with_retries(&sign_out, TRIES).await;
        if signed_out.outcome().is_none_or(|answer| answer.header("location") != Some("/portal/sign-in?out=1")) {
            return;
        }
        let after = self.send(&page).await;
        if after.outcome().is_some_and(|answer| answer.status == 200) && !self.may_be_superseded(&after) {
            self.journal.record_violation("a session goes on that has ended".to_owned());
        }
    }

    /// Signs in to the portal and returns the session's cookie.
    async fn sign_in_to_portal(&self, tenant: &Tenant, key: &str) -> Option<String> {
        let sign_in = with_form(Request::post("/portal/sign-in"), &format!("app_id={}&key={key}", tenant.app));
        let exchange = self.send_with_retries(&sign_in, TRIES).await;
        let answer = exchange.outcome()?;
        let may_be_refused = tenant.may_be_suspended.get() || self.may_be_revoked(key, exchange.answered_at);
        if answer.status == 401 && may_be_refused {
            return None;
        }
        if answer.status != 303 {
            self.journal.record_violation(format!("signing in to the portal is answered with {}", answer.status));
        }
        Some(answer.header("set-cookie")?.split(';').next()?.to_owned())
    }

    /// Views a random transaction, perhaps another client's, and records the state that the page shows.
    async fn view_in_portal(&self, tenant: &Tenant, key: &str, cookie: &str) {
        let known: Vec<_> = self.journal.facts.borrow().iter().map(|fact| fact.txn).collect();
        let Some(txn) = known.get(self.world.random_index(known.len())).copied() else { return };
        let page = Request::get(format!("/portal/transactions/{txn}")).header("cookie", cookie).for_tenant(tenant);
        let exchange = self.send(&page).await;
        let Some(answer) = exchange.outcome() else { return };
        let is_revoked = self
            .journal
            .revoked_keys
            .borrow()
            .iter()
            .any(|revoked| revoked.key == key && exchange.sent_at > revoked.refused_from);
        let title =
            answer.text().split_once("<title>").and_then(|(_, rest)| Some(rest.split_once(" · ")?.0.to_owned()));
        let observation = match (answer.status, title.as_deref()) {
            (200, _) if is_revoked && !self.may_be_superseded(&exchange) => {
                return self.journal.record_violation("a session goes on whose key is revoked".to_owned());
            }
            (200, Some("Waiting")) => Observation::Pending,
            (200, Some("Verified")) => Observation::Listed { verified: true },
            (200, Some("Not verified")) => Observation::Listed { verified: false },
            (200, Some("Expired")) => Observation::Expired,
            (404, _) if self.tenants.len() > 1 => return,
            (404, _) => Observation::Unknown,
            // The session ends with its key.
            (303, _) if tenant.may_be_suspended.get() || self.may_be_revoked(key, exchange.answered_at) => return,
            (status, title) => {
                return self.journal.record_violation(format!("{txn}: the portal answers with {status} {title:?}"));
            }
        };
        self.record_fact(txn, &exchange, observation);
    }

    /// Returns true if an operator had begun to revoke the key by this time, so that it may be refused.
    pub(crate) fn may_be_revoked(&self, key: &str, at: Duration) -> bool {
        self.journal.keys_being_revoked.borrow().iter().any(|(revoked, since)| revoked == key && *since <= at)
    }
}

/// Adds the fields of a form.
fn with_form(request: Request, fields: &str) -> Request {
    request.body("application/x-www-form-urlencoded", fields.to_owned())
}
