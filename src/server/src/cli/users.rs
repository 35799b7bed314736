//! `sakshi admin users …`: a client's users of the portal.

use clap::Subcommand;
use sakshi_client::internal;
use sakshi_domain::user::UserRole;
use serde_json::{Value, json};

use super::admin::{View, send_call};
use super::api::Api;
use super::error::CliError;

/// Columns of a user.
const USER: &[&str] =
    &["user_id", "name", "email", "role", "invited_until", "accepted_at", "signed_in_at", "disabled_at"];

#[derive(Debug, Subcommand)]
pub(super) enum Users {
    /// Invite a user. The link is shown once and works once; send it to the person.
    Invite {
        /// Id of the client.
        client_id: String,
        /// Name of the person.
        #[arg(long)]
        name: String,
        /// E-mail address with which the person signs in.
        #[arg(long)]
        email: String,
        /// view: reads; organise: also verifies people and looks after events and webhooks; admin: also looks after
        /// keys and the team.
        #[arg(long)]
        role: UserRole,
    },
    /// List the users of a client, disabled ones included.
    List {
        /// Id of the client.
        client_id: String,
    },
    /// Give a user another role.
    Role {
        /// Id of the user.
        user_id: String,
        /// view, organise or admin.
        role: UserRole,
    },
    /// Disable a user; sessions end within a second.
    Disable {
        /// Id of the user.
        user_id: String,
    },
    /// Enable a user again.
    Enable {
        /// Id of the user.
        user_id: String,
    },
    /// Make a new link for a user who has lost the password or the phone. Both become invalid at once.
    Reset {
        /// Id of the user.
        user_id: String,
    },
    /// Remove a user, with name and address.
    Remove {
        /// Id of the user.
        user_id: String,
    },
}

impl Users {
    /// Sends the command's request to the service.
    pub(super) async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        match self {
            Self::Invite { client_id, name, email, role } => {
                let user = json!({ "name": name, "email": email, "role": role });
                send_call(api, internal::invite_user(client_id, &user), View::Pairs).await
            }
            Self::List { client_id } => send_call(api, internal::users(client_id), View::Rows("users", USER)).await,
            Self::Role { user_id, role } => change_user(api, user_id, &json!({ "role": role })).await,
            Self::Disable { user_id } => change_user(api, user_id, &json!({ "disabled": true })).await,
            Self::Enable { user_id } => change_user(api, user_id, &json!({ "disabled": false })).await,
            Self::Reset { user_id } => send_call(api, internal::reset_user(user_id), View::Pairs).await,
            Self::Remove { user_id } => send_call(api, internal::remove_user(user_id), View::Pairs).await,
        }
    }
}

async fn change_user(api: &Api, user: &str, change: &Value) -> Result<(Value, View), CliError> {
    send_call(api, internal::change_user(user, change), View::Pairs).await
}

#[cfg(test)]
mod tests {
    use sakshi_wire::Describe as _;
    use sakshi_wire::operator::users::UserResponse;

    use super::USER;

    #[test]
    fn every_column_is_a_field_of_a_user() {
        let mut schemas = sakshi_wire::Schemas::new();
        UserResponse::collect(&mut schemas);
        for column in USER {
            assert!(schemas["UserResponse"]["properties"][column].is_object(), "{column}");
        }
    }
}
