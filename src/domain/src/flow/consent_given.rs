//! The consent fields of requests that fetch personal data (specification, "Consent fields").

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::invalid::Invalid;
use crate::limits::CONSENT_TEXT_CHARS_MAX;

/// The consent of a person: the declaration that the person agreed to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConsentGiven(Box<str>);

impl ConsentGiven {
    /// Reads `consent` and `consent_text`.
    ///
    /// # Errors
    /// [`Invalid`] for a `consent` other than `Y`, and for a `consent_text` that is blank, longer than 4,096
    /// characters, or contains control characters other than line ends and tabs.
    pub fn parse(consent: Option<&str>, consent_text: Option<&str>) -> Result<Self, Invalid> {
        let mut invalid = Invalid::none();
        if consent.is_none() {
            invalid.add("consent", "is required and must be Y, given by the end user");
        }
        let text = consent_text.unwrap_or_default();
        check_fields(consent, Some(text), &mut invalid);
        invalid.or_ok().map(|()| Self(text.into()))
    }

    /// Reads `consent` and `consent_text`; both may be absent.
    ///
    /// # Errors
    /// As for [`ConsentGiven::parse`], but not for absent fields.
    pub fn parse_optional(consent: Option<&str>, consent_text: Option<&str>) -> Result<Option<Self>, Invalid> {
        let mut invalid = Invalid::none();
        check_fields(consent, consent_text, &mut invalid);
        invalid.or_ok().map(|()| consent_text.map(|text| Self(text.into())))
    }

    /// Returns the digest that identifies the declaration.
    #[must_use]
    pub fn digest(&self) -> ConsentDigest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, self.0.as_bytes()).as_ref());
        ConsentDigest(bytes)
    }

    /// Returns the declaration.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// SHA-256 of the UTF-8 text of a declaration, in JSON as hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsentDigest(pub [u8; 32]);

impl fmt::Display for ConsentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for ConsentDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ConsentDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let byte = |index: usize| text.get(2 * index..2 * index + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let mut bytes = [0; 32];
        for (index, parsed) in bytes.iter_mut().enumerate() {
            *parsed = byte(index).ok_or_else(|| D::Error::custom("expected 64 hexadecimal digits"))?;
        }
        Ok(Self(bytes))
    }
}

/// Adds the problems of the fields that are present to `invalid`.
fn check_fields(consent: Option<&str>, consent_text: Option<&str>, invalid: &mut Invalid) {
    if consent.is_some_and(|consent| consent != "Y") {
        invalid.add("consent", "must be Y, given by the end user");
    }
    let is_forbidden_control = |c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\t');
    let is_declaration = |text: &str| {
        !text.trim().is_empty()
            && text.chars().count() <= CONSENT_TEXT_CHARS_MAX
            && !text.chars().any(is_forbidden_control)
    };
    if !consent_text.is_none_or(is_declaration) {
        let sentence = format!(
            "must be the declaration shown to the end user, 1 to {CONSENT_TEXT_CHARS_MAX} characters, without control \
             characters other than line ends and tabs"
        );
        invalid.add("consent_text", sentence);
    }
}

impl fmt::Debug for ConsentGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConsentGiven(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_may_have_lines_and_tabs_but_no_other_control_characters() {
        let read = |text: &str| ConsentGiven::parse(Some("Y"), Some(text));
        assert!(read("I agree:\r\nto this").is_ok(), "line ends as in a form");
        assert_eq!(read("I agree:\n\t1. to this – und „das“").unwrap().text(), "I agree:\n\t1. to this – und „das“");
        for text in
            ["I agree.\0", "\u{7}I agree.", "I\u{1b}[8m do not\u{1b}[0m agree.", "I\u{7f} agree.", "I\u{85} agree."]
        {
            assert_eq!(read(text).unwrap_err().fields()[0].field, "consent_text", "{text:?}");
        }
    }

    #[test]
    fn consent_is_y_with_a_declaration() {
        assert_eq!(ConsentGiven::parse(Some("Y"), Some("I agree.")).unwrap().text(), "I agree.");
        assert!(ConsentGiven::parse(Some("Y"), Some(&"é".repeat(4_096))).is_ok());
        let long = "x".repeat(4_097);
        let cases = [
            (None, Some("I agree."), &["consent"][..]),
            (Some("y"), Some("I agree."), &["consent"]),
            (Some("Y"), None, &["consent_text"]),
            (Some("Y"), Some(" \n"), &["consent_text"]),
            (Some("Y"), Some(&long), &["consent_text"]),
            (Some("N"), Some(""), &["consent", "consent_text"]),
        ];
        for (consent, text, expected) in cases {
            let refused = ConsentGiven::parse(consent, text).unwrap_err();
            assert_eq!(refused.fields().iter().map(|problem| &*problem.field).collect::<Vec<_>>(), expected);
        }
    }
}
