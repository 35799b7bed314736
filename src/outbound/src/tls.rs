//! TLS to receivers: trusted certificate authorities, offered protocols, and session tickets that
//! shorten later handshakes.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ALL_VERSIONS, ClientConfig};
use url::Host;

use crate::error::ClientError;

/// Sessions that are remembered: eight for each of 512 receivers.
const SESSIONS: usize = 4_096;
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// Makes TLS connections, which share their session tickets.
#[derive(Clone)]
pub(crate) struct Tls {
    both: TlsConnector,
    http1: TlsConnector,
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1, also when the receiver does not choose a protocol.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Tls {
    /// Trusts the system's certificate authorities and these.
    ///
    /// # Errors
    /// The extra roots are unreadable, or the system trusts no authority.
    pub(crate) fn new(extra_roots_pem: Option<&[u8]>) -> Result<Self, ClientError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let extra = extra_roots_pem.map(certificates).transpose()?.unwrap_or_default();
        let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(ClientError::tls)?;
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(ALL_VERSIONS).map_err(ClientError::tls)?;
        let mut config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        config.alpn_protocols = vec![HTTP1.to_vec()];
        let http1 = TlsConnector::from(Arc::new(config.clone()));
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(Self { both: TlsConnector::from(Arc::new(config)), http1 })
    }

    /// Makes the handshake and returns the agreed protocol.
    ///
    /// # Errors
    /// No trusted certificate for the host's name, no common version, or a broken connection.
    pub(crate) async fn handshake(
        &self,
        stream: TcpStream,
        host: &Host<&str>,
        offer_http2: bool,
    ) -> io::Result<(TlsStream<TcpStream>, Protocol)> {
        let name = match host {
            Host::Domain(name) => ServerName::try_from((*name).to_owned()).map_err(io::Error::other)?,
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(*address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(*address)),
        };
        let connector = if offer_http2 { &self.both } else { &self.http1 };
        let stream = connector.connect(name, stream).await?;
        let agreed = stream.get_ref().1.alpn_protocol();
        let protocol = if agreed == Some(HTTP2) { Protocol::Http2 } else { Protocol::Http1 };
        Ok((stream, protocol))
    }
}

/// The certificates of a bundle, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    read.ok().filter(|read| !read.is_empty()).ok_or(ClientError::ExtraRoots)
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}
