//! A language in a response.

use sakshi_domain::language::Language;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::body::described;

/// A language as a request could name it: by its name, or by its code as text if requests accept no name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageName(pub Language);

described! { LanguageName: { "type": "string", "examples": ["hindi", "12"] } }

impl Serialize for LanguageName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.accepted_name() {
            Some(name) => serializer.serialize_str(name),
            None => serializer.collect_str(&self.0.code()),
        }
    }
}

impl<'de> Deserialize<'de> for LanguageName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Language::parse(&String::deserialize(deserializer)?).map(Self).map_err(de::Error::custom)
    }
}
