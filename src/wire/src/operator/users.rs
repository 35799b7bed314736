//! Users of a client in the portal.

use sakshi_domain::ids::{ClientId, UserId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{Email, User, UserRole};

use super::keys::KeyText;
use crate::body::body;
use crate::text::{Change, Label};

body! { request
    /// The user to invite.
    #[derive(Clone, PartialEq)]
    pub struct InviteUserRequest {
        /// The name of the person, 1 to 100 characters.
        name: Label,
        /// The e-mail address with which the person signs in, unique among all users.
        email: Email,
        /// `view` may read. `organise` may also verify people, and manage events and webhooks. `admin` may also manage
        /// keys and the team.
        role: UserRole,
    }
}

body! { response
    /// An invitation. The service sends no e-mail: send the link to the person yourself.
    pub struct InviteUserResponse {
        /// Identifies the user.
        user_id: UserId,
        /// The link with which the person chooses a password. It can be used once, and is shown only once.
        invite_url: KeyText,
        /// The time at which the link expires.
        expires_at: Timestamp,
    }
}

body! { request
    /// A change of a user. Absent fields stay unchanged.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchUserRequest {
        /// The new role.
        role: Change<UserRole>,
        /// `true` disables the user and ends the user's sessions, `false` enables the user again.
        disabled: Change<bool>,
    }
}

body! { response
    /// The users of a client.
    pub struct UsersResponse {
        /// All users, including disabled ones.
        users: Vec<UserResponse>,
    }
}

body! { response
    /// A user.
    #[derive(Clone)]
    pub struct UserResponse {
        /// Identifies the user.
        user_id: UserId,
        /// The client to which the person belongs.
        client_id: ClientId,
        /// The name of the person.
        name: String,
        /// The e-mail address with which the person signs in.
        email: String,
        /// The role: `view`, `organise` or `admin`.
        role: UserRole,
        /// The time of the invitation.
        created_at: Timestamp,
        /// The time at which an unused link expires, or null.
        invited_until: Option<Timestamp>,
        /// The time at which the person chose a password, or null.
        accepted_at: Option<Timestamp>,
        /// The time of the last sign-in, or null.
        signed_in_at: Option<Timestamp>,
        /// The time at which the user was disabled, or null.
        disabled_at: Option<Timestamp>,
    }
}

body! { response
    /// A user that was removed.
    pub struct RemovedUserResponse {
        /// The id of the removed user.
        user_id: UserId,
    }
}

impl From<User> for UserResponse {
    fn from(user: User) -> Self {
        let User {
            user_id,
            client_id,
            name,
            email,
            role,
            created_at,
            invited_until,
            accepted_at,
            signed_in_at,
            disabled_at,
        } = user;
        let (name, email) = (name.as_str().to_owned(), email.as_str().to_owned());
        Self {
            user_id,
            client_id,
            name,
            email,
            role,
            created_at,
            invited_until,
            accepted_at,
            signed_in_at,
            disabled_at,
        }
    }
}
