//! What an upstream's answer may be made of, beyond what derived readers ask.
//!
//! They take an array for an object, by position, and an object for a word; whoever answers so speaks
//! of something else than what was asked.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// What is written as an object, and as nothing else.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData)).map(Self)
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

/// One word of a closed set, written as a string.
pub(super) struct Word<T>(pub(super) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::pan::PanStatus;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Named {
        name: Option<String>,
    }

    #[test]
    fn an_object_is_not_read_by_position() {
        let read = |text: &str| serde_json::from_str::<Object<Named>>(text).map(|named| named.0.name);
        assert_eq!(read(r#"{"more": [], "name": "a"}"#).unwrap().as_deref(), Some("a"));
        for text in [r#"["a"]"#, "[]", "null", "\"a\"", "7", r#"{"name": ["a"]}"#, r#"{"name": "a", "name": "b"}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_word_is_a_string_of_its_set() {
        let read = |text: &str| serde_json::from_str::<Word<PanStatus>>(text).map(|word| word.0);
        assert_eq!(read("\"valid\"").unwrap(), PanStatus::Valid);
        for text in [r#"{"valid": null}"#, "\"Valid\"", "null", "0", r#"["valid"]"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
