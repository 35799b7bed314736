//! The answer to an order: a JSON object. Expected members are taken by name and must be unique; other members are
//! ignored.

use std::mem;

use sakshi_domain::limits::UPSTREAM_ANSWER_BYTES_MAX;
use sakshi_wire::json::{self, Json, ValuesLeft};

use super::error::UpstreamError;

/// The error for an answer without the expected members.
const UNEXPECTED: UpstreamError = UpstreamError::Unreadable("is not the expected JSON");

/// The members of an upstream's answer, or of an object in it, that were not taken yet.
pub(super) struct Answer(Vec<(String, Json)>);

impl Answer {
    /// Reads a body.
    ///
    /// # Errors
    /// [`UpstreamError::Unreadable`] when the body is not UTF-8, or not a JSON object.
    pub(super) fn read(body: &[u8]) -> Result<Self, UpstreamError> {
        str::from_utf8(body).map_err(|_| UpstreamError::Unreadable("is not in UTF-8"))?;
        // A body has at most as many values as bytes.
        match json::read(body, usize::MAX, &ValuesLeft::new(UPSTREAM_ANSWER_BYTES_MAX)) {
            Ok(Json::Object(members)) => Ok(Self(members)),
            _ => Err(UNEXPECTED),
        }
    }

    /// Takes the string with this name, and parses it.
    pub(super) fn take_text<T, E>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, UpstreamError> {
        self.take_optional_text(name, parse)?.ok_or(UNEXPECTED)
    }

    /// Takes the string with this name, and parses it. Returns `None` for null and for a missing member.
    pub(super) fn take_optional_text<T, E>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, UpstreamError> {
        match self.take(name)? {
            Json::Null => Ok(None),
            Json::Text(text) => parse(&text).map(Some).map_err(|_| UNEXPECTED),
            _ => Err(UNEXPECTED),
        }
    }

    /// Takes the boolean with this name. Returns `None` for null and for a missing member.
    pub(super) fn take_optional_flag(&mut self, name: &str) -> Result<Option<bool>, UpstreamError> {
        match self.take(name)? {
            Json::Null => Ok(None),
            Json::Flag(flag) => Ok(Some(flag)),
            _ => Err(UNEXPECTED),
        }
    }

    /// Takes the list of objects with this name.
    pub(super) fn take_objects(&mut self, name: &str) -> Result<Vec<Self>, UpstreamError> {
        let Json::List(items) = self.take(name)? else { return Err(UNEXPECTED) };
        let object = |item| if let Json::Object(members) = item { Ok(Self(members)) } else { Err(UNEXPECTED) };
        items.into_iter().map(object).collect()
    }

    /// Takes the member with this name; null when there is none.
    fn take(&mut self, name: &str) -> Result<Json, UpstreamError> {
        let mut matches = self.0.iter_mut().filter(|(member, _)| member == name);
        match (matches.next(), matches.next()) {
            (None, _) => Ok(Json::Null),
            (Some((_, value)), None) => Ok(mem::take(value)),
            (Some(_), Some(_)) => Err(UNEXPECTED),
        }
    }
}
