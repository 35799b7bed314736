//! Summaries of transactions, for lists: read from a few fields, because an outcome may hold a photo.

use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;

use super::delivery;
use crate::engine::Record;
use crate::error::StoreError;
use crate::records::transaction::pending_of;
use crate::transactions::TransactionSummary;
use crate::vault::Vault;

/// The fields of a summary.
pub(crate) const FIELDS: &[&str] = &[
    "client",
    "app",
    "event",
    "opened_at",
    "expires_at",
    "terms",
    "page_seen_at",
    "verified_at",
    "until",
    "passed",
    "code",
    "polled_at",
    "delivery",
    "origin",
    "queued_at",
    "claimed_at",
    "attempt",
    "reason",
    "part",
    "status",
    "duration_ms",
];

/// Returns the summary of a record with the fields of [`FIELDS`]; `None` when there is none, or its result can no
/// longer be fetched.
///
/// # Errors
/// It cannot be read.
pub(crate) fn summary_of(
    vault: &Vault,
    id: TxnId,
    record: Option<&Record>,
    now: Timestamp,
) -> Result<Option<TransactionSummary>, StoreError> {
    let Some(record) = record.filter(|record| record.time("until").is_none_or(|until| now < until)) else {
        return Ok(None);
    };
    let opened = pending_of(vault, id, record)?;
    let status = match (record.has("verified_at"), record.integer("passed") == 1) {
        (true, true) => TransactionStatus::Passed,
        (true, false) => TransactionStatus::Failed,
        (false, _) if opened.is_expired(now) => TransactionStatus::Expired,
        (false, _) => TransactionStatus::Pending,
    };
    Ok(Some(TransactionSummary {
        opened,
        status,
        page_seen_at: record.time("page_seen_at"),
        verified_at: record.time("verified_at"),
        code: record.has("code").then(|| record.text("code").to_owned()),
        polled_at: record.time("polled_at"),
        delivery: delivery::delivery_of(id.partition(), record)?,
    }))
}
