//! Fetches small documents by HTTP: redirects are not followed, and size and time are bounded.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use url::Url;

use crate::egress::Egress;
use crate::error::ClientError;
use crate::guard::AddressPolicy;
use crate::resolver::{GuardedResolver, ResolveError};

/// Reason why a fetch returned no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// No connection, no TLS, or the connection broke.
    #[error("cannot be reached")]
    Unreachable,
    /// The policy permits none of the host's addresses.
    #[error("has no address that may be connected to")]
    Blocked,
    /// TLS cannot be set up on this machine.
    #[error("cannot be reached: TLS cannot be set up")]
    NoTls,
    /// The time limit passed.
    #[error("does not answer in time")]
    TimedOut,
    /// The status is not 200.
    #[error("answers with status {0}")]
    Status(u16),
    /// The document is too long.
    #[error("answers with more than {0} bytes")]
    TooLong(usize),
}

impl DocumentError {
    /// Returns a stable code for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unreachable | Self::NoTls => "unreachable",
            Self::Blocked => "blocked",
            Self::TimedOut => "timed_out",
            Self::Status(300..=399) => "redirect",
            Self::Status(_) => "http_status",
            Self::TooLong(_) => "too_long",
        }
    }
}

/// Client that fetches documents. Clones share the HTTP clients, which the first use builds.
#[derive(Clone, Debug)]
pub struct DocumentClient {
    /// Clients for `https` and for `http`, built on first use. The one for `http` loads no root certificates, which
    /// takes long.
    clients: Arc<[OnceCell<Client>; 2]>,
    egress: Egress,
    /// `None` for URLs that the operator chose.
    guard: Option<AddressGuard>,
    timeout: Duration,
}

impl DocumentClient {
    /// Creates a client for URLs that the operator chose: any address is allowed. The timeout is that of a whole fetch.
    #[must_use]
    pub fn new(timeout: Duration, egress: &Egress) -> Self {
        Self { clients: Arc::default(), egress: egress.clone(), guard: None, timeout }
    }

    /// Creates a client for URLs that others chose: only the proxy and addresses that the policy permits are allowed.
    #[must_use]
    pub fn guarded(timeout: Duration, egress: &Egress, policy: AddressPolicy) -> Self {
        let [resolver, proxy_resolver] =
            [policy, AddressPolicy { allow_private: true }].map(|policy| Arc::new(GuardedResolver::new(policy)));
        Self {
            guard: Some(AddressGuard { policy, resolver, proxy_resolver, egress: egress.clone() }),
            ..Self::new(timeout, egress)
        }
    }

    /// Returns the HTTP client for the scheme of a URL. Its first use builds it.
    async fn client(&self, url: &Url) -> Result<&Client, DocumentError> {
        let is_http = url.scheme() == "http";
        let guard = self.guard.clone();
        let egress = self.egress.clone();
        let build = move || {
            let builder = egress.http_client(!is_http)?;
            let builder = match guard {
                Some(guard) => builder.dns_resolver(Arc::new(guard)),
                None => builder,
            };
            builder.build().map_err(ClientError::tls)
        };
        let build_in_background = || async {
            let client = spawn_blocking(build).await.map_err(|_| DocumentError::NoTls)?;
            client
                .inspect_err(|error| tracing::error!(%error, "TLS cannot be set up"))
                .map_err(|_| DocumentError::NoTls)
        };
        let [https_client, http_client] = &*self.clients;
        let client = if is_http { http_client } else { https_client };
        client.get_or_try_init(build_in_background).await
    }

    /// Fetches the document at a URL, of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// [`DocumentError`] when no document was received.
    pub async fn fetch(&self, url: &Url, accept: &'static str, bytes_max: usize) -> Result<Vec<u8>, DocumentError> {
        if self.guard.as_ref().is_some_and(|guard| !guard.policy.permits_host(url)) {
            return Err(DocumentError::Blocked);
        }
        self.exchange(async { Ok(self.client(url).await?.get(url.clone()).header(ACCEPT, accept)) }, bytes_max).await
    }

    /// Posts a form and returns the JSON document in the response, of at most `bytes_max` bytes. The authorization
    /// header is never logged.
    ///
    /// # Errors
    /// [`DocumentError`] when no document was received.
    pub async fn post_form(
        &self,
        url: &Url,
        form: String,
        authorization: Option<SecretString>,
        bytes_max: usize,
    ) -> Result<Vec<u8>, DocumentError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        if let Some(authorization) = authorization {
            let mut value =
                HeaderValue::from_str(authorization.expose_secret()).map_err(|_| DocumentError::Unreachable)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        self.post(url, headers, form, bytes_max).await
    }

    /// Posts a body and returns the JSON document in the response, of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// [`DocumentError`] when no document was received.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: String,
        bytes_max: usize,
    ) -> Result<Vec<u8>, DocumentError> {
        let request = async {
            Ok(self.client(url).await?.post(url.clone()).header(ACCEPT, "application/json").headers(headers).body(body))
        };
        self.exchange(request, bytes_max).await
    }

    /// Sends a request and reads the document in its response.
    async fn exchange(
        &self,
        request: impl Future<Output = Result<RequestBuilder, DocumentError>>,
        bytes_max: usize,
    ) -> Result<Vec<u8>, DocumentError> {
        let exchange = async {
            let mut response = request.await?.send().await.map_err(|error| to_error(&error))?;
            if response.status() != StatusCode::OK {
                return Err(DocumentError::Status(response.status().as_u16()));
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|error| to_error(&error))? {
                if body.len() + chunk.len() > bytes_max {
                    return Err(DocumentError::TooLong(bytes_max));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body)
        };
        timeout(self.timeout, exchange).await.unwrap_or(Err(DocumentError::TimedOut))
    }
}

/// Maps an error of the HTTP client. A refusal of the address guard is among its causes.
fn to_error(error: &reqwest::Error) -> DocumentError {
    if error.is_timeout() {
        return DocumentError::TimedOut;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<ResolveError>() == Some(&ResolveError::Blocked) {
            return DocumentError::Blocked;
        }
        cause = error.source();
    }
    DocumentError::Unreachable
}

/// The policy for addresses, as a DNS resolver of the HTTP client.
#[derive(Clone, Debug)]
struct AddressGuard {
    policy: AddressPolicy,
    resolver: Arc<GuardedResolver>,
    /// Resolver for the proxy, which may have any address.
    proxy_resolver: Arc<GuardedResolver>,
    egress: Egress,
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = self.egress.is_proxy(name.as_str());
        let resolver = Arc::clone(if is_proxy { &self.proxy_resolver } else { &self.resolver });
        Box::pin(async move {
            let addresses = resolver.addresses(name.as_str()).await?;
            let addresses: Vec<SocketAddr> = addresses.iter().copied().collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
