//! Checks of targets: only this machine, or a machine that the caller declares to own.

use thiserror::Error;
use url::{Host, Url};

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum TargetRefusal {
    #[error("{0} is not this machine; only its owner may start a load test, with --i-own-this-target")]
    Foreign(String),
    #[error("{0} is not an http or https address")]
    Scheme(String),
}

/// Checks that the target may be tested.
///
/// # Errors
/// [`TargetRefusal::Foreign`] if the target is not on this machine and not owned; [`TargetRefusal::Scheme`].
pub(crate) fn check_target(target: &Url, is_owned: bool) -> Result<(), TargetRefusal> {
    if !matches!(target.scheme(), "http" | "https") {
        return Err(TargetRefusal::Scheme(target.to_string()));
    }
    let is_local = match target.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if is_local || is_owned { Ok(()) } else { Err(TargetRefusal::Foreign(target.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_a_target_unless_the_caller_owns_the_target() {
        for here in ["http://127.0.0.1:8080", "http://127.9.9.9", "http://[::1]:1", "http://localhost"] {
            assert_eq!(check_target(&here.parse().unwrap(), false), Ok(()), "{here}");
        }
        for foreign in
            ["http://10.0.0.1", "https://example.org", "http://localhost.example.org", "http://[::ffff:7f00:1]"]
        {
            let target = foreign.parse().unwrap();
            assert!(matches!(check_target(&target, false), Err(TargetRefusal::Foreign(_))), "{foreign}");
            assert_eq!(check_target(&target, true), Ok(()), "{foreign}");
        }
        assert!(matches!(check_target(&"ftp://127.0.0.1".parse().unwrap(), true), Err(TargetRefusal::Scheme(_))));
    }
}
