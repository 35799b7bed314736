//! Authentication of callers: the holder of a key, for one of its apps (specification, "Authentication").
//!
//! Only a [`KeyGate`] makes a [`Caller`], so no use case can be called without one. A gate checks pairs of key and app,
//! and caches each result for less than a second. There is one gate per worker, without locks: a cached pair costs one
//! SHA-256 and one look-up, and allocates nothing. Callers with the same uncached pair share one question to the store.
//! A request that waits is checked again, so a revocation also ends requests that have begun.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{Either, LocalBoxFuture, Ready, Shared, ready};
use sakshi_domain::client_log::Actor;
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::network::Networks;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, App, Client, ClientLimits, KeyDigest};
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{User, UserRole};
use sakshi_store::{KeyGrant, SessionHolder, Store, StoreError, UserGrant};
use tokio::time::sleep_until;

use crate::ServiceError;
use crate::api_key::{ApiKey, KEY_CHARS, sha256};
use crate::budget::OwnerPath;

/// Time for which a result is cached, from before the question to the store.
const CACHE_TIME: Duration = Duration::from_millis(800);
/// Minimum time between two records of a key's use.
const USE_INTERVAL: Duration = Duration::from_secs(600);
/// Maximum pairs that one worker caches.
const PAIRS_MAX: usize = 8_192;
/// Maximum characters of an app id.
const APP_CHARS_MAX: usize = 64;

const _: () = assert!(CACHE_TIME.as_millis() < 1_000, "revocation is effective within a second");

/// An authenticated client with one of its apps.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Client whose credits are spent.
    pub client: ClientId,
    /// App of the caller; its settings are at most a second old.
    pub app: Arc<App>,
    /// The person or program behind the request.
    pub actor: Actor,
    /// The role in the portal.
    pub role: UserRole,
    /// Limits of the client; at most a second old.
    pub limits: ClientLimits,
    /// Networks from which the key may be used; at most a second old.
    pub networks: Arc<Networks>,
    last_check: Check,
}

impl Caller {
    /// Returns the owners charged for the caller's memory and processor time.
    #[must_use]
    pub fn owners(&self) -> OwnerPath {
        OwnerPath::app(&self.client, &self.app.app_id)
    }

    /// Checks the caller again, if the last check is too old, so that a revocation also ends a request that waits. To
    /// be called after every wait and before every debit.
    ///
    /// # Errors
    /// [`ServiceError::Unauthorized`] when the pair is no longer valid; any error of the store.
    pub async fn recheck(&self) -> Result<(), ServiceError> {
        if Instant::now() < self.last_check.until {
            return Ok(());
        }
        let gate = self.last_check.gate.upgrade().ok_or(ServiceError::Unauthorized)?;
        gate.admit_holder(&self.last_check.holder, &self.app.app_id).await.map(drop)
    }

    /// Waits until a check finds that the caller is no longer valid. Keeps waiting while the store cannot answer, so
    /// the caller must be checked once more before an action.
    pub async fn until_revoked(&self) {
        let mut until = self.last_check.until;
        loop {
            sleep_until(until.into()).await;
            let Some(gate) = self.last_check.gate.upgrade() else { return };
            match next_check(gate.admit_holder(&self.last_check.holder, &self.app.app_id).await) {
                Some(next) => until = next,
                None => return,
            }
        }
    }
}

/// Returns the time of the caller's next check; `None` if the caller is no longer valid.
fn next_check(last: CallerResult) -> Option<Instant> {
    match last {
        Ok(caller) => Some(caller.last_check.until),
        Err(ServiceError::Unauthorized) => None,
        Err(_) => Some(Instant::now() + CACHE_TIME),
    }
}

/// The gate that checked a caller, and the time until which the result is valid.
#[derive(Clone, Debug)]
struct Check {
    gate: Weak<KeyGate>,
    holder: SessionHolder,
    until: Instant,
}

type CallerResult = Result<Caller, ServiceError>;
/// A question to the store, shared by all callers with the same pair.
type Lookup = Shared<LocalBoxFuture<'static, CallerResult>>;
/// The result of [`KeyGate::admit`]: ready at once for a cached pair.
type Admission = Either<Ready<CallerResult>, LocalBoxFuture<'static, CallerResult>>;

/// A pair of key and app, as SHA-256.
type Pair = [u8; 32];

/// A cached result, valid until a time.
struct Entry {
    until: Instant,
    result: CachedResult,
}

enum CachedResult {
    /// The caller, or `None` for a refusal.
    Known(Option<Caller>),
    /// A question to the store is in flight.
    InFlight(Lookup),
}

/// Authenticates the callers of one worker, and caches the results. The worker holds it as app data (`Rc<KeyGate>`).
pub struct KeyGate {
    store: Store,
    clock: Arc<dyn Clock>,
    profile: Profile,
    entries: RefCell<HashMap<Pair, Entry>>,
}

/// The rights of a key or a user, with the client and an app.
struct Grant {
    actor: Actor,
    role: UserRole,
    networks: Networks,
    expires_at: Option<Timestamp>,
    client: Client,
    app: Option<App>,
}

impl Grant {
    /// Builds the grant of a key. It has a backend's rights, but manages neither keys nor users, so that a leaked key
    /// creates no further access.
    fn for_key(KeyGrant { key, client, app, .. }: KeyGrant) -> Self {
        let ApiKeyRecord { key_id, networks, expires_at, .. } = key;
        Self { actor: Actor::Key { id: key_id }, role: UserRole::Organise, networks, expires_at, client, app }
    }

    fn for_user(UserGrant { user, client, app, .. }: UserGrant) -> Self {
        let User { user_id: id, name, role, .. } = user;
        Self { actor: Actor::User { id, name }, role, networks: Networks::default(), expires_at: None, client, app }
    }
}

/// Records the use of a key. If the store fails, the next use is recorded instead.
async fn note_use(store: &Store, key: KeyDigest, last_use: Option<Timestamp>, now: Timestamp) {
    if let Err(error) = store.note_key_use(key, last_use, now, USE_INTERVAL).await {
        tracing::warn!(%error, "the use of a key was not noted");
    }
}

impl KeyGate {
    /// Creates an empty gate for this environment.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>, profile: Profile) -> Rc<Self> {
        Rc::new(Self { store, clock, profile, entries: RefCell::new(HashMap::new()) })
    }

    /// Returns the caller, or [`ServiceError::Unauthorized`] for every invalid pair, whatever the reason.
    pub fn admit(self: &Rc<Self>, key: &str, app: &str) -> Admission {
        if key.len() != KEY_CHARS || app.len() > APP_CHARS_MAX {
            return Either::Left(ready(Err(ServiceError::Unauthorized)));
        }
        let pair = sha256(&[key.as_bytes(), app.as_bytes()]);
        self.find_cached(pair).unwrap_or_else(|| match (ApiKey::parse(key), app.parse::<AppId>()) {
            (Some(key), Ok(app)) => {
                Either::Right(self.start_lookup(pair, SessionHolder::Key(key.digest()), app).boxed_local())
            }
            _ => Either::Left(ready(Err(ServiceError::Unauthorized))),
        })
    }

    /// Like [`Self::admit`], but for the holder of a session: a user, or a key of which only the digest is known.
    pub fn admit_holder(self: &Rc<Self>, holder: &SessionHolder, app: &AppId) -> Admission {
        let pair = match holder {
            SessionHolder::Key(key) => sha256(&[b"by digest", &key.0, app.as_str().as_bytes()]),
            SessionHolder::User { id, epoch } => {
                sha256(&[b"by user", &epoch.to_be_bytes(), id.as_str().as_bytes(), b" ", app.as_str().as_bytes()])
            }
        };
        self.find_cached(pair)
            .unwrap_or_else(|| Either::Right(self.start_lookup(pair, holder.clone(), app.clone()).boxed_local()))
    }

    /// Returns the number of cached pairs.
    #[must_use]
    pub fn cached_pairs(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Returns the result for a pair that is cached or being looked up.
    fn find_cached(&self, pair: Pair) -> Option<Admission> {
        let entries = self.entries.borrow();
        let entry = entries.get(&pair).filter(|entry| Instant::now() < entry.until)?;
        Some(match &entry.result {
            CachedResult::Known(caller) => Either::Left(ready(caller.clone().ok_or(ServiceError::Unauthorized))),
            CachedResult::InFlight(lookup) => Either::Right(lookup.clone().boxed_local()),
        })
    }

    /// Asks the store for the grant of a holder. Callers with the same pair join this question.
    fn start_lookup(self: &Rc<Self>, pair: Pair, holder: SessionHolder, app: AppId) -> Lookup {
        let until = Instant::now() + CACHE_TIME;
        let grant = self.load_grant(&holder, app);
        let gate = Rc::downgrade(self);
        let lookup = async move {
            let grant = grant.await;
            let Some(gate) = gate.upgrade() else { return Err(ServiceError::Unauthorized) };
            match grant {
                Ok(grant) => gate.finish_lookup(pair, holder, grant, until),
                Err(error) => {
                    tracing::error!(error = %error, "a key could not be looked up");
                    gate.entries.borrow_mut().remove(&pair);
                    Err(error.into())
                }
            }
        };
        let lookup = lookup.boxed_local().shared();
        self.cache(pair, Entry { until, result: CachedResult::InFlight(lookup.clone()) });
        lookup
    }

    /// Loads the current grant of a holder.
    fn load_grant(
        &self,
        holder: &SessionHolder,
        app: AppId,
    ) -> LocalBoxFuture<'static, Result<Option<Grant>, StoreError>> {
        let (store, now, profile) = (self.store.clone(), self.clock.now(), self.profile);
        match holder {
            SessionHolder::Key(key) => {
                let (key, lookup) = (*key, store.find_key(*key, app));
                async move {
                    let Some(key_grant) = lookup.await?.filter(|key_grant| key_grant.key.is_valid(now, profile)) else {
                        return Ok(None);
                    };
                    if key_grant.used_at.is_none_or(|used| now.since(used) >= USE_INTERVAL) {
                        note_use(&store, key, key_grant.used_at, now).await;
                    }
                    Ok(Some(Grant::for_key(key_grant)))
                }
                .boxed_local()
            }
            SessionHolder::User { id, epoch } => {
                let (epoch, lookup) = (*epoch, store.find_user(id.clone(), app));
                async move {
                    Ok(lookup
                        .await?
                        .filter(|user_grant| user_grant.user.is_active() && user_grant.epoch == epoch)
                        .map(Grant::for_user))
                }
                .boxed_local()
            }
        }
    }

    /// Builds and caches the caller of a grant: at most until `until`, and no longer than the key is valid.
    fn finish_lookup(
        self: &Rc<Self>,
        pair: Pair,
        holder: SessionHolder,
        grant: Option<Grant>,
        mut until: Instant,
    ) -> CallerResult {
        let now = self.clock.now();
        let caller = grant.and_then(|Grant { actor, role, networks, expires_at, client, app }| {
            let app = app.filter(|app| app.client_id == client.client_id)?;
            if client.suspended_at.is_some() || expires_at.is_some_and(|end| end <= now) {
                return None;
            }
            if let Some(end) = expires_at {
                until = until.min(Instant::now() + end.since(now));
            }
            let last_check = Check { gate: Rc::downgrade(self), holder, until };
            let Client { client_id: client, limits, .. } = client;
            Some(Caller { client, app: Arc::new(app), actor, role, limits, networks: Arc::new(networks), last_check })
        });
        self.cache(pair, Entry { until, result: CachedResult::Known(caller.clone()) });
        caller.ok_or(ServiceError::Unauthorized)
    }

    /// Caches a result. If the cache is full, evicts expired results, then refused and pending ones, then all.
    fn cache(&self, pair: Pair, entry: Entry) {
        let mut entries = self.entries.borrow_mut();
        if entries.len() >= PAIRS_MAX && !entries.contains_key(&pair) {
            let now = Instant::now();
            entries.retain(|_, entry| now < entry.until);
            if entries.len() >= PAIRS_MAX {
                entries.retain(|_, entry| matches!(entry.result, CachedResult::Known(Some(_))));
            }
            if entries.len() >= PAIRS_MAX {
                entries.clear();
            }
        }
        entries.insert(pair, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_with;

    use futures_util::FutureExt as _;
    use sakshi_domain::clock::ManualClock;
    use sakshi_domain::ids::KeyId;
    use sakshi_kit::records;
    use sakshi_store::embedded::EmbeddedStore;

    use super::*;
    use crate::test_store;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const HOUR: Duration = Duration::from_secs(3_600);

    /// A gate for a store with one client that has one app.
    struct Fixture {
        gate: Rc<KeyGate>,
        store: EmbeddedStore,
        client: ClientId,
        app: AppId,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        async fn new() -> Self {
            let clock = Arc::new(ManualClock::starting_at(NOW));
            let (directory, store) = test_store::store(clock.clone());
            let client = Client::new(ClientId::generate(), "Bank".into(), NOW);
            store.create_client(client.clone()).await.unwrap();
            // The id has the maximum length.
            let app = records::app("a".repeat(APP_CHARS_MAX).parse().unwrap(), client.client_id.clone());
            assert!(store.create_app(app.clone()).await.unwrap());
            let gate = KeyGate::new((*store).clone(), clock, Profile::Sandbox);
            Self { gate, store, client: client.client_id, app: app.app_id, _directory: directory }
        }

        async fn create_key(&self, expires_at: Option<Timestamp>) -> ApiKey {
            let (key, digest) = ApiKey::issue().unwrap();
            let (client_id, key_id) = (self.client.clone(), KeyId::generate());
            let record = ApiKeyRecord {
                key_id,
                client_id,
                label: String::new(),
                environments: vec![],
                networks: Networks::default(),
                created_at: NOW,
                expires_at,
                revoked_at: None,
            };
            assert!(self.store.create_key(record, digest).await.unwrap());
            key
        }

        async fn admit_new_key(&self, expires_at: Option<Timestamp>) -> Caller {
            let key = self.create_key(expires_at).await;
            self.gate.admit(key.reveal(), self.app.as_str()).await.unwrap()
        }

        /// Fills the gate with results that are valid for an hour from now, except the first.
        fn fill(&self, first: Entry, others: impl Fn() -> CachedResult) {
            let until = Instant::now() + HOUR;
            let entries = repeat_with(|| Entry { until, result: others() }).take(PAIRS_MAX - 1);
            self.gate.entries.borrow_mut().clear();
            for (number, entry) in std::iter::once(first).chain(entries).enumerate() {
                self.gate.cache(pair(number), entry);
            }
            assert_eq!(self.gate.cached_pairs(), PAIRS_MAX);
        }

        fn is_cached(&self, number: usize) -> bool {
            self.gate.entries.borrow().contains_key(&pair(number))
        }
    }

    fn pair(number: usize) -> Pair {
        sha256(&[&number.to_be_bytes()])
    }

    fn entry_for_an_hour(result: CachedResult) -> Entry {
        Entry { until: Instant::now() + HOUR, result }
    }

    #[actix_rt::test]
    async fn a_result_is_cached_for_less_than_a_second_and_no_longer_than_its_key() {
        let fixture = Fixture::new().await;
        for (key_lifetime, cache_time) in [
            (None, CACHE_TIME),
            (Some(HOUR), CACHE_TIME),
            (Some(Duration::from_millis(100)), Duration::from_millis(100)),
        ] {
            let start = Instant::now();
            let caller = fixture.admit_new_key(key_lifetime.map(|lifetime| NOW + lifetime)).await;
            let until = caller.last_check.until;
            assert!(until >= start + cache_time && until <= Instant::now() + cache_time, "{key_lifetime:?}");
        }
        assert_eq!(fixture.gate.cached_pairs(), 3);
    }

    #[actix_rt::test]
    async fn a_caller_is_checked_again_only_after_the_last_check_is_too_old() {
        let fixture = Fixture::new().await;
        let mut caller = fixture.admit_new_key(None).await;
        caller.last_check.until = Instant::now() + HOUR;
        fixture.store.close();
        assert_eq!(caller.recheck().await, Ok(()));
        caller.last_check.until = Instant::now();
        assert!(matches!(caller.recheck().await, Err(ServiceError::Unavailable { .. })));
    }

    #[test]
    fn an_unavailable_store_is_not_asked_again_at_once() {
        let before = Instant::now();
        assert!(next_check(Err(ServiceError::Overloaded)).unwrap() >= before + CACHE_TIME);
        assert_eq!(next_check(Err(ServiceError::Unauthorized)), None);
    }

    #[actix_rt::test]
    async fn expired_then_refused_and_pending_results_are_evicted_first() {
        let fixture = Fixture::new().await;
        let good = fixture.admit_new_key(None).await;
        let known = || CachedResult::Known(Some(good.clone()));
        let refused = || CachedResult::Known(None);
        let (first, last) = (0, PAIRS_MAX);

        // A cached pair evicts nothing.
        fixture.fill(entry_for_an_hour(known()), refused);
        fixture.gate.cache(pair(first), entry_for_an_hour(known()));
        assert_eq!(fixture.gate.cached_pairs(), PAIRS_MAX);

        // Expired results are evicted first,
        fixture.fill(Entry { until: Instant::now(), result: known() }, refused);
        fixture.gate.cache(pair(last), entry_for_an_hour(known()));
        assert!(!fixture.is_cached(first) && fixture.is_cached(1) && fixture.is_cached(last));
        assert_eq!(fixture.gate.cached_pairs(), PAIRS_MAX);

        // then refused and pending ones,
        fixture.fill(entry_for_an_hour(known()), refused);
        fixture.gate.cache(pair(last), entry_for_an_hour(refused()));
        assert!(fixture.is_cached(first) && fixture.is_cached(last));
        assert_eq!(fixture.gate.cached_pairs(), 2);

        // then all.
        fixture.fill(entry_for_an_hour(known()), known);
        fixture.gate.cache(pair(last), entry_for_an_hour(refused()));
        assert!(fixture.is_cached(last));
        assert_eq!(fixture.gate.cached_pairs(), 1);
    }

    #[actix_rt::test]
    async fn a_cached_result_is_returned_at_once() {
        let fixture = Fixture::new().await;
        let key = fixture.create_key(None).await;
        let pair = sha256(&[key.reveal().as_bytes(), fixture.app.as_str().as_bytes()]);
        fixture.gate.cache(pair, entry_for_an_hour(CachedResult::Known(None)));
        let admitted = fixture.gate.admit(key.reveal(), fixture.app.as_str()).now_or_never();
        assert!(matches!(admitted, Some(Err(ServiceError::Unauthorized))));
        fixture.gate.cache(pair, Entry { until: Instant::now(), result: CachedResult::Known(None) });
        assert!(fixture.gate.admit(key.reveal(), fixture.app.as_str()).await.is_ok(), "the cached result is too old");
    }
}
