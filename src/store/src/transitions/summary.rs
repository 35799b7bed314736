//! Summaries of transactions, for lists. They need few fields: the outcome, which may contain a photo, is not read.

use std::sync::LazyLock;

use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;

use super::delivery;
use crate::engine::Record;
use crate::error::StoreError;
use crate::records::transaction::{TRANSACTION, decode_pending};
use crate::transactions::TransactionSummary;
use crate::vault::Vault;

/// The fields that no summary needs. The list names these, so that a new field is read.
const UNREAD: [&str; 10] =
    ["watchers", "refused", "registration", "holder", "address", "claim", "answer", "call", "intent", "outcome"];

/// The fields that are read for a summary.
pub(crate) static FIELDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    TRANSACTION.fields.iter().map(|column| column.name).filter(|name| !UNREAD.contains(name)).collect()
});

/// Decodes a summary from a record with the fields of [`FIELDS`]; `None` without a record, and once the result can no
/// longer be fetched.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_summary(
    vault: &Vault,
    id: TxnId,
    record: Option<&Record>,
    now: Timestamp,
) -> Result<Option<TransactionSummary>, StoreError> {
    let Some(record) = record.filter(|record| record.time("until").is_none_or(|until| now < until)) else {
        return Ok(None);
    };
    let opened = decode_pending(vault, id, record)?;
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
        delivery: delivery::decode_delivery(id.partition(), record)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unread_field_is_a_field_of_a_transaction() {
        assert_eq!(FIELDS.len() + UNREAD.len(), TRANSACTION.fields.len());
    }
}
