//! Endpoints of a running service, for commands that call it. Other settings may be invalid.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use sakshi_domain::profile::Profile;
use secrecy::SecretString;
use url::{Host, Url};

use super::layers::{Sources, merge};
use super::problem::Problems;
use super::reader::Reader;
use super::sections::parse_origin;

/// The internal listener, as a command calls it.
#[derive(Clone, Debug)]
pub struct InternalEndpoint {
    /// Origin of the listener.
    pub url: Url,
    /// The operator's token; empty when not set.
    pub admin_token: SecretString,
    /// File of the listener's certificate, if it speaks TLS and its address comes from the settings.
    pub certificate: Option<PathBuf>,
}

/// Reads the endpoint of the internal listener. `url_override` is the URL of the command line.
///
/// # Errors
/// The settings cannot be read, or the configured port is 0 (chosen by the operating system).
pub fn internal_endpoint(sources: &Sources, url_override: Option<&Url>) -> Result<InternalEndpoint, Problems> {
    let (_, table) = merge(sources)?;
    let mut reader = Reader::new(table);
    let address = reader.address("server.internal_addr");
    let admin_token = reader.secret("admin.token").unwrap_or_default();
    let certificate =
        reader.optional("server.internal_tls_cert", |text| Ok(PathBuf::from(text))).filter(|_| url_override.is_none());
    reader.finish()?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let url = url_override
        .map_or_else(|| listener_url(scheme, address, "server.internal_addr", "--url"), |url| Ok(url.clone()))?;
    Ok(InternalEndpoint { url, admin_token, certificate })
}

/// Reads the endpoint of the public listener: its public URL, else its address.
///
/// # Errors
/// The settings cannot be read, or the configured port is 0 (chosen by the operating system).
pub fn public_endpoint(sources: &Sources) -> Result<Url, Problems> {
    let (_, table) = merge(sources)?;
    let mut reader = Reader::new(table);
    let public_url = reader.optional("server.public_base_url", parse_origin);
    let address = reader.address("server.public_addr");
    reader.finish()?;
    public_url.map_or_else(|| listener_url("http", address, "server.public_addr", "--base"), Ok)
}

/// Reads the profile.
///
/// # Errors
/// The settings cannot be read.
pub fn profile(sources: &Sources) -> Result<Profile, Problems> {
    merge(sources).map(|(profile, _)| profile)
}

/// Builds the URL of a listener. `flag` is the option that overrides the settings.
fn listener_url(scheme: &str, address: SocketAddr, key: &str, flag: &str) -> Result<Url, Problems> {
    let url = Url::parse(&format!("{scheme}://{}/", reachable(address))).ok().filter(|_| address.port() != 0);
    url.ok_or_else(|| {
        Problems::single(key, format!("has port 0, which the operating system chooses; give the URL with {flag}"))
    })
}

/// Returns an address that can be connected to: an unspecified address becomes loopback.
pub(crate) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    address
}

/// Returns true if a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
