//! Portal users of a client, and their roles.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{ClientId, UserId};
use crate::limits::{EMAIL_CHARS_MAX, LABEL_CHARS_MAX};
use crate::string_enum::string_enum;
use crate::time::Timestamp;

string_enum!(
    /// The role of a user. Each role includes the previous ones. The routes of the portal name the required role.
    UserRole {
        /// May read.
        View = "view",
        /// May verify people, and manage events, doors and webhooks.
        Organise = "organise",
        /// May manage API keys, the team and sign-in.
        Admin = "admin",
    }
);

/// The name of a person. `Debug` hides it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PersonName(Arc<str>);

/// An e-mail address in lower case. `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Email(Arc<str>);

/// A stored user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The id.
    pub user_id: UserId,
    /// The client to which the user belongs.
    pub client_id: ClientId,
    /// The name of the person.
    pub name: PersonName,
    /// The e-mail address, unique among all users.
    pub email: Email,
    /// The role.
    pub role: UserRole,
    /// Time of the invitation.
    pub created_at: Timestamp,
    /// Expiry of an unused invitation.
    pub invited_until: Option<Timestamp>,
    /// Time at which the user chose a password; `None` before that.
    pub accepted_at: Option<Timestamp>,
    /// Time of the last sign-in.
    pub signed_in_at: Option<Timestamp>,
    /// Time of disabling.
    pub disabled_at: Option<Timestamp>,
}

/// A change to a user: `None` leaves a field unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserPatch {
    /// A new role.
    pub role: Option<UserRole>,
    /// Disable or enable.
    pub disabled: Option<bool>,
}

impl User {
    /// Applies a change at `now`. A disabled user keeps the first time of disabling.
    pub fn apply(&mut self, patch: UserPatch, now: Timestamp) {
        self.role = patch.role.unwrap_or(self.role);
        match patch.disabled {
            Some(true) => self.disabled_at = self.disabled_at.or(Some(now)),
            Some(false) => self.disabled_at = None,
            None => {}
        }
    }

    /// Returns true if the user may sign in.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.accepted_at.is_some() && self.disabled_at.is_none()
    }
}

impl PersonName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PersonName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if !(1..=LABEL_CHARS_MAX).contains(&text.chars().count()) || text.chars().any(char::is_control) {
            return Err("must have 1 to 100 characters");
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Debug for PersonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersonName([not shown])")
    }
}

impl Email {
    /// Returns the address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Email {
    type Err = &'static str;

    /// Reads an address. The check catches typing mistakes; only the invitation link proves that the address works.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_valid = text.chars().count() <= EMAIL_CHARS_MAX
            && text
                .chars()
                .all(|letter| !letter.is_control() && !letter.is_whitespace() && !"<>\"(),:;\u{feff}".contains(letter))
            && matches!(text.rsplit_once('@'), Some((local,
                host)) if !local.is_empty() && !local.contains('@') && is_host(host));
        if is_valid {
            Ok(Self(text.to_lowercase().into()))
        } else {
            Err("must be an e-mail address such as asha@example.com")
        }
    }
}

/// Returns true if a host has at least two labels, none of them empty.
fn is_host(host: &str) -> bool {
    host.contains('.') && host.split('.').all(|label| !label.is_empty())
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email([not shown])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_stored_in_lower_case_and_hidden_in_debug_output() {
        let email: Email = "Asha.Rao@Example.COM".parse().unwrap();
        assert_eq!(email.as_str(), "asha.rao@example.com");
        assert!(!format!("{email:?} {:?}", "Asha".parse::<PersonName>().unwrap()).to_lowercase().contains("asha"));
        for wrong in [
            "",
            "asha",
            " a@example.com",
            "@example.com",
            "asha@",
            "asha@example",
            "a b@example.com",
            "a@b@example.com",
            "a@.com",
            "a\n@b.in",
        ] {
            assert!(wrong.parse::<Email>().is_err(), "{wrong}");
        }
        assert!(format!("{}@example.com", "a".repeat(EMAIL_CHARS_MAX)).parse::<Email>().is_err());
    }

    #[test]
    fn a_name_is_not_blank_and_has_no_control_characters() {
        for wrong in ["", "  ", "a\u{7}b", &"x".repeat(LABEL_CHARS_MAX + 1)] {
            assert!(wrong.parse::<PersonName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_role_includes_the_previous_ones() {
        assert!(UserRole::View < UserRole::Organise && UserRole::Organise < UserRole::Admin);
    }

    #[test]
    fn a_repeated_disabling_keeps_the_first_time() {
        let at = Timestamp::from_millis;
        let mut user = User {
            user_id: UserId::generate(),
            client_id: ClientId::generate(),
            name: "Asha Rao".parse().unwrap(),
            email: "asha@example.com".parse().unwrap(),
            role: UserRole::View,
            created_at: at(0),
            invited_until: None,
            accepted_at: Some(at(1)),
            signed_in_at: None,
            disabled_at: None,
        };
        let disable = UserPatch { disabled: Some(true), role: Some(UserRole::Admin) };
        user.apply(disable, at(2));
        user.apply(disable, at(3));
        assert_eq!((user.disabled_at, user.role, user.is_active()), (Some(at(2)), UserRole::Admin, false));
        user.apply(UserPatch { disabled: Some(false), role: None }, at(4));
        assert!(user.is_active());
    }
}
