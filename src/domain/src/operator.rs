//! The people who operate the service, and what each of them may do.

use std::fmt;

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

/// The name of who uses the token of the settings, which is nobody's own.
pub const SETTINGS: &str = "settings";

/// An operator as records name one: by the id of an operator, by the subject at the identity provider, or as [`SETTINGS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signatory {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
}

impl Signatory {
    /// Returns true if both are the same operator.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// How an operator has signed in to the console. It is checked again at every use.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignIn {
    /// With a token that has this digest.
    Token([u8; 32]),
    /// At the identity provider.
    Provider(ProviderAccount),
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignIn([not shown])")
    }
}

/// An operator as the identity provider names one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAccount {
    /// The provider.
    pub issuer: String,
    /// The subject.
    pub subject: String,
    /// The session at the provider, if it names one.
    pub session: Option<String>,
    /// The name.
    pub name: String,
    /// The groups, by which the settings give a role.
    pub groups: Vec<String>,
    /// The time of the sign-in.
    pub signed_in_at: Timestamp,
}

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
