//! Users of clients. Names and secrets are sealed. A user is found by an HMAC of the email address, and an invitation
//! by the digest of its secret.

use sakshi_domain::ids::{ClientId, UserId};
use sakshi_domain::user::UserRole;

use super::{key_in_partition, key_of_installation, key_outside_partitions, table};
use crate::engine::Key;
use crate::invariants::is_id;
use crate::users::InviteDigest;

table! {
    /// The secret key for HMACs of email addresses.
    EMAIL_SECRET = "email_secret", Record Stays {
        secret: Sealed(Id),
    } always {
        Needed(&["secret"]),
        New,
        Key(KeyRule::Installation),
    }
}

table! {
    /// A user. `profile` is the name and the email address, and `step` the time step of the last one-time code. `epoch`
    /// is the number of the credential; sessions of another epoch have ended.
    USER = "user", Record Stays {
        client: Text,
        role: Text,
        created_at: Integer,
        accepted_at: Integer,
        signed_in_at: Integer,
        disabled_at: Integer,
        email_mark: Bytes,
        invite: Bytes,
        invited_until: Integer,
        epoch: Integer,
        step: Integer,
        profile: Sealed(Id),
        credential: Sealed(Id),
    } always {
        Needed(&["client", "role", "created_at", "email_mark", "epoch", "profile"]),
        Word("client", is_id),
        Word("role", |word| word.parse::<UserRole>().is_ok()),
        Sized("invite", 32, 32),
        With("invite", &["invited_until"]),
        With("invited_until", &["invite"]),
        With("accepted_at", &["credential", "step"]),
        With("credential", &["accepted_at"]),
        Without("accepted_at", &["invite"]),
        Within("epoch", 0, i64::MAX),
        Within("step", 0, i64::MAX),
        Fixed(&["client", "created_at", "email_mark"]),
        Rises(&["epoch"]),
        New,
        Key(KeyRule::AloneNamed),
    }
}

table! {
    /// The users of a client by time of invitation.
    USERS = "users", Index Stays {} always {
        Key(KeyRule::OfClient),
    }
}

table! {
    /// The user with an email address, by the HMAC of the address.
    USER_EMAIL = "user_email", Record Stays {
        user: Text,
        created_at: Integer,
    } always {
        Needed(&["user", "created_at"]),
        Word("user", is_id),
        Key(KeyRule::Alone { id_bytes: 32 }),
    }
}

table! {
    /// The user who is invited by a link, by the digest of the link's secret.
    USER_INVITE = "user_invite", Record Ends {
        user: Text,
    } always {
        Needed(&["user"]),
        Word("user", is_id),
        Fixed(&["user"]),
        New,
        Key(KeyRule::Alone { id_bytes: 32 }),
    }
}

table! {
    /// The digests of a user's sessions by their end.
    USER_SESSIONS = "user_sessions", Index Stays {} always {
        Key(KeyRule::AloneNamed),
    }
}

/// Returns the key of the secret for HMACs of email addresses.
#[must_use]
pub(crate) fn key_of_email_secret() -> Key {
    key_of_installation(&EMAIL_SECRET, b"email".to_vec())
}

/// Returns the key of the record of a user.
#[must_use]
pub(crate) fn key_of_user(id: &UserId) -> Key {
    key_outside_partitions(&USER, id.as_str().as_bytes().to_vec())
}

/// Returns the key of the list of a client's users.
#[must_use]
pub(crate) fn key_of_users(client: &ClientId) -> Key {
    key_in_partition(&USERS, client.partition(), client.as_str().as_bytes().to_vec())
}

/// Returns the key of the record that finds a user by the HMAC of the email address.
#[must_use]
pub(crate) fn key_of_user_email(email_mark: &[u8]) -> Key {
    key_outside_partitions(&USER_EMAIL, email_mark.to_vec())
}

/// Returns the key of the record that finds a user by an invitation.
#[must_use]
pub(crate) fn key_of_user_invite(digest: &InviteDigest) -> Key {
    key_outside_partitions(&USER_INVITE, digest.0.to_vec())
}

/// Returns the key of the list of a user's sessions.
#[must_use]
pub(crate) fn key_of_user_sessions(id: &UserId) -> Key {
    key_outside_partitions(&USER_SESSIONS, id.as_str().as_bytes().to_vec())
}
