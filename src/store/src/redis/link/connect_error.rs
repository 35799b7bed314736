//! Reasons why a connection could not be opened, in words for an operator. They depend on the kinds of errors, never on
//! their text.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use redis::io::AsyncDNSResolver;
use redis::{RedisError, RedisFuture};
use tokio::net::lookup_host;
use tokio_rustls::rustls::{self, AlertDescription, CertificateError};

use super::failure::Failure;

/// Resolver of names, which distinguishes unresolved names from other failures.
pub(super) struct Resolver;

/// The name of a server does not resolve.
#[derive(Debug, thiserror::Error)]
#[error("the name does not resolve")]
struct Unresolved;

impl AsyncDNSResolver for Resolver {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        host: &'b str,
        port: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = lookup_host((host, port)).await.into_iter().flatten().collect();
            if addresses.is_empty() {
                return Err(io::Error::other(Unresolved).into());
            }
            let addresses: Box<dyn Iterator<Item = SocketAddr> + Send> = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}

impl Failure {
    /// Classifies an error of opening a connection.
    pub(super) fn from_connect_error(error: &RedisError) -> Self {
        match Self::from_error(error) {
            Self::TryLater(reason) => Self::TryLater(reason),
            _ => Self::Unreachable(io_error(error).map_or("it could not be connected to", reason)),
        }
    }
}

/// Returns the error of the system or of TLS behind an error of the client library.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?.downcast_ref()
}

/// Returns the reason of a connection error, in words for an operator.
fn reason(error: &io::Error) -> &'static str {
    let inner = error.get_ref();
    if let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls_reason(tls);
    }
    match error.kind() {
        _ if inner.is_some_and(|inner| inner.is::<Unresolved>()) => "its name does not resolve",
        io::ErrorKind::ConnectionRefused => "it refuses connections: nothing listens at its address",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "there is no route to its address",
        io::ErrorKind::TimedOut => "it could not be connected to in time",
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
            "it closed the connection at once: it may expect TLS, or have too many clients"
        }
        _ => "it could not be connected to",
    }
}

fn tls_reason(error: &rustls::Error) -> &'static str {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
    match error {
        InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is from a CA that this machine does not trust"
        }
        InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "its certificate has expired"
        }
        InvalidCertificate(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => {
            "its certificate is not valid yet"
        }
        InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }) => {
            "its certificate is for another name"
        }
        InvalidCertificate(_) => "its certificate is not accepted",
        AlertReceived(AlertDescription::CertificateRequired) => "it wants a client certificate",
        AlertReceived(AlertDescription::HandshakeFailure) => {
            "it refused the TLS handshake: it may want a client certificate"
        }
        AlertReceived(_) => "it refused the TLS handshake",
        InvalidMessage(_) => "it does not speak TLS",
        _ => "no TLS session could be made with it",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redis::AsyncConnectionConfig;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;
    use crate::redis::link::connect::Connector;
    use crate::redis::link::{RedisServers, RedisTopology};

    /// Tries to connect to a server at this URL, and returns the failure.
    async fn connect_failure(url: &str) -> Failure {
        let servers = RedisServers::new(&[url], RedisTopology::Standalone).unwrap();
        let (info, time_limit) = (servers.login_at(&servers.seeds[0]), Duration::from_secs(20));
        let opened = Connector::new(servers, crate::redis::data_loss::LossGuard::default(), time_limit, time_limit)
            .connect(info, AsyncConnectionConfig::new())
            .await;
        opened.err().unwrap()
    }

    #[tokio::test]
    async fn an_address_without_a_listener_and_a_name_without_an_address_are_told_apart() {
        // The listener is dropped at once.
        let unused_address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        assert_eq!(
            connect_failure(&format!("redis://{unused_address}")).await,
            Failure::Unreachable("it refuses connections: nothing listens at its address")
        );
        assert_eq!(connect_failure("redis://redis.invalid").await, Failure::Unreachable("its name does not resolve"));
    }

    #[tokio::test]
    async fn a_server_that_hangs_up_and_one_without_tls_are_told_apart() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            let (closed_at_once, _) = server.accept().await.unwrap();
            drop(closed_at_once);
            let (mut connection, _) = server.accept().await.unwrap();
            connection.write_all(b"-ERR this is no TLS\r\n").await.unwrap();
            std::future::pending::<()>().await;
        });
        assert!(matches!(connect_failure(&format!("redis://{address}")).await,
                Failure::Unreachable(reason) if reason.starts_with("it closed")));
        assert_eq!(
            connect_failure(&format!("rediss://{address}")).await,
            Failure::Unreachable("it does not speak TLS")
        );
    }

    #[test]
    fn missing_and_invalid_certificates_are_told_apart() {
        use rustls::Error::{AlertReceived, InvalidCertificate};
        let reason_of = |tls: rustls::Error| match Failure::from_connect_error(
            &io::Error::new(io::ErrorKind::InvalidData, tls).into(),
        ) {
            Failure::Unreachable(reason) => reason,
            other => panic!("{other:?}"),
        };
        for (error, word) in [
            (InvalidCertificate(CertificateError::UnknownIssuer), "CA"),
            (InvalidCertificate(CertificateError::Expired), "expired"),
            (InvalidCertificate(CertificateError::NotValidForName), "another name"),
            (AlertReceived(AlertDescription::CertificateRequired), "wants a client certificate"),
            (AlertReceived(AlertDescription::HandshakeFailure), "may want a client certificate"),
        ] {
            assert!(reason_of(error.clone()).contains(word), "{error}");
        }
    }
}
