//! Admission of targets: this machine, or one that the caller declares to own.

use thiserror::Error;
use url::{Host, Url};

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum TargetRefusal {
    #[error("{0} is not this machine; a load test of it is for its owner to start, with --i-own-this-target")]
    Foreign(String),
    #[error("{0} is not an http or https address")]
    Scheme(String),
}

/// # Errors
/// The target is not on this machine, and is not `owned`.
pub(crate) fn admit(target: &Url, owned: bool) -> Result<(), TargetRefusal> {
    if !matches!(target.scheme(), "http" | "https") {
        return Err(TargetRefusal::Scheme(target.to_string()));
    }
    let here = match target.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if here || owned { Ok(()) } else { Err(TargetRefusal::Foreign(target.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_driven_unless_the_target_is_ones_own() {
        for here in ["http://127.0.0.1:8080", "http://127.9.9.9", "http://[::1]:1", "http://localhost"] {
            assert_eq!(admit(&here.parse().unwrap(), false), Ok(()), "{here}");
        }
        for foreign in
            ["http://10.0.0.1", "https://example.org", "http://localhost.example.org", "http://[::ffff:7f00:1]"]
        {
            let target = foreign.parse().unwrap();
            assert!(matches!(admit(&target, false), Err(TargetRefusal::Foreign(_))), "{foreign}");
            assert_eq!(admit(&target, true), Ok(()), "{foreign}");
        }
        assert!(matches!(admit(&"ftp://127.0.0.1".parse().unwrap(), true), Err(TargetRefusal::Scheme(_))));
    }
}
