//! A typed client of a running service: the public API in [`public`], the internal listener in [`internal`], and
//! [`judge`], which checks every promise from outside.
//!
//! Each operation is a [`Call`]: a value with the method, the path, the body and the type of the answer. A [`Client`]
//! sends it to one listener with one set of credentials. Callers that need more than the answer (headers, timing, a
//! deliberately wrong body) take the request from [`Client::request`] and send it themselves.

mod call;
mod error;
pub mod internal;
pub mod judge;
pub mod public;

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder};
use sakshi_wire::credits::StatementEntry;
use sakshi_wire::guests::RegistrationRow;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use url::Url;

pub use self::call::{Call, Page, segment};
pub use self::error::{Error, Refusal};

/// The header with a client's API key.
pub const API_KEY: &str = "X-API-KEY";
/// The header with the id of an app.
pub const APP_ID: &str = "X-API-APP-ID";
/// The header with a client's key for a request that must not be done twice.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Time for which an idle connection is kept. The service closes idle ones after 5 s; a longer time may use one that is
/// being closed.
const IDLE: Duration = Duration::from_secs(2);

/// Credentials of a caller.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Anybody.
    None,
    /// The operator or a connector, on the internal listener.
    Bearer(SecretString),
    /// A client's backend, on the public listener.
    Client {
        /// The API key.
        key: SecretString,
        /// The app.
        app: String,
    },
}

/// One listener, called with one set of credentials.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    credentials: Credentials,
}

/// Builds an HTTP client without proxy, redirects and retries. Without `tls` it needs no root certificates.
///
/// # Errors
/// The TLS library cannot be set up.
pub fn http(timeout: Duration, tls: bool) -> reqwest::Result<reqwest::Client> {
    let builder = reqwest::Client::builder().no_proxy().redirect(Policy::none()).retry(reqwest::retry::never());
    let builder = builder.pool_idle_timeout(IDLE).timeout(timeout);
    if tls { builder } else { builder.tls_certs_only([]) }.build()
}

impl Credentials {
    /// Adds the credentials to a request.
    pub fn sign(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::None => request,
            Self::Bearer(token) => request.bearer_auth(token.expose_secret()),
            Self::Client { key, app } => request.header(API_KEY, key.expose_secret()).header(APP_ID, app),
        }
    }
}

impl Client {
    /// Builds a client for the listener at `base`.
    #[must_use]
    pub const fn new(http: reqwest::Client, base: Url, credentials: Credentials) -> Self {
        Self { http, base, credentials }
    }

    /// Returns the address of the listener.
    #[must_use]
    pub const fn base(&self) -> &Url {
        &self.base
    }

    /// Returns the credentials.
    #[must_use]
    pub const fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Sends a call and reads its answer.
    ///
    /// # Errors
    /// No answer came, the service refuses, or the answer is not what the call promises.
    pub async fn send<T: DeserializeOwned>(&self, call: Call<T>) -> Result<T, Error> {
        let what = format!("{} {}", call.method, call.path);
        let body = self.send_raw(call).await?;
        serde_json::from_slice(&body).map_err(|reason| Error::Answer { what, reason })
    }

    /// Sends a call; returns the bytes of the answer.
    ///
    /// # Errors
    /// No answer came, or the service refuses.
    pub async fn send_raw<T>(&self, call: Call<T>) -> Result<Vec<u8>, Error> {
        let answer = self.request(call)?.send().await.map_err(|error| Error::unreachable(&error))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| Error::unreachable(&error))?;
        if status.is_success() { Ok(body.into()) } else { Err(Error::Refused(Refusal::read(status.as_u16(), &body))) }
    }

    /// Builds the request of a call, for a caller that sends it in its own way.
    ///
    /// # Errors
    /// The body cannot be written as JSON.
    pub fn request<T>(&self, call: Call<T>) -> Result<RequestBuilder, Error> {
        let mut request = self.plain(call.method, &call.path);
        if let Some(key) = call.idempotency_key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(timeout) = call.timeout {
            request = request.timeout(timeout);
        }
        Ok(match call.body {
            Some(body) => {
                let body = body.map_err(|reason| Error::Body { path: call.path, reason })?;
                request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body)
            }
            None => request,
        })
    }

    /// Builds a request without a body to any path of the listener.
    pub fn plain(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base.as_str().trim_end_matches('/')));
        self.credentials.sign(request)
    }

    /// Lists all entries of a client's ledger, oldest first.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn ledger(&self, client: &str) -> Result<Vec<StatementEntry>, Error> {
        let mut entries = Vec::new();
        for page in Page::all() {
            let found = self.send(internal::statement(client, page)).await?;
            entries.extend(found.entries);
            if found.next.is_none() {
                break;
            }
        }
        Ok(entries)
    }

    /// Lists the transactions of all registered guests of an event, oldest first.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn registered(&self, event: &str) -> Result<Vec<String>, Error> {
        Ok(self.registrations(event).await?.into_iter().map(|guest| guest.txn_id.to_string()).collect())
    }

    /// Lists all registered guests of an event, oldest first.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn registrations(&self, event: &str) -> Result<Vec<RegistrationRow>, Error> {
        let mut guests = Vec::new();
        for page in Page::all() {
            let found = self.send(public::registrations(event, page)).await?;
            guests.extend(found.registrations);
            if found.next.is_none() {
                break;
            }
        }
        Ok(guests)
    }
}
