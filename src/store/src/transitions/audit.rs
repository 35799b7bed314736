//! The audit log of operators' changes. The hash of an entry is made here, so an entry is appended only if its
//! predecessor is still the newest.

use std::time::Duration;

use crate::audit_log::{AuditHash, AuditHead, AuditRecord};
use crate::engine::{Batch, CallId, Guard, Op, Operand, Record, Value};
use crate::error::StoreError;
use crate::records::audit::{audit_log, audit_push};
use crate::redis::NodeId;
use crate::sealing::{seal_audit_entry, unseal_audit_entry};
use crate::vault::Vault;

/// Returns the values of an entry.
///
/// # Errors
/// It cannot be sealed.
pub(crate) fn values(vault: &Vault, record: &AuditRecord) -> Result<Vec<Value>, StoreError> {
    let sealed = seal_audit_entry(vault, record.number, &record.entry)?;
    Ok(vec![Value::number(record.number), record.previous.0[..].into(), record.hash.0[..].into(), sealed.into()])
}

/// Returns the batch that appends an entry with these values under this number.
#[must_use]
pub(crate) fn append(number: u64, values: &[Value]) -> Batch {
    let values = values.iter().cloned().map(Operand::Value).collect();
    Batch::new(vec![Guard::Length(audit_log(), number - 1)], vec![Op::Append(audit_log(), values)])
}

/// Returns the entry up to which the receiver has the log, in the record of its place.
///
/// # Errors
/// It cannot be read.
pub(crate) fn received(record: &Record) -> Result<AuditHead, StoreError> {
    Ok(AuditHead { number: record.integer("number").unsigned_abs(), hash: AuditHash(record.array("hash")?) })
}

/// Returns the batch with which a node begins to send, for this time, the entries after the receiver's last one. It is
/// refused when another node was first.
#[must_use]
pub(crate) fn take_push(
    seen: Option<&Record>,
    received: AuditHead,
    node: NodeId,
    time: Duration,
    call: CallId,
) -> Batch {
    let key = audit_push();
    let guard = seen.map_or_else(|| Guard::Absent(key.clone()), |record| Guard::Version(key.clone(), record.version));
    Batch::on_full(vec![guard], vec![Op::Put(key.clone(), place(received, node, time))]).called(call, key)
}

/// Returns the batch with which the sending node notes that the receiver has further entries. It is refused when
/// another node sends.
#[must_use]
pub(crate) fn settle_push(from: AuditHead, to: AuditHead, node: NodeId, time: Duration, call: CallId) -> Batch {
    let key = audit_push();
    let is_ours = Guard::Equal(key.clone(), "node", node.as_bytes().into());
    let is_next = Guard::Equal(key.clone(), "number", Value::number(from.number));
    Batch::on_full(vec![is_ours, is_next], vec![Op::Put(key.clone(), place(to, node, time))]).called(call, key)
}

fn place(received: AuditHead, node: NodeId, time: Duration) -> Vec<(&'static str, Operand)> {
    let (number, hash) = (Value::number(received.number), Value::from(&received.hash.0[..]));
    vec![
        ("number", number.into()),
        ("hash", hash.into()),
        ("node", node.as_bytes().into()),
        ("until", Operand::after(time)),
    ]
}

/// The number of an entry, the hash before it, its own hash, and the sealed text.
type Parts<'a> = (u64, AuditHash, AuditHash, &'a [u8]);

/// Returns the parts of an entry.
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

/// Returns the entry with these values.
///
/// # Errors
/// It cannot be read.
pub(crate) fn entry_of(vault: &Vault, values: &[Value]) -> Result<AuditRecord, StoreError> {
    let (number, previous, hash, sealed) = parts(values)?;
    Ok(AuditRecord { number, previous, hash, entry: unseal_audit_entry(vault, number, sealed)? })
}
