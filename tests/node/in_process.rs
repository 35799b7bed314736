//! A sandbox node in the process of the test, with its own directory, free ports and the first client.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use sakshi::node::Node;
use sakshi::sandbox::first_client::{self, FirstClient};
use sakshi::settings::{Sources, load};
use sakshi_client::{API_KEY, APP_ID};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_kit::node::write_intent_key;
use sakshi_kit::operator::ADMIN_TOKEN;
use serde_json::Value;

/// A running sandbox node with its first client.
pub(crate) struct InProcessNode {
    pub(crate) inner: Node,
    pub(crate) first: FirstClient,
    pub(crate) http: Client,
    _directory: tempfile::TempDir,
}

impl InProcessNode {
    /// Starts with the usual settings.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts with further settings.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let (any_free_port, intent_key) = ("127.0.0.1:0", write_intent_key(directory.path()));
        let own_settings = [
            ("profile", "sandbox"),
            ("store.path", path.to_str().unwrap()),
            ("server.public_addr", any_free_port),
            ("server.internal_addr", any_free_port),
            ("server.workers", "1"),
            ("authority.intent_key", &intent_key),
        ];
        let overrides =
            own_settings.iter().chain(settings).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let settings = load(&Sources { overrides, ..Sources::default() }).unwrap().settings;
        let inner = Node::start(
            &settings,
            sakshi::telemetry::PrometheusRecorder::default(),
            sakshi_operator::LogLevel::default(),
        )
        .await
        .unwrap();
        let first = first_client::ensure(&inner.store, SystemClock.now()).await.unwrap().unwrap();
        let http = sakshi_client::http(Duration::from_secs(60), false).unwrap();
        Self { inner, first, http, _directory: directory }
    }

    pub(crate) async fn stop(self) {
        self.inner.stop().await;
    }

    /// Returns the URL of a path of the public listener.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.inner.public_base)
    }

    /// Sends a request as the client; returns status and body.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        send(self.with_credentials(self.http.get(self.url(path)))).await
    }

    /// Posts a body as the client; returns status and body.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        send(self.with_credentials(self.http.post(self.url(path))).json(body)).await
    }

    /// Sends a request as the client for one of its apps; `null` for no body.
    pub(crate) async fn send(&self, method: Method, path: &str, app: &str, body: &Value) -> (u16, Value) {
        let request =
            self.http.request(method, self.url(path)).header(API_KEY, self.first.key.reveal()).header(APP_ID, app);
        send(if body.is_null() { request } else { request.json(body) }).await
    }

    /// Sends a request without credentials.
    pub(crate) async fn get_unsigned(&self, path: &str) -> (u16, Value) {
        send(self.http.get(self.url(path))).await
    }

    /// Sends a request as the operator.
    pub(crate) async fn get_as_operator(&self, path: &str) -> (u16, Value) {
        send(self.http.get(format!("http://{}{path}", self.inner.internal_addr)).bearer_auth(ADMIN_TOKEN)).await
    }

    /// Adds the key and the app of the first client.
    pub(crate) fn with_credentials(&self, request: RequestBuilder) -> RequestBuilder {
        request.header(API_KEY, self.first.key.reveal()).header(APP_ID, self.first.app.as_str())
    }
}

/// Returns status and JSON body, `null` for another body.
async fn send(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or(Value::Null))
}
