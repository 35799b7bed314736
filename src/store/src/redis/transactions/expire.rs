//! Ending the window of a pending transaction before its time.

use sakshi_domain::ids::TxnId;

use super::records;
use crate::error::StoreError;
use crate::redis::arguments::arguments;
use crate::redis::keys;
use crate::redis::script::EXPIRE_TRANSACTION;
use crate::redis::shared::Shared;
use crate::transactions::{ExpireOutcome, TransactionRecord};

impl Shared {
    pub(crate) async fn expire_transaction(&self, id: TxnId) -> Result<ExpireOutcome, StoreError> {
        // Its event names a key of the script, and never changes.
        let event = match self.load_transaction(id).await? {
            None => return Ok(ExpireOutcome::NotFound),
            Some(record) => record.opened().event,
        };
        let [_, _, waiting] = keys::event(id.partition(), event);
        let sharded = self.link.is_cluster();
        let args = arguments![
            id.as_bytes(),
            self.node.to_string(),
            if sharded { keys::notices_of(id.partition()) } else { keys::NOTICES.to_owned() },
            if sharded { "SPUBLISH" } else { "PUBLISH" },
            id.to_string(),
        ];
        let mut answer = self.call(&EXPIRE_TRANSACTION, vec![keys::transaction(id), waiting], args).await?.fields()?;
        if answer.text()? == "unknown" {
            return self.confirm(ExpireOutcome::NotFound).await;
        }
        Ok(match records::transaction(&self.vault, id, answer.value()?.fields()?)? {
            TransactionRecord::Pending(pending) | TransactionRecord::Expired(pending) => ExpireOutcome::Expired(pending),
            TransactionRecord::Completed(record) => ExpireOutcome::AlreadyCompleted(record),
        })
    }
}
