//! The addresses that webhooks may be sent to: public unicast addresses. The check is on the address of the connection,
//! never on a name.
//!
//! The ranges are those of the IANA special-purpose registries (RFC 6890 and its successors). For IPv6 only 2000::/3 is
//! allowed, because nothing else is assigned for the public internet. An address that embeds an IPv4 address is judged
//! by the IPv4 address, or refused if its form is obsolete.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Policy for the addresses that webhooks of a deployment may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// True to allow connections to non-public addresses; for tests and sandboxes.
    pub allow_private: bool,
}

impl AddressPolicy {
    /// Returns true if connections to this address are allowed.
    #[must_use]
    pub fn permits(self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }

    /// Returns true if the host of a URL may be tried. Addresses are judged here, because they are not resolved. So is
    /// `localhost`, which always means loopback (RFC 6761 §6.3). The addresses of other names are judged after
    /// resolution.
    #[must_use]
    pub fn permits_host(self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(address)) => self.permits(address.into()),
            Some(Host::Ipv6(address)) => self.permits(address.into()),
            Some(Host::Domain(name)) => self.allow_private || !names_loopback(name),
            None => false,
        }
    }
}

/// Returns true for a name of loopback. `name` is in lower case, as the URL parser returns it.
fn names_loopback(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns true for a public unicast address.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns the bits of the IPv4 address `a.b.c.d`.
const fn v4(a: u8, b: u8, c: u8, d: u8) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

/// IPv4 networks that are refused: the bits of their first address, and their prefix length.
const REFUSED_V4: [(u32, u32); 16] = [
    (v4(0, 0, 0, 0), 8),        // "this network", RFC 791
    (v4(10, 0, 0, 0), 8),       // private, RFC 1918
    (v4(100, 64, 0, 0), 10),    // carrier-grade NAT, RFC 6598
    (v4(127, 0, 0, 0), 8),      // loopback, RFC 1122
    (v4(168, 63, 129, 16), 32), // the host agent of a cloud
    (v4(169, 254, 0, 0), 16),   // link-local, RFC 3927, and the metadata services
    (v4(172, 16, 0, 0), 12),    // private, RFC 1918
    (v4(192, 0, 0, 0), 24),     // IETF protocol assignments, RFC 6890
    (v4(192, 0, 2, 0), 24),     // documentation, RFC 5737
    (v4(192, 88, 99, 0), 24),   // 6to4 relays, RFC 7526
    (v4(192, 168, 0, 0), 16),   // private, RFC 1918
    (v4(198, 18, 0, 0), 15),    // benchmarks, RFC 2544
    (v4(198, 51, 100, 0), 24),  // documentation, RFC 5737
    (v4(203, 0, 113, 0), 24),   // documentation, RFC 5737
    (v4(224, 0, 0, 0), 4),      // multicast, RFC 5771
    (v4(240, 0, 0, 0), 4),      // reserved, RFC 1112, and broadcast
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !REFUSED_V4.iter().any(|(network, length)| (bits ^ network) >> (32 - length) == 0)
}

/// Returns the bits of the IPv6 address `a:b:c::`.
const fn v6(a: u16, b: u16, c: u16) -> u128 {
    ((a as u128) << 112) | ((b as u128) << 96) | ((c as u128) << 80)
}

/// The IPv6 network assigned for the public internet, RFC 4291, with its prefix length.
const GLOBAL_UNICAST: (u128, u32) = (v6(0x2000, 0, 0), 3);

/// Networks within [`GLOBAL_UNICAST`] that are refused, with their prefix lengths.
const REFUSED_V6: [(u128, u32); 4] = [
    (v6(0x2001, 0, 0), 23),      // IETF protocol assignments: Teredo, ORCHID, benchmarks
    (v6(0x2001, 0x0db8, 0), 32), // documentation, RFC 3849
    (v6(0x2002, 0, 0), 16),      // 6to4, RFC 7526
    (v6(0x3fff, 0, 0), 20),      // documentation, RFC 9637
];

/// Networks whose last 32 bits are the IPv4 address of the destination, with their prefix lengths.
const EMBEDDING_V4: [(u128, u32); 2] = [
    (0xffff << 32, 96),          // IPv4-mapped, RFC 4291
    (v6(0x0064, 0xff9b, 0), 96), // NAT64, RFC 6052; DNS64 returns these for IPv4-only hosts
];

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let contains = |(network, length): &(u128, u32)| (bits ^ network) >> (128 - length) == 0;
    if EMBEDDING_V4.iter().any(contains) {
        return is_public_v4(Ipv4Addr::from_bits((bits & u128::from(u32::MAX)) as u32));
    }
    contains(&GLOBAL_UNICAST) && !REFUSED_V6.iter().any(contains)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IPV4_MAPPED: u128 = 0xffff << 32;
    const NAT64: u128 = 0x0064_ff9b << 96;

    const NON_PUBLIC: &str = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 \
        127.0.0.1 127.1.2.3 127.255.255.255 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 \
        172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 \
        198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 \
        :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:0:0 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 \
        ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 64:ff9b:1:2::8.8.8.8 \
        100::1 fc00::1 fd00:ec2::254 fdff:ffff::1 fe80::1 fe80::5efe:7f00:1 febf::1 fec0::1 ff02::1 ff0e::1 2001::1 \
        2001:0:7f00:1::1 2001:2::1 2001:10::1 2001:20::1 2001:1ff::1 2001:db8::1 2002:7f00:1::1 2002:808:808::1 \
        3fff::1 3fff:fff::1 4000::1 5f00::1";

    const PUBLIC: &str = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
        168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 \
        192.0.3.0 192.88.98.255 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 203.0.112.255 \
        203.0.114.0 223.255.255.255 2000::1 2001:200::1 2001:4860:4860::8888 2001:db7::1 2001:db9::1 2003::1 \
        2606:4700:4700::1111 2a00:1450::1 3ffe::1 3fff:1000::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8";

    #[test]
    fn every_form_of_a_non_public_address_is_refused() {
        for text in NON_PUBLIC.split_whitespace() {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn public_addresses_up_to_the_edges_of_the_refused_ranges_are_accepted() {
        for text in PUBLIC.split_whitespace() {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_non_public_host_is_recognised_however_a_url_spells_it() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://1%32%37.0.0.1/",
            "http://１２７.0.0.1/",
            "http://127。0。0。1/",
            "http://0/",
            "http://2852039166/latest/meta-data/",
            "http://[::1]/",
            "http://[::]:80/",
            "http://[0:0:0:0:0:ffff:7f00:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[fd00:ec2::254]/",
            "http://localhost/",
            "http://localhost./",
            "http://LOCALHOST:8080/",
            "http://api.localhost/",
        ] {
            let url = Url::parse(text).unwrap();
            assert!(!AddressPolicy::default().permits_host(&url), "{text}");
            assert!(AddressPolicy { allow_private: true }.permits_host(&url), "{text}");
        }
    }

    #[test]
    fn a_public_literal_and_a_name_pass_the_check_on_the_url() {
        for text in
            ["https://8.8.8.8/", "https://[2606:4700:4700::1111]/", "https://a.example/", "https://localhost.example/"]
        {
            assert!(AddressPolicy::default().permits_host(&Url::parse(text).unwrap()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_or_translated_address_is_judged_like_its_ipv4_address(bits: u32) {
            let expected = is_public(Ipv4Addr::from_bits(bits).into());
            for network in [IPV4_MAPPED, NAT64] {
                prop_assert_eq!(is_public(Ipv6Addr::from_bits(network | u128::from(bits)).into()), expected);
            }
        }

        #[test]
        fn addresses_that_the_standard_library_calls_special_are_not_public(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let is_special = address.is_loopback() || address.is_private() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast()
                || address.is_documentation() || address.is_unspecified();
            prop_assert!(!is_special || !is_public(address.into()));
        }
    }
}
