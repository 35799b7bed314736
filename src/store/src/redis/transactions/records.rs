//! Replies of the scripts as records of transactions.

use sakshi_domain::ids::{ClientId, EventId, TxnId};
use sakshi_domain::transaction::{AnswerDigest, Pending};

use crate::error::StoreError;
use crate::redis::reply::Fields;
use crate::sealing::open_terms;
use crate::transactions::{CompletedRecord, TransactionRecord, refusal};
use crate::vault::Vault;

/// A transaction: how it was opened and, if it has ended, how.
pub(crate) fn transaction(vault: &Vault, id: TxnId, mut fields: Fields) -> Result<TransactionRecord, StoreError> {
    let (client, app, event): (ClientId, _, Option<EventId>) = (fields.parsed()?, fields.parsed()?, fields.optional_parsed()?);
    let (opened_at, expires_at, terms) = (fields.time()?, fields.time()?, fields.bytes()?);
    let opened = Pending { id, client, app, event, opened_at, expires_at, terms: open_terms(vault, id, terms)? };
    let (verified_at, passed) = (fields.optional_time()?, fields.bytes()? == b"1");
    // Of a transaction without an answer, the window may have passed.
    let Some(verified_at) = verified_at else {
        return Ok(if passed { TransactionRecord::Expired(opened) } else { TransactionRecord::Pending(opened) });
    };
    let refused = fields.optional_parsed()?.map(refusal).transpose()?;
    let answer = AnswerDigest(fields.array()?);
    Ok(TransactionRecord::Completed(CompletedRecord { opened, verified_at, passed, refused, answer, outcome: fields.sealed()? }))
}

/// A transaction that must have ended.
pub(crate) fn completed(vault: &Vault, id: TxnId, fields: Fields) -> Result<CompletedRecord, StoreError> {
    match transaction(vault, id, fields)? {
        TransactionRecord::Completed(record) => Ok(record),
        TransactionRecord::Pending(_) | TransactionRecord::Expired(_) => Err(StoreError::unreadable("a completed transaction")),
    }
}
