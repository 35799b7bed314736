//! The people who operate the service.

use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;

use crate::engine::{Batch, Guard, Op, Operand, Record};
use crate::error::StoreError;
use crate::records::operator::{key_of_operator, key_of_operator_token, key_of_operators};
use crate::sealing::unseal_operator;
use crate::vault::Vault;

/// Builds the batch that adds an operator with this sealed record and the digest of the operator's token.
#[must_use]
pub(crate) fn add_operator(new_operator: &OperatorRecord, sealed: Vec<u8>, token: &KeyDigest) -> Batch {
    let OperatorRecord { operator_id, created_at, .. } = new_operator;
    let (key, id) = (key_of_operator(operator_id), operator_id.as_str());
    let ops = vec![
        Op::Put(key.clone(), vec![("created_at", (*created_at).into()), ("record", Operand::from(sealed))]),
        Op::Index(key_of_operators(), id.as_bytes().to_vec(), (*created_at).into()),
        Op::Put(key_of_operator_token(token), vec![("operator", id.into())]),
    ];
    Batch::new(vec![Guard::Absent(key)], ops)
}

/// Builds the batch that revokes an operator who is not revoked.
#[must_use]
pub(crate) fn revoke_operator(id: &OperatorId, at: Timestamp) -> Batch {
    let key = key_of_operator(id);
    let set = Op::Set(key.clone(), vec![("revoked_at", at.into())]);
    Batch::even_when_full(vec![Guard::Unset(key, "revoked_at")], vec![set])
}

/// Decodes the operator in a record.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_operator(vault: &Vault, id: &OperatorId, record: &Record) -> Result<OperatorRecord, StoreError> {
    Ok(OperatorRecord { revoked_at: record.time("revoked_at"), ..unseal_operator(vault, id, record.bytes("record"))? })
}
