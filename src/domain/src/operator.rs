//! The people who operate the service, and what each of them may do.

use serde::{Deserialize, Serialize};

use crate::ids::OperatorId;
use crate::string_enum::string_enum;
use crate::time::Timestamp;

string_enum!(
    /// What an operator may do. The table of the admin API says it for each operation.
    Role {
        /// Everything.
        Owner = "owner",
        /// Reads, and changes of clients, apps and keys.
        Support = "support",
        /// Reads.
        Auditor = "auditor",
    }
);

/// An operator as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorRecord {
    /// Its id.
    pub operator_id: OperatorId,
    /// Who it is.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When it was added.
    pub created_at: Timestamp,
    /// When its token stops working by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl OperatorRecord {
    /// Whether its token works at `now`.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}
