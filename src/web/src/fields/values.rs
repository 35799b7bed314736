//! Parsers of single values; each says what it would accept.

use std::ops::RangeInclusive;

use super::Problem;
use crate::json::Json;

/// Reads a string, and what it says.
pub fn text<T, P: Into<Problem>>(parse: impl FnOnce(&str) -> Result<T, P>) -> impl FnOnce(&Json) -> Result<T, Problem> {
    move |value| match value {
        Json::Text(text) => parse(text).map_err(Into::into),
        _ => Err("must be a string".into()),
    }
}

/// Reads a string, whatever it says.
///
/// # Errors
/// It is something else.
pub fn string(value: &Json) -> Result<String, Problem> {
    text(|text| Ok::<_, Problem>(text.to_owned()))(value)
}

/// Reads a string of 1 to `most` characters, none of them a control character.
pub fn words(most: usize) -> impl FnOnce(&Json) -> Result<String, Problem> {
    text(move |text| {
        let good = (1..=most).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        good.then(|| text.to_owned()).ok_or_else(|| format!("must be 1 to {most} characters without control characters"))
    })
}

/// Reads one of these words.
pub fn one_of<T: Copy, const N: usize>(known: [(&'static str, T); N]) -> impl FnOnce(&Json) -> Result<T, Problem> {
    move |value| {
        let found = known.iter().find(|(word, _)| matches!(value, Json::Text(text) if text == word));
        let words = || known.map(|(word, _)| word).join(" or ");
        found.map(|(_, meaning)| *meaning).ok_or_else(|| format!("must be {}", words()).into())
    }
}

/// Reads `true` or `false`.
///
/// # Errors
/// It is something else.
pub fn flag(value: &Json) -> Result<bool, Problem> {
    match value {
        Json::Flag(flag) => Ok(*flag),
        _ => Err("must be true or false".into()),
    }
}

/// Reads a whole number within bounds.
pub fn whole(bounds: RangeInclusive<u64>) -> impl FnOnce(&Json) -> Result<u64, Problem> {
    move |value| {
        let number = if let Json::Whole(number) = value { u64::try_from(*number).ok() } else { None };
        let good = number.filter(|number| bounds.contains(number));
        good.ok_or_else(|| format!("must be a whole number from {} to {}", bounds.start(), bounds.end()).into())
    }
}
