//! Check that this node has the keys of the store: it opens the canary before any other write. The first node writes
//! the canary.

use redis::cmd;

use super::arguments::arguments;
use super::shared::Shared;
use super::{keys, script};
use crate::canary;
use crate::error::StoreError;

impl Shared {
    /// Checks this node's keys against the canary; writes the canary to a store without one.
    ///
    /// # Errors
    /// [`StoreError::WrongKey`] when none of the keys opens the canary.
    pub(crate) async fn check_keys(&self) -> Result<(), StoreError> {
        loop {
            let stored = self.read("the canary", cmd("GET").arg(keys::canary())).await?.bytes()?;
            let Some(fresh) = canary::check(&self.vault, stored.as_deref())? else { return Ok(()) };
            let args = arguments![stored.unwrap_or_default(), fresh];
            if self.call(&script::KEEP_MARK, vec![keys::canary()], args).await?.succeeded()? {
                return Ok(());
            }
            // Another node has written a canary meanwhile, which is checked next.
        }
    }
}
