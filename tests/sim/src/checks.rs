//! Checks of numbers, such as a tax number: a client sends a number, and its source, an upstream, answers or fails.

use std::rc::Rc;
use std::time::Duration;

use sakshi_domain::checks::{CHECKS, Check, DetailForm};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::journal::RequestedCheck;
use crate::sim::{Request, Sim, Tenant};

/// Statuses with which a source answers.
const STATUSES: [&str; 3] = ["valid", "invalid", "not_found"];

impl Sim {
    /// Requests a few checks of numbers of several kinds.
    pub(crate) async fn run_checks(self: Rc<Self>, tenant: Rc<Tenant>) {
        for _ in 0..self.world.random_below(4) {
            sleep(Duration::from_millis(self.world.random_below(40_000))).await;
            let check = &CHECKS[self.world.random_index(CHECKS.len())];
            self.request_check(&tenant, check).await;
        }
    }

    /// Requests one check, and verifies and records the answer.
    async fn request_check(&self, tenant: &Tenant, check: &'static Check) {
        let id = self.unique_name("check");
        let mut body = json!({"request_id": id});
        for form in check.numbers {
            body[form.field] = json!(form.example);
        }
        if check.needs_consent {
            body["consent"] = json!("Y");
            body["consent_text"] = json!(format!("{} agrees", tenant.resident.name));
        }
        let exchange = self.send(&Request::post(check.path).json(&body).with_key_of(tenant)).await;
        let status = exchange.outcome().map(|answer| answer.status);
        if status == Some(401) && tenant.may_be_suspended.get() {
            return;
        }
        if let Some(answer) = exchange.outcome() {
            let answer = answer.json();
            let is_right = status == Some(200)
                && answer["request_id"] == id
                && answer["data"]["status"].as_str().is_some_and(|status| STATUSES.contains(&status))
                && check.numbers.iter().all(|form| answer["data"][form.field] == form.example);
            if !is_right {
                self.journal
                    .record_violation(format!("a check of {} is answered with {status:?} {answer}", check.name));
            }
        }
        let has_answer = status.is_some();
        self.journal.checks.borrow_mut().push(RequestedCheck { tenant: tenant.number, check, id, has_answer });
    }
}

/// Returns the answer of a check's source; `None` if the path is not that of a check.
pub(crate) fn source_answer(path: &str, status_index: usize) -> Option<Value> {
    let check = Check::named(path.trim_start_matches('/'))?;
    let mut answer = json!({"status": STATUSES[status_index % STATUSES.len()]});
    for detail in check.details {
        answer[detail.source_field] = match detail.form {
            DetailForm::Match(_) => json!(true),
            DetailForm::Word(_) => json!(detail.example),
            DetailForm::Text => json!("on record"),
        };
    }
    Some(answer)
}
