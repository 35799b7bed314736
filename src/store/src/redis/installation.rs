//! The installation (profile and authority) that owns the store. When several nodes start at once on a store without
//! one, the first node writes its own, and the others are compared with it.

use redis::{Cmd, cmd};

use super::keys;
use super::options::RedisOptions;
use super::shared::Shared;
use super::store::build_shared;
use crate::error::{OpenError, StoreError};
use crate::moving::MOVED_AWAY;
use crate::{Ownership, canary};

/// Name of the reply in errors.
const REPLY_NAME: &str = "the installation of the store";

/// Returns the command that reads the installation.
fn installation_query() -> Cmd {
    cmd("GET").arg(keys::installation()).to_owned()
}

/// Checks that a node with these options would open the store. Nothing is written.
///
/// # Errors
/// [`OpenError::Refused`] with the error of opening it, [`OpenError::Unreadable`] when the servers do not answer.
pub async fn may_open(options: RedisOptions) -> Result<(), OpenError> {
    let ownership = options.ownership.clone();
    let shared = build_shared(options);
    shared.read(REPLY_NAME, &installation_query()).await.map_err(|error| match error {
        // The first connection has read the schema.
        StoreError::OtherSchema(_) => OpenError::Refused(error),
        error => OpenError::Unreadable(error),
    })?;
    shared.may_open(&ownership).await.map_err(OpenError::Refused)
}

impl Shared {
    async fn may_open(&self, ownership: &Ownership) -> Result<(), StoreError> {
        self.check_servers().await?;
        self.check_not_moving().await?;
        self.check_installation(ownership).await?;
        self.check_schema().await?;
        let stored = self.read("the canary", cmd("GET").arg(keys::canary())).await?.bytes()?;
        canary::check(&self.vault, stored.as_deref()).map(drop)
    }

    /// Refuses servers that a store is being moved into or was moved away from.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with the required step, or when the servers do not answer.
    pub(crate) async fn check_not_moving(&self) -> Result<(), StoreError> {
        let mark = self.read("the mark of a move", cmd("GET").arg(keys::moving())).await?.text()?;
        Err(StoreError::unavailable(match mark.as_deref() {
            None => return Ok(()),
            Some(MOVED_AWAY) => "its store was moved into a file; to use it here all the same, remove the key `moving`",
            Some(_) => "a store is being moved into it; run `sakshi move` with --finish first",
        }))
    }

    /// Checks that the store belongs to this installation, or to none yet.
    ///
    /// # Errors
    /// [`StoreError::OtherInstallation`] when it belongs to another one.
    pub(crate) async fn check_installation(&self, ownership: &Ownership) -> Result<(), StoreError> {
        let stored = self.read(REPLY_NAME, &installation_query()).await?.text()?;
        ownership.check(stored.as_deref()).map(drop)
    }

    /// Checks that the store belongs to this installation; records the installation in a store without one.
    ///
    /// # Errors
    /// [`StoreError::OtherInstallation`] when it belongs to another one.
    pub(crate) async fn ensure_installation(&self, ownership: &Ownership) -> Result<(), StoreError> {
        loop {
            let stored = self.read(REPLY_NAME, &installation_query()).await?.text()?;
            let Some(installation) = ownership.check(stored.as_deref())? else { return Ok(()) };
            if self.replace_mark(keys::installation(), stored, installation).await? {
                return Ok(());
            }
            // Another node has just written an installation. The next round checks that one.
        }
    }
}
