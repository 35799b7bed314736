//! Operators of the service, and their roles.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::OperatorId;
use crate::string_enum::string_enum;
use crate::time::Timestamp;

string_enum!(
    /// The role of an operator. The table of the admin API names the roles for each operation.
    Role {
        /// May do everything.
        Owner = "owner",
        /// May read everything except exports, create and suspend clients, create apps, and revoke keys.
        Support = "support",
        /// May read everything except exports and the users of clients.
        Auditor = "auditor",
    }
);

/// The id in records for the token of the settings, which belongs to no person.
pub const SETTINGS: &str = "settings";

/// An operator in records, identified by an operator id, a subject of the identity provider, or [`SETTINGS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signatory {
    /// The id of the operator.
    pub id: String,
    /// The name of the operator.
    pub name: String,
}

impl Signatory {
    /// Returns true if both are the same operator.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// An operator's sign-in to the console, which is checked again at every use.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignIn {
    /// With a token that has this SHA-256.
    Token([u8; 32]),
    /// With an account at the identity provider.
    Provider(ProviderAccount),
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignIn([not shown])")
    }
}

/// An operator's account at the identity provider.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAccount {
    /// The `iss` of the provider.
    pub issuer: String,
    /// The `sub` of the account.
    pub subject: String,
    /// The session at the provider, if the provider names one.
    pub session: Option<String>,
    /// The name of the operator.
    pub name: String,
    /// The groups, which the settings map to a role.
    pub groups: Vec<String>,
    /// The time of the sign-in.
    pub signed_in_at: Timestamp,
}

/// A stored operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorRecord {
    /// The id.
    pub operator_id: OperatorId,
    /// The name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// Time of addition.
    pub created_at: Timestamp,
    /// Time at which the token expires.
    pub expires_at: Option<Timestamp>,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
}

impl OperatorRecord {
    /// Returns true if the operator's token is valid at `now`.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}
