//! Checks that this node has the keys of the store. A node opens the canary, or the first node writes it, before any
//! other write.

use redis::cmd;

use super::arguments::arguments;
use super::shared::Shared;
use super::{keys, script};
use crate::canary;
use crate::error::StoreError;

impl Shared {
    /// Checks the keys against the canary.
    ///
    /// # Errors
    /// [`StoreError::WrongKey`] when none of them opens it.
    pub(crate) async fn check_keys(&self) -> Result<(), StoreError> {
        loop {
            let kept = self.read("the canary", cmd("GET").arg(keys::canary())).await?.bytes()?;
            let Some(fresh) = canary::check(&self.vault, kept.as_deref())? else { return Ok(()) };
            let args = arguments![kept.unwrap_or_default(), fresh];
            if self.call(&script::KEEP_MARK, vec![keys::canary()], args).await?.succeeded()? {
                return Ok(());
            }
            // Another node has written one meanwhile, which this one must open as well.
        }
    }
}
