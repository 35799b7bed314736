//! Authentication of callers: the holder of a key, for one of its apps (specification, "Authentication").
//!
//! Only a [`KeyGate`] makes a [`Caller`], so no use case can be called without one. A gate checks pairs of key and app, and keeps
//! each result for less than a second. There is one gate per worker, without locks: a cached pair costs one SHA-256 and one
//! look-up, and nothing is allocated. Callers of the same uncached pair wait for one question to the store. A request that waits is
//! checked again, so a revocation also ends requests that have begun.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{Either, LocalBoxFuture, Ready, Shared, ready};
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{App, ClientLimits, KeyDigest};
use sakshi_store::{KeyGrant, Store};
use tokio::time::sleep_until;

use crate::ServiceError;
use crate::api_key::{ApiKey, KEY_CHARS, sha256};
use crate::budget::OwnerPath;

/// How long a result is cached, counted from before the store was asked.
const CACHED: Duration = Duration::from_millis(800);
/// Pairs cached by one worker.
const PAIRS_MAX: usize = 8_192;
/// Characters of an app id.
const APP_CHARS_MAX: usize = 64;

const _: () = assert!(CACHED.as_millis() < 1_000, "revocation is effective within a second");

/// An authenticated client with one of its apps.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Whose credits are spent.
    pub client: ClientId,
    /// On whose behalf; its settings are at most a second old.
    pub app: Arc<App>,
    /// With which key.
    pub key_id: KeyId,
    /// What the client may use; at most a second old.
    pub limits: ClientLimits,
    check: Check,
}

impl Caller {
    /// Who is charged for what the caller makes the service hold and compute.
    #[must_use]
    pub fn owners(&self) -> OwnerPath {
        OwnerPath::app(&self.client, &self.app.app_id)
    }

    /// Checks the caller again, if the last check is too old: a key that was revoked while a request
    /// waited ends that request, too. To be called after every wait and before every debit.
    ///
    /// # Errors
    /// [`ServiceError::Unauthorized`] when the pair is no longer good; the store's when that cannot be told.
    pub async fn recheck(&self) -> Result<(), ServiceError> {
        if Instant::now() < self.check.until {
            return Ok(());
        }
        let gate = self.check.gate.upgrade().ok_or(ServiceError::Unauthorized)?;
        gate.admit_digest(self.check.key, &self.app.app_id).await.map(drop)
    }

    /// Ends when the caller is found to be no longer good, and never otherwise. While that cannot be
    /// told it goes on; who waits checks once more before it acts.
    pub async fn until_revoked(&self) {
        let mut until = self.check.until;
        loop {
            sleep_until(until.into()).await;
            let Some(gate) = self.check.gate.upgrade() else { return };
            until = match gate.admit_digest(self.check.key, &self.app.app_id).await {
                Ok(caller) => caller.check.until,
                Err(ServiceError::Unauthorized) => return,
                Err(_) => Instant::now() + CACHED,
            };
        }
    }
}

/// Who has checked a pair of key and app, and until when the result may be relied on.
#[derive(Clone, Debug)]
struct Check {
    gate: Weak<KeyGate>,
    key: KeyDigest,
    until: Instant,
}

type Checked = Result<Caller, ServiceError>;
type Lookup = Shared<LocalBoxFuture<'static, Checked>>;
/// Ready at once for a pair that is cached.
type Admission = Either<Ready<Checked>, LocalBoxFuture<'static, Checked>>;

/// SHA-256 over key and app.
type Pair = [u8; 32];

struct Entry {
    until: Instant,
    result: CachedResult,
}

enum CachedResult {
    /// `None` is a refusal.
    Known(Option<Caller>),
    /// The store is being asked.
    Asking(Lookup),
}

/// One worker's gate; put it into the worker's app data as `Rc<KeyGate>`.
pub struct KeyGate {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    profile: Profile,
    entries: RefCell<HashMap<Pair, Entry>>,
}

impl KeyGate {
    /// An empty gate for this environment.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, profile: Profile) -> Rc<Self> {
        Rc::new(Self { store, clock, profile, entries: RefCell::new(HashMap::new()) })
    }

    /// The caller, or [`ServiceError::Unauthorized`] for every pair that is not good, whatever the reason.
    pub fn admit(self: &Rc<Self>, key: &str, app: &str) -> Admission {
        if key.len() != KEY_CHARS || app.len() > APP_CHARS_MAX {
            return Either::Left(ready(Err(ServiceError::Unauthorized)));
        }
        let pair = sha256(&[key.as_bytes(), app.as_bytes()]);
        self.cached(pair).unwrap_or_else(|| match (ApiKey::parse(key), app.parse::<AppId>()) {
            (Some(key), Ok(app)) => Either::Right(self.ask(pair, key.digest(), app).boxed_local()),
            _ => Either::Left(ready(Err(ServiceError::Unauthorized))),
        })
    }

    /// The same for a key of which only the digest is at hand, in a session.
    pub fn admit_digest(self: &Rc<Self>, key: KeyDigest, app: &AppId) -> Admission {
        let pair = sha256(&[b"by digest", &key.0, app.as_str().as_bytes()]);
        self.cached(pair).unwrap_or_else(|| Either::Right(self.ask(pair, key, app.clone()).boxed_local()))
    }

    /// How many pairs are cached.
    #[must_use]
    pub fn cached_pairs(&self) -> usize {
        self.entries.borrow().len()
    }

    fn cached(&self, pair: Pair) -> Option<Admission> {
        let entries = self.entries.borrow();
        let entry = entries.get(&pair).filter(|entry| Instant::now() < entry.until)?;
        Some(match &entry.result {
            CachedResult::Known(caller) => Either::Left(ready(caller.clone().ok_or(ServiceError::Unauthorized))),
            CachedResult::Asking(lookup) => Either::Right(lookup.clone().boxed_local()),
        })
    }

    fn ask(self: &Rc<Self>, pair: Pair, key: KeyDigest, app: AppId) -> Lookup {
        let until = Instant::now() + CACHED;
        let question = self.store.find_key(key, app);
        let gate = Rc::downgrade(self);
        let lookup = async move {
            let grant = question.await;
            let Some(gate) = gate.upgrade() else { return Err(ServiceError::Unauthorized) };
            match grant {
                Ok(grant) => gate.conclude((pair, key), grant, until),
                Err(error) => {
                    tracing::error!(error = %error, "a key could not be looked up");
                    gate.entries.borrow_mut().remove(&pair);
                    Err(error.into())
                }
            }
        };
        let lookup = lookup.boxed_local().shared();
        self.cache(pair, Entry { until, result: CachedResult::Asking(lookup.clone()) });
        lookup
    }

    fn conclude(self: &Rc<Self>, (pair, digest): (Pair, KeyDigest), grant: Option<KeyGrant>, mut until: Instant) -> Checked {
        let now = self.clock.now();
        let good = grant.and_then(|KeyGrant { key, client, app }| {
            let app = app.filter(|app| app.client_id == key.client_id)?;
            if !key.is_valid(now, self.profile) || client.suspended_at.is_some() {
                return None;
            }
            if let Some(end) = key.expires_at {
                until = until.min(Instant::now() + end.since(now));
            }
            let check = Check { gate: Rc::downgrade(self), key: digest, until };
            Some(Caller { client: key.client_id, app: Arc::new(app), key_id: key.key_id, limits: client.limits, check })
        });
        self.cache(pair, Entry { until, result: CachedResult::Known(good.clone()) });
        good.ok_or(ServiceError::Unauthorized)
    }

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
