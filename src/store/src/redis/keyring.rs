//! Whether this node has the keys under which the store was written: the canary is opened, or kept
//! by the first node, before anything else is written.

use redis::cmd;

use super::answer::{arguments, bytes, number};
use super::{Shared, keys, script};
use crate::canary;
use crate::error::StoreError;

impl Shared {
    /// Compares the keys with the canary.
    ///
    /// # Errors
    /// [`StoreError::WrongKey`] when none of them opens it.
    pub(super) async fn check_keys(&self) -> Result<(), StoreError> {
        loop {
            let kept = bytes("the canary", self.link.read(cmd("GET").arg(keys::canary()).to_owned()).await?)?;
            let Some(fresh) = canary::check(&self.vault, kept.as_deref())? else { return Ok(()) };
            let args = arguments![kept.unwrap_or_default(), fresh];
            if number::<u8>("the canary", self.call(&script::KEEP_CANARY, vec![keys::canary()], args).await?)? == 1 {
                return Ok(());
            }
            // Another node has kept one in between, which this one must open as well.
        }
    }

    /// An answer that says "there is no such thing", which only a server may give that still has what
    /// was kept in it.
    pub(super) async fn absent<T>(&self, answer: T) -> Result<T, StoreError> {
        self.check_canary().await.map(|()| answer)
    }

    /// Whether the server still has what was kept in it. One that was emptied, or came back empty,
    /// would tell every client that its key is wrong.
    pub(super) async fn check_canary(&self) -> Result<(), StoreError> {
        let kept = self.link.read(cmd("EXISTS").arg(keys::canary()).to_owned()).await?;
        let lost = || StoreError::Unavailable("the server has lost what was kept in it".to_owned());
        if number::<u8>("the canary", kept)? == 1 { Ok(()) } else { Err(lost()) }
    }
}
