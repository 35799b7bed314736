//! The operators' console: its sessions, and credit grants that a second operator must confirm.

use sakshi_domain::grant_request::GrantState;
use sakshi_domain::ids::GrantId;

use super::{key_of_installation, key_outside_partitions, session, table};
use crate::engine::Key;
use crate::sessions::SessionDigest;

table! {
    /// A session of the console, by the digest of its id. `grant` is the sign-in of its operator.
    CONSOLE_SESSION = "console_session", Record Ends {
        idle_until: Integer,
        ends_at: Integer,
        grant: Sealed(Id),
    } always {} and session::RULES
}

table! {
    /// A credit grant that a second operator must confirm, or has decided. Client, amount and names are sealed.
    GRANT_REQUEST = "grant_request", Record Ends {
        asked_at: Integer,
        ends_at: Integer,
        state: Text,
        decided_at: Integer,
        request: Sealed(Id),
        decided_by: Sealed(Id),
    } always {
        Needed(&["asked_at", "ends_at", "state", "request"]),
        Word("state", |word| word.parse::<GrantState>().is_ok()),
        Less("asked_at", "ends_at"),
        Less("decided_at", "ends_at"),
        With("decided_at", &["decided_by"]),
        With("decided_by", &["decided_at"]),
        Fixed(&["asked_at", "ends_at"]),
        // A new encryption key seals `decided_by` anew.
        Once(&["decided_at"]),
        New,
        Key(KeyRule::Installation),
    }
}

table! {
    /// Requested grants by the time of the request. Adding a request removes the expired ones.
    GRANT_REQUESTS = "grant_requests", Index Stays {} always {
        Key(KeyRule::Installation),
    }
}

table! {
    /// The end of a session at the identity provider, or of all sessions of a person there, by the digest of its name.
    PROVIDER_LOGOUT = "provider_logout", Record Ends {
        at: Integer,
    } always {
        Needed(&["at"]),
        Key(KeyRule::Alone { id_bytes: 32 }),
    }
}

/// Returns the key of the record of the end of sessions at the identity provider. `digest` is of the provider and the
/// name of the subject or session.
#[must_use]
pub(crate) fn key_of_provider_logout(digest: [u8; 32]) -> Key {
    key_outside_partitions(&PROVIDER_LOGOUT, digest.to_vec())
}

/// Returns the key of the record of a console session.
#[must_use]
pub(crate) fn key_of_console_session(digest: &SessionDigest) -> Key {
    key_outside_partitions(&CONSOLE_SESSION, digest.0.to_vec())
}

/// Returns the key of the record of a grant request.
#[must_use]
pub(crate) fn key_of_grant_request(id: &GrantId) -> Key {
    key_of_installation(&GRANT_REQUEST, id.as_str().as_bytes().to_vec())
}

/// Returns the key of the list of all grant requests.
#[must_use]
pub(crate) fn key_of_grant_requests() -> Key {
    key_of_installation(&GRANT_REQUESTS, vec![])
}
