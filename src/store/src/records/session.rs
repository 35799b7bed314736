//! Portal sessions, and the invariants of every session.

use super::{key_outside_partitions, table};
use crate::engine::Key;
use crate::invariants::{KeyRule, Rule};
use crate::sessions::SessionDigest;

/// Invariants of a session.
pub(super) const RULES: &[Rule] = &[
    Rule::Needed(&["idle_until", "ends_at", "grant"]),
    Rule::NotAbove("idle_until", "ends_at"),
    Rule::Fixed(&["ends_at"]),
    Rule::Rises(&["idle_until"]),
    Rule::New,
    Rule::Key(KeyRule::Alone { id_bytes: 32 }),
];

table! {
    /// A portal session, by the digest of its id. `grant` is the person, the app, the network and the browser.
    SESSION = "session", Record Ends {
        idle_until: Integer,
        ends_at: Integer,
        grant: Sealed(Id),
    } always {} and RULES
}

/// Returns the key of the record of a session.
#[must_use]
pub(crate) fn key_of_session(digest: &SessionDigest) -> Key {
    key_outside_partitions(&SESSION, digest.0.to_vec())
}
