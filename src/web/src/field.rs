//! One field of a form: its label, its hint, and its error.

use std::borrow::Cow;

use askama::Template;
use sakshi_domain::time::Timestamp;

use crate::when::input;

/// A field as displayed.
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
    complete: &'a str,
}

impl<'a> Field<'a> {
    /// Builds a field with this value. A moment with an offset is shown in UTC.
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
        let value = moment.map_or(value, |at| input(at).into());
        Self { name, id: name.to_owned(), label, hint: "", kind, value, problem, required: false, complete: "off" }
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

    /// Lets the browser fill it in.
    #[must_use]
    pub fn complete(self, complete: &'a str) -> Self {
        Self { complete, ..self }
    }

    /// Distinguishes the field from another of the same name on the page.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self { id: format!("{}-{place}", self.name), ..self }
    }

    /// Returns the ids of the elements that describe the input; empty without any.
    fn described_by(&self) -> String {
        let hint = (!self.hint.is_empty()).then(|| format!("{}-hint", self.id));
        let problem = self.problem.is_some().then(|| format!("{}-problem", self.id));
        hint.into_iter().chain(problem).collect::<Vec<_>>().join(" ")
    }
}
