//! The identity app: gets credentials from the sandbox issuer and posts them to the callback.

use std::path::Path;
use std::sync::Arc;

use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_sandbox::issuer::{HolderKey, HolderKeys, SandboxIssuer};
use sakshi_sandbox::residents::Resident;
use serde_json::{Value, json};

use super::answer::Answer;
use super::backend::Opened;
use super::node::Addresses;
use super::secrets::Secrets;

/// The `iss` of the sandbox issuer.
const SANDBOX_ISSUER: &str = "https://issuer.sandbox.invalid";

/// The identity app, with the sandbox issuer that issues its credentials.
#[derive(Clone)]
pub struct IdentityApp {
    issuer: Arc<SandboxIssuer>,
    holders: Arc<HolderKeys>,
    http: reqwest::Client,
    addresses: Addresses,
    secrets: Secrets,
}

/// The format of a callback and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackFormat {
    Xml,
    Json,
}

impl CallbackFormat {
    pub const BOTH: [Self; 2] = [Self::Xml, Self::Json];

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Xml => "application/xml",
            Self::Json => "application/json",
        }
    }

    /// Builds the body of a callback with a credential.
    pub fn success(self, txn: &str, credential: &str) -> String {
        match self {
            Self::Xml => format!("<Request><TxnID>{txn}</TxnID><Credential>{credential}</Credential></Request>"),
            Self::Json => json!({"txn": txn, "response": credential, "dateTime": "2026-01-01T00:00:00Z"}).to_string(),
        }
    }

    /// Builds the body of a callback with an error.
    pub fn failure(self, txn: &str, code: &str, message: &str) -> String {
        match self {
            Self::Xml => {
                format!(
                    "<Request><TxnID>{txn}</TxnID><ErrorCode>{code}</ErrorCode><ErrorMsg>{message}</ErrorMsg></Request>"
                )
            }
            Self::Json => json!({"txn": txn, "errCode": code, "errInfo": message}).to_string(),
        }
    }

    /// Checks the format of a reply and returns its message.
    pub fn reply(self, answer: &Answer, txn: &str, status: u16) -> String {
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(answer.header("content-type"), Some(self.content_type()), "{}", answer.text);
        match self {
            Self::Xml => {
                let head = format!("<Response><TxnID>{txn}</TxnID><ResponseCode>{status}</ResponseCode><ResponseMsg>");
                let rest = answer.text.strip_prefix(&head).unwrap_or_else(|| panic!("{} is not {head}…", answer.text));
                rest.strip_suffix("</ResponseMsg></Response>").expect("the end of the reply").to_owned()
            }
            Self::Json => {
                let body = answer.json();
                assert_eq!((&body["txn"], &body["responseCode"]), (&Value::from(txn), &Value::from(status)), "{body}");
                body["responseMsg"].as_str().expect("a message").to_owned()
            }
        }
    }
}

impl IdentityApp {
    pub fn new(store: &Path, http: reqwest::Client, addresses: Addresses, secrets: Secrets) -> Self {
        let key = std::fs::read(store.join("sandbox-keys/issuer.p8")).expect("the sandbox issuer's key");
        let issuer = SandboxIssuer::from_pkcs8(SANDBOX_ISSUER, &key).expect("a key");
        Self { issuer: Arc::new(issuer), holders: Arc::default(), http, addresses, secrets }
    }

    /// Returns an app with a new key of the sandbox issuer, for a server without such a key.
    pub fn with_new_issuer(http: reqwest::Client, addresses: Addresses, secrets: Secrets) -> Self {
        let issuer = SandboxIssuer::generate(SANDBOX_ISSUER).expect("a key");
        Self { issuer: Arc::new(issuer), holders: Arc::default(), http, addresses, secrets }
    }

    /// Returns the same identity app, answering to another node.
    pub fn through(&self, addresses: &Addresses) -> Self {
        Self { addresses: addresses.clone(), ..self.clone() }
    }

    /// Issues a resident's credential for the intent's claims, bound to the transaction.
    pub fn credential(&self, opened: &Opened, resident: &str) -> String {
        let bare = self.bare_credential(opened.intent.requested(), resident);
        let bound =
            self.holder(resident).bind(&bare, &opened.txn, &opened.intent.aud, SystemClock.now()).expect("a signature");
        self.secrets.watch_for(&bound);
        bound
    }

    /// Returns the key of a resident's phone.
    fn holder(&self, resident: &str) -> Arc<HolderKey> {
        self.holders.get_or_generate(Resident::find(resident).expect("a resident")).expect("a key")
    }

    /// Issues a resident's credential without proof of the holder's key.
    pub fn bare_credential(&self, claims: ClaimSet, resident: &str) -> String {
        let (resident, now) = (Resident::find(resident).expect("a resident"), SystemClock.now());
        for value in claims.iter().filter_map(|claim| resident.claim(claim, now)) {
            self.secrets.watch_for(value.as_str().unwrap_or_default());
        }
        let bare = self.issuer.issue(resident, claims, &self.holder(resident.id), now).expect("a credential");
        self.secrets.watch_for(&bare);
        bare
    }

    pub fn request(&self, path: &str, content_type: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.http.post(self.addresses.public(path)).header(CONTENT_TYPE, content_type).body(body)
    }

    /// Posts a body to the callback of a transaction.
    pub async fn post(&self, opened: &Opened, format: CallbackFormat, body: String) -> Answer {
        Answer::receive(self.request(&opened.callback_path(), format.content_type(), body)).await
    }

    /// Posts a credential to the callback.
    pub async fn present(&self, opened: &Opened, credential: &str) -> Answer {
        self.secrets.watch_for(credential);
        self.post(opened, CallbackFormat::Json, CallbackFormat::Json.success(&opened.txn, credential)).await
    }

    /// Posts the resident's credential, which must be accepted.
    pub async fn approve(&self, opened: &Opened, resident: &str) {
        let answer = self.present(opened, &self.credential(opened, resident)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// Posts an error code and message to the callback.
    pub async fn fail(&self, opened: &Opened, code: &str, message: &str) -> Answer {
        self.post(opened, CallbackFormat::Json, CallbackFormat::Json.failure(&opened.txn, code, message)).await
    }
}
