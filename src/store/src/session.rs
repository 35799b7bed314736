//! Sessions of people who have signed in with a key: what they stand for and how long they last.
//!
//! A store keeps a session under the digest of its id, and which key and app it stands for as a box.
//! It knows neither the id nor the key, so what is in it lets nobody in.

use std::fmt;

use sakshi_domain::ids::AppId;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;
use crate::vault::{Sealed, Vault};

/// SHA-256 of the id that the browser holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionDigest(pub [u8; 32]);

impl fmt::Debug for SessionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionDigest([not shown])")
    }
}

/// A session. Whether its key and app are still good is asked anew whenever it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Where it is kept.
    pub digest: SessionDigest,
    /// The key that it stands for.
    pub key: KeyDigest,
    /// The app that it acts for.
    pub app: AppId,
    /// When it ends unless it is used; at most `ends_at`.
    pub idle_until: Timestamp,
    /// When it ends whatever is done.
    pub ends_at: Timestamp,
}

/// A session as a store keeps it.
pub(crate) struct SealedSession {
    pub(crate) digest: SessionDigest,
    pub(crate) grant: Vec<u8>,
    pub(crate) idle_until: Timestamp,
    pub(crate) ends_at: Timestamp,
}

impl SealedSession {
    pub(crate) fn of(vault: &Vault, session: &SessionRecord) -> Self {
        let grant = [&session.key.0[..], session.app.as_str().as_bytes()].concat();
        Self {
            digest: session.digest,
            grant: vault.seal(&session.digest.0, &grant).to_bytes(),
            idle_until: session.idle_until.min(session.ends_at),
            ends_at: session.ends_at,
        }
    }

    /// # Errors
    /// [`StoreError::Corrupt`] for a box that its vault does not open, or that holds something else.
    pub(crate) fn opened(&self, vault: &Vault) -> Result<SessionRecord, StoreError> {
        let unreadable = || StoreError::Corrupt("a session cannot be read".into());
        let sealed = Sealed::from_bytes(&self.grant).ok_or_else(unreadable)?;
        let grant = vault.open(&self.digest.0, &sealed).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let (key, app) = grant.split_first_chunk::<32>().ok_or_else(unreadable)?;
        let app = std::str::from_utf8(app).ok().and_then(|app| app.parse().ok()).ok_or_else(unreadable)?;
        let Self { digest, idle_until, ends_at, .. } = *self;
        Ok(SessionRecord { digest, key: KeyDigest(*key), app, idle_until, ends_at })
    }
}
