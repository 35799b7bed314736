//! The numbers that are asked about.

use std::fmt;

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
    /// The least and the most characters.
    pub length: (usize, usize),
    /// What all of them match, in both cases, as a regular expression.
    pub pattern: &'static str,
    /// Whether a text in capitals, all ASCII and of such a length, is one.
    pub fits: fn(&str) -> bool,
}

impl NumberForm {
    /// Reads a number in either case.
    ///
    /// # Errors
    /// The text is no such number.
    pub fn parse(&'static self, text: &str) -> Result<Number, &'static Self> {
        let (least, most) = self.length;
        let number = text.to_ascii_uppercase();
        let fits = number.is_ascii() && (least..=most).contains(&number.len()) && (self.fits)(&number);
        if fits { Ok(Number(number.into())) } else { Err(self) }
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

/// Whether a text is of this shape: `A` is a letter, `9` a digit, `X` either of them, and anything else itself.
pub(super) fn is_shaped(text: &str, shape: &str) -> bool {
    let fits = |(byte, like): (u8, u8)| match like {
        b'A' => byte.is_ascii_uppercase(),
        b'9' => byte.is_ascii_digit(),
        b'X' => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}
