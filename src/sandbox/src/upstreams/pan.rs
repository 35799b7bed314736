//! The PAN source. It answers from a file of invented PANs; `assets/pan.toml` documents its format.

use std::collections::HashMap;
use std::future::pending;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use sakshi_domain::flow::dates::Day;
use sakshi_domain::flow::text::Text;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::pan::{Pan, PanCategory, PanStatus, SeedingStatus};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::time::timeout;

use super::order::{checked, declaration};

/// The default file.
const BUILT_IN: &str = include_str!("../../assets/pan.toml");
/// How long a source that does not answer keeps the connection open, longer than any caller waits.
const SILENCE: Duration = Duration::from_secs(300);

/// Why a file of PANs cannot be used.
#[derive(Debug, Error)]
pub enum PanFileError {
    /// It cannot be read.
    #[error("the file of PANs cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is not TOML of this format.
    #[error("the file of PANs cannot be understood: {0}")]
    Malformed(#[from] toml::de::Error),
    /// One of its entries is invalid.
    #[error("entry {entry} of the file of PANs: {problem}")]
    Entry {
        /// Its position, from 1.
        entry: usize,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PanFile {
    #[serde(default)]
    pan: Vec<EntryDraft>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryDraft {
    number: String,
    #[serde(default)]
    behaviour: Behaviour,
    status: Option<PanStatus>,
    category: Option<PanCategory>,
    name: Option<String>,
    date_of_birth: Option<String>,
    nationalid_seeding_status: Option<SeedingStatus>,
}

/// What the source does when asked about a PAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Behaviour {
    #[default]
    Answer,
    TimeOut,
    Fail,
}

enum Entry {
    Record(Record),
    Silent,
    Failing,
}

struct Record {
    status: PanStatus,
    category: Option<PanCategory>,
    name: Option<String>,
    date_of_birth: Option<Day>,
    seeding: Option<SeedingStatus>,
}

/// The known PANs.
pub(super) struct PanRecords(HashMap<Pan, Entry>);

/// What the source answers.
#[derive(Debug)]
pub(super) enum PanAnswer {
    /// What it states.
    Known(PanStatement),
    /// An error.
    Failure,
}

/// What a source states about a PAN.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct PanStatement {
    status: PanStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<PanCategory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_match: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date_of_birth_match: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nationalid_seeding_status: Option<SeedingStatus>,
}

/// A question as received.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PanOrder {
    pan: Option<String>,
    consent_text: Option<String>,
    name: Option<String>,
    date_of_birth: Option<String>,
}

/// A valid question.
pub(super) struct PanQuestion {
    pan: Pan,
    name: Option<Text>,
    date_of_birth: Option<Day>,
}

impl PanOrder {
    /// Checks the question.
    pub(super) fn check(self) -> Result<PanQuestion, Invalid> {
        let mut invalid = Invalid::none();
        let pan = self.pan.ok_or_else(|| "is required".to_owned());
        let pan = invalid.check("pan", pan.and_then(|pan| Pan::parse(&pan).map_err(|problem| problem.to_string())));
        declaration(&mut invalid, self.consent_text);
        let name = self.name.and_then(|name| invalid.check("name", Text::not_blank(&name)));
        let date_of_birth = self.date_of_birth.and_then(|day| invalid.check("date_of_birth", Day::parse(&day)));
        checked(invalid, pan.map(|pan| PanQuestion { pan, name, date_of_birth }))
    }
}

impl PanRecords {
    /// The records of the default file.
    pub(super) fn built_in() -> Result<Self, PanFileError> {
        Self::parse(BUILT_IN)
    }

    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, PanFileError> {
        Self::parse(&fs::read_to_string(path)?)
    }

    fn parse(toml: &str) -> Result<Self, PanFileError> {
        let file: PanFile = toml::from_str(toml)?;
        let mut records = HashMap::new();
        for (index, draft) in file.pan.into_iter().enumerate() {
            let wrong = |problem: String| PanFileError::Entry { entry: index + 1, problem };
            let (pan, entry) = draft.check().map_err(wrong)?;
            if records.insert(pan, entry).is_some() {
                return Err(PanFileError::Entry { entry: index + 1, problem: "repeats a number".to_owned() });
            }
        }
        Ok(Self(records))
    }

    /// Answers a question; for some PANs, never in time.
    pub(super) async fn answer(&self, question: PanQuestion) -> PanAnswer {
        match self.0.get(&question.pan) {
            None => PanAnswer::Known(PanStatement::bare(PanStatus::NotFound)),
            Some(Entry::Record(record)) => PanAnswer::Known(record.compared_with(&question)),
            Some(Entry::Failing) => PanAnswer::Failure,
            Some(Entry::Silent) => {
                let _: Result<(), _> = timeout(SILENCE, pending()).await;
                PanAnswer::Failure
            }
        }
    }
}

impl EntryDraft {
    fn check(self) -> Result<(Pan, Entry), String> {
        let pan = Pan::parse(&self.number).map_err(|problem| problem.to_string())?;
        let record = || -> Result<Record, String> {
            Ok(Record {
                status: self.status.ok_or("status is required")?,
                category: self.category.or_else(|| pan.category()),
                name: self.name.as_deref().map(comparable),
                date_of_birth: self.date_of_birth.as_deref().map(Day::parse).transpose()?,
                seeding: self.nationalid_seeding_status,
            })
        };
        let entry = match self.behaviour {
            Behaviour::Answer => Entry::Record(record()?),
            Behaviour::TimeOut => Entry::Silent,
            Behaviour::Fail => Entry::Failing,
        };
        Ok((pan, entry))
    }
}

impl Record {
    fn compared_with(&self, question: &PanQuestion) -> PanStatement {
        let name_match = question.name.as_ref().zip(self.name.as_ref()).map(|(asked, known)| comparable(asked.as_str()) == *known);
        let date_of_birth_match = question.date_of_birth.zip(self.date_of_birth).map(|(asked, known)| asked == known);
        let (category, nationalid_seeding_status) = (self.category, self.seeding);
        PanStatement { status: self.status, category, name_match, date_of_birth_match, nationalid_seeding_status }
    }
}

impl PanStatement {
    const fn bare(status: PanStatus) -> Self {
        Self { status, category: None, name_match: None, date_of_birth_match: None, nationalid_seeding_status: None }
    }
}

/// Normalises a name: lower case and single spaces.
fn comparable(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
