//! The intent key chosen by operators: one value, which all nodes read.

use sakshi_domain::time::Timestamp;

/// The intent key chosen by an operator for signing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenIntentKey {
    /// Its id at the authority.
    pub kid: String,
    /// Time of the choice.
    pub since: Timestamp,
}
