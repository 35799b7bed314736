//! The operator and the client backend of a run: makes a client of its own, and afterwards reads what
//! the service keeps about it.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use thiserror::Error;
use url::Url;

use crate::phone::CLAIMS;
use crate::wire::exchange;

const EVENTS: &str = "/api/v1/nationalid-ovse/events";
const PAGE: usize = 100;

/// A question to the service that had no good answer.
#[derive(Clone, Debug, Error)]
#[error("{asked}: {answered}")]
pub struct Unanswered {
    asked: String,
    answered: String,
}

/// The admin API.
#[derive(Clone, Debug)]
pub struct Operator {
    http: Client,
    internal: Url,
    token: String,
}

/// A client of the service with its app and key.
#[derive(Clone)]
pub struct Backend {
    http: Client,
    base: Url,
    /// Whose credits are spent.
    pub client: String,
    app: String,
    key: String,
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Backend").field("client", &self.client).finish_non_exhaustive()
    }
}

/// An entry of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// Its number.
    pub seq: i64,
    /// `grant`, `debit` or `adjust`.
    pub kind: String,
    /// Credits.
    pub amount: i64,
    /// What was left.
    pub balance_after: i64,
    /// The transaction, of a debit.
    pub reference: String,
}

/// An event as its organiser sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventView {
    /// Its places.
    pub max_guests: u64,
    /// Registered guests.
    pub registrations: u64,
    /// Scans.
    pub scans: u64,
    /// Scans that expired without an answer.
    pub abandoned: u64,
}

async fn ask(request: RequestBuilder) -> Result<Value, Unanswered> {
    let asked = request.try_clone().and_then(|request| request.build().ok());
    let asked = asked.map_or_else(String::new, |request| format!("{} {}", request.method(), request.url().path()));
    let exchange = exchange(request).await;
    let body = exchange.answer.as_ref().and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
    match (exchange.answer, body) {
        (Some(answer), Some(body)) if (200..300).contains(&answer.status) => Ok(body),
        (_, body) => {
            let message = body.as_ref().and_then(|body| body["message"].as_str()).unwrap_or_default();
            Err(Unanswered { asked, answered: format!("{} {message}", exchange.outcome) })
        }
    }
}

fn text(body: &Value, member: &'static str) -> Result<String, Unanswered> {
    let found = body[member].as_str().map(str::to_owned);
    found.ok_or_else(|| Unanswered { asked: "an answer".to_owned(), answered: format!("lacks {member}") })
}

impl Operator {
    /// With a token.
    #[must_use]
    pub fn new(http: Client, internal: Url, token: String) -> Self {
        Self { http, internal, token }
    }

    /// A client of its own with so many credits.
    ///
    /// # Errors
    /// When the service does not make one.
    pub async fn backend(&self, base: &Url, credits: u64) -> Result<Backend, Unanswered> {
        let client = text(&self.post("/admin/v1/clients", &json!({ "name": "Load test" })).await?, "client_id")?;
        let app = text(&self.post(&format!("/admin/v1/clients/{client}/apps"), &json!({ "name": "Load test" })).await?, "app_id")?;
        let key = text(&self.post(&format!("/admin/v1/clients/{client}/keys"), &json!({ "label": "load" })).await?, "api_key")?;
        let grant = json!({ "amount": credits, "reference": "load test" });
        self.post(&format!("/admin/v1/clients/{client}/credits"), &grant).await?;
        Ok(Backend { http: self.http.clone(), base: base.clone(), client, app, key })
    }

    /// What a client has left.
    ///
    /// # Errors
    /// When the service does not say.
    pub async fn balance(&self, client: &str) -> Result<i64, Unanswered> {
        let answer = ask(self.request(Method::GET, &format!("/admin/v1/clients/{client}/credits"))).await?;
        answer["balance"].as_i64().ok_or_else(|| Unanswered { asked: "the balance".to_owned(), answered: "no number".to_owned() })
    }

    /// A client's whole ledger.
    ///
    /// # Errors
    /// When the service does not say.
    pub async fn statement(&self, client: &str) -> Result<Vec<LedgerLine>, Unanswered> {
        let mut lines = Vec::new();
        for page in 1.. {
            let path = format!("/admin/v1/clients/{client}/statement?page={page}&page_size={PAGE}");
            let answer = ask(self.request(Method::GET, &path)).await?;
            let rows = answer["entries"].as_array().map_or(&[][..], Vec::as_slice);
            lines.extend(rows.iter().map(line));
            if rows.len() < PAGE {
                break;
            }
        }
        Ok(lines)
    }

    /// What the service kept about a transaction's webhook, in words.
    pub async fn delivery(&self, txn: &str) -> String {
        match ask(self.request(Method::GET, &format!("/admin/v1/transactions/{txn}/delivery"))).await {
            Ok(record) => format!("the service's record of its webhook: {}", record["attempt"]),
            Err(_) => "the service has no record of a webhook".to_owned(),
        }
    }

    /// Resident bytes that `/metrics` names, if it names them.
    pub async fn resident_bytes(&self) -> Option<u64> {
        let answer = exchange(self.request(Method::GET, "/metrics")).await.answer?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes"))?.trim().parse::<f64>().ok()?;
        Some(value as u64)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, Unanswered> {
        ask(self.request(Method::POST, path).json(body)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, join(&self.internal, path)).bearer_auth(&self.token)
    }
}

fn line(row: &Value) -> LedgerLine {
    let (number, word) =
        (|name: &str| row[name].as_i64().unwrap_or_default(), |name: &str| row[name].as_str().unwrap_or_default().to_owned());
    LedgerLine {
        seq: number("seq"),
        kind: word("kind"),
        amount: number("amount"),
        balance_after: number("balance_after"),
        reference: word("reference"),
    }
}

fn join(base: &Url, path: &str) -> String {
    format!("{}{path}", base.as_str().trim_end_matches('/'))
}

impl Backend {
    /// Adds key and app to a request.
    pub fn sign(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("X-API-KEY", &self.key).header("X-API-APP-ID", &self.app)
    }

    /// Creates an event that lasts so long.
    ///
    /// # Errors
    /// When the service does not.
    pub async fn create_event(&self, places: u64, lasting: Duration, webhook: &str) -> Result<String, Unanswered> {
        let end = (SystemClock.now() + lasting).to_string();
        let terms = json!({ "name": "Load test", "claims": CLAIMS, "max_guests": places, "expires_at": end, "webhook_url": webhook });
        text(&ask(self.sign(self.http.post(join(&self.base, EVENTS)).json(&terms))).await?, "event_id")
    }

    /// The event's counts.
    ///
    /// # Errors
    /// When the service does not say.
    pub async fn event(&self, id: &str) -> Result<EventView, Unanswered> {
        let body = ask(self.sign(self.http.get(join(&self.base, &format!("{EVENTS}/{id}"))))).await?;
        let count = |name: &str| body[name].as_u64().unwrap_or_default();
        Ok(EventView {
            max_guests: count("max_guests"),
            registrations: count("registration_count"),
            scans: count("scan_count"),
            abandoned: count("abandoned_count"),
        })
    }

    /// The transactions of the registered guests, oldest first.
    ///
    /// # Errors
    /// When the service does not say.
    pub async fn registrations(&self, id: &str) -> Result<Vec<String>, Unanswered> {
        let mut guests = Vec::new();
        for page in 1.. {
            let path = format!("{EVENTS}/{id}/registrations?page={page}&page_size={PAGE}");
            let body = ask(self.sign(self.http.get(join(&self.base, &path)))).await?;
            let rows = body["registrations"].as_array().map_or(&[][..], Vec::as_slice);
            guests.extend(rows.iter().map(|row| row["txn_id"].as_str().unwrap_or_default().to_owned()));
            if rows.len() < PAGE {
                break;
            }
        }
        Ok(guests)
    }
}
