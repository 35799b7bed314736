//! TLS to receivers: offered protocols, and session tickets that shorten later handshakes.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Host;

use crate::egress::Egress;
use crate::error::ClientError;

/// Maximum remembered sessions: eight for each of 512 receivers.
const SESSIONS_MAX: usize = 4_096;
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// Connector for TLS, whose connections share their session tickets.
#[derive(Clone)]
pub(crate) struct Tls {
    /// Offers HTTP/2 and HTTP/1.1.
    http2_or_http1: TlsConnector,
    /// Offers HTTP/1.1 alone.
    http1_only: TlsConnector,
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
    /// Creates a connector with the TLS settings of this egress.
    ///
    /// # Errors
    /// [`ClientError::Tls`] when the system trusts no certificate authority.
    pub(crate) fn new(egress: &Egress) -> Result<Self, ClientError> {
        let mut config = egress.tls_config()?;
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        config.alpn_protocols = vec![HTTP1.to_vec()];
        let http1_only = TlsConnector::from(Arc::new(config.clone()));
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(Self { http2_or_http1: TlsConnector::from(Arc::new(config)), http1_only })
    }

    /// Makes the handshake and returns the agreed protocol.
    ///
    /// # Errors
    /// [`io::Error`] when the certificate is not trusted for the host, no TLS version is common, or the connection
    /// breaks.
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
        let connector = if offer_http2 { &self.http2_or_http1 } else { &self.http1_only };
        let stream = connector.connect(name, stream).await?;
        let (_, session) = stream.get_ref();
        let protocol = if session.alpn_protocol() == Some(HTTP2) { Protocol::Http2 } else { Protocol::Http1 };
        Ok((stream, protocol))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}
