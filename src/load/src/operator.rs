//! The operator and the client backend of a run. They create a client before the run, and read the service's records
//! after it.

use std::time::Duration;

use reqwest::Method;
use sakshi_client::{Client, Credentials, Error, internal, public};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::event::OnDuplicate;
use secrecy::SecretString;
use serde_json::json;
use url::Url;

use crate::signer::CLAIMS;
use crate::transport::exchange;

/// The operator, who calls the admin API.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    http: reqwest::Client,
    pub(crate) api: Client,
}

/// A client of the service with its app and key.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    /// Id of the client whose credits are spent.
    pub(crate) client: String,
    pub(crate) api: Client,
}

impl Operator {
    pub(crate) fn new(http: reqwest::Client, internal: Url, token: &SecretString) -> Self {
        Self { api: Client::new(http.clone(), internal, Credentials::Bearer(token.clone())), http }
    }

    /// Creates a client with these credits. The client calls the listener at `base`.
    pub(crate) async fn create_backend(&self, base: &Url, credits: i64) -> Result<Backend, Error> {
        let client = self.api.send(internal::create_client("Load test")).await?.client_id.to_string();
        let app = self.api.send(internal::create_app(&client, "Load test")).await?.app_id.to_string();
        let key = self.api.send(internal::issue_key(&client, &json!({ "label": "load" }))).await?.api_key.0.into();
        self.api.send(internal::move_credits(&client, &json!({ "amount": credits, "reference": "load test" }))).await?;
        Ok(Backend { client, api: Client::new(self.http.clone(), base.clone(), Credentials::Client { key, app }) })
    }

    /// Describes the service's record of the webhook of a transaction.
    pub(crate) async fn describe_delivery(&self, txn: &str) -> String {
        match self.api.send(internal::delivery(txn)).await {
            Ok(record) => format!("the service's record of its webhook: {}", json!(record.attempt)),
            Err(_) => "the service has no record of a webhook".to_owned(),
        }
    }

    /// Returns the credits of a client.
    pub(crate) async fn balance(&self, client: &str) -> Result<u64, Error> {
        Ok(self.api.send(internal::balance(client)).await?.balance)
    }

    /// Returns the resident bytes from `/metrics`, if the service reports them.
    pub(crate) async fn resident_bytes(&self) -> Option<u64> {
        let answer = exchange(self.api.plain(Method::GET, "/metrics")).await.answer?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix("process_resident_memory_bytes"))?
            .trim()
            .parse::<f64>()
            .ok()?;
        Some(value as u64)
    }
}

impl Backend {
    /// Creates an event that ends after this duration.
    pub(crate) async fn create_event(
        &self,
        places: u64,
        duration: Duration,
        webhook: &str,
        on_duplicate: OnDuplicate,
    ) -> Result<String, Error> {
        let end = (SystemClock.now() + duration).to_string();
        let event = json!({ "name": "Load test", "claims": CLAIMS, "max_guests": places, "expires_at": end,
            "webhook_url": webhook,
            "on_duplicate": on_duplicate });
        Ok(self.api.send(public::create_event(&event)).await?.event_id.to_string())
    }
}
