//! The memory of credentials that were presented, by which one is recognised under another transaction.

use sakshi_domain::transaction::CredentialIdentity;

use super::{alone, table};
use crate::engine::Key;

table! {
    /// The transaction that a credential was presented under last, and the call that wrote this. `under` says what this memory replaced: 0 none, 1 one of the same
    /// transaction, 2 one of another transaction, because the holder had bound the credential.
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

/// The memory of a credential.
#[must_use]
pub(crate) fn credential(digest: &CredentialIdentity) -> Key {
    alone(&CREDENTIAL, digest.0.to_vec())
}
