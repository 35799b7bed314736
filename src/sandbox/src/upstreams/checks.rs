//! Sources of the verifications that are answered at once: one for every kind of the table. They answer from a file of
//! invented numbers; `assets/checks.toml` documents its format.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use sakshi_domain::checks::{CHECKS, Check, CheckStatus, DetailForm};
use sakshi_domain::invalid::Invalid;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::error::FlowError;
use super::order::{declaration, json as read};

const FILE: &str = include_str!("../../assets/checks.toml");
/// Time for which a silent source keeps the connection open: longer than any caller waits.
const SILENCE: Duration = Duration::from_secs(300);

/// Numbers that the sources know, by kind.
pub(super) struct KnownNumbers(BTreeMap<String, Vec<Map<String, Value>>>);

impl KnownNumbers {
    /// Reads the numbers of the file.
    pub(super) fn built_in() -> Result<Self, toml::de::Error> {
        toml::from_str(FILE).map(Self)
    }

    /// Returns the whole file, for testers.
    pub(super) const fn all(&self) -> &BTreeMap<String, Vec<Map<String, Value>>> {
        &self.0
    }

    /// Answers a question to the source of this name; for some numbers, never in time.
    pub(super) async fn answer(&self, source: &str, question: &[u8]) -> Result<Value, FlowError> {
        let check = CHECKS.iter().find(|check| check.name == source).ok_or(FlowError::NoSuchFlow)?;
        let question: Map<String, Value> = read(question)?;
        let numbers = checked(check, &question)?;
        let is_asked =
            |known: &&Map<String, Value>| numbers.iter().all(|(field, number)| text(known, field) == Some(number));
        let Some(known) = self.0.get(source).and_then(|all| all.iter().find(is_asked)) else {
            return Ok(json!({ "status": CheckStatus::NotFound }));
        };
        match text(known, "behaviour") {
            Some("time_out") => {
                let _: Result<(), _> = timeout(SILENCE, pending()).await;
                Err(FlowError::Source)
            }
            Some(_) => Err(FlowError::Source),
            None => Ok(answer(check, known, &question)),
        }
    }
}

/// Returns the numbers of a question by their fields.
fn checked(check: &Check, question: &Map<String, Value>) -> Result<Vec<(&'static str, String)>, Invalid> {
    let mut invalid = Invalid::none();
    let mut numbers = Vec::new();
    for form in check.numbers {
        let number = text(question, form.field).and_then(|number| form.parse(number).ok());
        numbers.extend(
            invalid.check(form.field, number.ok_or(form.rule)).map(|number| (form.field, number.as_str().to_owned())),
        );
    }
    if check.needs_consent {
        declaration(&mut invalid, text(question, "consent_text").map(str::to_owned));
    }
    for known in check.compared {
        if let Some(asked) = question.get(known.source_field) {
            invalid.check(
                known.source_field,
                known.kind.parse(asked.as_str().unwrap_or_default()).map_err(|sentence| sentence.into_owned()),
            );
        }
    }
    invalid.or_ok().map(|()| numbers)
}

/// Builds the answer about a known number. Names are compared whatever their case and gaps.
fn answer(check: &Check, known: &Map<String, Value>, question: &Map<String, Value>) -> Value {
    let mut answer = Map::new();
    answer.extend(known.get("status").map(|status| ("status".to_owned(), status.clone())));
    for field in check.details {
        let detail = match field.form {
            DetailForm::Match(name) => text(question, name)
                .zip(text(known, name))
                .map(|(asked, known)| (comparable(asked) == comparable(known)).into()),
            DetailForm::Word(_) | DetailForm::Text => known.get(field.source_field).cloned(),
        };
        answer.extend(detail.map(|detail| (field.source_field.to_owned(), detail)));
    }
    answer.into()
}

fn text<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m str> {
    members.get(name).and_then(Value::as_str)
}

/// Returns a name in lower case with single spaces.
fn comparable(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
