//! The memory of presented credentials. It is shared by all clients, so each credential has a slot of
//! its own.
//!
//! A credential is reserved for its transaction before the transaction ends, and released if this
//! call did not end it. A crash in between, or a race of several answers with one credential, can
//! leave a reservation: a credential that was never accepted may be refused under another transaction
//! for the replay window. The reverse cannot happen: an accepted credential is remembered from before
//! its transaction ended, and the release by another call does not overwrite it.

use sakshi_domain::ids::TxnId;
use uuid::Uuid;

use crate::error::StoreError;
use crate::redis::arguments::arguments;
use crate::redis::keys;
use crate::redis::script::{RELEASE_CREDENTIAL, RESERVE_CREDENTIAL};
use crate::redis::shared::Shared;
use crate::transactions::CompleteTransaction;

/// The outcome of reserving a credential.
pub(crate) enum Reservation {
    /// There is no credential, or an earlier attempt of this call has reserved it over another memory.
    Kept,
    /// It is reserved, and can be released.
    Made { key: Vec<u8>, memory: Vec<u8>, before: Option<Vec<u8>> },
    /// It was presented under another transaction.
    Taken,
}

impl Shared {
    /// Reserves the credential of a completion, if it comes with one.
    pub(crate) async fn reserve(&self, complete: &CompleteTransaction, id: TxnId, call: Uuid) -> Result<Reservation, StoreError> {
        let Some(credential) = complete.credential else { return Ok(Reservation::Kept) };
        let key = keys::credential(&credential.digest.0);
        let args = arguments![id.as_bytes(), call.as_bytes(), credential.holder_bound, complete.replay_window];
        let mut answer = self.call(&RESERVE_CREDENTIAL, vec![key.clone()], args).await?.fields()?;
        Ok(match answer.text()?.as_str() {
            "again" => Reservation::Kept,
            "taken" => Reservation::Taken,
            "reserved" => Reservation::Made { key, memory: answer.bytes()?, before: answer.optional()? },
            _ => return Err(answer.unreadable()),
        })
    }

    /// Releases a reservation. If that fails it lasts for the replay window, which is safe.
    pub(crate) async fn release(&self, reservation: Reservation) {
        let Reservation::Made { key, memory, before } = reservation else { return };
        if let Err(error) = self.call(&RELEASE_CREDENTIAL, vec![key], arguments![memory, before]).await {
            tracing::warn!(%error, "a credential stays reserved for a transaction that it did not end");
        }
    }
}
