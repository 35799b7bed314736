//! The log of what operators have changed. The file itself refuses to remove an entry or to change its number and hashes. What is
//! sealed may be sealed with another key; its hash shows whether it still says the same.

use rusqlite::{Row, params};

use super::database::statements::Database;
use super::rows::{signed, unsigned};
use super::store::EmbeddedStore;
use crate::audit_log::{AuditHash, AuditHead, AuditLog, AuditRecord};
use crate::error::StoreFuture;
use crate::sealing::{open_audit_entry, seal_audit_entry};

const APPEND: &str = "INSERT INTO audit_log (number, previous, hash, box) VALUES (?1, ?2, ?3, ?4)";
pub(crate) const READ: &str = "SELECT number, previous, hash, box FROM audit_log WHERE number > ?1 ORDER BY number LIMIT ?2";
pub(crate) const HEAD: &str = "SELECT number, hash FROM audit_log ORDER BY number DESC LIMIT 1";

impl AuditLog for EmbeddedStore {
    fn append_audit(&self, entry: String) -> StoreFuture<AuditRecord> {
        self.write(entry.len(), move |db| {
            let record = head(db)?.followed_by(entry.clone());
            let sealed = seal_audit_entry(&db.vault, record.number, &record.entry)?;
            db.change(APPEND, params![signed(record.number), record.previous.0, record.hash.0, sealed])?;
            Ok(record)
        })
    }

    fn audit_log(&self, after: u64, limit: u32) -> StoreFuture<Vec<AuditRecord>> {
        self.read(move |db| {
            db.all(READ, params![signed(after), limit], |row| {
                let number = unsigned(row, 0)?;
                let entry = open_audit_entry(&db.vault, number, row.get::<_, Vec<u8>>(3)?)?;
                Ok(AuditRecord { number, previous: hash(row, 1)?, hash: hash(row, 2)?, entry })
            })
        })
    }

    fn audit_head(&self) -> StoreFuture<AuditHead> {
        self.read(head)
    }
}

fn head(db: &Database) -> rusqlite::Result<AuditHead> {
    let newest = db.first(HEAD, [], |row| Ok(AuditHead { number: unsigned(row, 0)?, hash: hash(row, 1)? }))?;
    Ok(newest.unwrap_or(AuditHead::NONE))
}

fn hash(row: &Row<'_>, index: usize) -> rusqlite::Result<AuditHash> {
    row.get(index).map(AuditHash)
}
