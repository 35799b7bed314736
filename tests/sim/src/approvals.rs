//! Operators with tokens of their own: grants above the limit, which a second operator confirms or refuses.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::diary::DecidedGrant;
use crate::node::{ADMIN_TOKEN, SECOND_PERSON_ABOVE};
use crate::operators::EFFECTIVE;
use crate::sim::{Request, Sim, TRIES, Tenant};

const OPERATORS: &str = "/admin/v1/operators";
const REQUESTS: &str = "/admin/v1/credits/requests";
/// Number of tries of a decision: more than any outage lasts.
const UNTIL_ANSWERED: usize = 100;

/// An operator with its token.
struct Operator {
    id: String,
    token: String,
}

impl Sim {
    /// Asks for large grants, and lets others decide.
    pub(crate) async fn grants_with_confirmation(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.below(50_000))).await;
        let [Some(first), Some(second)] = [self.adds_operator("First").await, self.adds_operator("Second").await]
        else {
            return;
        };
        for number in 0..1 + self.world.below(2) {
            let reference = format!("invoice-{number}-of-{}", tenant.number);
            self.asks_for_grant(&tenant, &reference, [&first, &second]).await;
        }
        self.revokes_operator(&first).await;
    }

    async fn adds_operator(&self, name: &str) -> Option<Operator> {
        let body = json!({"name": name, "role": "owner"});
        let added = self.ask_again(&Request::post(OPERATORS).internal(ADMIN_TOKEN).json(&body), UNTIL_ANSWERED).await;
        let body = added.outcome().filter(|answer| answer.status == 200)?.json();
        Some(Operator { id: body["operator_id"].as_str()?.to_owned(), token: body["token"].as_str()?.to_owned() })
    }

    /// Asks for a grant as the first operator; the second one confirms it while the first one tries to, and perhaps
    /// withdraws it.
    async fn asks_for_grant(&self, tenant: &Tenant, reference: &str, [first, second]: [&Operator; 2]) {
        let amount = SECOND_PERSON_ABOVE + 1 + self.world.below(20);
        let path = format!("/admin/v1/clients/{}/credits", tenant.client);
        let body = json!({"amount": amount, "reference": reference});
        let asked = self.ask_again(&Request::post(path).internal(&first.token).json(&body), UNTIL_ANSWERED).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        let request = answer.json()["request"].clone();
        let Some(grant) = request["grant_id"].as_str() else {
            return self.diary.record_fault(format!("{reference} is granted without a second operator"));
        };
        self.may_not_confirm(grant, first).await;
        let decide = |operator: &Operator, decision: &str| {
            Request::post(format!("{REQUESTS}/{grant}/{decision}")).internal(&operator.token)
        };
        let (confirm, refuse) = (decide(second, "confirm"), decide(first, "refuse"));
        let is_withdrawn = self.world.chance(400);
        // Whatever is answered first must stand.
        let (confirmed, refused) = tokio::join!(self.ask_again(&confirm, UNTIL_ANSWERED), async {
            if is_withdrawn { Some(self.ask_again(&refuse, UNTIL_ANSWERED).await) } else { None }
        });
        let status = |answer: Option<&crate::node::Answer>| answer.map(|answer| answer.status);
        let outcome = [status(confirmed.outcome()), refused.as_ref().and_then(|refused| status(refused.outcome()))];
        let is_confirmed = match outcome {
            [Some(200), None | Some(409)] => true,
            [Some(409), Some(200)] => false,
            [None, _] => return self.diary.record_fault(format!("nobody answers the decision about {reference}")),
            _ => return self.diary.record_fault(format!("{reference} is decided with {outcome:?}")),
        };
        self.world.reach(if is_confirmed { "operator: a grant is confirmed" } else { "operator: a grant is refused" });
        if is_confirmed {
            tenant.credits.set(tenant.credits.get() + amount);
            tenant.grants.borrow_mut().extend(confirmed.outcome().map(|answer| answer.json()["entry"].take()));
        }
        self.sees_decision(grant, is_confirmed).await;
        let (tenant, reference) = (tenant.number, reference.to_owned());
        self.diary.decided.borrow_mut().push(DecidedGrant { tenant, reference, is_confirmed });
    }

    /// The operator who has asked may not confirm.
    async fn may_not_confirm(&self, grant: &str, first: &Operator) {
        let confirm = Request::post(format!("{REQUESTS}/{grant}/confirm")).internal(&first.token);
        let asked = self.ask_again(&confirm, TRIES).await;
        if let Some(answer) = asked.outcome().filter(|answer| answer.status != 409) {
            self.diary.record_fault(format!("who asked for {grant} confirms it, answered with {}", answer.status));
        }
    }

    /// Reads the list of requests; a decision does not change.
    async fn sees_decision(&self, grant: &str, is_confirmed: bool) {
        let asked = self.ask(&Request::get(REQUESTS).internal(ADMIN_TOKEN)).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let listed = body["requests"].as_array().into_iter().flatten();
        let states: Vec<&Value> =
            listed.filter(|request| request["grant_id"] == grant).map(|request| &request["state"]).collect();
        let expected = if is_confirmed { "confirmed" } else { "refused" };
        if states != [expected] && !self.may_be_superseded(&asked) {
            self.diary.record_fault(format!("{grant} was {expected}, and is listed as {states:?}"));
        }
    }

    /// Revokes an operator, whose token must not be accepted afterwards.
    async fn revokes_operator(&self, operator: &Operator) {
        let path = format!("{OPERATORS}/{}", operator.id);
        let revoke = Request::new(Method::DELETE, path).internal(ADMIN_TOKEN);
        let revoked = self.ask_again(&revoke, UNTIL_ANSWERED).await;
        if revoked.outcome().is_none_or(|answer| answer.status != 200) {
            return self.diary.record_fault("an operator is not revoked".to_owned());
        }
        sleep(EFFECTIVE).await;
        let asked = self.ask(&Request::get(OPERATORS).internal(&operator.token)).await;
        if let Some(answer) = asked.outcome().filter(|answer| answer.status != 401 && !self.may_be_superseded(&asked)) {
            self.diary.record_fault(format!("a revoked operator is answered with {}", answer.status));
        }
        let listed = self.ask(&Request::get(OPERATORS).internal(ADMIN_TOKEN)).await;
        let Some(answer) = listed.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let own = body["operators"].as_array().into_iter().flatten().find(|one| one["operator_id"] == operator.id);
        if own.is_none_or(|own| own["revoked_at"].is_null()) && !self.may_be_superseded(&listed) {
            self.diary.record_fault(format!("a revoked operator is listed as {own:?}"));
        }
    }
}
