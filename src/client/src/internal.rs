//! The operations of the internal listener: the admin API for operators, and reports of connectors.

use reqwest::Method;
use sakshi_wire::credits::{Balance, Statement};
use sakshi_wire::operator::audit_log::AuditLogPage;
use sakshi_wire::operator::brand::BrandResponse;
use sakshi_wire::operator::clock::AcceptClockResponse;
use sakshi_wire::operator::consents::ConsentsPage;
use sakshi_wire::operator::credits::{AuditResponse, GrantRequestResponse, GrantRequestsResponse, MoveCreditsResponse};
use sakshi_wire::operator::data_loss::AcceptLossResponse;
use sakshi_wire::operator::erasure::EraseResponse;
use sakshi_wire::operator::intent_keys::IntentKeysResponse;
use sakshi_wire::operator::keys::{IssueKeyResponse, KeyResponse, KeysResponse, RotateKeyResponse};
use sakshi_wire::operator::log_level::LogLevelResponse;
use sakshi_wire::operator::nodes::NodesResponse;
use sakshi_wire::operator::operators::{AddOperatorResponse, OperatorResponse, OperatorsResponse};
use sakshi_wire::operator::reseal::ResealResponse;
use sakshi_wire::operator::tenancy::{
    AppResponse, AppsResponse, ClientResponse, ClientsPage, CreateAppResponse, CreateClientResponse,
};
use sakshi_wire::operator::transfer::ImportClientResponse;
use sakshi_wire::operator::upgrade::FinishUpgradeResponse;
use sakshi_wire::operator::users::{InviteUserResponse, RemovedUserResponse, UserResponse, UsersResponse};
use sakshi_wire::operator::views::{
    AppEventsPage, DeliveryResponse, FlowResponse, RefusedRequests, ReportResponse, TransactionResponse, TreeNode,
    WebhookOrigins,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::{Call, Page, segment};

const LOG_LEVEL: &str = "/admin/v1/log-level";

/// Returns the path of a resource of a client.
fn client_path(client: &str, resource: &str) -> String {
    format!("/admin/v1/clients/{}/{resource}", segment(client))
}

fn app_path(app: &str) -> String {
    format!("/admin/v1/apps/{}", segment(app))
}

fn key_path(key_id: &str) -> String {
    format!("/admin/v1/keys/{}", segment(key_id))
}

fn user_path(user_id: &str) -> String {
    format!("/admin/v1/users/{}", segment(user_id))
}

/// Creates a client.
pub fn create_client(name: &str) -> Call<CreateClientResponse> {
    Call::post("/admin/v1/clients", &json!({ "name": name }))
}

/// Lists the clients.
pub fn clients(page: Page) -> Call<ClientsPage> {
    Call::get(format!("/admin/v1/clients{page}"))
}

/// Reads a client.
pub fn client(client: &str) -> Call<ClientResponse> {
    Call::get(format!("/admin/v1/clients/{}", segment(client)))
}

/// Changes a client.
pub fn change_client(client: &str, change: &impl Serialize) -> Call<ClientResponse> {
    Call::new(Method::PATCH, format!("/admin/v1/clients/{}", segment(client))).body(change)
}

/// Reads the brand of a client or an event.
pub fn brand(owner: &str) -> Call<BrandResponse> {
    Call::get(brand_path(owner))
}

/// Changes the brand of a client or an event.
pub fn change_brand(owner: &str, change: &impl Serialize) -> Call<BrandResponse> {
    Call::new(Method::PATCH, brand_path(owner)).body(change)
}

/// Returns the path of a brand. Ids of clients begin with `cl_`; those of events have no prefix.
fn brand_path(owner: &str) -> String {
    let subject = if owner.starts_with("cl_") { "clients" } else { "events" };
    format!("/admin/v1/{subject}/{}/brand", segment(owner))
}

/// Exports a client with its apps and keys, for import at another installation.
pub fn export_client(client: &str) -> Call<Value> {
    Call::get(client_path(client, "export"))
}

/// Imports a client that another installation exported.
pub fn import_client(exported: &impl Serialize) -> Call<ImportClientResponse> {
    Call::post("/admin/v1/clients/import", exported)
}

/// Creates an app of a client.
pub fn create_app(client: &str, name: &str) -> Call<CreateAppResponse> {
    Call::post(client_path(client, "apps"), &json!({ "name": name }))
}

/// Lists the apps of a client.
pub fn apps(client: &str) -> Call<AppsResponse> {
    Call::get(client_path(client, "apps"))
}

/// Reads an app.
pub fn app(app: &str) -> Call<AppResponse> {
    Call::get(app_path(app))
}

/// Changes an app.
pub fn change_app(app: &str, change: &impl Serialize) -> Call<AppResponse> {
    Call::new(Method::PATCH, app_path(app)).body(change)
}

/// Lists the events of an app with their counts, oldest first.
pub fn events(app: &str, page: Page) -> Call<AppEventsPage> {
    Call::get(format!("{}/events{page}", app_path(app)))
}

/// Lists the receivers of webhooks of an app's flows.
pub fn webhook_urls(app: &str) -> Call<WebhookOrigins> {
    Call::get(format!("{}/webhook-urls", app_path(app)))
}

/// Issues an API key.
pub fn issue_key(client: &str, terms: &impl Serialize) -> Call<IssueKeyResponse> {
    Call::post(client_path(client, "keys"), terms)
}

/// Lists the API keys of a client, including revoked ones.
pub fn keys(client: &str) -> Call<KeysResponse> {
    Call::get(client_path(client, "keys"))
}

/// Issues a replacement for an API key. The old key stays valid during the overlap.
pub fn rotate_key(key_id: &str, terms: &impl Serialize) -> Call<RotateKeyResponse> {
    Call::post(format!("{}/rotate", key_path(key_id)), terms)
}

/// Revokes an API key.
pub fn revoke_key(key_id: &str) -> Call<KeyResponse> {
    Call::new(Method::DELETE, key_path(key_id))
}

/// Grants credits to a client, or adjusts its balance.
pub fn move_credits(client: &str, movement: &impl Serialize) -> Call<MoveCreditsResponse> {
    Call::post(client_path(client, "credits"), movement)
}

/// Lists the grant requests, which wait for a second operator.
pub fn grant_requests() -> Call<GrantRequestsResponse> {
    Call::get("/admin/v1/credits/requests")
}

/// Confirms a grant request of another operator.
pub fn confirm_grant(grant_id: &str) -> Call<MoveCreditsResponse> {
    Call::new(Method::POST, format!("/admin/v1/credits/requests/{}/confirm", segment(grant_id)))
}

/// Refuses a grant request.
pub fn refuse_grant(grant_id: &str) -> Call<GrantRequestResponse> {
    Call::new(Method::POST, format!("/admin/v1/credits/requests/{}/refuse", segment(grant_id)))
}

/// Reads the balance of a client.
pub fn balance(client: &str) -> Call<Balance> {
    Call::get(client_path(client, "credits"))
}

/// Lists a page of the ledger of a client, oldest entry first.
pub fn statement(client: &str, page: Page) -> Call<Statement> {
    Call::get(format!("{}{page}", client_path(client, "statement")))
}

/// Audits the ledgers of all clients.
pub fn audit() -> Call<AuditResponse> {
    Call::get("/admin/v1/credits/audit")
}

/// Invites a user of a client.
pub fn invite_user(client: &str, user: &impl Serialize) -> Call<InviteUserResponse> {
    Call::post(client_path(client, "users"), user)
}

/// Lists the users of a client, including disabled ones.
pub fn users(client: &str) -> Call<UsersResponse> {
    Call::get(client_path(client, "users"))
}

/// Changes a user.
pub fn change_user(user_id: &str, change: &impl Serialize) -> Call<UserResponse> {
    Call::new(Method::PATCH, user_path(user_id)).body(change)
}

/// Creates a new invitation link for a user, which resets the password.
pub fn reset_user(user_id: &str) -> Call<InviteUserResponse> {
    Call::new(Method::POST, format!("{}/invite", user_path(user_id)))
}

/// Removes a user.
pub fn remove_user(user_id: &str) -> Call<RemovedUserResponse> {
    Call::new(Method::DELETE, user_path(user_id))
}

/// Adds an operator.
pub fn add_operator(operator: &impl Serialize) -> Call<AddOperatorResponse> {
    Call::post("/admin/v1/operators", operator)
}

/// Lists the operators, including revoked ones.
pub fn operators() -> Call<OperatorsResponse> {
    Call::get("/admin/v1/operators")
}

/// Revokes an operator.
pub fn revoke_operator(operator_id: &str) -> Call<OperatorResponse> {
    Call::new(Method::DELETE, format!("/admin/v1/operators/{}", segment(operator_id)))
}

/// Re-encrypts a part of the sealed values with the current key. `from` is the `next` of the previous response; without
/// it a new pass begins.
pub fn reseal(from: Option<&str>) -> Call<ResealResponse> {
    Call::post("/admin/v1/reseal", &json!({ "from": from }))
}

/// Accepts the clock of the responding node after a jump. Until then the node deletes no expired records.
pub fn accept_clock() -> Call<AcceptClockResponse> {
    Call::new(Method::POST, "/admin/v1/clock/accept")
}

/// Reads the log level of the responding node.
pub fn log_level() -> Call<LogLevelResponse> {
    Call::get(LOG_LEVEL)
}

/// Changes the log level of the responding node for `for_s` seconds, or for the service's default time.
pub fn change_log_level(level: &str, for_s: Option<u64>) -> Call<LogLevelResponse> {
    Call::new(Method::PUT, LOG_LEVEL).body(&json!({ "level": level, "for_s": for_s }))
}

/// Returns the responding node to its usual log level.
pub fn reset_log_level() -> Call<LogLevelResponse> {
    Call::new(Method::DELETE, LOG_LEVEL)
}

/// Erases the personal data of a transaction, flow, event, app or client: `kind` names one of these words.
pub fn erase(kind: &str, id: &str) -> Call<EraseResponse> {
    Call::post("/admin/v1/erasures", &json!({ "kind": kind, "id": id }))
}

/// Accepts a loss of data in the store, so that the service writes to it again.
pub fn accept_loss() -> Call<AcceptLossResponse> {
    Call::post("/admin/v1/store/accept-loss", &json!({}))
}

/// Runs one step of finishing an upgrade of the store.
pub fn finish_upgrade() -> Call<FinishUpgradeResponse> {
    Call::post("/admin/v1/store/finish-upgrade", &json!({}))
}

/// Lists the intent keys of the responding node, and tells which key signs.
pub fn intent_keys() -> Call<IntentKeysResponse> {
    Call::get("/admin/v1/intent-keys")
}

/// Chooses the intent key that signs. Without a key id the settings decide.
pub fn use_intent_key(kid: Option<&str>) -> Call<IntentKeysResponse> {
    Call::post("/admin/v1/intent-keys", &json!({ "kid": kid }))
}

/// Lists entries of the audit log after a number, and optionally since a time.
pub fn audit_log(after: u64, limit: u32, since: Option<&str>) -> Call<AuditLogPage> {
    let since = since.map(|since| format!("&since={}", segment(since))).unwrap_or_default();
    Call::get(format!("/admin/v1/audit-log?after={after}&limit={limit}{since}"))
}

/// Lists the first page of a client's register of consents, for requests between these times.
pub fn consents(client: &str, from: Option<&str>, to: Option<&str>, limit: u32) -> Call<ConsentsPage> {
    let parameter =
        |name: &str, time: Option<&str>| time.map(|time| format!("&{name}={}", segment(time))).unwrap_or_default();
    let times = parameter("from", from) + &parameter("to", to);
    Call::get(format!("{}?limit={limit}{times}", client_path(client, "consents")))
}

/// Lists a further page of a register of consents. `next` is from the previous page.
pub fn more_consents(next: impl Into<String>) -> Call<ConsentsPage> {
    Call::get(next.into())
}

/// Reads the state of a flow and of its webhooks.
pub fn flow_deliveries(flow: &str) -> Call<FlowResponse> {
    Call::get(format!("/admin/v1/flows/{}/deliveries", segment(flow)))
}

/// Reads a transaction and its webhook.
pub fn transaction(txn: &str) -> Call<TransactionResponse> {
    Call::get(format!("/admin/v1/transactions/{}", segment(txn)))
}

/// Lists the refused requests with this request id, the `errorId` of their responses.
pub fn refused_requests(error_id: &str) -> Call<RefusedRequests> {
    Call::get(format!("/admin/v1/requests/{}", segment(error_id)))
}

/// Reads the webhook of a transaction.
pub fn delivery(txn: &str) -> Call<DeliveryResponse> {
    Call::get(format!("/admin/v1/transactions/{}/delivery", segment(txn)))
}

/// Reads the supervision tree.
pub fn tree() -> Call<TreeNode> {
    Call::get("/admin/v1/tree")
}

/// Lists all nodes of the installation.
pub fn nodes() -> Call<NodesResponse> {
    Call::get("/admin/v1/nodes")
}

/// Reports the progress of a flow, as a connector does: a program between an upstream and this service.
pub fn report(kind: &str, report: &impl Serialize) -> Call<ReportResponse> {
    Call::post(format!("/internal/v1/flows/{}", segment(kind)), report)
}
