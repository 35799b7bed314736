//! Portal sessions.

use super::{key_outside_partitions, table};
use crate::engine::Key;
use crate::sessions::SessionDigest;

table! {
    /// A portal session, by the digest of its id. `grant` is the person, the app, the network and the browser.
    SESSION = "session", Record Ends {
        idle_until: Integer,
        ends_at: Integer,
        grant: Sealed(Id),
    } always {
        Needed(&["idle_until", "ends_at", "grant"]),
        NotAbove("idle_until", "ends_at"),
        Fixed(&["ends_at"]),
        Rises(&["idle_until"]),
        New,
        Key(KeyRule::Alone { id_bytes: 32 }),
    }
}

/// Returns the key of the record of a session.
#[must_use]
pub(crate) fn key_of_session(digest: &SessionDigest) -> Key {
    key_outside_partitions(&SESSION, digest.0.to_vec())
}
