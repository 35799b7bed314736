//! Name resolution that returns only permitted addresses.
//!
//! Connections are made to exactly these addresses, so DNS rebinding (a name that changes between check and connection)
//! has no effect. Hosts written as addresses are judged by [`AddressPolicy::permits_host`] instead.
//!
//! The system's resolver respects `/etc/hosts`, search domains and `nsswitch.conf`, but does not return
//! a TTL. So answers are cached for [`CACHE_TTL`], which is shorter than most TTLs. While the resolver
//! fails or is slow, the last answer serves for [`STALE_MAX`] (as in RFC 8767). Failures are not cached.
//!
//! A host has one lookup at a time, and each takes a thread until it ends. Hosts whose last lookup failed have separate
//! threads, so repeated lookups do not delay the lookups of other hosts.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};

use crate::getaddrinfo;
use crate::guard::AddressPolicy;

/// Time for which an answer is used, from the start of its lookup.
const CACHE_TTL: Duration = Duration::from_secs(5);
/// Time for which an answer is used while the resolver fails. It is as long as a connection gets new webhooks.
const STALE_MAX: Duration = Duration::from_secs(60);
/// Time after which a lookup is slow, and the last answer is used, if there is one.
const SLOW_AFTER: Duration = Duration::from_secs(2);
/// Number of cached hosts at which those of no more use are removed.
const CACHE_ENTRIES_MAX: usize = 1_024;
/// Maximum lookups in flight of hosts whose last lookup did not fail.
const LOOKUPS_MAX: usize = 256;
/// Maximum lookups in flight of hosts whose last lookup failed.
const REPEATED_LOOKUPS_MAX: usize = 64;
/// First pause before a failed lookup is repeated; it doubles each time.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Reason why a name yields no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum ResolveError {
    /// The policy permits none of the host's addresses.
    #[error("the host has no address that may be connected to")]
    Blocked,
    /// The host has no address.
    #[error("the host name does not resolve")]
    NotFound,
    /// The resolver of this installation failed; the host may have an address.
    #[error("the resolver failed")]
    Unavailable,
    /// This machine ran out of file descriptors or memory for the lookup.
    #[error("this machine has no resources for a lookup")]
    Exhausted,
}

/// The permitted addresses of a host, in the system's order, with port 0.
pub(crate) type Addresses = Result<Arc<[SocketAddr]>, ResolveError>;

/// Function that finds the addresses of a host; may block the thread.
type FindAddresses = Arc<dyn Fn(&str) -> Result<Vec<SocketAddr>, ResolveError> + Send + Sync>;

/// A lookup of a host, pending or ended.
#[derive(Clone)]
struct Lookup {
    started: Instant,
    answer: Shared<BoxFuture<'static, Addresses>>,
    /// The last answer before this lookup, and the start of its lookup.
    stale: Option<(Instant, Arc<[SocketAddr]>)>,
}

impl Lookup {
    /// Returns true if the lookup is pending, or successful and recent.
    fn is_fresh(&self) -> bool {
        self.answer.peek().is_none_or(|answer| answer.is_ok() && self.started.elapsed() < CACHE_TTL)
    }

    /// Returns true if the resolver itself failed. That the host has no address is an answer.
    fn has_failed(&self) -> bool {
        self.answer.peek().is_some_and(|answer| *answer == Err(ResolveError::Unavailable))
    }

    /// Returns the last answer that may still be used, and the start of its lookup.
    fn last_answer(&self) -> Option<(Instant, Arc<[SocketAddr]>)> {
        let answer =
            self.answer.peek().and_then(|answer| answer.clone().ok()).map(|addresses| (self.started, addresses));
        answer.or_else(|| self.stale.clone()).filter(|(started, _)| started.elapsed() < STALE_MAX)
    }

    /// Returns true if a later lookup of the host may need this one.
    fn is_useful(&self) -> bool {
        self.is_fresh() || (self.has_failed() && self.started.elapsed() < STALE_MAX) || self.last_answer().is_some()
    }
}

/// The system's resolver with the address guard and a cache.
pub(crate) struct GuardedResolver {
    policy: AddressPolicy,
    find_addresses: FindAddresses,
    /// The last lookup of each host.
    lookups: Mutex<HashMap<Box<str>, Lookup>>,
    slots: Arc<Semaphore>,
    /// Slots for hosts whose last lookup failed.
    repeated_slots: Arc<Semaphore>,
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedResolver").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl GuardedResolver {
    /// Creates a resolver that returns the addresses that the policy permits.
    pub(crate) fn new(policy: AddressPolicy) -> Self {
        Self::with_lookup(policy, Arc::new(getaddrinfo::addresses))
    }

    /// Creates a resolver that finds addresses with this function.
    pub(crate) fn with_lookup(policy: AddressPolicy, find_addresses: FindAddresses) -> Self {
        let [slots, repeated_slots] =
            [LOOKUPS_MAX, REPEATED_LOOKUPS_MAX].map(|permits| Arc::new(Semaphore::new(permits)));
        Self { policy, find_addresses, lookups: Mutex::default(), slots, repeated_slots }
    }

    /// Returns the addresses of a host, from the cache or by one lookup.
    ///
    /// # Errors
    /// [`ResolveError`] when the host does not resolve, or none of its addresses is permitted.
    pub(crate) async fn addresses(&self, host: &str) -> Addresses {
        let Lookup { started, answer, stale } = self.lookup(host);
        let Some((_, stale)) = stale.filter(|(started, _)| started.elapsed() < STALE_MAX) else { return answer.await };
        match timeout_at(started + SLOW_AFTER, answer).await {
            Ok(Err(ResolveError::Unavailable)) | Err(_) => Ok(stale),
            Ok(answer) => answer,
        }
    }

    /// Repeats the lookup of a host, with pauses, while the resolver fails. Returns `false` if there is no answer by
    /// `until`; the absence of an address is an answer.
    pub(crate) async fn wait_for_answer(&self, host: &str, until: Instant) -> bool {
        let mut pause = PAUSE_FIRST;
        loop {
            match timeout_at(until, self.addresses(host)).await {
                Ok(Err(ResolveError::Unavailable)) if Instant::now() + pause < until => sleep(pause).await,
                Ok(Err(ResolveError::Unavailable)) | Err(_) => return false,
                Ok(_) => return true,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Returns the pending or recent lookup of a host, or starts one.
    fn lookup(&self, host: &str) -> Lookup {
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        let last = lookups.get(host);
        if let Some(fresh) = last.filter(|last| last.is_fresh()) {
            return fresh.clone();
        }
        let slots = Arc::clone(if last.is_some_and(Lookup::has_failed) { &self.repeated_slots } else { &self.slots });
        let answer = resolve(self.policy, Arc::clone(&self.find_addresses), host.to_owned(), slots).boxed().shared();
        let lookup = Lookup { started: Instant::now(), answer, stale: last.and_then(Lookup::last_answer) };
        // The lookup runs to its end even if nobody waits for it, so that its host has one at a time.
        tokio::spawn(lookup.answer.clone());
        if lookups.len() >= CACHE_ENTRIES_MAX {
            lookups.retain(|_, lookup| lookup.is_useful());
        }
        lookups.insert(host.into(), lookup.clone());
        lookup
    }

    /// Removes a host from the cache, because none of its addresses could be connected to.
    pub(crate) fn forget(&self, host: &str) {
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner).remove(host);
    }
}

/// Looks up a host, when a slot is free. Returns the permitted addresses.
async fn resolve(
    policy: AddressPolicy,
    find_addresses: FindAddresses,
    host: String,
    slots: Arc<Semaphore>,
) -> Addresses {
    let slot = slots.acquire_owned().await;
    let lookup = spawn_blocking(move || {
        let addresses = find_addresses(&host);
        drop(slot);
        addresses
    });
    // The lookup is never cancelled and does not panic.
    keep_permitted(policy, &lookup.await.map_err(|_| ResolveError::Unavailable)??)
}

/// Returns the addresses that the policy permits, in their order. Without any, the host is not found or blocked.
fn keep_permitted(policy: AddressPolicy, all: &[SocketAddr]) -> Addresses {
    let permitted: Arc<[SocketAddr]> = all.iter().copied().filter(|address| policy.permits(address.ip())).collect();
    match (all.is_empty(), permitted.is_empty()) {
        (true, _) => Err(ResolveError::NotFound),
        (false, true) => Err(ResolveError::Blocked),
        (false, false) => Ok(permitted),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use tokio::task::yield_now;
    use tokio::time::{advance, timeout};

    use super::*;

    const PERMISSIVE: AddressPolicy = AddressPolicy { allow_private: true };

    /// Parses addresses that are separated by spaces.
    fn addresses(text: &str) -> Vec<SocketAddr> {
        text.split_whitespace().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect()
    }

    /// Creates a resolver that answers the n-th lookup with `answer(n)`; also returns the count of lookups.
    fn resolver_answering(
        answer: impl Fn(usize) -> Result<Vec<SocketAddr>, ResolveError> + Send + Sync + 'static,
    ) -> (GuardedResolver, Arc<AtomicUsize>) {
        let lookups = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&lookups);
        (
            GuardedResolver::with_lookup(PERMISSIVE, Arc::new(move |_| answer(counter.fetch_add(1, Ordering::SeqCst)))),
            lookups,
        )
    }

    /// Waits for a future, but fails after a time limit.
    async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
        timeout(Duration::from_secs(20), future).await.unwrap()
    }

    #[test]
    fn refused_addresses_are_dropped_and_the_order_stays() {
        let permitted = keep_permitted(AddressPolicy::default(), &addresses("10.0.0.1 8.8.8.8 ::1 1.1.1.1")).unwrap();
        assert_eq!(*permitted, addresses("8.8.8.8 1.1.1.1"));
    }

    #[test]
    fn a_name_without_permitted_addresses_is_blocked_or_not_found() {
        let policy = AddressPolicy::default();
        assert_eq!(keep_permitted(policy, &addresses("10.0.0.1 fd00:ec2::254")), Err(ResolveError::Blocked));
        assert_eq!(keep_permitted(policy, &[]), Err(ResolveError::NotFound));
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_blocked_unless_private_targets_are_allowed() {
        assert_eq!(
            GuardedResolver::new(AddressPolicy::default()).addresses("localhost").await,
            Err(ResolveError::Blocked)
        );
        assert!(GuardedResolver::new(PERMISSIVE).addresses("localhost").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_cached_for_a_while_and_a_failure_is_not() {
        let (resolver, lookups) = resolver_answering(|_| Ok(addresses("192.0.2.1")));
        for (passed, expected) in
            [(Duration::ZERO, 1), (CACHE_TTL - Duration::from_millis(1), 1), (Duration::from_millis(1), 2)]
        {
            advance(passed).await;
            assert!(resolver.addresses("a.example").await.is_ok());
            assert_eq!(lookups.load(Ordering::SeqCst), expected);
        }
        resolver.forget("a.example");
        assert!(resolver.addresses("a.example").await.is_ok());
        assert_eq!(lookups.load(Ordering::SeqCst), 3);

        let (resolver, lookups) = resolver_answering(|_| Err(ResolveError::NotFound));
        for expected in [1, 2] {
            assert_eq!(resolver.addresses("a.example").await, Err(ResolveError::NotFound));
            assert_eq!(lookups.load(Ordering::SeqCst), expected);
        }
    }

    #[tokio::test]
    async fn a_host_has_one_lookup_at_a_time_which_ends_even_without_a_waiter() {
        let (unblock, blocked) = mpsc::channel::<()>();
        let blocked = Mutex::new(blocked);
        let (resolver, lookups) = resolver_answering(move |_| {
            let _ = blocked.lock().unwrap().recv();
            Ok(addresses("192.0.2.1"))
        });
        let wait_briefly = || resolver.wait_for_answer("a.example", Instant::now() + Duration::from_millis(1));
        assert_eq!(tokio::join!(wait_briefly(), wait_briefly()), (false, false));
        let lookup = resolver.lookup("a.example");
        unblock.send(()).unwrap();
        let wait_for_end = async {
            while lookup.answer.peek().is_none() {
                yield_now().await;
            }
        };
        within_timeout(wait_for_end).await;
        assert!(resolver.addresses("a.example").await.is_ok());
        assert_eq!(lookups.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_is_used_for_a_minute_while_the_resolver_fails() {
        for failure in [ResolveError::Unavailable, ResolveError::NotFound, ResolveError::Blocked] {
            let (resolver, _) =
                resolver_answering(move |lookup| if lookup == 0 { Ok(addresses("192.0.2.1")) } else { Err(failure) });
            let first = resolver.addresses("a.example").await;
            advance(CACHE_TTL).await;
            let second = resolver.addresses("a.example").await;
            if failure != ResolveError::Unavailable {
                assert_eq!(second, Err(failure), "that a host has no address is an answer, not a failure");
                continue;
            }
            advance(STALE_MAX - CACHE_TTL - Duration::from_millis(1)).await;
            assert_eq!((&second, resolver.addresses("a.example").await), (&first, first.clone()));
            advance(Duration::from_millis(1)).await;
            assert_eq!(resolver.addresses("a.example").await, Err(ResolveError::Unavailable));
        }
    }

    #[tokio::test]
    async fn the_last_answer_is_used_while_the_resolver_is_silent() {
        let (unblock, blocked) = mpsc::channel::<()>();
        let blocked = Mutex::new(blocked);
        let (resolver, _) = resolver_answering(move |lookup| {
            if lookup > 0 {
                let _ = blocked.lock().unwrap().recv();
            }
            Ok(addresses("192.0.2.1"))
        });
        let first = resolver.addresses("a.example").await;
        if let Some(lookup) = resolver.lookups.lock().unwrap().get_mut("a.example") {
            lookup.started -= CACHE_TTL;
        }
        assert_eq!(within_timeout(resolver.addresses("a.example")).await, first);
        drop(unblock);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_looked_up_again_until_the_resolver_answers() {
        for answer in [Ok(addresses("192.0.2.1")), Err(ResolveError::NotFound), Err(ResolveError::Exhausted)] {
            let (resolver, lookups) =
                resolver_answering(
                    move |lookup| if lookup < 4 { Err(ResolveError::Unavailable) } else { answer.clone() },
                );
            assert!(resolver.wait_for_answer("a.example", Instant::now() + Duration::from_secs(30)).await);
            assert_eq!(lookups.load(Ordering::SeqCst), 5);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_of_a_name_stop_at_the_deadline() {
        let (resolver, lookups) = resolver_answering(|_| Err(ResolveError::Unavailable));
        let began = Instant::now();
        assert!(!resolver.wait_for_answer("a.example", began + Duration::from_secs(30)).await);
        let waited = began.elapsed();
        assert!(waited <= Duration::from_secs(30) && waited > Duration::from_secs(30) - PAUSE_MAX, "{waited:?}");
        assert!((10..=30).contains(&lookups.load(Ordering::SeqCst)), "{lookups:?}");
        assert!(!resolver.wait_for_answer("a.example", began).await, "the deadline has already passed");
    }

    #[tokio::test]
    async fn repeated_lookups_of_failed_names_delay_no_other_name() {
        let (unblock, blocked) = mpsc::channel::<()>();
        let blocked = Mutex::new(blocked);
        let failing_lookups = AtomicUsize::new(0);
        let resolver = GuardedResolver::with_lookup(
            PERMISSIVE,
            Arc::new(move |host| {
                if host == "a.example" {
                    return Ok(addresses("192.0.2.1"));
                }
                // The first lookup of each host fails at once; repeated lookups hang.
                if failing_lookups.fetch_add(1, Ordering::SeqCst) >= LOOKUPS_MAX {
                    let _ = blocked.lock().unwrap().recv();
                }
                Err(ResolveError::Unavailable)
            }),
        );
        let hosts: Vec<String> = (0..LOOKUPS_MAX).map(|number| format!("{number}.example")).collect();
        for host in &hosts {
            assert_eq!(resolver.addresses(host).await, Err(ResolveError::Unavailable));
        }
        let repeated: Vec<Lookup> = hosts.iter().map(|host| resolver.lookup(host)).collect();
        for _ in &repeated {
            yield_now().await;
        }
        assert!(within_timeout(resolver.addresses("a.example")).await.is_ok());
        assert!(
            repeated.iter().all(|lookup| lookup.answer.peek().is_none()),
            "repeated lookups hang, or wait for a slot of those that hang"
        );
        assert_eq!(resolver.slots.available_permits(), LOOKUPS_MAX);
        drop(unblock);
    }
}
