//! The audit log of operators' changes. Each entry contains the hash of its predecessor, so it is appended only while
//! that predecessor is the newest entry.

use std::time::Duration;

use crate::audit_log::{AuditHash, AuditHead, AuditRecord};
use crate::engine::{Batch, CallId, Guard, Op, Operand, Record, Value};
use crate::error::StoreError;
use crate::records::audit::{key_of_audit_log, key_of_audit_push};
use crate::redis::NodeId;
use crate::sealing::{seal_audit_entry, unseal_audit_entry};
use crate::vault::Vault;

/// Encodes an entry, with its text sealed.
///
/// # Errors
/// [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn encode_entry(vault: &Vault, record: &AuditRecord) -> Result<Vec<Value>, StoreError> {
    let sealed = seal_audit_entry(vault, record.number, &record.entry)?;
    Ok(vec![Value::number(record.number), record.previous.0[..].into(), record.hash.0[..].into(), sealed.into()])
}

/// Builds the batch that appends an encoded entry under this number. A full store takes it too: without an entry, no
/// operator could revoke a key or erase data.
#[must_use]
pub(crate) fn append(number: u64, values: &[Value]) -> Batch {
    let values = values.iter().cloned().map(Operand::Value).collect();
    let is_next = Guard::Length(key_of_audit_log(), number - 1);
    Batch::even_when_full(vec![is_next], vec![Op::Append(key_of_audit_log(), values)])
}

/// Decodes the newest entry that the receiver has.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_received_head(record: &Record) -> Result<AuditHead, StoreError> {
    Ok(AuditHead { number: record.integer("number").unsigned_abs(), hash: AuditHash(record.array("hash")?) })
}

/// Builds the batch that lets only this node send the entries after `received` for the time of `lease`. It is refused
/// if another node changed the record first. `before` is the record as read.
#[must_use]
pub(crate) fn begin_push(
    before: Option<&Record>,
    received: AuditHead,
    node: NodeId,
    lease: Duration,
    call: CallId,
) -> Batch {
    let key = key_of_audit_push();
    let guard = before.map_or_else(|| Guard::Absent(key.clone()), |record| Guard::Version(key.clone(), record.version));
    Batch::even_when_full(vec![guard], vec![Op::Put(key.clone(), push_fields(received, node, lease))])
        .with_call_id(call, key)
}

/// Builds the batch in which the sending node records that the receiver has the entries up to `to`. It is refused when
/// another node sends.
#[must_use]
pub(crate) fn extend_push(from: AuditHead, to: AuditHead, node: NodeId, lease: Duration, call: CallId) -> Batch {
    let key = key_of_audit_push();
    let is_sender = Guard::Equal(key.clone(), "node", node.as_bytes().into());
    let is_next = Guard::Equal(key.clone(), "number", Value::number(from.number));
    Batch::even_when_full(vec![is_sender, is_next], vec![Op::Put(key.clone(), push_fields(to, node, lease))])
        .with_call_id(call, key)
}

/// Returns the fields of the record that names the sending node and the newest entry that the receiver has.
fn push_fields(received: AuditHead, node: NodeId, lease: Duration) -> Vec<(&'static str, Operand)> {
    let (number, hash) = (Value::number(received.number), Value::from(&received.hash.0[..]));
    vec![
        ("number", number.into()),
        ("hash", hash.into()),
        ("node", node.as_bytes().into()),
        ("until", Operand::after(lease)),
    ]
}

/// The number of an entry, the hash of its predecessor, its hash, and the sealed text.
type EntryParts<'a> = (u64, AuditHash, AuditHash, &'a [u8]);

/// Splits an encoded entry into its number, the hash of its predecessor, its hash, and the sealed text.
///
/// # Errors
/// [`StoreError::Corrupt`] for unexpected values.
pub(crate) fn split_entry(values: &[Value]) -> Result<EntryParts<'_>, StoreError> {
    let unreadable = || StoreError::unreadable("an entry of the audit log");
    let [Value::Integer(number), Value::Bytes(previous), Value::Bytes(hash), Value::Bytes(sealed)] = values else {
        return Err(unreadable());
    };
    let hash_of = |bytes: &[u8]| bytes.try_into().map(AuditHash).map_err(|_| unreadable());
    Ok((number.unsigned_abs(), hash_of(previous)?, hash_of(hash)?, sealed))
}

/// Decodes an entry.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable entry.
pub(crate) fn decode_entry(vault: &Vault, values: &[Value]) -> Result<AuditRecord, StoreError> {
    let (number, previous, hash, sealed) = split_entry(values)?;
    Ok(AuditRecord { number, previous, hash, entry: unseal_audit_entry(vault, number, sealed)? })
}
