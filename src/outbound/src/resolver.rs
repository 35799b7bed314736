//! Name resolution that hands out only addresses which may be connected to.
//!
//! Connections are made to exactly the addresses returned here, so a name that changes its answer
//! between a check and the connection (DNS rebinding) gains nothing. Hosts written as addresses
//! never come here; [`crate::guard::AddressPolicy::permits_host`] judges those.
//!
//! The system's resolver is asked, which knows `/etc/hosts`, search domains and `nsswitch.conf`, but
//! tells nobody for how long an answer holds. So an answer is used for [`KEPT`], no longer than the
//! shortest time that names are usually given. A failure is told to those who wait for it, and
//! forgotten.

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

/// For how long an answer is used, counted from the question.
const KEPT: Duration = Duration::from_secs(5);
/// Names that are known before those that have lapsed are thrown away.
const NAMES: usize = 1_024;

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

/// The addresses of a host that may be connected to, in the system's order, with port 0.
pub type Addresses = Result<Arc<[SocketAddr]>, Arc<ResolveError>>;

#[derive(Debug)]
struct Asked {
    at: Instant,
    answer: Shared<BoxFuture<'static, Addresses>>,
}

impl Asked {
    /// Whether the answer is still to come, or is a success; not too long ago in either case.
    fn holds(&self) -> bool {
        self.at.elapsed() < KEPT && self.answer.peek().is_none_or(Result::is_ok)
    }
}

/// The system's resolver behind the address guard, and what it has said lately.
#[derive(Debug)]
pub struct GuardedResolver {
    policy: AddressPolicy,
    asked: Mutex<HashMap<Box<str>, Asked>>,
}

impl GuardedResolver {
    /// A resolver that hands out what the policy permits.
    #[must_use]
    pub fn new(policy: AddressPolicy) -> Self {
        Self { policy, asked: Mutex::default() }
    }

    /// The addresses of a host. Who asks while the same question is under way shares its answer.
    ///
    /// # Errors
    /// The host does not resolve, or every address of it is refused.
    pub async fn addresses(&self, host: &str) -> Addresses {
        self.ask(host).await
    }

    /// None of the addresses could be connected to: the next attempt asks again.
    pub fn forget(&self, host: &str) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(host);
    }

    fn ask(&self, host: &str) -> Shared<BoxFuture<'static, Addresses>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = asked.get(host).filter(|known| known.holds()) {
            return known.answer.clone();
        }
        if asked.len() >= NAMES {
            asked.retain(|_, known| known.holds());
        }
        let answer = look_up(self.policy, host.to_owned()).boxed().shared();
        asked.insert(host.into(), Asked { at: Instant::now(), answer: answer.clone() });
        answer
    }
}

async fn look_up(policy: AddressPolicy, host: String) -> Addresses {
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
        if let Some(known) = resolver.asked.lock().unwrap().get_mut("localhost") {
            known.at -= KEPT;
        }
        assert!(!Arc::ptr_eq(&first, &resolver.addresses("localhost").await.unwrap()), "it has lapsed");

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
