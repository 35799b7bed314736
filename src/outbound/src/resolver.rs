//! Name resolution that returns only addresses which may be connected to.
//!
//! Connections are made to exactly these addresses, so DNS rebinding (a name that changes between check
//! and connection) has no effect. Hosts written as addresses are judged by
//! [`AddressPolicy::permits_host`] instead.
//!
//! The system's resolver respects `/etc/hosts`, search domains and `nsswitch.conf`, but does not return
//! a TTL. So answers are cached for [`CACHE_TTL`], which is shorter than most TTLs. Failures are not cached.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use thiserror::Error;
use tokio::net::lookup_host;

use crate::guard::AddressPolicy;

/// How long an answer is used, from the start of its lookup.
const CACHE_TTL: Duration = Duration::from_secs(5);
/// With this many names, stale entries are removed from the cache.
const CACHE_ENTRIES_MAX: usize = 1_024;

/// Why a name yields no address.
#[derive(Debug, Error)]
pub(crate) enum ResolveError {
    /// None of its addresses may be connected to.
    #[error("the host has no address that may be connected to")]
    Blocked,
    /// It does not resolve.
    #[error("the host name does not resolve")]
    NotFound(#[source] io::Error),
}

/// The permitted addresses of a host, in the system's order, with port 0.
pub(crate) type Addresses = Result<Arc<[SocketAddr]>, Arc<ResolveError>>;

#[derive(Debug)]
struct Lookup {
    started: Instant,
    answer: Shared<BoxFuture<'static, Addresses>>,
}

impl Lookup {
    /// Whether it is recent, and pending or successful.
    fn is_fresh(&self) -> bool {
        self.started.elapsed() < CACHE_TTL && self.answer.peek().is_none_or(Result::is_ok)
    }
}

/// The system's resolver with the address guard and a cache.
#[derive(Debug)]
pub(crate) struct GuardedResolver {
    policy: AddressPolicy,
    lookups: Mutex<HashMap<Box<str>, Lookup>>,
}

impl GuardedResolver {
    /// A resolver that returns the addresses that the policy permits.
    pub(crate) fn new(policy: AddressPolicy) -> Self {
        Self { policy, lookups: Mutex::default() }
    }

    /// The addresses of a host. Concurrent calls for the same host share one lookup.
    ///
    /// # Errors
    /// The host does not resolve, or none of its addresses is permitted.
    pub(crate) fn addresses(&self, host: &str) -> Shared<BoxFuture<'static, Addresses>> {
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lookups.get(host).filter(|known| known.is_fresh()) {
            return known.answer.clone();
        }
        if lookups.len() >= CACHE_ENTRIES_MAX {
            lookups.retain(|_, known| known.is_fresh());
        }
        let answer = resolve(self.policy, host.to_owned()).boxed().shared();
        lookups.insert(host.into(), Lookup { started: Instant::now(), answer: answer.clone() });
        answer
    }

    /// Removes a host from the cache, because none of its addresses could be connected to.
    pub(crate) fn forget(&self, host: &str) {
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner).remove(host);
    }
}

async fn resolve(policy: AddressPolicy, host: String) -> Addresses {
    let found = lookup_host((host, 0)).await.map_err(ResolveError::NotFound)?;
    Ok(keep_permitted(policy, found)?)
}

fn keep_permitted(policy: AddressPolicy, found: impl Iterator<Item = SocketAddr>) -> Result<Arc<[SocketAddr]>, ResolveError> {
    let mut found = found.peekable();
    if found.peek().is_none() {
        return Err(ResolveError::NotFound(io::ErrorKind::NotFound.into()));
    }
    let permitted: Arc<[SocketAddr]> = found.filter(|address| policy.permits(address.ip())).collect();
    if permitted.is_empty() { Err(ResolveError::Blocked) } else { Ok(permitted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<SocketAddr> {
        text.split_whitespace().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect()
    }

    #[test]
    fn refused_addresses_are_dropped_and_the_others_kept_in_order() {
        let kept = keep_permitted(AddressPolicy::default(), addresses("10.0.0.1 8.8.8.8 ::1 1.1.1.1").into_iter()).unwrap();
        assert_eq!(*kept, addresses("8.8.8.8 1.1.1.1"));
    }

    #[test]
    fn a_name_with_only_refused_addresses_is_blocked_and_one_with_none_is_not_found() {
        let policy = AddressPolicy::default();
        assert!(matches!(keep_permitted(policy, addresses("10.0.0.1 fd00:ec2::254").into_iter()), Err(ResolveError::Blocked)));
        assert!(matches!(keep_permitted(policy, std::iter::empty()), Err(ResolveError::NotFound(_))));
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_blocked_unless_private_targets_are_allowed() {
        let blocked = GuardedResolver::new(AddressPolicy::default()).addresses("localhost").await;
        assert!(blocked.is_err_and(|error| matches!(*error, ResolveError::Blocked)));
        assert!(GuardedResolver::new(AddressPolicy { allow_private: true }).addresses("localhost").await.is_ok());
    }

    #[tokio::test]
    async fn an_answer_is_used_again_for_a_while_and_a_failure_is_not() {
        let resolver = GuardedResolver::new(AddressPolicy { allow_private: true });
        let first = resolver.addresses("localhost").await.unwrap();
        assert!(Arc::ptr_eq(&first, &resolver.addresses("localhost").await.unwrap()));
        resolver.forget("localhost");
        assert!(!Arc::ptr_eq(&first, &resolver.addresses("localhost").await.unwrap()));
        if let Some(known) = resolver.lookups.lock().unwrap().get_mut("localhost") {
            known.started -= CACHE_TTL;
        }
        assert!(!Arc::ptr_eq(&first, &resolver.addresses("localhost").await.unwrap()), "it is stale");

        let failed = resolver.addresses("no-such-host.invalid").await.unwrap_err();
        assert!(!Arc::ptr_eq(&failed, &resolver.addresses("no-such-host.invalid").await.unwrap_err()));
    }

    #[tokio::test]
    async fn questions_for_one_name_at_the_same_time_are_one() {
        let resolver = GuardedResolver::new(AddressPolicy { allow_private: true });
        let (one, other) = tokio::join!(resolver.addresses("localhost"), resolver.addresses("localhost"));
        assert!(Arc::ptr_eq(&one.unwrap(), &other.unwrap()));
    }
}
