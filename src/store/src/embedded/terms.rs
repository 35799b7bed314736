//! Rows of transactions as the records that they stand for.
//!
//! Boxes are opened outside the threads of the store, on the caller's side.

use std::str::FromStr;

use rusqlite::Row;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

use super::completion::{Completion, Ended, Found};
use super::fault::unreadable;
use crate::error::StoreError;
use crate::record::{CompletedRecord, TransactionRecord};
use crate::sealing::open_terms;
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
