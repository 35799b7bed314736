//! The status of credentials: asks the issuer whether a verified credential was revoked, before a transaction is
//! completed with it.
//!
//! It fails closed: without a usable answer the callback is refused for now and the transaction stays pending. All
//! requests for one URL share one fetch. Fetches have owners, as memory has: when none is free, the owner with most of
//! them loses one. A sender whose URLs hang thus delays nobody else.

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

const ACCEPTED: &str = "application/statuslist+jwt, application/jwt, application/json;q=0.5";

/// Credentials whose status is checked; the setting `authority.status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusPolicy {
    /// Every credential must have a status.
    Require,
    /// Every credential that has one.
    #[default]
    IfPresent,
    /// None: revoked credentials are accepted.
    Off,
}

/// The hosts of status answers, and the time for which answers are used.
#[derive(Clone, Debug, Default)]
pub struct StatusRules {
    /// Credentials whose status is checked.
    pub policy: StatusPolicy,
    /// Hosts, each with its port if it is not the scheme's, in lower case.
    pub hosts: Vec<String>,
    /// Permit `http` URLs, for the sandbox.
    pub allow_http: bool,
    /// Time for which an answer is used, unless it says less.
    pub kept: Duration,
}

/// Client that fetches status answers.
pub trait FetchStatus: fmt::Debug + Send + Sync + 'static {
    /// Fetches the body at a URL, of at most [`STATUS_ANSWER_BYTES_MAX`].
    fn fetch(self: Arc<Self>, url: Url) -> BoxFuture<'static, Result<Vec<u8>, DocumentError>>;
}

impl FetchStatus for DocumentClient {
    fn fetch(self: Arc<Self>, url: Url) -> BoxFuture<'static, Result<Vec<u8>, DocumentError>> {
        async move { DocumentClient::fetch(&self, &url, ACCEPTED, STATUS_ANSWER_BYTES_MAX).await }.boxed()
    }
}

/// Refusal because of a credential's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRefusal {
    /// The credential is refused for good.
    Credential(CredentialRefusal),
    /// No usable answer now.
    Unavailable(StatusFailure),
}

/// Reason why there is no usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusFailure {
    /// The host is not listed in `authority.status_hosts`, or the URL is not `https`.
    #[error("the host of the status URL is not listed in authority.status_hosts, or the URL is not https")]
    HostNotListed,
    /// No answer.
    #[error("the status host {0}")]
    NotFetched(DocumentError),
    /// An answer that cannot be used.
    #[error(transparent)]
    Unusable(#[from] StatusFault),
    /// All fetches in flight belong to owners with as few.
    #[error("too many status fetches are in flight")]
    Overloaded,
    /// Its fetch gave way to that of an owner with fewer.
    #[error("the status fetch gave way to another owner's")]
    Evicted,
}

impl StatusFailure {
    /// Every code.
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

type Answer = Result<Arc<StatusDocument>, StatusFailure>;

/// A fetch, in flight or finished.
#[derive(Clone)]
struct Fetch {
    began: Instant,
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

struct Parts {
    rules: StatusRules,
    source: Arc<dyn FetchStatus>,
    verifier: Arc<Verifier>,
    issuer_keys: IssuerKeys,
    clock: Arc<dyn Clock>,
    /// Fetches in flight by owner, one unit each.
    slots: MemoryBudget,
    /// By the key of the answer.
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

    /// Checks the status of a verified credential that these owners sent; returns the issuer's answer, if it was asked.
    ///
    /// # Errors
    /// The credential is not valid, or its status is not known now.
    pub async fn check(
        &self,
        status: &CredentialStatus,
        owners: &OwnerPath,
    ) -> Result<Option<Arc<StatusDocument>>, StatusRefusal> {
        let policy = self.0.rules.policy;
        let (outcome, checked) = match status {
            _ if policy == StatusPolicy::Off => return Ok(None),
            CredentialStatus::Absent if policy == StatusPolicy::IfPresent => ("absent", Ok(None)),
            CredentialStatus::Absent => refused(CredentialRefusal::StatusMissing),
            CredentialStatus::Malformed => refused(CredentialRefusal::StatusMalformed),
            CredentialStatus::At(reference) => match self.state(reference, owners).await {
                Ok((document, None)) => ("valid", Ok(Some(document))),
                Ok((_, Some(refusal))) => refused(refusal),
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
        checked
    }

    async fn state(
        &self,
        reference: &StatusReference,
        owners: &OwnerPath,
    ) -> Result<(Arc<StatusDocument>, Option<CredentialRefusal>), StatusFailure> {
        if !self.0.rules.permit(&reference.url) {
            return Err(StatusFailure::HostNotListed);
        }
        let (fetch, is_own) = self.fetch(reference, owners);
        let mut answer = fetch.answer.await.0;
        if !is_own && matches!(answer, Err(StatusFailure::Evicted)) {
            // The fetch was another owner's, who had too many.
            answer = self.fetch(reference, owners).0.answer.await.0;
        }
        let document = answer?;
        let refusal = document.state(reference)?.refusal();
        Ok((document, refusal))
    }

    /// Joins or begins the fetch of a URL; returns true if it was begun.
    fn fetch(&self, reference: &StatusReference, owners: &OwnerPath) -> (Fetch, bool) {
        let key = reference.answer_key();
        let mut fetches = self.lock();
        if let Some(known) = fetches.get(&key).filter(|known| known.is_fresh()) {
            return (known.clone(), false);
        }
        let (parts, reference, owners) = (Arc::clone(&self.0), reference.clone(), owners.clone());
        let fetch = Fetch {
            began: Instant::now(),
            answer: async move { parts.answer(&reference, owners).await }.boxed().shared(),
        };
        // It runs to its end even if nobody waits any more, so that its owner's slot is freed.
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
const fn refused<T>(refusal: CredentialRefusal) -> (&'static str, Result<T, StatusRefusal>) {
    (refusal.code(), Err(StatusRefusal::Credential(refusal)))
}

/// Removes answers that are no longer used when there are too many, and the older half when there are still too many.
fn make_room(fetches: &mut HashMap<String, Fetch>) {
    if fetches.len() >= STATUS_ANSWERS_KEPT_MAX {
        fetches.retain(|_, fetch| fetch.is_fresh());
    }
    if fetches.len() >= STATUS_ANSWERS_KEPT_MAX {
        drop_older_half(fetches, |_| true);
    }
}

/// Removes answers while they take too much memory.
fn make_room_for_bytes(fetches: &mut HashMap<String, Fetch>) {
    while fetches.values().map(Fetch::bytes).sum::<usize>() > STATUS_BYTES_KEPT_MAX {
        drop_older_half(fetches, |fetch| fetch.bytes() > 0);
    }
}

fn drop_older_half(fetches: &mut HashMap<String, Fetch>, is_candidate: impl Fn(&Fetch) -> bool) {
    let may_go = |fetch: &Fetch| fetch.answer.peek().is_some() && is_candidate(fetch);
    let mut ages: Vec<Instant> = fetches.values().filter(|fetch| may_go(fetch)).map(|fetch| fetch.began).collect();
    ages.sort_unstable();
    let Some(median) = ages.get(ages.len() / 2).copied() else { return };
    fetches.retain(|_, fetch| fetch.began > median || !may_go(fetch));
}

impl StatusRules {
    /// Returns true if answers may be fetched from this URL.
    fn permit(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        let is_default = url.port().is_none();
        let is_listed =
            self.hosts.iter().any(|listed| (is_default && listed == host) || Some(listed) == with_port.as_ref());
        is_listed && (url.scheme() == "https" || (self.allow_http && url.scheme() == "http"))
    }
}

impl Parts {
    /// Fetches and verifies an answer; also returns the time until which it may be used.
    async fn answer(&self, reference: &StatusReference, owners: OwnerPath) -> (Answer, Instant) {
        let began = Instant::now();
        let answer = timeout(STATUS_FETCH_MAX, self.fetched(reference, owners)).await;
        let answer = answer.unwrap_or(Err(StatusFailure::NotFetched(DocumentError::TimedOut)));
        let result = answer.as_ref().map_or_else(|failure| failure.code(), |_| "fetched");
        histogram!("sakshi_credential_status_fetch_seconds", "result" => result).record(began.elapsed());
        if answer.as_ref().is_ok_and(|document| document.bytes() > 0) {
            make_room_for_bytes(&mut self.fetches.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let kept = match &answer {
            Ok(document) => document.lifetime.map_or(self.rules.kept, |lifetime| lifetime.min(self.rules.kept)),
            // The next request fetches again.
            Err(StatusFailure::Evicted | StatusFailure::Overloaded) => Duration::ZERO,
            Err(_) => STATUS_FAILURE_KEPT,
        };
        (answer, Instant::now() + kept)
    }

    async fn fetched(&self, reference: &StatusReference, owners: OwnerPath) -> Answer {
        let slot = self.slots.take(owners, Stage::Waiting, 1).map_err(|_| StatusFailure::Overloaded)?;
        let body = tokio::select! {
            body = Arc::clone(&self.source).fetch(reference.url.clone()) => body.map_err(StatusFailure::NotFetched)?,
            () = slot.revoked() => return Err(StatusFailure::Evicted),
        };
        let read = || self.verifier.read_status(reference, &body, self.clock.now());
        let document = match read() {
            // The issuer may have a new key since its keys were read.
            Err(StatusFault::KeyUnknown) if self.reread(&body).await => read()?,
            other => other?,
        };
        if !reference.is_list() {
            // An answer about another credential is not kept.
            document.state(reference)?;
        }
        Ok(Arc::new(document))
    }

    async fn reread(&self, body: &[u8]) -> bool {
        match sdjwt::status_key_id(body) {
            Some(key_id) => self.issuer_keys.reread(&key_id).await,
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

    /// Host that never answers paths with `hangs`, and answers all others.
    struct Host {
        issuer: TestIssuer,
        asked: AtomicUsize,
    }

    impl fmt::Debug for Host {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Host")
        }
    }

    impl FetchStatus for Host {
        fn fetch(self: Arc<Self>, url: Url) -> BoxFuture<'static, Result<Vec<u8>, DocumentError>> {
            self.asked.fetch_add(1, SeqCst);
            if url.path().contains("hangs") {
                return pending().boxed();
            }
            let payload = json!({"iss": ISSUER, "sub": url.as_str(), "status": "valid", "iat": now()});
            let answer = self.issuer.issuer.sign(&json!({"alg": "ES256", "kid": KID}), &payload).unwrap();
            ready(Ok(answer.into_bytes())).boxed()
        }
    }

    struct Scene {
        host: Arc<Host>,
        verifier: Arc<Verifier>,
        checks: StatusChecks,
    }

    impl Scene {
        fn new() -> Self {
            let issuer = TestIssuer::generate();
            let jwks = Jwks::parse(issuer.jwks().to_string().as_bytes()).unwrap();
            let verifier =
                Arc::new(Verifier::new(vec![TrustedIssuer { issuer: ISSUER.into(), jwks }], KeyBinding::WhenPresent));
            let host = Arc::new(Host { issuer, asked: AtomicUsize::new(0) });
            let rules =
                StatusRules { hosts: vec![HOST.into()], kept: Duration::from_secs(300), ..StatusRules::default() };
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
    async fn a_sender_whose_fetches_hang_gives_way_to_another() {
        let scene = Scene::new();
        let hanging: Vec<_> = (0..STATUS_FETCHES_MAX + 10)
            .map(|number| {
                let (checks, status) = (scene.checks.clone(), scene.status(&format!("hangs/{number}")));
                tokio::spawn(async move { checks.check(&status, &owners(1)).await.err() })
            })
            .collect();
        while scene.host.asked.load(SeqCst) < STATUS_FETCHES_MAX {
            yield_now().await;
        }
        assert!(scene.checks.check(&scene.status("good"), &owners(2)).await.is_ok());
        let answers: Vec<_> = join_all(hanging).await.into_iter().map(Result::unwrap).collect();
        let count = |failure| answers.iter().filter(|answer| **answer == unavailable(failure)).count();
        assert_eq!((count(StatusFailure::Overloaded), count(StatusFailure::Evicted)), (10, 1));
        assert_eq!(count(StatusFailure::NotFetched(DocumentError::TimedOut)), STATUS_FETCHES_MAX - 1);
        assert_eq!(scene.checks.0.slots.held(), 0, "every slot is given back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_goes_on_when_nobody_waits_for_it_any_more_and_its_answer_is_used() {
        let scene = Scene::new();
        let status = scene.status("good");
        drop(timeout(Duration::ZERO, scene.checks.check(&status, &owners(1))).await);
        assert!(scene.checks.check(&status, &owners(2)).await.is_ok());
        assert_eq!(scene.host.asked.load(SeqCst), 1);
        tokio::time::advance(Duration::from_secs(301)).await;
        assert!(scene.checks.check(&status, &owners(2)).await.is_ok());
        assert_eq!(scene.host.asked.load(SeqCst), 2, "the first answer is too old");
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_up_to_a_bound() {
        let scene = Scene::new();
        let CredentialStatus::At(reference) = scene.status("good") else { panic!("no reference") };
        for number in 0..STATUS_ANSWERS_KEPT_MAX + 100 {
            let (fetch, _) = scene.checks.fetch(&reference, &owners(1));
            fetch.answer.await.0.unwrap();
            tokio::time::advance(Duration::from_millis(1)).await;
            let mut fetches = scene.checks.lock();
            let fetch = fetches.remove(&reference.answer_key()).unwrap();
            fetches.insert(number.to_string(), fetch);
            assert!(fetches.len() <= STATUS_ANSWERS_KEPT_MAX);
        }
        assert!(scene.checks.lock().len() >= STATUS_ANSWERS_KEPT_MAX / 2);
    }

    #[test]
    fn hosts_are_compared_with_their_ports() {
        let rules = |hosts: &[&str], allow_http| StatusRules {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            allow_http,
            ..StatusRules::default()
        };
        let permits =
            |hosts: &[&str], allow_http, url: &str| rules(hosts, allow_http).permit(&Url::parse(url).unwrap());
        assert!(
            permits(&["a.example"], false, "https://A.example/1")
                && permits(&["a.example:443"], false, "https://a.example/1")
        );
        assert!(
            permits(&["a.example:8443"], false, "https://a.example:8443/1")
                && permits(&["127.0.0.1:80"], true, "http://127.0.0.1/")
        );
        for (hosts, url) in [
            (&["a.example"][..], "http://a.example/1"),
            (&["a.example"], "https://a.example:8443/1"),
            (&["a.example:8443"], "https://a.example/1"),
            (&["a.example"], "https://b.a.example/1"),
            (&["a.example"], "https://a.example.evil/1"),
            (&[], "https://a.example/1"),
        ] {
            assert!(!permits(hosts, false, url), "{url}");
        }
    }
}
