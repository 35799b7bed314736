//! The people who operate the service.

use sakshi_domain::ids::OperatorId;
use sakshi_domain::tenancy::KeyDigest;

use super::{key_of_installation, table};
use crate::engine::Key;
use crate::invariants::is_id;

table! {
    /// An operator. `record` is sealed because it contains a name.
    OPERATOR = "operator", Record Stays {
        created_at: Integer,
        revoked_at: Integer,
        record: Sealed(Id),
    } always {
        Needed(&["created_at", "record"]),
        Fixed(&["created_at"]),
        Once(&["revoked_at"]),
        New,
        Key(KeyRule::Installation),
    }
}

table! {
    /// All operators by creation.
    OPERATORS = "operators", Index Stays {} always {
        Key(KeyRule::Installation),
    }
}

table! {
    /// The operator with a token, by the token's digest.
    OPERATOR_TOKEN = "operator_token", Record Stays {
        operator: Text,
    } always {
        Needed(&["operator"]),
        Word("operator", is_id),
        Fixed(&["operator"]),
        Key(KeyRule::Installation),
    }
}

/// Returns the key of the record of an operator.
#[must_use]
pub(crate) fn key_of_operator(id: &OperatorId) -> Key {
    key_of_installation(&OPERATOR, id.as_str().as_bytes().to_vec())
}

/// Returns the key of the list of all operators.
#[must_use]
pub(crate) fn key_of_operators() -> Key {
    key_of_installation(&OPERATORS, vec![])
}

/// Returns the key of the record that finds an operator by the token's digest.
#[must_use]
pub(crate) fn key_of_operator_token(digest: &KeyDigest) -> Key {
    key_of_installation(&OPERATOR_TOKEN, digest.0.to_vec())
}
