//! The status of credentials: checks with the issuer whether a verified credential was revoked, before it completes a
//! transaction.
//!
//! Checks fail closed: without a usable answer the callback is refused for now, and the transaction stays pending. All
//! requests for one URL share one fetch. Fetches have owners, as memory has: when all are in use, the owner with most
//! fetches loses one. So a sender whose URLs hang delays nobody else.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use metrics::{counter, histogram};
use sakshi_authority::sdjwt::{
    self, CredentialRefusal, CredentialStatus, StatusDocument, StatusFault, StatusReference, Verifier,
};
use sakshi_domain::clock::Clock;
use sakshi_domain::limits::{
    STATUS_ANSWER_BYTES_MAX, STATUS_ANSWERS_KEPT_MAX, STATUS_BYTES_KEPT_MAX, STATUS_FAILURE_KEPT, STATUS_FETCH_MAX,
    STATUS_FETCHES_MAX,
};
use sakshi_outbound::document::{DocumentClient, DocumentError};
use tokio::time::{Instant, timeout};
use url::Url;

use crate::budget::{MemoryBudget, OwnerPath, Stage};
use crate::issuer_keys::IssuerKeys;
pub use crate::status_rules::{StatusPolicy, StatusRules};

/// The `Accept` header of a fetch.
const ACCEPTED_TYPES: &str = "application/statuslist+jwt, application/jwt, application/json;q=0.5";

/// Client that fetches status answers.
pub trait FetchStatus: fmt::Debug + Send + Sync + 'static {
    /// Fetches the body at a URL, of at most [`STATUS_ANSWER_BYTES_MAX`].
    fn fetch(self: Arc<Self>, url: Url) -> BoxFuture<'static, Result<Vec<u8>, DocumentError>>;
}

impl FetchStatus for DocumentClient {
    fn fetch(self: Arc<Self>, url: Url) -> BoxFuture<'static, Result<Vec<u8>, DocumentError>> {
        async move { DocumentClient::fetch(&self, &url, ACCEPTED_TYPES, STATUS_ANSWER_BYTES_MAX).await }.boxed()
    }
}

/// Refusal because of a credential's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRefusal {
    /// The credential is refused for good.
    Credential(CredentialRefusal),
    /// There is no usable answer now.
    Unavailable(StatusFailure),
}

/// Reason for the lack of a usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusFailure {
    /// The host is not listed in `authority.status_hosts`, or the URL is not `https`.
    #[error("the host of the status URL is not listed in authority.status_hosts, or the URL is not https")]
    HostNotListed,
    /// The fetch returned no answer.
    #[error("the status host {0}")]
    NotFetched(DocumentError),
    /// The answer cannot be used.
    #[error(transparent)]
    Unusable(#[from] StatusFault),
    /// All fetches in flight belong to owners with no more fetches than this one.
    #[error("too many status fetches are in flight")]
    Overloaded,
    /// The fetch was cancelled for an owner with fewer fetches.
    #[error("the status fetch gave way to another owner's")]
    Evicted,
}

impl StatusFailure {
    /// All codes.
    pub const CODES: [&'static str; 14] = [
        "host_not_listed",
        "unreachable",
        "blocked",
        "timed_out",
        "redirect",
        "http_status",
        "too_long",
        "malformed",
        "unsigned",
        "key_unknown",
        "foreign",
        "stale",
        "overloaded",
        "evicted",
    ];

    /// Returns a stable code for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::HostNotListed => "host_not_listed",
            Self::NotFetched(error) => error.code(),
            Self::Unusable(fault) => fault.code(),
            Self::Overloaded => "overloaded",
            Self::Evicted => "evicted",
        }
    }
}

/// The result of a fetch.
type Answer = Result<Arc<StatusDocument>, StatusFailure>;

/// A fetch, in flight or finished.
#[derive(Clone)]
struct Fetch {
    began_at: Instant,
    /// The answer, and the time until which it may be used.
    answer: Shared<BoxFuture<'static, (Answer, Instant)>>,
}

impl Fetch {
    /// Returns true while the fetch is in flight, or its answer may be used.
    fn is_fresh(&self) -> bool {
        self.answer.peek().is_none_or(|(_, until)| Instant::now() < *until)
    }

    fn bytes(&self) -> usize {
        self.answer.peek().and_then(|(answer, _)| answer.as_ref().ok()).map_or(0, |document| document.bytes())
    }
}

/// Status checks of credentials. Clones share fetches and answers.
#[derive(Clone)]
pub struct StatusChecks(Arc<Parts>);

/// Dependencies and cache of the checks.
struct Parts {
    rules: StatusRules,
    source: Arc<dyn FetchStatus>,
    verifier: Arc<Verifier>,
    issuer_keys: IssuerKeys,
    clock: Arc<dyn Clock>,
    /// Fetches in flight by owner, one unit each.
    slots: MemoryBudget,
    /// Fetches in flight and finished, by the key of the answer.
    fetches: Mutex<HashMap<String, Fetch>>,
}

impl fmt::Debug for StatusChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusChecks").field("rules", &self.0.rules).finish_non_exhaustive()
    }
}

impl StatusChecks {
    /// Creates checks with these rules.
    #[must_use]
    pub fn new(
        rules: StatusRules,
        source: Arc<dyn FetchStatus>,
        verifier: Arc<Verifier>,
        issuer_keys: IssuerKeys,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let slots = MemoryBudget::new("status_fetches", STATUS_FETCHES_MAX);
        Self(Arc::new(Parts { rules, source, verifier, issuer_keys, clock, slots, fetches: Mutex::default() }))
    }

    /// Checks the status of a verified credential from these owners. Returns the issuer's answer, if there is one.
    ///
    /// # Errors
    /// [`StatusRefusal`] when the credential is not valid, or its status is unknown now.
    pub async fn check(
        &self,
        status: &CredentialStatus,
        owners: &OwnerPath,
    ) -> Result<Option<Arc<StatusDocument>>, StatusRefusal> {
        let policy = self.0.rules.policy;
        let (outcome, result) = match status {
            _ if policy == StatusPolicy::Off => return Ok(None),
            CredentialStatus::Absent if policy == StatusPolicy::IfPresent => ("absent", Ok(None)),
            CredentialStatus::Absent => refuse(CredentialRefusal::StatusMissing),
            CredentialStatus::Malformed => refuse(CredentialRefusal::StatusMalformed),
            CredentialStatus::At(reference) => match self.load_state(reference, owners).await {
                Ok((document, None)) => ("valid", Ok(Some(document))),
                Ok((_, Some(refusal))) => refuse(refusal),
                Err(failure) => {
                    let host = reference.url.host_str().unwrap_or_default();
                    tracing::warn!(
                        reason = failure.code(),
                        status.host = host,
                        "the status of a credential is not known: {failure}"
                    );
                    (failure.code(), Err(StatusRefusal::Unavailable(failure)))
                }
            },
        };
        counter!("sakshi_credential_status_checks_total", "outcome" => outcome).increment(1);
        result
    }

    /// Loads the status document, and the refusal if the credential is not valid by it.
    async fn load_state(
        &self,
        reference: &StatusReference,
        owners: &OwnerPath,
    ) -> Result<(Arc<StatusDocument>, Option<CredentialRefusal>), StatusFailure> {
        if !self.0.rules.permits(&reference.url) {
            return Err(StatusFailure::HostNotListed);
        }
        let (fetch, was_begun) = self.fetch(reference, owners);
        let mut answer = fetch.answer.await.0;
        if !was_begun && matches!(answer, Err(StatusFailure::Evicted)) {
            // The cancelled fetch belonged to another owner, which had too many.
            answer = self.fetch(reference, owners).0.answer.await.0;
        }
        let document = answer?;
        let refusal = document.state(reference)?.refusal();
        Ok((document, refusal))
    }

    /// Joins or begins the fetch of a URL. Returns true if the fetch was begun.
    fn fetch(&self, reference: &StatusReference, owners: &OwnerPath) -> (Fetch, bool) {
        let key = reference.answer_key();
        let mut fetches = self.lock();
        if let Some(cached) = fetches.get(&key).filter(|cached| cached.is_fresh()) {
            return (cached.clone(), false);
        }
        let (parts, reference, owners) = (Arc::clone(&self.0), reference.clone(), owners.clone());
        let fetch = Fetch {
            began_at: Instant::now(),
            answer: async move { parts.fetch_answer(&reference, owners).await }.boxed().shared(),
        };
        // The fetch runs to its end even if nobody waits for it, so that the slot of its owner is freed.
        tokio::spawn(fetch.answer.clone());
        make_room(&mut fetches);
        fetches.insert(key, fetch.clone());
        (fetch, true)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Fetch>> {
        self.0.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the outcome of a check that refuses the credential for good.
const fn refuse<T>(refusal: CredentialRefusal) -> (&'static str, Result<T, StatusRefusal>) {
    (refusal.code(), Err(StatusRefusal::Credential(refusal)))
}

/// Removes stale answers when there are too many, and then the older half if there are still too many.
fn make_room(fetches: &mut HashMap<String, Fetch>) {
    if fetches.len() >= STATUS_ANSWERS_KEPT_MAX {
        fetches.retain(|_, fetch| fetch.is_fresh());
    }
    if fetches.len() >= STATUS_ANSWERS_KEPT_MAX {
        drop_older_half(fetches, |_| true);
    }
}

/// Removes the older half of the answers while they take too much memory.
fn make_room_for_bytes(fetches: &mut HashMap<String, Fetch>) {
    while fetches.values().map(Fetch::bytes).sum::<usize>() > STATUS_BYTES_KEPT_MAX {
        drop_older_half(fetches, |fetch| fetch.bytes() > 0);
    }
}

/// Removes the older half of the finished fetches that `is_candidate` selects.
fn drop_older_half(fetches: &mut HashMap<String, Fetch>, is_candidate: impl Fn(&Fetch) -> bool) {
    let is_removable = |fetch: &Fetch| fetch.answer.peek().is_some() && is_candidate(fetch);
    let mut ages: Vec<Instant> =
        fetches.values().filter(|fetch| is_removable(fetch)).map(|fetch| fetch.began_at).collect();
    ages.sort_unstable();
    let Some(median) = ages.get(ages.len() / 2).copied() else { return };
    fetches.retain(|_, fetch| fetch.began_at > median || !is_removable(fetch));
}

impl Parts {
    /// Fetches and verifies the issuer's answer on a credential's status. Also returns the time until which the answer
    /// may be used.
    async fn fetch_answer(&self, reference: &StatusReference, owners: OwnerPath) -> (Answer, Instant) {
        let began_at = Instant::now();
        let answer = timeout(STATUS_FETCH_MAX, self.fetch_document(reference, owners)).await;
        let answer = answer.unwrap_or(Err(StatusFailure::NotFetched(DocumentError::TimedOut)));
        let result = answer.as_ref().map_or_else(|failure| failure.code(), |_| "fetched");
        histogram!("sakshi_credential_status_fetch_seconds", "result" => result).record(began_at.elapsed());
        if answer.as_ref().is_ok_and(|document| document.bytes() > 0) {
            make_room_for_bytes(&mut self.fetches.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let ttl = match &answer {
            Ok(document) => {
                document.lifetime.map_or(self.rules.answer_ttl, |lifetime| lifetime.min(self.rules.answer_ttl))
            }
            // The next request fetches again.
            Err(StatusFailure::Evicted | StatusFailure::Overloaded) => Duration::ZERO,
            Err(_) => STATUS_FAILURE_KEPT,
        };
        (answer, Instant::now() + ttl)
    }

    /// Fetches an answer and verifies its signature.
    async fn fetch_document(&self, reference: &StatusReference, owners: OwnerPath) -> Answer {
        let slot = self.slots.take(owners, Stage::Waiting, 1).map_err(|_| StatusFailure::Overloaded)?;
        let body = tokio::select! {
            body = Arc::clone(&self.source).fetch(reference.url.clone()) => body.map_err(StatusFailure::NotFetched)?,
            () = slot.wait_until_revoked() => return Err(StatusFailure::Evicted),
        };
        let read_document = || self.verifier.read_status(reference, &body, self.clock.now());
        let changes = self.issuer_keys.changes();
        let document = match read_document() {
            // The issuer may have a new key since its keys were read.
            Err(StatusFault::KeyUnknown) if self.reread_issuer_keys(&body, changes).await => read_document()?,
            result => result?,
        };
        if !reference.is_list() {
            // An answer about another credential is not cached.
            document.state(reference)?;
        }
        Ok(Arc::new(document))
    }

    /// Reads the issuer's keys again for an answer. Returns true if the keys have changed since `changes`.
    async fn reread_issuer_keys(&self, body: &[u8], changes: u64) -> bool {
        match sdjwt::status_key_id(body) {
            Some(key_id) => self.issuer_keys.reread(&key_id, changes).await,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures_util::future::{join_all, pending, ready};
    use sakshi_authority::sdjwt::{Expectation, Jwks, KeyBinding, TrustedIssuer};
    use sakshi_domain::claims::ClaimSet;
    use sakshi_domain::clock::SystemClock;
    use sakshi_domain::ids::{ClientId, TxnId};
    use sakshi_kit::issuer::{ISSUER, KID, TestIssuer, now};
    use serde_json::json;
    use tokio::task::yield_now;

    use super::*;
    use crate::budget::Owner;

    const HOST: &str = "status.example";

    /// Host that answers all paths except those with `hangs`.
    struct Host {
        issuer: TestIssuer,
        fetches: AtomicUsize,
    }

    impl fmt::Debug for Host {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Host")
        }
    }

    impl FetchStatus for Host {
        fn fetch(self: Arc<Self>, url: Url) -> BoxFuture<'static, Result<Vec<u8>, DocumentError>> {
            self.fetches.fetch_add(1, SeqCst);
            if url.path().contains("hangs") {
                return pending().boxed();
            }
            let payload = json!({"iss": ISSUER, "sub": url.as_str(), "status": "valid", "iat": now()});
            let answer = self.issuer.issuer.sign(&json!({"alg": "ES256", "kid": KID}), &payload).unwrap();
            ready(Ok(answer.into_bytes())).boxed()
        }
    }

    struct Fixture {
        host: Arc<Host>,
        verifier: Arc<Verifier>,
        checks: StatusChecks,
    }

    impl Fixture {
        fn new() -> Self {
            let issuer = TestIssuer::generate();
            let jwks = Jwks::parse(issuer.jwks().to_string().as_bytes()).unwrap();
            let verifier =
                Arc::new(Verifier::new(vec![TrustedIssuer { issuer: ISSUER.into(), jwks }], KeyBinding::WhenPresent));
            let host = Arc::new(Host { issuer, fetches: AtomicUsize::new(0) });
            let rules = StatusRules {
                hosts: vec![HOST.into()],
                answer_ttl: Duration::from_secs(300),
                ..StatusRules::default()
            };
            let (source, verified) = (Arc::clone(&host) as Arc<dyn FetchStatus>, Arc::clone(&verifier));
            let checks = StatusChecks::new(rules, source, verified, IssuerKeys::default(), Arc::new(SystemClock));
            Self { host, verifier, checks }
        }

        /// Returns the status of a credential that names this path.
        fn status(&self, path: &str) -> CredentialStatus {
            let mut draft = self.host.issuer.valid_draft();
            draft.payload["status"] = format!("https://{HOST}/{path}").into();
            let nonce = TxnId::generate(ClientId::generate().partition(), 0);
            let expected = Expectation { nonce, audience: "", now: SystemClock.now(), requested: ClaimSet::default() };
            self.verifier.verify(&self.host.issuer.sign(&draft), &expected).unwrap().status
        }
    }

    fn owners(last: u8) -> OwnerPath {
        OwnerPath::new([Owner::Address(IpAddr::from([203, 0, 113, last]))])
    }

    fn unavailable(failure: StatusFailure) -> Option<StatusRefusal> {
        Some(StatusRefusal::Unavailable(failure))
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_fetches_of_a_sender_give_way_to_another_sender() {
        let fixture = Fixture::new();
        let hanging: Vec<_> = (0..STATUS_FETCHES_MAX + 10)
            .map(|number| {
                let (checks, status) = (fixture.checks.clone(), fixture.status(&format!("hangs/{number}")));
                tokio::spawn(async move { checks.check(&status, &owners(1)).await.err() })
            })
            .collect();
        while fixture.host.fetches.load(SeqCst) < STATUS_FETCHES_MAX {
            yield_now().await;
        }
        assert!(fixture.checks.check(&fixture.status("good"), &owners(2)).await.is_ok());
        let answers: Vec<_> = join_all(hanging).await.into_iter().map(Result::unwrap).collect();
        // One hanging fetch gives way; ten more than the maximum are refused.
        let count = |failure| answers.iter().filter(|answer| **answer == unavailable(failure)).count();
        assert_eq!((count(StatusFailure::Overloaded), count(StatusFailure::Evicted)), (10, 1));
        assert_eq!(count(StatusFailure::NotFetched(DocumentError::TimedOut)), STATUS_FETCHES_MAX - 1);
        assert_eq!(fixture.checks.0.slots.bytes_held(), 0, "every slot is freed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_without_a_waiter_continues_and_its_answer_is_used() {
        let fixture = Fixture::new();
        let status = fixture.status("good");
        drop(timeout(Duration::ZERO, fixture.checks.check(&status, &owners(1))).await);
        assert!(fixture.checks.check(&status, &owners(2)).await.is_ok());
        assert_eq!(fixture.host.fetches.load(SeqCst), 1);
        tokio::time::advance(Duration::from_secs(301)).await;
        assert!(fixture.checks.check(&status, &owners(2)).await.is_ok());
        assert_eq!(fixture.host.fetches.load(SeqCst), 2, "the first answer is too old");
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_cached_up_to_a_bound() {
        let fixture = Fixture::new();
        let CredentialStatus::At(reference) = fixture.status("good") else { panic!("no reference") };
        for number in 0..STATUS_ANSWERS_KEPT_MAX + 100 {
            let (fetch, _) = fixture.checks.fetch(&reference, &owners(1));
            fetch.answer.await.0.unwrap();
            tokio::time::advance(Duration::from_millis(1)).await;
            let mut fetches = fixture.checks.lock();
            let fetch = fetches.remove(&reference.answer_key()).unwrap();
            fetches.insert(number.to_string(), fetch);
            assert!(fetches.len() <= STATUS_ANSWERS_KEPT_MAX);
        }
        assert!(fixture.checks.lock().len() >= STATUS_ANSWERS_KEPT_MAX / 2);
    }
}
