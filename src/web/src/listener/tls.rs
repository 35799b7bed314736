//! TLS of a listener: its certificate, which may change while it serves, and the authorities of client certificates.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use sakshi_domain::time::Timestamp;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ServerConfig, VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{ALL_VERSIONS, Error, RootCertStore};

use super::expiry;

/// The server certificate and the client authorities of a listener, as PEM.
#[derive(Clone, Copy)]
pub struct ListenerPem<'a> {
    /// The certificate, with its chain.
    pub certificate: &'a [u8],
    /// Private key of the certificate.
    pub key: &'a [u8],
    /// Authorities that must have issued the client's certificate.
    pub client_authorities: Option<&'a [u8]>,
    /// True if a client without a certificate may request only liveness and readiness. Otherwise its handshake fails.
    pub probes_without_certificate: bool,
}

/// The reason why a listener cannot use TLS.
#[derive(Debug, thiserror::Error)]
pub enum ListenerTlsError {
    /// The certificate cannot be read.
    #[error("the certificate must be PEM: {0}")]
    Certificate(pem::Error),
    /// The private key cannot be read.
    #[error("the key must be a PEM private key: {0}")]
    Key(pem::Error),
    /// The client authorities cannot be read.
    #[error("the clients' authorities must be PEM certificates")]
    ClientAuthorities,
    /// The key does not fit the certificate, or TLS cannot use the files.
    #[error("{0}")]
    Refused(#[from] Error),
}

impl From<VerifierBuilderError> for ListenerTlsError {
    fn from(_: VerifierBuilderError) -> Self {
        Self::ClientAuthorities
    }
}

/// The TLS of a listener. Clones share it.
#[derive(Clone)]
pub struct ListenerTls {
    config: Arc<RwLock<Arc<ServerConfig>>>,
    requests_certificate: bool,
}

impl ListenerTls {
    /// Builds the TLS of a listener from PEM files.
    ///
    /// # Errors
    /// The [`ListenerTlsError`] of a file that cannot be used.
    pub fn new(files: ListenerPem<'_>) -> Result<Self, ListenerTlsError> {
        Ok(Self {
            config: Arc::new(RwLock::new(build_config(files)?)),
            requests_certificate: files.client_authorities.is_some(),
        })
    }

    /// Uses other files from the next connection on.
    ///
    /// # Errors
    /// The [`ListenerTlsError`] of a file that cannot be used; the current files stay in use.
    pub fn replace(&self, files: ListenerPem<'_>) -> Result<(), ListenerTlsError> {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = build_config(files)?;
        Ok(())
    }

    /// Returns the end of a PEM certificate's validity; `None` if it cannot be read.
    #[must_use]
    pub fn expires_at(certificate: &[u8]) -> Option<Timestamp> {
        read_certificates(certificate).ok()?.first().and_then(|first| expiry::expires_at(first))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner)).into()
    }

    pub(super) const fn requests_certificate(&self) -> bool {
        self.requests_certificate
    }
}

impl fmt::Debug for ListenerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListenerTls")
    }
}

fn build_config(files: ListenerPem<'_>) -> Result<Arc<ServerConfig>, ListenerTlsError> {
    let chain = read_certificates(files.certificate).map_err(ListenerTlsError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(files.key).map_err(ListenerTlsError::Key)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(ALL_VERSIONS)?;
    let builder = match files.client_authorities {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for root in read_certificates(pem).map_err(|_| ListenerTlsError::ClientAuthorities)? {
                roots.add(root)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if files.probes_without_certificate { verifier.allow_unauthenticated() } else { verifier };
            builder.with_client_cert_verifier(verifier.build()?)
        }
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
    if read.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(read) }
}
