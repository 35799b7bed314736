//! The log of a client: actions of its users, of holders of its API keys, and of operators. It contains ids and names,
//! never values of claims, keys or codes.

use serde::{Deserialize, Serialize};

use crate::ids::{AppId, EventId, KeyId, OperatorId, TxnId, UserId};
use crate::request_id::RequestId;
use crate::string_enum::string_enum;
use crate::time::Timestamp;
use crate::user::PersonName;

string_enum!(
    /// An action in a client's log.
    Action {
        /// Signed in to the portal.
        SignedIn = "signed_in",
        /// Signed in with a recovery code.
        RecoveryCodeUsed = "recovery_code_used",
        /// Signed out.
        SignedOut = "signed_out",
        /// Ended a session from the list of sessions.
        SessionEnded = "session_ended",
        /// Switched to another app.
        AppSwitched = "app_switched",
        /// Invited a user.
        UserInvited = "user_invited",
        /// Created a new link for a user, which resets the password and the codes.
        UserReset = "user_reset",
        /// Accepted an invitation.
        InviteAccepted = "invite_accepted",
        /// Changed the role of a user.
        RoleChanged = "role_changed",
        /// Disabled a user.
        UserDisabled = "user_disabled",
        /// Enabled a user again.
        UserEnabled = "user_enabled",
        /// Removed a user.
        UserRemoved = "user_removed",
        /// Issued an API key.
        KeyIssued = "key_issued",
        /// Rotated an API key.
        KeyRotated = "key_rotated",
        /// Revoked an API key.
        KeyRevoked = "key_revoked",
        /// Allowed sign-in with an API key.
        KeySignInAllowed = "key_sign_in_allowed",
        /// Disabled sign-in with an API key.
        KeySignInRefused = "key_sign_in_refused",
        /// Opened a verification in the portal.
        VerificationOpened = "verification_opened",
        /// Viewed the details of a transaction.
        DetailsShown = "details_shown",
        /// Ran a check at a source.
        CheckMade = "check_made",
        /// Created an event.
        EventCreated = "event_created",
        /// Changed an event.
        EventChanged = "event_changed",
        /// Created or ended door links of an event.
        DoorsChanged = "doors_changed",
        /// Opened or downloaded the guest list of an event.
        GuestsListed = "guests_listed",
        /// Registered or removed a webhook URL.
        WebhookUrlChanged = "webhook_url_changed",
        /// Resent a webhook.
        WebhookSentAgain = "webhook_sent_again",
    }
);

impl Action {
    /// Returns true if the action ends access. A full store logs such actions, which would otherwise be refused.
    #[must_use]
    pub const fn ends_access(self) -> bool {
        matches!(
            self,
            Self::SignedOut
                | Self::SessionEnded
                | Self::UserDisabled
                | Self::UserRemoved
                | Self::KeyRevoked
                | Self::KeySignInRefused
        )
    }
}

/// The person or program that acted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// A user of the client.
    User {
        /// The id of the user.
        id: UserId,
        /// The name of the user at that time.
        name: PersonName,
    },
    /// The holder of an API key.
    Key {
        /// The id of the key.
        id: KeyId,
    },
    /// An operator of the service.
    Operator {
        /// The id of the operator; `None` for the token of the settings.
        id: Option<OperatorId>,
    },
    /// The holder of a link, such as that of a door.
    Link,
}

impl Actor {
    /// Returns the id for the log's filter; for an operator or a link, the name of the kind.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::User { id, .. } => id.as_str(),
            Self::Key { id } => id.as_str(),
            Self::Operator { .. } => "operator",
            Self::Link => "link",
        }
    }
}

/// The object of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum Subject {
    /// A transaction.
    Transaction(TxnId),
    /// An event.
    Event(EventId),
    /// An app.
    App(AppId),
    /// An API key.
    Key(KeyId),
    /// A user.
    User(UserId),
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Time of the action.
    pub at: Timestamp,
    /// The person or program that acted.
    pub actor: Actor,
    /// The action.
    pub action: Action,
    /// The objects of the action.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub subjects: Vec<Subject>,
    /// The id of the request.
    pub request_id: RequestId,
}

/// A filter for log entries. An unset field matches every entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Entries of this action.
    pub action: Option<Action>,
    /// Entries of the actor with this [`Actor::id`].
    pub actor: Option<String>,
}

impl LogFilter {
    /// Returns true if an entry matches.
    #[must_use]
    pub fn matches(&self, entry: &LogEntry) -> bool {
        self.action.is_none_or(|action| action == entry.action)
            && self.actor.as_deref().is_none_or(|actor| actor == entry.actor.id())
    }
}
