//! The memory of presented credentials, which detects one under another transaction.

use sakshi_domain::transaction::CredentialIdentity;

use super::{alone, table};
use crate::engine::Key;

table! {
    /// The last transaction of a credential, and the call that wrote this. `under` is the kind of memory that this one
    /// replaced: 0 none, 1 one of the same transaction, 2 one of another transaction, because the holder had bound the
    /// credential.
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
        Home(Home::Alone(32)),
    }
}

/// Returns the key of the memory of a credential.
#[must_use]
pub(crate) fn credential(digest: &CredentialIdentity) -> Key {
    alone(&CREDENTIAL, digest.0.to_vec())
}
