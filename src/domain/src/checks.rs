//! Verifications that are answered at once (specification, "What the service does" 2), one file for each kind.
//!
//! [`CHECKS`] is the table that everything else follows: routes, requests, the questions to sources and their answers, settings, the
//! API's document and the sandbox. Nothing is opened, kept or debited, and a number that its source does not know is an answer.

mod bank_account;
mod gst;
mod ifsc;
mod number;
mod pan;
mod voter_id;

use std::borrow::Cow;

use serde::Serialize;

use crate::flow::consent_given::ConsentGiven;
use crate::flow::dates::Day;
use crate::flow::text::Text;
use crate::limits::LABEL_CHARS_MAX;
use crate::string_enum::string_enum;

pub use self::number::{Number, NumberForm};

/// Every kind.
pub const CHECKS: &[Check] = &[pan::PAN, gst::GST, bank_account::BANK_ACCOUNT, ifsc::IFSC, voter_id::VOTER_ID];

/// A kind of verification.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// What settings, upstreams, metrics and the command line call it.
    pub name: &'static str,
    /// Its path in the API.
    pub path: &'static str,
    /// The last word of its `operationId`, and the first of its schemas.
    pub title: &'static str,
    /// What sentences call what is verified.
    pub noun: &'static str,
    /// The number with its article, as the object of "Verify".
    pub object: &'static str,
    /// Whether the person must have agreed.
    pub needs_consent: bool,
    /// The numbers that are asked about. All of them are echoed.
    pub numbers: &'static [NumberForm],
    /// What may be compared with the record.
    pub compared: &'static [Compared],
    /// What a source may say besides the status.
    pub details: &'static [Detail],
}

/// A field of a request that is compared with the record.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// What the client calls it.
    pub field: &'static str,
    /// What the source calls it.
    pub source_field: &'static str,
    /// What it holds.
    pub kind: ComparedKind,
}

/// What a compared field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedKind {
    /// A name of 1 to 100 characters.
    Name,
    /// A date of birth, as `YYYY-MM-DD`.
    Birth,
}

/// A field of an answer that the source fills; null is what it did not say.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// What the client calls it.
    pub field: &'static str,
    /// What the source calls it.
    pub source_field: &'static str,
    /// What it may hold.
    pub form: DetailForm,
    /// What it means, in a sentence.
    pub about: &'static str,
    /// What it may look like; empty for a match.
    pub example: &'static str,
}

/// What a field of an answer may hold.
#[derive(Clone, Copy, Debug)]
pub enum DetailForm {
    /// One of these words.
    Word(&'static [&'static str]),
    /// A text.
    Text,
    /// Whether the compared field that the source knows by this name is the one on record; nothing if it was not asked.
    Match(&'static str),
}

string_enum!(
    /// The status of a number at its source.
    CheckStatus {
        /// In use.
        Valid = "valid",
        /// Known and not in use.
        Invalid = "invalid",
        /// Not known.
        NotFound = "not_found",
    }
);

/// A question to a source.
#[derive(Clone, Debug)]
pub struct CheckQuery {
    /// Its kind.
    pub check: &'static Check,
    /// One number for each form of the kind.
    pub numbers: Vec<Number>,
    /// The person's consent, where the kind needs it.
    pub consent: Option<ConsentGiven>,
    /// For each field that may be compared, what it is compared with.
    pub compared: Vec<Option<Text>>,
}

/// What a source says.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// The kind of the question.
    pub check: &'static Check,
    /// Its numbers.
    pub numbers: Vec<Number>,
    /// What they are at the source.
    pub status: CheckStatus,
    /// A value for each field that the kind's sources fill.
    pub details: Vec<Option<DetailValue>>,
}

/// A value that a source gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum DetailValue {
    /// A word or a text.
    Text(Text),
    /// Whether something is the same.
    Match(bool),
}

impl Check {
    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CHECKS.iter().find(|check| check.name == name)
    }
}

impl ComparedKind {
    /// Reads what is to be compared.
    ///
    /// # Errors
    /// What would be accepted.
    pub fn parse(self, text: &str) -> Result<Text, Cow<'static, str>> {
        let bounded = || format!("must be 1 to {LABEL_CHARS_MAX} characters");
        match self {
            Self::Name if text.chars().count() > LABEL_CHARS_MAX => Err(bounded().into()),
            Self::Name => Text::not_blank(text).map_err(|_| bounded().into()),
            Self::Birth => Ok(Text::parse(&Day::parse(text)?.to_string())?),
        }
    }
}

impl CheckQuery {
    /// The fields that the client has asked about.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        let compared = self.check.compared.iter().zip(&self.compared).filter(|(_, asked)| asked.is_some()).map(|(known, _)| known.field);
        self.check.numbers.iter().map(|form| form.field).chain(compared).map(str::to_owned).collect()
    }

    /// What was asked to be compared under this name of the source.
    #[must_use]
    pub fn compares(&self, source_field: &str) -> bool {
        self.check.compared.iter().zip(&self.compared).any(|(known, asked)| known.source_field == source_field && asked.is_some())
    }

    /// The result when its source knows no more than this.
    #[must_use]
    pub fn with_status(&self, status: CheckStatus) -> CheckResult {
        CheckResult { check: self.check, numbers: self.numbers.clone(), status, details: vec![None; self.check.details.len()] }
    }
}

impl CheckResult {
    /// A sentence about it.
    #[must_use]
    pub fn message(&self) -> String {
        let what = match self.status {
            CheckStatus::Valid => "verified",
            CheckStatus::Invalid => "is not in use",
            CheckStatus::NotFound => "not found",
        };
        format!("{} {what}", self.check.noun)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_can_be_told_from_the_others_and_gives_examples_of_itself() {
        let distinct = |part: fn(&Check) -> &'static str| CHECKS.iter().map(part).collect::<BTreeSet<_>>().len();
        assert_eq!([distinct(|check| check.name), distinct(|check| check.path), distinct(|check| check.title)], [CHECKS.len(); 3]);
        for check in CHECKS {
            for form in check.numbers {
                assert_eq!(form.parse(form.example).unwrap().as_str(), form.example, "{}", check.name);
            }
            for detail in check.details {
                let good = match detail.form {
                    DetailForm::Word(words) => words.contains(&detail.example),
                    DetailForm::Text => Text::not_blank(detail.example).is_ok(),
                    DetailForm::Match(source_field) => check.compared.iter().any(|compared| compared.source_field == source_field),
                };
                assert!(good, "{} {}", check.name, detail.field);
            }
        }
    }

    #[test]
    fn what_is_compared_is_a_name_or_a_day() {
        for (kind, text, good) in [
            (ComparedKind::Name, "Asha Rao", true),
            (ComparedKind::Name, " ", false),
            (ComparedKind::Name, &"x".repeat(100), true),
            (ComparedKind::Name, &"x".repeat(101), false),
            (ComparedKind::Birth, "1990-02-14", true),
            (ComparedKind::Birth, "1990-02-30", false),
        ] {
            assert_eq!(kind.parse(text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_query_compares_what_was_asked_to_be_compared_and_nothing_else() {
        let check = CHECKS.iter().find(|check| check.compared.len() > 1).unwrap();
        let (asked, other) = (check.compared[0].source_field, check.compared[1].source_field);
        let mut compared = vec![None; check.compared.len()];
        compared[0] = Some(Text::parse("Asha Rao").unwrap());
        let query = CheckQuery { check, numbers: vec![], consent: None, compared };
        assert_eq!([query.compares(asked), query.compares(other), query.compares("unknown")], [true, false, false]);
    }

    #[test]
    fn a_result_says_what_was_checked_and_how_that_ended() {
        let check = CHECKS.iter().find(|check| check.noun == "PAN").unwrap();
        let query = CheckQuery { check, numbers: vec![], consent: None, compared: vec![] };
        let told = [CheckStatus::Valid, CheckStatus::Invalid, CheckStatus::NotFound].map(|status| query.with_status(status).message());
        assert_eq!(told, ["PAN verified", "PAN is not in use", "PAN not found"]);
    }

    #[test]
    fn forms_of_numbers_are_told_apart_by_field_and_refusal() {
        let form = &CHECKS[0].numbers[0];
        assert_eq!(form, &NumberForm { example: "", ..*form });
        assert_ne!(form, &NumberForm { field: "other", ..*form });
        assert_ne!(form, &NumberForm { refusal: "other", ..*form });
    }
}
