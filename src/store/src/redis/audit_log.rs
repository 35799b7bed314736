//! The log of what operators have changed: a list, in which the place of an entry is its number.
//!
//! The hash of an entry is made here, so an entry is appended only if its predecessor is still the newest.

use redis::cmd;

use super::arguments::arguments;
use super::data_loss::AUDIT_LOG;
use super::keys;
use super::reply::Reply;
use super::script::APPEND_AUDIT;
use super::shared::Shared;
use super::store::RedisStore;
use crate::audit_log::{AuditHash, AuditHead, AuditLog, AuditRecord};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::sealing::{open_audit_entry, seal_audit_entry};

const WHAT: &str = "an entry of the audit log";

impl AuditLog for RedisStore {
    fn append_audit(&self, entry: String) -> StoreFuture<AuditRecord> {
        self.run(|store| async move {
            for _ in 0..ATTEMPTS {
                let record = store.audit_head().await?.followed_by(entry.clone());
                let sealed = seal_audit_entry(&store.vault, record.number, &record.entry)?;
                let written = [&record.number.to_be_bytes()[..], &record.previous.0, &record.hash.0, &sealed].concat();
                let args = arguments![record.number, &record.previous.0, written];
                if store.call(&APPEND_AUDIT, vec![keys::audit_log()], args).await?.succeeded()? {
                    store.link.loss_guard().record(AUDIT_LOG, keys::audit_log(), record.number);
                    return Ok(record);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    fn audit_log(&self, after: u64, limit: u32) -> StoreFuture<Vec<AuditRecord>> {
        self.run(move |store| async move {
            let last = after.saturating_add(u64::from(limit)).saturating_sub(1);
            let found = store.read(WHAT, cmd("LRANGE").arg(keys::audit_log()).arg(after).arg(last)).await?;
            found.fields()?.rest().map(|written| store.audit_record(written)).collect()
        })
    }

    fn audit_head(&self) -> StoreFuture<AuditHead> {
        self.run(|store| async move { store.audit_head().await })
    }
}

/// The number, the hash before, the own hash, and what is sealed.
fn parts(written: &[u8]) -> Option<(u64, AuditHash, AuditHash, &[u8])> {
    let (number, rest) = written.split_first_chunk()?;
    let (previous, rest) = rest.split_first_chunk()?;
    let (hash, sealed) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), AuditHash(*previous), AuditHash(*hash), sealed))
}

impl Shared {
    async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        let Some(written) = self.read(WHAT, cmd("LINDEX").arg(keys::audit_log()).arg(-1)).await?.bytes()? else {
            return self.confirm(AuditHead::NONE).await;
        };
        let (number, _, hash, _) = parts(&written).ok_or_else(|| StoreError::unreadable(WHAT))?;
        Ok(AuditHead { number, hash })
    }

    fn audit_record(&self, written: Reply) -> Result<AuditRecord, StoreError> {
        let written = written.bytes()?.unwrap_or_default();
        let (number, previous, hash, sealed) = parts(&written).ok_or_else(|| StoreError::unreadable(WHAT))?;
        Ok(AuditRecord { number, previous, hash, entry: open_audit_entry(&self.vault, number, sealed)? })
    }
}
