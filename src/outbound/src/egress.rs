//! Outgoing connections: the forward proxy, the trusted certificate authorities, and the client certificate of this
//! installation. Every HTTP client of the service uses them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::{ClientBuilder, Proxy, redirect, retry};
use rustls_platform_verifier::Verifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{ALL_VERSIONS, ClientConfig};
use url::Url;
use zeroize::Zeroizing;

use crate::error::ClientError;
use crate::pinned::PinnedVerifier;

/// Hosts that are always reached without the proxy, all of this machine.
const NEVER_PROXIED: &str = "localhost,127.0.0.0/8,::1";

/// Settings of outgoing connections.
#[derive(Clone, Default)]
pub struct EgressOptions {
    /// The forward proxy, `http://[user:password@]host:port`.
    pub proxy: Option<Url>,
    /// Hosts, domains with their subdomains, and networks that are reached without the proxy, in addition to this
    /// machine.
    pub no_proxy: Vec<String>,
    /// PEM of certificate authorities that are trusted in addition to the system's.
    pub roots_pem: Option<Vec<u8>>,
    /// PEM of this installation's certificate with its chain, and of its private key.
    pub identity_pem: Option<(Vec<u8>, Zeroizing<Vec<u8>>)>,
    /// PEM of the only server certificate that is trusted; without it, certificate authorities decide.
    pub pinned_pem: Option<Vec<u8>>,
}

/// The proxy and the TLS settings of outgoing connections. Clones share them.
#[derive(Clone, Default)]
pub struct Egress {
    proxy: Option<Arc<ForwardProxy>>,
    roots: Vec<CertificateDer<'static>>,
    identity: Option<Arc<SingleCertAndKey>>,
    pinned: Option<CertificateDer<'static>>,
}

/// The forward proxy and its exceptions.
struct ForwardProxy {
    url: Url,
    /// Matches the URLs that go through the proxy.
    matcher: Matcher,
}

impl Egress {
    /// Builds the egress from its options.
    ///
    /// # Errors
    /// [`ClientError::ExtraRoots`] or [`ClientError::Identity`] when a file is not PEM, or a key does not match its
    /// certificate.
    pub fn new(options: &EgressOptions) -> Result<Self, ClientError> {
        let exceptions = [&[NEVER_PROXIED.to_owned()], &options.no_proxy[..]].concat().join(",");
        let proxy = |url: &Url| {
            Arc::new(ForwardProxy {
                url: url.clone(),
                matcher: Matcher::builder().all(url.as_str()).no(exceptions).build(),
            })
        };
        let identity = options.identity_pem.as_ref().map(|(chain, key)| read_identity(chain, key)).transpose()?;
        Ok(Self {
            proxy: options.proxy.as_ref().map(proxy),
            roots: options.roots_pem.as_deref().map(read_certificates).transpose()?.unwrap_or_default(),
            identity,
            pinned: options
                .pinned_pem
                .as_deref()
                .map(read_certificates)
                .transpose()?
                .and_then(|chain| chain.into_iter().next()),
        })
    }

    /// Returns the proxy for a URL; `None` for a direct connection.
    pub(crate) fn proxy_for(&self, url: &Uri) -> Option<Intercept> {
        self.proxy.as_ref()?.matcher.intercept(url)
    }

    /// Returns true for the host of the proxy.
    pub(crate) fn is_proxy(&self, host: &str) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| proxy.url.host_str() == Some(host))
    }

    /// Builds the TLS configuration. Reads the system's certificate authorities, which takes long.
    ///
    /// # Errors
    /// [`ClientError::Tls`] when the system trusts no authority.
    pub(crate) fn tls_config(&self) -> Result<ClientConfig, ClientError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.pinned.clone() {
            Some(certificate) => Arc::new(PinnedVerifier { certificate, provider: Arc::clone(&provider) }),
            None => {
                let roots = self.roots.iter().cloned();
                Arc::new(Verifier::new_with_extra_roots(roots, Arc::clone(&provider)).map_err(ClientError::tls)?)
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(ALL_VERSIONS)
            .map_err(ClientError::tls)?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        Ok(match &self.identity {
            Some(identity) => builder.with_client_cert_resolver(Arc::clone(identity) as Arc<_>),
            None => builder.with_no_client_auth(),
        })
    }

    /// Builds a client that sends each request once and follows no redirect; with TLS if `is_secure`.
    ///
    /// # Errors
    /// [`ClientError::Tls`] when the system trusts no authority.
    pub fn http_client(&self, is_secure: bool) -> Result<ClientBuilder, ClientError> {
        let builder =
            ClientBuilder::new().http1_only().redirect(redirect::Policy::none()).no_proxy().retry(retry::never());
        // The library's 30 s would end requests to servers that read late; the callers limit the time.
        let builder = builder.referer(false).pool_max_idle_per_host(0).tcp_user_timeout(None::<Duration>);
        let builder =
            if is_secure { builder.tls_backend_preconfigured(self.tls_config()?) } else { builder.tls_certs_only([]) };
        let Some(proxy) = self.proxy.clone() else { return Ok(builder) };
        let uses_proxy =
            move |url: &Url| Uri::try_from(url.as_str()).is_ok_and(|uri| proxy.matcher.intercept(&uri).is_some());
        let url = self.proxy.as_ref().map(|proxy| proxy.url.clone());
        Ok(builder.proxy(Proxy::custom(move |target| url.clone().filter(|_| uses_proxy(target)))))
    }
}

fn read_identity(chain: &[u8], key: &[u8]) -> Result<Arc<SingleCertAndKey>, ClientError> {
    let chain = read_certificates(chain).map_err(|_| ClientError::Identity)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| ClientError::Identity)?;
    let certified =
        CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|_| ClientError::Identity)?;
    Ok(Arc::new(SingleCertAndKey::from(certified)))
}

/// Reads the certificates of a bundle, which has at least one.
fn read_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    certificates.ok().filter(|certificates| !certificates.is_empty()).ok_or(ClientError::ExtraRoots)
}

impl fmt::Debug for EgressOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EgressOptions")
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Egress")
    }
}
