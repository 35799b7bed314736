//! Who calls the public API: the holder of a key, for one of its apps (specification,
//! "Authentication").
//!
//! Only a [`KeyGate`] makes a [`Caller`], so no use case can be called without one. What waits checks again: a revocation also
//! ends requests that have begun.

use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::tenancy::{App, KeyDigest};
use std::rc::Weak;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::sleep_until;

use crate::error::ServiceError;
use crate::key_gate::{KeyGate, REMEMBERED};

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
    pub(super) verdict: Verdict,
}

impl Caller {
    /// Judges the caller again, if the verdict is not fresh: a key that was revoked while a request
    /// waited ends that request, too. To be called after every wait and before every debit.
    ///
    /// # Errors
    /// [`ServiceError::Unauthorized`] when the pair is no longer good; the store's when that cannot be told.
    pub async fn judge_again(&self) -> Result<(), ServiceError> {
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
pub(super) struct Verdict {
    pub(super) gate: Weak<KeyGate>,
    pub(super) key: KeyDigest,
    pub(super) until: Instant,
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
