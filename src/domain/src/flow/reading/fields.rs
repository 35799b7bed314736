//! Takes a JSON object apart, member by member, and notes every problem under its path.

use std::borrow::Cow;
use std::cell::RefCell;

use super::json::{self, Json};
use crate::ids::AppId;
use crate::invalid::Invalid;
use crate::limits::REPORT_PROBLEMS_MAX;
use crate::request_id::RequestId;
use crate::time::Timestamp;

/// What would be accepted instead of a value.
pub(crate) type Sentence = Cow<'static, str>;

/// Characters of an unknown member's name that are repeated to its sender.
const NAME_CHARS_TOLD: usize = 64;

/// The years 1 to 9999.
const FIRST_MILLI: i64 = -62_135_596_800_000;
const LAST_MILLI: i64 = 253_402_300_799_999;

/// A value that can be read from JSON.
pub(crate) trait FromJson: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// What would be accepted; never what was found, which may be personal.
    fn from_json(json: Json) -> Result<Self, Sentence>;
}

/// The members of one object that have not been read yet.
pub(crate) struct Fields<'p> {
    problems: &'p RefCell<Invalid>,
    path: String,
    members: Vec<(Box<str>, Json)>,
    taken: Vec<&'static str>,
}

/// Reads a document that is one object.
///
/// # Errors
/// Every problem, each with its path; `body` for the document itself.
pub(crate) fn read<T>(bytes: &[u8], object: impl FnOnce(&mut Fields<'_>) -> Option<T>) -> Result<T, Invalid> {
    let problems = RefCell::new(Invalid::none());
    let members = match json::parse(bytes) {
        Ok(Json::Object(members)) => members,
        Ok(_) => return Err(Invalid::one("body", "must be a JSON object")),
        Err(sentence) => return Err(Invalid::one("body", sentence)),
    };
    let mut fields = Fields { problems: &problems, path: String::new(), members, taken: Vec::new() };
    let value = object(&mut fields);
    fields.finish();
    problems.into_inner().or_ok()?;
    value.ok_or_else(|| Invalid::one("body", "is incomplete"))
}

impl Fields<'_> {
    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Notes a problem with a member.
    pub(crate) fn problem(&self, name: &str, sentence: impl Into<String>) {
        self.note(self.path_of(name), sentence.into());
    }

    fn note(&self, path: String, sentence: String) {
        let mut problems = self.problems.borrow_mut();
        if problems.fields().len() < REPORT_PROBLEMS_MAX {
            problems.add(path, sentence);
        }
    }

    fn take(&mut self, name: &'static str) -> Option<Json> {
        self.taken.push(name);
        let at = self.members.iter().position(|(member, _)| **member == *name)?;
        Some(self.members.remove(at).1).filter(|value| !matches!(value, Json::Null))
    }

    /// A member that must be there and not null.
    pub(crate) fn required<T: FromJson>(&mut self, name: &'static str) -> Option<T> {
        self.optional(name, true).flatten()
    }

    /// A member that may be absent or null, unless it is `needed`; `None` only when it is wrong.
    pub(crate) fn optional<T: FromJson>(&mut self, name: &'static str, needed: bool) -> Option<Option<T>> {
        let Some(json) = self.take(name) else {
            if needed {
                self.problem(name, "is required");
            }
            return (!needed).then_some(None);
        };
        T::from_json(json).map(Some).map_err(|sentence| self.problem(name, sentence)).ok()
    }

    /// An object that may be absent or null, unless it is `needed`; `None` only when it is wrong.
    pub(crate) fn object<T>(
        &mut self,
        name: &'static str,
        needed: bool,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.take(name) {
            None if !needed => Some(None),
            None => {
                self.problem(name, "is required");
                None
            }
            Some(json) => self.inside(self.path_of(name), json, read).map(Some),
        }
    }

    /// A list of `from` to `to` objects, which may be absent or null unless it is `needed`.
    pub(crate) fn list<T>(
        &mut self,
        name: &'static str,
        needed: bool,
        (from, to): (usize, usize),
        mut read: impl FnMut(&mut Fields<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = match self.take(name) {
            Some(Json::List(items)) => items,
            Some(_) => {
                self.problem(name, "must be an array");
                return None;
            }
            None if !needed => return Some(Vec::new()),
            None => {
                self.problem(name, "is required");
                return None;
            }
        };
        if !(from..=to).contains(&items.len()) {
            self.problem(name, format!("must hold {from} to {to} objects"));
            return None;
        }
        let path = self.path_of(name);
        let read: Vec<Option<T>> =
            items.into_iter().enumerate().map(|(index, item)| self.inside(format!("{path}[{index}]"), item, &mut read)).collect();
        read.into_iter().collect()
    }

    fn inside<T>(&self, path: String, json: Json, read: impl FnOnce(&mut Fields<'_>) -> Option<T>) -> Option<T> {
        let Json::Object(members) = json else {
            self.note(path, "must be an object".to_owned());
            return None;
        };
        let mut fields = Fields { problems: self.problems, path, members, taken: Vec::new() };
        let value = read(&mut fields);
        fields.finish();
        value
    }

    /// Notes what was not read.
    fn finish(self) {
        for (name, _) in &self.members {
            let known = self.taken.iter().any(|taken| **taken == **name);
            let sentence = if known { "is given twice" } else { "is not a field of this report" };
            let told: String = name.chars().take(NAME_CHARS_TOLD).collect();
            self.problem(&told, sentence);
        }
    }
}

/// A text, and what a newtype makes of it.
pub(crate) fn text<T, E: Into<Sentence>>(json: Json, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T, Sentence> {
    match json {
        Json::Text(text) => parse(&text).map_err(Into::into),
        _ => Err("must be a string".into()),
    }
}

impl FromJson for bool {
    fn from_json(json: Json) -> Result<Self, Sentence> {
        if let Json::Bool(bool) = json { Ok(bool) } else { Err("must be true or false".into()) }
    }
}

impl FromJson for Timestamp {
    fn from_json(json: Json) -> Result<Self, Sentence> {
        // In UTC the first and the last year could get a sign or a fifth digit, and be unreadable then.
        let readable = |at: &Self| (FIRST_MILLI..=LAST_MILLI).contains(&at.millis());
        let sentence = "must be an ISO 8601 timestamp with an offset, such as 2026-01-31T09:30:00.000Z";
        text(json, |text| Self::parse_rfc3339(text).filter(readable).ok_or(sentence))
    }
}

impl FromJson for AppId {
    fn from_json(json: Json) -> Result<Self, Sentence> {
        text(json, str::parse)
    }
}

impl FromJson for RequestId {
    fn from_json(json: Json) -> Result<Self, Sentence> {
        text(json, Self::parse)
    }
}
