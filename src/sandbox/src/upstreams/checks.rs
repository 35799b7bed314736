//! The sources of the synchronous checks, one for each check in [`CHECKS`]. They answer from a file of invented
//! numbers; `assets/checks.toml` documents its format.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use sakshi_domain::checks::{CHECKS, Check, CheckStatus, DetailForm};
use sakshi_domain::invalid::Invalid;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::error::FlowError;
use super::order::{parse_consent_text, parse_json};

/// The file of invented numbers.
const NUMBERS_FILE: &str = include_str!("../../assets/checks.toml");
/// Time for which a silent source keeps the connection open, longer than any caller waits.
const SILENCE: Duration = Duration::from_secs(300);

/// The entries of the file: the numbers that the sources know, with their answers, by the name of the check.
pub(super) struct KnownNumbers(BTreeMap<String, Vec<Map<String, Value>>>);

impl KnownNumbers {
    /// Reads the file of numbers.
    pub(super) fn built_in() -> Result<Self, toml::de::Error> {
        toml::from_str(NUMBERS_FILE).map(Self)
    }

    /// Returns all entries, for testers.
    pub(super) const fn entries(&self) -> &BTreeMap<String, Vec<Map<String, Value>>> {
        &self.0
    }

    /// Answers a query to a source. For some numbers, the source fails or stays silent.
    pub(super) async fn answer(&self, source: &str, query: &[u8]) -> Result<Value, FlowError> {
        let check = CHECKS.iter().find(|check| check.name == source).ok_or(FlowError::NoSuchOrder)?;
        let query: Map<String, Value> = parse_json(query)?;
        let numbers = parse_numbers(check, &query)?;
        let matches =
            |entry: &&Map<String, Value>| numbers.iter().all(|(field, number)| text_of(entry, field) == Some(number));
        let Some(entry) = self.0.get(source).and_then(|entries| entries.iter().find(matches)) else {
            return Ok(json!({ "status": CheckStatus::NotFound }));
        };
        match text_of(entry, "behaviour") {
            Some("time_out") => {
                let _: Result<(), _> = timeout(SILENCE, pending()).await;
                Err(FlowError::Source)
            }
            Some(_) => Err(FlowError::Source),
            None => Ok(build_answer(check, entry, &query)),
        }
    }
}

/// Reads the numbers in a query, with the names of their fields. Also checks the other members of the query.
fn parse_numbers(check: &Check, query: &Map<String, Value>) -> Result<Vec<(&'static str, String)>, Invalid> {
    let mut invalid = Invalid::none();
    let mut numbers = Vec::new();
    for form in check.numbers {
        let number = text_of(query, form.field).and_then(|number| form.parse(number).ok());
        numbers.extend(
            invalid.check(form.field, number.ok_or(form.rule)).map(|number| (form.field, number.as_str().to_owned())),
        );
    }
    if check.needs_consent {
        parse_consent_text(&mut invalid, text_of(query, "consent_text").map(str::to_owned));
    }
    for comparison in check.compared {
        if let Some(value) = query.get(comparison.source_field) {
            invalid.check(
                comparison.source_field,
                comparison.kind.parse(value.as_str().unwrap_or_default()).map_err(|sentence| sentence.into_owned()),
            );
        }
    }
    invalid.or_ok().map(|()| numbers)
}

/// Builds the answer about a known number. Names are compared without regard to case and spaces.
fn build_answer(check: &Check, entry: &Map<String, Value>, query: &Map<String, Value>) -> Value {
    let mut answer = Map::new();
    answer.extend(entry.get("status").map(|status| ("status".to_owned(), status.clone())));
    for detail in check.details {
        let value = match detail.form {
            DetailForm::Match(field) => text_of(query, field)
                .zip(text_of(entry, field))
                .map(|(queried, known)| (normalise_name(queried) == normalise_name(known)).into()),
            DetailForm::Word(_) | DetailForm::Text => entry.get(detail.source_field).cloned(),
        };
        answer.extend(value.map(|value| (detail.source_field.to_owned(), value)));
    }
    answer.into()
}

/// Returns the text of the member with this name.
fn text_of<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m str> {
    members.get(name).and_then(Value::as_str)
}

/// Converts a name to lower case with single spaces.
fn normalise_name(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
