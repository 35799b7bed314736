//! One field of a form: its label, its hint, and what was wrong with it.

use std::borrow::Cow;

use askama::Template;
use sakshi_domain::time::Timestamp;

use crate::when::input;

/// A field as it is shown.
#[derive(Debug, Template)]
#[template(path = "field.html")]
pub struct Field<'a> {
    /// Its name in the API.
    name: &'a str,
    id: String,
    label: &'a str,
    hint: &'a str,
    /// The `type` of the input.
    kind: &'a str,
    value: Cow<'a, str>,
    problem: Option<String>,
    required: bool,
    /// The `autocomplete` of the input.
    complete: &'a str,
}

impl<'a> Field<'a> {
    /// A field with this value. A moment with an offset is shown in UTC.
    #[must_use]
    pub fn new(name: &'a str, label: &'a str, kind: &'a str, value: impl Into<Cow<'a, str>>, problem: Option<String>) -> Self {
        let value = value.into();
        let moment = (kind == "datetime-local").then(|| Timestamp::parse_iso8601(&value)).flatten();
        let value = moment.map_or(value, |at| input(at).into());
        Self { name, id: name.to_owned(), label, hint: "", kind, value, problem, required: false, complete: "off" }
    }

    /// Says beside the label what is expected.
    #[must_use]
    pub fn hint(self, hint: &'a str) -> Self {
        Self { hint, ..self }
    }

    /// Browsers do not send the form without a value.
    #[must_use]
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Lets the browser fill it in.
    #[must_use]
    pub fn complete(self, complete: &'a str) -> Self {
        Self { complete, ..self }
    }

    /// Tells it from another field of the same name on the page.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self { id: format!("{}-{place}", self.name), ..self }
    }

    /// What describes the input, by ids; empty for nothing.
    fn described_by(&self) -> String {
        let hint = (!self.hint.is_empty()).then(|| format!("{}-hint", self.id));
        let problem = self.problem.is_some().then(|| format!("{}-problem", self.id));
        hint.into_iter().chain(problem).collect::<Vec<_>>().join(" ")
    }
}
