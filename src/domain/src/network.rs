//! Networks of addresses that restrict the use of an API key.

use std::net::IpAddr;

use ipnet::IpNet;

/// Reads an address or a network.
///
/// # Errors
/// A message that states the accepted forms.
pub fn parse_network(text: &str) -> Result<IpNet, &'static str> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse::<IpNet>().or_else(|_| address()).map_err(|_| "must be an address or a network such as 10.0.0.0/8")
}

/// The networks from which an API key may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<IpNet>);

impl Networks {
    /// Maximum number of networks of one list.
    pub const MAX: usize = 64;

    /// Returns true if a network contains the address, or if there are no networks.
    #[must_use]
    pub fn permit(&self, address: IpAddr) -> bool {
        self.0.is_empty() || self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns each network as text, in its shortest form.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(IpNet::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_permitted_by_a_network_or_without_networks() {
        let networks = Networks(
            ["203.0.113.0/24", "198.51.100.7", "2001:db8::/32"].map(|text| parse_network(text).unwrap()).to_vec(),
        );
        for (address, is_permitted) in [
            ("203.0.113.9", true),
            ("203.0.114.9", false),
            ("198.51.100.7", true),
            ("198.51.100.8", false),
            ("2001:db8:1::1", true),
            ("2001:db9::1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(
                (networks.permit(address), Networks::default().permit(address)),
                (is_permitted, true),
                "{address}"
            );
        }
        assert_eq!(networks.texts().collect::<Vec<_>>(), ["203.0.113.0/24", "198.51.100.7/32", "2001:db8::/32"]);
        assert!(
            parse_network("10.0.0.0/33").is_err()
                && parse_network("bank.example").is_err()
                && parse_network("").is_err()
        );
    }
}
