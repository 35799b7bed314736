//! Hashes as the records that they stand for.

use redis::Value;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::{ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, Pending};

use super::answer::{Fields, unreadable};
use crate::error::StoreError;
use crate::record::{CompletedRecord, TransactionRecord};
use crate::sealing::open_terms;
use crate::transition::{IdempotencyScope, IdempotentAnswer};
use crate::vault::Vault;

/// What the scripts answer of a transaction: how it was opened and, if it has, how it ended.
pub(super) fn transaction(vault: &Vault, id: TxnId, mut fields: Fields) -> Result<TransactionRecord, StoreError> {
    let (client, app, event): (ClientId, _, Option<EventId>) = (fields.parsed()?, fields.parsed()?, fields.optional_parsed()?);
    let (opened_at, expires_at, terms) = (fields.time()?, fields.time()?, fields.sealed()?);
    let opened = Pending { id, client, app, event, opened_at, expires_at, terms: open_terms(vault, id, &terms)? };
    let Some(verified_at) = fields.optional_time()? else { return Ok(TransactionRecord::Pending(opened)) };
    let passed = fields.bytes()? == b"1";
    let refused = fields.optional_text()?.map(|number| refusal(&number)).transpose()?;
    let answer = AnswerDigest(fields.array()?);
    Ok(TransactionRecord::Completed(CompletedRecord { opened, verified_at, passed, refused, answer, outcome: fields.sealed()? }))
}

/// The same of one that has ended.
pub(super) fn completed(vault: &Vault, id: TxnId, fields: Fields) -> Result<CompletedRecord, StoreError> {
    match transaction(vault, id, fields)? {
        TransactionRecord::Completed(record) => Ok(record),
        TransactionRecord::Pending(_) => Err(unreadable("a completed transaction")),
    }
}

/// The refusal behind its number.
pub(super) fn refusal(number: &str) -> Result<EventRefusal, StoreError> {
    match number {
        "0" => Ok(EventRefusal::Disabled),
        "1" => Ok(EventRefusal::Expired),
        "2" => Ok(EventRefusal::Full),
        _ => Err(unreadable("a refusal")),
    }
}

/// What is kept under an idempotency key.
pub(super) fn idempotent(scope: IdempotencyScope, answer: Value) -> Result<Option<IdempotentAnswer>, StoreError> {
    let Some(mut fields) = Fields::maybe("a kept answer", answer)? else { return Ok(None) };
    let (request, answer, until) = (fields.array()?, fields.sealed()?, fields.time()?);
    Ok(Some(IdempotentAnswer { scope, request, answer, until }))
}

/// The request, the answer and its end, as the scripts are given them.
pub(super) fn asked(idempotency: Option<&IdempotentAnswer>) -> [Option<Vec<u8>>; 3] {
    let of = |part: fn(&IdempotentAnswer) -> Vec<u8>| idempotency.map(part);
    [of(|kept| kept.request.to_vec()), of(|kept| kept.answer.to_bytes()), of(|kept| ends(kept.until))]
}

fn ends(at: Timestamp) -> Vec<u8> {
    super::answer::Argument::argument(at)
}
