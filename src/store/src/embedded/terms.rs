//! What a transaction was opened as, sealed at rest.
//!
//! Terms can hold a person's name (`name_hint`) and the secret in a webhook's path, so the whole
//! of them is one box that belongs to the transaction's id. Boxes are made and opened outside
//! the writer's thread; one costs about a microsecond.

use std::str::FromStr;

use rusqlite::Row;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Pending, Terms};

use super::completion::{Completion, Ended, Found};
use super::fault::{not_opened, unreadable};
use crate::error::StoreError;
use crate::record::{CompletedRecord, TransactionRecord};
use crate::transition::CompleteOutcome;
use crate::vault::{Sealed, Vault};

/// A transaction as its row has it.
pub(super) struct Opened {
    pub(super) id: TxnId,
    pub(super) client: ClientId,
    pub(super) app: AppId,
    pub(super) event: Option<EventId>,
    pub(super) opened_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) terms: Sealed,
}

/// The bytes kept of the terms of a transaction.
pub(super) fn seal_terms(vault: &Vault, id: TxnId, terms: &Terms) -> Result<Vec<u8>, StoreError> {
    let json = zeroize::Zeroizing::new(serde_json::to_vec(terms).map_err(|_| StoreError::Unavailable("terms cannot be written".into()))?);
    Ok(vault.seal(id.as_bytes(), &json).to_bytes())
}

/// The terms in a box of a transaction.
pub(super) fn open_terms(vault: &Vault, id: TxnId, sealed: &Sealed) -> Result<Terms, StoreError> {
    let json = vault.open(id.as_bytes(), sealed).map_err(not_opened)?;
    serde_json::from_slice(&json).map_err(|_| StoreError::Corrupt("the terms of a transaction cannot be read".into()))
}

/// A text column as the identifier that it holds.
pub(super) fn parsed<T: FromStr>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    row.get_ref(index)?.as_str()?.parse().map_err(|_| unreadable("an identifier cannot be read"))
}

impl Opened {
    fn unsealed(self, vault: &Vault) -> Result<Pending, StoreError> {
        let Self { id, client, app, event, opened_at, expires_at, terms } = self;
        Ok(Pending { id, client, app, event, opened_at, expires_at, terms: open_terms(vault, id, &terms)? })
    }

    fn ended(self, ended: Ended, vault: &Vault) -> Result<CompletedRecord, StoreError> {
        let Ended { verified_at, passed, refused, answer, outcome } = ended;
        Ok(CompletedRecord { opened: self.unsealed(vault)?, verified_at, passed, refused, answer, outcome })
    }
}

impl Found {
    /// The record that the row stands for.
    pub(super) fn unsealed(self, vault: &Vault) -> Result<TransactionRecord, StoreError> {
        match self.ended {
            None => self.opened.unsealed(vault).map(TransactionRecord::Pending),
            Some(ended) => self.opened.ended(ended, vault).map(TransactionRecord::Completed),
        }
    }
}

impl Completion {
    /// The outcome that this stands for.
    pub(super) fn unsealed(self, vault: &Vault) -> Result<CompleteOutcome, StoreError> {
        Ok(match self {
            Self::Completed { opened, ended, queued, repeated } => {
                let record = opened.ended(ended, vault)?;
                let Pending { id, terms, .. } = &record.opened;
                let queued = queued.map(|queued| queued.unsealed(vault, *id, terms.webhook_url.as_ref())).transpose()?;
                CompleteOutcome::Completed { record, queued, repeated }
            }
            Self::AlreadyCompleted { opened, ended } => CompleteOutcome::AlreadyCompleted(opened.ended(ended, vault)?),
            Self::Expired => CompleteOutcome::Expired,
            Self::CredentialReplayed => CompleteOutcome::CredentialReplayed,
            Self::NotFound => CompleteOutcome::NotFound,
        })
    }
}
