//! An upstream's connector: it reports on flows, on the internal listener.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder};
use sakshi_client::{Client, Credentials, internal};
use serde_json::Value;

use super::answer::Answer;
use super::node::Addresses;
use super::secrets::Secrets;

/// The connector token of config/sandbox.toml.
pub const CONNECTOR_TOKEN: &str = "sandbox-connector-token-never-in-production";

/// The kinds of report.
pub const KINDS: [&str; 6] = ["esign", "doclocker", "estamp", "wealth-consent", "wealth-data", "wealth-historical"];

/// An upstream's connector, which reports on flows with its token.
#[derive(Clone, Debug)]
pub struct Connector {
    http: reqwest::Client,
    addresses: Addresses,
    secrets: Secrets,
    token: String,
}

impl Connector {
    pub fn new(http: reqwest::Client, addresses: Addresses, secrets: Secrets) -> Self {
        Self { http, addresses, secrets, token: CONNECTOR_TOKEN.to_owned() }
    }

    /// Returns the same connector, reporting to another node.
    pub fn through(&self, addresses: &Addresses) -> Self {
        Self { addresses: addresses.clone(), ..self.clone() }
    }

    /// Returns the same connector with another token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self.clone() }
    }

    /// Builds a report without a body.
    pub fn request(&self, kind: &str) -> RequestBuilder {
        self.api().plain(Method::POST, &format!("/internal/v1/flows/{kind}")).header(CONTENT_TYPE, "application/json")
    }

    fn api(&self) -> Client {
        Client::new(self.http.clone(), self.addresses.internal_base(), Credentials::Bearer(self.token.clone().into()))
    }

    /// Sends a report of this kind and returns the answer.
    pub async fn report(&self, kind: &str, report: &Value) -> Answer {
        self.attempt(kind, report).await.expect("the service answers")
    }

    /// As [`Connector::report`]; returns an error if the service is unavailable.
    pub async fn attempt(&self, kind: &str, report: &Value) -> Result<Answer, reqwest::Error> {
        self.secrets.watch_for_personal_data(report);
        Answer::attempt(self.api().request(internal::report(kind, report)).expect("a body")).await
    }

    /// Sends a report that must be accepted as new.
    pub async fn report_new(&self, kind: &str, report: &Value) {
        assert_eq!(result_of(&self.report(kind, report).await), "accepted");
    }

    /// Sends a report that must be recognised as a repetition.
    pub async fn report_again(&self, kind: &str, report: &Value) {
        assert_eq!(result_of(&self.report(kind, report).await), "repeated");
    }
}

/// Returns the result of an accepted report.
pub fn result_of(answer: &Answer) -> String {
    let body = answer.ok();
    let result = body["result"].as_str().expect("a result").to_owned();
    assert_eq!(body, serde_json::json!({"success": true, "result": result}));
    result
}
