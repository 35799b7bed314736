//! Verifications that are answered at once: a client asks for a number, and the source knows it, does not, or fails.

use std::rc::Rc;
use std::time::Duration;

use sakshi_domain::checks::{CHECKS, Check, DetailForm};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::diary::Checked;
use crate::sim::{Request, Sim, Tenant};

/// Statuses of a number at its source.
const STATUSES: [&str; 3] = ["valid", "invalid", "not_found"];

impl Sim {
    /// Asks for numbers of several kinds.
    pub(crate) async fn checks_numbers(self: Rc<Self>, tenant: Rc<Tenant>) {
        for _ in 0..self.world.below(4) {
            sleep(Duration::from_millis(self.world.below(40_000))).await;
            let check = &CHECKS[self.world.index(CHECKS.len())];
            self.checks(&tenant, check).await;
        }
    }

    async fn checks(&self, tenant: &Tenant, check: &'static Check) {
        let id = self.name("check");
        let mut body = json!({"request_id": id});
        for form in check.numbers {
            body[form.field] = json!(form.example);
        }
        if check.needs_consent {
            body["consent"] = json!("Y");
            body["consent_text"] = json!(format!("{} agrees", tenant.resident.name));
        }
        let asked = self.ask(&Request::post(check.path).json(&body).with_key_of(tenant)).await;
        let status = asked.outcome().map(|answer| answer.status);
        if status == Some(401) && tenant.may_be_suspended.get() {
            return;
        }
        if let Some(answer) = asked.outcome() {
            let answer = answer.json();
            let is_right = status == Some(200)
                && answer["request_id"] == id
                && answer["data"]["status"].as_str().is_some_and(|status| STATUSES.contains(&status))
                && check.numbers.iter().all(|form| answer["data"][form.field] == form.example);
            if !is_right {
                self.diary.record_fault(format!("a check of {} is answered with {status:?} {answer}", check.name));
            }
        }
        let has_answer = status.is_some();
        self.diary.checks.borrow_mut().push(Checked { tenant: tenant.number, check, id, has_answer });
    }
}

/// Returns a source's answer to a question, if it is one for a check.
pub(crate) fn answer_of_source(path: &str, pick: usize) -> Option<Value> {
    let check = Check::named(path.trim_start_matches('/'))?;
    let mut answer = json!({"status": STATUSES[pick % STATUSES.len()]});
    for detail in check.details {
        answer[detail.source_field] = match detail.form {
            DetailForm::Match(_) => json!(true),
            DetailForm::Word(_) => json!(detail.example),
            DetailForm::Text => json!("on record"),
        };
    }
    Some(answer)
}
