//! The correlation id of a request, from the caller or generated. The response and the webhooks of the
//! request repeat it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::REQUEST_ID_CHARS_MAX;

/// A correlation id: 1 to 128 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Generates a new random id.
    #[must_use]
    pub fn mint() -> Self {
        Self((&*Uuid::new_v4().hyphenated().encode_lower(&mut Uuid::encode_buffer())).into())
    }

    /// Accepts the caller's id.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > REQUEST_ID_CHARS_MAX || !is_visible {
            return Err("must be 1 to 128 visible ASCII characters");
        }
        Ok(Self(text.into()))
    }

    /// Returns the id as shared text.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RequestId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_1_to_128_visible_ascii_characters() {
        for text in ["", "a b", "é", "a\n", &"x".repeat(REQUEST_ID_CHARS_MAX + 1)] {
            assert!(RequestId::parse(text).is_err(), "{text}");
        }
        for text in ["!", "order-42/~", &"x".repeat(REQUEST_ID_CHARS_MAX)] {
            let id = RequestId::parse(text).unwrap();
            assert_eq!((id.as_str(), id.to_string().as_str()), (text, text));
        }
    }
}
