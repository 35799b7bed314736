//! PAN verification, a request with an immediate answer (specification, "Other shown endpoints"): the
//! request, what a source may state about a PAN, and the answer's data. An unknown PAN is an answer, not
//! an error.

use std::fmt;

use serde::Serialize;

use crate::flow::consent_given::ConsentGiven;
use crate::flow::dates::Day;
use crate::flow::statuses::string_enum;
use crate::flow::text::Text;
use crate::invalid::Invalid;
use crate::limits::LABEL_CHARS_MAX;

/// The request as it arrives.
#[derive(Default)]
pub struct PanDraft {
    /// The number.
    pub pan: Option<String>,
    /// `Y`.
    pub consent: Option<String>,
    /// The declaration shown to the person.
    pub consent_text: Option<String>,
    /// A name to compare with the one on record. Not in the specification.
    pub name_as_per_pan: Option<String>,
    /// A date of birth to compare with the one on record, `YYYY-MM-DD`. Not in the specification.
    pub date_of_birth: Option<String>,
}

/// Why a PAN is not verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PanRefusal {
    /// The request is invalid (400). Takes precedence over a malformed PAN.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The request is valid, but its number is not a PAN (422).
    #[error("pan must be five letters, four digits and a letter, such as ABCPE1234F")]
    Malformed,
}

/// Five letters, four digits and a letter. Personal data, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Pan(Box<str>);

impl Pan {
    /// Reads a PAN in either case.
    ///
    /// # Errors
    /// [`PanRefusal::Malformed`].
    pub fn parse(text: &str) -> Result<Self, PanRefusal> {
        let fits = |(index, byte): (usize, u8)| if (5..9).contains(&index) { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() };
        if text.len() != 10 || !text.bytes().enumerate().all(fits) {
            return Err(PanRefusal::Malformed);
        }
        Ok(Self(text.to_ascii_uppercase().into()))
    }

    /// The number in capitals.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The kind of holder that the fourth letter stands for, if it is a known letter.
    #[must_use]
    pub fn category(&self) -> Option<PanCategory> {
        Some(match self.0.as_bytes().get(3)? {
            b'P' => PanCategory::Individual,
            b'C' => PanCategory::Company,
            b'H' => PanCategory::HinduUndividedFamily,
            b'F' => PanCategory::Firm,
            b'A' => PanCategory::AssociationOfPersons,
            b'B' => PanCategory::BodyOfIndividuals,
            b'T' => PanCategory::Trust,
            b'G' => PanCategory::Government,
            b'L' => PanCategory::LocalAuthority,
            b'J' => PanCategory::ArtificialJuridicalPerson,
            _ => return None,
        })
    }
}

impl fmt::Debug for Pan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pan(redacted)")
    }
}

/// A PAN to be verified.
#[derive(Clone, Debug, PartialEq)]
pub struct PanQuery {
    /// The number.
    pub pan: Pan,
    /// The person's consent.
    pub consent: ConsentGiven,
    /// A name to compare.
    pub name: Option<Text>,
    /// A date of birth to compare.
    pub date_of_birth: Option<Day>,
}

impl PanDraft {
    /// Checks the request.
    ///
    /// # Errors
    /// [`PanRefusal`], which tells 400 from 422.
    pub fn check(self) -> Result<PanQuery, PanRefusal> {
        let mut invalid = Invalid::none();
        if self.pan.is_none() {
            invalid.add("pan", "is required");
        }
        let consent = ConsentGiven::parse(self.consent.as_deref(), self.consent_text.as_deref());
        let consent = consent.map_err(|problems| invalid.extend(problems)).ok();
        let name = self.name_as_per_pan.and_then(|name| {
            let short = name.chars().count() <= LABEL_CHARS_MAX;
            let name = Text::not_blank(&name).ok().filter(|_| short).ok_or("must be 1 to 100 characters");
            invalid.check("name_as_per_pan", name)
        });
        let date_of_birth = self.date_of_birth.and_then(|day| invalid.check("date_of_birth", Day::parse(&day)));
        invalid.or_ok()?;
        let (Some(pan), Some(consent)) = (self.pan, consent) else { return Err(PanRefusal::Malformed) };
        Ok(PanQuery { pan: Pan::parse(&pan)?, consent, name, date_of_birth })
    }
}

string_enum!(
    /// The status of a PAN at its source.
    PanStatus {
        /// In use.
        Valid = "valid",
        /// Known and not in use.
        Invalid = "invalid",
        /// Not known.
        NotFound = "not_found",
    }
);

string_enum!(
    /// Who holds a PAN.
    PanCategory {
        /// A person.
        Individual = "individual",
        /// A company.
        Company = "company",
        /// A Hindu undivided family.
        HinduUndividedFamily = "hindu_undivided_family",
        /// A firm.
        Firm = "firm",
        /// An association of persons.
        AssociationOfPersons = "association_of_persons",
        /// A body of individuals.
        BodyOfIndividuals = "body_of_individuals",
        /// A trust.
        Trust = "trust",
        /// An office of the government.
        Government = "government",
        /// A local authority.
        LocalAuthority = "local_authority",
        /// Another juridical person.
        ArtificialJuridicalPerson = "artificial_juridical_person",
    }
);

string_enum!(
    /// Whether a PAN is linked to a national ID.
    SeedingStatus {
        /// Linked.
        Linked = "y",
        /// Not linked.
        NotLinked = "n",
        /// Not required to be linked.
        NotApplicable = "na",
    }
);

/// What a source states about a PAN, and `data` of the answer. A field is null when the source did not
/// state it or was not asked to compare it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PanResult {
    /// The number.
    pub pan: Pan,
    /// Its status.
    pub status: PanStatus,
    /// Who holds it.
    pub category: Option<PanCategory>,
    /// Whether the name matches the one on record.
    pub name_as_per_pan_match: Option<bool>,
    /// Whether the date of birth matches the one on record.
    pub date_of_birth_match: Option<bool>,
    /// Whether it is linked to a national ID.
    pub nationalid_seeding_status: Option<SeedingStatus>,
}

impl PanResult {
    /// The result for a PAN that the source does not know.
    #[must_use]
    pub const fn not_found(pan: Pan) -> Self {
        let status = PanStatus::NotFound;
        Self { pan, status, category: None, name_as_per_pan_match: None, date_of_birth_match: None, nationalid_seeding_status: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(
        pan: Option<&str>,
        consent: Option<&str>,
        consent_text: Option<&str>,
        date_of_birth: Option<&str>,
    ) -> Result<PanQuery, PanRefusal> {
        let [pan, consent, consent_text, date_of_birth] = [pan, consent, consent_text, date_of_birth].map(|text| text.map(str::to_owned));
        PanDraft { pan, consent, consent_text, name_as_per_pan: None, date_of_birth }.check()
    }

    #[test]
    fn a_pan_is_five_letters_four_digits_and_a_letter() {
        assert_eq!(Pan::parse("abcpe1234f").unwrap().as_str(), "ABCPE1234F");
        for text in ["", "ABCPE1234", "ABCPE12345", "ABCPE1234FF", "1BCPE1234F", "ABCPE12F4F", "ABCPÉ234F", " ABCPE1234", "ABC PE1234"] {
            assert_eq!(Pan::parse(text), Err(PanRefusal::Malformed), "{text}");
        }
        assert_eq!(Pan::parse("ABCPE1234F").unwrap().category(), Some(PanCategory::Individual));
        assert_eq!(Pan::parse("ABCDE1234F").unwrap().category(), None);
        assert!(!format!("{:?}", Pan::parse("ABCPE1234F").unwrap()).contains("1234"));
    }

    #[test]
    fn a_missing_consent_is_another_error_than_a_malformed_pan_and_comes_before_it() {
        let (pan, nonsense, yes, text) = (Some("ABCPE1234F"), Some("nonsense"), Some("Y"), Some("I agree."));
        assert!(draft(pan, yes, text, Some("1990-01-31")).is_ok());
        assert_eq!(draft(nonsense, yes, text, None), Err(PanRefusal::Malformed));
        assert_eq!(draft(Some(""), yes, text, None), Err(PanRefusal::Malformed));
        for refused in [
            draft(nonsense, Some("N"), text, None),
            draft(pan, yes, Some(""), None),
            draft(pan, None, None, None),
            draft(None, yes, text, None),
            draft(nonsense, yes, text, Some("31-01-1990")),
        ] {
            assert!(matches!(refused, Err(PanRefusal::Invalid(_))), "{refused:?}");
        }
    }

    #[test]
    fn an_unknown_pan_is_an_answer_with_every_member() {
        let answer = serde_json::to_value(PanResult::not_found(Pan::parse("ABCPE1234F").unwrap())).unwrap();
        let expected = serde_json::json!({"pan": "ABCPE1234F", "status": "not_found", "category": null, "name_as_per_pan_match": null,
            "date_of_birth_match": null, "nationalid_seeding_status": null});
        assert_eq!(answer, expected);
    }
}
