//! `sakshi admin …`: the admin API for people, and with `--json` for machines.

use std::io::Write;

use clap::{Args, Subcommand, ValueEnum};
use sakshi_client::{Credentials, Page, internal};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use url::Url;

use super::api::Api;
use super::error::CliError;
use super::paint;
use crate::settings::{Sources, internal_reach};

/// Options of `admin`.
#[derive(Args, Debug)]
pub struct Admin {
    /// URL of the internal listener; default: server.internal_addr of the settings.
    #[arg(long, global = true, value_name = "URL")]
    url: Option<Url>,
    /// Admin token; default: admin.token of the settings.
    #[arg(long, global = true, value_name = "TOKEN", env = "SAKSHI_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<SecretString>,
    /// Print the service's answer as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Clients, who pay.
    #[command(subcommand)]
    Clients(Clients),
    /// Apps of a client.
    #[command(subcommand)]
    Apps(Apps),
    /// API keys of a client.
    #[command(subcommand)]
    Keys(Keys),
    /// Credits of a client.
    #[command(subcommand)]
    Credits(Credits),
    /// The events of an app, oldest first, with their guests.
    Events {
        app_id: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// Where the wealth-data flow of an app reports; without options, what is set.
    WealthUrls(WealthUrls),
    /// Where the webhooks of an app's other flows go, without paths: the client registers them.
    WebhookUrls { app_id: String },
    /// How a flow stands, and what became of its webhooks.
    Flow { flow_id: String },
    /// What became of a transaction's webhook.
    Delivery { txn_id: String },
    /// The live supervision tree.
    Tree,
}

#[derive(Args, Debug)]
struct WealthUrls {
    app_id: String,
    /// Where changes of a consent are reported.
    #[arg(long, value_name = "URL")]
    consent: Option<String>,
    /// Report them no more.
    #[arg(long, conflicts_with = "consent")]
    clear_consent: bool,
    /// Where it is reported that data is ready.
    #[arg(long, value_name = "URL")]
    data: Option<String>,
    /// Report that no more.
    #[arg(long, conflicts_with = "data")]
    clear_data: bool,
    /// Where it is reported that historical data was fetched.
    #[arg(long, value_name = "URL")]
    historical: Option<String>,
    /// Report that no more.
    #[arg(long, conflicts_with = "historical")]
    clear_historical: bool,
}

impl WealthUrls {
    /// What is to change: a URL, or null for one that is removed.
    fn change(&self) -> Value {
        let urls = [
            ("consent_webhook_url", &self.consent, self.clear_consent),
            ("data_webhook_url", &self.data, self.clear_data),
            ("historical_webhook_url", &self.historical, self.clear_historical),
        ];
        let named = urls.into_iter().filter(|(_, url, clear)| url.is_some() || *clear);
        named.map(|(name, url, _)| (name.to_owned(), json!(url))).collect::<Map<_, _>>().into()
    }
}

#[derive(Debug, Subcommand)]
enum Clients {
    /// Create a client.
    Create { name: String },
    /// List clients.
    List(Paging),
}

#[derive(Debug, Subcommand)]
enum Apps {
    /// Create an app.
    Create { client_id: String, name: String },
    /// List the apps of a client.
    List { client_id: String },
    /// Change how an app's payloads are spelled.
    Patch {
        app_id: String,
        #[arg(long, value_enum)]
        spelling: SpellingWord,
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
        client_id: String,
        #[arg(long)]
        label: Option<String>,
        /// Where it works: sandbox, stage, production; default: everywhere.
        #[arg(long, value_delimiter = ',')]
        environments: Vec<String>,
        /// When it stops working, RFC 3339.
        #[arg(long)]
        expires_at: Option<String>,
    },
    /// List the keys of a client, revoked ones included.
    List { client_id: String },
    /// Issue a successor; the old key works on for the overlap.
    Rotate {
        key_id: String,
        /// Seconds; default one day.
        #[arg(long)]
        overlap_s: Option<u64>,
    },
    /// Revoke a key, effective within a second.
    Revoke { key_id: String },
}

#[derive(Debug, Subcommand)]
enum Credits {
    /// Add credits; the same reference again changes nothing.
    Grant {
        client_id: String,
        amount: i64,
        #[arg(long)]
        reference: String,
    },
    /// Correct the balance, up or down.
    Adjust {
        client_id: String,
        #[arg(allow_negative_numbers = true)]
        amount: i64,
        #[arg(long)]
        reference: String,
    },
    /// The balance.
    Balance { client_id: String },
    /// The ledger, oldest first.
    Statement {
        client_id: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// Recompute every ledger; exit code 1 when one does not add up.
    Audit,
}

#[derive(Args, Clone, Copy, Debug)]
struct Paging {
    #[arg(long, default_value_t = 1)]
    page: u32,
    #[arg(long, default_value_t = 100)]
    page_size: u32,
}

/// How an answer is shown.
enum View {
    Pairs,
    Rows(&'static str, &'static [&'static str]),
    /// The rows below what is beside them.
    PairsAndRows(&'static str, &'static [&'static str]),
    Tree,
}

const CLIENT: &[&str] = &["client_id", "name", "created_at"];
const APP: &[&str] = &["app_id", "name", "payload_spelling", "created_at"];
const EVENT: &[&str] = &["event_id", "name", "status", "max_guests", "registrations", "scans", "abandoned", "expires_at"];
const KEY: &[&str] = &["key_id", "label", "environments", "created_at", "expires_at", "revoked_at"];
const ENTRY: &[&str] = &["seq", "kind", "amount", "balance_after", "reference", "at"];
const WEBHOOK_URL: &[&str] = &["apiType", "origin"];
const FLOW_DELIVERY: &[&str] = &["id", "tells", "state", "status", "duration_ms", "origin", "queued_at", "claimed_at"];
const AUDIT: &[&str] = &["client_id", "balance", "sum", "entries", "faults", "clean"];

pub(super) async fn run(admin: &Admin, sources: &Sources, out: &mut dyn Write) -> Result<bool, CliError> {
    let (url, token) = match (&admin.url, &admin.token) {
        (Some(url), Some(token)) => (url.clone(), token.clone()),
        (url, token) => {
            let reach = internal_reach(sources, url.as_ref())?;
            (reach.url, token.clone().unwrap_or(reach.admin_token))
        }
    };
    let api = Api::new(url, Credentials::Bearer(token))?;
    let (answer, view) = ask(&api, &admin.subject).await?;
    if admin.json {
        writeln!(out, "{answer:#}")?;
    } else {
        match view {
            View::Pairs => paint::pairs(&answer, out)?,
            View::PairsAndRows(name, columns) => {
                let mut beside = answer.clone();
                let rows = beside.as_object_mut().and_then(|members| members.remove(name)).unwrap_or_default();
                paint::pairs(&beside, out)?;
                writeln!(out)?;
                paint::table(rows.as_array().map(Vec::as_slice).unwrap_or_default(), columns, out)?;
            }
            View::Tree => paint::tree(&answer, out)?,
            View::Rows(name, columns) => {
                let rows = answer.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                paint::table(rows, columns, out)?;
                if let Some(total) = answer.get("total").and_then(Value::as_u64).filter(|total| *total > rows.len() as u64) {
                    writeln!(out, "{} of {total}; see --page", rows.len())?;
                }
            }
        }
    }
    Ok(answer.get("clean").and_then(Value::as_bool).unwrap_or(true))
}

async fn ask(api: &Api, subject: &Subject) -> Result<(Value, View), CliError> {
    match subject {
        Subject::Clients(clients) => ask_clients(api, clients).await,
        Subject::Apps(apps) => ask_apps(api, apps).await,
        Subject::Keys(keys) => ask_keys(api, keys).await,
        Subject::Credits(credits) => ask_credits(api, credits).await,
        Subject::Events { app_id, paging } => Ok((api.json(internal::events(app_id, paging.page())).await?, View::Rows("events", EVENT))),
        Subject::WealthUrls(urls) => Ok((api.json(internal::change_app(&urls.app_id, &urls.change())).await?, View::Pairs)),
        Subject::WebhookUrls { app_id } => Ok((api.json(internal::webhook_urls(app_id)).await?, View::Rows("webhook_urls", WEBHOOK_URL))),
        Subject::Flow { flow_id } => {
            Ok((api.json(internal::flow_deliveries(flow_id)).await?, View::PairsAndRows("deliveries", FLOW_DELIVERY)))
        }
        Subject::Delivery { txn_id } => Ok((api.json(internal::delivery(txn_id)).await?, View::Pairs)),
        Subject::Tree => Ok((api.json(internal::tree()).await?, View::Tree)),
    }
}

async fn ask_clients(api: &Api, clients: &Clients) -> Result<(Value, View), CliError> {
    match clients {
        Clients::Create { name } => Ok((api.json(internal::create_client(name)).await?, View::Pairs)),
        Clients::List(paging) => Ok((api.json(internal::clients(paging.page())).await?, View::Rows("clients", CLIENT))),
    }
}

async fn ask_apps(api: &Api, apps: &Apps) -> Result<(Value, View), CliError> {
    match apps {
        Apps::Create { client_id, name } => Ok((api.json(internal::create_app(client_id, name)).await?, View::Pairs)),
        Apps::List { client_id } => Ok((api.json(internal::apps(client_id)).await?, View::Rows("apps", APP))),
        Apps::Patch { app_id, spelling } => {
            let word = match spelling {
                SpellingWord::Snake => "snake_case",
                SpellingWord::Camel => "camelCase",
            };
            Ok((api.json(internal::change_app(app_id, &json!({ "payload_spelling": word }))).await?, View::Pairs))
        }
    }
}

async fn ask_keys(api: &Api, keys: &Keys) -> Result<(Value, View), CliError> {
    match keys {
        Keys::Issue { client_id, label, environments, expires_at } => {
            let environments = (!environments.is_empty()).then_some(environments);
            let terms = json!({ "label": label, "environments": environments, "expires_at": expires_at });
            Ok((api.json(internal::issue_key(client_id, &terms)).await?, View::Pairs))
        }
        Keys::List { client_id } => Ok((api.json(internal::keys(client_id)).await?, View::Rows("keys", KEY))),
        Keys::Rotate { key_id, overlap_s } => {
            Ok((api.json(internal::rotate_key(key_id, &json!({ "overlap_s": overlap_s }))).await?, View::Pairs))
        }
        Keys::Revoke { key_id } => Ok((api.json(internal::revoke_key(key_id)).await?, View::Pairs)),
    }
}

async fn ask_credits(api: &Api, credits: &Credits) -> Result<(Value, View), CliError> {
    let moved = |client: &str, kind: &str, amount: i64, reference: &str| {
        internal::move_credits(client, &json!({ "kind": kind, "amount": amount, "reference": reference }))
    };
    match credits {
        Credits::Grant { client_id, amount, reference } => {
            Ok((api.json(moved(client_id, "grant", *amount, reference)).await?, View::Pairs))
        }
        Credits::Adjust { client_id, amount, reference } => {
            Ok((api.json(moved(client_id, "adjust", *amount, reference)).await?, View::Pairs))
        }
        Credits::Balance { client_id } => Ok((api.json(internal::balance(client_id)).await?, View::Pairs)),
        Credits::Statement { client_id, paging } => {
            Ok((api.json(internal::statement(client_id, paging.page())).await?, View::Rows("entries", ENTRY)))
        }
        Credits::Audit => Ok((api.json(internal::audit()).await?, View::Rows("clients", AUDIT))),
    }
}

impl Paging {
    const fn page(self) -> Page {
        Page { page: self.page, page_size: self.page_size }
    }
}
