//! The last use of each presented credential, which detects a replay under another transaction.

use sakshi_domain::transaction::CredentialIdentity;

use super::{key_outside_partitions, table};
use crate::engine::Key;

table! {
    /// The last transaction of a credential, and the call that recorded it. `under` says which use the record replaced:
    /// 0 for none, 1 for a use in the same transaction, 2 for a use in another transaction. The last case requires that
    /// the holder bound the credential to the transaction.
    CREDENTIAL = "credential", Record Ends {
        txn: Bytes,
        call: Bytes,
        under: Integer,
        until: Integer,
    } always {
        Needed(&["txn", "call", "under", "until"]),
        Sized("txn", 16, 16),
        Sized("call", 16, 16),
        Within("under", 0, 2),
        Key(KeyRule::Alone { id_bytes: 32 }),
    }
}

/// Returns the key of the record of a credential's last use.
#[must_use]
pub(crate) fn key_of_credential(digest: &CredentialIdentity) -> Key {
    key_outside_partitions(&CREDENTIAL, digest.0.to_vec())
}
