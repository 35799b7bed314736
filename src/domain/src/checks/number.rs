//! Numbers to verify, and their forms.

use std::fmt;

use regex_lite::Regex;
use serde::Serialize;

/// A number of one of the forms, in capitals. Personal data, which `Debug` hides.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Number(Box<str>);

/// The form of a number.
#[derive(Clone, Copy, Debug)]
pub struct NumberForm {
    /// The name of the field in the API.
    pub field: &'static str,
    /// The error code for a malformed number.
    pub refusal: &'static str,
    /// The rule, for that error and for the OpenAPI document.
    pub rule: &'static str,
    /// A valid number, for examples.
    pub example: &'static str,
    /// Regular expression for the whole text, in either case.
    pub pattern: &'static str,
    /// Further check of a text in capitals that matches the regular expression.
    pub is_valid: fn(&str) -> bool,
}

impl NumberForm {
    /// Reads a number in either case.
    ///
    /// # Errors
    /// The form itself, if the text is no such number.
    pub fn parse(&'static self, text: &str) -> Result<Number, &'static Self> {
        let matches = Regex::new(self.pattern).is_ok_and(|pattern| pattern.is_match(text));
        let number = text.to_ascii_uppercase();
        if matches && (self.is_valid)(&number) { Ok(Number(number.into())) } else { Err(self) }
    }
}

impl PartialEq for NumberForm {
    fn eq(&self, other: &Self) -> bool {
        self.field == other.field && self.refusal == other.refusal
    }
}

impl Eq for NumberForm {}

impl Number {
    /// Returns the number in capitals.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Number(redacted)")
    }
}
