//! What a client sends to open a flow: a draft as it arrives, and a request once it is checked.
//!
//! A draft is filled by whoever reads the body, which knows its spellings and names unknown members.
//! Each request opens its flow; the ids are chosen by whoever calls, because they carry the place
//! where the flow will live.

pub mod doclocker;
pub mod esign;
pub mod estamp;
pub mod wealth;

use super::file::Base64File;
use super::text::Text;
use crate::invalid::Invalid;

/// A text of 1 to `most` characters that must be there.
fn required(invalid: &mut Invalid, field: &str, text: Option<&str>, most: usize) -> Option<Text> {
    match text {
        Some(text) => bounded(invalid, field, text, most),
        None => {
            invalid.add(field, "is required");
            None
        }
    }
}

fn bounded(invalid: &mut Invalid, field: &str, text: &str, most: usize) -> Option<Text> {
    if text.chars().count() > most {
        invalid.add(field, format!("must be 1 to {most} characters"));
        return None;
    }
    invalid.check(field, Text::not_blank(text))
}

/// A file that must be there.
fn file(invalid: &mut Invalid, field: &str, content: Option<Box<str>>) -> Option<Base64File> {
    match content {
        Some(content) => invalid.check(field, Base64File::new(content)),
        None => {
            invalid.add(field, "is required");
            None
        }
    }
}

/// A list of 1 to `most` objects that must be there.
fn list<T>(invalid: &mut Invalid, field: &str, items: Option<Vec<T>>, most: usize) -> Vec<T> {
    match items {
        Some(items) if (1..=most).contains(&items.len()) => return items,
        Some(_) => invalid.add(field, format!("must hold 1 to {most} entries")),
        None => invalid.add(field, "is required"),
    }
    Vec::new()
}

/// What every checked part is worth: the value, unless anything was wrong.
fn checked<T>(invalid: Invalid, value: Option<T>) -> Result<T, Invalid> {
    invalid.or_ok()?;
    value.ok_or_else(|| Invalid::one("body", "is incomplete"))
}
