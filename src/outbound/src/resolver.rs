//! Name resolution that hands out only addresses which may be connected to.
//!
//! The HTTP client connects to exactly the addresses returned here, so a name that changes its
//! answer between a check and the connection (DNS rebinding) gains nothing. Hosts written as
//! addresses never come here; [`crate::guard::AddressPolicy::permits_host`] judges those.

use std::io;
use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;
use tokio::net::lookup_host;

use crate::guard::AddressPolicy;

/// Why a name yields no address.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// It resolves, but to nothing that may be connected to.
    #[error("the host has no address that may be connected to")]
    Blocked,
    /// It does not resolve.
    #[error("the host name does not resolve")]
    NotFound(#[source] io::Error),
}

/// The system's resolver behind the address guard.
#[derive(Clone, Copy, Debug)]
pub struct GuardedResolver {
    policy: AddressPolicy,
}

impl GuardedResolver {
    /// A resolver that hands out what the policy permits.
    #[must_use]
    pub const fn new(policy: AddressPolicy) -> Self {
        Self { policy }
    }

    /// The addresses of a host that may be connected to, in the system's order, with port 0.
    ///
    /// # Errors
    /// The host does not resolve, or every address of it is refused.
    pub async fn addresses(self, host: &str) -> Result<Vec<SocketAddr>, ResolveError> {
        let found = lookup_host((host, 0)).await.map_err(ResolveError::NotFound)?;
        self.keep_permitted(found)
    }

    fn keep_permitted(self, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, ResolveError> {
        let mut found = found.peekable();
        if found.peek().is_none() {
            return Err(ResolveError::NotFound(io::ErrorKind::NotFound.into()));
        }
        let permitted: Vec<SocketAddr> = found.filter(|address| self.policy.permits(address.ip())).collect();
        if permitted.is_empty() { Err(ResolveError::Blocked) } else { Ok(permitted) }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = *self;
        Box::pin(async move {
            let addresses = resolver.addresses(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<SocketAddr> {
        text.split_whitespace().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect()
    }

    #[test]
    fn refused_addresses_are_dropped_and_the_others_kept_in_order() {
        let resolver = GuardedResolver::new(AddressPolicy::default());
        let kept = resolver.keep_permitted(addresses("10.0.0.1 8.8.8.8 ::1 1.1.1.1").into_iter()).unwrap();
        assert_eq!(kept, addresses("8.8.8.8 1.1.1.1"));
    }

    #[test]
    fn a_name_with_only_refused_addresses_is_blocked_and_one_with_none_is_not_found() {
        let resolver = GuardedResolver::new(AddressPolicy::default());
        assert!(matches!(resolver.keep_permitted(addresses("10.0.0.1 fd00:ec2::254").into_iter()), Err(ResolveError::Blocked)));
        assert!(matches!(resolver.keep_permitted(std::iter::empty()), Err(ResolveError::NotFound(_))));
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_blocked_unless_private_targets_are_allowed() {
        let blocked = GuardedResolver::new(AddressPolicy::default()).addresses("localhost").await;
        assert!(matches!(blocked, Err(ResolveError::Blocked)));
        assert!(GuardedResolver::new(AddressPolicy { allow_private: true }).addresses("localhost").await.is_ok());
    }
}
