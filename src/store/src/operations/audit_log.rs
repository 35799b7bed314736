//! The audit log of operators' changes.

use std::time::Duration;

use super::{Store, is_done, new_call_id};
use crate::audit_log::{AuditHead, AuditRecord, UnsentAudit};
use crate::engine::{Query, Record};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::audit::{key_of_audit_log, key_of_audit_push};
use crate::transitions::audit::{
    append, begin_push, decode_entry, decode_received_head, encode_entry, extend_push, split_entry,
};

impl Store {
    /// Appends an entry, even if an equal entry exists.
    pub fn append_audit(&self, entry: String) -> StoreFuture<AuditRecord> {
        self.run(|store| async move {
            for _ in 0..ATTEMPTS {
                let record = store.newest_head().await?.next_record(entry.clone());
                let values = encode_entry(store.vault(), &record)?;
                if is_done(&store.commit(append(record.number, &values)).await?) {
                    return Ok(record);
                }
                // Sealed bytes never repeat, so an equal entry was appended by this call, whose response was lost.
                if store.read(vec![Query::entry(key_of_audit_log(), record.number)]).await?.entries()?.first()
                    == Some(&values)
                {
                    return Ok(record);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns entries after this number, oldest first. Readers verify the chain of hashes.
    pub fn audit_log(&self, after: u64, limit: u32) -> StoreFuture<Vec<AuditRecord>> {
        self.run(move |store| async move {
            let entries = store
                .read_as_is(vec![Query::entries(key_of_audit_log(), after.saturating_add(1), limit.into())])
                .await?
                .entries()?;
            entries.iter().map(|values| decode_entry(store.vault(), values)).collect()
        })
    }

    /// Returns the newest entry.
    pub fn audit_head(&self) -> StoreFuture<AuditHead> {
        self.run(|store| async move { store.newest_head().await })
    }

    /// Returns at most `limit` entries that the log's receiver does not have yet, for this node to send. Other nodes do
    /// not send for `lease`; [`Store::settle_audit_push`] extends this time.
    ///
    /// After a restore or rollback the store may have other entries than the receiver. The whole log is then sent
    /// again.
    pub fn take_audit_push(&self, lease: Duration, limit: u32) -> StoreFuture<UnsentAudit> {
        self.run(move |store| async move {
            let mut answers =
                store.read(vec![Query::Record(key_of_audit_push()), Query::Length(key_of_audit_log())]).await?;
            let (push_record, length) = (answers.record()?, answers.number()?);
            let mut received = push_record.as_ref().map_or(Ok(AuditHead::NONE), decode_received_head)?;
            let is_sent_by_other_node = |record: &Record| {
                record.bytes("node") != store.node().as_bytes() && answers.now.millis() < record.integer("until")
            };
            let waiting_after = |received: AuditHead| length.saturating_sub(received.number);
            let may_be_sent_by_other = store.engine().is_shared();
            if length == received.number
                || may_be_sent_by_other && push_record.as_ref().is_some_and(is_sent_by_other_node)
            {
                return Ok(UnsentAudit { waiting: waiting_after(received), next: None });
            }
            // Includes the newest entry that the receiver has, to detect a rollback.
            let mut entries = store.entries_from(received.number.max(1), u64::from(limit) + 1).await?;
            if received.number > 0
                && entries.first().is_none_or(|first| (first.number, first.hash) != (received.number, received.hash))
            {
                received = AuditHead::NONE;
                entries = store.entries_from(1, limit.into()).await?;
            }
            entries.retain(|entry| entry.number > received.number);
            entries.truncate(limit as usize);
            let is_sender = is_done(
                &store.commit(begin_push(push_record.as_ref(), received, store.node(), lease, new_call_id())).await?,
            );
            Ok(UnsentAudit { waiting: waiting_after(received), next: is_sender.then_some((received, entries)) })
        })
    }

    /// Records that the receiver, which had the entries up to `from`, has those up to `to`. Other nodes do not send for
    /// `lease`. Returns false if another node sends now.
    pub fn settle_audit_push(&self, from: AuditHead, to: AuditHead, lease: Duration) -> StoreFuture<bool> {
        self.run(move |store| async move {
            Ok(is_done(&store.commit(extend_push(from, to, store.node(), lease, new_call_id())).await?))
        })
    }

    /// Returns at most `limit` entries from number `first` on.
    async fn entries_from(&self, first: u64, limit: u64) -> Result<Vec<AuditRecord>, StoreError> {
        let entries = self.read(vec![Query::entries(key_of_audit_log(), first, limit)]).await?.entries()?;
        entries.iter().map(|values| decode_entry(self.vault(), values)).collect()
    }

    /// Returns the number and the hash of the newest entry.
    async fn newest_head(&self) -> Result<AuditHead, StoreError> {
        let number = self.read(vec![Query::Length(key_of_audit_log())]).await?.number()?;
        if number == 0 {
            return self.unless_records_were_lost(AuditHead::NONE).await;
        }
        let newest = self.read(vec![Query::entry(key_of_audit_log(), number)]).await?.entries()?;
        let (number, _, hash, _) = split_entry(newest.first().map_or(&[], Vec::as_slice))?;
        Ok(AuditHead { number, hash })
    }
}
