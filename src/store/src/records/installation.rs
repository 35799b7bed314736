//! Records of the store about itself.

use super::{key_of_installation, table};
use crate::engine::Key;

table! {
    /// The intent key that operators chose; without a record the settings choose it.
    INTENT_KEY = "intent_key", Record Stays {
        kid: Text,
        since: Integer,
    } always {
        Needed(&["kid", "since"]),
        Key(KeyRule::Installation),
    }
}

table! {
    /// The time of the last sweep, or of the store's creation.
    SWEPT = "swept", Record Stays {
        at: Integer,
    } always {
        Needed(&["at"]),
        Key(KeyRule::Installation),
    }
}

/// Returns the key of the record of the last sweep, which removed expired records.
#[must_use]
pub(crate) fn key_of_last_sweep() -> Key {
    key_of_installation(&SWEPT, vec![])
}

/// Returns the key of the chosen intent key.
#[must_use]
pub(crate) fn key_of_intent_key() -> Key {
    key_of_installation(&INTENT_KEY, vec![])
}
