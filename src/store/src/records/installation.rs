//! What a store knows of itself.

use super::{of_installation, table};
use crate::engine::Key;

table! {
    /// One sealed value, which shows whether a node has the keys that the store was written under.
    CANARY = "canary", Record Stays {
        sealed: Sealed(Word(crate::canary::OWNER)),
    }
}

table! {
    /// The profile and the authority to which the store belongs.
    INSTALLATION = "installation", Record Stays {
        owner: Text,
    }
}

table! {
    /// The intent key that operators have chosen; without a record the settings decide.
    INTENT_KEY = "intent_key", Record Stays {
        kid: Text,
        since: Integer,
    }
}

table! {
    /// When a sweep was made last, or the store.
    SWEPT = "swept", Record Stays {
        at: Integer,
    }
}

table! {
    /// What a health check writes.
    PROBE = "probe", Record Stays {
        pad: Bytes,
    }
}

table! {
    /// The store whose records are being moved into this one. No node opens it until that has ended.
    MOVING = "moving", Record Stays {
        source: Text,
    }
}

/// The mark of a move.
#[must_use]
pub(crate) fn moving() -> Key {
    of_installation(&MOVING, vec![])
}

/// The time of the last sweep.
#[must_use]
pub(crate) fn swept() -> Key {
    of_installation(&SWEPT, vec![])
}

/// What a health check writes.
#[must_use]
pub(crate) fn probe() -> Key {
    of_installation(&PROBE, vec![])
}

/// The canary.
#[must_use]
pub(crate) fn canary() -> Key {
    of_installation(&CANARY, vec![])
}

/// The owner of the store.
#[must_use]
pub(crate) fn installation() -> Key {
    of_installation(&INSTALLATION, vec![])
}

/// The chosen intent key.
#[must_use]
pub(crate) fn intent_key() -> Key {
    of_installation(&INTENT_KEY, vec![])
}
