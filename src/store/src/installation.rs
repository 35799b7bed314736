//! The installation of a store: every store remembers the profile and the authority of its creation.
//!
//! Without this check, stage and production could share one store, and each would serve the transactions of the other:
//! a credential that only stage trusts would complete a transaction of production.

use std::fmt;
use std::str::FromStr;

use sakshi_domain::profile::Profile;

use crate::error::StoreError;

/// A profile, and the authority whose credentials are accepted. The `iss` of its credentials identifies an authority,
/// so its keys can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// Stage, production or the sandbox.
    pub profile: Profile,
    /// The `iss` of accepted credentials.
    pub authority: String,
}

/// Ownership of the stores that a node opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The installation of the node.
    pub owner: Installation,
    /// Another installation whose store the owner takes over.
    pub takes_over: Option<Installation>,
}

impl Ownership {
    /// Returns the ownership of a node with this profile and authority, which takes over no other store.
    #[must_use]
    pub fn new(profile: Profile, authority: &str) -> Self {
        Self { owner: Installation { profile, authority: authority.to_owned() }, takes_over: None }
    }

    /// Checks the installation that a store remembers. Returns the installation to store instead, if the store
    /// remembers none or is taken over.
    ///
    /// # Errors
    /// [`StoreError::OtherInstallation`] when the store belongs to another installation, [`StoreError::Corrupt`] when
    /// the stored text is invalid.
    pub(crate) fn check(&self, stored: Option<&str>) -> Result<Option<String>, StoreError> {
        let Some(stored) = stored else { return Ok(Some(self.owner.to_string())) };
        let stored: Installation =
            stored.parse().map_err(|_| StoreError::unreadable("the profile and the authority of the store"))?;
        if stored == self.owner {
            return Ok(None);
        }
        if Some(&stored) == self.takes_over.as_ref() {
            return Ok(Some(self.owner.to_string()));
        }
        Err(StoreError::OtherInstallation { store: stored.in_words(), node: self.owner.in_words() })
    }
}

impl Installation {
    /// Describes the installation by the settings that choose it.
    fn in_words(&self) -> String {
        format!("profile {} with authority.issuer {}", self.profile.as_str(), self.authority)
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.profile.as_str(), self.authority)
    }
}

impl FromStr for Installation {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refusal = "must be a profile and an authority.issuer with a space between them, such as \"stage \
            https://issuer.example\"";
        let (profile, authority) = text.split_once(' ').ok_or(refusal)?;
        let authority = Some(authority.to_owned()).filter(|authority| !authority.trim().is_empty());
        Ok(Self { profile: profile.parse().map_err(|_| refusal)?, authority: authority.ok_or(refusal)? })
    }
}

/// The installation of the tests' stores.
#[cfg(test)]
pub(crate) fn test_ownership() -> Ownership {
    Ownership::new(Profile::Sandbox, "https://issuer.test")
}

/// Returns the ownership of an installation, given as profile and authority.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) fn ownership(text: &str) -> Ownership {
    Ownership { owner: text.parse().unwrap(), takes_over: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_remembers_its_installation_and_refuses_any_other() {
        let stage = ownership("stage https://one.example");
        assert_eq!(stage.check(None), Ok(Some("stage https://one.example".to_owned())));
        assert_eq!(stage.check(Some("stage https://one.example")), Ok(None));
        for other in ["production https://one.example", "stage https://other.example", "sandbox https://one.example"] {
            let refusal = ownership(other).check(Some("stage https://one.example")).unwrap_err().to_string();
            let (profile, authority) = other.split_once(' ').unwrap();
            for part in [
                "profile stage",
                "https://one.example",
                &format!("profile {profile}"),
                authority,
                "store.path",
                "store.redis_url",
            ] {
                assert!(refusal.contains(part), "{part} is missing: {refusal}");
            }
        }
        for damaged in ["", "stage", "moon https://one.example", "stage  "] {
            assert!(matches!(stage.check(Some(damaged)), Err(StoreError::Corrupt(_))), "{damaged}");
        }
    }

    #[test]
    fn a_store_is_taken_over_only_from_the_named_installation() {
        let moving = Ownership {
            takes_over: "stage https://one.example".parse().ok(),
            ..ownership("stage https://two.example")
        };
        assert_eq!(moving.check(Some("stage https://one.example")), Ok(Some("stage https://two.example".to_owned())));
        assert_eq!(moving.check(Some("stage https://two.example")), Ok(None), "it has moved");
        assert!(matches!(
            moving.check(Some("production https://one.example")),
            Err(StoreError::OtherInstallation { .. })
        ));
    }
}
