//! The audit log of every operation that changes something: an entry before the change and another with its outcome.
//!
//! Without the first entry there is no change. The second entry is written even after the caller has disconnected,
//! because the change completes in any case. An entry contains only members with known names, so that a new member
//! cannot leak a secret.

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
use super::bearer::Caller;
use super::operation::Answer;

/// Names whose values are logged, of an address of a brand or of a webhook its origin.
const LOGGED_NAMES: &[&str] = &[
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

/// Order of an operation's change and its audit entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logging {
    /// One entry before the change and one after it.
    BeforeAndAfter,
    /// One entry after the change, because the store accepts none before it.
    After,
}

/// Performs an operator's change, between its two entries in the audit log.
pub(super) async fn perform_logged<T: Answer + 'static, F: Future<Output = T> + 'static>(
    request: HttpRequest,
    caller: Caller,
    (operation, logging): (&'static str, Logging),
    body: Value,
    change: impl FnOnce() -> F + 'static,
) -> Result<T, ApiError> {
    let deps = deps(&request)?;
    let in_path = request.match_info().iter().map(|(name, id)| (name, id.to_owned()));
    // An erasure and the choice of an intent key name their subject in the body.
    let in_body = ["id", "kid"].into_iter().filter_map(|name| Some((name, body[name].as_str()?.to_owned())));
    let ids: BTreeMap<&str, String> = in_path.chain(in_body).collect();
    let before = load_target(&deps, &request).await?;
    let common = common_members(&deps, &request, &caller, operation, &ids);
    let first = entry_text(
        &common,
        deps.clock.now(),
        &json!({ "stage": "asked", "asked": loggable(body), "before": loggable(before) }),
    );
    let asked_number = match logging {
        Logging::BeforeAndAfter => Some(deps.store.append_audit(first).await?.number),
        Logging::After => None,
    };
    let logged_change = async move {
        let answer = change().await;
        let Outcome { status, code, after } = answer.outcome();
        let members = json!({ "stage": "answered", "asked_number": asked_number, "status": status, "code": code,
            "after": loggable(after) });
        let second = entry_text(&common, deps.clock.now(), &members);
        if let Err(error) = deps.store.append_audit(second).await {
            metrics::counter!("sakshi_audit_log_unanswered_total").increment(1);
            tracing::error!(%error, audit.number = asked_number, "the audit log does not say what came of a change");
        }
        answer
    };
    rt::spawn(logged_change.in_current_span()).await.map_err(ApiError::internal)
}

/// Logs an action of an operator that is not an operation of the API.
pub(super) async fn log_action(
    request: &HttpRequest,
    deps: &InternalDeps,
    caller: &Caller,
    operation: &str,
) -> Result<(), ApiError> {
    let common = common_members(deps, request, caller, operation, &BTreeMap::new());
    deps.store
        .append_audit(entry_text(
            &common,
            deps.clock.now(),
            &json!({ "stage": "answered", "status": 200, "code": null }),
        ))
        .await?;
    Ok(())
}

/// Logs that an operator was refused because of the role.
pub(super) async fn log_refusal(
    request: &HttpRequest,
    caller: &Caller,
    operation: &'static str,
) -> Result<(), ApiError> {
    let deps = deps(request)?;
    let ids = request.match_info().iter().map(|(name, id)| (name, id.to_owned())).collect();
    let common = common_members(&deps, request, caller, operation, &ids);
    let code = ApiError::Forbidden.code();
    deps.store
        .append_audit(entry_text(
            &common,
            deps.clock.now(),
            &json!({ "stage": "refused", "status": 403, "code": code }),
        ))
        .await?;
    Ok(())
}

/// Builds the members that all entries of an operation have.
fn common_members(
    deps: &InternalDeps,
    request: &HttpRequest,
    caller: &Caller,
    operation: &str,
    ids: &BTreeMap<&str, String>,
) -> Value {
    let mut members = json!({
        "operator_id": caller.id,
        "operator": caller.name,
        "operation": operation,
        "ids": ids,
        "from": host(request, &deps.trusted_proxies),
        "request_id": request_id(request),
    });
    if let Some(subject) = &caller.subject {
        members["subject"] = json!(subject);
    }
    members
}

/// The outcome of an operation.
pub(super) struct Outcome {
    pub(super) status: u16,
    pub(super) code: Option<&'static str>,
    /// The record after the change.
    pub(super) after: Value,
}

/// Builds the text of an entry from the common and further members, sorted by name.
fn entry_text(common: &Value, at: Timestamp, further: &Value) -> String {
    let mut members = common.as_object().cloned().unwrap_or_default();
    members.insert("at".to_owned(), json!(at));
    members.extend(further.as_object().cloned().unwrap_or_default());
    Value::Object(members).to_string()
}

/// Loads the record that the path names, before the change.
async fn load_target(deps: &InternalDeps, request: &HttpRequest) -> Result<Value, ApiError> {
    let id = |name| request.match_info().get(name);
    if let Some(Ok(app)) = id("app_id").map(str::parse) {
        return Ok(json!(deps.store.load_app(app).await?.map(AppResponse::from)));
    }
    if let Some(Ok(key)) = id("key_id").map(str::parse) {
        return Ok(json!(deps.store.load_key(key).await?.map(KeyResponse::from)));
    }
    if let Some(grant) = id("grant_id") {
        let request = deps.store.grant_requests().await?.into_iter().find(|request| request.id.as_str() == grant);
        return Ok(json!(request.map(GrantRequestResponse::from)));
    }
    if let Some(Ok(user)) = id("user_id").map(str::parse) {
        return Ok(json!(deps.store.load_user(user).await?.map(UserResponse::from)));
    }
    if let Some(operator) = id("operator_id") {
        let record = deps.store.operators().await?.into_iter().find(|record| record.operator_id.as_str() == operator);
        return Ok(json!(record.map(OperatorResponse::from)));
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

/// Returns the part of a value that may be logged: members with known names.
fn loggable(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            // A name beside an e-mail address is that of a user, who may be erased; the entries of this log stay.
            let is_user = members.contains_key("email");
            let members = members.into_iter().filter(|(name, _)| !is_user || name != "name");
            let members = members.filter_map(|(name, value)| loggable_member(&name, value).map(|value| (name, value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => items.into_iter().map(loggable).collect(),
        plain => plain,
    }
}

/// Names of addresses that people choose; `support` may be an e-mail address instead. Pictures of a brand have
/// addresses of the service.
const CHOSEN_ADDRESSES: [&str; 2] = ["privacy_url", "support"];

/// Returns the part of a member that may be logged: of a URL, its origin.
fn loggable_member(name: &str, value: Value) -> Option<Value> {
    let origin = value.as_str().and_then(|url| HttpUrl::parse(url, Schemes::HttpAndHttps).ok()).map(|url| url.origin());
    if name.ends_with("_webhook_url") {
        return Some(origin.into());
    }
    if let (true, Some(origin)) = (CHOSEN_ADDRESSES.contains(&name), origin) {
        return Some(origin.into());
    }
    LOGGED_NAMES.contains(&name).then(|| loggable(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_only_known_names_and_the_origins_of_urls() {
        let url = "https://client.example/hooks/planted-secret?key=planted";
        let value = json!({
            "api_key": "planted", "previous": { "key_id": "key_1", "digest": "planted" }, "keys": [{ "label": "kiosk",
                "token": "planted" }],
            "consent_webhook_url": url, "data_webhook_url": null, "name": "Acme", "later_field": "planted",
            "privacy_url": url, "support": "help@client.example",
            "user": { "name": "planted", "email": "planted@example.com", "role": "view" },
            "users": [{ "name": "planted", "email": "planted@example.com", "role": "view", "invite_url": "planted" }],
        });
        let expected = json!({
            "previous": { "key_id": "key_1" }, "keys": [{ "label": "kiosk" }],
            "consent_webhook_url": "https://client.example", "data_webhook_url": null, "name": "Acme",
            "privacy_url": "https://client.example", "support": "help@client.example",
            "users": [{ "role": "view" }],
        });
        assert_eq!(loggable(value), expected);
    }
}
