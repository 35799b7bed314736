//! Speaks to a running service: to its internal listener as the operator, to the public one as a client.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use super::CliError;

/// How long the service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is said when the service does not know the operator.
const WRONG_TOKEN: &str = "the service does not take this admin token; give the one that it runs with by --token, SAKSHI_ADMIN_TOKEN or \
                           admin.token of the settings";

/// What is said when the service does not know the client.
const WRONG_KEY: &str = "the service does not take this API key with this app id; if one of them comes from another service, --base and \
                         --internal must name the two listeners of one service";

/// Who asks.
pub(crate) enum Identity {
    Nobody,
    Operator(SecretString),
    Client { key: SecretString, app: String },
}

/// A connection to a listener.
pub(crate) struct Api {
    client: Client,
    base: Url,
    identity: Identity,
}

impl Api {
    pub(crate) fn new(base: Url, identity: Identity) -> Result<Self, CliError> {
        let mut builder = Client::builder().no_proxy().timeout(TIMEOUT);
        if base.scheme() == "http" {
            // Otherwise an image without root certificates could not check its own health.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| unreachable(&error))?;
        Ok(Self { client, base, identity })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, CliError> {
        self.send(self.request(Method::GET, path)?).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value, CliError> {
        self.send(self.request(Method::DELETE, path)?).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.send(self.request(Method::POST, path)?.json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.send(self.request(Method::PUT, path)?.json(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.send(self.request(Method::PATCH, path)?.json(body)).await
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, CliError> {
        let url = self.base.join(path).map_err(|error| CliError::Unreachable(error.to_string()))?;
        let request = self.client.request(method, url);
        Ok(match &self.identity {
            Identity::Nobody => request,
            Identity::Operator(token) => request.bearer_auth(token.expose_secret()),
            Identity::Client { key, app } => request.header("X-API-KEY", key.expose_secret()).header("X-API-APP-ID", app),
        })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Value, CliError> {
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        let good = response.status().is_success();
        let status = response.status();
        let body: Value = response.json().await.unwrap_or(Value::Null);
        if status == StatusCode::UNAUTHORIZED {
            let wrong = if let Identity::Client { .. } = self.identity { WRONG_KEY } else { WRONG_TOKEN };
            return Err(CliError::Refused(wrong.to_owned()));
        }
        if good {
            return Ok(body);
        }
        let told = refusal(&body).unwrap_or_else(|| format!("the service answered {status}"));
        Err(if status == StatusCode::NOT_FOUND { CliError::NotFound(told) } else { CliError::Refused(told) })
    }
}

/// The innermost reason: the outer ones say only that a request failed.
fn unreachable(error: &reqwest::Error) -> CliError {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let place = error.url().map_or_else(String::new, |url| format!("{}: ", url.origin().ascii_serialization()));
    CliError::Unreachable(format!("{place}{reason}"))
}

/// The service's own sentence, its fields, and the id to ask about.
fn refusal(body: &Value) -> Option<String> {
    let mut text = body.get("message")?.as_str()?.to_owned();
    for field in body.get("errors").and_then(Value::as_array).into_iter().flatten() {
        let part = |name: &str| field.get(name).and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!("\n  {}: {}", part("field"), part("message")));
    }
    if let Some(id) = body.get("errorId").and_then(Value::as_str) {
        text.push_str(&format!(" ({}, {id})", body.get("code").and_then(Value::as_str).unwrap_or("no code")));
    }
    Some(text)
}
