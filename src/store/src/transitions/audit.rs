//! The log of what operators have changed. The hash of an entry is made here, so an entry is appended only if its predecessor is still
//! the newest.

use crate::audit_log::{AuditHash, AuditRecord};
use crate::engine::{Batch, Guard, Op, Operand, Value};
use crate::error::StoreError;
use crate::records::audit::audit_log;
use crate::sealing::{seal_audit_entry, unseal_audit_entry};
use crate::vault::Vault;

/// The values of an entry.
///
/// # Errors
/// It cannot be sealed.
pub(crate) fn values(vault: &Vault, record: &AuditRecord) -> Result<Vec<Value>, StoreError> {
    let sealed = seal_audit_entry(vault, record.number, &record.entry)?;
    Ok(vec![Value::number(record.number), record.previous.0[..].into(), record.hash.0[..].into(), sealed.into()])
}

/// The batch that appends an entry with these values under this number.
#[must_use]
pub(crate) fn append(number: u64, values: &[Value]) -> Batch {
    let values = values.iter().cloned().map(Operand::Value).collect();
    Batch::new(vec![Guard::Length(audit_log(), number - 1)], vec![Op::Append(audit_log(), values)])
}

/// The number of an entry, the hash before it and its own, and what is sealed.
type Parts<'a> = (u64, AuditHash, AuditHash, &'a [u8]);

/// The parts of an entry.
///
/// # Errors
/// It has other values.
pub(crate) fn parts(values: &[Value]) -> Result<Parts<'_>, StoreError> {
    let unreadable = || StoreError::unreadable("an entry of the audit log");
    let [Value::Integer(number), Value::Bytes(previous), Value::Bytes(hash), Value::Bytes(sealed)] = values else {
        return Err(unreadable());
    };
    let hash_of = |bytes: &[u8]| bytes.try_into().map(AuditHash).map_err(|_| unreadable());
    Ok((number.unsigned_abs(), hash_of(previous)?, hash_of(hash)?, sealed))
}

/// The entry with these values.
///
/// # Errors
/// It cannot be read.
pub(crate) fn entry_of(vault: &Vault, values: &[Value]) -> Result<AuditRecord, StoreError> {
    let (number, previous, hash, sealed) = parts(values)?;
    Ok(AuditRecord { number, previous, hash, entry: unseal_audit_entry(vault, number, sealed)? })
}
