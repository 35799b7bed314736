//! A language in an answer.

use sakshi_domain::language::Language;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::body::{Describe, Schemas};

/// A language as requests may ask for it: its name, or its code if it has no name that they may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageName(pub Language);

impl Describe for LanguageName {
    fn schema() -> Value {
        Language::schema()
    }

    fn collect(schemas: &mut Schemas) {
        Language::collect(schemas);
    }
}

impl Serialize for LanguageName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.accepted_name() {
            Some(name) => serializer.serialize_str(name),
            None => serializer.serialize_u8(self.0.code()),
        }
    }
}

impl<'de> Deserialize<'de> for LanguageName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Name(String),
            Code(u64),
        }
        let language = match Written::deserialize(deserializer)? {
            Written::Name(name) => Language::parse(&name),
            Written::Code(code) => Language::from_code(code),
        };
        language.map(Self).map_err(de::Error::custom)
    }
}
