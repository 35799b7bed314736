//! The people who operate the service. A record is sealed, because it has a name; of a token only the digest is kept.

use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;

use crate::error::StoreFuture;

/// Operators.
pub trait Operators {
    /// Adds an operator. Repeatable by its id.
    fn add_operator(&self, operator: OperatorRecord, token: KeyDigest) -> StoreFuture<()>;

    /// All operators by creation time, revoked ones included.
    fn operators(&self) -> StoreFuture<Vec<OperatorRecord>>;

    /// The operator with this token, who may be revoked.
    fn find_operator(&self, token: KeyDigest) -> StoreFuture<Option<OperatorRecord>>;

    /// Revokes an operator, as of the first time; `None` when there is no such operator.
    fn revoke_operator(&self, operator: OperatorId, at: Timestamp) -> StoreFuture<Option<OperatorRecord>>;
}
