//! Checks: verifications with an immediate response (specification, "What the service does" 2), one file per kind.
//!
//! [`CHECKS`] is the table behind routes, requests, queries to sources and their responses, settings, the OpenAPI
//! document and the sandbox. A check opens no transaction, stores no result and costs no credit. A number unknown to
//! its source is a valid result.

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

/// Every kind of check.
pub const CHECKS: &[Check] = &[pan::PAN, gst::GST, bank_account::BANK_ACCOUNT, ifsc::IFSC, voter_id::VOTER_ID];

/// A kind of check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The name in settings, upstreams, metrics and on the command line.
    pub name: &'static str,
    /// The path in the API.
    pub path: &'static str,
    /// The last word of the `operationId`, and the first of the schema names.
    pub title: &'static str,
    /// The subject of result messages, such as `PAN` in `PAN verified`.
    pub subject: &'static str,
    /// The number with an article, as the object of "Verify".
    pub object: &'static str,
    /// True if the person's consent is required.
    pub needs_consent: bool,
    /// The queried numbers. The response repeats all of them.
    pub numbers: &'static [NumberForm],
    /// Fields that may be compared with the record.
    pub compared: &'static [Compared],
    /// Fields that a source may return besides the status.
    pub details: &'static [Detail],
}

/// A field of a request whose value is compared with the source's record.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// The name in the API.
    pub field: &'static str,
    /// The name at the source.
    pub source_field: &'static str,
    /// The type of the value.
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
    /// The name in the API.
    pub field: &'static str,
    /// The name at the source.
    pub source_field: &'static str,
    /// The type of the value.
    pub form: DetailForm,
    /// The description in the OpenAPI document.
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
        /// The number is in use.
        Valid = "valid",
        /// The number is known, but not in use.
        Invalid = "invalid",
        /// The source does not know the number.
        NotFound = "not_found",
    }
);

/// A query to a source.
#[derive(Clone, Debug)]
pub struct CheckQuery {
    /// The kind of check.
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
    /// The kind of check.
    pub check: &'static Check,
    /// The queried numbers.
    pub numbers: Vec<Number>,
    /// The status at the source.
    pub status: CheckStatus,
    /// One value per detail of the kind.
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
    /// A message that states the accepted form.
    pub fn parse(self, text: &str) -> Result<Text, Cow<'static, str>> {
        let refusal = || format!("must be 1 to {LABEL_CHARS_MAX} characters");
        match self {
            Self::Name if text.chars().count() > LABEL_CHARS_MAX => Err(refusal().into()),
            Self::Name => Text::not_blank(text).map_err(|_| refusal().into()),
            Self::Birth => Ok(Text::parse(&Day::parse(text)?.to_string())?),
        }
    }
}

impl CheckQuery {
    /// Returns the names of the fields that the request has.
    #[must_use]
    pub fn compared_fields(&self) -> Vec<String> {
        let compared = self
            .check
            .compared
            .iter()
            .zip(&self.compared)
            .filter(|(_, value)| value.is_some())
            .map(|(compared, _)| compared.field);
        self.check.numbers.iter().map(|form| form.field).chain(compared).map(str::to_owned).collect()
    }

    /// Returns true if the field with this source name is to be compared.
    #[must_use]
    pub fn compares(&self, source_field: &str) -> bool {
        self.check
            .compared
            .iter()
            .zip(&self.compared)
            .any(|(compared, value)| compared.source_field == source_field && value.is_some())
    }

    /// Returns a result with this status and without details.
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
    /// Returns the result as a message for people, such as `PAN verified`.
    #[must_use]
    pub fn message(&self) -> String {
        let predicate = match self.status {
            CheckStatus::Valid => "verified",
            CheckStatus::Invalid => "is not in use",
            CheckStatus::NotFound => "not found",
        };
        format!("{} {predicate}", self.check.subject)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_distinct_names_and_valid_examples() {
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
                let is_valid = match detail.form {
                    DetailForm::Word(words) => words.contains(&detail.example),
                    DetailForm::Text => Text::not_blank(detail.example).is_ok(),
                    DetailForm::Match(source_field) => {
                        check.compared.iter().any(|compared| compared.source_field == source_field)
                    }
                };
                assert!(is_valid, "{} {}", check.name, detail.field);
            }
        }
    }

    #[test]
    fn a_compared_value_is_a_name_or_a_date() {
        for (kind, text, is_valid) in [
            (ComparedKind::Name, "Asha Rao", true),
            (ComparedKind::Name, " ", false),
            (ComparedKind::Name, &"x".repeat(100), true),
            (ComparedKind::Name, &"x".repeat(101), false),
            (ComparedKind::Birth, "1990-02-14", true),
            (ComparedKind::Birth, "1990-02-30", false),
        ] {
            assert_eq!(kind.parse(text).is_ok(), is_valid, "{text}");
        }
    }

    #[test]
    fn a_query_compares_only_the_requested_fields() {
        let check = CHECKS.iter().find(|check| check.compared.len() > 1).unwrap();
        let (requested_field, other_field) = (check.compared[0].source_field, check.compared[1].source_field);
        let mut compared = vec![None; check.compared.len()];
        compared[0] = Some(Text::parse("Asha Rao").unwrap());
        let query = CheckQuery { check, numbers: vec![], consent: None, compared };
        assert_eq!(
            [query.compares(requested_field), query.compares(other_field), query.compares("unknown")],
            [true, false, false]
        );
    }

    #[test]
    fn the_message_of_a_result_names_the_number_and_its_status() {
        let check = CHECKS.iter().find(|check| check.subject == "PAN").unwrap();
        let query = CheckQuery { check, numbers: vec![], consent: None, compared: vec![] };
        let messages = [CheckStatus::Valid, CheckStatus::Invalid, CheckStatus::NotFound]
            .map(|status| query.with_status(status).message());
        assert_eq!(messages, ["PAN verified", "PAN is not in use", "PAN not found"]);
    }

    #[test]
    fn forms_of_numbers_differ_by_field_and_refusal() {
        let form = &CHECKS[0].numbers[0];
        assert_eq!(form, &NumberForm { example: "", ..*form });
        assert_ne!(form, &NumberForm { field: "other", ..*form });
        assert_ne!(form, &NumberForm { refusal: "other", ..*form });
    }
}
