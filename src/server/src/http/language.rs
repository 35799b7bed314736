//! The field `language` of a request: a name or a code.

use sakshi_domain::invalid::Invalid;
use sakshi_domain::language::Language;
use serde::Deserialize;

/// A language by name or by code.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum LanguageField {
    /// From 1 to 23.
    Code(u64),
    /// A name in any case, or a code as digits.
    Name(String),
}

impl LanguageField {
    /// The language; English when the field is absent, `None` when it is not acceptable.
    pub fn read(field: Option<&Self>, invalid: &mut Invalid) -> Option<Language> {
        match field {
            None => Some(Language::ENGLISH),
            Some(Self::Code(code)) => invalid.check("language", Language::from_code(*code)),
            Some(Self::Name(name)) => invalid.check("language", Language::parse(name)),
        }
    }
}
