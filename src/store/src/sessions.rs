//! Sessions of people who have signed in with a key.
//!
//! A store keeps a session under the digest of its id, and the key's digest and the app sealed. It
//! knows neither the id nor the key, so nobody can sign in with what it stores.

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

/// A session. Its key and app are checked again at every use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The digest of its id.
    pub digest: SessionDigest,
    /// The key that it was opened with.
    pub key: KeyDigest,
    /// The app that it acts for.
    pub app: AppId,
    /// When it ends unless it is used; at most `ends_at`.
    pub idle_until: Timestamp,
    /// When it ends in any case.
    pub ends_at: Timestamp,
}

/// The key and the app of a session, sealed for its digest.
pub(crate) fn seal_grant(vault: &Vault, session: &SessionRecord) -> Vec<u8> {
    let grant = [&session.key.0[..], session.app.as_str().as_bytes()].concat();
    vault.seal(&session.digest.0, &grant).into_bytes()
}

/// What [`seal_grant`] sealed.
///
/// # Errors
/// [`StoreError::Corrupt`] when the vault cannot open it, or it holds something else.
pub(crate) fn open_grant(vault: &Vault, digest: SessionDigest, sealed: Vec<u8>) -> Result<(KeyDigest, AppId), StoreError> {
    let unreadable = || StoreError::unreadable("a session");
    let sealed = Sealed::from_bytes(sealed).ok_or_else(unreadable)?;
    let grant = vault.open_in_place(&digest.0, sealed).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let (key, app) = grant.split_first_chunk::<32>().ok_or_else(unreadable)?;
    let app = std::str::from_utf8(app).ok().and_then(|app| app.parse().ok()).ok_or_else(unreadable)?;
    Ok((KeyDigest(*key), app))
}
