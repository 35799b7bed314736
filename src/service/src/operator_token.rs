//! Tokens of operators: like API keys, but with another prefix, so that the two cannot be confused.

use std::fmt;

use sakshi_domain::tenancy::KeyDigest;

use crate::api_key::{self, ApiKey, sha256};

/// Prefix of every token.
pub const PREFIX: &str = "so_";

/// A well-formed token; shown once, when its operator is added.
#[derive(Clone, PartialEq, Eq)]
pub struct OperatorToken(String);

impl OperatorToken {
    /// Generates a token; `None` when the system has no randomness.
    #[must_use]
    pub fn issue() -> Option<Self> {
        let (key, _) = ApiKey::issue()?;
        Self::parse(&format!("{PREFIX}{}", key.reveal().strip_prefix(api_key::PREFIX)?))
    }

    /// Parses a token; checks its form and checksum.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let body = text.strip_prefix(PREFIX)?;
        ApiKey::parse(&format!("{}{body}", api_key::PREFIX)).map(|_| Self(text.to_owned()))
    }

    /// Returns the digest that is stored.
    #[must_use]
    pub fn digest(&self) -> KeyDigest {
        KeyDigest(sha256(&[self.0.as_bytes()]))
    }

    /// Returns the token itself, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorToken([not shown])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_and_is_not_an_api_key() {
        let token = OperatorToken::issue().unwrap();
        assert_eq!(OperatorToken::parse(token.reveal()), Some(token.clone()));
        assert!(ApiKey::parse(token.reveal()).is_none());
        let (key, _) = ApiKey::issue().unwrap();
        assert_eq!(OperatorToken::parse(key.reveal()), None);
        assert!(!format!("{token:?}").contains(&token.reveal()[3..]));
    }
}
