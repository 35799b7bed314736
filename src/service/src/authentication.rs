//! Authentication of callers: the holder of a key, for one of its apps (specification, "Authentication").
//!
//! Only a [`KeyGate`] makes a [`Caller`], so no use case can be called without one. A gate judges pairs of key and app, and
//! remembers each verdict for less than a second. There is one gate per worker, without locks: a remembered pair costs one SHA-256
//! and one look-up, and nothing is allocated. Callers of the same unremembered pair wait for one question to the store. A request
//! that waits is judged again, so a revocation also ends requests that have begun.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{Either, LocalBoxFuture, Ready, Shared, ready};
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{App, KeyDigest};
use sakshi_store::{KeyGrant, Store};
use tokio::time::sleep_until;

use crate::api_key::{ApiKey, KEY_CHARS, sha256};
use crate::error::ServiceError;

/// How long a verdict is remembered, counted from before the store was asked.
const REMEMBERED: Duration = Duration::from_millis(800);
/// Pairs remembered by one worker.
const PAIRS_MAX: usize = 8_192;
/// Characters of an app id.
const APP_CHARS_MAX: usize = 64;

const _: () = assert!(REMEMBERED.as_millis() < 1_000, "revocation is effective within a second");

/// An authenticated client with one of its apps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Whose credits are spent.
    pub client: ClientId,
    /// On whose behalf; its settings are at most a second old.
    pub app: Arc<App>,
    /// With which key.
    pub key_id: KeyId,
    /// How long that is known.
    verdict: Verdict,
}

impl Caller {
    /// Judges the caller again, if the verdict is not fresh: a key that was revoked while a request
    /// waited ends that request, too. To be called after every wait and before every debit.
    ///
    /// # Errors
    /// [`ServiceError::Unauthorized`] when the pair is no longer good; the store's when that cannot be told.
    pub async fn recheck(&self) -> Result<(), ServiceError> {
        if self.verdict.is_fresh() {
            return Ok(());
        }
        let gate = self.verdict.gate.upgrade().ok_or(ServiceError::Unauthorized)?;
        gate.admit_digest(self.verdict.key, &self.app.app_id).await.map(drop)
    }

    /// Ends when the caller is found to be no longer good, and never otherwise. While that cannot be
    /// told it goes on; who waits judges once more before it acts.
    pub async fn until_revoked(&self) {
        let mut until = self.verdict.until;
        loop {
            sleep_until(until.into()).await;
            let Some(gate) = self.verdict.gate.upgrade() else { return };
            until = match gate.admit_digest(self.verdict.key, &self.app.app_id).await {
                Ok(caller) => caller.verdict.until,
                Err(ServiceError::Unauthorized) => return,
                Err(_) => Instant::now() + REMEMBERED,
            };
        }
    }
}

/// What was found out about a pair of key and app, and until when it may be relied on.
#[derive(Clone, Debug)]
struct Verdict {
    gate: Weak<KeyGate>,
    key: KeyDigest,
    until: Instant,
}

impl Verdict {
    fn is_fresh(&self) -> bool {
        Instant::now() < self.until
    }
}

/// Of the same key.
impl PartialEq for Verdict {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Verdict {}

type Judged = Result<Caller, ServiceError>;
type Asked = Shared<LocalBoxFuture<'static, Judged>>;

/// SHA-256 over key and app.
type Pair = [u8; 32];

enum Entry {
    /// The verdict; `None` is a refusal.
    Known { caller: Option<Caller>, until: Instant },
    /// The store is being asked.
    Asking { answer: Asked, until: Instant },
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
    pub fn admit(self: &Rc<Self>, key: &str, app: &str) -> Either<Ready<Judged>, LocalBoxFuture<'static, Judged>> {
        if key.len() != KEY_CHARS || app.len() > APP_CHARS_MAX {
            return Either::Left(ready(Err(ServiceError::Unauthorized)));
        }
        let pair = sha256(&[key.as_bytes(), app.as_bytes()]);
        self.remembered(pair).unwrap_or_else(|| match (ApiKey::parse(key), app.parse::<AppId>()) {
            (Some(key), Ok(app)) => Either::Right(self.ask(pair, key.digest(), app).boxed_local()),
            _ => Either::Left(ready(Err(ServiceError::Unauthorized))),
        })
    }

    /// The same for a key of which only the digest is at hand, in a session.
    pub fn admit_digest(self: &Rc<Self>, key: KeyDigest, app: &AppId) -> Either<Ready<Judged>, LocalBoxFuture<'static, Judged>> {
        let pair = sha256(&[b"by digest", &key.0, app.as_str().as_bytes()]);
        self.remembered(pair).unwrap_or_else(|| Either::Right(self.ask(pair, key, app.clone()).boxed_local()))
    }

    fn remembered(&self, pair: Pair) -> Option<Either<Ready<Judged>, LocalBoxFuture<'static, Judged>>> {
        match self.entries.borrow().get(&pair) {
            Some(Entry::Known { caller, until }) if Instant::now() < *until => {
                Some(Either::Left(ready(caller.clone().ok_or(ServiceError::Unauthorized))))
            }
            Some(Entry::Asking { answer, until }) if Instant::now() < *until => Some(Either::Right(answer.clone().boxed_local())),
            _ => None,
        }
    }

    fn ask(self: &Rc<Self>, pair: Pair, key: KeyDigest, app: AppId) -> Asked {
        let until = Instant::now() + REMEMBERED;
        let question = self.store.find_key(key, app);
        let gate = Rc::downgrade(self);
        let answer = async move {
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
        let answer = answer.boxed_local().shared();
        self.remember(pair, Entry::Asking { answer: answer.clone(), until });
        answer
    }

    fn conclude(self: &Rc<Self>, (pair, digest): (Pair, KeyDigest), grant: Option<KeyGrant>, mut until: Instant) -> Judged {
        let now = self.clock.now();
        let good = grant.and_then(|KeyGrant { key, app }| {
            let app = app.filter(|app| app.client_id == key.client_id)?;
            if !key.is_valid(now, self.profile) {
                return None;
            }
            if let Some(end) = key.expires_at {
                until = until.min(Instant::now() + end.since(now));
            }
            let verdict = Verdict { gate: Rc::downgrade(self), key: digest, until };
            Some(Caller { client: key.client_id, app: Arc::new(app), key_id: key.key_id, verdict })
        });
        self.remember(pair, Entry::Known { caller: good.clone(), until });
        good.ok_or(ServiceError::Unauthorized)
    }

    fn remember(&self, pair: Pair, entry: Entry) {
        let mut entries = self.entries.borrow_mut();
        if entries.len() >= PAIRS_MAX && !entries.contains_key(&pair) {
            let now = Instant::now();
            entries.retain(|_, entry| matches!(entry, Entry::Known { until, .. } | Entry::Asking { until, .. } if now < *until));
            if entries.len() >= PAIRS_MAX {
                entries.retain(|_, entry| matches!(entry, Entry::Known { caller: Some(_), .. }));
            }
            if entries.len() >= PAIRS_MAX {
                entries.clear();
            }
        }
        entries.insert(pair, entry);
    }
}

impl fmt::Debug for KeyGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyGate").field("profile", &self.profile).field("pairs", &self.entries.borrow().len()).finish_non_exhaustive()
    }
}
