//! The log of what operators have changed.

use super::{Store, is_done};
use crate::audit_log::{AuditHead, AuditRecord};
use crate::engine::Query;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::audit::audit_log;
use crate::transitions::audit::{append, entry_of, parts, values};

impl Store {
    /// Appends an entry. The same entry again is another one.
    pub fn append_audit(&self, entry: String) -> StoreFuture<AuditRecord> {
        self.run(|store| async move {
            for _ in 0..ATTEMPTS {
                let record = store.head().await?.followed_by(entry.clone());
                let values = values(store.vault(), &record)?;
                if is_done(&store.commit(append(record.number, &values)).await?) {
                    return Ok(record);
                }
                // Sealed bytes never repeat, so this is the entry of this call, whose answer was lost.
                if store.read(vec![Query::entries(audit_log(), record.number, 1)]).await?.entries()?.first() == Some(&values) {
                    return Ok(record);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Entries after this number, oldest first.
    pub fn audit_log(&self, after: u64, limit: u32) -> StoreFuture<Vec<AuditRecord>> {
        self.run(move |store| async move {
            let first = after.saturating_add(1);
            let entries = store.read(vec![Query::entries(audit_log(), first, limit.into())]).await?.entries()?;
            entries.iter().map(|values| entry_of(store.vault(), values)).collect()
        })
    }

    /// The newest entry.
    pub fn audit_head(&self) -> StoreFuture<AuditHead> {
        self.run(|store| async move { store.head().await })
    }

    async fn head(&self) -> Result<AuditHead, StoreError> {
        let number = self.read(vec![Query::Length(audit_log())]).await?.number()?;
        if number == 0 {
            return self.confirmed(AuditHead::NONE).await;
        }
        let newest = self.read(vec![Query::entries(audit_log(), number, 1)]).await?.entries()?;
        let (number, _, hash, _) = parts(newest.first().map_or(&[], Vec::as_slice))?;
        Ok(AuditHead { number, hash })
    }
}
