//! The description of a browser in a list of sessions: network and program, no more precise than a person needs to
//! recognise the session.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Programs by a part of `User-Agent`. A program whose `User-Agent` also names another program comes first.
const PROGRAMS: [(&str, &str); 9] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];

/// Systems by a part of `User-Agent`.
const SYSTEMS: [(&str, &str); 7] = [
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

/// Describes the browser with a `User-Agent`.
pub(super) fn describe_browser(user_agent: &str) -> String {
    let find = |names: &[(&str, &'static str)]| {
        names.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, name)| *name)
    };
    let program = find(&PROGRAMS).unwrap_or("A browser");
    find(&SYSTEMS).map_or_else(|| program.to_owned(), |system| format!("{program} on {system}"))
}

/// Returns the network of an address: an IPv4 /24, or an IPv6 /48.
pub(super) fn network_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("{}/24", Ipv4Addr::from(u32::from(address) & !0xFF)),
        IpAddr::V6(address) => format!("{}/48", Ipv6Addr::from(u128::from(address) >> 80 << 80)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_the_browser_without_its_version() {
        for (user_agent, expected) in [
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0",
                "Edge on Windows",
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Version/17.5 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            ("Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/126.0 Mobile Safari/537.36", "Chrome on Android"),
            ("", "A browser"),
        ] {
            assert_eq!(describe_browser(user_agent), expected);
        }
    }

    #[test]
    fn a_network_does_not_identify_a_single_computer() {
        assert_eq!(network_of("203.0.113.77".parse().unwrap()), "203.0.113.0/24");
        assert_eq!(network_of("::ffff:203.0.113.77".parse().unwrap()), "203.0.113.0/24");
        assert_eq!(network_of("2001:db8:1:2:3:4:5:6".parse().unwrap()), "2001:db8:1::/48");
    }
}
