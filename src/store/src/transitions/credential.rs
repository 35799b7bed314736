//! The last use of each credential, which detects a replay under another transaction.

use std::time::Duration;

use sakshi_domain::ids::TxnId;

use crate::engine::{Applied, Batch, CallId, Guard, Op, Operand, Record};
use crate::records::credential::key_of_credential;
use crate::transactions::PresentedCredential;

/// Value of `under` for the first use.
const FIRST_USE: i64 = 0;
/// Value of `under` for a use after one in the same transaction.
const AFTER_SAME: i64 = 1;
/// Value of `under` for a use after one in another transaction.
const AFTER_OTHER: i64 = 2;

/// Builds the batch by which a call records the use of a credential in a transaction; `None` for a replay. Other
/// transactions cannot use the credential for the time `window`.
///
/// A credential that its holder bound to this transaction is no replay, even after a use in another transaction.
#[must_use]
pub(crate) fn reserve(
    presented: &PresentedCredential,
    txn: TxnId,
    call: CallId,
    window: Duration,
    last_use: Option<&Record>,
) -> Option<Batch> {
    let key = key_of_credential(&presented.digest);
    let under = match last_use {
        None => FIRST_USE,
        Some(last) if last.bytes("txn") != txn.as_bytes() || last.integer("under") == AFTER_OTHER => AFTER_OTHER,
        Some(_) => AFTER_SAME,
    };
    if under == AFTER_OTHER && !presented.holder_bound {
        return None;
    }
    let guard = match last_use {
        None => Guard::Absent(key.clone()),
        Some(last) => Guard::Equal(key.clone(), "call", last.bytes("call").into()),
    };
    let until = Operand::after(window);
    let fields = vec![
        ("txn", txn.as_bytes()[..].into()),
        ("call", call[..].into()),
        ("under", under.into()),
        ("until", until.clone()),
    ];
    let ops = vec![Op::Put(key.clone(), fields), Op::ExpireAt(key, until)];
    Some(Batch::new(vec![guard], ops))
}

/// Returns true if this call recorded its use of the credential. After a lost response the stored record decides.
#[must_use]
pub(crate) fn has_reserved(call: CallId, applied: &Applied) -> bool {
    match applied {
        Applied::Done { .. } => true,
        Applied::Refused { record, .. } => record.as_ref().is_some_and(|last_use| last_use.bytes("call") == call),
    }
}

/// Builds the batch that undoes the use of a credential by a call: it restores the record `before` that use. It is
/// refused if another call has used the credential since.
#[must_use]
pub(crate) fn release(presented: &PresentedCredential, call: CallId, before: Option<&Record>) -> Batch {
    let key = key_of_credential(&presented.digest);
    let guard = Guard::Equal(key.clone(), "call", call[..].into());
    let ops = match before {
        None => vec![Op::Remove(key)],
        Some(before) => {
            let fields = before.fields.iter().map(|(name, value)| (*name, Operand::Value(value.clone()))).collect();
            vec![Op::Put(key.clone(), fields), Op::ExpireAt(key, before.integer("until").into())]
        }
    };
    Batch::even_when_full(vec![guard], ops)
}
