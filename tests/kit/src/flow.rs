//! The flows that call back, from a client's side: requests that open them, and golden payloads adapted to an opened
//! flow.

use reqwest::{Method, RequestBuilder};
use sakshi_client::public;
use serde_json::{Value, json};

use super::answer::Answer;
use super::backend::Backend;
use super::event::timestamp_in;

/// The consent text of the tests' end users.
pub const CONSENT_TEXT: &str = "I agree that Example Bank may see these documents of mine.";

/// The file in the golden payloads.
pub const PDF: &str = "JVBERi0xLjQKJcOkw7zDtsOfCg==";

const DAY: u64 = 86_400;

/// The flow's id in the golden files.
const GOLDEN_ID: &str = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
/// The signers' ids in the golden files.
const GOLDEN_SIGNERS: [&str; 2] = ["signer-1", "signer-2"];
/// The ends of the signers' invitations in the golden files.
const GOLDEN_INVITATION_ENDS: [&str; 2] = ["2026-02-07T09:30:00.000Z", "2026-02-14T09:30:00.000Z"];

/// A flow that an upstream carries out and reports on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Esign,
    DocLocker,
    EStamp,
    Wealth,
}

impl Flow {
    pub const ALL: [Self; 4] = [Self::Esign, Self::DocLocker, Self::EStamp, Self::Wealth];

    /// Returns the path of the request that opens the flow.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Esign => "/api/v1/esign/request",
            Self::DocLocker => "/api/v1/doclocker/init",
            Self::EStamp => "/api/v1/estamp/init",
            Self::Wealth => "/api/v1/wealth/consents",
        }
    }

    /// Returns the name in settings and orders.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Esign => "esign",
            Self::DocLocker => "doclocker",
            Self::EStamp => "estamp",
            Self::Wealth => "wealth",
        }
    }

    /// Returns the kind of the flow's reports; for wealth data, the first of three.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Wealth => "wealth-consent",
            other => other.name(),
        }
    }

    /// Returns the response member that holds the flow's id.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Esign => "documentId",
            Self::DocLocker => "transactionId",
            Self::EStamp => "eStampId",
            Self::Wealth => "uniqueIdentifier",
        }
    }

    /// Builds the request for the flow of the golden files.
    pub fn body(self) -> Value {
        let end_in = |days: u64| timestamp_in(std::time::Duration::from_secs(days * DAY));
        match self {
            Self::Esign => json!({
                "documentInfo": {"name": "Loan agreement of Asha", "content": PDF},
                "signerInfo": [
                    {"signerName": "Asha Rao", "signerRefId": "borrower", "invitationExpireTimeStamp": end_in(7)},
                    {"signerName": "Vikram Sample", "signerRefId": "guarantor",
                        "invitationExpireTimeStamp": end_in(14)},
                ],
                "documentReferenceId": "loan-agreement-7",
            }),
            Self::DocLocker => {
                json!({"docs": ["driving_licence", "class_x_marksheet"], "consent": "Y", "consent_text": CONSENT_TEXT})
            }
            Self::EStamp => json!({
                "apiType": "RegistryEStamp",
                "document": {"documentName": "lease.pdf", "base64FileData": PDF},
                "signatoriesInfo": [{"name": "Asha Rao", "emailID": "asha@example.com", "signType": "electronic"}],
            }),
            Self::Wealth => json!({"consent": "Y", "consent_text": CONSENT_TEXT}),
        }
    }

    /// Returns the body with the members at JSON pointers replaced, or removed if `None`.
    pub fn body_with(self, changes: &[(&str, Option<Value>)]) -> Value {
        let mut body = self.body();
        for (pointer, value) in changes {
            change(&mut body, pointer, value.clone());
        }
        body
    }
}

/// Sets or removes the member at a pointer.
pub fn change(body: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} points nowhere"));
    match value {
        Some(value) if parent.is_array() => parent[name.parse::<usize>().expect("an index")] = value,
        Some(value) => parent[name] = value,
        None => {
            parent.as_object_mut().expect("an object").remove(name);
        }
    }
}

/// An opened flow.
#[derive(Clone, Debug)]
pub struct OpenedFlow {
    pub flow: Flow,
    pub id: String,
    pub app: String,
    pub answer: Value,
    signers: Vec<String>,
    invitation_ends: Vec<String>,
}

impl OpenedFlow {
    /// Reads a flow from its request and answer.
    pub fn read(flow: Flow, app: &str, request: &Value, answer: &Value) -> Self {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let each = |list: &Value, member: &str| -> Vec<String> {
            list["signerInfo"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|signer| signer[member].as_str())
                .map(str::to_owned)
                .collect()
        };
        let invitation_ends = if flow == Flow::Esign { each(request, "invitationExpireTimeStamp") } else { Vec::new() };
        let signers = each(answer, "signerId");
        Self {
            flow,
            id: text(&answer[flow.id()]),
            app: app.to_owned(),
            answer: answer.clone(),
            signers,
            invitation_ends,
        }
    }

    /// Returns the ends of the signers' invitations.
    pub fn invitation_ends(&self) -> &[String] {
        &self.invitation_ends
    }

    /// Returns a golden file with this flow's ids and invitations.
    fn with_own_ids(&self, golden: &str) -> String {
        let mut text = golden.replace(GOLDEN_ID, &self.id);
        let replaced =
            GOLDEN_SIGNERS.iter().zip(&self.signers).chain(GOLDEN_INVITATION_ENDS.iter().zip(&self.invitation_ends));
        for (golden, own) in replaced {
            text = text.replace(golden, own);
        }
        text
    }

    /// Returns the body that a client must get if the connector reports a golden file.
    pub fn expected_body(&self, golden: &str) -> String {
        compact(&self.with_own_ids(golden))
    }

    /// Returns the connector's report with the content of a golden file.
    pub fn report(&self, golden: &str) -> Value {
        self.report_with(golden, &[])
    }

    /// Returns the report with members at JSON pointers changed.
    pub fn report_with(&self, golden: &str, changes: &[(&str, Option<Value>)]) -> Value {
        let mut report: Value = serde_json::from_str(&self.with_own_ids(golden)).expect("JSON");
        report["app_id"] = json!(self.app);
        for (pointer, value) in changes {
            change(&mut report, pointer, value.clone());
        }
        report
    }
}

/// Returns a JSON text without whitespace between tokens, members in their order.
fn compact(json: &str) -> String {
    let (mut within_string, mut escaped) = (false, false);
    let keep = |character: &char| {
        let is_kept = within_string || !character.is_whitespace();
        within_string ^= *character == '"' && !escaped;
        escaped = *character == '\\' && !escaped;
        is_kept
    };
    json.chars().filter(keep).collect()
}

impl Backend {
    /// Builds a request to open a flow, under the correlation id of the golden files.
    pub fn flow_request(&self, flow: Flow, body: &Value) -> RequestBuilder {
        self.secrets.watch_for_personal_data(body);
        self.request(Method::POST, flow.path()).header("X-Request-ID", "req-1").json(body)
    }

    /// Sends a request to open a flow, and returns the answer.
    pub async fn try_open_flow(&self, flow: Flow, body: &Value) -> Answer {
        Answer::receive(self.flow_request(flow, body)).await
    }

    /// Sends a request to open a flow under an idempotency key.
    pub async fn open_flow_once(&self, key: &str, flow: Flow, body: &Value) -> Answer {
        Answer::receive(self.flow_request(flow, body).header("Idempotency-Key", key)).await
    }

    /// Opens a flow with this body, which must succeed.
    pub async fn open_flow_with(&self, flow: Flow, body: &Value) -> OpenedFlow {
        OpenedFlow::read(flow, &self.app, body, &self.try_open_flow(flow, body).await.ok())
    }

    /// Opens the flow of the golden files.
    pub async fn open_flow(&self, flow: Flow) -> OpenedFlow {
        self.open_flow_with(flow, &flow.body()).await
    }

    /// Polls an eSign or a document locker flow.
    pub async fn poll(&self, opened: &OpenedFlow) -> Answer {
        match opened.flow {
            Flow::Esign => Answer::to_call(&self.api(), public::esign_status(&opened.id)).await,
            Flow::DocLocker => Answer::to_call(&self.api(), public::doclocker_details(&opened.id)).await,
            Flow::EStamp | Flow::Wealth => panic!("{} has no poll", opened.flow.name()),
        }
    }

    /// Registers the account's webhook URL for an API.
    pub async fn register(&self, api_type: &str, url: &str) {
        let answer = self.configure(&json!({"apiType": api_type, "webhookUrl": url})).await;
        assert_eq!(answer.ok(), json!({"success": true, "data": {"apiType": api_type, "webhookUrl": url}}));
    }

    /// Sends a request to change the account's webhook URLs.
    pub async fn configure(&self, body: &Value) -> Answer {
        self.secrets.watch_for_personal_data(body);
        Answer::to_call(&self.api(), public::register_webhook(body)).await
    }
}
