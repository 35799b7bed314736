//! The environments in which the service runs.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An environment; it decides which issuers are trusted and which test features exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A developer's machine: sandbox issuer, generated keys, demo client.
    Sandbox,
    /// The operator's test of production.
    Stage,
    /// Real residents, real credits.
    Production,
}

impl Profile {
    /// Its name in settings and in an API key's environments.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Stage => "stage",
            Self::Production => "production",
        }
    }
}

impl FromStr for Profile {
    type Err = &'static str;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "sandbox" => Ok(Self::Sandbox),
            "stage" => Ok(Self::Stage),
            "production" => Ok(Self::Production),
            _ => Err("must be one of sandbox, stage, production"),
        }
    }
}
