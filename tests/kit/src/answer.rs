//! An HTTP response, read by a test.

use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response};
use sakshi_client::{Call, Client};
use serde_json::Value;

use crate::documented;

/// An HTTP response, read completely.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    /// Sends a request and returns the answer to it.
    pub async fn receive(request: RequestBuilder) -> Self {
        Self::attempt(request).await.expect("the service answers")
    }

    /// Returns the answer to an operation of the typed API.
    pub async fn to_call<T>(api: &Client, call: Call<T>) -> Self {
        Self::receive(api.request(call).expect("a body")).await
    }

    /// Sends a request; returns an error if the service is unavailable.
    pub async fn attempt(request: RequestBuilder) -> Result<Self, reqwest::Error> {
        let (http, request) = request.build_split();
        let request = request?;
        let (method, url) = (request.method().clone(), request.url().clone());
        let response: Response = http.execute(request).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let answer = Self { status, headers, text: response.text().await? };
        // The balancer's own response for a node that was killed before it answered: docs/errors.md.
        if status != 502 || answer.json()["code"] != "node_lost" {
            documented::assert_listed(&http, &method, &url, status).await;
        }
        Ok(answer)
    }

    /// Returns the body as JSON, which it must be.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{} is not JSON: {}", self.status, self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a header of ASCII"))
    }

    /// Returns the body of a response that must have status 200.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()
    }

    /// Returns the code of an error response. Checks its status, and that its body is the common envelope of errors.
    pub fn refusal(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        let body = self.json();
        let members: Vec<&str> = body.as_object().expect("an object").keys().map(String::as_str).collect();
        for member in &members {
            let known = ["success", "error", "message", "code", "statusCode", "errorId", "docUrl", "errors"];
            assert!(known.contains(member), "{member} is no member of the envelope: {body}");
        }
        assert_eq!((&body["success"], &body["statusCode"]), (&Value::Bool(false), &Value::from(status)), "{body}");
        assert!(body["error"].is_string() && !body["message"].as_str().unwrap_or_default().is_empty(), "{body}");
        assert_eq!(body["errorId"].as_str(), self.header("x-request-id"), "{body}");
        let code = body["code"].as_str().expect("a code");
        let doc_url = body["docUrl"].as_str().unwrap_or_default();
        assert!(doc_url.starts_with("http"), "{body}");
        // The sandbox's own codes have no entry.
        assert!(doc_url.ends_with(&format!("/docs/errors#{code}")) || doc_url.ends_with("/docs/errors"), "{body}");
        code.to_owned()
    }

    /// Returns the fields named by a response that must be a 400 with the code `validation_failed`.
    pub fn refused_fields(&self) -> Vec<String> {
        assert_eq!(self.refusal(400), "validation_failed", "{}", self.text);
        let body = self.json();
        let errors = body["errors"].as_array().expect("errors");
        assert!(errors.iter().all(|error| !error["message"].as_str().unwrap_or_default().is_empty()), "{body}");
        errors.iter().map(|error| error["field"].as_str().expect("a field").to_owned()).collect()
    }
}
