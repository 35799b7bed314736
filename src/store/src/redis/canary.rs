//! Checks that this node has the keys under which the store was written. A node opens the canary, or
//! the first node writes it, before anything else is written.

use redis::cmd;

use super::arguments::arguments;
use super::reply::{bytes, number};
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
            let kept = bytes("the canary", self.link.read(cmd("GET").arg(keys::canary()).to_owned()).await?)?;
            let Some(fresh) = canary::check(&self.vault, kept.as_deref())? else { return Ok(()) };
            let args = arguments![kept.unwrap_or_default(), fresh];
            if number::<u8>("the canary", self.call(&script::KEEP_CANARY, vec![keys::canary()], args).await?)? == 1 {
                return Ok(());
            }
            // Another node has written one meanwhile, which this one must open as well.
        }
    }

    /// An answer that says that a record does not exist. It is given only if the server still has its
    /// data.
    pub(crate) async fn absent<T>(&self, answer: T) -> Result<T, StoreError> {
        self.check_canary().await.map(|()| answer)
    }

    /// Whether the server still has its data. Without this check a server that was emptied would make
    /// every client's key look wrong.
    pub(crate) async fn check_canary(&self) -> Result<(), StoreError> {
        let kept = self.link.read(cmd("EXISTS").arg(keys::canary()).to_owned()).await?;
        let lost = || StoreError::Unavailable("the server has lost its data".to_owned());
        if number::<u8>("the canary", kept)? == 1 { Ok(()) } else { Err(lost()) }
    }
}
