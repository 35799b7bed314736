//! Checks that this node has the keys under which the store was written. A node opens the canary, or
//! the first node writes it, before anything else is written.

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

    /// An answer that says that a record does not exist. It is given only if the server still has its
    /// data.
    pub(crate) async fn confirm_absent<T>(&self, answer: T) -> Result<T, StoreError> {
        self.check_canary().await.map(|()| answer)
    }

    /// Whether the server still has its data. Without this check a server that was emptied would make
    /// every client's key look wrong.
    pub(crate) async fn check_canary(&self) -> Result<(), StoreError> {
        let kept = self.read("the canary", cmd("EXISTS").arg(keys::canary())).await?;
        if kept.succeeded()? { Ok(()) } else { Err(StoreError::unavailable("the server has lost its data")) }
    }
}
