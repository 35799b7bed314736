//! Clients' developers, who view verifications in the portal with a key of their client.

use std::rc::Rc;
use std::time::Duration;

use sakshi_kit::portal::{CSRF_FIELD, hidden_field};
use tokio::time::sleep;

use crate::diary::Knowledge;
use crate::sim::{Request, Sim, TRIES, Tenant};

impl Sim {
    /// Signs in, views verifications, and signs out.
    pub(crate) async fn uses_the_portal(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.below(60_000))).await;
        let key = tenant.key.borrow().clone();
        let Some(cookie) = self.signs_in(&tenant, &key).await else { return };
        for _ in 0..self.world.below(6) {
            sleep(Duration::from_millis(self.world.below(20_000))).await;
            self.looks_in_the_portal(&tenant, &key, &cookie).await;
        }
        let page = Request::get("/portal/verifications").header("cookie", &cookie);
        let shown = self.ask_again(&page, TRIES).await;
        let Some(shown) = shown.outcome().filter(|answer| answer.status == 200) else { return };
        let token = format!("{CSRF_FIELD}={}", hidden_field(&shown.text(), CSRF_FIELD));
        let leave = form(Request::post("/portal/sign-out"), &token).header("cookie", &cookie);
        let left = self.ask_again(&leave, TRIES).await;
        if left.outcome().is_none_or(|answer| answer.header("location") != Some("/portal/sign-in?out=1")) {
            return;
        }
        let after = self.ask(&page).await;
        if after.outcome().is_some_and(|answer| answer.status == 200) && !self.may_be_superseded(&after) {
            self.diary.record_fault("a session goes on that has ended".to_owned());
        }
    }

    /// Signs in and returns the session's cookie.
    async fn signs_in(&self, tenant: &Tenant, key: &str) -> Option<String> {
        let enter = form(Request::post("/portal/sign-in"), &format!("app_id={}&key={key}", tenant.app));
        let asked = self.ask_again(&enter, TRIES).await;
        let answer = asked.outcome()?;
        let may_be_refused = tenant.may_be_suspended.get() || self.is_revoked(key, asked.answered);
        if answer.status == 401 && may_be_refused {
            return None;
        }
        if answer.status != 303 {
            self.diary.record_fault(format!("signing in to the portal is answered with {}", answer.status));
        }
        Some(answer.header("set-cookie")?.split(';').next()?.to_owned())
    }

    /// Views one transaction, perhaps another client's.
    async fn looks_in_the_portal(&self, tenant: &Tenant, key: &str, cookie: &str) {
        let known: Vec<_> = self.diary.facts.borrow().iter().map(|fact| fact.txn).collect();
        let Some(txn) = known.get(self.world.index(known.len())).copied() else { return };
        let page = Request::get(format!("/portal/transactions/{txn}")).header("cookie", cookie).seen_by(tenant);
        let asked = self.ask(&page).await;
        let Some(answer) = asked.outcome() else { return };
        let is_revoked =
            self.diary.revoked.borrow().iter().any(|revoked| revoked.key == key && asked.asked > revoked.from);
        let title =
            answer.text().split_once("<title>").and_then(|(_, rest)| Some(rest.split_once(" · ")?.0.to_owned()));
        let learned = match (answer.status, title.as_deref()) {
            (200, _) if is_revoked && !self.may_be_superseded(&asked) => {
                return self.diary.record_fault("a session goes on whose key is revoked".to_owned());
            }
            (200, Some("Waiting")) => Knowledge::Pending,
            (200, Some("Verified")) => Knowledge::Ended { verified: true },
            (200, Some("Not verified")) => Knowledge::Ended { verified: false },
            (200, Some("Expired")) => Knowledge::Expired,
            (404, _) if self.tenants.len() > 1 => return,
            (404, _) => Knowledge::Unknown,
            // The session ends with its key.
            (303, _) if tenant.may_be_suspended.get() || self.is_revoked(key, asked.answered) => return,
            (status, title) => {
                return self.diary.record_fault(format!("{txn}: the portal answers with {status} {title:?}"));
            }
        };
        self.learn(txn, &asked, learned);
    }

    /// Returns true if an operator had begun to revoke the key by this time.
    fn is_revoked(&self, key: &str, at: Duration) -> bool {
        self.diary.revoking.borrow().iter().any(|(revoked, since)| revoked == key && *since <= at)
    }
}

fn form(request: Request, fields: &str) -> Request {
    request.body("application/x-www-form-urlencoded", fields.to_owned())
}
