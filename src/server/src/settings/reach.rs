//! How a command reaches a running service: a few settings, whether or not the others are good
//! enough to serve with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sakshi_domain::profile::Profile;
use secrecy::SecretString;
use url::Url;

use super::layers::{Sources, merge};
use super::problem::Problems;
use super::reader::Reader;
use super::sections::origin;

/// Where the internal listener is, and the key to it.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Its origin.
    pub url: Url,
    /// The operator's token; empty when it is not set.
    pub admin_token: SecretString,
}

/// Reads where the internal listener is, unless the command line says it.
///
/// # Errors
/// The layers cannot be read, or the address is none that can be connected to.
pub fn internal_reach(sources: &Sources, said: Option<&Url>) -> Result<Reach, Problems> {
    let (_, table) = merge(sources)?;
    let mut reader = Reader::new(table);
    let listener = Listener { key: "server.internal_addr", example: "an IP address and a port, such as 127.0.0.1:8081", flag: "--url" };
    let address = reader.required(listener.key, listener.example, NOWHERE);
    let admin_token = reader.secret("admin.token").unwrap_or_default();
    if !reader.problems.0.is_empty() {
        return Err(reader.problems);
    }
    Ok(Reach { url: said.map_or_else(|| listener.origin(address), |url| Ok(url.clone()))?, admin_token })
}

/// Reads where the public listener is: its public name, or its address.
///
/// # Errors
/// The layers cannot be read, or the address is none that can be connected to.
pub fn public_reach(sources: &Sources) -> Result<Url, Problems> {
    let (_, table) = merge(sources)?;
    let mut reader = Reader::new(table);
    let listener = Listener { key: "server.public_addr", example: "an IP address and a port, such as 127.0.0.1:8080", flag: "--base" };
    let name = reader.parsed_by("server.public_base_url", origin);
    let address = reader.required(listener.key, listener.example, NOWHERE);
    if !reader.problems.0.is_empty() {
        return Err(reader.problems);
    }
    name.map_or_else(|| listener.origin(address), Ok)
}

/// Reads the profile.
///
/// # Errors
/// The layers cannot be read.
pub fn profile(sources: &Sources) -> Result<Profile, Problems> {
    merge(sources).map(|(profile, _)| profile)
}

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A listener as the settings know it.
struct Listener {
    key: &'static str,
    example: &'static str,
    /// Says where it is instead of the settings.
    flag: &'static str,
}

impl Listener {
    /// A URL to connect to.
    fn origin(&self, mut address: SocketAddr) -> Result<Url, Problems> {
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) });
        }
        let url = Url::parse(&format!("http://{address}/")).ok().filter(|_| address.port() != 0);
        url.ok_or_else(|| Problems::one(self.key, format!("leaves the port to the system; say where the service is with {}", self.flag)))
    }
}
