//! The people who operate the service.

use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::{OperatorRecord, Role};
use sakshi_domain::time::Timestamp;

use super::keys::KeyText;
use crate::body::body;
use crate::text::Label;

body! { request
    /// An operator to be added.
    #[derive(Clone, PartialEq)]
    pub struct AddOperatorRequest {
        /// The operator's name; the audit log shows it.
        name: Label,
        /// The role: `owner` may do everything, `support` may read, and change clients, apps and keys, `auditor` may
        /// read.
        role: Role,
        /// The time at which the token expires.
        expires_at: Option<Timestamp>,
    }
    check(fields) {
        let _ = (&name, &role);
        if let (Some(Some(end)), Some(context)) = (expires_at, fields.context())
            && end <= context.now
        {
            fields.refuse("expires_at", "must be in the future");
        }
    }
}

body! { answer
    /// An operator that was added.
    pub struct AddOperatorResponse {
        /// Identifies the operator.
        operator_id: OperatorId,
        /// The bearer token. It is shown only once.
        token: KeyText,
    }
}

body! { answer
    /// The operators.
    pub struct OperatorsResponse {
        /// All of them, revoked ones included.
        operators: Vec<OperatorResponse>,
    }
}

body! { answer
    /// An operator without its token.
    #[derive(Clone)]
    pub struct OperatorResponse {
        /// Identifies the operator.
        operator_id: OperatorId,
        /// The operator's name.
        name: String,
        /// The role.
        role: Role,
        /// The time at which it was added.
        created_at: Timestamp,
        /// The time at which its token expires.
        expires_at: Option<Timestamp>,
        /// The time of its revocation.
        revoked_at: Option<Timestamp>,
    }
}

impl From<OperatorRecord> for OperatorResponse {
    fn from(operator: OperatorRecord) -> Self {
        let OperatorRecord { operator_id, name, role, created_at, expires_at, revoked_at } = operator;
        Self { operator_id, name, role, created_at, expires_at, revoked_at }
    }
}
