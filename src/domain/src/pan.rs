//! PAN verification, a request with an immediate answer (specification, "Other shown endpoints"): the
//! request, what a source may state about a PAN, and the answer's data. An unknown PAN is an answer, not
//! an error.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::flow::consent_given::ConsentGiven;
use crate::flow::dates::Day;
use crate::flow::statuses::string_enum;
use crate::flow::text::Text;

/// The text is no PAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pan must be five letters, four digits and a letter, such as ABCPE1234F")]
pub struct MalformedPan;

/// Five letters, four digits and a letter. Personal data, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pan(Box<str>);

impl Pan {
    /// Reads a PAN in either case.
    ///
    /// # Errors
    /// [`MalformedPan`].
    pub fn parse(text: &str) -> Result<Self, MalformedPan> {
        let fits = |(index, byte): (usize, u8)| if (5..9).contains(&index) { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() };
        if text.len() != 10 || !text.bytes().enumerate().all(fits) {
            return Err(MalformedPan);
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
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pan_is_five_letters_four_digits_and_a_letter() {
        assert_eq!(Pan::parse("abcpe1234f").unwrap().as_str(), "ABCPE1234F");
        for text in ["", "ABCPE1234", "ABCPE12345", "ABCPE1234FF", "1BCPE1234F", "ABCPE12F4F", "ABCPÉ234F", " ABCPE1234", "ABC PE1234"] {
            assert_eq!(Pan::parse(text), Err(MalformedPan), "{text}");
        }
        assert_eq!(Pan::parse("ABCPE1234F").unwrap().category(), Some(PanCategory::Individual));
        assert_eq!(Pan::parse("ABCDE1234F").unwrap().category(), None);
        assert!(!format!("{:?}", Pan::parse("ABCPE1234F").unwrap()).contains("1234"));
    }
}
