//! Which intent key the operators have chosen: one value, which all nodes read.

use sakshi_domain::time::Timestamp;

use crate::error::StoreFuture;

/// The choice of an intent key.
pub trait IntentKeyChoice {
    /// The key that was chosen; `None` when the settings decide.
    fn chosen_intent_key(&self) -> StoreFuture<Option<ChosenIntentKey>>;

    /// Chooses a key, or lets the settings decide again.
    fn choose_intent_key(&self, chosen: Option<ChosenIntentKey>) -> StoreFuture<()>;
}

/// An intent key that signs because an operator has said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenIntentKey {
    /// Its id at the authority.
    pub kid: String,
    /// When it was chosen.
    pub since: Timestamp,
}
