//! How a command reaches the internal listener: two settings, whether or not the others are good
//! enough to serve with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use secrecy::SecretString;
use url::Url;

use super::layers::{Sources, merge};
use super::problem::Problems;
use super::reader::Reader;

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
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut address = reader.required("server.internal_addr", "an IP address and a port, such as 127.0.0.1:8081", anywhere);
    let admin_token = reader.secret("admin.token").unwrap_or_default();
    if !reader.problems.0.is_empty() {
        return Err(reader.problems);
    }
    if let Some(url) = said {
        return Ok(Reach { url: url.clone(), admin_token });
    }
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) });
    }
    let refusal = || Problems::one("server.internal_addr", "leaves the port to the system; say where the service is with --url");
    if address.port() == 0 {
        return Err(refusal());
    }
    let url = Url::parse(&format!("http://{address}/")).map_err(|_| refusal())?;
    Ok(Reach { url, admin_token })
}
