//! The audit log of every operation that changes something: an entry before the change and another with its outcome.
//!
//! Without the first entry there is no change. The second is written even after the caller has disconnected, because
//! the change completes by itself. An entry has the values of known names only, so that a new name cannot leak a
//! secret.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, rt};
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::host;
use sakshi_wire::operator::brand::BrandResponse;
use sakshi_wire::operator::credits::GrantRequestResponse;
use sakshi_wire::operator::keys::KeyResponse;
use sakshi_wire::operator::operators::OperatorResponse;
use sakshi_wire::operator::tenancy::{AppResponse, ClientResponse};
use sakshi_wire::operator::users::UserResponse;
use serde_json::{Value, json};
use tracing::Instrument as _;

use super::InternalDeps;
use super::arguments::deps;
use super::bearer::Who;
use super::operation::Answer;

/// Names whose values are logged. Of a `…_webhook_url` the origin is logged.
const TOLD: &[&str] = &[
    "accepted",
    "accepted_at",
    "ahead_s",
    "amount",
    "answers",
    "app_id",
    "apps",
    "asked_at",
    "asked_by",
    "at",
    "balance",
    "balance_after",
    "changed",
    "chosen",
    "chosen_at",
    "client",
    "client_id",
    "colour",
    "created_at",
    "decided_at",
    "decided_by",
    "disabled",
    "disabled_at",
    "ends_at",
    "entry",
    "environments",
    "events",
    "events_per_app",
    "evidence",
    "expires_at",
    "flows",
    "for_s",
    "grant_id",
    "id",
    "key_id",
    "keys",
    "kid",
    "kind",
    "label",
    "left",
    "level",
    "logo_url",
    "picture_url",
    "portal_key_sign_in",
    "looked_at",
    "low_credits",
    "name",
    "networks",
    "operator_id",
    "outcome",
    "overlap_s",
    "payload_spelling",
    "previous",
    "privacy_url",
    "records",
    "reference",
    "refusals",
    "registration_ttl_days",
    "registrations",
    "request",
    "requests_per_second",
    "resealed",
    "result_ttl_s",
    "revoked_at",
    "role",
    "sealing_key",
    "seq",
    "signs",
    "since",
    "state",
    "support",
    "suspended",
    "suspended_at",
    "transactions",
    "until",
    "user_id",
    "users",
    "usual",
    "values",
];

/// The place of an operation's entries in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logging {
    /// One entry before and one after.
    Around,
    /// One entry after, because the store accepts none before.
    Afterwards,
}

/// Carries out an operator's request, between its two entries.
pub(super) async fn logged<T: Answer + 'static, F: Future<Output = T> + 'static>(
    request: HttpRequest,
    who: Who,
    (operation, logging): (&'static str, Logging),
    asked: Value,
    work: impl FnOnce() -> F + 'static,
) -> Result<T, ApiError> {
    let deps = deps(&request)?;
    let in_path = request.match_info().iter().map(|(name, id)| (name, id.to_owned()));
    // An erasure names its subject in the body, and so does a choice of the intent key.
    let in_body = ["id", "kid"].into_iter().filter_map(|name| Some((name, asked[name].as_str()?.to_owned())));
    let ids: BTreeMap<&str, String> = in_path.chain(in_body).collect();
    let before = standing(&deps, &request).await?;
    let entry = entry(&deps, &request, &who, operation, &ids);
    let first =
        with(&entry, deps.clock.now(), &json!({ "stage": "asked", "asked": told(asked), "before": told(before) }));
    let asked_number = match logging {
        Logging::Around => Some(deps.store.append_audit(first).await?.number),
        Logging::Afterwards => None,
    };
    let carried_out = async move {
        let answer = work().await;
        let Outcome { status, code, after } = answer.outcome();
        let said = json!({ "stage": "answered", "asked_number": asked_number, "status": status, "code": code,
            "after": told(after) });
        let second = with(&entry, deps.clock.now(), &said);
        if let Err(error) = deps.store.append_audit(second).await {
            metrics::counter!("sakshi_audit_log_unanswered_total").increment(1);
            tracing::error!(%error, audit.number = asked_number, "the audit log does not say what came of a change");
        }
        answer
    };
    rt::spawn(carried_out.in_current_span()).await.map_err(ApiError::internal)
}

/// Logs an operator's action that is no operation of the API.
pub(super) async fn note(
    request: &HttpRequest,
    deps: &InternalDeps,
    who: &Who,
    operation: &str,
) -> Result<(), ApiError> {
    let entry = entry(deps, request, who, operation, &BTreeMap::new());
    deps.store
        .append_audit(with(&entry, deps.clock.now(), &json!({ "stage": "answered", "status": 200, "code": null })))
        .await?;
    Ok(())
}

/// Logs the refusal of an operator by role.
pub(super) async fn refused(request: &HttpRequest, who: &Who, operation: &'static str) -> Result<(), ApiError> {
    let deps = deps(request)?;
    let ids = request.match_info().iter().map(|(name, id)| (name, id.to_owned())).collect();
    let entry = entry(&deps, request, who, operation, &ids);
    let code = ApiError::Forbidden.code();
    deps.store
        .append_audit(with(&entry, deps.clock.now(), &json!({ "stage": "refused", "status": 403, "code": code })))
        .await?;
    Ok(())
}

/// Builds the members of every entry.
fn entry(
    deps: &InternalDeps,
    request: &HttpRequest,
    who: &Who,
    operation: &str,
    ids: &BTreeMap<&str, String>,
) -> Value {
    let mut entry = json!({
        "operator_id": who.id,
        "operator": who.name,
        "operation": operation,
        "ids": ids,
        "from": host(request, &deps.trusted_proxies),
        "request_id": request_id(request),
    });
    if let Some(subject) = &who.subject {
        entry["subject"] = json!(subject);
    }
    entry
}

/// The outcome of an operation.
pub(super) struct Outcome {
    pub(super) status: u16,
    pub(super) code: Option<&'static str>,
    pub(super) after: Value,
}

/// Builds the text of an entry. Members are sorted by name, as in every object here.
fn with(entry: &Value, at: Timestamp, more: &Value) -> String {
    let mut all = entry.as_object().cloned().unwrap_or_default();
    all.insert("at".to_owned(), json!(at));
    all.extend(more.as_object().cloned().unwrap_or_default());
    Value::Object(all).to_string()
}

/// Returns the record that the path names, before the change.
async fn standing(deps: &InternalDeps, request: &HttpRequest) -> Result<Value, ApiError> {
    let id = |name| request.match_info().get(name);
    if let Some(Ok(app)) = id("app_id").map(str::parse) {
        return Ok(json!(deps.store.load_app(app).await?.map(AppResponse::from)));
    }
    if let Some(Ok(key)) = id("key_id").map(str::parse) {
        // Without a time the key is only read.
        return Ok(json!(deps.store.retire_key(key, None, None).await?.map(KeyResponse::from)));
    }
    if let Some(grant) = id("grant_id") {
        let found = deps.store.grant_requests().await?.into_iter().find(|known| known.id.as_str() == grant);
        return Ok(json!(found.map(GrantRequestResponse::from)));
    }
    if let Some(Ok(user)) = id("user_id").map(str::parse) {
        return Ok(json!(deps.store.load_user(user).await?.map(UserResponse::from)));
    }
    if let Some(operator) = id("operator_id") {
        let found = deps.store.operators().await?.into_iter().find(|known| known.operator_id.as_str() == operator);
        return Ok(json!(found.map(OperatorResponse::from)));
    }
    if let Some(Ok(event)) = id("event_id").map(str::parse::<EventId>) {
        return Ok(json!(deps.store.load_event(event).await?.map(|event| BrandResponse::from(event.terms.brand))));
    }
    match id("client_id").map(str::parse) {
        Some(Ok(client)) if request.path().ends_with("/credits") => {
            Ok(json!({ "balance": deps.store.balance(client).await? }))
        }
        Some(Ok(client)) if request.path().ends_with("/brand") => {
            Ok(json!(deps.store.load_client(client).await?.map(|client| BrandResponse::from(client.brand))))
        }
        Some(Ok(client)) => Ok(json!(deps.store.load_client(client).await?.map(ClientResponse::from))),
        _ => Ok(Value::Null),
    }
}

/// Returns the part of a value that may be logged.
fn told(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            // A name beside an e-mail address is that of a user, who may be erased; this log keeps its entries.
            let is_of_user = members.contains_key("email");
            let members = members.into_iter().filter(|(name, _)| !is_of_user || name != "name");
            let members = members.filter_map(|(name, value)| told_of(&name, value).map(|value| (name, value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => items.into_iter().map(told).collect(),
        plain => plain,
    }
}

fn told_of(name: &str, value: Value) -> Option<Value> {
    if name.ends_with("_webhook_url") {
        return Some(
            value
                .as_str()
                .and_then(|url| HttpUrl::parse(url, Schemes::HttpAndHttps).ok())
                .map(|url| url.origin())
                .into(),
        );
    }
    TOLD.contains(&name).then(|| told(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_known_names_and_the_origins_of_urls() {
        let url = "https://client.example/hooks/planted-secret?key=planted";
        let value = json!({
            "api_key": "planted", "previous": { "key_id": "key_1", "digest": "planted" }, "keys": [{ "label": "kiosk",
                "token": "planted" }],
            "consent_webhook_url": url, "data_webhook_url": null, "name": "Acme", "later_field": "planted",
            "user": { "name": "planted", "email": "planted@example.com", "role": "view" },
            "users": [{ "name": "planted", "email": "planted@example.com", "role": "view", "invite_url": "planted" }],
        });
        let expected = json!({
            "previous": { "key_id": "key_1" }, "keys": [{ "label": "kiosk" }],
            "consent_webhook_url": "https://client.example", "data_webhook_url": null, "name": "Acme",
            "users": [{ "role": "view" }],
        });
        assert_eq!(told(value), expected);
    }
}
