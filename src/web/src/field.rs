//! A field of a form, with its label, hint and error.

use std::borrow::Cow;

use askama::Template;
use sakshi_domain::time::Timestamp;

use crate::when::format_for_input;

/// A field of a form as HTML.
#[derive(Debug, Template)]
#[template(path = "field.html")]
pub struct Field<'a> {
    /// Name in the API.
    name: &'a str,
    id: String,
    label: &'a str,
    hint: &'a str,
    /// `type` of the input.
    kind: &'a str,
    value: Cow<'a, str>,
    problem: Option<String>,
    required: bool,
    /// `autocomplete` of the input.
    autocomplete: &'a str,
}

impl<'a> Field<'a> {
    /// Builds a field with a value. A moment with an offset is shown in UTC.
    #[must_use]
    pub fn new(
        name: &'a str,
        label: &'a str,
        kind: &'a str,
        value: impl Into<Cow<'a, str>>,
        problem: Option<String>,
    ) -> Self {
        let value = value.into();
        let moment = (kind == "datetime-local").then(|| Timestamp::parse_iso8601(&value)).flatten();
        let value = moment.map_or(value, |moment| format_for_input(moment).into());
        Self { name, id: name.to_owned(), label, hint: "", kind, value, problem, required: false, autocomplete: "off" }
    }

    /// Sets the hint beside the label.
    #[must_use]
    pub fn hint(self, hint: &'a str) -> Self {
        Self { hint, ..self }
    }

    /// Marks the field as required in the browser.
    #[must_use]
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Sets `autocomplete` of the input, so that the browser can fill it in.
    #[must_use]
    pub fn autocomplete(self, autocomplete: &'a str) -> Self {
        Self { autocomplete, ..self }
    }

    /// Adds a suffix to the id, for a page with several fields of the same name.
    #[must_use]
    pub fn with_id_suffix(self, suffix: &str) -> Self {
        Self { id: format!("{}-{suffix}", self.name), ..self }
    }

    /// Returns the ids of hint and problem, for `aria-describedby`; empty if the field has neither.
    fn described_by(&self) -> String {
        let hint = (!self.hint.is_empty()).then(|| format!("{}-hint", self.id));
        let problem = self.problem.is_some().then(|| format!("{}-problem", self.id));
        hint.into_iter().chain(problem).collect::<Vec<_>>().join(" ")
    }
}
