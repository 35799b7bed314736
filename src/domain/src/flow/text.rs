//! Texts in bodies of flows: ids of other systems, and free text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::{FOREIGN_ID_CHARS_MAX, TEXT_CHARS_MAX};

/// An id for exchange with another system: 1 to 128 visible ASCII characters, without spaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ForeignId(Box<str>);

impl ForeignId {
    /// Generates a new random id.
    #[must_use]
    pub fn mint() -> Self {
        Self((&*Uuid::new_v4().hyphenated().encode_lower(&mut Uuid::encode_buffer())).into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ForeignId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ForeignId {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text.len() > FOREIGN_ID_CHARS_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("must be 1 to 128 visible ASCII characters");
        }
        Ok(Self(text.into()))
    }
}

/// Free text of up to 1,024 characters. It is often personal data, so `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(Box<str>);

impl Text {
    /// Parses a text, which may be empty.
    ///
    /// # Errors
    /// A message, if the text is too long or has control characters other than line feeds.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > TEXT_CHARS_MAX || text.chars().any(|c| c.is_control() && c != '\n') {
            return Err(format!("must be at most {TEXT_CHARS_MAX} characters, without control characters"));
        }
        Ok(Self(text.into()))
    }

    /// Parses a text that is not blank.
    ///
    /// # Errors
    /// As for [`Text::parse`]; also a message if the text is blank.
    pub fn not_blank(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() { Err("must not be blank".to_owned()) } else { Self::parse(text) }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes redacted)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_id_is_visible_ascii_of_bounded_length() {
        for text in ["", "a b", "é", "a\n", &"x".repeat(129)] {
            assert!(text.parse::<ForeignId>().is_err(), "{text}");
        }
        assert!("x".repeat(128).parse::<ForeignId>().is_ok());
        assert!("urn:x/7+1".parse::<ForeignId>().is_ok() && ForeignId::mint() != ForeignId::mint());
    }

    #[test]
    fn a_text_is_bounded_and_debug_output_hides_it() {
        assert!(Text::parse("").is_ok() && Text::not_blank(" ").is_err());
        assert!(Text::parse(&"é".repeat(1_024)).is_ok() && Text::parse(&"é".repeat(1_025)).is_err());
        assert!(Text::parse("a\u{7}").is_err());
        assert!(!format!("{:?}", Text::parse("Asha Rao").unwrap()).contains("Asha"));
    }
}
