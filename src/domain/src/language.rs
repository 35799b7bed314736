//! Languages: the fourteen names that the API accepts, and the identity authority's codes 1 to 23
//! (specification, "Languages").

use serde::{Deserialize, Serialize};

/// A language of the identity app, by the authority's code 1 to 23.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Language(u8);

/// A language of the table.
struct Row {
    name: &'static str,
    tag: &'static str,
    accepted_by_name: bool,
}

/// Returns the row of a language that requests may name.
const fn named(name: &'static str, tag: &'static str) -> Row {
    Row { name, tag, accepted_by_name: true }
}

/// Returns the row of a language that requests give only by its code.
const fn coded(name: &'static str, tag: &'static str) -> Row {
    Row { name, tag, accepted_by_name: false }
}

/// Row N holds the language with code N + 1.
const TABLE: [Row; 23] = [
    named("assamese", "as"),
    named("bengali", "bn"),
    coded("bodo", "brx"),
    coded("dogri", "doi"),
    named("gujarati", "gu"),
    named("hindi", "hi"),
    named("kannada", "kn"),
    coded("kashmiri", "ks"),
    coded("konkani", "kok"),
    coded("maithili", "mai"),
    named("malayalam", "ml"),
    coded("manipuri", "mni"),
    named("marathi", "mr"),
    named("nepali", "ne"),
    named("oriya", "or"),
    named("punjabi", "pa"),
    coded("sanskrit", "sa"),
    coded("santali", "sat"),
    coded("sindhi", "sd"),
    named("tamil", "ta"),
    named("telugu", "te"),
    named("urdu", "ur"),
    named("english", "en"),
];

/// The accepted values, for error messages.
const ACCEPTED: &str = "must be english, hindi, marathi, gujarati, tamil, telugu, bengali, kannada, malayalam, \
                        punjabi, urdu, assamese, oriya or nepali, or a code from 1 to 23";

impl Language {
    /// The default.
    pub const ENGLISH: Self = Self(23);

    /// Accepts a language name in any case, or a code written as digits.
    ///
    /// # Errors
    /// A message that lists the accepted values.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if let Ok(code) = text.parse::<u64>() {
            return Self::from_code(code);
        }
        let index = TABLE.iter().position(|row| row.accepted_by_name && row.name.eq_ignore_ascii_case(text));
        index.and_then(|index| u8::try_from(index + 1).ok()).map(Self).ok_or(ACCEPTED)
    }

    /// Accepts the authority's numeric code.
    ///
    /// # Errors
    /// A message that lists the accepted values.
    pub fn from_code(code: u64) -> Result<Self, &'static str> {
        match u8::try_from(code) {
            Ok(code) if (1..=23).contains(&code) => Ok(Self(code)),
            _ => Err(ACCEPTED),
        }
    }

    /// Returns the language with this BCP 47 tag.
    #[must_use]
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::all().find(|language| language.tag() == tag)
    }

    /// Returns the authority's code, 1 to 23.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Returns every language, by code.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=23).map(Self)
    }

    /// Returns the name in requests; `None` for the nine languages that have only a code.
    #[must_use]
    pub fn accepted_name(self) -> Option<&'static str> {
        let row = self.row();
        row.accepted_by_name.then_some(row.name)
    }

    /// Returns the name in lower case, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the BCP 47 tag, for `lang` attributes.
    #[must_use]
    pub fn tag(self) -> &'static str {
        self.row().tag
    }

    fn row(self) -> &'static Row {
        TABLE.get(usize::from(self.0).wrapping_sub(1)).unwrap_or(&TABLE[22])
    }
}

impl Default for Language {
    fn default() -> Self {
        Self::ENGLISH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fourteen_names_are_accepted_in_any_case() {
        let names =
            "english hindi marathi gujarati tamil telugu bengali kannada malayalam punjabi urdu assamese oriya nepali";
        for name in names.split(' ') {
            assert_eq!(Language::parse(&name.to_uppercase()).unwrap().name(), name);
        }
        assert_eq!(TABLE.iter().filter(|row| row.accepted_by_name).count(), 14);
        assert!(Language::parse("bodo").is_err());
    }

    #[test]
    fn nine_languages_have_a_code_and_no_accepted_name() {
        let unnamed: Vec<u8> =
            Language::all().filter(|language| language.accepted_name().is_none()).map(Language::code).collect();
        assert_eq!(unnamed, [3, 4, 8, 9, 10, 12, 17, 18, 19]);
    }

    #[test]
    fn codes_1_to_23_are_accepted() {
        for code in 1..=23 {
            assert_eq!(u64::from(Language::parse(&code.to_string()).unwrap().code()), code);
        }
        assert_eq!(Language::from_code(23), Ok(Language::ENGLISH));
        for code in [0, 24, 256 + 23] {
            assert!(Language::from_code(code).is_err());
        }
    }
}
