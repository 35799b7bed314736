//! Verifications with an immediate response (specification, "What the service does" 2), one file per kind.
//!
//! [`CHECKS`] is the table behind everything else: routes, requests, queries to sources and their responses, settings,
//! the OpenAPI document and the sandbox. Nothing is opened, kept or debited. A number unknown to its source is a valid
//! result.

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
    /// Its name in settings, upstreams, metrics and on the command line.
    pub name: &'static str,
    /// Its path in the API.
    pub path: &'static str,
    /// The last word of its `operationId`, and the first of its schemas.
    pub title: &'static str,
    /// The subject of its messages, such as `PAN`.
    pub noun: &'static str,
    /// The number with its article, as the object of "Verify".
    pub object: &'static str,
    /// True if the person's consent is required.
    pub needs_consent: bool,
    /// The queried numbers. All of them are echoed.
    pub numbers: &'static [NumberForm],
    /// Fields that may be compared with the record.
    pub compared: &'static [Compared],
    /// Fields that a source may return besides the status.
    pub details: &'static [Detail],
}

/// A field of a request that is compared with the record.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// Its name in the API.
    pub field: &'static str,
    /// Its name at the source.
    pub source_field: &'static str,
    /// Its type.
    pub kind: ComparedKind,
}

/// The type of a compared field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedKind {
    /// A name of 1 to 100 characters.
    Name,
    /// A date of birth, as `YYYY-MM-DD`.
    Birth,
}

/// A response field from the source; null if the source leaves it out.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// Its name in the API.
    pub field: &'static str,
    /// Its name at the source.
    pub source_field: &'static str,
    /// Its type.
    pub form: DetailForm,
    /// Its meaning, in a sentence.
    pub about: &'static str,
    /// An example value; empty for a match.
    pub example: &'static str,
}

/// The type of a response field.
#[derive(Clone, Copy, Debug)]
pub enum DetailForm {
    /// One of these words.
    Word(&'static [&'static str]),
    /// A text.
    Text,
    /// True if the compared field with this source name matches the record; null if it was not requested.
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

/// A query to a source.
#[derive(Clone, Debug)]
pub struct CheckQuery {
    /// Its kind.
    pub check: &'static Check,
    /// One number for each form of the kind.
    pub numbers: Vec<Number>,
    /// The person's consent, where the kind needs it.
    pub consent: Option<ConsentGiven>,
    /// The value to compare, for each comparable field.
    pub compared: Vec<Option<Text>>,
}

/// The response of a source.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// The kind of the query.
    pub check: &'static Check,
    /// Its numbers.
    pub numbers: Vec<Number>,
    /// Their status at the source.
    pub status: CheckStatus,
    /// A value for each of the kind's details.
    pub details: Vec<Option<DetailValue>>,
}

/// A value from a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum DetailValue {
    /// A word or a text.
    Text(Text),
    /// The result of a comparison.
    Match(bool),
}

impl Check {
    /// Returns the kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CHECKS.iter().find(|check| check.name == name)
    }
}

impl ComparedKind {
    /// Reads a value to compare.
    ///
    /// # Errors
    /// The accepted form.
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
    /// Returns the names of the requested fields.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        let compared = self
            .check
            .compared
            .iter()
            .zip(&self.compared)
            .filter(|(_, asked)| asked.is_some())
            .map(|(known, _)| known.field);
        self.check.numbers.iter().map(|form| form.field).chain(compared).map(str::to_owned).collect()
    }

    /// Returns true if the field with this source name is to be compared.
    #[must_use]
    pub fn compares(&self, source_field: &str) -> bool {
        self.check
            .compared
            .iter()
            .zip(&self.compared)
            .any(|(known, asked)| known.source_field == source_field && asked.is_some())
    }

    /// Returns a result with this status alone.
    #[must_use]
    pub fn with_status(&self, status: CheckStatus) -> CheckResult {
        CheckResult {
            check: self.check,
            numbers: self.numbers.clone(),
            status,
            details: vec![None; self.check.details.len()],
        }
    }
}

impl CheckResult {
    /// Returns a sentence about it.
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
        assert_eq!(
            [distinct(|check| check.name), distinct(|check| check.path), distinct(|check| check.title)],
            [CHECKS.len(); 3]
        );
        for check in CHECKS {
            for form in check.numbers {
                assert_eq!(form.parse(form.example).unwrap().as_str(), form.example, "{}", check.name);
            }
            for detail in check.details {
                let good = match detail.form {
                    DetailForm::Word(words) => words.contains(&detail.example),
                    DetailForm::Text => Text::not_blank(detail.example).is_ok(),
                    DetailForm::Match(source_field) => {
                        check.compared.iter().any(|compared| compared.source_field == source_field)
                    }
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
        let told = [CheckStatus::Valid, CheckStatus::Invalid, CheckStatus::NotFound]
            .map(|status| query.with_status(status).message());
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
