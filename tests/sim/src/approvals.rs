//! Operators with tokens of their own: grants above the limit, which a second operator confirms or refuses.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::journal::DecidedGrant;
use crate::node::{ADMIN_TOKEN, SECOND_PERSON_ABOVE};
use crate::operators::CACHE_TIME_MAX;
use crate::sim::{Request, Sim, TRIES, Tenant};

const OPERATORS: &str = "/admin/v1/operators";
const REQUESTS: &str = "/admin/v1/credits/requests";
/// Number of tries of an operator's request: more than any outage lasts.
const OPERATOR_TRIES: usize = 100;

/// An operator with its own token.
struct Operator {
    id: String,
    token: String,
}

impl Sim {
    /// Requests large grants as one operator, and decides about them as another.
    pub(crate) async fn run_confirmed_grants(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.random_below(50_000))).await;
        let [Some(first), Some(second)] = [self.add_operator("First").await, self.add_operator("Second").await] else {
            return;
        };
        for number in 0..1 + self.world.random_below(2) {
            let reference = format!("invoice-{number}-of-{}", tenant.number);
            self.request_grant(&tenant, &reference, [&first, &second]).await;
        }
        self.revoke_operator(&first).await;
    }

    /// Creates an operator with a token.
    async fn add_operator(&self, name: &str) -> Option<Operator> {
        let body = json!({"name": name, "role": "owner"});
        let added =
            self.send_with_retries(&Request::post(OPERATORS).internal(ADMIN_TOKEN).json(&body), OPERATOR_TRIES).await;
        let body = added.outcome().filter(|answer| answer.status == 200)?.json();
        Some(Operator { id: body["operator_id"].as_str()?.to_owned(), token: body["token"].as_str()?.to_owned() })
    }

    /// Requests a grant as the first operator, and confirms it as the second one. At the same time the first one
    /// perhaps withdraws it.
    async fn request_grant(&self, tenant: &Tenant, reference: &str, [first, second]: [&Operator; 2]) {
        let amount = SECOND_PERSON_ABOVE + 1 + self.world.random_below(20);
        let path = format!("/admin/v1/clients/{}/credits", tenant.client);
        let body = json!({"amount": amount, "reference": reference});
        let exchange =
            self.send_with_retries(&Request::post(path).internal(&first.token).json(&body), OPERATOR_TRIES).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        let request = answer.json()["request"].clone();
        let Some(grant) = request["grant_id"].as_str() else {
            return self.journal.record_violation(format!("{reference} is granted without a second operator"));
        };
        self.check_requester_cannot_confirm(grant, first).await;
        let decide = |operator: &Operator, decision: &str| {
            Request::post(format!("{REQUESTS}/{grant}/{decision}")).internal(&operator.token)
        };
        let (confirm, refuse) = (decide(second, "confirm"), decide(first, "refuse"));
        let is_withdrawn = self.world.chance_in_1_000(400);
        // The first decision must stand.
        let (confirmed, refused) = tokio::join!(self.send_with_retries(&confirm, OPERATOR_TRIES), async {
            if is_withdrawn { Some(self.send_with_retries(&refuse, OPERATOR_TRIES).await) } else { None }
        });
        let status = |answer: Option<&crate::node::Answer>| answer.map(|answer| answer.status);
        let outcome = [status(confirmed.outcome()), refused.as_ref().and_then(|refused| status(refused.outcome()))];
        let is_confirmed = match outcome {
            [Some(200), None | Some(409)] => true,
            [Some(409), Some(200)] => false,
            [None, _] => {
                return self.journal.record_violation(format!("nobody answers the decision about {reference}"));
            }
            _ => return self.journal.record_violation(format!("{reference} is decided with {outcome:?}")),
        };
        self.world.count_occurrence(if is_confirmed {
            "operator: a grant is confirmed"
        } else {
            "operator: a grant is refused"
        });
        if is_confirmed {
            tenant.credits.set(tenant.credits.get() + amount);
            tenant.grants.borrow_mut().extend(confirmed.outcome().map(|answer| answer.json()["entry"].take()));
        }
        self.check_listed_decision(grant, is_confirmed).await;
        let (tenant, reference) = (tenant.number, reference.to_owned());
        self.journal.decided_grants.borrow_mut().push(DecidedGrant { tenant, reference, is_confirmed });
    }

    /// Checks that the operator who has requested a grant cannot confirm it.
    async fn check_requester_cannot_confirm(&self, grant: &str, first: &Operator) {
        let confirm = Request::post(format!("{REQUESTS}/{grant}/confirm")).internal(&first.token);
        let exchange = self.send_with_retries(&confirm, TRIES).await;
        if let Some(answer) = exchange.outcome().filter(|answer| answer.status != 409) {
            self.journal
                .record_violation(format!("who asked for {grant} confirms it, answered with {}", answer.status));
        }
    }

    /// Checks that the list of requests shows the decision about a grant.
    async fn check_listed_decision(&self, grant: &str, is_confirmed: bool) {
        let exchange = self.send(&Request::get(REQUESTS).internal(ADMIN_TOKEN)).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let listed = body["requests"].as_array().into_iter().flatten();
        let states: Vec<&Value> =
            listed.filter(|request| request["grant_id"] == grant).map(|request| &request["state"]).collect();
        let expected = if is_confirmed { "confirmed" } else { "refused" };
        if states != [expected] && !self.may_be_superseded(&exchange) {
            self.journal.record_violation(format!("{grant} was {expected}, and is listed as {states:?}"));
        }
    }

    /// Revokes an operator, whose token must not be accepted afterwards.
    async fn revoke_operator(&self, operator: &Operator) {
        let path = format!("{OPERATORS}/{}", operator.id);
        let revoke = Request::new(Method::DELETE, path).internal(ADMIN_TOKEN);
        let revoked = self.send_with_retries(&revoke, OPERATOR_TRIES).await;
        if revoked.outcome().is_none_or(|answer| answer.status != 200) {
            return self.journal.record_violation("an operator is not revoked".to_owned());
        }
        sleep(CACHE_TIME_MAX).await;
        let exchange = self.send(&Request::get(OPERATORS).internal(&operator.token)).await;
        if let Some(answer) =
            exchange.outcome().filter(|answer| answer.status != 401 && !self.may_be_superseded(&exchange))
        {
            self.journal.record_violation(format!("a revoked operator is answered with {}", answer.status));
        }
        let listed = self.send(&Request::get(OPERATORS).internal(ADMIN_TOKEN)).await;
        let Some(answer) = listed.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let own = body["operators"].as_array().into_iter().flatten().find(|one| one["operator_id"] == operator.id);
        if own.is_none_or(|own| own["revoked_at"].is_null()) && !self.may_be_superseded(&listed) {
            self.journal.record_violation(format!("a revoked operator is listed as {own:?}"));
        }
    }
}
