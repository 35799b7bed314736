//! Questions to sources, for every kind of synchronous verification. A question opens no flow, and is not repeated
//! either: the client decides whether to ask again.

use sakshi_domain::checks::{CheckQuery, CheckResult, CheckStatus, Detail, DetailForm, DetailValue};
use sakshi_domain::flow::text::Text;
use sakshi_domain::ids::ClientId;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::answer::Answer;
use super::{Upstream, UpstreamError, to_body};

/// The JSON of a question: the numbers to check, the consent, and the values that the source compares with its own.
struct Question<'a>(&'a CheckQuery);

impl Serialize for Question<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CheckQuery { check, numbers, consent, compared } = self.0;
        let mut question = serializer.serialize_map(None)?;
        for (number_form, number) in check.numbers.iter().zip(numbers) {
            question.serialize_entry(number_form.field, number)?;
        }
        if let Some(consent) = consent {
            question.serialize_entry("consent_text", consent.text())?;
        }
        for (comparison, value) in check.compared.iter().zip(compared) {
            if let Some(value) = value {
                question.serialize_entry(comparison.source_field, value)?;
            }
        }
        question.end()
    }
}

/// Asks a source about the numbers of a query, such as a PAN, on behalf of a client. "Not found" is a valid answer.
/// Comparisons that the client did not request are dropped.
///
/// # Errors
/// [`UpstreamError`] when the source did not answer, refused, or sent an unreadable answer.
pub async fn verify(source: &Upstream, client: &ClientId, query: &CheckQuery) -> Result<CheckResult, UpstreamError> {
    read_result(source.send(client, to_body(&Question(query))).await?, query)
}

/// Reads the result from an answer.
pub(super) fn read_result(mut answer: Answer, query: &CheckQuery) -> Result<CheckResult, UpstreamError> {
    let mut result = query.with_status(answer.take_text("status", str::parse)?);
    if result.status != CheckStatus::NotFound {
        let details = query.check.details.iter().map(|detail| read_detail(&mut answer, query, detail));
        result.details = details.collect::<Result<_, _>>()?;
    }
    Ok(result)
}

/// Reads a detail of the result, for example the category of a PAN, or if a name matches.
fn read_detail(answer: &mut Answer, query: &CheckQuery, detail: &Detail) -> Result<Option<DetailValue>, UpstreamError> {
    let parse_text = |text: &str| Text::not_blank(text).map(DetailValue::Text);
    match detail.form {
        DetailForm::Match(source_field) => Ok(answer
            .take_optional_flag(detail.source_field)?
            .filter(|_| query.compares(source_field))
            .map(DetailValue::Match)),
        DetailForm::Text => answer.take_optional_text(detail.source_field, parse_text),
        DetailForm::Word(words) => answer.take_optional_text(detail.source_field, |word| {
            if words.contains(&word) { parse_text(word) } else { Err("is not a known word".to_owned()) }
        }),
    }
}
