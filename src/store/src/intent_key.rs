//! Which intent key the operators have chosen: one value, which all nodes read.

use sakshi_domain::time::Timestamp;

/// An intent key that signs because an operator has said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenIntentKey {
    /// Its id at the authority.
    pub kid: String,
    /// When it was chosen.
    pub since: Timestamp,
}
