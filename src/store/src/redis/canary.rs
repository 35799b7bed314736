//! Check that this node has the encryption keys of the store. Before any other write it opens the canary, a sealed text
//! that the first node writes.

use redis::cmd;

use super::keys;
use super::shared::Shared;
use crate::canary;
use crate::error::StoreError;

impl Shared {
    /// Checks that this node's encryption keys open the canary, a sealed text in the store. Writes the canary to a
    /// store without one.
    ///
    /// # Errors
    /// [`StoreError::WrongKey`] when none of the keys opens the canary.
    pub(crate) async fn check_keys(&self) -> Result<(), StoreError> {
        loop {
            let stored = self.read("the canary", cmd("GET").arg(keys::canary())).await?.bytes()?;
            let Some(new_canary) = canary::check(&self.vault, stored.as_deref())? else { return Ok(()) };
            if self.replace_mark(keys::canary(), stored, new_canary).await? {
                return Ok(());
            }
            // Another node has just written a canary. The next round checks that one.
        }
    }
}
