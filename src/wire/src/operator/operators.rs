//! Operators of the service.

use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::{OperatorRecord, Role};
use sakshi_domain::time::Timestamp;

use super::keys::KeyText;
use crate::body::body;
use crate::text::Label;

body! { request
    /// The operator to add.
    #[derive(Clone, PartialEq)]
    pub struct AddOperatorRequest {
        /// The operator's name, which the audit log shows.
        name: Label,
        /// `owner` may do everything. `support` may read everything except exports, create and suspend clients, create
        /// apps, and revoke keys. `auditor` may read everything except exports and the users of clients.
        role: Role,
        /// The time at which the token expires, in the future. Default: never.
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

body! { response
    /// An operator that was added.
    pub struct AddOperatorResponse {
        /// Identifies the operator.
        operator_id: OperatorId,
        /// The bearer token. Store it: it is shown only once.
        token: KeyText,
    }
}

body! { response
    /// The operators.
    pub struct OperatorsResponse {
        /// All operators, including revoked ones.
        operators: Vec<OperatorResponse>,
    }
}

body! { response
    /// An operator, without the token.
    #[derive(Clone)]
    pub struct OperatorResponse {
        /// Identifies the operator.
        operator_id: OperatorId,
        /// The operator's name.
        name: String,
        /// The role: `owner`, `support` or `auditor`.
        role: Role,
        /// The time at which the operator was added.
        created_at: Timestamp,
        /// The time at which the token expires, or null for never.
        expires_at: Option<Timestamp>,
        /// The time of revocation, or null.
        revoked_at: Option<Timestamp>,
    }
}

impl From<OperatorRecord> for OperatorResponse {
    fn from(operator: OperatorRecord) -> Self {
        let OperatorRecord { operator_id, name, role, created_at, expires_at, revoked_at } = operator;
        Self { operator_id, name, role, created_at, expires_at, revoked_at }
    }
}
