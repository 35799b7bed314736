//! A transaction, from its opening to the end of its result.

use sakshi_domain::ids::{ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, Pending};

use super::{in_partition, table};
use crate::engine::{Key, Record};
use crate::error::StoreError;
use crate::sealing::unseal_terms;
use crate::transactions::{CompletedRecord, TransactionRecord, refusal};
use crate::vault::{Sealed, Vault};

table! {
    /// A transaction. `intent` is what pages make it of while it waits. `origin` is where its webhook goes, without the path; `watchers` are the nodes that keep a copy of one that waits.
    /// One with `verified_at` is completed, by `call`, and is seen until `until`; `code` is that of a failure, `refused` the number of why
    /// its guest has no place, `registration` the number of one who has. `page_seen_at` is when its page was first opened, `polled_at`
    /// when its outcome was first fetched.
    TRANSACTION = "txn", Record Ends {
        client: Text,
        app: Text,
        event: Bytes,
        opened_at: Integer,
        expires_at: Integer,
        origin: Text,
        watchers: Text,
        page_seen_at: Integer,
        verified_at: Integer,
        until: Integer,
        passed: Integer,
        code: Text,
        refused: Integer,
        registration: Integer,
        delivery: Integer,
        holder: Text,
        queued_at: Integer,
        address: Sealed(Field("event")),
        claimed_at: Integer,
        claim: Bytes,
        attempt: Text,
        reason: Text,
        part: Text,
        status: Integer,
        duration_ms: Integer,
        polled_at: Integer,
        answer: Bytes,
        call: Bytes,
        intent: Bytes,
        terms: Sealed(Id),
        outcome: Sealed(Id),
        #[cfg(feature = "rehearsal")]
        rehearsed: Integer since 27,
    }
}

/// The record of a transaction.
#[must_use]
pub(crate) fn transaction(id: TxnId) -> Key {
    in_partition(&TRANSACTION, id.partition(), id.as_bytes().to_vec())
}

/// The transaction of a record as it is to be seen at this time; `None` when there is none, or its result can be fetched no more.
///
/// # Errors
/// It cannot be read.
pub(crate) fn seen_of(vault: &Vault, id: TxnId, record: Option<&Record>, now: Timestamp) -> Result<Option<TransactionRecord>, StoreError> {
    let is_over = |record: &Record| record.time("until").is_some_and(|until| until <= now);
    record.filter(|record| !is_over(record)).map(|record| transaction_of(vault, id, record, now)).transpose()
}

/// The transaction of a record, as it is at this time.
///
/// # Errors
/// It cannot be read.
pub(crate) fn transaction_of(vault: &Vault, id: TxnId, record: &Record, now: Timestamp) -> Result<TransactionRecord, StoreError> {
    let unreadable = || StoreError::unreadable("a transaction");
    let opened = pending_of(vault, id, record)?;
    if !record.has("verified_at") {
        return Ok(if opened.is_expired(now) { TransactionRecord::Expired(opened) } else { TransactionRecord::Pending(opened) });
    }
    let refused = record.has("refused").then(|| u8::try_from(record.integer("refused")).map_err(|_| unreadable()).and_then(refusal));
    Ok(TransactionRecord::Completed(CompletedRecord {
        opened,
        verified_at: Timestamp::from_millis(record.integer("verified_at")),
        passed: record.integer("passed") == 1,
        refused: refused.transpose()?,
        registration: record.has("registration").then(|| record.integer("registration").unsigned_abs()),
        answer: AnswerDigest(record.bytes("answer").try_into().map_err(|_| unreadable())?),
        outcome: Sealed::from_bytes(record.bytes("outcome").to_vec()).ok_or_else(unreadable)?,
        address: record.has("address").then(|| record.bytes("address").to_vec()),
        is_polled: record.has("polled_at"),
    }))
}

/// The transaction of a record as it was opened.
///
/// # Errors
/// It cannot be read.
pub(crate) fn pending_of(vault: &Vault, id: TxnId, record: &Record) -> Result<Pending, StoreError> {
    let time = |name: &str| Timestamp::from_millis(record.integer(name));
    let event = record.has("event").then(|| record.array("event").map(EventId::from_bytes));
    let client: ClientId = record.parsed("client")?;
    // The id names the partition of its client: another client is no client of this transaction.
    if client.partition() != id.partition() {
        return Err(StoreError::unreadable("the client of a transaction"));
    }
    Ok(Pending {
        id,
        client,
        app: record.parsed("app")?,
        event: event.transpose()?,
        opened_at: time("opened_at"),
        expires_at: time("expires_at"),
        terms: unseal_terms(vault, id, record.bytes("terms"))?,
    })
}
