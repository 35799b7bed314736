//! `sakshi admin …`: the admin API for people, and with `--json` for machines.

use clap::{Args, Subcommand, ValueEnum};
use sakshi_client::{Call, Page, internal};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::operator::Role;
use sakshi_domain::tenancy::KeyCase;
use sakshi_wire::Change;
use sakshi_wire::operator::tenancy::{AppResponse, PatchAppRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::api::Api;
use super::audit_log::{self, AuditLog};
use super::clients::Clients;
use super::connection::Access;
use super::consents::Consents;
use super::credits::Credits;
use super::erase::Erase;
use super::error::CliError;
use super::intent_keys::IntentKeys;
use super::log_level::LogLevel;
use super::style::{Out, write_lines};
use super::users::Users;
use super::{clock, paint, reseal, story, tree, upgrade};
use crate::settings::Sources;

/// Options of `admin`.
#[derive(Args, Debug)]
pub struct Admin {
    #[command(flatten)]
    access: Access,
    /// Print the response as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Clients and their limits.
    #[command(subcommand)]
    Clients(Clients),
    /// Apps of a client.
    #[command(subcommand)]
    Apps(Apps),
    /// API keys of a client.
    #[command(subcommand)]
    Keys(Keys),
    /// Users of a client: the people who sign in to the portal.
    #[command(subcommand)]
    Users(Users),
    /// Credits of a client.
    #[command(subcommand)]
    Credits(Credits),
    /// Events of an app with their counts, oldest first.
    Events {
        /// Id of the application.
        app_id: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// The wealth-data URLs of an app: show them, or change them with options.
    WealthUrls(WealthUrls),
    /// The webhook URLs registered for an app's other flows, without their paths.
    WebhookUrls {
        /// Id of the application.
        app_id: String,
    },
    /// The state of a flow and its webhooks.
    Flow {
        /// Id of the flow, as the API returned it.
        flow_id: String,
    },
    /// The state of a transaction, without personal data.
    Transaction {
        /// Id of the transaction.
        txn_id: String,
    },
    /// Refused requests, by errorId.
    Request {
        /// The errorId of the error.
        error_id: String,
    },
    /// The webhook of a transaction.
    Delivery {
        /// Id of the transaction.
        txn_id: String,
    },
    /// Operators, each with a token.
    #[command(subcommand)]
    Operators(Operators),
    /// The intent keys, and which one signs.
    IntentKeys(IntentKeys),
    /// Re-encrypt the store with the first encryption key, while nodes serve. Exit code 1 if a value is still encrypted
    /// with another key.
    Reseal,
    /// Trust the clock of a node after a jump; it deletes expired records again. Correct the clock first.
    AcceptClock,
    /// The level of a node's log: show it, or change it for a time.
    LogLevel(LogLevel),
    /// Erase personal data before its retention ends. Ledger entries stay. Repeat it if the result is incomplete.
    Erase(Erase),
    /// Accept that the store has lost data, and write to it again.
    AcceptLoss,
    /// Finish the upgrade of a store in Redis, once every node runs this release; earlier releases then refuse the
    /// store. Exit code 1 while a node runs an earlier release.
    FinishUpgrade,
    /// The audit log: changes by operators, and whether the log is complete.
    AuditLog(AuditLog),
    /// The register of consents of a client: what people were asked, and whether they agreed.
    Consents(Consents),
    /// The live supervision tree.
    Tree,
}

#[derive(Args, Debug)]
struct WealthUrls {
    /// Id of the application.
    app_id: String,
    /// URL for changes of consents.
    #[arg(long, value_name = "URL")]
    consent: Option<String>,
    /// Remove the URL for changes of consents.
    #[arg(long, conflicts_with = "consent")]
    clear_consent: bool,
    /// URL for data.
    #[arg(long, value_name = "URL")]
    data: Option<String>,
    /// Remove the URL for data.
    #[arg(long, conflicts_with = "data")]
    clear_data: bool,
    /// URL for historical data.
    #[arg(long, value_name = "URL")]
    historical: Option<String>,
    /// Remove the URL for historical data.
    #[arg(long, conflicts_with = "historical")]
    clear_historical: bool,
}

impl WealthUrls {
    /// Returns the call that changes the URLs; null removes one. Without options it only reads, as every role may.
    fn call(&self) -> Call<AppResponse> {
        let urls = [
            ("consent_webhook_url", &self.consent, self.clear_consent),
            ("data_webhook_url", &self.data, self.clear_data),
            ("historical_webhook_url", &self.historical, self.clear_historical),
        ];
        let named = urls.into_iter().filter(|(_, url, clear)| url.is_some() || *clear);
        let change: Map<String, Value> = named.map(|(name, url, _)| (name.to_owned(), json!(url))).collect();
        if change.is_empty() { internal::app(&self.app_id) } else { internal::change_app(&self.app_id, &change) }
    }
}

#[derive(Debug, Subcommand)]
enum Apps {
    /// Create an app.
    Create {
        /// Id of the client.
        client_id: String,
        /// Name of the app.
        name: String,
    },
    /// List the apps of a client.
    List {
        /// Id of the client.
        client_id: String,
    },
    /// Change the spelling of an app's outcomes.
    Patch {
        /// Id of the application.
        app_id: String,
        /// The spelling.
        #[arg(long, value_enum, required_unless_present = "evidence")]
        spelling: Option<SpellingWord>,
        /// Keep evidence of each verification, unless `init` says otherwise; or keep none.
        #[arg(long, value_name = "true|false")]
        evidence: Option<bool>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SpellingWord {
    #[value(name = "snake_case")]
    Snake,
    #[value(name = "camelCase")]
    Camel,
}

#[derive(Debug, Subcommand)]
enum Keys {
    /// Issue a key; it is shown once.
    Issue {
        /// Id of the client.
        client_id: String,
        /// A label to tell keys apart.
        #[arg(long)]
        label: Option<String>,
        /// Environments in which it works: sandbox, stage, production. Default: all.
        #[arg(long, value_delimiter = ',')]
        environments: Vec<String>,
        /// Addresses and networks that may use it, such as 203.0.113.0/24. Default: all.
        #[arg(long, value_delimiter = ',', value_name = "NETWORKS")]
        from: Vec<String>,
        /// Expiry, ISO 8601 with an offset.
        #[arg(long)]
        expires_at: Option<String>,
    },
    /// List the keys of a client, revoked ones included.
    List {
        /// Id of the client.
        client_id: String,
    },
    /// Issue a successor; the old key stays valid for the overlap.
    Rotate {
        /// Id of the key.
        key_id: String,
        /// Overlap in seconds. Default: one day.
        #[arg(long)]
        overlap_s: Option<u64>,
    },
    /// Revoke a key, effective within a second.
    Revoke {
        /// Id of the key.
        key_id: String,
    },
}

#[derive(Debug, Subcommand)]
enum Operators {
    /// Add an operator; the token is shown once.
    Add {
        /// Name of the operator.
        name: String,
        /// owner: everything; support: reads, creates and suspends clients, creates apps, revokes keys; auditor: reads.
        #[arg(long)]
        role: Role,
        /// Expiry of the token, ISO 8601 with an offset.
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List operators, revoked ones included.
    List,
    /// Revoke an operator, effective at once.
    Revoke {
        /// Id of the operator.
        operator_id: String,
    },
}

#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Paging {
    /// Page number, from 1.
    #[arg(long, default_value_t = 1)]
    page: u32,
    /// Rows per page.
    #[arg(long, default_value_t = 100)]
    page_size: u32,
}

/// Layout of a response.
pub(super) enum View {
    Pairs,
    /// The member with the rows, and the fields that become columns.
    Rows(&'static str, &'static [&'static str]),
    /// A table below the other fields of the response.
    PairsAndRows(&'static str, &'static [&'static str]),
    Tree,
    /// A transaction from its opening to its webhook.
    Transaction,
    AuditLog,
    Reseal,
    Upgrade,
    Clock,
    Json,
}

// Columns of tables: the fields of one entry of a response.
const APP: &[&str] = &["app_id", "name", "payload_spelling", "evidence", "created_at"];
const EVENT: &[&str] =
    &["event_id", "name", "status", "max_guests", "registrations", "scans", "abandoned", "expires_at"];
const KEY: &[&str] = &["key_id", "label", "environments", "networks", "created_at", "expires_at", "revoked_at"];
const OPERATOR: &[&str] = &["operator_id", "name", "role", "created_at", "expires_at", "revoked_at"];
const WEBHOOK_URL: &[&str] = &["apiType", "origin"];
const FLOW_DELIVERY: &[&str] =
    &["id", "tells", "state", "reason", "part", "sent", "status", "duration_ms", "origin", "queued_at", "claimed_at"];
const REFUSED: &[&str] = &["at", "client_id", "app_id", "method", "route", "status", "code", "fields"];

pub(super) async fn run(admin: &Admin, sources: &Sources, out: &mut dyn Out) -> Result<bool, CliError> {
    let api = admin.access.api(sources)?;
    if let Subject::Consents(consents) = &admin.subject {
        return consents.export(&api, admin.json, out).await.map(|()| true);
    }
    let (answer, view) = send(&api, &admin.subject).await?;
    if admin.json {
        writeln!(out, "{answer:#}")?;
    } else {
        match view {
            View::Pairs => paint::pairs(&answer, out)?,
            View::PairsAndRows(name, columns) => {
                let mut other_fields = answer.clone();
                let rows = other_fields.as_object_mut().and_then(|members| members.remove(name)).unwrap_or_default();
                paint::pairs(&other_fields, out)?;
                writeln!(out)?;
                paint::table(rows.as_array().map(Vec::as_slice).unwrap_or_default(), columns, out)?;
            }
            View::Tree => write_lines(tree::lines(&parse(answer.clone())?, SystemClock.now()), out)?,
            View::Transaction => write_lines(story::lines(&parse(answer.clone())?, SystemClock.now()), out)?,
            View::AuditLog => audit_log::show(&answer, out)?,
            View::Reseal => reseal::show(&answer, out)?,
            View::Upgrade => upgrade::show(&answer, out)?,
            View::Clock => clock::show(&answer, out)?,
            View::Json => writeln!(out, "{answer:#}")?,
            View::Rows(name, columns) => {
                let rows = answer.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                paint::table(rows, columns, out)?;
                let total = answer.get("total").and_then(Value::as_u64).unwrap_or(0);
                if total > rows.len() as u64 {
                    writeln!(out, "{} of {total}; see --page", rows.len())?;
                }
            }
        }
    }
    // Commands that can find a problem return `clean`.
    Ok(answer.get("clean").and_then(Value::as_bool).unwrap_or(true))
}

async fn send(api: &Api, subject: &Subject) -> Result<(Value, View), CliError> {
    match subject {
        Subject::Clients(clients) => clients.send(api).await,
        Subject::Apps(apps) => apps.send(api).await,
        Subject::Keys(keys) => keys.send(api).await,
        Subject::Credits(credits) => credits.send(api).await,
        Subject::Users(users) => users.send(api).await,
        Subject::Events { app_id, paging } => {
            send_call(api, internal::events(app_id, paging.page()), View::Rows("events", EVENT)).await
        }
        Subject::WealthUrls(urls) => send_call(api, urls.call(), View::Pairs).await,
        Subject::WebhookUrls { app_id } => {
            send_call(api, internal::webhook_urls(app_id), View::Rows("webhook_urls", WEBHOOK_URL)).await
        }
        Subject::Flow { flow_id } => {
            send_call(api, internal::flow_deliveries(flow_id), View::PairsAndRows("deliveries", FLOW_DELIVERY)).await
        }
        Subject::Transaction { txn_id } => send_call(api, internal::transaction(txn_id), View::Transaction).await,
        Subject::Request { error_id } => {
            send_call(api, internal::refused_requests(error_id), View::Rows("requests", REFUSED)).await
        }
        Subject::Delivery { txn_id } => send_call(api, internal::delivery(txn_id), View::Pairs).await,
        Subject::Operators(operators) => operators.send(api).await,
        Subject::AcceptLoss => send_call(api, internal::accept_loss(), View::Pairs).await,
        Subject::Erase(subject) => subject.send(api).await,
        Subject::AuditLog(options) => Ok((audit_log::read_log(api, options).await?, View::AuditLog)),
        Subject::IntentKeys(intent_keys) => intent_keys.send(api).await,
        Subject::LogLevel(level) => level.send(api).await,
        Subject::Reseal => Ok((reseal::run_passes(api).await?, View::Reseal)),
        Subject::FinishUpgrade => Ok((upgrade::finish(api).await?, View::Upgrade)),
        Subject::AcceptClock => send_call(api, internal::accept_clock(), View::Clock).await,
        // `export` has already written the register.
        Subject::Consents(_) => Ok((Value::Null, View::Json)),
        Subject::Tree => send_call(api, internal::tree(), View::Tree).await,
    }
}

impl Apps {
    async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        match self {
            Self::Create { client_id, name } => {
                send_call(api, internal::create_app(client_id, name), View::Pairs).await
            }
            Self::List { client_id } => send_call(api, internal::apps(client_id), View::Rows("apps", APP)).await,
            Self::Patch { app_id, spelling, evidence } => {
                let spelling = spelling.map(|spelling| match spelling {
                    SpellingWord::Snake => KeyCase::SnakeCase,
                    SpellingWord::Camel => KeyCase::CamelCase,
                });
                let change = PatchAppRequest {
                    payload_spelling: Change(spelling),
                    evidence: Change(*evidence),
                    ..PatchAppRequest::default()
                };
                send_call(api, internal::change_app(app_id, &change), View::Pairs).await
            }
        }
    }
}

impl Keys {
    async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        match self {
            Self::Issue { client_id, label, environments, from, expires_at } => {
                let environments = (!environments.is_empty()).then_some(environments);
                let networks = (!from.is_empty()).then_some(from);
                let terms = json!({
                    "label": label, "environments": environments, "networks": networks, "expires_at": expires_at,
                });
                send_call(api, internal::issue_key(client_id, &terms), View::Pairs).await
            }
            Self::List { client_id } => send_call(api, internal::keys(client_id), View::Rows("keys", KEY)).await,
            Self::Rotate { key_id, overlap_s } => {
                send_call(api, internal::rotate_key(key_id, &json!({ "overlap_s": overlap_s })), View::Pairs).await
            }
            Self::Revoke { key_id } => send_call(api, internal::revoke_key(key_id), View::Pairs).await,
        }
    }
}

impl Operators {
    async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        match self {
            Self::Add { name, role, expires } => {
                let operator = json!({ "name": name, "role": role, "expires_at": expires });
                send_call(api, internal::add_operator(&operator), View::Pairs).await
            }
            Self::List => send_call(api, internal::operators(), View::Rows("operators", OPERATOR)).await,
            Self::Revoke { operator_id } => send_call(api, internal::revoke_operator(operator_id), View::Pairs).await,
        }
    }
}

/// Parses a JSON response into its type.
fn parse<T: DeserializeOwned>(answer: Value) -> Result<T, CliError> {
    serde_json::from_value(answer).map_err(|error| CliError::Local(error.to_string()))
}

/// Sends a call and returns the response as JSON, with its layout.
pub(super) async fn send_call<T: DeserializeOwned + Serialize>(
    api: &Api,
    call: Call<T>,
    view: View,
) -> Result<(Value, View), CliError> {
    Ok((json!(api.send(call).await?), view))
}

impl Paging {
    pub(super) const fn page(self) -> Page {
        Page { page: self.page, page_size: self.page_size }
    }
}

#[cfg(test)]
mod tests {
    use sakshi_wire::Describe as _;
    use sakshi_wire::credits::StatementEntry;
    use sakshi_wire::operator::credits::{AuditedClient, GrantRequestResponse};
    use sakshi_wire::operator::intent_keys::IntentKeysResponse;
    use sakshi_wire::operator::keys::KeyResponse;
    use sakshi_wire::operator::operators::OperatorResponse;
    use sakshi_wire::operator::reseal::ResealResponse;
    use sakshi_wire::operator::tenancy::ClientResponse;
    use sakshi_wire::operator::transfer::ImportClientResponse;
    use sakshi_wire::operator::views::{AppEvent, FlowWebhook, RefusedRequestResponse, WebhookOrigin};

    use super::super::clients::{CLIENT, IMPORTED};
    use super::super::credits::{AUDIT, ENTRY, GRANT_REQUEST};
    use super::super::intent_keys::INTENT_KEY;
    use super::*;

    #[test]
    fn every_column_is_a_field_of_its_rows() {
        let mut schemas = sakshi_wire::Schemas::new();
        ClientResponse::collect(&mut schemas);
        AppResponse::collect(&mut schemas);
        AppEvent::collect(&mut schemas);
        KeyResponse::collect(&mut schemas);
        OperatorResponse::collect(&mut schemas);
        ImportClientResponse::collect(&mut schemas);
        StatementEntry::collect(&mut schemas);
        WebhookOrigin::collect(&mut schemas);
        FlowWebhook::collect(&mut schemas);
        RefusedRequestResponse::collect(&mut schemas);
        AuditedClient::collect(&mut schemas);
        GrantRequestResponse::collect(&mut schemas);
        ResealResponse::collect(&mut schemas);
        IntentKeysResponse::collect(&mut schemas);
        for (row, columns) in [
            ("ClientResponse", CLIENT),
            ("GrantRequestResponse", GRANT_REQUEST),
            ("AppResponse", APP),
            ("AppEvent", EVENT),
            ("KeyResponse", KEY),
            ("OperatorResponse", OPERATOR),
            ("ImportedRecordResponse", IMPORTED),
            ("StatementEntry", ENTRY),
            ("WebhookOrigin", WEBHOOK_URL),
            ("FlowWebhook", FLOW_DELIVERY),
            ("RefusedRequestResponse", REFUSED),
            ("AuditedClient", AUDIT),
            ("LeftUnderKey", reseal::REMAINING_KEY),
            ("IntentKeyResponse", INTENT_KEY),
        ] {
            for column in columns {
                assert!(schemas[row]["properties"][column].is_object(), "{row} has no {column}");
            }
        }
    }
}
