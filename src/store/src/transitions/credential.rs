//! The memory of credentials, which detects one that was accepted under another transaction.

use std::time::Duration;

use sakshi_domain::ids::TxnId;

use crate::engine::{Applied, Batch, CallId, Guard, Op, Operand, Record};
use crate::records::credential::credential;
use crate::transactions::PresentedCredential;

/// The memory replaced none.
const NOTHING: i64 = 0;
/// The memory replaced one of the same transaction.
const SAME: i64 = 1;
/// The memory replaced one of another transaction.
const OTHER: i64 = 2;

/// Returns the batch that remembers a credential under a transaction, given the memory that was read; `None` when it is
/// refused there.
///
/// A credential that its holder bound to the transaction may have been accepted under another one.
#[must_use]
pub(crate) fn reserve(
    presented: &PresentedCredential,
    txn: TxnId,
    call: CallId,
    window: Duration,
    seen: Option<&Record>,
) -> Option<Batch> {
    let memory = credential(&presented.digest);
    let under = match seen {
        None => NOTHING,
        Some(before) if before.bytes("txn") != txn.as_bytes() || before.integer("under") == OTHER => OTHER,
        Some(_) => SAME,
    };
    if under == OTHER && !presented.holder_bound {
        return None;
    }
    let guard = match seen {
        None => Guard::Absent(memory.clone()),
        Some(before) => Guard::Equal(memory.clone(), "call", before.bytes("call").into()),
    };
    let until = Operand::after(window);
    let fields = vec![
        ("txn", txn.as_bytes()[..].into()),
        ("call", call[..].into()),
        ("under", under.into()),
        ("until", until.clone()),
    ];
    let ops = vec![Op::Put(memory.clone(), fields), Op::ExpireAt(memory.clone(), until)];
    Some(Batch::new(vec![guard], ops))
}

/// Returns true if the call has written the memory. After a lost response the memory decides.
#[must_use]
pub(crate) fn has_reserved(call: CallId, applied: &Applied) -> bool {
    match applied {
        Applied::Done { .. } => true,
        Applied::Refused { seen, .. } => seen.as_ref().is_some_and(|memory| memory.bytes("call") == call),
    }
}

/// Returns the batch that restores the memory from before a call, unless another call has written one since.
#[must_use]
pub(crate) fn release(presented: &PresentedCredential, call: CallId, before: Option<&Record>) -> Batch {
    let memory = credential(&presented.digest);
    let guard = Guard::Equal(memory.clone(), "call", call[..].into());
    let ops = match before {
        None => vec![Op::Remove(memory)],
        Some(before) => {
            let fields = before.fields.iter().map(|(name, value)| (*name, Operand::Value(value.clone()))).collect();
            vec![Op::Put(memory.clone(), fields), Op::ExpireAt(memory, before.integer("until").into())]
        }
    };
    Batch::on_full(vec![guard], ops)
}
