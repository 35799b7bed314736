//! A typed client of a running service: the public API in [`public`], the internal listener in [`internal`], and
//! [`judge`], which checks the promises of the service from outside.
//!
//! Each operation is a [`Call`]: a value with the method, the path, the body and the type of the response. A [`Client`]
//! sends calls to one listener with one set of credentials. Callers that need headers, timing or an invalid body take
//! the request from [`Client::request`] and send it themselves.

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
/// The header with the idempotency key of a request.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Time for which an idle connection is pooled. It must be below 5 s, after which the service closes idle connections.
const IDLE_MAX: Duration = Duration::from_secs(2);

/// Credentials of a caller.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// No credentials.
    None,
    /// The token of an operator or a connector, for the internal listener.
    Bearer(SecretString),
    /// The API key of a client's backend, for the public listener.
    Client {
        /// The API key.
        key: SecretString,
        /// The id of the app.
        app: String,
    },
}

/// A client of one listener, with one set of credentials.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    credentials: Credentials,
}

/// Builds an HTTP client without proxy, redirects and retries. Without `tls` it loads no root certificates, so it can
/// only call `http://` URLs.
///
/// # Errors
/// [`reqwest::Error`] if TLS cannot be set up.
pub fn http(timeout: Duration, tls: bool) -> reqwest::Result<reqwest::Client> {
    let builder = reqwest::Client::builder().no_proxy().redirect(Policy::none()).retry(reqwest::retry::never());
    let builder = builder.pool_idle_timeout(IDLE_MAX).timeout(timeout);
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

    /// Sends a call and reads the response.
    ///
    /// # Errors
    /// [`Error`] if the service is unreachable, refuses the call, or sends a response of another form.
    pub async fn send<T: DeserializeOwned>(&self, call: Call<T>) -> Result<T, Error> {
        let request = format!("{} {}", call.method, call.path);
        let body = self.send_raw(call).await?;
        serde_json::from_slice(&body).map_err(|reason| Error::Answer { request, reason })
    }

    /// Sends a call and returns the bytes of the response.
    ///
    /// # Errors
    /// [`Error`] if the service is unreachable or refuses the call.
    pub async fn send_raw<T>(&self, call: Call<T>) -> Result<Vec<u8>, Error> {
        let response = self.request(call)?.send().await.map_err(|error| Error::unreachable(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| Error::unreachable(&error))?;
        if status.is_success() { Ok(body.into()) } else { Err(Error::Refused(Refusal::read(status.as_u16(), &body))) }
    }

    /// Builds the request of a call without sending it.
    ///
    /// # Errors
    /// [`Error::Body`] if the body cannot be serialised.
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

    /// Builds a request without a body, to any path of the listener.
    pub fn plain(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base.as_str().trim_end_matches('/')));
        self.credentials.sign(request)
    }

    /// Lists all entries of a client's ledger, oldest first.
    ///
    /// # Errors
    /// As for [`Client::send`].
    pub async fn ledger(&self, client: &str) -> Result<Vec<StatementEntry>, Error> {
        let mut entries = Vec::new();
        for page in Page::all() {
            let statement = self.send(internal::statement(client, page)).await?;
            entries.extend(statement.entries);
            if statement.next.is_none() {
                break;
            }
        }
        Ok(entries)
    }

    /// Lists the transaction ids of all registered guests of an event, oldest first.
    ///
    /// # Errors
    /// As for [`Client::send`].
    pub async fn registered(&self, event: &str) -> Result<Vec<String>, Error> {
        Ok(self.registrations(event).await?.into_iter().map(|guest| guest.txn_id.to_string()).collect())
    }

    /// Lists all registered guests of an event, oldest first.
    ///
    /// # Errors
    /// As for [`Client::send`].
    pub async fn registrations(&self, event: &str) -> Result<Vec<RegistrationRow>, Error> {
        let mut guests = Vec::new();
        for page in Page::all() {
            let page = self.send(public::registrations(event, page)).await?;
            guests.extend(page.registrations);
            if page.next.is_none() {
                break;
            }
        }
        Ok(guests)
    }
}
