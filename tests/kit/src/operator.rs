//! The operator of a node, who calls the admin API.

use std::time::Duration;

use reqwest::Method;
use sakshi_client::{Call, Client, Credentials, Error, internal};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::Answer;
use super::backend::Backend;
use super::node::Addresses;
use super::secrets::Secrets;
use super::waiting::{TIMEOUT, eventually};

/// The admin token of config/sandbox.toml.
pub const ADMIN_TOKEN: &str = "sandbox-admin-token-never-in-production";

/// An operator, who calls the admin API of a node with a token.
#[derive(Clone, Debug)]
pub struct Operator {
    http: reqwest::Client,
    addresses: Addresses,
    secrets: Secrets,
    token: String,
}

impl Operator {
    pub fn new(http: reqwest::Client, addresses: Addresses, secrets: Secrets, token: &str) -> Self {
        secrets.watch_for(token);
        Self { http, addresses, secrets, token: token.to_owned() }
    }

    /// Returns an operator with separate connections.
    pub fn with_own_connections(&self) -> Self {
        let http = sakshi_client::http(Duration::from_secs(20), false).expect("an HTTP client");
        Self { http, ..self.clone() }
    }

    /// Returns the typed admin API.
    pub fn api(&self) -> Client {
        Client::new(self.http.clone(), self.addresses.internal_base(), Credentials::Bearer(self.token.clone().into()))
    }

    /// Sends a request to the admin API and returns the answer.
    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let request = self.api().plain(method, path);
        Answer::receive(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::PATCH, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path, None).await
    }

    /// Sends a call that must succeed, and returns the content of the response.
    async fn send<T: DeserializeOwned>(&self, call: Call<T>) -> T {
        self.api().send(call).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sends a request without the token to the internal listener.
    pub async fn probe(&self, path: &str) -> Answer {
        Answer::receive(self.http.get(self.addresses.internal(path))).await
    }

    pub async fn create_client(&self) -> String {
        self.send(internal::create_client("Client")).await.client_id.to_string()
    }

    pub async fn create_app(&self, client: &str) -> String {
        self.send(internal::create_app(client, "App")).await.app_id.to_string()
    }

    /// Issues a key; returns its id and the key.
    pub async fn issue_key(&self, client: &str, terms: &Value) -> (String, String) {
        let issued = self.send(internal::issue_key(client, terms)).await;
        self.secrets.watch_for(&issued.api_key.0);
        (issued.key_id.to_string(), issued.api_key.0)
    }

    /// Grants credits, which must succeed.
    pub async fn grant(&self, client: &str, amount: u64, reference: &str) {
        self.send(internal::move_credits(client, &json!({"amount": amount, "reference": reference}))).await;
    }

    pub async fn balance(&self, client: &str) -> u64 {
        self.send(internal::balance(client)).await.balance
    }

    /// Returns every entry of a client's ledger, oldest first.
    pub async fn statement(&self, client: &str) -> Vec<Value> {
        self.api().ledger(client).await.expect("the ledger").iter().map(|entry| json!(entry)).collect()
    }

    /// Creates a client with an app, a key and credits, and returns its backend.
    pub async fn backend_with_credits(&self, credits: u64) -> Backend {
        let client = self.create_client().await;
        let app = self.create_app(&client).await;
        let (key_id, key) = self.issue_key(&client, &json!({})).await;
        if credits > 0 {
            self.grant(&client, credits, "opening balance").await;
        }
        Backend::new(self.http.clone(), self.addresses.clone(), self.secrets.clone(), client, app, key_id, key)
    }

    /// Returns a transaction's delivery, once its attempt has ended.
    pub async fn delivery(&self, txn: &str) -> Value {
        eventually("the end of the delivery", TIMEOUT, || async {
            match self.api().send(internal::delivery(txn)).await {
                Ok(record) => record.attempt.is_some().then(|| json!(record)),
                Err(Error::Refused(_)) => None,
                Err(error) => panic!("{error}"),
            }
        })
        .await
    }

    /// Returns the outcome of a transaction's webhook.
    pub async fn outcome(&self, txn: &str) -> String {
        text_member(&self.delivery(txn).await["attempt"], "outcome")
    }

    /// Returns every webhook queued by a flow, in order, once all attempts have ended.
    pub async fn deliveries(&self, flow: &str) -> Vec<Value> {
        eventually("the end of the deliveries", TIMEOUT, || async {
            let rows = self.send(internal::flow_deliveries(flow)).await.deliveries;
            let have_ended = rows.iter().all(|row| row.state != "waiting" && row.state != "under_way");
            have_ended.then(|| rows.iter().map(|row| json!(row)).collect())
        })
        .await
    }

    /// Returns the outcomes of a flow's webhooks.
    pub async fn outcomes(&self, flow: &str) -> Vec<String> {
        self.deliveries(flow).await.iter().map(|row| text_member(row, "state")).collect()
    }

    /// Sets the callback URLs of an app's wealth-data streams: consent, data, historical data.
    pub async fn wealth_urls(&self, app: &str, urls: [Option<String>; 3]) {
        let [consent, data, historical] = urls;
        let change =
            json!({"consent_webhook_url": consent, "data_webhook_url": data, "historical_webhook_url": historical});
        self.send(internal::change_app(app, &change)).await;
    }
}

fn text_member(answer: &Value, member: &str) -> String {
    answer[member].as_str().unwrap_or_else(|| panic!("no {member} in the answer")).to_owned()
}
