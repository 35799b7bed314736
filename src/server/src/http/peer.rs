//! Which address a request comes from, through proxies that are trusted to say so.

use std::net::{IpAddr, Ipv6Addr};

use actix_web::HttpRequest;
use ipnet::IpNet;

/// The address of the nearest peer that is no trusted proxy, as the unit of limits: an IPv4
/// address, or the /64 network of an IPv6 address, which one subscriber has to itself.
///
/// `X-Forwarded-For` is read from its end, because everything before the first address that a
/// trusted proxy wrote can be made up. `None` without a peer, as in tests.
#[must_use]
pub fn client_network(request: &HttpRequest, trusted: &[IpNet]) -> Option<IpAddr> {
    let mut address = request.peer_addr()?.ip().to_canonical();
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let headers: Vec<&str> = match is_trusted(&address) {
        true => request.headers().get_all("x-forwarded-for").filter_map(|value| value.to_str().ok()).collect(),
        false => Vec::new(),
    };
    for hop in headers.iter().rev().flat_map(|header| header.rsplit(',')) {
        let Ok(hop) = hop.trim().parse::<IpAddr>() else { break };
        address = hop.to_canonical();
        if !is_trusted(&address) {
            break;
        }
    }
    Some(match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => Ipv6Addr::from(u128::from(six) >> 64 << 64).into(),
    })
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn seen(peer: &str, forwarded: &[&str]) -> String {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "2001:db8:ffff::/48".parse().unwrap()];
        let mut request = TestRequest::get().peer_addr(peer.parse().unwrap());
        for value in forwarded {
            request = request.append_header(("x-forwarded-for", *value));
        }
        client_network(&request.to_http_request(), &trusted).unwrap().to_string()
    }

    #[test]
    fn a_stranger_cannot_choose_the_address_that_is_seen() {
        assert_eq!(seen("203.0.113.9:1", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(seen("10.0.0.1:1", &["1.2.3.4, 203.0.113.9"]), "203.0.113.9");
        assert_eq!(seen("10.0.0.1:1", &["1.2.3.4", "203.0.113.9, 10.0.0.2"]), "203.0.113.9");
        assert_eq!(seen("10.0.0.1:1", &["203.0.113.9, nonsense, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(seen("10.0.0.1:1", &[]), "10.0.0.1");
    }

    #[test]
    fn an_ipv6_subscriber_is_one_network_and_a_mapped_ipv4_is_itself() {
        assert_eq!(seen("[2001:db8:1:2:3:4:5:6]:1", &[]), "2001:db8:1:2::");
        assert_eq!(seen("[::ffff:203.0.113.9]:1", &[]), "203.0.113.9");
        assert_eq!(seen("[2001:db8:ffff::1]:1", &["::ffff:203.0.113.7"]), "203.0.113.7");
    }
}
