//! The question to a PAN source and its answer. It opens no flow, but is not repeated either: the client
//! decides whether to ask again.

use sakshi_domain::flow::dates::Day;
use sakshi_domain::flow::text::Text;
use sakshi_domain::pan::{Pan, PanCategory, PanQuery, PanStatus, SeedingStatus};
use sakshi_wire::pan::PanData;
use serde::{Deserialize, Serialize};

use super::strict::Word;
use super::{Upstream, UpstreamError, to_body};

#[derive(Serialize)]
struct Question<'a> {
    pan: &'a Pan,
    consent_text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date_of_birth: Option<Day>,
}

#[derive(Deserialize)]
struct Answer {
    status: Word<PanStatus>,
    category: Option<Word<PanCategory>>,
    name_match: Option<bool>,
    date_of_birth_match: Option<bool>,
    nationalid_seeding_status: Option<Word<SeedingStatus>>,
}

/// Asks a source about a PAN. An unknown PAN is an answer. Comparisons that were not asked for are dropped.
///
/// # Errors
/// Why there is no answer.
pub async fn verify(source: &Upstream, query: &PanQuery) -> Result<PanData, UpstreamError> {
    let question =
        Question { pan: &query.pan, consent_text: query.consent.text(), name: query.name.as_ref(), date_of_birth: query.date_of_birth };
    let answer: Answer = source.send(to_body(&question, 0)).await?;
    let (pan, Word(status)) = (query.pan.clone(), answer.status);
    if status == PanStatus::NotFound {
        return Ok(PanData::not_found(pan));
    }
    Ok(PanData {
        pan,
        status,
        category: answer.category.map(|Word(category)| category),
        name_as_per_pan_match: query.name.as_ref().and(answer.name_match),
        date_of_birth_match: query.date_of_birth.and(answer.date_of_birth_match),
        nationalid_seeding_status: answer.nationalid_seeding_status.map(|Word(seeding)| seeding),
    })
}
