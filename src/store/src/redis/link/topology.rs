//! The organisation and addresses of the Redis servers: one server, a master watched by sentinels, or a cluster.
//!
//! A `rediss://` URL means TLS, with the certificate authorities of the system or of `SSL_CERT_FILE`.
//! The credentials in a URL are for the servers. They are tried with a sentinel too, and omitted if it refuses them.

use std::fmt;
use std::str::FromStr;

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo,
    TlsCertificates,
};

/// Organisation of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisTopology {
    /// One server.
    Standalone,
    /// Sentinels, which name the master of the service.
    Sentinel {
        /// The name of the service.
        service: String,
    },
    /// A cluster.
    Cluster,
}

/// Addresses and organisation of the servers, and their login.
#[derive(Clone)]
pub struct RedisServers {
    pub(super) topology: RedisTopology,
    /// The addresses from the settings.
    pub(super) seeds: Vec<Address>,
    /// Settings of a connection to a server, except the address.
    login: ConnectionInfo,
}

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// A URL is invalid. The error does not quote the URL, because it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a redis:// or rediss:// URL")]
pub struct BadRedisUrl;

/// Certificates cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be PEM, with a key that fits its certificate, for rediss:// URLs")]
pub struct BadCertificates;

impl RedisServers {
    /// Reads one `redis://` or `rediss://` URL for each server, sentinel or node; the first one has the login.
    ///
    /// # Errors
    /// [`BadRedisUrl`] when there is no URL, or one of them is invalid.
    pub fn new<Url: AsRef<str>>(urls: &[Url], topology: RedisTopology) -> Result<Self, BadRedisUrl> {
        let parsed: Vec<ConnectionInfo> = urls
            .iter()
            .map(|url| url.as_ref().into_connection_info().map_err(|_| BadRedisUrl))
            .collect::<Result<_, _>>()?;
        let seeds = parsed.iter().map(address_of).collect::<Result<_, _>>()?;
        let login = parsed.into_iter().next().ok_or(BadRedisUrl)?;
        Ok(Self { topology, seeds, login })
    }

    /// Adds certificates for encrypted connections, as PEM. `authorities` replace the system's; `identity` is this
    /// installation's certificate and its private key.
    ///
    /// # Errors
    /// [`BadCertificates`] when they are invalid, or the URLs are not `rediss://`.
    pub fn with_certificates(
        mut self,
        authorities: Option<Vec<u8>>,
        identity: Option<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, BadCertificates> {
        let client_tls = identity.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        let certificates = TlsCertificates { client_tls, root_cert: authorities };
        let client = Client::build_with_tls(self.login.clone(), certificates).map_err(|_| BadCertificates)?;
        self.login = client.get_connection_info().clone();
        Ok(self)
    }

    /// Returns the settings of a connection to a server.
    pub(super) fn login_at(&self, address: &Address) -> ConnectionInfo {
        let Address { host, port } = address.clone();
        let addr = match self.login.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        self.login.clone().set_addr(addr)
    }

    /// Returns the settings without credentials and without a database, for a sentinel that needs none.
    pub(super) fn anonymous_at(&self, address: &Address) -> ConnectionInfo {
        self.login_at(address).set_redis_settings(RedisConnectionInfo::default())
    }

    /// Returns true if connections are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.login.addr(), ConnectionAddr::TcpTls { .. })
    }
}

fn address_of(info: &ConnectionInfo) -> Result<Address, BadRedisUrl> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Ok(Address { host: host.clone(), port: *port })
        }
        _ => Err(BadRedisUrl),
    }
}

impl FromStr for Address {
    type Err = BadRedisUrl;

    /// Parses an address as Redis writes it in a redirection: `host:port`, an IPv6 host without brackets.
    fn from_str(text: &str) -> Result<Self, BadRedisUrl> {
        let (host, port) = text.rsplit_once(':').ok_or(BadRedisUrl)?;
        let port = port.parse().map_err(|_| BadRedisUrl)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for RedisServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServers")
            .field("topology", &self.topology)
            .field("seeds", &self.seeds)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_named_by_another_gets_the_login_of_the_settings() {
        for (url, is_encrypted) in [("redis://user:geheim@seed/3", false), ("rediss://user:geheim@seed/3", true)] {
            let servers = RedisServers::new(&[url], RedisTopology::Standalone).unwrap();
            assert_eq!(servers.is_encrypted(), is_encrypted);
            let other = Address { host: "other".to_owned(), port: 7000 };
            let (login, anonymous) = (servers.login_at(&other), servers.anonymous_at(&other));
            for info in [&login, &anonymous] {
                assert_eq!(address_of(info).as_ref(), Ok(&other));
                assert_eq!(matches!(info.addr(), ConnectionAddr::TcpTls { insecure: false, .. }), is_encrypted);
            }
            assert_eq!((login.redis_settings().username(), login.redis_settings().db()), (Some("user"), 3));
            assert_eq!((anonymous.redis_settings().username(), anonymous.redis_settings().db()), (None, 0));
        }
    }
}
