//! The people of a client who use the portal.

use sakshi_domain::ids::{ClientId, UserId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{Email, User, UserRole};

use super::keys::KeyText;
use crate::body::body;
use crate::text::{Change, Label};

body! { request
    /// A user to be invited.
    #[derive(Clone, PartialEq)]
    pub struct InviteUserRequest {
        /// The name of the person.
        name: Label,
        /// The address with which the person signs in. No other user may have it.
        email: Email,
        /// The role: `view` reads, `organise` also verifies people and looks after events and webhooks, `admin` also
        /// looks after keys and the team.
        role: UserRole,
    }
}

body! { answer
    /// An invitation. The service sends no e-mail: send the link to the person.
    pub struct InviteUserResponse {
        /// Identifies the user.
        user_id: UserId,
        /// The link with which the person chooses a password. It works once and is shown only once.
        invite_url: KeyText,
        /// The end of the link.
        expires_at: Timestamp,
    }
}

body! { request
    /// A change of a user.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchUserRequest {
        /// A new role.
        role: Change<UserRole>,
        /// True if the user may not sign in. Sessions of a disabled user end.
        disabled: Change<bool>,
    }
}

body! { answer
    /// The users of a client.
    pub struct UsersResponse {
        /// All of them, disabled ones included.
        users: Vec<UserResponse>,
    }
}

body! { answer
    /// A user.
    #[derive(Clone)]
    pub struct UserResponse {
        /// Identifies the user.
        user_id: UserId,
        /// The client that the person belongs to.
        client_id: ClientId,
        /// The name of the person.
        name: String,
        /// The address with which the person signs in.
        email: String,
        /// The role.
        role: UserRole,
        /// The time of the invitation.
        created_at: Timestamp,
        /// The end of a link that has not been used.
        invited_until: Option<Timestamp>,
        /// The time at which the user chose a password.
        accepted_at: Option<Timestamp>,
        /// The last sign-in.
        signed_in_at: Option<Timestamp>,
        /// The time since which the user is disabled.
        disabled_at: Option<Timestamp>,
    }
}

body! { answer
    /// A user that was removed.
    pub struct RemovedUserResponse {
        /// Identified the user.
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
