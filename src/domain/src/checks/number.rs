//! The numbers that are asked about.

use std::fmt;

use regex_lite::Regex;
use serde::Serialize;

/// A number of one of the forms, in capitals. Personal data, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Number(Box<str>);

/// What a number looks like.
#[derive(Clone, Copy, Debug)]
pub struct NumberForm {
    /// The field that holds it.
    pub field: &'static str,
    /// The code of the refusal of what is no such number.
    pub refusal: &'static str,
    /// What it must be, for that refusal and for the document.
    pub rule: &'static str,
    /// One of them.
    pub example: &'static str,
    /// What it matches, in either case: a regular expression of the whole text.
    pub pattern: &'static str,
    /// Whether a text in capitals that matches is one, for what no regular expression says.
    pub is_valid: fn(&str) -> bool,
}

impl NumberForm {
    /// Reads a number in either case.
    ///
    /// # Errors
    /// The text is no such number.
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
    /// The number in capitals.
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
