//! The memory of credentials that were presented, which reaches across clients and therefore has
//! slots of its own.
//!
//! A credential is reserved for its transaction before that ends, and given back when this call did
//! not end it. A crash in between, or a race of several answers with one credential, can leave a
//! reservation: a credential that was never accepted may be refused under another transaction while
//! its window lasts. The reverse cannot happen: one that was accepted is remembered from before its
//! transaction ended, and another call's release puts nothing in its place.

use sakshi_domain::ids::TxnId;
use uuid::Uuid;

use super::answer::{Fields, arguments, unreadable};
use super::script::{RELEASE_CREDENTIAL, RESERVE_CREDENTIAL};
use super::{Shared, keys};
use crate::error::StoreError;
use crate::transition::CompleteTransaction;

/// What a call found out about its credential.
pub(super) enum Reservation {
    /// There is none, or an earlier attempt of the same call has reserved it in another's place.
    Kept,
    /// It is reserved, and can be given back.
    Made { key: Vec<u8>, memory: Vec<u8>, before: Option<Vec<u8>> },
    /// It was presented under another transaction.
    Taken,
}

impl Shared {
    /// Reserves the credential of a completion, if it comes with one.
    pub(super) async fn reserve(&self, complete: &CompleteTransaction, id: TxnId, call: Uuid) -> Result<Reservation, StoreError> {
        let Some(credential) = complete.credential else { return Ok(Reservation::Kept) };
        let key = keys::credential(&credential.digest.0);
        let args = arguments![id.as_bytes(), call.as_bytes(), credential.holder_bound, complete.replay_window];
        let mut answer = Fields::of("a credential's memory", self.call(&RESERVE_CREDENTIAL, vec![key.clone()], args).await?)?;
        Ok(match answer.text()?.as_str() {
            "again" => Reservation::Kept,
            "taken" => Reservation::Taken,
            "reserved" => Reservation::Made { key, memory: answer.bytes()?, before: answer.optional()? },
            _ => return Err(unreadable("a credential's memory")),
        })
    }

    /// Gives a reservation back. When that fails it lasts for its window, which is safe.
    pub(super) async fn release(&self, reservation: Reservation) {
        let Reservation::Made { key, memory, before } = reservation else { return };
        if let Err(error) = self.call(&RELEASE_CREDENTIAL, vec![key], arguments![memory, before]).await {
            tracing::warn!(%error, "a credential stays reserved for a transaction that it did not end");
        }
    }
}
