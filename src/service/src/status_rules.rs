//! Rules for the status of credentials: which credentials are checked, and at which hosts.

use std::time::Duration;

use url::Url;

/// Credentials whose status is checked; the setting `authority.status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusPolicy {
    /// Every credential, which must have a status.
    Require,
    /// A credential that has a status.
    #[default]
    IfPresent,
    /// No credential: revoked credentials are accepted.
    Off,
}

/// Rules for status answers: the hosts, and the time for which answers are used.
#[derive(Clone, Debug, Default)]
pub struct StatusRules {
    /// Credentials whose status is checked.
    pub policy: StatusPolicy,
    /// Hosts in lower case, with their ports unless these are the scheme's.
    pub hosts: Vec<String>,
    /// True to permit `http` URLs, for the sandbox.
    pub allow_http: bool,
    /// Time for which an answer is used, unless the answer limits it further.
    pub answer_ttl: Duration,
}

impl StatusRules {
    /// Returns true if a status answer may be fetched from this URL.
    pub(crate) fn permits(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        let is_default = url.port().is_none();
        let is_listed =
            self.hosts.iter().any(|listed| (is_default && listed == host) || Some(listed) == with_port.as_ref());
        is_listed && (url.scheme() == "https" || (self.allow_http && url.scheme() == "http"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTPS_ONLY: bool = false;
    const ALLOW_HTTP: bool = true;

    #[test]
    fn hosts_are_compared_with_their_ports() {
        let rules = |hosts: &[&str], allow_http| StatusRules {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            allow_http,
            ..StatusRules::default()
        };
        let permits =
            |hosts: &[&str], allow_http, url: &str| rules(hosts, allow_http).permits(&Url::parse(url).unwrap());
        assert!(
            permits(&["a.example"], HTTPS_ONLY, "https://A.example/1")
                && permits(&["a.example:443"], HTTPS_ONLY, "https://a.example/1")
        );
        assert!(
            permits(&["a.example:8443"], HTTPS_ONLY, "https://a.example:8443/1")
                && permits(&["127.0.0.1:80"], ALLOW_HTTP, "http://127.0.0.1/")
        );
        for (hosts, url) in [
            (&["a.example"][..], "http://a.example/1"),
            (&["a.example"], "https://a.example:8443/1"),
            (&["a.example:8443"], "https://a.example/1"),
            (&["a.example"], "https://b.a.example/1"),
            (&["a.example"], "https://a.example.evil/1"),
            (&[], "https://a.example/1"),
        ] {
            assert!(!permits(hosts, HTTPS_ONLY, url), "{url}");
        }
    }
}
