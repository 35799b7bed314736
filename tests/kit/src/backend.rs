//! A client's backend: it holds the key and calls the public API.

use reqwest::{Method, RequestBuilder};
use sakshi_authority::intent::{IntentClaims, decode_unverified};
pub use sakshi_client::public::{INIT, QR_INTENT, result_path};
use sakshi_client::{Client, Credentials, public};
use serde_json::{Value, json};

use super::answer::Answer;
use super::node::Addresses;
use super::secrets::Secrets;

/// The backend of a client: its credentials, and the addresses of the node that it calls.
#[derive(Clone, Debug)]
pub struct Backend {
    pub client: String,
    pub app: String,
    pub key_id: String,
    pub key: String,
    http: reqwest::Client,
    addresses: Addresses,
    pub secrets: Secrets,
}

/// A transaction opened by init.
#[derive(Clone, Debug)]
pub struct Opened {
    pub txn: String,
    /// The body of the answer to the init.
    pub answer: Value,
    pub intent: IntentClaims,
}

impl Opened {
    /// Reads the body of the answer to an init.
    pub fn read(answer: &Value) -> Self {
        let txn = answer["txnId"].as_str().expect("a txnId").to_owned();
        let intent = decode_unverified(answer["intentJwt"].as_str().expect("an intentJwt")).expect("an intent");
        Self { txn, answer: answer.clone(), intent }
    }

    /// Returns the path of the callback address. The host of the address may not resolve in tests.
    pub fn callback_path(&self) -> String {
        let callback_address = url::Url::parse(&self.intent.cb).expect("a URL");
        callback_address.path().to_owned()
    }
}

impl Backend {
    pub const fn new(
        http: reqwest::Client,
        addresses: Addresses,
        secrets: Secrets,
        client: String,
        app: String,
        key_id: String,
        key: String,
    ) -> Self {
        Self { client, app, key_id, key, http, addresses, secrets }
    }

    /// Returns the same backend with another key and app id.
    pub fn with_credentials(&self, key: &str, app: &str) -> Self {
        Self { key: key.to_owned(), app: app.to_owned(), ..self.clone() }
    }

    /// Returns the same backend, calling another node.
    pub fn through(&self, addresses: &Addresses) -> Self {
        Self { addresses: addresses.clone(), ..self.clone() }
    }

    /// Returns the typed API.
    pub fn api(&self) -> Client {
        let credentials = Credentials::Client { key: self.key.clone().into(), app: self.app.clone() };
        Client::new(self.http.clone(), self.addresses.public_base(), credentials)
    }

    /// Builds a request with the two headers of the specification.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.api().plain(method, path)
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::receive(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::receive(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::receive(self.request(Method::POST, path).json(body)).await
    }

    /// Sends an init.
    pub async fn init(&self, body: &Value) -> Answer {
        let answer = Answer::to_call(&self.api(), public::init(body)).await;
        self.watch_for_intent(&answer);
        answer
    }

    /// Sends an init under an idempotency key.
    pub async fn init_once(&self, key: &str, body: &Value) -> Answer {
        let answer = Answer::to_call(&self.api(), public::init(body).once(key)).await;
        self.watch_for_intent(&answer);
        answer
    }

    /// Registers the intent as a secret: anyone who has it can answer for the person.
    fn watch_for_intent(&self, answer: &Answer) {
        if answer.status == 200 {
            let opened = Opened::read(&answer.json());
            self.secrets.watch_for(opened.answer["intentJwt"].as_str().unwrap_or_default());
            self.secrets.watch_for(opened.intent.cb.rsplit('/').next().unwrap_or_default());
        }
    }

    /// Opens a transaction with this body, which must succeed.
    pub async fn open_with(&self, body: &Value) -> Opened {
        Opened::read(&self.init(body).await.ok())
    }

    /// Opens a transaction on channel qr for these claims.
    pub async fn open(&self, claims: &[&str]) -> Opened {
        self.open_with(&json!({"claims": claims, "channel": "qr"})).await
    }

    /// As [`Backend::open`], with a webhook URL.
    pub async fn open_reported(&self, claims: &[&str], webhook: &str) -> Opened {
        self.open_with(&json!({"claims": claims, "channel": "qr", "webhook_url": webhook})).await
    }

    /// Polls a transaction.
    pub async fn result(&self, txn: &str) -> Answer {
        Answer::to_call(&self.api(), public::result(txn)).await
    }

    /// Returns true if the transaction is pending.
    pub async fn is_pending(&self, txn: &str) -> bool {
        self.result(txn).await.ok()["pending"] == true
    }
}
