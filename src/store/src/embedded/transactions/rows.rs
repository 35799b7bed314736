//! Rows of transactions, and the records that they stand for.

use rusqlite::Row;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, Pending};

use crate::embedded::database::statements::Database;
use crate::embedded::errors::unreadable;
use crate::embedded::rows::{optional_time, parsed, sealed, time};
use crate::error::StoreError;
use crate::sealing::open_terms;
use crate::transactions::{CompletedRecord, TransactionRecord, refusal};
use crate::vault::{Sealed, Vault};

const FIND: &str = "SELECT t.row, t.origin, c.client_id, t.app, t.opened_at, t.expires_at, t.terms, \
     r.until, r.verified_at, r.passed, r.answer, coalesce(g.outcome, r.outcome), r.refused, t.event, e.id \
     FROM transactions t JOIN clients c ON c.row = t.client LEFT JOIN results r ON r.txn = t.row \
     LEFT JOIN registrations g ON g.row = r.registration LEFT JOIN events e ON e.row = t.event WHERE t.id = ?1";

/// A transaction as it was opened, its terms still sealed.
pub(crate) struct Opened {
    pub(crate) id: TxnId,
    pub(crate) client: ClientId,
    pub(crate) app: AppId,
    pub(crate) event: Option<EventId>,
    pub(crate) opened_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) terms: Sealed,
}

/// The result of a completed transaction.
pub(crate) struct Ended {
    pub(crate) verified_at: Timestamp,
    pub(crate) passed: bool,
    pub(crate) refused: Option<EventRefusal>,
    pub(crate) answer: AnswerDigest,
    pub(crate) outcome: Sealed,
}

/// A transaction's row with its result, if it has one.
pub(crate) struct Found {
    pub(crate) row: i64,
    pub(crate) event: Option<i64>,
    pub(crate) origin: Option<String>,
    until: Option<Timestamp>,
    pub(crate) opened: Opened,
    pub(crate) ended: Option<Ended>,
}

/// The transaction, unless the time of its result has passed.
pub(crate) fn find(db: &Database<'_>, id: TxnId) -> rusqlite::Result<Option<Found>> {
    let found = db.first(FIND, [id.as_bytes()], |row| Found::read(row, id))?;
    Ok(found.filter(|found| found.until.is_none_or(|until| db.now() < until)))
}

impl Found {
    fn read(row: &Row<'_>, id: TxnId) -> rusqlite::Result<Self> {
        let opened = Opened {
            id,
            client: parsed(row, 2)?,
            app: parsed(row, 3)?,
            event: row.get::<_, Option<_>>(14)?.map(EventId::from_bytes),
            opened_at: time(row, 4)?,
            expires_at: time(row, 5)?,
            terms: sealed(row, 6, "the terms of a transaction cannot be read")?,
        };
        let until = optional_time(row, 7)?;
        let ended = until.map(|_| Ended::read(row)).transpose()?;
        Ok(Self { row: row.get(0)?, event: row.get(13)?, origin: row.get(1)?, until, opened, ended })
    }

    /// The record that the row stands for.
    pub(crate) fn unsealed(self, vault: &Vault) -> Result<TransactionRecord, StoreError> {
        match self.ended {
            None => self.opened.unsealed(vault).map(TransactionRecord::Pending),
            Some(ended) => self.opened.completed(ended, vault).map(TransactionRecord::Completed),
        }
    }
}

impl Ended {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let known = |number| refusal(number).ok_or_else(|| unreadable("a refusal is of no known kind"));
        let refused = row.get::<_, Option<i64>>(12)?.map(known);
        Ok(Self {
            verified_at: time(row, 8)?,
            passed: row.get(9)?,
            refused: refused.transpose()?,
            answer: AnswerDigest(row.get(10)?),
            outcome: sealed(row, 11, "an outcome cannot be read")?,
        })
    }
}

impl Opened {
    fn unsealed(self, vault: &Vault) -> Result<Pending, StoreError> {
        let Self { id, client, app, event, opened_at, expires_at, terms } = self;
        Ok(Pending { id, client, app, event, opened_at, expires_at, terms: open_terms(vault, id, &terms)? })
    }

    pub(crate) fn completed(self, ended: Ended, vault: &Vault) -> Result<CompletedRecord, StoreError> {
        let Ended { verified_at, passed, refused, answer, outcome } = ended;
        Ok(CompletedRecord { opened: self.unsealed(vault)?, verified_at, passed, refused, answer, outcome })
    }
}
