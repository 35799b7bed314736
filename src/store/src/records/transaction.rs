//! A transaction, from its opening until its result expires.

use sakshi_domain::ids::{ClientId, EventId, TxnId};
use sakshi_domain::limits::GUESTS_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, Pending};

use super::{delivery, key_in_partition, table};
use crate::engine::{Key, Record};
use crate::error::StoreError;
use crate::invariants::is_id;
use crate::sealing::unseal_terms;
use crate::transactions::{CompletedRecord, TransactionRecord, refusal_from_number};
use crate::vault::{Sealed, Vault};

table! {
    /// A transaction. `intent` are the bytes from which its pages build the intent while it is pending. `origin` is the
    /// destination of its webhook, without the path. `watchers` are the nodes that keep a copy while it is pending.
    ///
    /// A transaction with `verified_at` was completed by `call`, and its result can be fetched until `until`. `code` is
    /// the code of a failure, `refused` the number of the reason for refusing its guest, and `registration` the number
    /// of its registered guest. `page_seen_at` is the first opening of its page, `polled_at` the first fetch of its
    /// result.
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
        rehearsed: Integer since 29,
    } always {
        Needed(&["client", "app", "opened_at", "expires_at", "terms"]),
        Word("client", is_id),
        Word("app", is_id),
        Sized("event", 12, 12),
        Sized("answer", 32, 32),
        Sized("call", 16, 16),
        With("verified_at", &["until", "passed", "answer", "call", "outcome"]),
        With("until", &["verified_at"]),
        With("passed", &["verified_at"]),
        With("answer", &["verified_at"]),
        With("call", &["verified_at"]),
        With("outcome", &["verified_at"]),
        With("code", &["verified_at"]),
        With("polled_at", &["verified_at"]),
        With("delivery", &["verified_at"]),
        With("refused", &["event", "verified_at", "code"]),
        With("registration", &["event", "verified_at"]),
        Without("refused", &["registration", "delivery"]),
        Without("verified_at", &["intent"]),
        Excludes("passed", 1, &["code", "refused"]),
        Excludes("passed", 0, &["registration"]),
        Within("passed", 0, 1),
        Within("refused", 0, 3),
        Within("registration", 1, GUESTS_MAX as i64),
        Less("verified_at", "expires_at"),
        NotAbove("verified_at", "until"),
        Once(&["verified_at", "page_seen_at", "polled_at"]),
        Guarded("verified_at", Need::Before("expires_at")),
        Guarded("expires_at", Need::Unset("verified_at")),
        Guarded("watchers", Need::Unset("verified_at")),
        Guarded("page_seen_at", Need::Unset("verified_at")),
        Guarded("polled_at", Need::AtLeast("verified_at")),
        Guarded("passed", Need::Unset("verified_at")),
        Guarded("answer", Need::Unset("verified_at")),
        Guarded("delivery", Need::Unset("verified_at")),
        Fixed(&["client", "app", "event", "opened_at"]),
        New,
        Key(KeyRule::OfId { id_bytes: 16 }),
    } and delivery::RULES
}

/// Returns the key of the record of a transaction.
#[must_use]
pub(crate) fn key_of_transaction(id: TxnId) -> Key {
    key_in_partition(&TRANSACTION, id.partition(), id.as_bytes().to_vec())
}

/// Decodes the transaction in a record; `None` without a record, and once the result can no longer be fetched.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_fetchable(
    vault: &Vault,
    id: TxnId,
    record: Option<&Record>,
    now: Timestamp,
) -> Result<Option<TransactionRecord>, StoreError> {
    let has_ended = |record: &Record| record.time("until").is_some_and(|until| until <= now);
    record.filter(|record| !has_ended(record)).map(|record| decode_transaction(vault, id, record, now)).transpose()
}

/// Decodes the transaction in a record, in its state at `now`.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_transaction(
    vault: &Vault,
    id: TxnId,
    record: &Record,
    now: Timestamp,
) -> Result<TransactionRecord, StoreError> {
    let unreadable = || StoreError::unreadable("a transaction");
    let opened = decode_pending(vault, id, record)?;
    if !record.has("verified_at") {
        return Ok(if opened.is_expired(now) {
            TransactionRecord::Expired(opened)
        } else {
            TransactionRecord::Pending(opened)
        });
    }
    let refused = record
        .has("refused")
        .then(|| u8::try_from(record.integer("refused")).map_err(|_| unreadable()).and_then(refusal_from_number));
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

/// Decodes the transaction in a record as it was opened.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_pending(vault: &Vault, id: TxnId, record: &Record) -> Result<Pending, StoreError> {
    let time = |name: &str| Timestamp::from_millis(record.integer(name));
    let event = record.has("event").then(|| record.array("event").map(EventId::from_bytes));
    let client: ClientId = record.parsed("client")?;
    // The id names the partition of its client, so a client in another partition is wrong.
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
