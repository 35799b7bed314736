//! The question to a source and its answer, for every kind of verification that is answered at once. It opens no flow,
//! but is not repeated either: the client decides whether to ask again.

use sakshi_domain::checks::{CheckQuery, CheckResult, CheckStatus, Detail, DetailForm, DetailValue};
use sakshi_domain::flow::text::Text;
use sakshi_domain::ids::ClientId;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::answer::Answer;
use super::{Upstream, UpstreamError, to_body};

struct Question<'a>(&'a CheckQuery);

impl Serialize for Question<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CheckQuery { check, numbers, consent, compared } = self.0;
        let mut question = serializer.serialize_map(None)?;
        for (form, number) in check.numbers.iter().zip(numbers) {
            question.serialize_entry(form.field, number)?;
        }
        if let Some(consent) = consent {
            question.serialize_entry("consent_text", consent.text())?;
        }
        for (known, asked) in check.compared.iter().zip(compared) {
            if let Some(asked) = asked {
                question.serialize_entry(known.source_field, asked)?;
            }
        }
        question.end()
    }
}

/// Asks a source for a client. "Not found" is an answer. Comparisons that were not requested are dropped.
///
/// # Errors
/// The reason why there is no answer.
pub async fn verify(source: &Upstream, client: &ClientId, query: &CheckQuery) -> Result<CheckResult, UpstreamError> {
    result(source.send(client, to_body(&Question(query), 0)).await?, query)
}

/// Reads the result from an answer.
pub(super) fn result(mut answer: Answer, query: &CheckQuery) -> Result<CheckResult, UpstreamError> {
    let mut result = query.with_status(answer.text("status", str::parse)?);
    if result.status != CheckStatus::NotFound {
        let details = query.check.details.iter().map(|known| detail(&mut answer, query, known));
        result.details = details.collect::<Result<_, _>>()?;
    }
    Ok(result)
}

fn detail(answer: &mut Answer, query: &CheckQuery, known: &Detail) -> Result<Option<DetailValue>, UpstreamError> {
    let text = |text: &str| Text::not_blank(text).map(DetailValue::Text);
    match known.form {
        DetailForm::Match(source_field) => Ok(answer
            .optional_flag(known.source_field)?
            .filter(|_| query.compares(source_field))
            .map(DetailValue::Match)),
        DetailForm::Text => answer.optional_text(known.source_field, text),
        DetailForm::Word(words) => answer.optional_text(known.source_field, |word| {
            if words.contains(&word) { text(word) } else { Err("is another word".to_owned()) }
        }),
    }
}
