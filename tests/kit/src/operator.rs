//! The operator of a node, who calls the admin API.

use std::time::Duration;

use reqwest::Method;
use sakshi_client::{Client, Credentials};
use serde_json::{Value, json};

use super::answer::Answer;
use super::backend::Backend;
use super::node::Addresses;
use super::secrets::Secrets;
use super::waiting::{TIMEOUT, eventually};

/// The admin token of config/sandbox.toml.
pub const ADMIN_TOKEN: &str = "sandbox-admin-token-never-in-production";

#[derive(Clone, Debug)]
pub struct Operator {
    http: reqwest::Client,
    addresses: Addresses,
    secrets: Secrets,
    token: String,
}

impl Operator {
    pub fn new(http: reqwest::Client, addresses: Addresses, secrets: Secrets, token: &str) -> Self {
        secrets.keep(token);
        Self { http, addresses, secrets, token: token.to_owned() }
    }

    /// With connections of its own.
    pub fn with_own_connections(&self) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().expect("an HTTP client");
        Self { http, ..self.clone() }
    }

    /// The typed admin API.
    pub fn api(&self) -> Client {
        Client::new(self.http.clone(), self.addresses.internal_base(), Credentials::Bearer(self.token.clone().into()))
    }

    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let request = self.http.request(method, self.addresses.internal(path)).bearer_auth(&self.token);
        Answer::to(match body {
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

    /// A request to the internal listener without the token.
    pub async fn probe(&self, path: &str) -> Answer {
        Answer::to(self.http.get(self.addresses.internal(path))).await
    }

    pub async fn create_client(&self) -> String {
        text(&self.post("/admin/v1/clients", &json!({"name": "Client"})).await.ok(), "client_id")
    }

    pub async fn create_app(&self, client: &str) -> String {
        text(&self.post(&format!("/admin/v1/clients/{client}/apps"), &json!({"name": "App"})).await.ok(), "app_id")
    }

    /// A new key: its id and the key itself.
    pub async fn issue_key(&self, client: &str, terms: &Value) -> (String, String) {
        let issued = self.post(&format!("/admin/v1/clients/{client}/keys"), terms).await.ok();
        let key = text(&issued, "api_key");
        self.secrets.keep(&key);
        (text(&issued, "key_id"), key)
    }

    pub async fn grant(&self, client: &str, amount: u64, reference: &str) {
        let grant = json!({"amount": amount, "reference": reference});
        self.post(&format!("/admin/v1/clients/{client}/credits"), &grant).await.ok();
    }

    pub async fn balance(&self, client: &str) -> u64 {
        let answer = self.get(&format!("/admin/v1/clients/{client}/credits")).await.ok();
        answer["balance"].as_u64().expect("a balance")
    }

    /// Every entry of a client's ledger, oldest first.
    pub async fn statement(&self, client: &str) -> Vec<Value> {
        let mut entries = Vec::new();
        for page in 1.. {
            let path = format!("/admin/v1/clients/{client}/statement?page={page}&page_size=100");
            let answer = self.get(&path).await.ok();
            let rows = answer["entries"].as_array().expect("entries").clone();
            entries.extend(rows);
            if entries.len() as u64 >= answer["total"].as_u64().expect("a total") {
                break;
            }
        }
        entries
    }

    pub async fn backend(&self, credits: u64) -> Backend {
        let client = self.create_client().await;
        let app = self.create_app(&client).await;
        let (key_id, key) = self.issue_key(&client, &json!({})).await;
        if credits > 0 {
            self.grant(&client, credits, "opening balance").await;
        }
        Backend::new(self.http.clone(), self.addresses.clone(), self.secrets.clone(), client, app, key_id, key)
    }

    /// What became of a transaction's webhook, once its attempt has ended.
    pub async fn delivery(&self, txn: &str) -> Value {
        let path = format!("/admin/v1/transactions/{txn}/delivery");
        eventually("the end of the delivery", TIMEOUT, || async {
            let answer = self.get(&path).await;
            let record = (answer.status == 200).then(|| answer.json())?;
            (!record["attempt"].is_null()).then_some(record)
        })
        .await
    }

    /// How the attempt at a transaction's webhook ended.
    pub async fn outcome(&self, txn: &str) -> String {
        text(&self.delivery(txn).await["attempt"], "outcome")
    }

    /// Every webhook that a flow has queued, once all attempts have ended, in the order of queueing.
    pub async fn deliveries(&self, flow: &str) -> Vec<Value> {
        let path = format!("/admin/v1/flows/{flow}/deliveries");
        eventually("the end of the deliveries", TIMEOUT, || async {
            let answer = self.get(&path).await.ok();
            let rows = answer["deliveries"].as_array().expect("deliveries").clone();
            rows.iter().all(|row| row["state"] != "waiting" && row["state"] != "under_way").then_some(rows)
        })
        .await
    }

    /// How each of the webhooks of a flow ended.
    pub async fn outcomes(&self, flow: &str) -> Vec<String> {
        self.deliveries(flow).await.iter().map(|row| text(row, "state")).collect()
    }

    /// Sets the callback URLs of an app's wealth-data streams: consent, data, historical data.
    pub async fn wealth_urls(&self, app: &str, urls: [Option<String>; 3]) {
        let [consent, data, historical] = urls;
        let change = json!({"consent_webhook_url": consent, "data_webhook_url": data, "historical_webhook_url": historical});
        self.patch(&format!("/admin/v1/apps/{app}"), &change).await.ok();
    }
}

fn text(answer: &Value, member: &str) -> String {
    answer[member].as_str().unwrap_or_else(|| panic!("no {member} in the answer")).to_owned()
}
