//! The installation to which the store belongs. Of nodes that start at once on a store without one, the first
//! writes it, and the others are held against it.

use redis::{Cmd, cmd};

use super::arguments::arguments;
use super::link::{Link, LinkOptions, RedisServers};
use super::reply::Reply;
use super::shared::Shared;
use super::{keys, script};
use crate::Ownership;
use crate::error::StoreError;
use crate::moving::back::MOVED_AWAY;

const WHAT: &str = "the installation of the store";

fn kept() -> Cmd {
    cmd("GET").arg(keys::installation()).to_owned()
}

/// Whether a node of this installation may open the store on these servers. Nothing is written.
///
/// # Errors
/// [`StoreError::OtherInstallation`]; any other says why the servers could not be asked.
pub async fn may_open(servers: RedisServers, ownership: &Ownership) -> Result<(), StoreError> {
    let found = Link::new(LinkOptions::new(servers)).read(kept()).await?;
    ownership.check(Reply::new(WHAT, found).text()?.as_deref()).map(drop)
}

impl Shared {
    /// Refuses servers into which a store is being moved, and those that a store was moved away from.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(crate) async fn check_not_moving(&self) -> Result<(), StoreError> {
        let mark = self.read("the mark of a move", cmd("GET").arg(keys::moving())).await?.text()?;
        Err(StoreError::unavailable(match mark.as_deref() {
            None => return Ok(()),
            Some(MOVED_AWAY) => "its store was moved into a file; to use it here all the same, remove the key `moving`",
            Some(_) => "a store is being moved into it; run `sakshi move` with --finish first",
        }))
    }

    /// Checks the installation.
    ///
    /// # Errors
    /// [`StoreError::OtherInstallation`].
    pub(crate) async fn check_installation(&self, ownership: &Ownership) -> Result<(), StoreError> {
        let found = self.read(WHAT, &kept()).await?.text()?;
        ownership.check(found.as_deref()).map(drop)
    }

    /// Checks the installation, and writes it where it is not as it should be.
    ///
    /// # Errors
    /// [`StoreError::OtherInstallation`].
    pub(crate) async fn keep_installation(&self, ownership: &Ownership) -> Result<(), StoreError> {
        loop {
            let found = self.read(WHAT, &kept()).await?.text()?;
            let Some(made_under) = ownership.check(found.as_deref())? else { return Ok(()) };
            let args = arguments![found.unwrap_or_default(), made_under];
            if self.call(&script::KEEP_MARK, vec![keys::installation()], args).await?.succeeded()? {
                return Ok(());
            }
            // Another node has written one meanwhile, which may refuse this one.
        }
    }
}
